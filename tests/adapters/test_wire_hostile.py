"""Hostile bytes from a raw server: over each transport an outcome within its caps, and nothing is sent twice."""

import asyncio
import gzip
import ssl
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from counterfoil.adapters.contract import Answered, NoAnswer, Request, Sent
from counterfoil.adapters.credentials import Credentials
from counterfoil.adapters.guard import Guard
from counterfoil.adapters.wire import WireTransport
from counterfoil.adapters.wire_aiohttp import AiohttpTransport
from counterfoil.adapters.wire_httpx import HttpxTransport

from .hostile import EXAMPLES
from .kit import effect, post

MAX_BYTES = 2_000
DEADLINE_S = 0.05
PATIENCE_S = 5.0
"""A bound of the bounds, on a machine that is busy with other tests."""

ZEROS = bytes(300_000)
BOMB = gzip.compress(ZEROS)
STREAM = b'data: {"jsonrpc":"2.0","id":"r-1","result":{}}\n\n'

STATUS_LINES = st.sampled_from(
    [
        *[b"HTTP/1.1 200 OK"] * 6,
        b"HTTP/1.1 204 No Content",
        b"HTTP/1.1 304 Not Modified",
        b"HTTP/1.1 401 Unauthorized",
        b"HTTP/1.1 503 \xff\xfe",
        b"HTTP/1.0 200 OK",
        b"HTTP/1.1 101 Switching Protocols",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK",
        b"HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n" * 300 + b"HTTP/1.1 200 OK",
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere",
        b"HTTP/1.1 200",
        b"HTTP/1.1 99 Low",
        b"HTTP/1.1 1000 High",
        b"HTTP/1.1 -200 OK",
        b"HTTP/1.1 200\x00OK",
        b"HTTP/9.9 200 OK",
        b"HTTP/2 200",
        b"ICY 200 OK",
        b"http/1.1 200 ok",
        b"GET / HTTP/1.1",
        b"\r\n\r\nHTTP/1.1 200 OK",
        b"",
        b"HTTP/1.1 200 " + b"x" * 70_000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ]
)
HEADERS = st.lists(
    st.sampled_from(
        [
            b"Content-Length: 5",
            b"Content-Length: 0",
            b"Content-Length: -1",
            b"Content-Length: +5",
            b"Content-Length: 5, 5",
            b"Content-Length: 5_0",
            b"Content-Length: 0x10",
            b"Content-Length: 99999999999999999999999999",
            b"Content-Length: 3000000",
            b"Transfer-Encoding: chunked",
            b"Transfer-Encoding: gzip, chunked",
            b"Transfer-Encoding: chunked, chunked",
            b"Transfer-Encoding: \x0bchunked",
            b"Content-Encoding: gzip",
            b"Content-Encoding: deflate",
            b"Content-Encoding: gzip, gzip",
            b"Content-Encoding: br",
            b"Content-Encoding: identity",
            b"Content-Type: text/event-stream",
            b"Content-Type: application/json; charset=\xff",
            b"Set-Cookie: a=b; Domain=evil.example",
            b"Set-Cookie: \x01=\x02",
            b"Connection: close",
            b"Connection: upgrade",
            b"Upgrade: h2c",
            b"Location: http://[::1",
            b"Retry-After: 1",
            b"X: " + b"y" * 70_000,
            b"X: " + b"y" * 9_000,
            b"X: \x00",
            b"X: \xe9\xff",
            b" folded: 1",
            b"no colon",
            b": no name",
            b"spaced : 1",
            b"X: 1\nY: 2",
            b"X: 1\rY: 2",
            b"\r\n".join(b"H%d: 1" % number for number in range(1_000)),
        ]
    )
    | st.binary(max_size=30),
    max_size=4,
)
BODIES = st.sampled_from(
    [
        b"",
        b"hello",
        b"hello, and more than was said",
        ZEROS,
        BOMB,
        BOMB[:-7],
        zlib.compress(ZEROS),
        b"\x1f\x8b\x08" + b"\xff" * 50,
        STREAM,
        STREAM[:20],
        b"data: " + b"x" * 5_000,
        b"5\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhello\r\n0\r\nTrailer: 1\r\n\r\n",
        b"5;ext=1\r\nhello\r\n",
        b"5\nhello\n0\n\n",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"zz\r\nhello",
        b"5\r\nhello, too long\r\n0\r\n\r\n",
        b"ffffffffffffffffff\r\nhello",
        b"7fffffffffffffff\r\nhello",
        b"1;" + b"x" * 70_000 + b"\r\na\r\n0\r\n\r\n",
        b"%x\r\n%s\r\n0\r\n\r\n" % (len(BOMB), BOMB),
        b"1\r\na\r\n" * 2_500,
        b"0\r\n" + b"T: 1\r\n" * 1_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain",
    ]
) | st.binary(max_size=60)


@dataclass(frozen=True)
class Said:
    """What a server says to every request: bytes, in pieces, and how it ends."""

    data: bytes
    pieces: int
    end: str

    def up_to(self, part: float) -> "Said":
        """The same, cut off; whole where the part is 0.8 or more."""
        return replace(self, data=self.data[: int(len(self.data) * min(part / 0.8, 1.0))])


