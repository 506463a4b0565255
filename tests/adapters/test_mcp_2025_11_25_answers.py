"""What each answer of an MCP 2025-11-25 server means, row by row."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from counterfoil.adapters.contract import (
    Answered,
    NoAnswer,
    Reply,
    Sent,
)
from counterfoil.adapters.outcomes import (
    Acknowledged,
    Busy,
    CancelOutcome,
    NeedsInput,
    NoAccess,
    NoSuchVerb,
    NotFound,
    NotProcessed,
    NotSent,
    Observation,
    Over,
    Refused,
    Rejected,
    SessionGone,
    StillWorking,
    SubmitOutcome,
    Terminal,
    Unclear,
)
from counterfoil.adapters.strict_json import loads, resolve

from .kit_mcp import SSE, failed, key_reused, ok, said
from .kit_mcp_2025 import CREATED, RELATED, STARTED, STATELESS, TASK_2025, cancel, fetch, poll, submit

# what transports say of a session that they don't know; the id is null or the server's own
NO_SESSION = b'{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"no"}}'

# -- submit ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (ok(**CREATED), STARTED),
        (ok(task=TASK_2025 | {"status": "failed"}), replace(STARTED, status="failed", over=True)),
        (ok(**CREATED, _meta={"io.modelcontextprotocol/model-immediate-response": "soon"}), STARTED),
        (Answered(200, SSE, b"data: " + said(result=CREATED) + b"\n\n"), STARTED),
        (NoAnswer(Sent.MAYBE, "cut", b": ping\n\ndata: " + said(result=CREATED) + b"\n\n"), STARTED),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
        (failed(-32600), Rejected("-32600", "no")),
        (failed(-32601), Rejected("-32601", "no")),
        (failed(-32601, 400), Rejected("-32601", "no")),
        (Answered(401, {}, b""), NotProcessed("HTTP 401", auth=True)),
        (failed(-32600, 401), NotProcessed("HTTP 401", auth=True)),
        (Answered(403, {"www-authenticate": "Bearer"}, b""), NotProcessed("HTTP 403", auth=True)),
        (Answered(503, {"retry-after": "7"}, b"busy"), NotProcessed("HTTP 503", 7.0)),
    ],
)
def test_a_clear_answer_to_a_submit_is_taken_at_its_word(reply: Reply, expected: SubmitOutcome) -> None:
    assert submit(reply) == expected


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (NoAnswer(Sent.MAYBE, "reset"), "E_NO_ANSWER"),
        (NoAnswer(Sent.MAYBE, "cut", said(result=CREATED)[:-9]), "E_NO_ANSWER"),
        (NoAnswer(Sent.MAYBE, "larger", b"x" * 2000), "E_RESULT_TOO_LARGE"),
        (failed(-32602), "-32602"),
        (failed(-32603), "-32603"),
        (failed(-32001), "-32001"),
        (key_reused(-32602), "E_KEY_REUSED_DIFFERENT_REQUEST"),
        (key_reused(-32600), "E_KEY_REUSED_DIFFERENT_REQUEST"),
        (failed(-32000), "-32000"),
        # the session, not the request
        (Answered(404, {}, b'{"error":"Session not found"}'), "HTTP 404"),
        (Answered(404, {}, NO_SESSION % -32600), "-32600"),
        (Answered(404, {}, NO_SESSION % -32001), "-32001"),
        (Answered(400, {}, NO_SESSION % -32000), "-32000"),
        (Answered(400, {}, NO_SESSION % -32600), "-32600"),
        (failed(-32600, 404), "-32600"),
        (failed(-32601, 404), "-32601"),
        (failed(-32600, 500), "HTTP 500"),
        (Answered(429, {}, b""), "HTTP 429"),
        (Answered(408, {}, b""), "HTTP 408"),
        (Answered(403, {}, b""), "HTTP 403"),
        (Answered(302, {"location": "/x"}, b""), "HTTP 302"),
        (Answered(202, {}, b""), "E_UNREADABLE_ANSWER"),
        (Answered(200, {}, said(result=CREATED)[:-1]), "E_UNREADABLE_ANSWER"),
        (Answered(200, {}, said(result=CREATED).replace(b"r-1", b"r-2")), "E_UNREADABLE_ANSWER"),
        (Answered(503, {}, said(result=CREATED)), "HTTP 503"),
        (
            Answered(200, SSE, b'data: {"jsonrpc":"2.0","id":"r-1","method":"elicitation/create","params":{}}\n\n'),
            "E_UNREADABLE_ANSWER",
        ),
        (ok(task=TASK_2025 | {"taskId": ""}), "E_UNREADABLE_ANSWER"),
        (ok(task=TASK_2025 | {"taskId": "t\x00"}), "E_UNREADABLE_ANSWER"),
        (ok(task=TASK_2025 | {"taskId": 7}), "E_UNREADABLE_ANSWER"),
        (ok(task={}), "E_UNREADABLE_ANSWER"),
        (ok(task="t-1"), "E_PROTOCOL_MIX"),
        (ok(**TASK_2025), "E_PROTOCOL_MIX"),
        (ok(resultType="task", taskId="t-1", status="working", ttlMs=1), "E_PROTOCOL_MIX"),
        (ok(resultType="input_required", inputRequests={}), "E_PROTOCOL_MIX"),
        (ok(), "E_UNREADABLE_ANSWER"),
        (ok(_meta={}), "E_UNREADABLE_ANSWER"),
        (Answered(200, {}, said(result=[])), "E_UNREADABLE_ANSWER"),
    ],
)
def test_everything_else_leaves_a_submit_unclear(reply: Reply, code: str) -> None:
    outcome = submit(reply)
    assert isinstance(outcome, Unclear)
    assert outcome.code == code


@pytest.mark.parametrize(
    ("result", "pointer", "tool_error"),
    [
        ({"content": [], "structuredContent": {"rows": 3}}, "/result/structuredContent", False),
        ({"content": [{"type": "text", "text": "x"}]}, "/result", False),
        ({"content": [{"type": "text", "text": "MCP error -32601: ..."}], "isError": True}, "/result", True),
        ({"resultType": "complete", "content": []}, "/result", False),
    ],
)
def test_a_server_that_ignored_the_task_has_given_the_result(
    result: Mapping[str, object], pointer: str, tool_error: bool
) -> None:
    outcome = submit(ok(**result))
    assert isinstance(outcome, Over)
    assert (outcome.terminal, outcome.status, outcome.tool_error) == (Terminal.COMPLETED, "completed", tool_error)
    assert outcome.payload is not None
    assert outcome.payload.pointer == pointer


# -- poll --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            ok(**TASK_2025 | {"statusMessage": "a\x00"}),
            StillWorking("working", "2026-11-29T10:00:00Z", 3600000, 2000, "a\N{REPLACEMENT CHARACTER}"),
        ),
        (ok(taskId="t-1", status="working"), StillWorking("working", None, None, None)),
        (ok(taskId="t-1", status="working", ttl=None), StillWorking("working", None, None, None)),
        (ok(taskId="t-1", status="working", ttl=1e30, pollInterval=-1), StillWorking("working", None, 2**53 - 1, None)),
        (
            ok(**TASK_2025 | {"status": "input_required"}),
            NeedsInput("input_required", (), "2026-11-29T10:00:00Z", 3600000, 2000),
        ),
        (
            ok(**TASK_2025 | {"status": "completed"}),
            Over(Terminal.COMPLETED, "completed", None, created_at="2026-11-29T10:00:00Z"),
        ),
        (
            ok(taskId="t-1", status="failed", statusMessage="boom"),
            Over(Terminal.FAILED, "failed", None, message="boom"),
        ),
        (ok(taskId="t-1", status="cancelled"), Over(Terminal.CANCELLED, "cancelled", None)),
        (failed(-32602), NotFound("no")),
        (failed(-32602, 400), NotFound("no")),
        (failed(-32603), Busy("-32603")),
        (failed(-32600), Busy("-32600")),
        (failed(-32602, 500), Busy("HTTP 500")),
        (failed(-32601), Refused("E_CAPABILITY_UNSUPPORTED", "error -32601: no")),
        (Answered(429, {"retry-after": "30"}, b""), Busy("HTTP 429", 30.0, closes_target=True)),
        (Answered(401, {}, b""), NoAccess("HTTP 401: the server wants another credential")),
        (Answered(400, {}, b"nope"), Busy("HTTP 400")),
        (Answered(200, {}, b"<html>"), Busy("E_UNREADABLE_ANSWER")),
        (Answered(202, {}, b""), Busy("E_UNREADABLE_ANSWER")),
        (Answered(300, {}, said(result=TASK_2025)), Busy("HTTP 300")),
        (NoAnswer(Sent.MAYBE, "reset"), Busy("E_NO_ANSWER")),
        (NoAnswer(Sent.NO, "refused"), Busy("E_NO_CONNECTION")),
        (NoAnswer(Sent.MAYBE, "too large", b"x" * 2000), Refused("E_RESULT_TOO_LARGE", "too large")),
    ],
)
def test_a_poll_says_what_the_server_said(reply: Reply, expected: Observation) -> None:
    assert poll(reply) == expected


SESSION_GONE = [
    (Answered(404, {}, b'{"error":"Session not found"}'), "HTTP 404"),
    (Answered(404, {}, b""), "HTTP 404"),
    (Answered(404, {}, NO_SESSION % -32001), "HTTP 404"),
    (failed(-32602, 404), "HTTP 404"),
    (Answered(400, {}, NO_SESSION % -32000), "HTTP 400, error -32000: no"),
    (Answered(400, {}, NO_SESSION % -32001), "HTTP 400, error -32001: no"),
    (failed(-32600, 400), "HTTP 400, error -32600: no"),
]


@pytest.mark.parametrize(("reply", "why"), SESSION_GONE)
def test_a_session_that_is_gone_is_not_a_task_that_is_gone(reply: Reply, why: str) -> None:
    assert poll(reply) == SessionGone(why)
    assert fetch(reply, "completed") == SessionGone(why)
    assert fetch(reply, "failed") == SessionGone(why)


def test_a_404_where_no_session_was_named_is_the_addresss() -> None:
    assert poll(Answered(404, {}, b"nope"), STATELESS) == Busy("HTTP 404")
    assert poll(failed(-32602, 404), STATELESS) == NotFound("no")
    assert poll(Answered(400, {}, NO_SESSION % -32000), STATELESS) == SessionGone("HTTP 400, error -32000: no")


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ({"taskId": "t-999", "status": "completed"}, "E_TASK_ID_MISMATCH"),
        ({"status": "completed"}, "E_TASK_ID_MISMATCH"),
        ({"taskId": ["t-1"], "status": "working"}, "E_TASK_ID_MISMATCH"),
        ({"task": {"taskId": "t-1", "status": "working"}}, "E_TASK_ID_MISMATCH"),
        ({"taskId": "t-1", "status": "completed", "ttlMs": 1000}, "E_PROTOCOL_MIX"),
        ({"taskId": "t-1", "status": "working", "pollIntervalMs": 1000}, "E_PROTOCOL_MIX"),
        ({"resultType": "complete", "taskId": "t-1", "status": "working"}, "E_PROTOCOL_MIX"),
        ({"taskId": "t-1", "status": "paused"}, "E_STATUS_UNKNOWN"),
        ({"taskId": "t-1", "status": "Completed"}, "E_STATUS_UNKNOWN"),
        ({"taskId": "t-1", "status": "x\x00" * 99}, "E_STATUS_UNKNOWN"),
        ({"taskId": "t-1", "status": ["working"]}, "E_STATUS_UNKNOWN"),
        ({"taskId": "t-1"}, "E_STATUS_UNKNOWN"),
    ],
)
def test_an_answer_about_something_else_is_refused(result: Mapping[str, object], code: str) -> None:
    outcome = poll(ok(**result))
    assert isinstance(outcome, Refused)
    assert outcome.code == code


# -- fetch -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", ["completed", "failed", "cancelled"])
@pytest.mark.parametrize(
    ("result", "pointer", "value", "tool_error"),
    [
        ({"content": [], "structuredContent": {"rows": 3}}, "/result/structuredContent", {"rows": 3}, False),
        ({"content": []}, "/result", {"content": [], "_meta": RELATED}, False),
        ({"content": [], "isError": True}, "/result", {"content": [], "isError": True, "_meta": RELATED}, True),
    ],
)
def test_a_result_is_where_the_pointer_says_and_the_status_word_stays(
    terminal: str, result: Mapping[str, object], pointer: str, value: object, tool_error: bool
) -> None:
    outcome = fetch(ok(**result, _meta=RELATED), terminal)
    assert isinstance(outcome, Over)
    assert (outcome.terminal, outcome.status, outcome.tool_error) == (Terminal(terminal), terminal, tool_error)
    assert outcome.payload is not None
    assert outcome.payload.pointer == pointer
    assert resolve(loads(outcome.payload.body), pointer) == value


def test_the_result_is_found_after_questions_on_its_stream() -> None:
    question = b'data: {"jsonrpc":"2.0","id":"r-1","method":"elicitation/create","params":{}}\n\n'
    message = said(result={"content": [], "_meta": RELATED})
    outcome = fetch(Answered(200, SSE, question + b"data: " + message + b"\n\n"), "completed")
    assert isinstance(outcome, Over)
    assert outcome.payload is not None
    assert outcome.payload.body == message


def test_a_result_without_a_related_task_is_taken() -> None:
    outcome = fetch(ok(content=[]), None)
    assert isinstance(outcome, Over)
    assert outcome.terminal is Terminal.COMPLETED


@pytest.mark.parametrize("terminal", ["completed", "failed", "cancelled"])
@pytest.mark.parametrize("result", [{"_meta": RELATED}, {}, {"isError": False}, {"structuredContent": None}])
def test_a_result_that_holds_nothing_has_no_payload(terminal: str, result: Mapping[str, object]) -> None:
    assert fetch(ok(**result), terminal) == Over(Terminal(terminal), terminal, None)


@pytest.mark.parametrize("related", [{"taskId": "t-9"}, {"taskId": ["t-1"]}, {}, "t-1", 7])
def test_the_result_of_another_task_is_refused(related: object) -> None:
    outcome = fetch(ok(content=[], _meta={"io.modelcontextprotocol/related-task": related}), "completed")
    assert outcome == Refused("E_TASK_ID_MISMATCH", "the result of another task")


@pytest.mark.parametrize("code", [-32603, -32600, -32601, -32000, -1, 500])
def test_the_error_of_a_failed_task_is_its_result(code: int) -> None:
    outcome = fetch(failed(code), "failed")
    assert isinstance(outcome, Over)
    assert (outcome.terminal, outcome.status, outcome.message) == (Terminal.FAILED, "failed", "no")
    assert outcome.payload is not None
    assert resolve(loads(outcome.payload.body), outcome.payload.pointer) == {"code": code, "message": "no"}


@pytest.mark.parametrize("terminal", ["completed", "failed", "cancelled", None])
@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (failed(-32602), NotFound("no")),
        (failed(-32603, 503), Busy("HTTP 503")),
        (Answered(429, {"retry-after": "3"}, b""), Busy("HTTP 429", 3.0, closes_target=True)),
        (Answered(401, {}, b""), NoAccess("HTTP 401: the server wants another credential")),
        (NoAnswer(Sent.MAYBE, "the deadline passed"), Busy("E_NO_ANSWER")),
        (NoAnswer(Sent.MAYBE, "cut", said(result={"content": []})[:-3]), Busy("E_NO_ANSWER")),
        (NoAnswer(Sent.MAYBE, "too large", b"x" * 2000), Refused("E_RESULT_TOO_LARGE", "too large")),
        (
            ok(resultType="task", taskId="t-1"),
            Refused("E_PROTOCOL_MIX", "a result in the shape of MCP 2026-07-28"),
        ),
    ],
)
def test_a_fetch_that_brings_no_result_says_why(reply: Reply, expected: Observation, terminal: str | None) -> None:
    assert fetch(reply, terminal) == expected


@pytest.mark.parametrize("terminal", ["completed", None])
def test_an_error_for_a_task_that_did_not_fail_is_trouble_of_the_read(terminal: str | None) -> None:
    assert fetch(failed(-32603), terminal) == Busy("-32603")
    assert fetch(failed(-32601), terminal) == Refused("E_CAPABILITY_UNSUPPORTED", "error -32601: no")


def test_a_cancelled_task_has_no_result_stored() -> None:
    assert fetch(failed(-32603), "cancelled") == Over(Terminal.CANCELLED, "cancelled", None, message="no")


# -- cancel ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (ok(**TASK_2025 | {"status": "cancelled"}), Acknowledged("cancelled")),
        (ok(taskId="t-1", status="cancelled"), Acknowledged("cancelled")),
        (ok(**TASK_2025), Acknowledged("working")),
        (ok(taskId="t-1", status="completed"), Acknowledged("completed")),
        (ok(taskId="t-1"), Acknowledged(None)),
        (failed(-32602), NotFound("no")),
        (failed(-32602, 400), NotFound("no")),
        (failed(-32601), NoSuchVerb("no")),
        (Answered(501, {}, b""), NoSuchVerb("HTTP 501")),
        (Answered(401, {}, b""), NotProcessed("HTTP 401", auth=True)),
        (Answered(503, {}, b""), NotProcessed("HTTP 503")),
        (failed(-32603), Unclear("-32603", "no")),
        (Answered(500, {}, b""), Unclear("HTTP 500", "HTTP 500: an empty body")),
        (NoAnswer(Sent.MAYBE, "reset"), Unclear("E_NO_ANSWER", "reset")),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
    ],
)
def test_a_cancel_answer_is_the_task_as_it_stands(reply: Reply, expected: CancelOutcome) -> None:
    assert cancel(reply) == expected


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (ok(), "E_TASK_ID_MISMATCH"),
        (ok(status="cancelled"), "E_TASK_ID_MISMATCH"),
        (ok(taskId="t-9", status="cancelled"), "E_TASK_ID_MISMATCH"),
        (ok(task=TASK_2025 | {"status": "cancelled"}), "E_TASK_ID_MISMATCH"),
        (ok(resultType="complete"), "E_PROTOCOL_MIX"),
        (ok(taskId="t-1", status="cancelled", ttlMs=1), "E_PROTOCOL_MIX"),
        (Answered(404, {}, b"nope"), "HTTP 404"),
        (failed(-32601, 404), "-32601"),
        (failed(-32602, 404), "-32602"),
        (Answered(400, {}, NO_SESSION % -32000), "-32000"),
    ],
)
def test_an_answer_that_names_no_task_of_ours_is_no_evidence_of_a_cancel(reply: Reply, code: str) -> None:
    outcome = cancel(reply)
    assert isinstance(outcome, Unclear)
    assert outcome.code == code
