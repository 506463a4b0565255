"""MCP without tasks: a call's answer is its end."""

import pytest

from counterfoil.adapters.contract import (
    Answered,
    InputReply,
    NoAnswer,
    RemoteTask,
    Reply,
    Sent,
)
from counterfoil.adapters.jsonrpc import JsonRpc
from counterfoil.adapters.mcp_sync import McpSync
from counterfoil.adapters.outcomes import (
    NoSuchVerb,
    NotProcessed,
    NotSent,
    Over,
    Refused,
    Rejected,
    SubmitOutcome,
    Terminal,
    Unclear,
)

from .kit_mcp import CALL, ENDPOINT, SSE, failed, key_reused, ok, play, said
from .kit_mcp_2025 import CREATED, TASK_2025

SYNC = McpSync(JsonRpc())
TASK = RemoteTask("t-1")


def submit(reply: Reply) -> SubmitOutcome:
    return SYNC.read_submit(ENDPOINT, CALL, reply)


@pytest.mark.parametrize(
    ("reply", "pointer", "tool_error"),
    [
        (ok(content=[], structuredContent={"rows": 3}), "/result/structuredContent", False),
        (ok(content=[{"type": "text", "text": "x"}]), "/result", False),
        (ok(content=[], isError=True), "/result", True),
        (Answered(200, SSE, b": ping\n\ndata: " + said(result={"content": []}) + b"\n\n"), "/result", False),
        (NoAnswer(Sent.MAYBE, "cut", b"data: " + said(result={"content": []}) + b"\n\n"), "/result", False),
    ],
)
def test_a_result_is_the_end_of_the_call(reply: Reply, pointer: str, tool_error: bool) -> None:
    outcome = submit(reply)
    assert isinstance(outcome, Over)
    assert (outcome.terminal, outcome.status, outcome.tool_error) == (Terminal.COMPLETED, "completed", tool_error)
    assert outcome.payload is not None
    assert outcome.payload.pointer == pointer


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (failed(-32601), Rejected("-32601", "no")),
        (failed(-32600), Rejected("-32600", "no")),
        (Answered(401, {}, b""), NotProcessed("HTTP 401", auth=True)),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
    ],
)
def test_what_certainly_did_not_run_is_said_so(reply: Reply, expected: SubmitOutcome) -> None:
    assert submit(reply) == expected


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (NoAnswer(Sent.MAYBE, "reset"), "E_NO_ANSWER"),
        (NoAnswer(Sent.MAYBE, "the deadline passed"), "E_NO_ANSWER"),
        (NoAnswer(Sent.MAYBE, "cut", said(result={"content": []})[:-3]), "E_NO_ANSWER"),
        (failed(-32602), "-32602"),
        (key_reused(-32602), "E_KEY_REUSED_DIFFERENT_REQUEST"),
        (failed(-32603), "-32603"),
        (failed(-32600, 404), "-32600"),
        (Answered(404, {}, b"Session not found"), "HTTP 404"),
        (Answered(504, {}, b""), "HTTP 504"),
        (Answered(202, {}, b""), "E_UNREADABLE_ANSWER"),
        (ok(), "E_UNREADABLE_ANSWER"),
        (ok(**CREATED), "E_PROTOCOL_MIX"),
        (ok(**TASK_2025), "E_PROTOCOL_MIX"),
        (ok(resultType="task", taskId="t-1"), "E_PROTOCOL_MIX"),
        (ok(resultType="input_required"), "E_PROTOCOL_MIX"),
    ],
)
def test_everything_else_leaves_the_call_unclear(reply: Reply, code: str) -> None:
    outcome = submit(reply)
    assert isinstance(outcome, Unclear)
    assert outcome.code == code


def test_there_is_no_task_to_read_or_to_cancel_and_nothing_is_sent() -> None:
    refused = Refused("E_NO_TASKS", "a call of this protocol makes no task: its answer is its end")
    assert play(SYNC.poll(ENDPOINT, TASK), []) == (refused, [])
    assert play(SYNC.fetch(ENDPOINT, TASK), []) == (refused, [])
    assert play(SYNC.cancel(ENDPOINT, TASK), []) == (NoSuchVerb(refused.why), [])
    assert SYNC.read_cancel(ENDPOINT, TASK, Answered(200)) == NoSuchVerb(refused.why)
    assert play(SYNC.reply(ENDPOINT, TASK, InputReply("k", "elicitation/create", b"{}")), []) == (
        NoSuchVerb(refused.why),
        [],
    )
    assert SYNC.read_reply(ENDPOINT, TASK, Answered(202)) == NoSuchVerb(refused.why)
    assert SYNC.read_input(ENDPOINT, TASK, b"{}") == refused
    assert SYNC.profile.sync
    assert not SYNC.profile.can_cancel
