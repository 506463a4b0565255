"""mcp-sync and the wire against a server that is not ours (the official SDK without tasks), over real sockets."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from counterfoil.adapters import registry
from counterfoil.adapters.contract import Call, Endpoint, Search
from counterfoil.adapters.outcomes import (
    Absent,
    FoundOver,
    Negotiated,
    NotOffered,
    Over,
    Terminal,
    Unclear,
)
from counterfoil.adapters.strict_json import loads, resolve

from .kit_peer import Peer, running
from .kit_peer import talk as talk_with

ADAPTER = registry.adapter("mcp-sync")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with running(Path(__file__).with_name("sync_server.py")) as endpoint:
        yield endpoint


def talk(endpoint: Endpoint, conversation: Callable[[Peer], Awaitable[None]]) -> None:
    talk_with(ADAPTER, endpoint, conversation)


async def session_of(peer: Peer, tool: str = "add") -> bytes:
    agreed = await peer.run(ADAPTER.negotiate(peer.endpoint, tool))
    assert isinstance(agreed, Negotiated)
    assert agreed.session is not None
    return agreed.session


def value_of(over: object) -> object:
    assert isinstance(over, Over)
    assert over.terminal is Terminal.COMPLETED
    assert over.payload is not None
    return resolve(loads(over.payload.body), over.payload.pointer)


def test_a_tool_is_negotiated_and_called_and_its_session_serves_another_worker(endpoint: Endpoint) -> None:
    sessions: list[bytes] = []

    async def first(peer: Peer) -> None:
        sessions.append(await session_of(peer))
        assert peer.intents == 0
        assert value_of(await peer.submit("add", b'{"a":1,"b":2}', sessions[0])) == {"sum": 3}
        assert peer.intents == 1

    async def second(peer: Peer) -> None:
        assert value_of(await peer.submit("add", b'{"a":20,"b":22}', sessions[0])) == {"sum": 42}

    talk(endpoint, first)
    talk(endpoint, second)


def test_a_call_that_takes_a_while_answers_on_its_stream(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        session = await session_of(peer, "slow")
        assert value_of(await peer.submit("slow", b'{"seconds":0.3}', session)) == {"result": "done"}

    talk(endpoint, conversation)


def test_a_tool_that_raises_is_completed_with_the_tools_error(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        over = await peer.submit("boom", session=await session_of(peer, "boom"))
        assert isinstance(over, Over)
        assert over.tool_error

    talk(endpoint, conversation)


def test_an_unknown_tool_is_not_offered_and_no_session_is_left(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        missing = await peer.run(ADAPTER.negotiate(endpoint, "addd"))
        assert isinstance(missing, NotOffered)
        assert missing.code == "E_TOOL_UNKNOWN"
        assert "Near names: add." in missing.why
        over = await peer.submit("addd", session=await session_of(peer))
        assert isinstance(over, Over)
        assert over.tool_error  # this SDK says it as a tool's own error

    talk(endpoint, conversation)


def test_a_call_over_its_bound_is_unclear(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        session = await session_of(peer, "slow")
        call = Call("slow", b'{"seconds":30}', "key", 0.3, session=session)
        assert await peer.run(ADAPTER.submit(endpoint, call)) == Unclear("E_NO_ANSWER", "the deadline passed")

    talk(endpoint, conversation)


def test_a_call_in_a_session_that_was_ended_is_unclear(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        session = await session_of(peer)
        await peer.run(ADAPTER.end_session(endpoint, session))
        assert isinstance(await peer.submit("add", b'{"a":1,"b":2}', session), Unclear)

    talk(endpoint, conversation)


def test_a_server_without_tasks_is_told_apart_and_the_way_out_is_named(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        refusal = await peer.run(registry.adapter("mcp-2025-11-25").negotiate(endpoint, "add"))
        assert isinstance(refusal, NotOffered)
        assert "`protocol: mcp-sync`" in refusal.why

    talk(endpoint, conversation)


def test_a_lost_call_that_is_over_is_found_with_its_result(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        search = Search("add", "over", 1, "counterfoil_lookup", await session_of(peer))
        found = await peer.run(ADAPTER.lookup(endpoint, search))
        assert isinstance(found, FoundOver)
        assert value_of(found.over) == {"sum": 3}
        assert await peer.run(ADAPTER.lookup(endpoint, replace(search, submission_key="x"))) == Absent(True)
        missing = await peer.run(ADAPTER.lookup(endpoint, replace(search, lookup_tool="no_such_tool")))
        assert missing == Unclear("E_LOOKUP_FAILED", "Unknown tool: no_such_tool")
        assert peer.intents == 0

    talk(endpoint, conversation)
