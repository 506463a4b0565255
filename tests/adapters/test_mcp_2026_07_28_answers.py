"""What each answer means, row by row."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from counterfoil.adapters import mcp_2026_07_28_answers as answers
from counterfoil.adapters.contract import (
    Answered,
    Endpoint,
    NoAnswer,
    Reply,
    Sent,
)
from counterfoil.adapters.mcp_2026_07_28 import PROFILE
from counterfoil.adapters.outcomes import (
    Acknowledged,
    Busy,
    CancelOutcome,
    InputKey,
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
    StillWorking,
    SubmitOutcome,
    Terminal,
    Unclear,
)
from counterfoil.adapters.strict_json import loads, resolve

from .kit_mcp import CALL, ENDPOINT, SSE, STARTED, TASK_RESULT, cancel, failed, key_reused, ok, poll, said, submit

# -- submit ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (ok(**TASK_RESULT), STARTED),
        (ok(**TASK_RESULT | {"status": "completed"}), replace(STARTED, status="completed", over=True)),
        (Answered(200, SSE, b"data: " + said(result=TASK_RESULT) + b"\n\n"), STARTED),
        (NoAnswer(Sent.MAYBE, "cut", b": ping\n\ndata: " + said(result=TASK_RESULT) + b"\n\n"), STARTED),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
        (failed(-32600), Rejected("-32600", "no")),
        (failed(-32601, 404), Rejected("-32601", "no")),
        (failed(-32020, 400), Rejected("-32020", "no")),
        (failed(-32021), Rejected("-32021", "no")),
        (failed(-32022, 400), Rejected("-32022", "no")),
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
        (NoAnswer(Sent.MAYBE, "cut", said(result=TASK_RESULT)[:-9]), "E_NO_ANSWER"),
        (NoAnswer(Sent.MAYBE, "larger", b"x" * 2000), "E_RESULT_TOO_LARGE"),
        (failed(-32602), "-32602"),
        (failed(-32602, 400), "-32602"),
        (failed(-32603), "-32603"),
        (failed(-32003, 400), "-32003"),
        (failed(-32001), "-32001"),
        (key_reused(-32602), "E_KEY_REUSED_DIFFERENT_REQUEST"),
        (key_reused(-32600), "E_KEY_REUSED_DIFFERENT_REQUEST"),
        (failed(-32600, 500), "HTTP 500"),
        (Answered(429, {}, b""), "HTTP 429"),
        (Answered(408, {}, b""), "HTTP 408"),
        (Answered(404, {}, b"nope"), "HTTP 404"),
        (Answered(403, {}, b""), "HTTP 403"),
        (Answered(500, {}, b""), "HTTP 500"),
        (Answered(302, {"location": "/x"}, b""), "HTTP 302"),
        (Answered(202, {}, b""), "E_UNREADABLE_ANSWER"),
        (Answered(200, {}, said(result=TASK_RESULT)[:-1]), "E_UNREADABLE_ANSWER"),
        (Answered(200, {}, said(result=TASK_RESULT).replace(b"r-1", b"r-2")), "E_UNREADABLE_ANSWER"),
        (Answered(503, {}, said(result=TASK_RESULT)), "HTTP 503"),
        (Answered(401, {}, said(result=TASK_RESULT)), "HTTP 401"),
        (ok(**TASK_RESULT | {"taskId": ""}), "E_UNREADABLE_ANSWER"),
        (ok(**TASK_RESULT | {"taskId": "t\x00"}), "E_UNREADABLE_ANSWER"),
        (ok(**TASK_RESULT | {"taskId": "t" * 513}), "E_UNREADABLE_ANSWER"),
        (ok(**TASK_RESULT | {"taskId": 7}), "E_UNREADABLE_ANSWER"),
        (ok(**TASK_RESULT | {"resultType": "later"}), "E_RESULT_TYPE_UNKNOWN"),
        (ok(**TASK_RESULT | {"resultType": "complete"}), "E_PROTOCOL_MIX"),
        (ok(task={"taskId": "t-1", "status": "working", "ttl": 1}), "E_PROTOCOL_MIX"),
        (ok(), "E_UNREADABLE_ANSWER"),
        (Answered(200, {}, said(result=[])), "E_UNREADABLE_ANSWER"),
    ],
)
def test_everything_else_leaves_a_submit_unclear(reply: Reply, code: str) -> None:
    outcome = submit(reply)
    assert isinstance(outcome, Unclear)
    assert outcome.code == code


def test_429_proves_that_nothing_ran_only_where_the_target_says_so() -> None:
    gateway = Endpoint("reports", ENDPOINT.url, not_processed_statuses=frozenset({429}))
    throttled = Answered(429, {"retry-after": "2"}, b"")
    assert answers.read_submit(PROFILE, gateway, CALL, throttled) == NotProcessed("HTTP 429", 2.0)
    assert submit(throttled) == Unclear("HTTP 429", "HTTP 429: an empty body", 2.0)


@pytest.mark.parametrize(
    ("result", "pointer", "tool_error"),
    [
        (
            {"resultType": "complete", "content": [], "structuredContent": {"rows": 3}},
            "/result/structuredContent",
            False,
        ),
        ({"content": [{"type": "text", "text": "x"}]}, "/result", False),
        ({"resultType": "complete", "content": [], "isError": True}, "/result", True),
        ({"resultType": "complete", "content": [], "isError": "true"}, "/result", True),
        ({"resultType": "complete"}, None, False),
    ],
)
def test_a_result_at_once_is_over(result: Mapping[str, object], pointer: str | None, tool_error: bool) -> None:
    outcome = submit(ok(**result))
    assert isinstance(outcome, Over)
    assert (outcome.terminal, outcome.status, outcome.tool_error) == (Terminal.COMPLETED, "completed", tool_error)
    assert (outcome.payload.pointer if outcome.payload else None) == pointer


def test_input_before_a_task_exists_carries_the_state_back() -> None:
    question = {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": {"type": "object"}}}
    reply = ok(resultType="input_required", inputRequests={"b": question, "a": question}, requestState="opaque")
    params = b'{"message":"Which?","requestedSchema":{"type":"object"}}'
    keys = (InputKey("a", "elicitation/create", params), InputKey("b", "elicitation/create", params))
    assert submit(reply) == NeedsInput("input_required", keys, state="opaque", body=reply.body)


def test_a_state_without_a_question_goes_on_as_it_is_and_neither_of_them_says_nothing() -> None:
    reply = ok(resultType="input_required", requestState="wait")
    assert submit(reply) == NeedsInput("input_required", (), state="wait", body=reply.body)
    assert isinstance(submit(ok(resultType="input_required", inputRequests={})), Unclear)


@pytest.mark.parametrize(
    "result",
    [
        {"requestState": 7},
        {"requestState": "a\x00"},
        {"requestState": "a" * (64 * 1024 + 1)},
        {"requestState": "\u20ac" * (64 * 1024 // 3 + 1)},
        {"inputRequests": []},
        {"inputRequests": {"k": 1}},
        {"inputRequests": {"k": {"method": 1}}},
        {"inputRequests": {"": {"method": "m"}}},
        {"inputRequests": {"k\x00": {"method": "m"}}},
        {"inputRequests": {"k": {"method": "m" * 65}}},
        {"inputRequests": {"k": {"method": "m", "params": {"text": "\ud800"}}}},
        {"inputRequests": {str(n): {"method": "m"} for n in range(65)}},
    ],
)
def test_a_question_that_could_not_be_answered_is_not_handed_on(result: Mapping[str, object]) -> None:
    assert isinstance(submit(ok(resultType="input_required", **result)), Unclear)
    if "requestState" not in result:
        observed = poll(ok(taskId="t-1", status="input_required", **result))
        assert isinstance(observed, Refused)
        assert observed.code == "E_INPUT_MALFORMED"


# -- poll --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            ok(**TASK_RESULT | {"resultType": "complete", "statusMessage": "a\x00"}),
            StillWorking("working", "2026-11-29T10:00:00Z", 3600000, 2000, "a\N{REPLACEMENT CHARACTER}"),
        ),
        (ok(taskId="t-1", status="working"), StillWorking("working", None, None, None)),
        (ok(taskId="t-1", status="input_required"), NeedsInput("input_required", ())),
        (ok(taskId="t-1", status="completed"), Over(Terminal.COMPLETED, "completed", None)),
        (ok(taskId="t-1", status="failed"), Over(Terminal.FAILED, "failed", None)),
        (
            ok(taskId="t-1", status="cancelled", statusMessage="by us", result={"content": []}),
            Over(Terminal.CANCELLED, "cancelled", None, message="by us"),
        ),
        (failed(-32602), NotFound("no")),
        (failed(-32602, 400), NotFound("no")),
        (failed(-32602, 404), NotFound("no")),
        (failed(-32603), Busy("-32603")),
        (failed(-32602, 500), Busy("HTTP 500")),
        (failed(-32601, 404), Refused("E_CAPABILITY_UNSUPPORTED", "error -32601: no")),
        (Answered(404, {}, b"nope"), Busy("HTTP 404")),
        (Answered(429, {"retry-after": "30"}, b""), Busy("HTTP 429", 30.0, closes_target=True)),
        (Answered(401, {}, b""), NoAccess("HTTP 401: the server wants another credential")),
        (Answered(200, {}, b"<html>"), Busy("E_UNREADABLE_ANSWER")),
        (Answered(202, {}, b""), Busy("E_UNREADABLE_ANSWER")),
        (Answered(300, {}, said(result=TASK_RESULT)), Busy("HTTP 300")),
        (NoAnswer(Sent.MAYBE, "reset"), Busy("E_NO_ANSWER")),
        (NoAnswer(Sent.NO, "refused"), Busy("E_NO_CONNECTION")),
        (NoAnswer(Sent.MAYBE, "too large", b"x" * 2000), Refused("E_RESULT_TOO_LARGE", "too large")),
    ],
)
def test_a_poll_says_what_the_server_said(reply: Reply, expected: Observation) -> None:
    assert poll(reply) == expected


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ({"taskId": "t-999", "status": "completed", "result": {}}, "E_TASK_ID_MISMATCH"),
        ({"status": "completed", "result": {}}, "E_TASK_ID_MISMATCH"),
        ({"taskId": ["t-1"], "status": "working"}, "E_TASK_ID_MISMATCH"),
        ({"task": {"taskId": "t-1", "status": "working"}}, "E_PROTOCOL_MIX"),
        ({"taskId": "t-1", "status": "completed", "ttl": 1000}, "E_PROTOCOL_MIX"),
        ({"taskId": "t-1", "status": "working", "pollInterval": 1000}, "E_PROTOCOL_MIX"),
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


@pytest.mark.parametrize(
    ("result", "pointer", "tool_error"),
    [
        ({"content": [], "structuredContent": {"rows": 3}}, "/result/result/structuredContent", False),
        ({"content": []}, "/result/result", False),
        ({"content": [], "structuredContent": None}, "/result/result", False),
        ({"content": [{"type": "text", "text": "bad"}], "isError": True}, "/result/result", True),
        ({}, "/result/result", False),
    ],
)
def test_a_completed_task_brings_its_result_by_pointer(
    result: Mapping[str, object], pointer: str, tool_error: bool
) -> None:
    outcome = poll(ok(taskId="t-1", status="completed", createdAt="x", result=result))
    assert isinstance(outcome, Over)
    assert outcome.payload is not None
    assert (outcome.payload.pointer, outcome.tool_error, outcome.created_at) == (pointer, tool_error, "x")
    resolve(loads(outcome.payload.body), outcome.payload.pointer)


def test_a_failed_task_brings_its_error() -> None:
    outcome = poll(ok(taskId="t-1", status="failed", error={"code": -32603, "message": "boom"}))
    assert isinstance(outcome, Over)
    assert outcome.message == "boom"
    assert outcome.payload is not None
    assert resolve(loads(outcome.payload.body), outcome.payload.pointer) == {"code": -32603, "message": "boom"}


def test_the_payload_of_a_streamed_answer_is_the_message_alone() -> None:
    message = said(result={"taskId": "t-1", "status": "completed", "result": {"content": []}})
    outcome = poll(Answered(200, SSE, b": ping\n\ndata: " + message + b"\n\n"))
    assert isinstance(outcome, Over)
    assert outcome.payload is not None
    assert outcome.payload.body == message


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (0, 0),
        (2000, 2000),
        (2000.9, 2000),
        (1e30, 2**53 - 1),
        (10**60, 2**53 - 1),
        (-1, None),
        (-1e30, None),
        ("2000", None),
        (True, None),
        (None, None),
        ([], None),
    ],
)
def test_numbers_leave_in_range(told: object, expected: int | None) -> None:
    outcome = poll(ok(taskId="t-1", status="working", ttlMs=told, pollIntervalMs=told, createdAt="x" * 99))
    assert outcome == StillWorking("working", "x" * 64, expected, expected)


# -- cancel ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (ok(resultType="complete"), Acknowledged(None)),
        (ok(taskId="t-1", status="cancelled", ttl=1), Acknowledged("cancelled")),
        (failed(-32602), NotFound("no")),
        (failed(-32602, 400), NotFound("no")),
        (failed(-32601, 404), NoSuchVerb("no")),
        (Answered(404, {}, b"nope"), NoSuchVerb("HTTP 404")),
        (Answered(501, {}, b""), NoSuchVerb("HTTP 501")),
        (Answered(401, {}, b""), NotProcessed("HTTP 401", auth=True)),
        (Answered(503, {}, b""), NotProcessed("HTTP 503")),
        (failed(-32603), Unclear("-32603", "no")),
        (Answered(500, {}, b""), Unclear("HTTP 500", "HTTP 500: an empty body")),
        (NoAnswer(Sent.MAYBE, "reset"), Unclear("E_NO_ANSWER", "reset")),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
    ],
)
def test_a_cancel_answer_is_never_an_end(reply: Reply, expected: CancelOutcome) -> None:
    assert cancel(reply) == expected
