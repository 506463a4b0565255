"""Verdicts and recoveries, as examples (SPEC sections 7 and 8; review M6)."""

from typing import get_args

import pytest

from counterfoil.ledger.decision import Decision
from counterfoil.ledger.events import (
    CancelAsked,
    CancelUnclear,
    DeadlineReached,
    Ended,
    LookupAbsent,
    LookupUnsure,
    Progressed,
    Quarantined,
    Recovered,
    ReplyGiven,
    Resubmit,
    Result,
    ResultFetched,
    SubmitUnclear,
    TaskBound,
    TaskNotFound,
    Verdict,
)
from counterfoil.ledger.operation import OpenCase
from counterfoil.ledger.rules_people import offered
from counterfoil.ledger.states import Lane, State
from counterfoil.tests.ledger.machine import (
    GOOD,
    TOKEN,
    Told,
    asks,
    asks_first,
    cancelling,
    fresh,
    in_state,
    intended,
    said,
    sending,
)

KEYED = {"lookup": "by_key", "absence": "closes"}
UNCLEAR = SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut")
STOP = CancelAsked("stop")
BROKEN = Result(b"b" * 32, "", b"1", "E_RESULT_SCHEMA")
GONE = TaskNotFound(9, "gone")
COMPLETED = Ended(9, "completed", "completed", None)
REUSED = Progressed(9, "working", "another birth")


def lost(**policy: object) -> Told:
    return intended(fresh(**policy)).then(UNCLEAR).then(settle_left_s=0.0)


def working(**policy: object) -> Told:
    return in_state(State.WORKING, policy=policy, remote_created_at="c1")


UNCONFIRMED = cancelling(working().then(STOP)).then(DeadlineReached(), confirm_left_s=0.0)
ABSENT_TWICE = (
    intended(lost(**KEYED).then(LookupAbsent(authoritative=True), Resubmit()))
    .then(SubmitUnclear(2, "E_SUBMISSION_UNKNOWN", "cut"))
    .then(LookupAbsent(True, 2), Resubmit(), settle_left_s=0.0)
)

TWO_ANSWERS = intended(lost(**KEYED).then(LookupAbsent(authoritative=True), Resubmit())).then(
    TaskBound(1, "t-1", "working"), SubmitUnclear(2, "E_SUBMISSION_UNKNOWN", "cut"), DeadlineReached()
)

# -- what is offered ---------------------------------------------------------------------------------------------------

OFFERS: list[tuple[str, Told, set[Verdict]]] = [
    ("lost", lost(), {"bind", "never_created", "give_up"}),
    ("absent twice", ABSENT_TWICE, {"never_created", "give_up"}),
    ("quarantined before it was sent", fresh().then(Quarantined("submit")), {"never_created", "give_up"}),
    ("quarantined while it may be on its way", intended(fresh()).then(Quarantined("submit")), {"give_up"}),
    ("not found", working().then(GONE, GONE, GONE), {"bind", "give_up"}),
    ("another birth", working().then(REUSED), {"bind", "give_up"}),
    ("a result that is gone", working().then(COMPLETED, GONE, GONE, GONE), {"bind", "give_up"}),
    (
        "failed, and its result is gone",
        working().then(Ended(9, "failed", "failed"), GONE, GONE, GONE),
        {"bind", "accept", "give_up"},
    ),
    (
        "cancelled without the answer that is required",
        in_state(State.WORKING, policy={"require_answer": True}).then(asks("a"), Ended(9, "cancelled", "cancelled")),
        {"accept", "give_up"},
    ),
    ("a question before a task, recovered", intended(fresh()).then(asks_first("a"), Recovered()), {"give_up"}),
    ("an unconfirmed cancel", UNCONFIRMED, {"give_up"}),
    ("two answers, and both may be lost", TWO_ANSWERS, {"bind", "give_up"}),
    ("two tasks", working().then(TaskBound(2, "t-2", "working")), {"accept"}),
    ("two tasks and an unconfirmed cancel", UNCONFIRMED.then(TaskBound(2, "t-2", "working")), {"accept", "give_up"}),
    ("nothing", working(), set()),
]


@pytest.mark.parametrize(("told", "verdicts"), [row[1:] for row in OFFERS], ids=[row[0] for row in OFFERS])
def test_a_case_offers_the_safe_verdicts_and_takes_no_other(told: Told, verdicts: set[Verdict]) -> None:
    assert set(offered(told.op, kept=False)) == verdicts
    for verdict in get_args(Verdict):
        answered = told.then(said(verdict, task_id=told.op.task_id or "t-1"))
        assert isinstance(answered.answers[-1], Decision) == (verdict in verdicts), verdict
        if verdict not in verdicts:
            assert answered.refused == ("E_VERDICT_NOT_OFFERED" if told.op.cases else "E_NO_CASE")


def test_a_result_that_was_kept_may_be_accepted_with_the_cases_code_on_the_receipt() -> None:
    told = working().then(COMPLETED, ResultFetched(BROKEN))
    assert told.then(said("accept")).refused == "E_VERDICT_NOT_OFFERED"
    taken = told.then(said("accept", result=BROKEN))
    assert (taken.end, taken.op.result_digest) == (("ACCEPTED", "succeeded", "E_RESULT_SCHEMA", True), BROKEN.digest)


