"""From an adapter's words to the ledger's events: every outcome has one, and results say why they can't be accepted."""

import json
from dataclasses import replace
from typing import Any, get_args
from uuid import UUID

import pytest

from counterfoil.adapters import outcomes as say
from counterfoil.ledger import events
from counterfoil.ledger.digest import sha256
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.rounds import Question
from counterfoil.workers import interpret

POLICY = Policy(protocol="mcp-2026-07-28", max_result_bytes=200)
FORM = b'{"requestedSchema":{"type":"object","properties":{}}}'
KEYS = (say.InputKey("b", "elicitation/create", FORM), say.InputKey("a", "sampling/createMessage", b"{}", "7"))
QUESTIONS = (
    Question("b", "elicitation/create", FORM, sha256(b'{"properties":{},"type":"object"}')),
    Question("a", "sampling/createMessage", b"{}", sha256(b"{}"), "7"),
)
SCHEMA = b'{"type":"object","required":["n"]}'


def payload(value: Any) -> say.Payload:
    return say.Payload(json.dumps({"result": value}).encode(), "/result")


def over(terminal: say.Terminal = say.Terminal.COMPLETED, value: Any = None, **fields: Any) -> say.Over:
    return say.Over(terminal, str(terminal), None if value is None else payload(value), **fields)


N_IS_1 = events.Result(
    sha256(payload({"n": 1}).body), "/result", payload({"n": 1}).body, value_digest=sha256(b'{"n":1}')
)
SUBMIT: list[tuple[say.SubmitOutcome, events.Event]] = [
    (
        say.TaskStarted("t", "working", "2026-11-29T10:00:00Z", 5, 7),
        events.TaskBound(2, "t", "working", "2026-11-29T10:00:00Z", 5, 7),
    ),
    (
        over(value={"n": 1}),
        events.ResultAtOnce(2, "completed", N_IS_1),
    ),
    (say.NeedsInput("input_required", KEYS, state="s"), events.InputAsked(2, QUESTIONS, "s")),
    (say.Rejected("-32600", "no"), events.SubmitRejected(2, "-32600", "no")),
    (say.NotProcessed("HTTP 401", 3.0, auth=True), events.SubmitNotProcessed(2, "HTTP 401", 3.0, auth=True)),
    (say.Unclear("HTTP 500", "boom"), events.SubmitUnclear(2, "E_SUBMISSION_UNKNOWN", "HTTP 500: boom")),
    (
        say.Unclear("E_KEY_REUSED_DIFFERENT_REQUEST", "other"),
        events.SubmitUnclear(2, "E_KEY_REUSED_DIFFERENT_REQUEST", "E_KEY_REUSED_DIFFERENT_REQUEST: other"),
    ),
    (say.NotSent("refused"), events.SubmitNotSent(2, "refused")),
]
OBSERVED: list[tuple[say.Observation, events.Event]] = [
    (say.StillWorking("working", "at", 5, 7), events.Progressed(9, "working", "at", 5, 7)),
    (
        say.NeedsInput("input_required", KEYS, "at", 5, 7),
        events.InputRequested(9, "input_required", QUESTIONS, "at", 5, 7),
    ),
    (
        over(say.Terminal.CANCELLED, created_at="at"),
        events.Ended(9, "cancelled", "cancelled", events.Result(None, "", b"", "E_RESULT_MISSING"), "at"),
    ),
    (say.NotFound("gone"), events.TaskNotFound(9, "gone")),
    (say.Busy("HTTP 503", 4.0, closes_target=True), events.ReadFailed("HTTP 503", 3, 4.0)),
    (say.NoAccess("401"), events.AccessDenied("401")),
    (say.SessionGone("HTTP 404"), events.ReadFailed("E_SESSION_GONE", 3)),
    (say.Refused("E_PROTOCOL_MIX", "2025"), events.AnswerRefused("E_PROTOCOL_MIX", "2025")),
]
CANCEL: list[tuple[say.CancelOutcome, events.Event]] = [
    (say.Acknowledged(), events.CancelAcknowledged(4, cancelled=False)),
    (say.Acknowledged("cancelled"), events.CancelAcknowledged(4, cancelled=True)),
    (over(say.Terminal.CANCELLED), events.CancelAcknowledged(4, cancelled=True)),
    (over(say.Terminal.COMPLETED), events.CancelAcknowledged(4, cancelled=False)),
    (say.NotFound("gone"), events.CancelUnclear(4, "E_CANCEL_UNCLEAR", "gone")),
    (say.NoSuchVerb("404"), events.CancelUnclear(4, "E_CANNOT_CANCEL", "404")),
    (say.NotProcessed("HTTP 429", 2.0), events.CancelNotSent(4, "HTTP 429", 2.0)),
    (say.Unclear("HTTP 500", "boom"), events.CancelUnclear(4, "E_CANCEL_UNCLEAR", "HTTP 500: boom")),
    (say.NotSent("refused"), events.CancelNotSent(4, "refused")),
]


