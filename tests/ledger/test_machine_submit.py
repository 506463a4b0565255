"""Submit and lookup, as examples: what an answer, its absence or a lookup means (SPEC sections 1, 2, 7; review tables D
and E)."""

from dataclasses import replace

import pytest

from counterfoil.ledger.events import (
    CancelAsked,
    DeadlineReached,
    Event,
    IntentOverdue,
    LookupAbsent,
    LookupFound,
    LookupUnsure,
    Progressed,
    Quarantined,
    RefusedBeforeSubmit,
    Resubmit,
    ResultAtOnce,
    SubmitNotProcessed,
    SubmitNotSent,
    SubmitRejected,
    SubmitUnclear,
    TaskBound,
)
from counterfoil.ledger.operation import OpenCase
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.states import Lane, State
from counterfoil.tests.ledger.machine import GOOD, TOKEN, Told, asks_first, fresh, intended, said

BOUND = TaskBound(1, "t-1", "working", "c1", None, 2000)
UNCLEAR = SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut")
UNSENT = SubmitNotSent(1, "refused", send_token=TOKEN)
KEYED = {"lookup": "by_key", "absence": "unique"}
ABSENT = LookupAbsent(authoritative=True)


def lost(**policy: object) -> Told:
    """Sent, and nothing came back; the settle window is over."""
    return intended(fresh(**policy)).then(UNCLEAR).then(settle_left_s=0.0)


# -- nothing was sent --------------------------------------------------------------------------------------------------


def test_a_claim_is_not_an_intent_so_a_lost_lease_leaves_a_submit_that_is_due() -> None:
    """Table E, 1 to 3: 90 of 100 claimed calls never left; none of them may go to a person."""
    told = fresh().then(IntentOverdue())
    assert (told.op.state, told.asked, told.wake) == (State.SUBMITTING, [], {Lane.SUBMIT: 0.0})


def test_a_cancel_before_anything_was_sent_ends_it_and_nothing_ran() -> None:
    assert fresh(can_cancel=False).then(CancelAsked("stop")).end == ("CANCELLED_ACCEPTED", "cancelled", None, False)


def test_what_negotiation_refuses_is_refused_and_nothing_ran() -> None:
    told = fresh().then(RefusedBeforeSubmit("E_CAPABILITY_UNSUPPORTED", "no tasks"))
    assert told.end == ("REFUSED", "refused", "E_CAPABILITY_UNSUPPORTED", False)


def test_nothing_is_refused_while_a_submit_may_be_on_its_way() -> None:
    told = intended(fresh()).then(RefusedBeforeSubmit("E_POLICY", "drained"))
    assert (told.refused, told.op.settle_as) == ("E_INTENT_OPEN", None)


def test_a_budget_that_ends_before_anything_was_sent_is_a_failure_without_a_case() -> None:
    told = intended(fresh()).then(UNSENT).then(DeadlineReached(), budget_left_s=0.0)
    assert (told.op.state, told.end, told.asked) == (
        State.TERMINAL_OBSERVED,
        ("ACCEPTED", "failed", "E_NEVER_SENT", False),
        [],
    )


def test_a_budget_that_ends_while_an_intent_is_open_is_judged_when_the_intent_closes() -> None:
    told = intended(fresh(), answer_left_s=20.0).then(DeadlineReached(), budget_left_s=0.0)
    assert (told.op.settle_as, told.wake[Lane.TIMER]) == (None, 20.0)
    assert told.then(UNSENT).end == ("ACCEPTED", "failed", "E_NEVER_SENT", False)
    assert told.then(BOUND).op.state is State.WORKING


def test_a_target_that_never_lets_us_connect_does_not_hold_a_call_for_ever() -> None:
    told = fresh().then(SubmitNotSent(1, "refused"))
    assert (told.op.budget_running, told.op.budget_left_s) == (True, 3600.0)


# -- an answer came ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "state", "codes"),
    [
        (BOUND, State.WORKING, []),
        (TaskBound(1, "t-1", "working", elsewhere=True), State.SUBMISSION_UNKNOWN, ["E_TASK_ID_REUSED"]),
        (ResultAtOnce(1, "completed", GOOD), State.FETCHING_RESULT, []),
        (asks_first("q"), State.INPUT_REQUIRED, []),
        (SubmitRejected(1, "E_REJECTED", "bad"), State.TERMINAL_OBSERVED, []),
        (SubmitNotProcessed(1, "E_BUSY"), State.SUBMITTING, []),
        (UNSENT, State.SUBMITTING, []),
        (UNCLEAR, State.SUBMISSION_UNKNOWN, ["E_SUBMISSION_UNKNOWN"]),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list | State) else "",
)
def test_each_answer_of_the_first_attempt_leads_where_the_spec_says(
    answer: Event, state: State, codes: list[str]
) -> None:
    told = intended(fresh()).then(answer)
    assert (told.op.state, told.asked, told.op.intents) == (state, codes, ())


