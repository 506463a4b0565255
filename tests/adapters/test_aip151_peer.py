"""`aip-151` over the wire, against a server that keeps its own books."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from counterfoil.adapters.aip151 import Aip151
from counterfoil.adapters.outcomes import (
    Acknowledged,
    Over,
    TaskStarted,
    Terminal,
    Unclear,
)

from .conftest import ServeRaw
from .kit_http import CALL, KEY, REPORTS, reports, task
from .kit_http_server import ReportServer, drop
from .kit_peer import Peer, worker

NAME = "operations/op-1"


def talk(serve_raw: ServeRaw, server: ReportServer, conversation: Callable[[Peer], Awaitable[None]]) -> None:
    async def main() -> None:
        async with serve_raw(server) as served:
            endpoint = reports(REPORTS, url=f"http://127.0.0.1:{served.port}")
            async with worker(Aip151(), endpoint) as peer:
                await conversation(peer)

    asyncio.run(main())


def test_an_operation_from_its_submit_to_its_response(serve_raw: ServeRaw) -> None:
    server = ReportServer()

    async def conversation(peer: Peer) -> None:
        started = await peer.run(peer.adapter.submit(peer.endpoint, CALL))
        assert started == TaskStarted(NAME, "running", None, None, None)
        over = await peer.poll_past(task(NAME), "running")
        assert isinstance(over, Over)
        assert over.payload is not None
        assert (over.terminal, over.payload.pointer) == (Terminal.COMPLETED, "/response")
        assert json.loads(over.payload.body)["response"]["rows"] == 3

    talk(serve_raw, server, conversation)
    assert server.books.asked[0].body == {"requestId": KEY} | json.loads(CALL.arguments)


def test_a_replay_finds_the_operation_that_exists(serve_raw: ServeRaw) -> None:
    server = ReportServer()
    server.books.faults.append(drop)

    async def conversation(peer: Peer) -> None:
        assert isinstance(await peer.run(peer.adapter.submit(peer.endpoint, CALL)), Unclear)
        again = await peer.run(peer.adapter.submit(peer.endpoint, CALL))
        assert again == TaskStarted(NAME, "", None, None, None)

    talk(serve_raw, server, conversation)
    assert server.books.effects == [NAME]


def test_a_cancel_shows_later_as_error_one(serve_raw: ServeRaw) -> None:
    server = ReportServer()

    async def conversation(peer: Peer) -> None:
        await peer.run(peer.adapter.submit(peer.endpoint, CALL))
        assert await peer.run(peer.adapter.cancel(peer.endpoint, task(NAME))) == Acknowledged()
        over = await peer.poll_past(task(NAME), "running")
        assert over == Over(Terminal.CANCELLED, "done", None, message="CANCELLED")

    talk(serve_raw, server, conversation)