TOKEN = UUID(int=9)
STARTED = say.TaskStarted("t", "working", "at", 5, 7)
UNKNOWN = "E_SUBMISSION_UNKNOWN"
REUSED = "E_KEY_REUSED_DIFFERENT_REQUEST"
LOOKUP: list[tuple[say.LookupOutcome, events.Event]] = [
    (say.Found(STARTED), events.LookupFound("t", "working", "at", 5, 7)),
    (say.FoundOver(over(value={"n": 1})), events.LookupOver("completed", N_IS_1)),
    (say.FoundRunning(), events.LookupUnsure(UNKNOWN, "it still runs, and has no task", transient=True)),
    (say.Absent(authoritative=True), events.LookupAbsent(authoritative=True)),
    (say.Absent(authoritative=False), events.LookupAbsent(authoritative=False)),
    (say.Unclear("E_KEY_UNSURE", "?"), events.LookupUnsure(UNKNOWN, "E_KEY_UNSURE: ?", final=True)),
    (say.Unclear(REUSED, "other"), events.LookupUnsure(REUSED, f"{REUSED}: other", final=True)),
    (say.Unclear("E_LOOKUP_FAILED", "boom", 3.0), events.LookupUnsure(UNKNOWN, "E_LOOKUP_FAILED: boom", 3.0)),
    (say.NoSuchVerb("-32601"), events.LookupUnsure(UNKNOWN, "the server has no such lookup: -32601", final=True)),
    (
        say.Busy("HTTP 503", 4.0),
        events.LookupUnsure(UNKNOWN, "the lookup was not answered: HTTP 503", 4.0, transient=True),
    ),
    (say.NoAccess("401"), events.LookupDenied("401")),
    (say.SessionGone("404"), events.LookupUnsure(UNKNOWN, "the session is gone", transient=True)),
]
REPLAY: list[tuple[say.SubmitOutcome, events.Event]] = [
    (STARTED, events.LookupFound("t", "working", "at", 5, 7)),
    (over(value={"n": 1}), events.LookupOver("completed", N_IS_1)),
    (say.NotProcessed("HTTP 401", auth=True), events.LookupDenied("HTTP 401")),
    (say.NotProcessed("HTTP 503", 2.0), events.ReplayNotSent("HTTP 503", 2.0, TOKEN)),
    (say.NotSent("refused"), events.ReplayNotSent("refused", send_token=TOKEN)),
    (say.Rejected("-32600", "no"), events.LookupUnsure(UNKNOWN, "the replay was rejected with -32600", final=True)),
    (
        say.NeedsInput("input_required", KEYS),
        events.LookupUnsure(UNKNOWN, "the replay was answered with a question", final=True),
    ),
    (say.Unclear("HTTP 500", "boom"), events.LookupUnsure(UNKNOWN, "HTTP 500: boom")),
    (say.Unclear(REUSED, "other"), events.LookupUnsure(REUSED, f"{REUSED}: other", final=True)),
]
REPLY: list[tuple[say.ReplyOutcome, events.Event]] = [
    (say.Acknowledged(), events.ReplyAcknowledged(3)),
    (say.NotFound("gone"), events.ReplyUnclear(3, "E_INPUT_UNCLEAR", "gone")),
    (say.NoSuchVerb("501"), events.ReplyUnclear(3, "E_INPUT_UNCLEAR", "501")),
    (say.NotProcessed("HTTP 503", 2.0), events.ReplyNotSent(3, "HTTP 503", 2.0, TOKEN)),
    (say.Unclear("HTTP 500", "boom"), events.ReplyUnclear(3, "E_INPUT_UNCLEAR", "HTTP 500: boom")),
    (say.NotSent("refused"), events.ReplyNotSent(3, "refused", send_token=TOKEN)),
]


