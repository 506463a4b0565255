"""An event stream is read as far as it is needed."""

import asyncio
import gzip
import time

import pytest

from counterfoil.adapters.contract import Answered, NoAnswer, Request, Sent
from counterfoil.adapters.jsonrpc import response_to

from .conftest import Connection, ServeRaw
from .kit import OpenTransport, effect, post, send_by

STREAM = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
NOTE = b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"token":"r-1"}}\n\n'
ASKED = b'data: {"jsonrpc":"2.0","id":"r-1","method":"elicitation/create","params":{}}\n\n'
OTHER = b'data: {"jsonrpc":"2.0","id":"r-2","result":{}}\n\n'
ANSWER = b'data: {"jsonrpc":"2.0","id":"r-1","result":{"a":1}}\n\n'


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def waiting(url: str, **changes: object) -> Request:
    return post(url, until=response_to("r-1"), **changes)


async def holds_open(connection: Connection) -> None:
    """Answers, and never ends the stream."""
    while await connection.request():
        await connection.say(STREAM.encode())
        for part in (NOTE, ASKED, OTHER, ANSWER[:20], ANSWER[20:]):
            await connection.say(chunk(part))
        await connection.rest()


def test_a_stream_that_is_held_open_after_the_response_is_left_at_once(
    serve_raw: ServeRaw, transport: OpenTransport
) -> None:
    async def main() -> None:
        async with serve_raw(holds_open) as server, transport() as wire_:
            started_s = time.monotonic()
            read = await wire_.send(waiting(server.url, deadline_s=30.0))
            sent = await wire_.send(
                effect(server.url, until=response_to("r-1"), deadline_s=30.0), before_first_byte=send_by(5)
            )
            assert time.monotonic() - started_s < 10
            for reply in (read, sent):
                assert isinstance(reply, Answered)
                assert reply.body == NOTE + ASKED + OTHER + ANSWER
            async with asyncio.timeout(5):
                for connection in server.connections:
                    await connection.ended.wait()  # we closed it: the server need not hold it for us

    asyncio.run(main())


def test_a_stream_that_holds_no_response_of_ours_is_read_until_the_deadline(
    serve_raw: ServeRaw, transport: OpenTransport
) -> None:
    async def main() -> None:
        async def foreign(connection: Connection) -> None:
            await connection.request()
            await connection.say(STREAM.encode() + chunk(NOTE + ASKED + OTHER))
            await connection.rest()

        async with serve_raw(foreign) as server, transport() as wire_:
            reply = await wire_.send(waiting(server.url, deadline_s=0.3))
            assert reply == NoAnswer(Sent.MAYBE, "the deadline passed", NOTE + ASKED + OTHER)

    asyncio.run(main())


def test_a_stream_that_ends_with_its_response_leaves_the_connection_for_the_next_read(
    serve_raw: ServeRaw, transport: OpenTransport
) -> None:
    async def main() -> None:
        async def ends(connection: Connection) -> None:
            while await connection.request():
                await connection.say(STREAM.encode() + chunk(ANSWER))
                await connection.say(b"0\r\n\r\n")

        async with serve_raw(ends) as server, transport() as wire_:
            for _ in range(3):
                reply = await wire_.send(waiting(server.url))
                assert isinstance(reply, Answered)
                assert reply.body == ANSWER
            assert len(server.connections) == 1

    asyncio.run(main())


def test_a_stream_that_is_cut_after_its_response_has_answered(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        async def cuts(connection: Connection) -> None:
            await connection.request()
            await connection.say(STREAM.encode() + chunk(ANSWER) + b"ffff\r\ndata")

        async with serve_raw(cuts) as server, transport() as wire_:
            reply = await wire_.send(waiting(server.url))
            assert isinstance(reply, Answered)
            assert reply.body == ANSWER + b"data"

    asyncio.run(main())


def test_a_second_question_right_behind_the_first_is_kept(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    """A server that was asked for its questions sends all of them at once, each in a piece of its own, and never again.
    Whoever closes the stream at the first loses the others."""

    async def main() -> None:
        async def asks_twice(connection: Connection) -> None:
            await connection.request()
            await connection.say(STREAM.encode() + chunk(ASKED))
            await connection.say(chunk(OTHER))
            await connection.rest()

        async with serve_raw(asks_twice) as server, transport() as wire_:
            reply = await wire_.send(post(server.url, until=lambda data: b"elicitation/create" in data))
            assert isinstance(reply, Answered)
            assert reply.body == ASKED + OTHER

    asyncio.run(main())


def test_a_packed_stream_is_left_as_well(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    packed = gzip.compress(NOTE + ANSWER)

    async def main() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            head = STREAM.replace("\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n")
            await connection.say(head.encode() + chunk(packed[:-8]))
            await connection.rest()

        async with serve_raw(script) as server, transport() as wire_:
            reply = await wire_.send(waiting(server.url))
            assert isinstance(reply, Answered)
            assert reply.body == NOTE + ANSWER

    asyncio.run(main())


@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
def test_a_body_that_is_no_stream_is_read_to_its_end(
    serve_raw: ServeRaw, content_type: str, transport: OpenTransport
) -> None:
    async def main() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(ANSWER + NOTE, headers=f"Content-Type: {content_type}\r\n")

        async with serve_raw(script) as server, transport() as wire_:
            reply = await wire_.send(waiting(server.url))
            assert isinstance(reply, Answered)
            assert reply.body == ANSWER + NOTE

    asyncio.run(main())


def test_an_endless_stream_is_cut_at_the_cap(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        async def endless(connection: Connection) -> None:
            await connection.request()
            await connection.say(STREAM.encode())
            while True:
                await connection.say(chunk(b"data: " + b"x" * 60_000))

        async with serve_raw(endless) as server, transport() as wire_:
            reply = await wire_.send(waiting(server.url, max_bytes=100_000))
            assert isinstance(reply, NoAnswer)
            assert reply.why == "the answer is larger than 100000 bytes"
            assert len(reply.body) == 100_000

    asyncio.run(main())