def test_a_bound_task_is_polled_at_the_servers_pace() -> None:
    assert intended(fresh()).then(BOUND).wake == {Lane.POLL: 2.0, Lane.TIMER: 3600.0}


def test_a_bound_task_that_is_over_is_read_at_once() -> None:
    """A replay and a lookup find it so more often than not: the pace is for a work that goes on."""
    assert intended(fresh()).then(replace(BOUND, status="completed", over=True)).wake[Lane.POLL] == 0.0
    told = intended(fresh(**KEYED)).then(UNCLEAR, settle_left_s=0.0)
    assert told.then(LookupFound("t-1", "failed", over=True)).wake[Lane.POLL] == 0.0


def test_a_remembered_cancel_is_requested_in_the_same_decision_that_binds() -> None:
    told = intended(fresh()).then(CancelAsked("stop"))
    assert (told.op.state, told.op.cancel_generation) == (State.SUBMITTING, 1)
    told = told.then(BOUND)
    assert (told.op.state, told.op.cancel_generation, told.op.cancel_due) == (State.CANCEL_REQUESTED, 1, True)
    assert told.wake[Lane.CANCEL] == 0.0


def test_where_the_target_cannot_cancel_the_door_says_so_before_the_generation_moves() -> None:
    told = intended(fresh(can_cancel=False)).then(CancelAsked("stop"))
    assert (told.refused, told.op.cancel_generation) == ("E_CANNOT_CANCEL", 0)


def test_a_result_that_comes_in_spite_of_a_remembered_cancel_is_taken_as_what_it_is() -> None:
    told = intended(fresh()).then(CancelAsked("stop"), ResultAtOnce(1, "completed", GOOD))
    assert told.end[:2] == ("ACCEPTED", "succeeded")


def test_a_remembered_cancel_ends_a_submit_that_turns_out_not_to_have_run() -> None:
    for answer in (UNSENT, SubmitNotProcessed(1, "E_BUSY")):
        assert intended(fresh()).then(CancelAsked("stop"), answer).end == (
            "CANCELLED_ACCEPTED",
            "cancelled",
            None,
            False,
        )


def test_a_refused_credential_is_tried_three_times_and_then_refused_to_us() -> None:
    told = fresh()
    for _ in range(3):
        told = intended(told).then(SubmitNotProcessed(1, "E_AUTH", auth=True))
    assert told.end == ("REFUSED", "refused", "E_AUTH_EXPIRED", False)


def test_a_retry_after_is_kept_and_clamped_to_an_hour() -> None:
    assert intended(fresh()).then(SubmitNotProcessed(1, "E_BUSY", 90.0)).wake[Lane.SUBMIT] == 90.0
    assert intended(fresh()).then(SubmitNotProcessed(1, "E_BUSY", 1e9)).wake[Lane.SUBMIT] == 3600.0


def test_an_answer_that_a_task_exists_elsewhere_leaves_no_open_intent_behind() -> None:
    told = intended(fresh()).then(TaskBound(1, "t-1", "working", elsewhere=True), said("bind", task_id="t-9"))
    assert (told.op.state, told.op.task_id, told.op.intents) == (State.WORKING, "t-9", ())


# -- no answer came ----------------------------------------------------------------------------------------------------


def test_an_open_intent_is_unknown_after_send_by_and_not_before() -> None:
    """Table E, 4 to 9: the worker that died left an intent and nothing else."""
    early = intended(fresh(), send_left_s=4.0).then(IntentOverdue())
    assert (early.op.state, early.wake[Lane.SUBMIT]) == (State.SUBMITTING, 4.0)
    late = intended(fresh(), send_left_s=0.0).then(IntentOverdue())
    assert (late.op.state, late.asked, late.wake) == (State.SUBMISSION_UNKNOWN, ["E_SUBMISSION_UNKNOWN"], {})


def test_a_lookup_is_due_after_the_settle_window_where_there_is_one() -> None:
    told = intended(fresh(**KEYED)).then(UNCLEAR, settle_left_s=15.0)
    assert (told.asked, told.wake) == ([], {Lane.LOOKUP: 15.0, Lane.TIMER: 900.0})
    assert told.then(ABSENT).wake[Lane.LOOKUP] == 15.0  # asked too early: it proves nothing yet


