"""Input rounds of MCP 2026-07-28: keys that can be read again, `tasks/update`, and questions before a task exists."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters import registry
from counterfoil.adapters.contract import (
    Answered,
    Call,
    Effect,
    InputReply,
    NoAnswer,
    RemoteTask,
    Reply,
    Sent,
)
from counterfoil.adapters.outcomes import (
    Acknowledged,
    InputKey,
    NeedsInput,
    NoSuchVerb,
    NotFound,
    NotProcessed,
    NotSent,
    Refused,
    ReplyOutcome,
    TaskStarted,
    Unclear,
)
from counterfoil.adapters.strict_json import is_storable

from .hostile import REPLIES, RESULTS, VALUES, hard, texts_of
from .kit_mcp import ENDPOINT, TASK, TASK_RESULT, cancel, error, failed, ok, play, poll, said, submit

ADAPTER = registry.adapter("mcp-2026-07-28")
FORM = {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": {"type": "object"}}}
URL = {"method": "elicitation/create", "params": {"mode": "url", "url": "http://elsewhere/", "message": "Go there"}}
ANSWER = b'{"action":"accept","content":{"n":1.50}}'


def waiting(**questions: object) -> Answered:
    return ok(taskId="t-1", status="input_required", createdAt="at", ttlMs=60000, inputRequests=questions)


# -- the question ------------------------------------------------------------------------------------------------------


def test_every_open_question_is_a_key_and_the_message_is_kept_as_it_came() -> None:
    reply = waiting(b=FORM, a=URL, c={"method": "elicitation/create"})
    assert poll(reply) == NeedsInput(
        "input_required",
        (
            InputKey("a", "elicitation/create", b'{"message":"Go there","mode":"url","url":"http://elsewhere/"}'),
            InputKey("b", "elicitation/create", b'{"message":"Which?","requestedSchema":{"type":"object"}}'),
            InputKey("c", "elicitation/create", b"{}"),
        ),
        "at",
        60000,
        body=reply.body,
    )


def test_kept_bytes_are_read_as_the_questions_that_they_were() -> None:
    asked = poll(waiting(a=FORM, b=URL))
    assert isinstance(asked, NeedsInput)
    assert ADAPTER.read_input(ENDPOINT, TASK, asked.body) == asked


def test_a_question_before_a_task_is_read_again_without_a_task() -> None:
    asked = submit(ok(resultType="input_required", inputRequests={"a": FORM}, requestState="opaque"))
    assert isinstance(asked, NeedsInput)
    assert ADAPTER.read_input(ENDPOINT, RemoteTask(""), asked.body) == asked


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (waiting(a=FORM).body.replace(b"t-1", b"t-2"), "E_TASK_ID_MISMATCH"),
        (waiting(a={"method": 7}).body, "E_INPUT_MALFORMED"),
        (ok(resultType="input_required", inputRequests={"a": FORM}).body, "E_TASK_ID_MISMATCH"),
        (said(result=TASK_RESULT), "E_INPUT_MALFORMED"),
        (said(error={"code": -32602, "message": "no"}), "E_TASK_ID_MISMATCH"),
        (b"<html>", "E_INPUT_MALFORMED"),
        (b"", "E_INPUT_MALFORMED"),
    ],
)
def test_bytes_that_ask_nothing_of_this_task_are_refused(body: bytes, code: str) -> None:
    outcome = ADAPTER.read_input(ENDPOINT, TASK, body)
    assert isinstance(outcome, Refused)
    assert outcome.code == code


# -- the answer --------------------------------------------------------------------------------------------------------


def test_an_answer_is_one_update_of_one_key_byte_for_byte() -> None:
    exchange = ADAPTER.reply(ENDPOINT, replace(TASK, request_id="send-token"), InputReply("k \u20ac", "m", ANSWER))
    outcome, [request] = play(exchange, [{"result": {"resultType": "complete"}}])
    assert outcome == Acknowledged(None)
    assert request.effect is Effect.ANSWER
    assert ("Mcp-Method", "tasks/update") in request.headers
    assert ("Mcp-Name", "t-1") in request.headers
    body = json.loads(request.body)
    assert (body["id"], body["method"], body["params"]["taskId"]) == ("send-token", "tasks/update", "t-1")
    assert body["params"]["inputResponses"] == {"k \u20ac": {"action": "accept", "content": {"n": 1.5}}}
    assert ANSWER in request.body


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (ok(), Acknowledged(None)),
        (ok(resultType="complete"), Acknowledged(None)),
        (failed(-32602), NotFound("no")),
        (failed(-32601, 404), NoSuchVerb("no")),
        (Answered(404, {}, b"nope"), NoSuchVerb("HTTP 404")),
        (failed(-32603), Unclear("-32603", "no")),
        (failed(-32021, 400), Unclear("-32021", "no")),
        (Answered(202, {}, b""), Unclear("E_UNREADABLE_ANSWER", "HTTP 202: an empty body")),
        (Answered(401, {}, b""), NotProcessed("HTTP 401", auth=True)),
        (Answered(503, {"retry-after": "7"}, b""), NotProcessed("HTTP 503", 7.0)),
        (NoAnswer(Sent.MAYBE, "reset"), Unclear("E_NO_ANSWER", "reset")),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
    ],
)
def test_an_acknowledgement_says_that_the_answer_arrived_and_no_more(reply: Reply, expected: ReplyOutcome) -> None:
    assert ADAPTER.read_reply(ENDPOINT, TASK, reply) == expected
    assert cancel(reply) == expected  # a cancel is acknowledged in the same words


# -- before a task exists ----------------------------------------------------------------------------------------------

CALL = Call("generate", b'{"month":"2026-10"}', "key-1", 60.0)


def params_of(call: Call) -> dict[str, object]:
    outcome, [request] = play(ADAPTER.submit(ENDPOINT, call), [{"result": TASK_RESULT}])
    assert isinstance(outcome, TaskStarted)
    assert request.effect is Effect.SUBMIT
    params: dict[str, object] = json.loads(request.body)["params"]
    return params


def test_the_next_leg_is_the_same_call_with_the_answers_and_the_state() -> None:
    first = params_of(CALL)
    replies = (InputReply("b", "elicitation/create", ANSWER), InputReply("a", "m", b'{"action":"decline"}'))
    leg = params_of(replace(CALL, replies=replies, state="opaque \u20ac"))
    assert leg == first | {
        "inputResponses": {"a": {"action": "decline"}, "b": {"action": "accept", "content": {"n": 1.5}}},
        "requestState": "opaque \u20ac",
    }


def test_a_leg_carries_only_what_it_was_given() -> None:
    assert params_of(CALL).keys().isdisjoint({"inputResponses", "requestState"})
    assert "inputResponses" not in params_of(replace(CALL, state=""))
    assert params_of(replace(CALL, state=""))["requestState"] == ""
    assert "requestState" not in params_of(replace(CALL, replies=(InputReply("a", "m", ANSWER),)))


def test_a_leg_may_ask_again() -> None:
    call = replace(CALL, replies=(InputReply("a", "m", ANSWER),), state="1")
    again = {"result": {"resultType": "input_required", "inputRequests": {"b": FORM}, "requestState": "2"}}
    outcome, _ = play(ADAPTER.submit(ENDPOINT, call), [again])
    assert isinstance(outcome, NeedsInput)
    assert ([key.key for key in outcome.keys], outcome.state) == (["b"], "2")
    refused, _ = play(ADAPTER.submit(ENDPOINT, call), [error(-32602, {"code": "E_KEY_REUSED_DIFFERENT_REQUEST"})])
    assert refused == Unclear("E_KEY_REUSED_DIFFERENT_REQUEST", "no")


# -- hostile -----------------------------------------------------------------------------------------------------------


@given(
    st.sampled_from(["", "t-1"]),
    st.binary(max_size=80)
    | RESULTS.map(lambda result: said(result=result | {"taskId": "t-1", "status": "input_required"}))
    | RESULTS.map(lambda result: said(result=result | {"resultType": "input_required"}))
    | st.dictionaries(st.text(max_size=3), VALUES | st.just(FORM)).map(lambda questions: waiting(**questions).body)
    | VALUES.map(lambda value: said(result=value)),
)
@hard
def test_hostile_kept_bytes_are_questions_or_refused(task_id: str, body: bytes) -> None:
    outcome = ADAPTER.read_input(ENDPOINT, RemoteTask(task_id), body)
    assert isinstance(outcome, NeedsInput | Refused)
    assert all(is_storable(text) for text in texts_of(outcome))


@given(REPLIES)
@hard
def test_a_hostile_answer_to_a_reply_gives_a_storable_outcome(reply: Reply) -> None:
    outcome = ADAPTER.read_reply(ENDPOINT, TASK, reply)
    assert isinstance(outcome, ReplyOutcome)
    assert all(is_storable(text) for text in texts_of(outcome))
