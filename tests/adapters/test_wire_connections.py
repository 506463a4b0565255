"""Which connection a request goes over, and how many there are."""

import asyncio

import pytest

from counterfoil.adapters import guard, wire
from counterfoil.adapters.contract import (
    Answered,
    NoAnswer,
    Sent,
)
from counterfoil.adapters.guard import Guard
from counterfoil.adapters.wire_aiohttp import AiohttpTransport
from counterfoil.adapters.wire_httpx import HttpxTransport

from .conftest import Connection, ServeRaw
from .kit import OpenTransport, effect, ok, post, send_by


def test_reads_share_a_connection_and_effects_never_do(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        async with serve_raw(ok) as server, transport() as wire_:
            for _ in range(3):
                await wire_.send(post(server.url))
            assert len(server.connections) == 1
            for _ in range(3):
                await wire_.send(effect(server.url), before_first_byte=send_by(5))
            await wire_.send(post(server.url))
            assert len(server.connections) == 4
            assert all(c.received.count(b"POST /mcp") == 1 for c in server.connections[1:])

    asyncio.run(main())


def test_an_effect_refuses_an_idle_connection_even_if_the_pool_offers_one(
    serve_raw: ServeRaw, monkeypatch: pytest.MonkeyPatch, transport: OpenTransport
) -> None:
    async def main() -> None:
        async with serve_raw(ok) as server, transport() as wire_:
            assert isinstance(wire_, AiohttpTransport | HttpxTransport)
            await wire_.send(post(server.url))
            with monkeypatch.context() as patched:
                patched.setattr(wire_, "_fresh", wire_._reads)
                reply = await wire_.send(effect(server.url, b"effect"), before_first_byte=send_by(5))
            assert reply == NoAnswer(Sent.NO, "the pool offered a connection that was idle")
            assert b"effect" not in server.received

    asyncio.run(main())


def test_a_read_on_a_connection_that_died_idle_is_asked_once_more_on_a_fresh_one(
    serve_raw: ServeRaw, transport: OpenTransport
) -> None:
    async def main() -> None:
        async def dies_at_the_second(connection: Connection) -> None:
            await connection.request()
            await connection.answer(b"first")
            await connection.request()

        async with serve_raw(dies_at_the_second) as server, transport() as wire_:
            await wire_.send(post(server.url))
            reply = await wire_.send(post(server.url))
            assert isinstance(reply, Answered)
            assert reply.body == b"first"
            assert len(server.connections) == 2

    asyncio.run(main())


def test_an_idle_connection_to_where_the_name_pointed_once_is_not_used(
    serve_raw: ServeRaw, monkeypatch: pytest.MonkeyPatch, transport: OpenTransport
) -> None:
    """The name moves while a connection is polled over: only an address that is judged now is talked to."""
    monkeypatch.setattr(guard, "CACHE_S", 0.0)
    places = ["127.0.0.1"]

    async def resolve(_host: str, _port: int) -> list[str]:
        return places

    async def main() -> None:
        async with serve_raw(ok) as server, transport(Guard(resolve=resolve)) as wire_:
            url = server.url.replace("127.0.0.1", "moving.test")
            for _ in range(2):
                assert isinstance(await wire_.send(post(url)), Answered)
            assert len(server.connections) == 1
            places[:] = ["127.0.0.2"]  # nobody is there
            assert isinstance(await wire_.send(post(url, b"after")), NoAnswer)
            assert b"after" not in server.received

    asyncio.run(main())


def test_a_read_is_not_asked_a_third_time(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        async def dies(connection: Connection) -> None:
            await connection.request()
            if connection is first[0]:
                await connection.answer(b"first")
                await connection.request()

        first: list[Connection] = []

        async def script(connection: Connection) -> None:
            first.append(connection)
            await dies(connection)

        async with serve_raw(script) as server, transport() as wire_:
            await wire_.send(post(server.url))
            assert isinstance(await wire_.send(post(server.url)), NoAnswer)
            assert len(server.connections) == 2
            assert isinstance(await wire_.send(post(server.url)), NoAnswer), "a fresh connection is not asked again"
            assert len(server.connections) == 3

    asyncio.run(main())


def test_no_more_than_ten_requests_of_a_kind_are_out(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        out = 0
        most = 0
        ten = asyncio.Event()

        async def script(connection: Connection) -> None:
            nonlocal out, most
            while await connection.request():
                out += 1
                most = max(most, out)
                if out == 10:
                    ten.set()
                await ten.wait()
                out -= 1
                await connection.answer()

        async with serve_raw(script) as server, transport() as wire_:
            replies = await asyncio.gather(*(wire_.send(post(server.url)) for _ in range(25)))
            assert all(isinstance(reply, Answered) for reply in replies)
            assert most == 10
            assert len(server.connections) == 10

    asyncio.run(main())


def test_the_slot_of_an_effect_stays_taken_until_its_evidence_is_stored(
    serve_raw: ServeRaw, monkeypatch: pytest.MonkeyPatch, transport: OpenTransport
) -> None:
    async def main() -> None:
        stored = asyncio.Event()
        storing = asyncio.Queue[None]()

        async def keep(_: Answered | NoAnswer) -> None:
            storing.put_nowait(None)
            await stored.wait()

        async with serve_raw(ok) as server, transport() as wire_:
            taken = [
                asyncio.create_task(wire_.send(effect(server.url), before_first_byte=send_by(5), on_answer=keep))
                for _ in range(wire.MAX_CONNECTIONS)
            ]
            for _ in taken:
                await storing.get()
            monkeypatch.setattr(wire, "START_S", 0.2)  # not before: of ten connections one may take as long
            late = await wire_.send(effect(server.url), before_first_byte=send_by(5))
            assert late == NoAnswer(Sent.NO, "no connection was free in time")
            monkeypatch.undo()
            assert isinstance(await wire_.send(post(server.url)), Answered), "reads have slots of their own"
            stored.set()
            await asyncio.gather(*taken)
            assert isinstance(await wire_.send(effect(server.url), before_first_byte=send_by(5)), Answered)

    asyncio.run(main())


def test_cancelling_the_task_closes_the_connection(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        asked = asyncio.Event()

        async def silent(connection: Connection) -> None:
            await connection.request()
            asked.set()
            await connection.rest()

        async with serve_raw(silent) as server, transport() as wire_:
            task = asyncio.create_task(wire_.send(effect(server.url), before_first_byte=send_by(5)))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.connections[0].ended.wait()

    asyncio.run(main())


def test_cancelling_the_task_does_not_lose_evidence_that_is_being_stored(
    serve_raw: ServeRaw, transport: OpenTransport
) -> None:
    async def main() -> None:
        begun, go_on, kept = asyncio.Event(), asyncio.Event(), []

        async def keep(reply: Answered | NoAnswer) -> None:
            begun.set()
            await go_on.wait()
            kept.append(reply)

        async with serve_raw(ok) as server, transport() as wire_:
            task = asyncio.create_task(wire_.send(effect(server.url), before_first_byte=send_by(5), on_answer=keep))
            await begun.wait()
            task.cancel()
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert len(kept) == 1

    asyncio.run(main())