@pytest.mark.parametrize(
    ("policy", "proof"),
    [
        ({"lookup": "by_key", "absence": "unique"}, True),
        ({"lookup": "by_key", "absence": "closes"}, True),
        ({"lookup": "by_key", "absence": "bounded", "bounded_allowed": True}, True),
        ({"lookup": "by_key", "absence": "bounded"}, False),
        ({"lookup": "by_key"}, False),
    ],
    ids=str,
)
def test_absence_is_a_proof_only_where_the_profile_says_why(policy: dict[str, object], proof: bool) -> None:
    told = lost(**policy).then(ABSENT)
    assert (told.op.state is State.NOT_FOUND_SAFE) == proof
    assert told.asked == ([] if proof else ["E_SUBMISSION_UNKNOWN"])
    assert lost(**policy).then(LookupAbsent(authoritative=False)).op.state is State.SUBMISSION_UNKNOWN


def test_a_found_task_is_bound_and_closes_the_case() -> None:
    told = lost(**KEYED).then(*[LookupUnsure("E_LOOKUP", "?")] * 5)
    assert told.asked == ["E_LOOKUP"]
    told = told.then(LookupFound("t-1", "working"))
    assert (told.op.state, told.asked) == (State.WORKING, [])


def test_an_unknown_has_a_case_after_15_minutes_at_the_latest() -> None:
    assert lost(**KEYED).then(DeadlineReached()).asked == ["E_SUBMISSION_UNKNOWN"]


@pytest.mark.parametrize(
    "word",
    [SubmitNotProcessed(1, "E_BUSY"), SubmitNotSent(1, "refused", send_token=TOKEN)],
    ids=lambda e: type(e).__name__,
)
def test_a_late_word_that_nothing_ran_asks_nobody_where_a_lookup_is_due(word: Event) -> None:
    told = lost(**KEYED).then(word)
    assert (told.op.state, told.asked, set(told.wake)) == (State.SUBMISSION_UNKNOWN, [], {Lane.LOOKUP, Lane.TIMER})


# -- the second attempt ------------------------------------------------------------------------------------------------


def absent(**policy: object) -> Told:
    return lost(**{**KEYED, **policy}).then(ABSENT)


def test_the_second_attempt_is_the_last_one() -> None:
    told = intended(absent().then(Resubmit()))
    assert (told.op.state, told.op.attempt, told.op.sent_attempt) == (State.SUBMITTING, 2, 2)
    told = told.then(SubmitUnclear(2, "E_SUBMISSION_UNKNOWN", "cut"))
    told = told.then(LookupAbsent(True, 2), settle_left_s=0.0).then(Resubmit())
    assert (told.op.state, told.asked) == (State.NOT_FOUND_SAFE, ["E_SUBMISSION_UNKNOWN"])


def test_a_rejection_of_the_second_attempt_says_nothing_of_the_first() -> None:
    told = intended(absent().then(Resubmit())).then(SubmitRejected(2, "E_REJECTED", "bad"))
    assert (told.op.state, told.op.settle_as) == (State.SUBMISSION_UNKNOWN, None)


def test_a_late_rejection_of_the_first_attempt_is_definite_until_the_second_is_sent() -> None:
    late = SubmitRejected(1, "E_REJECTED", "bad")
    assert absent().then(Resubmit(), late).end == ("ACCEPTED", "failed", "E_REJECTED", False)
    assert intended(absent().then(Resubmit())).then(late).refused == "E_LATE_EVIDENCE"


def test_a_remembered_cancel_ends_it_where_the_key_was_found_absent_also_after_the_last_attempt() -> None:
    """Nobody needs to be asked how to go on with a call that nobody wants any more."""
    told = lost(**KEYED).then(CancelAsked("stop"), ABSENT, Resubmit())
    assert told.end == ("CANCELLED_ACCEPTED", "cancelled", None, True)
    told = lost(**KEYED, max_attempts=1).then(CancelAsked("stop"), ABSENT, Resubmit())
    assert told.end == ("CANCELLED_ACCEPTED", "cancelled", None, True)


@pytest.mark.parametrize(("absence", "effects"), [("unique", True), ("closes", False), ("bounded", True)])
def test_an_end_that_says_nothing_ran_needs_a_profile_that_closes_the_key(absence: str, effects: bool) -> None:
    told = absent(absence=absence, bounded_allowed=True)
    assert told.then(CancelAsked("stop")).end == ("CANCELLED_ACCEPTED", "cancelled", None, effects)
    assert told.then(DeadlineReached(), budget_left_s=0.0).end == ("REFUSED", "refused", "E_NOT_RESUBMITTED", effects)
    assert told.then(RefusedBeforeSubmit("E_DRAIN", "drained")).end == (
        "REFUSED",
        "refused",
        "E_NOT_RESUBMITTED",
        effects,
    )
    resubmitted = told.then(Resubmit())
    assert resubmitted.then(DeadlineReached(), budget_left_s=0.0).end == (
        "REFUSED",
        "refused",
        "E_NOT_RESUBMITTED",
        effects,
    )
    asked = intended(resubmitted).then(asks_first("q", attempt=2))
    assert asked.then(CancelAsked("stop")).end == ("CANCELLED_ACCEPTED", "cancelled", None, effects)


