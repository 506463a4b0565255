"""`http-202` over the wire, against a server that keeps its own books."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from counterfoil.adapters.http202 import Http202
from counterfoil.adapters.outcomes import (
    Acknowledged,
    Found,
    Over,
    Refused,
    StillWorking,
    TaskStarted,
    Terminal,
    Unclear,
)

from .conftest import Connection, Served, ServeRaw
from .kit_http import CALL, JOBS, KEY, SEARCH, jobs, task
from .kit_http_server import JobServer, drop
from .kit_peer import Peer, worker

LAYER = {"routes": {"cancel": "DELETE /jobs/{id}"}}


def talk(
    serve_raw: ServeRaw, server: JobServer, conversation: Callable[[Peer, Served], Awaitable[None]], **more: object
) -> None:
    async def main() -> None:
        async with serve_raw(server) as served:
            url = f"http://127.0.0.1:{served.port}"
            async with worker(Http202(), jobs(JOBS, LAYER, more, url=url)) as peer:
                await conversation(peer, served)

    asyncio.run(main())


def test_a_job_from_its_submit_to_its_result(serve_raw: ServeRaw) -> None:
    server = JobServer()

    async def conversation(peer: Peer, _served: Served) -> None:
        started = await peer.run(peer.adapter.submit(peer.endpoint, CALL))
        assert started == TaskStarted("j-1", "queued", None, None, 2000)
        over = await peer.poll_past(task("j-1"), "queued", "running")
        assert over == Over(Terminal.COMPLETED, "succeeded", None)
        fetched = await peer.run(peer.adapter.fetch(peer.endpoint, task("j-1", terminal="completed")))
        assert isinstance(fetched, Over)
        assert fetched.payload is not None
        assert json.loads(fetched.payload.body) == {"rows": 3}

    talk(serve_raw, server, conversation)
    (submit, *_) = server.books.asked
    assert (submit.headers["idempotency-key"], submit.body) == (KEY, json.loads(CALL.arguments))
    assert (server.books.effects, server.books.requests("GET", "/jobs/j-1")) == (["j-1"], 3)


def test_a_lost_answer_is_resolved_by_the_same_bytes(serve_raw: ServeRaw) -> None:
    server = JobServer()
    server.books.faults.append(drop)

    async def conversation(peer: Peer, _served: Served) -> None:
        lost = await peer.run(peer.adapter.submit(peer.endpoint, CALL))
        assert isinstance(lost, Unclear)
        again = await peer.run(peer.adapter.submit(peer.endpoint, CALL))
        assert again == TaskStarted("j-1", "queued", None, None, 2000)
        assert peer.intents == 2

    talk(serve_raw, server, conversation)
    assert server.books.effects == ["j-1"]
    first, second = server.books.asked
    assert first == second


def test_a_dropped_status_is_no_end(serve_raw: ServeRaw) -> None:
    """A read is asked once more over a fresh connection, and only then it is busy."""
    server = JobServer()

    async def conversation(peer: Peer, _served: Served) -> None:
        await peer.run(peer.adapter.submit(peer.endpoint, CALL))
        server.books.faults += [drop, drop]
        await peer.poll_past(task("j-1"), "queued", "running")

    talk(serve_raw, server, conversation)
    assert server.books.effects == ["j-1"]


def test_a_cancel_is_acknowledged_and_the_status_tells_the_end(serve_raw: ServeRaw) -> None:
    server = JobServer()

    async def conversation(peer: Peer, _served: Served) -> None:
        await peer.run(peer.adapter.submit(peer.endpoint, CALL))
        assert await peer.run(peer.adapter.cancel(peer.endpoint, task("j-1"))) == Acknowledged("canceling")
        assert isinstance(await peer.run(peer.adapter.poll(peer.endpoint, task("j-1"))), StillWorking)
        assert await peer.run(peer.adapter.poll(peer.endpoint, task("j-1"))) == Over(
            Terminal.CANCELLED, "canceled", None
        )

    talk(serve_raw, server, conversation)


def test_a_redirect_to_another_server_leaves_no_connection_there(serve_raw: ServeRaw) -> None:
    """Where it would go the credential would go, too."""
    server = JobServer()

    async def other(connection: Connection) -> None:
        await connection.answer(b'{"rows": 4}')

    async def conversation(peer: Peer, _served: Served) -> None:
        await peer.run(peer.adapter.submit(peer.endpoint, CALL))
        async with serve_raw(other) as foreign:
            for status in (302, 303, 307):
                place = {"Location": f"http://127.0.0.1:{foreign.port}/jobs/j-1"}
                server.books.faults.append(lambda _, status=status, place=place: (status, place, {}))
                outcome = await peer.run(peer.adapter.poll(peer.endpoint, task("j-1")))
                assert isinstance(outcome, Refused)
            assert foreign.connections == []

    talk(serve_raw, server, conversation)


def test_a_lookup_under_an_id_that_we_chose_finds_what_a_lost_submit_made(serve_raw: ServeRaw) -> None:
    server = JobServer(chosen=True)
    server.books.faults.append(drop)

    async def conversation(peer: Peer, _served: Served) -> None:
        await peer.run(peer.adapter.submit(peer.endpoint, CALL))
        found = await peer.run(peer.adapter.lookup(peer.endpoint, SEARCH))
        assert isinstance(found, Found)
        assert found.task.task_id == KEY

    talk(serve_raw, server, conversation, routes={"lookup": "GET /jobs/{key}"})
