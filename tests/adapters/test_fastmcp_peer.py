"""The adapter and the wire against a server that is not ours (fastmcp with tasks), over real sockets."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from counterfoil.adapters import registry
from counterfoil.adapters.contract import (
    Call,
    Endpoint,
    InputReply,
    RemoteTask,
    Request,
    Search,
)
from counterfoil.adapters.fields import member
from counterfoil.adapters.outcomes import (
    Absent,
    Acknowledged,
    FoundOver,
    FoundRunning,
    InputKey,
    NeedsInput,
    Negotiated,
    NotFound,
    NotOffered,
    Over,
    Rejected,
    StillWorking,
    Terminal,
    Unclear,
)
from counterfoil.adapters.strict_json import loads, resolve

from .kit_peer import Peer, running
from .kit_peer import talk as talk_with

ADAPTER = registry.adapter("mcp-2026-07-28")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with running(Path(__file__).with_name("fastmcp_server.py")) as endpoint:
        yield endpoint


def talk(endpoint: Endpoint, conversation: Callable[[Peer], Awaitable[None]]) -> None:
    talk_with(ADAPTER, endpoint, conversation)


def test_a_tool_is_negotiated_and_an_unknown_one_is_not_offered(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        offered = await peer.run(ADAPTER.negotiate(endpoint, "wait"))
        assert isinstance(offered, Negotiated)
        descriptor = loads(offered.descriptor)
        assert isinstance(descriptor, dict)
        assert descriptor["name"] == "wait"
        assert offered.input_schema
        assert offered.output_schema
        missing = await peer.run(ADAPTER.negotiate(endpoint, "waitt"))
        assert isinstance(missing, NotOffered)
        assert missing.code == "E_TOOL_UNKNOWN"
        assert "wait" in missing.why
        assert peer.intents == 0

    talk(endpoint, conversation)


def test_a_task_is_submitted_polled_to_completed_and_its_result_is_where_the_pointer_says(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        task = await peer.task("wait", b'{"seconds":0.2}')
        assert peer.intents == 1
        over = await peer.poll_past(task, "working")
        assert isinstance(over, Over)
        assert (over.terminal, over.tool_error) == (Terminal.COMPLETED, False)
        assert over.payload is not None
        assert over.payload.pointer == "/result/result/structuredContent"
        assert resolve(loads(over.payload.body), over.payload.pointer) == {"rows": 3}

    talk(endpoint, conversation)


def test_a_tool_that_raises_is_completed_with_the_tools_error(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        over = await peer.poll_past(await peer.task("boom"), "working")
        assert isinstance(over, Over)
        assert (over.terminal, over.tool_error) == (Terminal.COMPLETED, True)

    talk(endpoint, conversation)


def test_a_cancel_is_acknowledged_and_the_end_is_read(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        task = await peer.task("wait", b'{"seconds":60}')
        assert isinstance(await peer.run(ADAPTER.poll(endpoint, task)), StillWorking)
        assert await peer.run(ADAPTER.cancel(endpoint, task)) == Acknowledged(None)
        assert peer.intents == 2
        over = await peer.poll_past(task, "working")
        assert isinstance(over, Over)
        assert over.terminal is Terminal.CANCELLED

    talk(endpoint, conversation)


def test_a_question_is_read_with_its_key_and_parameters(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        asked = await peer.poll_past(await peer.task("ask"), "working")
        assert isinstance(asked, NeedsInput)
        [question] = asked.keys
        assert question.method == "elicitation/create"
        params = loads(question.params)
        assert isinstance(params, dict)
        assert params["message"] == "Approve?"

    talk(endpoint, conversation)


def answer(question: InputKey, name: str) -> InputReply:
    content = b'{"action":"accept","content":{"name":"%s"}}' % name.encode()
    return InputReply(question.key, question.method, content, question.reply_to)


def test_two_open_questions_are_answered_one_by_one_from_another_worker(endpoint: Endpoint) -> None:
    made: list[RemoteTask] = []
    bodies: list[bytes] = []

    async def asking(peer: Peer) -> None:
        made.append(await peer.task("ask_both"))
        asked = await peer.poll_past(made[0], "working")
        assert isinstance(asked, NeedsInput)
        assert len(asked.keys) == 2
        bodies.append(asked.body)

    async def answering(peer: Peer) -> None:
        kept = ADAPTER.read_input(endpoint, made[0], bodies[0])
        assert isinstance(kept, NeedsInput)
        first, second = kept.keys
        assert await peer.run(ADAPTER.reply(endpoint, made[0], answer(first, "x"))) == Acknowledged(None)
        left = await peer.run(ADAPTER.poll(endpoint, made[0]))
        assert isinstance(left, NeedsInput)
        assert left.keys == (second,)
        assert await peer.run(ADAPTER.reply(endpoint, made[0], answer(second, "y"))) == Acknowledged(None)
        over = await peer.poll_past(made[0], "working", "input_required")
        assert isinstance(over, Over)
        assert over.payload is not None
        told = resolve(loads(over.payload.body), f"{over.payload.pointer}/result")
        assert isinstance(told, dict)
        assert sorted(str(member(said, "content", "name")) for said in told.values()) == ["x", "y"]
        # replayed, late, to nobody: acknowledged without an effect, or not found
        assert await peer.run(ADAPTER.reply(endpoint, made[0], answer(first, "z"))) == Acknowledged(None)
        assert isinstance(await peer.run(ADAPTER.reply(endpoint, RemoteTask("nobody"), answer(first, "z"))), NotFound)
        assert peer.intents == 4

    talk(endpoint, asking)
    talk(endpoint, answering)


def test_a_question_before_a_task_is_answered_by_the_next_leg(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        call = Call("ask_first", b"{}", "6f0f3c3e-8a9c-8c1d-9a44-0c3f5d6b7a81", 20.0)
        asked = await peer.run(ADAPTER.submit(endpoint, call))
        assert isinstance(asked, NeedsInput)
        [question] = asked.keys
        leg = replace(call, replies=(answer(question, "Ada"),), state=asked.state)
        over = await peer.run(ADAPTER.submit(endpoint, leg))
        assert isinstance(over, Over)
        assert over.payload is not None
        assert resolve(loads(over.payload.body), "/result/structuredContent/result") == {"state": "leg-1", "who": "Ada"}
        tampered = await peer.run(ADAPTER.submit(endpoint, replace(leg, state="v1.nonsense")))
        assert isinstance(tampered, Unclear)
        assert tampered.code == "-32602"

    talk(endpoint, conversation)


def test_a_lookup_tool_is_asked_without_an_intent(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        async def lookup(key: str, attempt: int = 1, tool: str = "counterfoil_lookup") -> object:
            return await peer.run(ADAPTER.lookup(endpoint, Search("wait", key, attempt, tool)))

        over = await lookup("over")
        assert isinstance(over, FoundOver)
        assert over.over.payload is not None
        assert resolve(loads(over.over.payload.body), over.over.payload.pointer) == {"rows": 3}
        assert await lookup("runs") == FoundRunning()
        assert await lookup("nobody's") == Absent(True)
        assert await lookup("nobody's", attempt=2) == Absent(False)
        # this server says "unknown tool" as a tool's error; it is no absence, whatever it is
        missing = await lookup("over", tool="no_such_tool")
        assert isinstance(missing, Unclear)
        assert missing.code == "E_LOOKUP_FAILED"
        assert peer.intents == 0

    talk(endpoint, conversation)


def test_a_tool_that_makes_no_task_is_over_at_once(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        over = await peer.submit("plain")
        assert isinstance(over, Over)
        assert over.payload is not None
        assert resolve(loads(over.payload.body), over.payload.pointer) == {"result": "plain"}

    talk(endpoint, conversation)


def test_an_unknown_task_is_not_found_by_poll_and_by_cancel(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        nobody = RemoteTask("no-such-task")
        assert isinstance(await peer.run(ADAPTER.poll(endpoint, nobody)), NotFound)
        assert isinstance(await peer.run(ADAPTER.cancel(endpoint, nobody)), NotFound)

    talk(endpoint, conversation)


def test_headers_that_do_not_match_the_body_are_a_definite_rejection(endpoint: Endpoint) -> None:
    async def conversation(peer: Peer) -> None:
        call = Call("wait", b"{}", "key", 20.0)
        exchange = ADAPTER.submit(endpoint, call)
        request = next(exchange)
        headers = tuple((name, "boom" if name == "Mcp-Name" else value) for name, value in request.headers)
        reply = await peer._send(Request("POST", request.url, headers, request.body, request.effect))
        with pytest.raises(StopIteration) as stopped:
            exchange.send(reply)
        assert isinstance(stopped.value.value, Rejected)
        assert stopped.value.value.code == "-32020"

    talk(endpoint, conversation)