# -- people ------------------------------------------------------------------------------------------------------------


def test_a_persons_never_created_ends_it_and_never_resubmits() -> None:
    """Review M6: a person's word is not the server's proof."""
    assert lost().then(said("never_created")).end == ("ACCEPTED", "failed", "E_NOT_SENT_BY_VERDICT", True)


def test_giving_up_is_abandoned_with_effects_possible() -> None:
    assert lost().then(said("give_up")).end == ("ACCEPTED", "abandoned", "E_ABANDONED", True)


def test_a_persons_bind_sends_a_remembered_cancel_as_any_other_bind_does() -> None:
    told = lost().then(CancelAsked("stop"), said("bind", task_id="t-9"))
    assert (told.op.state, told.op.task_id, told.op.cancel_due, told.asked) == (State.CANCEL_REQUESTED, "t-9", True, [])
    assert (told.op.cancel_generation, told.wake[Lane.CANCEL]) == (1, 0.0)


def test_a_verdict_needs_a_case_and_a_bind_needs_a_task() -> None:
    assert fresh().then(said("give_up")).refused == "E_NO_CASE"
    assert lost().then(said("bind")).refused == "E_VERDICT_INCOMPLETE"
    assert intended(fresh()).then(Quarantined("submit"), said("never_created")).refused == "E_VERDICT_NOT_OFFERED"


# -- a question before a task ------------------------------------------------------------------------------------------


def test_a_question_before_a_task_waits_for_a_person_and_nothing_is_read() -> None:
    told = intended(fresh()).then(asks_first("q"))
    assert (told.wake, told.op.budget_running) == ({Lane.TIMER: 7200.0}, False)
    assert told.then(Progressed(1, "working")).refused == "E_NOT_APPLICABLE"
    assert told.then(DeadlineReached(), input_left_s=0.0).end == (
        "CANCELLED_ACCEPTED",
        "cancelled",
        "E_INPUT_DEADLINE",
        False,
    )
    assert told.then(CancelAsked("stop")).end == ("CANCELLED_ACCEPTED", "cancelled", None, False)


def test_after_the_end_a_late_task_opens_the_effects_case_unless_all_went_well() -> None:
    cancelled = fresh().then(CancelAsked("stop"))
    assert cancelled.then(BOUND).asked == ["E_LATE_COMPLETION_AFTER_CANCEL"]
    rejected = intended(fresh()).then(SubmitRejected(1, "E_REJECTED", "bad"))
    assert rejected.then(LookupFound("t-1", "working")).asked == ["E_LATE_ANSWER"]
    done = intended(fresh()).then(BOUND, ResultAtOnce(1, "completed", GOOD))
    assert done.asked == ["E_TWO_OPERATIONS"]
    succeeded = intended(fresh()).then(ResultAtOnce(1, "completed", GOOD))
    assert (succeeded.then(BOUND).asked, succeeded.then(BOUND).refused) == ([], "E_LATE_EVIDENCE")


def test_a_case_of_a_tool_without_effects_is_closed_when_nobody_speaks_in_time_if_the_policy_says_so() -> None:
    asked = lost(effects=False, on_unknown="abandon", on_unknown_after_s=600.0)
    assert (asked.asked, asked.wake) == (["E_SUBMISSION_UNKNOWN"], {Lane.TIMER: 600.0})
    early = asked.then(DeadlineReached(), cases=aged(asked, 200.0))
    assert (early.asked, early.wake) == (["E_SUBMISSION_UNKNOWN"], {Lane.TIMER: 400.0})
    late = asked.then(DeadlineReached(), cases=aged(asked, 600.0))
    assert (late.end, late.asked) == (("ACCEPTED", "abandoned", "E_ABANDONED", False), [])
    waiting = lost(effects=False)
    assert (waiting.wake, waiting.then(DeadlineReached(), cases=aged(waiting, 10**6)).asked) == ({}, waiting.asked)


def aged(told: Told, age_s: float) -> tuple[OpenCase, ...]:
    return tuple(replace(case, age_s=age_s) for case in told.op.cases)


def test_a_tool_with_effects_may_not_be_abandoned_by_policy() -> None:
    with pytest.raises(ValueError, match="effects: false"):
        Policy(protocol="p", on_unknown="abandon")
