"""Cancelling is a request, as examples (SPEC section 5; review table D)."""

import uuid

from counterfoil.ledger.events import (
    CancelAcknowledged,
    CancelAsked,
    CancelNotSent,
    CancelUnclear,
    DeadlineReached,
    Ended,
    Progressed,
    TaskNotFound,
)
from counterfoil.ledger.states import Lane, State
from counterfoil.tests.ledger.machine import GOOD, TOKEN, Told, asks, cancelling, in_state, said

ASK = CancelAsked("stop")
CANCELLED = Ended(9, "cancelled", "cancelled")
COMPLETED = Ended(9, "completed", "completed", GOOD)


def asked(**policy: object) -> Told:
    return in_state(State.WORKING, policy=policy).then(ASK)


def test_the_generation_is_raised_before_anything_is_sent() -> None:
    told = asked()
    assert (told.op.state, told.op.cancel_generation, told.op.cancel_sends) == (State.CANCEL_REQUESTED, 1, 0)
    assert told.wake == {Lane.CANCEL: 0.0, Lane.POLL: 5.0, Lane.TIMER: 60.0}
    assert told.then(ASK).op == told.op


def test_a_target_that_cannot_cancel_and_an_operation_that_is_over_say_so() -> None:
    assert asked(can_cancel=False).refused == "E_CANNOT_CANCEL"
    seen = in_state(State.WORKING).then(Ended(1, "completed", "completed", None))
    assert seen.then(ASK).refused == "E_ALREADY_OVER"
    assert in_state(State.WORKING).then(COMPLETED).then(ASK).refused == "E_ALREADY_OVER"


def test_a_task_that_may_be_anothers_is_not_cancelled_until_a_person_has_said_whose_it_is() -> None:
    told = in_state(State.WORKING, remote_created_at="c1").then(Progressed(1, "working", "c2"))
    assert told.then(ASK).refused == "E_TASK_ID_REUSED"
    assert told.then(said("bind", task_id="t-1"), ASK).op.state is State.CANCEL_REQUESTED


def test_a_cancel_answers_a_parked_operations_case() -> None:
    parked = in_state(State.WORKING).then(DeadlineReached(), budget_left_s=0.0)
    assert parked.wake == {}
    told = parked.then(ASK)
    assert (told.asked, told.wake[Lane.CANCEL]) == ([], 0.0)


def test_an_acknowledgement_is_terminal_evidence_only_by_the_profiles_word() -> None:
    took = CancelAcknowledged(1, cancelled=True)
    plain = cancelling(asked()).then(took)
    assert (plain.op.state, plain.op.settle_as, plain.wake[Lane.POLL]) == (State.CANCEL_REQUESTED, None, 0.0)
    assert cancelling(asked(cancel_is_evidence=True)).then(took).end == ("CANCELLED_ACCEPTED", "cancelled", None, True)
    working = cancelling(asked(cancel_is_evidence=True)).then(CancelAcknowledged(1, cancelled=False))
    assert working.op.settle_as is None


def test_an_answer_to_another_generation_says_nothing() -> None:
    for late in (
        CancelAcknowledged(0, cancelled=True),
        CancelUnclear(2, "E", "?"),
        CancelNotSent(2, "?", send_token=TOKEN),
    ):
        assert cancelling(asked(cancel_is_evidence=True)).then(late).refused == "E_LATE_EVIDENCE"


def test_a_cancelled_status_is_ours_only_if_ours_was_sent() -> None:
    assert cancelling(asked()).then(CANCELLED).end == ("CANCELLED_ACCEPTED", "cancelled", None, True)
    for before in (asked(), in_state(State.WORKING)):
        assert before.then(CANCELLED).end == ("ACCEPTED", "cancelled", "E_REMOTE_CANCELLED", True)


def test_a_completion_that_wins_over_an_unconfirmed_cancel_is_taken_as_what_it_is() -> None:
    told = cancelling(asked()).then(COMPLETED)
    assert told.end[:2] == ("ACCEPTED", "succeeded")
    assert told.op.cancel_generation == 1


def test_a_won_cancel_stays_won_and_a_later_completion_opens_the_effects_case() -> None:
    told = cancelling(asked()).then(CANCELLED, COMPLETED)
    assert told.end[:2] == ("CANCELLED_ACCEPTED", "cancelled")
    assert told.asked == ["E_LATE_COMPLETION_AFTER_CANCEL"]
    assert cancelling(asked()).then(CANCELLED, Progressed(10, "working")).asked == []


def test_two_contradicting_terminal_words_are_a_case() -> None:
    """Table D: the cancel's answer says cancelled after `completed` was recorded."""
    told = cancelling(asked(cancel_is_evidence=True)).then(Ended(9, "completed", "completed", None))
    assert told.then(CancelAcknowledged(1, cancelled=True)).asked == ["E_STATUS_REGRESSED"]
    assert told.then(CancelAcknowledged(1, cancelled=False)).refused == "E_LATE_EVIDENCE"


def test_a_lost_acknowledgement_is_read_after_and_a_task_that_still_works_is_cancelled_again_three_times_at_most() -> (
    None
):
    told = asked()
    for send in (1, 2, 3):
        told = cancelling(told).then(CancelUnclear(1, "E_CANCEL_UNCLEAR", "cut"))
        assert (told.op.cancel_sends, told.op.cancel_due, told.wake[Lane.POLL]) == (send, False, 0.0)
        told = told.then(Progressed(send, "working"))
        assert told.op.cancel_due == (send < 3)


def test_an_acknowledged_cancel_is_never_sent_again() -> None:
    told = cancelling(asked()).then(CancelAcknowledged(1, cancelled=False), Progressed(1, "working"))
    assert told.op.cancel_due is False
    waits = cancelling(asked()).then(CancelUnclear(1, "E", "cut"), asks("q"))
    assert (waits.op.state, waits.op.cancel_due) == (State.CANCEL_REQUESTED, True)


def test_a_cancel_in_flight_keeps_its_row_whatever_else_is_read() -> None:
    told = cancelling(asked()).then(Progressed(1, "working", interval_ms=3000))
    assert (told.op.cancel_due, told.wake[Lane.CANCEL], told.wake[Lane.POLL]) == (False, 10.0, 3.0)


def test_a_cancel_that_was_not_sent_is_taken_back_by_its_holder_alone() -> None:
    told = cancelling(asked())
    assert told.then(CancelNotSent(1, "refused", send_token=uuid.UUID(int=9))).refused == "E_INTENT_OPEN"
    assert told.then(CancelNotSent(1, "refused")).refused == "E_INTENT_OPEN"
    back = told.then(CancelNotSent(1, "refused", 7.0, TOKEN))
    assert (back.op.cancel_due, back.op.cancel_sends, back.wake[Lane.CANCEL]) == (True, 0, 7.0)
    assert back.then(CancelNotSent(1, "refused", send_token=TOKEN)).op.cancel_sends == 0


def test_a_cancel_without_an_end_in_time_is_a_case_beside_which_reading_goes_on_slowly() -> None:
    told = cancelling(asked()).then(DeadlineReached(), confirm_left_s=0.0)
    assert (told.asked, told.wake[Lane.POLL]) == (["E_CANCEL_UNCONFIRMED"], 60.0)
    assert told.then(CANCELLED).end[:2] == ("CANCELLED_ACCEPTED", "cancelled")


def test_a_task_that_is_gone_after_the_cancel_proves_nothing() -> None:
    gone = TaskNotFound(1, "gone")
    told = cancelling(asked()).then(gone, gone, gone)
    assert (told.op.settle_as, told.asked) == (None, ["E_OPERATION_UNKNOWN"])
