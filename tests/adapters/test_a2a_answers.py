"""A2A 1.0: what an answer means, answer by answer."""

import json
from typing import Any

import pytest

from counterfoil.adapters import a2a_answers as answers
from counterfoil.adapters.a2a import PROFILE
from counterfoil.adapters.contract import (
    Answered,
    Call,
    Endpoint,
    NoAnswer,
    RemoteTask,
    Reply,
    Sent,
)
from counterfoil.adapters.outcomes import (
    Acknowledged,
    Busy,
    Hint,
    NeedsInput,
    NoAccess,
    NoSuchVerb,
    NotFound,
    NotProcessed,
    NotSent,
    Over,
    Refused,
    Rejected,
    StillWorking,
    TaskStarted,
    Terminal,
    Unclear,
)

ENDPOINT = Endpoint(
    "reports", "http://127.0.0.1:1/agent", max_response_bytes=2000, not_processed_statuses=frozenset({503})
)
CALL = Call("generate", b"{}", "key-1", 60.0, request_id="r-1")
TASK = RemoteTask("t-1", request_id="r-1")


def said(**members: Any) -> Answered:
    body = json.dumps({"jsonrpc": "2.0", "id": "r-1"} | members).encode()
    return Answered(200, {"content-type": "application/json"}, body)


def ok(**result: Any) -> Answered:
    return said(result=result)


def failed(code: int) -> Answered:
    return said(error={"code": code, "message": "no", "data": [{"@type": "x", "reason": "WHY"}]})


def task(state: str = "TASK_STATE_WORKING", **members: Any) -> dict[str, Any]:
    return {"id": "t-1", "contextId": "key-1", "status": {"state": state}} | members


def submit(reply: Reply) -> object:
    return answers.read_submit(PROFILE, ENDPOINT, CALL, reply)


def poll(reply: Reply) -> object:
    return answers.read_poll(ENDPOINT, TASK, reply)


def cancel(reply: Reply) -> object:
    return answers.read_cancel(PROFILE, ENDPOINT, TASK, reply)


def replied(reply: Reply) -> object:
    return answers.read_reply(PROFILE, ENDPOINT, TASK, reply)


# -- submit ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["SUBMITTED", "WORKING", "COMPLETED", "REJECTED", "CANCELED", "INPUT_REQUIRED"])
def test_a_task_is_bound_whatever_its_state_is_by_now(state: str) -> None:
    outcome = submit(ok(task=task(f"TASK_STATE_{state}")))
    over = state in ("COMPLETED", "REJECTED", "CANCELED")
    assert outcome == TaskStarted("t-1", state.lower(), None, None, None, over)


def test_a_task_in_a_state_that_is_unknown_is_bound_all_the_same() -> None:
    assert submit(ok(task=task("TASK_STATE_PONDERING"))) == TaskStarted("t-1", "", None, None, None)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (failed(-32601), Rejected("-32601", "no")),
        (failed(-32009), Rejected("-32009", "no")),
        (failed(-32600), Unclear("-32600", "no")),
        (failed(-32602), Unclear("-32602", "no")),
        (failed(-32603), Unclear("-32603", "no")),
        (failed(-32004), Unclear("-32004", "no")),
        (failed(-32005), Unclear("-32005", "no")),
        (Answered(401), NotProcessed("HTTP 401", None, auth=True)),
        (Answered(503, {"retry-after": "7"}), NotProcessed("HTTP 503", 7.0)),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
        (NoAnswer(Sent.MAYBE, "reset"), Unclear("E_NO_ANSWER", "reset")),
    ],
)
def test_only_what_the_dispatcher_says_before_any_code_of_the_agent_rejects(reply: Reply, expected: object) -> None:
    """-32602 and its like may be raised by the agent's own code after it has begun."""
    assert submit(reply) == expected


@pytest.mark.parametrize(
    "reply",
    [
        Answered(502, {}, b"<html>"),
        Answered(200, {}, b""),
        ok(),
        ok(task={"id": ""}),
        ok(task={"id": "a\x00b"}),
        ok(task=[]),
        ok(message={"parts": []}),
        ok(task=task(), message={"parts": [{"text": "x"}]}),
        said(result="t-1"),
        said(id="r-2", result={"task": task()}),
    ],
)
def test_what_names_no_usable_task_is_unclear(reply: Answered) -> None:
    assert isinstance(submit(reply), Unclear)


@pytest.mark.parametrize(
    "result",
    [
        {"kind": "task", "id": "t-1", "contextId": "c", "status": {"state": "working"}},  # 0.3
        {"resultType": "task", "taskId": "t-1", "status": "working"},  # MCP
    ],
)
def test_another_protocols_shape_is_named_and_not_used(result: dict[str, Any]) -> None:
    outcome = submit(ok(**result))
    assert isinstance(outcome, Unclear)
    assert outcome.code == "E_PROTOCOL_MIX"
    assert isinstance(mix := poll(ok(**result)), Refused)
    assert mix.code == "E_PROTOCOL_MIX"


# -- poll --------------------------------------------------------------------------------------------------------------


def test_the_words_of_the_version_and_what_they_mean() -> None:
    meant = {
        "SUBMITTED": StillWorking,
        "WORKING": StillWorking,
        "INPUT_REQUIRED": NeedsInput,
        "AUTH_REQUIRED": NeedsInput,
        "COMPLETED": Over,
        "FAILED": Over,
        "REJECTED": Over,
        "CANCELED": Over,
    }
    for state, kind in meant.items():
        outcome = poll(ok(**task(f"TASK_STATE_{state}")))
        assert isinstance(outcome, kind), state
        assert outcome.status == state.lower()


