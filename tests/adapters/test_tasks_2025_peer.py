"""mcp-2025-11-25 over real sockets: one session, several workers, one operation."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from counterfoil.adapters import registry
from counterfoil.adapters.contract import (
    Endpoint,
    InputReply,
    RemoteTask,
    Search,
)
from counterfoil.adapters.outcomes import (
    Absent,
    Acknowledged,
    Found,
    Hint,
    NeedsInput,
    Negotiated,
    NotFound,
    NotOffered,
    Over,
    SessionGone,
    StillWorking,
    Terminal,
    Unclear,
)
from counterfoil.adapters.strict_json import loads, resolve

from .conftest import ServeRaw
from .kit_peer import Peer, worker
from .tasks_server_2025 import TasksServer

ADAPTER = registry.adapter("mcp-2025-11-25")
RESULT = {"content": [], "structuredContent": {"rows": 3}, "isError": False}


@asynccontextmanager
async def serving(serve_raw: ServeRaw, server: TasksServer) -> AsyncIterator[Endpoint]:
    async with serve_raw(server.serve) as served:
        yield Endpoint("peer", served.url)


async def session_of(peer: Peer) -> bytes:
    agreed = await peer.run(ADAPTER.negotiate(peer.endpoint, "generate"))
    assert isinstance(agreed, Negotiated)
    assert agreed.session is not None
    return agreed.session


def test_a_task_is_made_by_one_worker_and_read_to_its_end_by_others(serve_raw: ServeRaw) -> None:
    async def main() -> None:
        server = TasksServer()
        async with serving(serve_raw, server) as endpoint:
            async with worker(ADAPTER, endpoint) as first:
                session = await session_of(first)
                assert first.intents == 0
                task = await first.task("generate", b'{"month":"2026-10"}', session)
                assert first.intents == 1
            async with worker(ADAPTER, endpoint) as second:
                working = await second.run(ADAPTER.poll(endpoint, task))
                assert isinstance(working, StillWorking)
                assert (working.interval_ms, working.ttl_ms) == (1000, 300000)
                server.end("completed", result=RESULT)
                over = await second.run(ADAPTER.poll(endpoint, task))
                assert isinstance(over, Over)
                assert (over.terminal, over.payload) == (Terminal.COMPLETED, None)
            async with worker(ADAPTER, endpoint) as third:
                for _ in range(2):  # a fetch may be made again
                    fetched = await third.run(ADAPTER.fetch(endpoint, task))
                    assert isinstance(fetched, Over)
                    assert fetched.payload is not None
                    assert resolve(loads(fetched.payload.body), fetched.payload.pointer) == {"rows": 3}
                await third.run(ADAPTER.end_session(endpoint, session))
        assert len(server.started) == 1
        assert server.sessions == {}
        assert server.asked == {
            "initialize": 1,
            "notifications/initialized": 1,
            "tools/list": 1,
            "tools/call": 1,
            "tasks/get": 2,
            "tasks/result": 2,
            "DELETE": 1,
        }

    asyncio.run(main())


def test_a_submit_does_not_wait_for_the_end_of_its_stream(serve_raw: ServeRaw) -> None:
    async def main() -> None:
        async with (
            serving(serve_raw, TasksServer(stream_stays_open=True)) as endpoint,
            worker(ADAPTER, endpoint) as peer,
        ):
            session = await session_of(peer)
            started_s = time.monotonic()
            assert isinstance(await peer.task("generate", session=session), RemoteTask)
            assert time.monotonic() - started_s < 10  # the bound of the call is 20 s

    asyncio.run(main())


def test_a_failed_task_brings_the_error_of_its_call(serve_raw: ServeRaw) -> None:
    async def main() -> None:
        server = TasksServer()
        async with serving(serve_raw, server) as endpoint, worker(ADAPTER, endpoint) as peer:
            session = await session_of(peer)
            task = await peer.task("generate", session=session)
            server.end("failed", error={"code": -32603, "message": "disk full"})
            over = await peer.run(ADAPTER.poll(endpoint, task))
            assert isinstance(over, Over)
            known = RemoteTask(task.task_id, session=session, terminal=over.status)
            fetched = await peer.run(ADAPTER.fetch(endpoint, known))
            assert isinstance(fetched, Over)
            assert (fetched.terminal, fetched.message) == (Terminal.FAILED, "disk full")
            assert fetched.payload is not None
            assert resolve(loads(fetched.payload.body), "/error/message") == "disk full"

    asyncio.run(main())


def test_a_cancel_is_answered_with_the_cancelled_task_and_a_second_one_with_not_found(serve_raw: ServeRaw) -> None:
    async def main() -> None:
        server = TasksServer()
        async with serving(serve_raw, server) as endpoint, worker(ADAPTER, endpoint) as peer:
            task = await peer.task("generate", session=await session_of(peer))
            assert await peer.run(ADAPTER.cancel(endpoint, task)) == Acknowledged("cancelled")
            assert peer.intents == 2
            server.end("completed", result=RESULT)  # the work ran on: too late
            over = await peer.run(ADAPTER.poll(endpoint, task))
            assert isinstance(over, Over)
            assert over.terminal is Terminal.CANCELLED
            assert isinstance(await peer.run(ADAPTER.cancel(endpoint, task)), NotFound)

    asyncio.run(main())


@pytest.mark.parametrize("typescript", [False, True])
def test_a_lost_session_is_told_from_a_lost_task(serve_raw: ServeRaw, typescript: bool) -> None:
    async def main() -> None:
        server = TasksServer(typescript=typescript)
        async with serving(serve_raw, server) as endpoint, worker(ADAPTER, endpoint) as peer:
            session = await session_of(peer)
            task = await peer.task("generate", session=session)
            elsewhere = RemoteTask(task.task_id, session=await session_of(peer))
            assert isinstance(await peer.run(ADAPTER.poll(endpoint, elsewhere)), NotFound)
            await peer.run(ADAPTER.end_session(endpoint, session))
            assert isinstance(await peer.run(ADAPTER.poll(endpoint, task)), SessionGone)
            assert isinstance(await peer.run(ADAPTER.fetch(endpoint, task)), SessionGone)
            assert isinstance(await peer.run(ADAPTER.cancel(endpoint, task)), Unclear)
            assert isinstance(await peer.submit("generate", session=session), Unclear)
        assert len(server.started) == 1

    asyncio.run(main())


def answer(asked: NeedsInput, word: str) -> InputReply:
    [key] = asked.keys
    content = b'{"action":"accept","content":{"word":"%s"}}' % word.encode()
    return InputReply(key.key, key.method, content, key.reply_to)


def test_a_question_is_read_by_one_worker_and_answered_by_another(serve_raw: ServeRaw) -> None:
    """The stream that brought the question is closed, and the worker that read it is gone: nobody holds anything."""

    async def main() -> None:
        server = TasksServer()
        async with serving(serve_raw, server) as endpoint:
            async with worker(ADAPTER, endpoint) as first:
                task = await first.task("generate", session=await session_of(first))
                server.ask(0)
                asked = await first.run(ADAPTER.poll(endpoint, task))
                assert isinstance(asked, NeedsInput)
                assert first.hints == [Hint(task.task_id, "input_required")]
            async with worker(ADAPTER, endpoint) as second:
                kept = ADAPTER.read_input(endpoint, task, asked.body)
                assert isinstance(kept, NeedsInput)
                assert kept.keys == asked.keys
                for word in ("first", "second"):  # the second is taken as politely, and ignored
                    reply = await second.run(ADAPTER.reply(endpoint, task, answer(kept, word)))
                    assert reply == Acknowledged()
                assert second.intents == 2
                assert isinstance(await second.run(ADAPTER.poll(endpoint, task)), StillWorking)
        assert server.started[-1].answers[0]["content"] == {"word": "first"}
        assert server.asked["tasks/result"] == 1

    asyncio.run(main())


def test_two_questions_at_once_are_both_read(serve_raw: ServeRaw) -> None:
    async def main() -> None:
        server = TasksServer()
        async with serving(serve_raw, server) as endpoint, worker(ADAPTER, endpoint) as peer:
            task = await peer.task("generate", session=await session_of(peer))
            server.ask(0, "one")
            asked = await peer.run(ADAPTER.poll(endpoint, task))
            assert isinstance(asked, NeedsInput)
            assert [key.reply_to for key in asked.keys] == ["0", '"one"']

    asyncio.run(main())


def test_a_question_that_was_read_before_is_not_waited_for_beyond_a_moment(serve_raw: ServeRaw) -> None:
    """It was sent to a worker that died with it: only a cancel ends that task, and no read may hang on it."""

    async def main() -> None:
        server = TasksServer()
        async with serving(serve_raw, server) as endpoint, worker(ADAPTER, endpoint) as peer:
            task = await peer.task("generate", session=await session_of(peer))
            server.ask(0)
            assert isinstance(await peer.run(ADAPTER.poll(endpoint, task)), NeedsInput)
            impatient = replace(endpoint, deadline_s=0.3)  # real time passes: the server never speaks again
            lost = await peer.run(ADAPTER.poll(impatient, task))
            assert isinstance(lost, NeedsInput)
            assert lost.keys == ()
            known = await peer.run(ADAPTER.poll(endpoint, replace(task, reads_question=False)))
            assert known == lost
            assert isinstance(await peer.run(ADAPTER.cancel(endpoint, task)), Acknowledged)
        assert server.asked["tasks/result"] == 2

    asyncio.run(main())


def test_a_reply_to_a_lost_session_is_not_taken(serve_raw: ServeRaw) -> None:
    async def main() -> None:
        server = TasksServer()
        async with serving(serve_raw, server) as endpoint, worker(ADAPTER, endpoint) as peer:
            session = await session_of(peer)
            task = await peer.task("generate", session=session)
            server.ask(0)
            asked = await peer.run(ADAPTER.poll(endpoint, task))
            assert isinstance(asked, NeedsInput)
            await peer.run(ADAPTER.end_session(endpoint, session))
            lost = await peer.run(ADAPTER.reply(endpoint, task, answer(asked, "late")))
            assert isinstance(lost, Unclear)
            assert lost.code == "E_SESSION_GONE"
        assert server.started[-1].answers == {}

    asyncio.run(main())


def test_a_lost_submit_is_found_by_its_key_and_another_is_absent(serve_raw: ServeRaw) -> None:
    async def main() -> None:
        server = TasksServer()
        async with serving(serve_raw, server) as endpoint, worker(ADAPTER, endpoint) as peer:
            session = await session_of(peer)
            task = await peer.task("generate", session=session)
            search = Search("generate", server.started[-1].key, 1, "counterfoil_lookup", session)
            found = await peer.run(ADAPTER.lookup(endpoint, search))
            assert isinstance(found, Found)
            assert found.task.task_id == task.task_id
            assert await peer.run(ADAPTER.lookup(endpoint, replace(search, submission_key="x"))) == Absent(True)
            assert peer.intents == 1
            await peer.run(ADAPTER.end_session(endpoint, session))
            assert isinstance(await peer.run(ADAPTER.lookup(endpoint, search)), SessionGone)
        assert len(server.started) == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("tool", "capabilities", "why"),
    [
        ("generate", {"tools": {}}, "declares no task support"),
        ("echo", None, "not for its tool echo"),
        ("generat", None, "Near names: generate"),
    ],
)
def test_what_takes_no_task_is_refused_and_its_session_is_ended(
    serve_raw: ServeRaw, tool: str, capabilities: dict[str, object] | None, why: str
) -> None:
    async def main() -> None:
        server = TasksServer() if capabilities is None else TasksServer(capabilities)
        async with serving(serve_raw, server) as endpoint, worker(ADAPTER, endpoint) as peer:
            refused = await peer.run(ADAPTER.negotiate(endpoint, tool))
            assert isinstance(refused, NotOffered)
            assert why in refused.why
        assert server.sessions == {}
        assert server.asked["initialize"] == server.asked["DELETE"] == 1

    asyncio.run(main())


def test_a_tool_that_insists_on_a_task_is_refused_to_sync_calls_and_another_tool_is_not(serve_raw: ServeRaw) -> None:
    async def main() -> None:
        sync = registry.adapter("mcp-sync")
        async with serving(serve_raw, TasksServer()) as endpoint, worker(sync, endpoint) as peer:
            refused = await peer.run(sync.negotiate(endpoint, "generate"))
            assert isinstance(refused, NotOffered)
            assert "`protocol: mcp-2025-11-25`" in refused.why
            assert isinstance(await peer.run(sync.negotiate(endpoint, "echo")), Negotiated)

    asyncio.run(main())