def test_a_tools_own_error_stays_a_failure_also_where_a_person_accepts_it() -> None:
    """`isError: true` is failed, whatever the status word and whoever takes it."""
    wrong = Result(b"e" * 32, "", b"{}", tool_error=True)
    told = cancelling(working(cancel_is_evidence=True).then(STOP)).then(COMPLETED)
    contested = told.then(Ended(10, "failed", "failed"), ResultFetched(wrong))
    assert (contested.op.settle_as, contested.asked) == (None, ["E_STATUS_REGRESSED"])
    assert contested.then(said("accept", result=wrong)).end[:2] == ("ACCEPTED", "failed")


def test_a_cancelled_end_that_is_accepted_is_cancelled() -> None:
    told = in_state(State.WORKING, policy={"require_answer": True}).then(asks("a"), Ended(9, "cancelled", "cancelled"))
    assert told.then(said("accept")).end == ("ACCEPTED", "cancelled", "E_INPUT_UNANSWERED", True)


# -- never created, give up --------------------------------------------------------------------------------------------


def test_a_persons_never_created_never_resubmits_and_proves_nothing() -> None:
    """Where a lookup would have closed the key, none did: the first request may still land."""
    told = lost(**KEYED).then(*[LookupUnsure("E_SUBMISSION_UNKNOWN", "500")] * 5, said("never_created"))
    assert told.end == ("ACCEPTED", "failed", "E_NOT_SENT_BY_VERDICT", True)
    assert ABSENT_TWICE.then(said("never_created")).end == ("ACCEPTED", "failed", "E_NOT_SENT_BY_VERDICT", False)


def test_what_was_never_sent_and_is_given_up_had_no_effects() -> None:
    assert fresh().then(Quarantined("submit"), said("give_up")).end == ("ACCEPTED", "abandoned", "E_ABANDONED", False)
    assert lost().then(said("give_up")).end == ("ACCEPTED", "abandoned", "E_ABANDONED", True)


def test_a_verdict_is_on_the_decision_that_closes_the_case_also_where_a_cancel_follows() -> None:
    """The journal of a case names the person; a remembered cancel that goes out with it must not lose the name."""
    told = lost().then(STOP, said("bind", task_id="t-9"))
    assert (told.op.state, told.wake[Lane.CANCEL], told.asked) == (State.CANCEL_REQUESTED, 0.0, [])
    last = told.answers[-1]
    assert isinstance(last, Decision)
    assert (last.verdict, last.closes) == (said("bind", task_id="t-9"), ("UNKNOWN",))


# -- bind --------------------------------------------------------------------------------------------------------------


def test_a_bind_needs_a_task_that_no_other_operation_holds() -> None:
    assert lost().then(said("bind")).refused == "E_VERDICT_INCOMPLETE"
    assert lost().then(said("bind", task_id="t-1", elsewhere=True)).refused == "E_TASK_ID_REUSED"
    other = working().then(REUSED, said("bind", task_id="t-2"))
    assert other.refused == "E_VERDICT_NOT_OFFERED"


def test_a_bound_task_has_its_whole_budget() -> None:
    """A person may come after a day: the first reading must not find the budget over."""
    told = lost().then(said("bind", task_id="t-1"), budget_left_s=-1.0)
    assert told.wake == {Lane.POLL: 5.0, Lane.TIMER: 3600.0}
    read_on = working().then(GONE, GONE, GONE).then(said("bind", task_id="t-1"), budget_left_s=-1.0)
    assert (read_on.asked, read_on.wake) == ([], {Lane.POLL: 0.0, Lane.TIMER: 3600.0})
    assert read_on.then(GONE, GONE).asked == []


def test_a_bind_after_another_birth_takes_the_task_as_it_is() -> None:
    told = working().then(REUSED, said("bind", task_id="t-1"), REUSED)
    assert (told.asked, told.op.remote_created_at) == ([], "another birth")


def test_a_bind_gives_a_question_its_time_again() -> None:
    late = in_state(State.WORKING, policy={"on_input_deadline": "reconcile"}).then(asks("a"))
    told = late.then(DeadlineReached(), input_left_s=0.0).then(said("bind", task_id="t-1"))
    assert (told.asked, told.wake[Lane.TIMER]) == ([], 7200.0)
    assert told.then(ReplyGiven(1, b"{}", "ann")).rounds == [("a", "replied")]


def test_a_bind_after_a_cancel_waits_for_its_end_again_in_a_time() -> None:
    told = UNCONFIRMED.then(GONE, GONE, GONE, said("bind", task_id="t-1"))
    assert (told.op.state, told.asked, told.wake[Lane.TIMER]) == (State.CANCEL_REQUESTED, [], 60.0)


# -- what only a person answers ----------------------------------------------------------------------------------------


