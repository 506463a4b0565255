"""Whether a lost request may have been heard."""

import asyncio

import pytest

from counterfoil.adapters.contract import (
    Answered,
    NoAnswer,
    Reply,
    Sent,
)

from .conftest import Connection, ServeRaw
from .kit import OpenTransport, effect, free_port, post, send_by


def test_a_refused_connection_left_nothing(transport: OpenTransport) -> None:
    async def main() -> None:
        async with transport() as wire_:
            url = f"http://127.0.0.1:{free_port()}/"
            for reply in (await wire_.send(post(url)), await wire_.send(effect(url), before_first_byte=send_by(5))):
                assert isinstance(reply, NoAnswer)
                assert reply.sent is Sent.NO

    asyncio.run(main())


def test_an_unfinished_handshake_left_nothing(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        async def no_tls(connection: Connection) -> None:
            await connection.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        async def hook() -> float:
            raise AssertionError("no intent before the handshake is done")

        async with serve_raw(no_tls) as server, transport() as wire_:
            reply = await wire_.send(effect(server.url.replace("http:", "https:")), before_first_byte=hook)
            assert isinstance(reply, NoAnswer)
            assert reply.sent is Sent.NO

    asyncio.run(main())


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"nonsense\r\n\r\n"]
)
def test_a_connection_lost_after_bytes_left_may_have_been_heard(
    serve_raw: ServeRaw, said: bytes, transport: OpenTransport
) -> None:
    async def main() -> None:
        async def cut(connection: Connection) -> None:
            await connection.request()
            await connection.say(said)

        async with serve_raw(cut) as server, transport() as wire_:
            reply = await wire_.send(effect(server.url), before_first_byte=send_by(5))
            assert isinstance(reply, NoAnswer)
            assert reply.sent is Sent.MAYBE
            assert len(server.connections) == 1, "an effect is never asked again"

    asyncio.run(main())


def test_a_connection_closed_while_it_is_written_may_have_been_heard(
    serve_raw: ServeRaw, transport: OpenTransport
) -> None:
    async def main() -> None:
        async def hang_up(connection: Connection) -> None:
            await connection.head()
            await connection.reader.readexactly(1000)

        async with serve_raw(hang_up) as server, transport() as wire_:
            reply = await wire_.send(effect(server.url, b"x" * 8_000_000), before_first_byte=send_by(5))
            assert isinstance(reply, NoAnswer)
            assert reply.sent is Sent.MAYBE

    asyncio.run(main())


def test_what_had_arrived_of_a_cut_answer_is_kept(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        kept: list[Reply] = []

        async def cut(connection: Connection) -> None:
            await connection.request()
            await connection.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ndata: {}")

        async def keep(reply: Answered | NoAnswer) -> None:
            kept.append(reply)

        async with serve_raw(cut) as server, transport() as wire_:
            reply = await wire_.send(effect(server.url), before_first_byte=send_by(5), on_answer=keep)
            assert isinstance(reply, NoAnswer)
            assert (reply.sent, reply.body) == (Sent.MAYBE, b"data: {}")
            assert kept == [reply]

    asyncio.run(main())


def test_status_and_retry_after_survive_a_cut_body(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        async def cut(connection: Connection) -> None:
            await connection.request()
            await connection.say(b"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 100\r\n\r\nslow")

        async with serve_raw(cut) as server, transport() as wire_:
            reply = await wire_.send(post(server.url))
            assert reply == Answered(429, {"retry-after": "7", "content-length": "100"}, b"slow")

    asyncio.run(main())