@pytest.mark.parametrize(("outcome", "event"), SUBMIT, ids=lambda value: type(value).__name__)
def test_each_outcome_of_a_submit_is_one_event_of_its_attempt(outcome: say.SubmitOutcome, event: events.Event) -> None:
    assert interpret.submit(outcome, attempt=2, policy=POLICY, output_schema=None) == event


@pytest.mark.parametrize(("outcome", "event"), OBSERVED, ids=lambda value: type(value).__name__)
def test_each_observation_is_one_event_under_its_sequence(outcome: say.Observation, event: events.Event) -> None:
    assert interpret.observation(outcome, seq=9, failures=2, policy=POLICY, output_schema=None) == event


@pytest.mark.parametrize(("outcome", "event"), CANCEL, ids=lambda value: type(value).__name__)
def test_each_outcome_of_a_cancel_is_one_event_of_its_generation(
    outcome: say.CancelOutcome, event: events.Event
) -> None:
    assert interpret.cancel(outcome, generation=4) == event


@pytest.mark.parametrize(("outcome", "event"), LOOKUP, ids=lambda value: type(value).__name__)
def test_each_outcome_of_a_lookup_is_one_event(outcome: say.LookupOutcome, event: events.Event) -> None:
    assert interpret.lookup(outcome, attempt=1, policy=POLICY, output_schema=None) == event


@pytest.mark.parametrize(("outcome", "event"), REPLAY, ids=lambda value: type(value).__name__)
def test_the_answer_to_a_replay_never_says_that_the_first_attempt_did_not_run(
    outcome: say.SubmitOutcome, event: events.Event
) -> None:
    assert interpret.replay(outcome, send_token=TOKEN, policy=POLICY, output_schema=None) == event


@pytest.mark.parametrize(("outcome", "event"), REPLY, ids=lambda value: type(value).__name__)
def test_each_outcome_of_a_reply_is_one_event_of_its_round(outcome: say.ReplyOutcome, event: events.Event) -> None:
    assert interpret.reply(outcome, number=3, send_token=TOKEN) == event


@pytest.mark.parametrize(
    ("said", "event"),
    [
        (events.SubmitNotSent(1, "closed", 4.0), events.ReplayNotSent("closed", 4.0)),
        (events.SubmitNotSent(1, "401", auth=True), events.LookupDenied("401")),
        (
            events.RefusedBeforeSubmit("E_X", "gone"),
            events.LookupUnsure("E_SUBMISSION_UNKNOWN", "no replay: gone", final=True),
        ),
    ],
)
def test_what_keeps_a_submit_from_leaving_keeps_a_replay_from_it_too(
    said: events.SubmitNotSent | events.RefusedBeforeSubmit, event: events.Event
) -> None:
    assert interpret.unsent_replay(said) == event


@pytest.mark.parametrize(
    ("union", "covered"),
    [
        (say.SubmitOutcome, SUBMIT),
        (say.Observation, OBSERVED),
        (say.CancelOutcome, CANCEL),
        (say.LookupOutcome, LOOKUP),
        (say.SubmitOutcome, REPLAY),
        (say.ReplyOutcome, REPLY),
    ],
    ids=["submit", "observation", "cancel", "lookup", "replay", "reply"],
)
def test_every_member_of_the_union_is_among_the_cases_above(union: Any, covered: list[tuple[Any, Any]]) -> None:
    assert {type(outcome) for outcome, _ in covered} == set(get_args(union))


def result_of(outcome: say.Over, schema: bytes | None = None, **policy: Any) -> events.Result:
    changed = POLICY.model_copy(update=policy)
    event = interpret.observation(outcome, seq=1, failures=0, policy=changed, output_schema=schema)
    assert isinstance(event, events.Ended)
    assert event.result is not None
    return event.result


def test_a_valid_result_bears_the_digest_of_its_exact_bytes_and_its_pointer() -> None:
    spaced = say.Over(say.Terminal.COMPLETED, "completed", say.Payload(b'{ "result" : {"n":1} }', "/result"))
    result = result_of(spaced, SCHEMA)
    assert (result.problem, result.digest, result.body) == (None, sha256(spaced.payload.body), spaced.payload.body)  # type: ignore[union-attr]


def test_a_completed_task_without_a_payload_has_a_missing_result() -> None:
    assert result_of(over()) == events.Result(None, "", b"", "E_RESULT_MISSING")


