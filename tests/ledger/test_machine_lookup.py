"""What became of a lost submit, asked by key or by replay, as examples (SPEC sections 1 and 7; review table D)."""

import uuid

import pytest

from counterfoil.ledger.events import (
    CancelAsked,
    DeadlineReached,
    LookupAbsent,
    LookupDenied,
    LookupFound,
    LookupOver,
    LookupUnsure,
    RefusedBeforeSubmit,
    ReplayNotSent,
    Resubmit,
    Result,
    SubmitNotProcessed,
    SubmitNotSent,
    SubmitRejected,
    SubmitUnclear,
    TaskBound,
)
from counterfoil.ledger.states import Lane, State
from counterfoil.tests.ledger.machine import GOOD, TOKEN, Told, fresh, intended, sending

KEYED = {"lookup": "by_key", "absence": "unique"}
REPLAY = {"lookup": "replay"}
ABSENT = LookupAbsent(authoritative=True)
STOP = CancelAsked("stop")


def lost(**policy: object) -> Told:
    """Sent, and nothing came back; the settle window is over."""
    unclear = SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut")
    return intended(fresh(**policy)).then(unclear).then(settle_left_s=0.0)


def second(**policy: object) -> Told:
    """Found absent, and due again as the second attempt, which nobody has sent."""
    return lost(**{**KEYED, **policy}).then(ABSENT, Resubmit())


# -- what the question by key says -------------------------------------------------------------------------------------


def test_a_lost_call_that_is_over_ends_with_its_result() -> None:
    told = lost(**KEYED).then(LookupOver("completed", GOOD))
    assert (told.op.state, told.end[:2], told.op.result_digest) == (
        State.FETCHING_RESULT,
        ("ACCEPTED", "succeeded"),
        GOOD.digest,
    )
    assert lost(**KEYED).then(LookupOver("cancelled", GOOD)).end[:3] == ("ACCEPTED", "cancelled", "E_REMOTE_CANCELLED")


def test_a_result_that_was_found_and_breaks_its_schema_waits_for_a_person() -> None:
    broken = Result(b"b" * 32, "", b"1", "E_RESULT_SCHEMA")
    told = lost(**KEYED).then(LookupOver("completed", broken))
    assert (told.op.settle_as, told.asked) == (None, ["E_RESULT_SCHEMA"])


@pytest.mark.parametrize(
    "policy",
    [{"absence": "unique"}, {"absence": "closes"}, {"absence": "bounded", "bounded_allowed": True}],
    ids=lambda policy: policy["absence"],
)
def test_absence_proves_nothing_once_the_server_may_have_forgotten_the_key(policy: dict[str, object]) -> None:
    """The answer of a lookup that waited for its token: the first request ran, and its key is forgotten by now."""
    policy = {"lookup": "by_key", **policy}
    assert lost(**policy).then(ABSENT).op.state is State.NOT_FOUND_SAFE
    told = lost(**policy).then(ABSENT, key_left_s=9.0)
    assert (told.op.state, told.asked) == (State.SUBMISSION_UNKNOWN, ["E_SUBMISSION_UNKNOWN"])


def test_a_question_that_is_not_answered_is_asked_again_but_not_for_ever() -> None:
    unsure = LookupUnsure("E_SUBMISSION_UNKNOWN", "500", retry_after_s=30.0)
    told = lost(**KEYED).then(unsure)
    assert (told.asked, told.wake[Lane.LOOKUP]) == ([], 30.0)
    assert told.then(*[unsure] * 3).asked == []
    assert told.then(*[unsure] * 4).asked == ["E_SUBMISSION_UNKNOWN"]
    final = LookupUnsure("E_KEY_REUSED_DIFFERENT_REQUEST", "other digest", final=True)
    assert lost(**KEYED).then(final).asked == ["E_KEY_REUSED_DIFFERENT_REQUEST"]


def test_a_server_that_is_busy_is_asked_until_the_fifteen_minutes_are_over() -> None:
    busy = LookupUnsure("E_SUBMISSION_UNKNOWN", "503", transient=True)
    told = lost(**KEYED).then(*[busy] * 20)
    assert (told.asked, told.wake[Lane.LOOKUP]) == ([], 60.0)
    assert told.then(DeadlineReached()).asked == ["E_SUBMISSION_UNKNOWN"]


