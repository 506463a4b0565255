"""What leaves, and when, against raw loopback sockets: the oracle is what the *server* received."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from counterfoil.adapters import wire
from counterfoil.adapters.contract import (
    Answered,
    NoAnswer,
    Sent,
)
from counterfoil.adapters.wire import IntentRefused

from .conftest import Connection, ServeRaw
from .kit import OpenTransport, effect, ok, post, send_by


def test_a_request_arrives_as_it_was_asked_for(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        async with serve_raw(ok) as server, transport(environ={"T": "tok"}) as wire_:
            reply = await wire_.send(post(server.url), credential="env:T")
            assert reply == Answered(200, {"content-length": "8", "content-type": "application/json"}, b'{"ok":1}')
            head, _, body = server.received.partition(b"\r\n\r\n")
            assert body == b"hello"
            assert head.split(b"\r\n") == [
                b"POST /mcp HTTP/1.1",
                f"Host: 127.0.0.1:{server.port}".encode(),
                b"Accept-Encoding: identity",
                b"User-Agent: counterfoil",
                b"Content-Length: 5",
                b"Connection: keep-alive",
                b"X-Mine: 1",
                b"Authorization: Bearer tok",
            ]

    asyncio.run(main())


@pytest.mark.parametrize("error", [IntentRefused("lease lost"), RuntimeError("bug"), TimeoutError("commit")])
def test_a_hook_that_raises_leaves_no_byte_at_the_server(
    serve_raw: ServeRaw, error: Exception, transport: OpenTransport
) -> None:
    async def main() -> None:
        connected = asyncio.Event()

        async def watch(connection: Connection) -> None:
            connected.set()
            await connection.rest()

        async def hook() -> float:
            await connected.wait()  # the connection is up when the intent is asked for
            raise error

        async with serve_raw(watch) as server, transport() as wire_:
            sending = wire_.send(effect(server.url), before_first_byte=hook)
            if isinstance(error, IntentRefused):
                assert await sending == NoAnswer(Sent.NO, "lease lost")
            else:
                with pytest.raises(type(error)):
                    await sending
            await server.connections[0].ended.wait()
            assert server.received == b""
            assert len(server.connections) == 1

    asyncio.run(main())


def test_a_send_by_that_has_passed_at_the_hook_leaves_no_byte(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        async with serve_raw(Connection.rest) as server, transport() as wire_:
            reply = await wire_.send(effect(server.url), before_first_byte=send_by(-0.001))
            assert reply == NoAnswer(Sent.NO, "send_by passed before the first byte")
            await server.connections[0].ended.wait()
            assert server.received == b""

    asyncio.run(main())


def test_the_hook_runs_before_the_first_byte_and_the_evidence_before_the_return(
    serve_raw: ServeRaw, transport: OpenTransport
) -> None:
    async def main() -> None:
        told: list[str] = []

        async def script(connection: Connection) -> None:
            await connection.request()
            told.append("server")
            await connection.answer(b"done")

        async def hook() -> float:
            told.append("intent")
            return await send_by(5)()

        async def keep(reply: Answered | NoAnswer) -> None:
            told.append(f"evidence {reply.body.decode()}")

        async with serve_raw(script) as server, transport() as wire_:
            await wire_.send(effect(server.url), before_first_byte=hook, on_answer=keep)
        assert told == ["intent", "server", "evidence done"]

    asyncio.run(main())


@pytest.mark.parametrize("kernel_helps", [True, False])
def test_a_body_that_is_still_going_out_at_send_by_stops(
    serve_raw: ServeRaw, monkeypatch: pytest.MonkeyPatch, kernel_helps: bool, transport: OpenTransport
) -> None:
    """The client's send buffer fills, since the server reads nothing until send_by has passed."""
    if not kernel_helps:
        monkeypatch.delattr(socket, "TCP_USER_TIMEOUT", raising=False)

    async def main() -> None:
        body = b"x" * (32 * 1024 * 1024)
        read_on = asyncio.Event()

        async def slow(connection: Connection) -> None:
            await connection.head()
            await read_on.wait()
            await connection.rest()

        async with serve_raw(slow) as server, transport() as wire_:
            started_s = time.monotonic()
            reply = await wire_.send(effect(server.url, body), before_first_byte=send_by(0.3))
            assert 0.2 < time.monotonic() - started_s < 3
            assert isinstance(reply, NoAnswer)
            assert reply.sent is Sent.MAYBE
            read_on.set()
            await server.connections[0].ended.wait()
            assert len(server.received) < len(body), "the server can never have the whole request"
            assert server.connections[0].reset, "what was in the kernel's buffer is thrown away, not sent"

    asyncio.run(main())


def test_every_piece_is_held_against_send_by() -> None:
    async def main() -> None:
        journey = wire.Journey(effect("http://127.0.0.1:1/", b"x" * 40_000), send_by(5))
        pieces = journey.content()
        assert len(await anext(pieces)) == wire.WRITE_BYTES
        journey._send_by_s = asyncio.get_running_loop().time()
        with pytest.raises(wire.SendByPassed):
            await anext(pieces)

    asyncio.run(main())


def test_a_loop_that_stood_still_past_send_by_writes_no_further_piece(
    serve_raw: ServeRaw, transport: OpenTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a stopped process does: the timer could only fire after the next write."""
    pieces = wire.Journey.content

    async def slow(self: wire.Journey) -> AsyncIterator[bytes]:
        async for piece in pieces(self):
            yield piece
            time.sleep(0.2)  # noqa: ASYNC251  real time passes while the loop stands still

    monkeypatch.setattr(wire.Journey, "content", slow)

    async def main() -> None:
        async with serve_raw(Connection.rest) as server, transport() as wire_:
            body = b"x" * wire.WRITE_BYTES + b"the end"
            reply = await wire_.send(effect(server.url, body), before_first_byte=send_by(0.1))
            assert reply == NoAnswer(Sent.MAYBE, wire._TOO_LATE)
            await server.connections[0].ended.wait()
            assert b"the end" not in server.received

    asyncio.run(main())


def test_the_kernel_is_told_how_long_it_may_try(
    serve_raw: ServeRaw, transport: OpenTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(socket, "TCP_USER_TIMEOUT"):
        return
    seen: list[int] = []
    commit = wire.Journey._commit_intent

    async def spy(self: wire.Journey, *told: Any) -> None:
        await commit(self, *told)
        assert self._socket is not None
        seen.append(self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))

    monkeypatch.setattr(wire.Journey, "_commit_intent", spy)

    async def main() -> None:
        async with serve_raw(ok) as server, transport() as wire_:
            await wire_.send(effect(server.url), before_first_byte=send_by(3))

    asyncio.run(main())
    assert 2000 < seen[0] <= 3000


@pytest.mark.parametrize("method", ["DELETE", "PUT"])
def test_an_effect_by_an_idempotent_method_is_not_sent_again_by_the_client(
    serve_raw: ServeRaw, transport: OpenTransport, method: str
) -> None:
    """A cancel may be a DELETE, and client libraries ask those again where a connection was lost."""

    async def main() -> None:
        async def hang_up(connection: Connection) -> None:
            await connection.request()

        asked = 0

        async def hook() -> float:
            nonlocal asked
            asked += 1
            return await send_by(5)()

        async with serve_raw(hang_up) as server, transport() as wire_:
            reply = await wire_.send(effect(server.url, b"", method=method), before_first_byte=hook)
            assert isinstance(reply, NoAnswer)
            assert (reply.sent, asked, server.received.count(method.encode())) == (Sent.MAYBE, 1, 1)

    asyncio.run(main())