ANSWERS = st.builds(
    lambda line, headers, body: b"\r\n".join([line, *headers]) + b"\r\n\r\n" + body, STATUS_LINES, HEADERS, BODIES
)
ENDS = st.sampled_from([*["close"] * 12, *["reset"] * 4, "keep", "hold"])
SAID = st.builds(Said.up_to, st.builds(Said, ANSWERS, st.integers(1, 3), ENDS), st.floats(0, 1))


def over_the_wire(test: Callable[..., None]) -> Any:
    """As `hard`, with a tenth of its examples: each is a connection or two, and some wait for the deadline."""
    return pytest.mark.fuzz(settings(max_examples=EXAMPLES // 10 or 1)(test))


class World:
    """A server that says what it is told to, and a transport to it; one loop for all examples."""

    def __init__(self, kind: Callable[..., WireTransport]) -> None:
        self.said = Said(b"", 1, "close")
        self.requests = 0
        self.faults: list[dict[str, Any]] = []
        self.runner = asyncio.Runner()
        self.runner.get_loop().set_exception_handler(lambda _loop, context: self.faults.append(context))
        self.runner.run(self._open(kind))

    async def _open(self, kind: Callable[..., WireTransport]) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"
        self.transport = kind(Guard(), Credentials(time.monotonic, {}), ssl.create_default_context())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said = self.said
        try:
            while await reader.readuntil(b"hello"):
                self.requests += 1
                size = len(said.data) // said.pieces + 1
                for start in range(0, len(said.data), size):
                    writer.write(said.data[start : start + size])
                    await writer.drain()
                    await asyncio.sleep(0)
                if said.end == "hold":
                    await reader.read()
                if said.end == "reset":
                    writer.transport.abort()
                if said.end != "keep":
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client had enough
        finally:
            writer.close()

    def ask(self, request: Request, hook: Callable[[], Awaitable[float]] | None = None) -> Answered | NoAnswer:
        async def bounded() -> Answered | NoAnswer:
            async with asyncio.timeout(PATIENCE_S):
                return await self.transport.send(request, before_first_byte=hook)

        return self.runner.run(bounded())

    async def _close(self) -> None:
        await self.transport.aclose()
        self._server.close()
        await self._server.wait_closed()

    def close(self) -> None:
        self.runner.run(self._close())
        self.runner.close()


@pytest.fixture(scope="module", params=[AiohttpTransport, HttpxTransport])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(request.param)
    yield made
    made.close()


def is_within_its_caps(reply: Answered | NoAnswer) -> None:
    assert len(reply.body) <= MAX_BYTES
    if isinstance(reply, Answered):
        assert 100 <= reply.status <= 999
        assert all(name == name.lower() and isinstance(value, str) for name, value in reply.headers.items())


def waits(data: bytes) -> bool:
    return b'"r-1"' in data


UNTIL = st.sampled_from([None, waits])


@given(SAID, UNTIL)
@example(Said(b"HTTP/1.1 200 OK\r\n\r\n" + ZEROS, 1, "close"), None)
@example(Said(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + BOMB, 1, "close"), None)
@example(Said(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", 1, "hold"), waits)
@over_the_wire
def test_whatever_a_server_says_to_a_read_there_is_an_outcome(
    world: World, said: Said, until: Callable[[bytes], bool] | None
) -> None:
    world.said, world.requests = said, 0
    reply = world.ask(post(world.url, deadline_s=DEADLINE_S, max_bytes=MAX_BYTES, until=until))
    is_within_its_caps(reply)
    assert world.requests <= 2, "once more at most, where the connection had died idle"
    assert world.faults == []


@given(SAID, UNTIL)
@example(Said(b"HTTP/1.1 200 OK\r\n\r\n" + ZEROS, 1, "close"), None)
@example(Said(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + BOMB, 1, "close"), None)
@example(Said(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", 1, "hold"), waits)
@over_the_wire
def test_whatever_a_server_says_to_an_effect_it_is_sent_once_and_its_outcome_claims_no_more_than_is_known(
    world: World, said: Said, until: Callable[[bytes], bool] | None
) -> None:
    intents = 0

    async def commit() -> float:
        nonlocal intents
        intents += 1
        return asyncio.get_running_loop().time() + PATIENCE_S

    world.said, world.requests = said, 0
    reply = world.ask(effect(world.url, deadline_s=DEADLINE_S, max_bytes=MAX_BYTES, until=until), commit)
    is_within_its_caps(reply)
    assert intents == 1
    assert world.requests <= 1
    assert isinstance(reply, Answered) or reply.sent is Sent.MAYBE
    assert world.faults == []


def test_a_right_answer_to_it_is_taken_whole(world: World) -> None:
    """Else the tests above would see refusals only."""
    for end in ("close", "keep"):
        world.said = Said(b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 5\r\n\r\nhello", 3, end)
        reply = world.ask(post(world.url, deadline_s=PATIENCE_S, max_bytes=MAX_BYTES))
        assert isinstance(reply, Answered)
        assert (reply.status, reply.headers["x-a"], reply.body) == (200, "1, 2", b"hello")