@pytest.mark.parametrize(("size", "problem"), [(200, None), (201, "E_RESULT_TOO_LARGE")])
def test_size_is_judged_before_shape_at_exactly_the_limit(size: int, problem: str | None) -> None:
    body = b'{"result":"' + b"x" * (size - 13) + b'"}'
    assert len(body) == size
    result = result_of(say.Over(say.Terminal.COMPLETED, "completed", say.Payload(body, "/result")))
    assert (result.problem, result.body) == (problem, b"" if problem else body)


def test_a_result_that_breaks_the_output_schema_is_kept_with_its_problem() -> None:
    result = result_of(over(value={"m": 1}), SCHEMA)
    assert (result.problem, result.body) == ("E_RESULT_SCHEMA", payload({"m": 1}).body)


@pytest.mark.parametrize("body", [b'{"result":', b'{"result":1,"result":2}', b'{"other":1}', b"\xff"])
def test_bytes_that_hold_no_result_break_the_schema_and_raise_nothing(body: bytes) -> None:
    outcome = say.Over(say.Terminal.COMPLETED, "completed", say.Payload(body, "/result"))
    assert result_of(outcome).problem == "E_RESULT_SCHEMA"


def test_a_schema_that_can_not_be_used_does_not_let_a_result_through() -> None:
    assert result_of(over(value={"n": 1}), b'{"$ref":"http://192.0.2.1/schema"}').problem == "E_RESULT_SCHEMA"


@pytest.mark.parametrize("value", ["", [], {}])
def test_an_empty_result_is_missing_unless_the_policy_allows_it(value: Any) -> None:
    assert result_of(over(value=value)).problem == "E_RESULT_MISSING"
    assert result_of(over(value=value), empty_result=True).problem is None


@pytest.mark.parametrize("value", [0, False])
def test_zero_and_false_are_results(value: Any) -> None:
    """They are equal to nothing that is empty: `0 == False`, but neither is "", [] or {}."""
    body = json.dumps({"result": value}).encode()
    assert result_of(say.Over(say.Terminal.COMPLETED, "completed", say.Payload(body, "/result"))).problem is None


def test_null_is_an_empty_result() -> None:
    outcome = say.Over(say.Terminal.COMPLETED, "completed", say.Payload(b'{"result":null}', "/result"))
    assert result_of(outcome).problem == "E_RESULT_MISSING"


@pytest.mark.parametrize(
    "outcome", [over(say.Terminal.FAILED, {"m": 1}), over(value={"m": 1}, tool_error=True)], ids=["failed", "isError"]
)
def test_a_failure_owes_no_schema_and_keeps_its_bytes(outcome: say.Over) -> None:
    result = result_of(outcome, SCHEMA)
    assert (result.problem, result.tool_error) == (None, outcome.tool_error)
    assert result.body == payload({"m": 1}).body


def test_a_result_that_the_protocol_puts_elsewhere_is_left_to_the_fetch_lane() -> None:
    separate = POLICY.model_copy(update={"result_separate": True})
    bare = replace(over(value={"n": 1}), payload=None)
    event = interpret.observation(bare, seq=1, failures=0, policy=separate, output_schema=None)
    assert isinstance(event, events.Ended)
    assert event.result is None
    fetched = interpret.observation(
        over(value={"n": 1}), seq=1, failures=0, policy=separate, output_schema=None, fetched=True
    )
    assert isinstance(fetched, events.ResultFetched)
    assert (fetched.result.problem, fetched.result.body) == (None, payload({"n": 1}).body)


def test_a_result_that_came_with_the_status_is_taken_even_where_results_are_kept_apart() -> None:
    """What is told of a failure stands in the status itself: there is nothing to fetch."""
    separate = POLICY.model_copy(update={"result_separate": True})
    event = interpret.observation(over(value={"n": 1}), seq=1, failures=0, policy=separate, output_schema=None)
    assert isinstance(event, events.Ended)
    assert event.result is not None
    assert event.result.problem is None


def test_a_result_that_was_left_out_is_the_empty_object_where_the_policy_takes_an_empty_one() -> None:
    bare = replace(over(value={"n": 1}), payload=None)
    for policy, problem, body in (
        (POLICY, "E_RESULT_MISSING", b""),
        (POLICY.model_copy(update={"empty_result": True}), None, b"{}"),
    ):
        event = interpret.observation(bare, seq=1, failures=0, policy=policy, output_schema=None)
        assert isinstance(event, events.Ended)
        assert event.result is not None
        assert (event.result.problem, event.result.body) == (problem, body)