def test_no_later_word_of_the_server_answers_a_question_about_its_words() -> None:
    """A reading that was out when the case opened must not end the operation by itself."""
    stranger = working().then(REUSED, Ended(10, "completed", "completed", GOOD))
    assert (stranger.op.state, stranger.op.settle_as, stranger.asked) == (State.WORKING, None, ["E_TASK_ID_REUSED"])
    two_words = working().then(COMPLETED, Ended(10, "failed", "failed"), ResultFetched(GOOD))
    assert (two_words.op.settle_as, two_words.asked) == (None, ["E_STATUS_REGRESSED"])
    assert two_words.then(said("accept", result=GOOD)).end[:2] == ("ACCEPTED", "succeeded")


def test_an_end_leaves_no_question_behind_that_nobody_could_settle() -> None:
    for told in (
        cancelling(UNCONFIRMED.then(CancelUnclear(1, "E", "cut"))).then(Ended(9, "cancelled", "cancelled")),
        ABSENT_TWICE.then(STOP),
    ):
        assert (told.end[0], told.asked) == ("CANCELLED_ACCEPTED", [])


# -- recovery ----------------------------------------------------------------------------------------------------------


def test_after_a_recovery_nothing_that_was_due_to_be_sent_counts_as_unsent() -> None:
    told = fresh(**KEYED).then(Recovered())
    assert (told.op.state, told.op.sent_attempt, told.asked) == (State.SUBMISSION_UNKNOWN, 1, ["E_SUBMISSION_UNKNOWN"])


def test_what_was_pinned_is_looked_up_after_a_recovery_and_not_before_a_lost_intent_has_settled() -> None:
    """The intent that is missing may have been committed in the last second before the promotion."""
    second = lost(**KEYED).then(LookupAbsent(authoritative=True))
    for told in (second, second.then(Resubmit()), intended(second.then(Resubmit()))):
        recovered = told.then(Recovered())
        assert (recovered.op.state, recovered.op.intents, recovered.asked) == (State.SUBMISSION_UNKNOWN, (), [])
        assert recovered.wake[Lane.LOOKUP] == 15.0


def test_a_task_that_turns_up_after_a_recovery_has_a_budget() -> None:
    told = fresh().then(Recovered(), TaskBound(1, "t-1", "working"))
    assert (told.op.state, told.asked, told.wake[Lane.TIMER]) == (State.WORKING, [], 3600.0)


def test_an_open_question_counts_as_perhaps_answered_after_a_recovery() -> None:
    told = in_state(State.WORKING, policy={"reply_replay": "read_first"}).then(
        asks("a", "b"), ReplyGiven(1, b"{}", "ann")
    )
    recovered = told.then(Recovered())
    assert (recovered.rounds, recovered.wake[Lane.POLL]) == ([("a", "unclear"), ("b", "unclear")], 0.0)
    assert recovered.then(ReplyGiven(2, b"{}", "bob")).refused == "E_INPUT_ROUND_CLOSED"
    waits = recovered.then(asks("a", "b", seq=2))
    assert (waits.rounds, waits.wake[Lane.TIMER]) == ([("a", "replied"), ("b", "open")], 7200.0)
    assert recovered.then(Progressed(2, "working")).rounds == [("a", "closed"), ("b", "closed")]


def test_an_open_question_that_lost_its_deadline_has_one_again_after_a_recovery() -> None:
    told = in_state(State.WORKING, policy={"reply_replay": "read_first"}).then(asks("a", "b"), Recovered())
    told = told.then(asks("b", seq=2), asks("b", seq=3))
    assert (told.rounds, told.wake[Lane.TIMER]) == ([("a", "closed"), ("b", "open")], 7200.0)


def test_a_question_before_a_task_may_have_been_answered_and_the_call_may_run() -> None:
    told = intended(fresh()).then(asks_first("a"), Recovered())
    assert (told.op.state, told.asked) == (State.INPUT_REQUIRED, ["E_SUBMISSION_UNKNOWN"])
    assert told.then(ReplyGiven(1, b"{}", "ann")).refused == "E_INPUT_ROUND_CLOSED"
    assert told.then(STOP).end == ("CANCELLED_ACCEPTED", "cancelled", None, True)


@pytest.mark.parametrize(
    "state", [State.WORKING, State.CANCEL_REQUESTED, State.TERMINAL_OBSERVED, State.FETCHING_RESULT]
)
def test_what_has_a_task_is_read_on_after_a_recovery(state: State) -> None:
    told = in_state(state)
    assert told.then(Recovered()).op == told.op


def test_a_reply_in_flight_at_a_recovery_was_perhaps_sent() -> None:
    told = sending(in_state(State.WORKING).then(asks("a"), ReplyGiven(1, b"{}", "ann")), "answer").then(Recovered())
    assert (told.op.rounds[0].state, told.op.rounds[0].sends) == ("unclear", 1)
    assert told.op.intent("answer") is not None
    assert told.op.intents[0].send_token == TOKEN


def test_two_open_cases_of_one_kind_are_closed_together() -> None:
    cases = (OpenCase("UNKNOWN", "E_OPERATION_UNKNOWN"), OpenCase("UNKNOWN", "E_QUARANTINED"))
    assert working().then(said("give_up"), cases=cases).asked == []