@pytest.mark.parametrize(
    "state", ["TASK_STATE_UNSPECIFIED", "TASK_STATE_PAUSED", "completed", "TASK_STATE_completed", 3]
)
def test_a_word_of_another_version_is_no_status(state: object) -> None:
    outcome = poll(ok(**task() | {"status": {"state": state}}))
    assert isinstance(outcome, Refused)
    assert outcome.code == "E_STATUS_UNKNOWN"


@pytest.mark.parametrize(
    "artifacts", [None, [], [{"artifactId": "a"}], [{"artifactId": "a", "parts": []}], "none", [[]]]
)
def test_completed_without_an_artifact_has_no_result(artifacts: object) -> None:
    """Seen with the reference server: the write of the artifact lost a race, that of `completed` won."""
    outcome = poll(ok(**task("TASK_STATE_COMPLETED", artifacts=artifacts)))
    assert isinstance(outcome, Over)
    assert outcome.payload is None


@pytest.mark.parametrize("state", ["FAILED", "REJECTED"])
def test_a_failure_says_what_the_status_says(state: str) -> None:
    status = {"state": f"TASK_STATE_{state}", "message": {"parts": [{"text": "no"}, {"data": 1}, {"text": "paper"}]}}
    outcome = poll(ok(id="t-1", status=status))
    assert isinstance(outcome, Over)
    assert (outcome.terminal, outcome.message) == (Terminal.FAILED, "no\npaper")
    assert outcome.payload is not None
    assert outcome.payload.pointer == "/result/status"


@pytest.mark.parametrize("named", [{"id": "t-2"}, {"id": None}])
def test_an_answer_about_another_task_is_refused(named: dict[str, Any]) -> None:
    outcome = poll(ok(**task() | named))
    assert isinstance(outcome, Refused)
    assert outcome.code == "E_TASK_ID_MISMATCH"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (failed(-32001), NotFound),
        (failed(-32603), Busy),
        (failed(-32009), Refused),
        (failed(-32004), Refused),
        (Answered(404, {}, b"<html>"), Busy),
        (Answered(503), Busy),
        (Answered(403, {"www-authenticate": "Bearer"}), NoAccess),
        (NoAnswer(Sent.MAYBE, "cut", b"x" * 2000), Refused),
    ],
)
def test_what_keeps_a_reading_from_an_answer(reply: Reply, kind: type[object]) -> None:
    assert isinstance(poll(reply), kind)


# -- cancel, reply -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (ok(**task("TASK_STATE_CANCELED")), Acknowledged("canceled")),
        (ok(**task()), Acknowledged("working")),
        (
            ok(**task() | {"id": "t-2"}),
            Unclear("E_TASK_ID_MISMATCH", "the answer to the cancel is about another task, or names none"),
        ),
        (failed(-32001), NotFound("no")),
        (failed(-32002), Unclear("-32002", "no")),
        (failed(-32004), NoSuchVerb("no")),
        (failed(-32603), Unclear("-32603", "no")),
        (said(result=[]), Unclear("E_UNREADABLE_ANSWER", "the result is not an object")),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
    ],
)
def test_the_answer_to_a_cancel_never_ends_anything(reply: Reply, expected: object) -> None:
    """-32002, "not cancelable", was seen for a task that was running: it proves no end."""
    assert cancel(reply) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (ok(task=task()), Acknowledged("working")),
        (ok(message={"taskId": "t-1", "parts": [{"text": "thanks"}]}), Acknowledged(None)),
        (ok(message={"parts": [{"text": "thanks"}]}), Acknowledged(None)),
        (
            ok(task=task() | {"id": "t-2"}),
            Unclear("E_TASK_ID_MISMATCH", "the answer to the reply is about another task"),
        ),
        (ok(), Unclear("E_TASK_ID_MISMATCH", "the answer to the reply is about another task")),
        (failed(-32001), NotFound("no")),
        (failed(-32004), NoSuchVerb("no")),
    ],
)
def test_the_answer_to_a_reply_is_an_acknowledgement(reply: Reply, expected: object) -> None:
    assert replied(reply) == expected


# -- pushes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "hint"),
    [
        ({"task": task("TASK_STATE_COMPLETED")}, Hint("t-1", "completed")),
        ({"statusUpdate": {"taskId": "t-1", "status": {"state": "TASK_STATE_CANCELED"}}}, Hint("t-1", "canceled")),
        ({"artifactUpdate": {"taskId": "t-1", "artifact": {}}}, Hint("t-1", None)),
        ({"message": {"taskId": "t-1", "parts": []}}, Hint("t-1", None)),
        ({"statusUpdate": {"taskId": "t-1", "status": {"state": "done"}}}, Hint("t-1", None)),
    ],
)
def test_a_pushed_message_names_the_task_that_moved(event: dict[str, Any], hint: Hint) -> None:
    for body in (json.dumps(event), " \n" + json.dumps(event, indent=1)):
        assert answers.hints(Answered(200, {}, body.encode())) == (hint,)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"jsonrpc": "2.0", "id": "r-1", "result": {"task": task()}}),
        json.dumps(task()),
        '{"task": ',
        '{"task": {"id": ""}}',
        '{"task": {"id": "a\\u0000"}}',
        '{"statusUpdate": ["t-1"]}',
        "",
    ],
)
def test_an_answer_or_nonsense_is_no_push(body: str) -> None:
    assert answers.hints(Answered(200, {}, body.encode())) == ()
