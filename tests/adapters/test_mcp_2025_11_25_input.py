"""Input rounds of MCP 2025-11-25: the question comes on a stream, once; the answer is a POST of its own."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters import registry
from counterfoil.adapters.contract import (
    Answered,
    Effect,
    InputReply,
    NoAnswer,
    RemoteTask,
    Reply,
    Request,
    Sent,
)
from counterfoil.adapters.mcp_question import MAX_STREAM_BYTES
from counterfoil.adapters.mcp_session import Session
from counterfoil.adapters.outcomes import (
    Acknowledged,
    Busy,
    NeedsInput,
    NoAccess,
    NotProcessed,
    NotSent,
    Observation,
    Over,
    Refused,
    ReplyOutcome,
    SessionGone,
    StillWorking,
    Unclear,
)
from counterfoil.adapters.strict_json import is_storable, loads

from .hostile import REPLIES, RESULTS, VALUES, hard, texts_of
from .kit_mcp import ENDPOINT, SSE, Says, error, play
from .kit_mcp_2025 import RELATED, SESSION, TASK_2025

ADAPTER = registry.adapter("mcp-2025-11-25")
TASK = RemoteTask("t-1", session=SESSION.pack())
WAITS = {"result": TASK_2025 | {"status": "input_required"}}
TOLD = NeedsInput("input_required", (), "2026-11-29T10:00:00Z", 3600000, 2000)
FORM = {"message": "Which?", "requestedSchema": {"type": "object"}, "_meta": RELATED}
PING = {"id": 1, "method": "ping"}
NOTE = {"method": "notifications/message", "params": {"data": "elicitation/create", "_meta": RELATED}}


def message(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | members).encode()


def question(id_: object = 0, params: object = FORM, method: str = "elicitation/create") -> bytes:
    return message(id=id_, method=method, params=params)


def stream(*events: bytes) -> Answered:
    return Answered(200, SSE, b"".join(b"event: message\ndata: " + data + b"\n\n" for data in events))


def poll(*replies: Reply | Says | Mapping[str, object], task: RemoteTask = TASK) -> tuple[Observation, list[Request]]:
    return play(ADAPTER.poll(ENDPOINT, task), replies)


def asked(*events: bytes) -> NeedsInput:
    outcome, _ = poll(WAITS, stream(*events))
    assert isinstance(outcome, NeedsInput)
    return outcome


# -- the question ------------------------------------------------------------------------------------------------------


def test_a_waiting_task_is_asked_for_its_question_and_the_exact_message_is_handed_out() -> None:
    sent = question("srv-1")
    outcome, [status, result] = poll(WAITS, stream(message(**NOTE), message(**PING), sent))
    assert isinstance(outcome, NeedsInput)
    [key] = outcome.keys
    assert replace(outcome, keys=(), body=b"") == TOLD
    assert outcome.body == sent
    assert (key.method, key.reply_to) == ("elicitation/create", '"srv-1"')
    assert loads(key.params) == FORM
    assert [json.loads(request.body)["method"] for request in (status, result)] == ["tasks/get", "tasks/result"]
    assert json.loads(status.body)["id"] != json.loads(result.body)["id"]
    assert result.effect is None
    assert result.deadline_s == 5.0
    assert result.max_bytes == ENDPOINT.max_response_bytes < MAX_STREAM_BYTES


def test_the_stream_is_left_at_a_question_of_this_task_or_at_the_response() -> None:
    _, [_, request] = poll(WAITS, stream())
    until, own = request.until, json.loads(request.body)["id"]
    assert until is not None
    assert until(question())
    assert until(message(id=own, result={}))
    assert until(message(id=own, error={"code": -32602, "message": "no"}))
    other = {"io.modelcontextprotocol/related-task": {"taskId": "t-2"}}
    for data in (
        question(params=FORM | {"_meta": other}),
        question(params={"message": "Which?"}),
        message(id="r-99", result={"_meta": RELATED}),
        message(**NOTE),
        message(**PING),
        b"related-task",
    ):
        assert not until(data)


def test_only_a_question_that_names_this_task_is_ours() -> None:
    other = FORM | {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t-2"}}}
    assert asked(question(1, other), question(2, {"message": "Whose?"}), message(**NOTE)) == TOLD
    assert asked(question(1, other), question(2)).body == question(2)


def test_a_stream_that_was_cut_after_its_question_has_asked() -> None:
    cut = stream(message(**PING), question(7)).body + b"data: {"
    outcome, _ = poll(WAITS, NoAnswer(Sent.MAYBE, "the deadline passed", cut))
    assert isinstance(outcome, NeedsInput)
    assert [key.reply_to for key in outcome.keys] == ["7"]


def test_two_questions_of_one_stream_are_two_keys_and_a_repeated_one_is_one() -> None:
    first, second = question(0), question(1, method="sampling/createMessage")
    both = asked(first, second, first)
    assert [(key.method, key.reply_to) for key in both.keys] == [
        ("elicitation/create", "0"),
        ("sampling/createMessage", "1"),
    ]
    assert loads(both.body) == [loads(first), loads(second)]
    assert ADAPTER.read_input(ENDPOINT, TASK, both.body) == NeedsInput("input_required", both.keys, body=both.body)


def test_the_key_is_bound_to_session_id_and_parameters() -> None:
    """Ids start at 0 in every session of a TypeScript server: an id alone would name many questions."""
    bodies = [question(0), question(1), question("0"), question(0, FORM | {"message": "When?"})]
    keys = {asked(body).keys[0].key for body in bodies}
    elsewhere = replace(TASK, session=Session("2025-11-25", "s-2").pack())
    outcome, _ = poll(WAITS, stream(question(0)), task=elsewhere)
    assert isinstance(outcome, NeedsInput)
    assert len(keys | {outcome.keys[0].key}) == 5
    assert all(len(key) == 64 for key in keys)
    assert asked(question(0)).keys[0].key in keys  # and the same question has the same key


def test_kept_bytes_are_read_as_the_question_that_they_were() -> None:
    outcome = asked(question("srv-1"))
    assert ADAPTER.read_input(ENDPOINT, TASK, outcome.body) == NeedsInput(
        "input_required", outcome.keys, body=outcome.body
    )


@pytest.mark.parametrize(
    "reply",
    [
        stream(),
        stream(message(**PING)),
        Says({"result": {"content": [], "_meta": RELATED}}),
        Says(error(-32602)),
        Says(error(-32603)),
        Answered(200, {"content-type": "application/json"}, b"{"),
        Answered(503, {}, b""),
        NoAnswer(Sent.MAYBE, "the deadline passed"),
        NoAnswer(Sent.MAYBE, "the answer is larger", b"x" * 2000),
        NoAnswer(Sent.NO, "refused"),
    ],
)
def test_without_a_question_the_task_waits_and_nobody_knows_for_what(reply: Reply | Says) -> None:
    outcome, sent = poll(WAITS, reply)
    assert outcome == TOLD
    assert len(sent) == 2


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Answered(401, {}, b""), NoAccess("HTTP 401: the server wants another credential")),
        (Answered(404, {}, b""), SessionGone("HTTP 404")),
        (Answered(429, {"retry-after": "7"}, b""), Busy("HTTP 429", 7.0, closes_target=True)),
    ],
)
def test_what_concerns_every_read_is_not_hidden_by_the_status(reply: Reply, expected: Observation) -> None:
    assert poll(WAITS, reply)[0] == expected


@pytest.mark.parametrize(
    "sent",
    [
        question(None),
        question(True),
        question(1.5),
        question(""),
        question("x" * 513),
        question(2**53),
        question("a\x00"),
        question(params=FORM | {"message": "\ud800"}),
        question(method="m" * 65),
    ],
)
def test_a_question_that_could_not_be_answered_is_refused(sent: bytes) -> None:
    outcome, _ = poll(WAITS, stream(sent))
    assert isinstance(outcome, Refused)
    assert outcome.code == "E_INPUT_MALFORMED"
    kept = ADAPTER.read_input(ENDPOINT, TASK, sent)
    assert kept == outcome


def test_more_questions_than_anybody_answers_are_refused() -> None:
    outcome, _ = poll(WAITS, stream(*(question(n) for n in range(65))))
    assert isinstance(outcome, Refused)


def test_a_known_question_is_not_fetched_again() -> None:
    assert poll(WAITS, task=replace(TASK, reads_question=False))[0] == TOLD


@pytest.mark.parametrize(("status", "kind"), [("working", StillWorking), ("completed", Over)])
def test_a_task_that_does_not_wait_is_asked_for_its_status_alone(status: str, kind: type) -> None:
    outcome, sent = poll({"result": TASK_2025 | {"status": status}})
    assert isinstance(outcome, kind)
    assert len(sent) == 1


# -- the answer --------------------------------------------------------------------------------------------------------


def reply(answer: Reply, task: RemoteTask = TASK, reply_to: str = '"srv-1"') -> tuple[ReplyOutcome, list[Request]]:
    word = InputReply("key", "elicitation/create", b'{"action":"accept","content":{"n":1}}', reply_to)
    return play(ADAPTER.reply(ENDPOINT, task, word), [answer])


@pytest.mark.parametrize("id_", ["srv-1", "0", 0, 12])
def test_the_answer_is_a_response_to_the_servers_request_in_the_session_that_asked(id_: object) -> None:
    outcome, [request] = reply(Answered(202), reply_to=json.dumps(id_))
    assert outcome == Acknowledged()
    assert request.effect is Effect.ANSWER
    assert ("Mcp-Session-Id", "s-1") in request.headers
    assert json.loads(request.body) == {
        "jsonrpc": "2.0",
        "id": id_,
        "result": {"action": "accept", "content": {"n": 1}, "_meta": RELATED},
    }


SESSION_LOST = "the session that asked is gone, and no other can answer in its place"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answered(202, {}, b"anything"), Acknowledged()),
        (Answered(404, {}, b""), Unclear("E_SESSION_GONE", SESSION_LOST)),
        (
            Answered(400, {}, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}'),
            Unclear("E_SESSION_GONE", SESSION_LOST),
        ),
        (
            Answered(400, {}, b'{"jsonrpc":"2.0","id":"x","error":{"code":-32600,"message":"no"}}'),
            Unclear("E_SESSION_GONE", SESSION_LOST),
        ),
        (
            Answered(400, {}, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no"}}'),
            Unclear("-32602", "no"),
        ),
        (Answered(401, {}, b""), NotProcessed("HTTP 401", auth=True)),
        (Answered(503, {"retry-after": "7"}, b""), NotProcessed("HTTP 503", 7.0)),
        (Answered(500, {}, b""), Unclear("HTTP 500", "HTTP 500: an empty body")),
        (Answered(200, {}, b""), Unclear("E_UNREADABLE_ANSWER", "HTTP 200: an empty body")),
        (
            Answered(200, {}, b'{"jsonrpc":"2.0","id":"srv-1","result":{}}'),
            Unclear("E_UNREADABLE_ANSWER", "an answer to an answer"),
        ),
        (NoAnswer(Sent.MAYBE, "reset"), Unclear("E_NO_ANSWER", "reset")),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
    ],
)
def test_only_202_takes_an_answer_and_a_lost_session_is_named(answer: Reply, expected: ReplyOutcome) -> None:
    assert reply(answer)[0] == expected
    assert ADAPTER.read_reply(ENDPOINT, TASK, answer) == expected


def test_a_404_where_no_session_was_named_is_the_addresss() -> None:
    stateless = RemoteTask("t-1", session=Session("2025-11-25").pack())
    assert reply(Answered(404, {}, b""), stateless)[0] == Unclear("HTTP 404", "HTTP 404: an empty body")


# -- hostile -----------------------------------------------------------------------------------------------------------

PARAMS = RESULTS.map(lambda params: FORM | params) | VALUES | st.just(FORM)
QUESTIONS = st.builds(question, VALUES, PARAMS, st.sampled_from(["elicitation/create", "\x00", ""]))


@given(REPLIES | st.lists(QUESTIONS | st.binary(max_size=40), max_size=3).map(lambda events: stream(*events)))
@hard
def test_a_hostile_stream_gives_a_storable_outcome_that_reads_the_same_again(hostile: Reply) -> None:
    outcome, _ = poll(WAITS, hostile)
    assert isinstance(outcome, Observation)
    assert all(is_storable(text) for text in texts_of(outcome))
    assert not isinstance(outcome, Over)
    if isinstance(outcome, NeedsInput) and outcome.keys:
        kept = ADAPTER.read_input(ENDPOINT, TASK, outcome.body)
        assert isinstance(kept, NeedsInput)
        assert kept.keys == outcome.keys


@given(st.binary(max_size=80) | QUESTIONS | VALUES.map(lambda value: json.dumps(value).encode()))
@hard
def test_hostile_kept_bytes_are_a_question_or_refused(body: bytes) -> None:
    outcome = ADAPTER.read_input(ENDPOINT, TASK, body)
    assert isinstance(outcome, NeedsInput | Refused)
    assert all(is_storable(text) for text in texts_of(outcome))


@given(REPLIES)
@hard
def test_a_hostile_answer_to_a_reply_is_taken_only_as_202(hostile: Reply) -> None:
    outcome, _ = reply(hostile)
    assert isinstance(outcome, ReplyOutcome)
    assert all(is_storable(text) for text in texts_of(outcome))
    assert isinstance(outcome, Acknowledged) == (isinstance(hostile, Answered) and hostile.status == 202)