def test_a_credential_that_is_refused_three_times_is_a_persons_business() -> None:
    """Nobody else may ask in the scope that submitted."""
    denied = LookupDenied("401")
    assert lost(**KEYED).then(denied, denied).asked == []
    assert lost(**KEYED).then(denied, denied, denied).asked == ["E_AUTH_EXPIRED"]


def test_an_absence_that_was_asked_before_the_second_attempt_says_nothing_of_it() -> None:
    """A slow lookup of the first attempt comes back when the second one is lost too and its window has passed: with a
    remembered cancel it would end a call that runs as one of which nothing ran."""
    twice = intended(second(absence="closes")).then(STOP, SubmitUnclear(2, "E_SUBMISSION_UNKNOWN", "cut"))
    late = twice.then(ABSENT, settle_left_s=0.0)
    assert (late.op.state, late.refused) == (State.SUBMISSION_UNKNOWN, "E_LATE_EVIDENCE")
    assert twice.then(LookupAbsent(True, 2), settle_left_s=0.0).op.state is State.NOT_FOUND_SAFE


# -- the second attempt ------------------------------------------------------------------------------------------------


def test_what_a_late_lookup_finds_before_the_second_intent_is_taken_and_nothing_is_sent() -> None:
    """Two lookups cross; where only time speaks the first request landed in between."""
    told = second(absence="bounded", bounded_allowed=True)
    assert told.then(LookupFound("t-1", "working")).op.state is State.WORKING
    assert told.then(LookupOver("completed", GOOD)).end[:2] == ("ACCEPTED", "succeeded")


@pytest.mark.parametrize("event", [LookupFound("t-1", "working"), LookupOver("completed", GOOD)], ids=repr)
def test_what_a_late_lookup_finds_while_the_second_attempt_is_out_may_be_a_second_operation(
    event: LookupFound | LookupOver,
) -> None:
    told = intended(second(absence="closes")).then(event)
    assert (told.op.state, told.asked, told.op.parked) == (State.SUBMITTING, ["E_TWO_OPERATIONS"], False)


def test_where_keys_are_unique_what_is_found_is_taken_and_the_second_answer_is_compared_with_it() -> None:
    told = intended(second(absence="unique")).then(LookupFound("t-1", "working"))
    assert (told.op.state, told.op.task_id, told.asked) == (State.WORKING, "t-1", ["E_TWO_OPERATIONS"])
    assert told.then(TaskBound(2, "t-1", "working")).op.cases == ()
    assert [case.code for case in told.then(TaskBound(2, "t-2", "working")).op.cases] == ["E_TWO_OPERATIONS"]
    over = intended(second(absence="unique")).then(LookupOver("completed", GOOD))
    assert over.end[:2] == ("ACCEPTED", "succeeded")


def test_an_absence_that_turned_out_wrong_leaves_effects_possible_whatever_the_profile_says() -> None:
    told = intended(second(absence="closes")).then(
        LookupFound("t-1", "working"), SubmitNotSent(2, "refused", send_token=TOKEN)
    )
    assert told.then(STOP).end == ("CANCELLED_ACCEPTED", "cancelled", None, True)


@pytest.mark.parametrize(("absence", "effects"), [("unique", True), ("closes", False)])
def test_a_cancel_of_a_second_attempt_that_is_not_out_ends_it_and_nothing_more_is_sent(
    absence: str, effects: bool
) -> None:
    """Remembering it would send the second attempt of a call that nobody wants any more."""
    end = ("CANCELLED_ACCEPTED", "cancelled", None, effects)
    assert second(absence=absence).then(STOP).end == end
    out = intended(second(absence=absence)).then(STOP)
    assert (out.op.cancel_generation, out.op.settle_as) == (1, None)
    for unsent in (SubmitNotSent(2, "refused", send_token=TOKEN), SubmitNotProcessed(2, "E_BUSY")):
        assert out.then(unsent).end == end


def test_a_cancel_beside_evidence_that_its_door_cannot_read_is_remembered_and_ended_by_the_submit_lane() -> None:
    told = fresh().then(CancelAsked("stop", evidence_waits=True))
    assert (told.op.state, told.op.cancel_generation, told.op.settle_as) == (State.SUBMITTING, 1, None)
    for comes_by in (Resubmit(), RefusedBeforeSubmit("E_ADAPTER_DRAINING", "drained")):
        assert told.then(comes_by).end == ("CANCELLED_ACCEPTED", "cancelled", None, False)
    absent = lost(**KEYED).then(ABSENT).then(CancelAsked("stop", evidence_waits=True))
    assert absent.then(Resubmit()).end == ("CANCELLED_ACCEPTED", "cancelled", None, True)


def test_a_budget_that_ends_beside_a_remembered_cancel_leaves_the_end_to_the_cancel() -> None:
    told = lost(**KEYED).then(STOP, ABSENT).then(DeadlineReached(), budget_left_s=0.0)
    assert (told.op.settle_as, told.wake[Lane.TIMER] > 0) == (None, True)
    assert told.then(Resubmit()).end[:2] == ("CANCELLED_ACCEPTED", "cancelled")


@pytest.mark.parametrize("sync", [False, True])
def test_a_send_that_is_taken_back_waits_in_the_lane_that_the_call_has(sync: bool) -> None:
    """In another lane the pause would be lost, and a call that blocks would be sent in a tight loop."""
    told = intended(fresh(sync=sync)).then(SubmitNotProcessed(1, "E_BUSY", 90.0))
    assert told.wake[Lane.SYNC if sync else Lane.SUBMIT] == 90.0


# -- replay ------------------------------------------------------------------------------------------------------------


def replaying() -> Told:
    return sending(lost(**REPLAY), "replay")


def test_a_replay_that_is_answered_ends_its_intent_and_is_the_answer() -> None:
    found = replaying().then(LookupFound("t-1", "working"))
    assert (found.op.state, found.op.task_id, found.op.intents) == (State.WORKING, "t-1", ())
    over = replaying().then(LookupOver("completed", GOOD))
    assert (over.end[:2], over.op.intents) == (("ACCEPTED", "succeeded"), ())


def test_a_replay_whose_answer_is_lost_is_sent_again_and_one_that_was_rejected_proves_nothing() -> None:
    lost_again = replaying().then(LookupUnsure("E_SUBMISSION_UNKNOWN", "cut"))
    assert (lost_again.op.intents, lost_again.asked, Lane.LOOKUP in lost_again.wake) == ((), [], True)
    rejected = replaying().then(LookupUnsure("E_SUBMISSION_UNKNOWN", "rejected with 422", final=True))
    assert (rejected.op.settle_as, rejected.asked) == (None, ["E_SUBMISSION_UNKNOWN"])


def test_a_replay_is_taken_back_by_its_holder_alone() -> None:
    foreign = ReplayNotSent("refused", send_token=uuid.UUID(int=9))
    assert replaying().then(foreign).refused == "E_INTENT_OPEN"
    back = replaying().then(ReplayNotSent("refused", 7.0, TOKEN))
    assert (back.op.intents, back.wake[Lane.LOOKUP]) == ((), 7.0)


def test_a_replay_in_flight_is_looked_after_in_its_lane_when_its_bearer_died() -> None:
    assert replaying().wake == {Lane.LOOKUP: 10.0, Lane.TIMER: 900.0}


def test_a_late_rejection_of_the_first_attempt_says_nothing_of_its_replay() -> None:
    """Definite for the first; but the same bytes went out once more, and may run."""
    late = SubmitRejected(1, "E_REJECTED", "bad")
    assert lost(**KEYED).then(late).end == ("ACCEPTED", "failed", "E_REJECTED", False)
    told = replaying().then(LookupUnsure("E_SUBMISSION_UNKNOWN", "cut"), late)
    assert (told.op.state, told.op.settle_as) == (State.SUBMISSION_UNKNOWN, None)
