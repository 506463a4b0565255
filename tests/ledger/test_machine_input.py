"""Input rounds, as examples (SPEC section 4; review table D and M12)."""

import uuid

import pytest

from counterfoil.ledger.events import (
    CancelAsked,
    DeadlineReached,
    Ended,
    Progressed,
    RefusedBeforeSubmit,
    ReplyAcknowledged,
    ReplyGiven,
    ReplyNotSent,
    ReplyUnclear,
    SubmitNotSent,
    TaskNotFound,
)
from counterfoil.ledger.rounds import MAX_ROUNDS
from counterfoil.ledger.rules_input import MAX_LEGS
from counterfoil.ledger.states import Lane, State
from counterfoil.tests.ledger.machine import GOOD, TOKEN, Told, asks, asks_first, fresh, in_state, intended, sending

WORKS = Progressed(9, "working")
DONE = Ended(9, "completed", "completed", GOOD)


def reply(number: int = 1) -> ReplyGiven:
    return ReplyGiven(number, b'{"action":"accept"}', "ann")


def asked(*keys: str, **policy: object) -> Told:
    """A task that waits for a person."""
    return in_state(State.WORKING, policy=policy).then(asks(*(keys or ("a",))))


def replied(**policy: object) -> Told:
    """Its one question was replied to, and the reply is on its way."""
    return sending(asked(**policy).then(reply()), "answer")


# -- the task asks -----------------------------------------------------------------------------------------------------


def test_a_question_opens_a_round_with_a_deadline_and_stops_budget_and_pace() -> None:
    told = asked("a", "b")
    assert (told.op.state, told.rounds) == (State.INPUT_REQUIRED, [("a", "open"), ("b", "open")])
    assert (told.op.input_round, told.op.budget_running) == (2, False)
    assert told.wake == {Lane.TIMER: 7200.0, Lane.POLL: 60.0}
    assert asked(input_watch_s=0.0).wake == {Lane.TIMER: 7200.0}


def test_the_same_key_is_the_same_round_and_another_one_is_a_round_of_its_own() -> None:
    told = asked()
    assert told.then(asks("a", seq=2)).rounds == [("a", "open")]
    both = told.then(asks("a", "b", seq=2))
    assert both.rounds == [("a", "open"), ("b", "open")]
    other = told.then(asks("b", seq=2))
    assert (other.rounds, other.op.unanswered_rounds) == ([("a", "closed"), ("b", "open")], 1)


def test_a_key_that_was_seen_past_is_never_asked_again_however_long_it_is_listed() -> None:
    told = asked().then(WORKS)
    again = told.then(asks("a", seq=10))
    assert (again.op.state, again.rounds) == (State.WORKING, [("a", "closed")])
    assert told.then(asks("a", "b", seq=10)).rounds == [("a", "closed"), ("b", "open")]


def test_a_task_that_goes_on_without_our_answer_is_let_go_on_and_the_receipt_tells() -> None:
    for after in (WORKS, DONE):
        told = asked("a", "b").then(after)
        assert (told.op.unanswered_rounds, told.rounds) == (2, [("a", "closed"), ("b", "closed")])
    assert asked().then(WORKS).op.budget_running is True


def test_a_tool_that_asks_without_an_end_asks_a_person_instead() -> None:
    told = asked(*(f"q{number}" for number in range(MAX_ROUNDS)))
    assert told.asked == []
    over = told.then(asks("one more", seq=2))
    assert (over.asked, len(over.op.rounds)) == (["E_INPUT_TOO_MANY"], MAX_ROUNDS)


def test_a_question_that_its_server_does_not_deliver_is_asked_for_three_times() -> None:
    told = in_state(State.WORKING).then(asks())
    assert (told.op.state, told.rounds, told.wake[Lane.POLL]) == (State.INPUT_REQUIRED, [], 5.0)
    assert told.then(asks(seq=2), asks(seq=3)).asked == []
    assert told.then(asks(seq=2), asks(seq=3), asks(seq=4)).asked == ["E_INPUT_UNREADABLE"]


def test_a_question_that_is_delivered_once_counts_also_after_a_later_reading_that_went_without() -> None:
    """W1 (sequence 5) reads the question from the stream and is slow; W2 (sequence 6) is told only that there is one.
    Nobody will ever hear it again."""
    told = in_state(State.WORKING).then(asks(seq=6), asks("a", seq=5))
    assert (told.rounds, told.op.observed_seq) == ([("a", "open")], 6)
    past = in_state(State.WORKING).then(Progressed(6, "working"), asks("a", seq=5))
    assert (past.op.state, past.rounds) == (State.WORKING, [])
    listed = asked().then(asks("b", seq=6), asks("a", "c", seq=5))
    assert listed.rounds == [("a", "closed"), ("b", "open")]


def test_what_was_never_read_counts_as_unanswered_also_after_a_round_that_was_answered() -> None:
    told = replied().then(ReplyAcknowledged(1), WORKS, asks(seq=10), Progressed(11, "working"))
    assert told.op.unanswered_rounds == 1
    told = replied(require_answer=True).then(ReplyAcknowledged(1), WORKS, asks(seq=10), Progressed(11, "working"))
    assert told.asked == ["E_INPUT_UNANSWERED"]


@pytest.mark.parametrize("after", [WORKS, DONE, asks("b", seq=2)], ids=lambda event: type(event).__name__)
def test_an_answer_that_is_required_and_not_given_is_a_persons_business(after: Progressed) -> None:
    told = asked(require_answer=True).then(after)
    assert (told.asked, told.op.settle_as) == (["E_INPUT_UNANSWERED"], None)


def test_a_completion_does_not_answer_what_a_required_answer_asks() -> None:
    """Two pollers: one saw the task go on, which is a case; the other's `completed` must not close it."""
    told = asked(require_answer=True).then(WORKS, Ended(10, "completed", "completed", GOOD))
    assert (told.op.state, told.op.settle_as, told.asked) == (State.TERMINAL_OBSERVED, None, ["E_INPUT_UNANSWERED"])
    assert told.answers[-1].keeps == GOOD  # type: ignore[union-attr]  # the last answer is a decision, or this fails


def test_a_sign_of_life_while_a_person_thinks_begins_the_count_of_not_found_anew() -> None:
    gone = TaskNotFound(1, "gone")
    assert asked().then(gone, gone, asks("a", seq=2), gone, gone).asked == []


@pytest.mark.parametrize(
    ("policy", "state", "codes"),
    [
        ({}, State.CANCEL_REQUESTED, []),
        ({"on_input_deadline": "reconcile"}, State.INPUT_REQUIRED, ["E_INPUT_DEADLINE"]),
        ({"can_cancel": False}, State.INPUT_REQUIRED, ["E_INPUT_DEADLINE"]),
    ],
    ids=str,
)
def test_at_the_deadline_the_policy_speaks_and_nobody_answers_for_the_person(
    policy: dict[str, object], state: State, codes: list[str]
) -> None:
    told = asked(**policy).then(DeadlineReached(), input_left_s=0.0)
    assert (told.op.state, told.asked) == (state, codes)


# -- a person replies --------------------------------------------------------------------------------------------------


def test_a_reply_is_sent_at_once_and_from_then_on_it_is_the_server_that_we_wait_for() -> None:
    told = asked().then(reply())
    assert (told.rounds, told.op.input_left_s, told.op.budget_running) == ([("a", "replied")], None, True)
    assert told.wake == {Lane.ANSWER: 0.0, Lane.POLL: 5.0, Lane.TIMER: 100.0}
    one_of_two = asked("a", "b").then(reply(2))
    assert (one_of_two.op.input_left_s, one_of_two.op.budget_running) == (7200.0, False)
    assert one_of_two.wake == {Lane.ANSWER: 0.0, Lane.POLL: 60.0, Lane.TIMER: 7200.0}


def test_the_deadline_of_people_is_over_when_the_last_open_question_is_listed_no_more() -> None:
    """Otherwise a task that only waits for a reply to arrive would be cancelled because nobody answered."""
    told = sending(asked("a", "b").then(reply(2)), "answer", 2).then(ReplyAcknowledged(2), asks("b", seq=2))
    assert (told.rounds, told.op.input_left_s) == ([("a", "closed"), ("b", "sent")], None)
    assert (told.op.budget_running, told.wake[Lane.TIMER]) == (True, 100.0)


def test_a_round_is_replied_to_once_and_never_when_it_is_over_or_late() -> None:
    for refused in (
        asked().then(reply(), reply()),
        asked().then(reply(2)),
        asked().then(WORKS, reply()),
        asked().then(reply(), input_left_s=0.0),
        asked().then(CancelAsked("stop"), reply()),
        asked().then(DONE, reply()),
    ):
        assert refused.refused == "E_INPUT_ROUND_CLOSED"


def test_a_task_that_was_replied_to_and_does_not_go_on_is_bounded_by_the_budget() -> None:
    told = replied().then(ReplyAcknowledged(1)).then(DeadlineReached(), budget_left_s=0.0)
    assert told.asked == ["E_WAIT_BUDGET_EXHAUSTED"]
    cancels = replied(on_budget="cancel").then(ReplyAcknowledged(1)).then(DeadlineReached(), budget_left_s=0.0)
    assert cancels.op.state is State.CANCEL_REQUESTED


# -- the server hears --------------------------------------------------------------------------------------------------


def test_an_acknowledgement_ends_no_round_but_the_task_that_goes_on_does() -> None:
    told = replied().then(ReplyAcknowledged(1))
    assert (told.op.state, told.rounds, told.op.intents) == (State.INPUT_REQUIRED, [("a", "sent")], ())
    assert told.then(asks("a", seq=2)).rounds == [("a", "sent")]
    past = told.then(WORKS)
    assert (past.op.state, past.rounds, past.op.unanswered_rounds) == (State.WORKING, [("a", "closed")], 0)


def test_a_reply_that_may_have_arrived_is_not_told_as_missing() -> None:
    for told in (replied(), replied().then(ReplyUnclear(1, "E_INPUT_UNCLEAR", "cut"))):
        assert told.then(DONE).op.unanswered_rounds == 0
    assert asked().then(reply(), DONE).op.unanswered_rounds == 1  # it never left


LOST = ReplyUnclear(1, "E_INPUT_UNCLEAR", "cut")


def test_a_lost_reply_is_repeated_at_once_only_where_that_is_safe() -> None:
    safe = replied(reply_replay="safe").then(LOST)
    assert (safe.rounds, safe.wake[Lane.ANSWER]) == ([("a", "replied")], 1.0)
    for policy in ("read_first", "never"):
        told = replied(reply_replay=policy).then(LOST)
        assert (told.rounds, Lane.ANSWER in told.wake, told.wake[Lane.POLL]) == ([("a", "unclear")], False, 0.0)


def test_a_lost_reply_is_repeated_after_a_look_where_the_profile_says_so_and_never_else() -> None:
    waits = asks("a", seq=2)
    told = replied(reply_replay="read_first").then(LOST, waits)
    assert (told.rounds, told.wake[Lane.ANSWER], told.asked) == ([("a", "replied")], 0.0, [])
    told = replied(reply_replay="never").then(LOST, waits)
    assert (told.rounds, told.asked) == ([("a", "unclear")], ["E_INPUT_UNCLEAR"])
    assert replied(reply_replay="never").then(LOST, WORKS).asked == []


def test_a_reply_is_sent_three_times_at_most() -> None:
    told = asked(reply_replay="read_first").then(reply())
    for send in (1, 2, 3):
        told = sending(told, "answer").then(LOST).then(asks("a", seq=send + 1))
        assert (told.op.rounds[0].sends, told.asked) == (send, [] if send < 3 else ["E_INPUT_UNCLEAR"])


def test_a_reply_in_doubt_is_looked_after_also_where_nobody_watches() -> None:
    """Two questions, one of them still open: without a reading of its own nobody would learn what became of the other
    one's reply."""
    told = sending(asked("a", "b", input_watch_s=0.0, reply_replay="read_first").then(reply()), "answer").then(LOST)
    assert told.wake[Lane.POLL] == 0.0


def test_what_the_server_took_stays_taken_whatever_a_late_word_says() -> None:
    """The bearer died after the acknowledgement was stored; its successor says that the answer is lost."""
    told = replied(reply_replay="safe").then(ReplyAcknowledged(1), LOST)
    assert (told.rounds, Lane.ANSWER in told.wake) == ([("a", "sent")], False)


def test_a_reply_that_was_not_sent_is_taken_back_by_its_holder_alone() -> None:
    foreign = ReplyNotSent(1, "refused", send_token=uuid.UUID(int=9))
    assert replied().then(foreign).refused == "E_INTENT_OPEN"
    back = replied().then(ReplyNotSent(1, "refused", 7.0, TOKEN))
    assert (back.rounds, back.op.intents, back.wake[Lane.ANSWER]) == ([("a", "replied")], (), 7.0)


def test_a_reply_in_flight_keeps_its_row_for_whoever_comes_after_a_bearer_that_died() -> None:
    assert replied().then(asks("a", seq=2)).wake[Lane.ANSWER] == 10.0


def test_a_cancel_while_a_reply_is_in_flight_goes_its_own_way() -> None:
    told = replied().then(CancelAsked("stop"))
    assert (told.op.state, told.wake[Lane.CANCEL]) == (State.CANCEL_REQUESTED, 0.0)
    heard = told.then(ReplyAcknowledged(1))
    assert (heard.op.state, heard.op.intents) == (State.CANCEL_REQUESTED, ())
    assert told.then(DONE).end[:2] == ("ACCEPTED", "succeeded")


# -- a question before a task ------------------------------------------------------------------------------------------


def first(**policy: object) -> Told:
    return intended(fresh(**policy)).then(asks_first("a", "b"))


def test_everything_has_to_be_replied_to_before_the_call_goes_on_with_its_next_leg() -> None:
    told = first()
    assert (told.op.state, told.op.request_state, told.wake) == (State.INPUT_REQUIRED, "s", {Lane.TIMER: 7200.0})
    one = told.then(reply(2))
    assert (one.op.state, one.wake) == (State.INPUT_REQUIRED, {Lane.TIMER: 7200.0})
    both = one.then(reply(1))
    assert (both.op.state, both.op.leg, both.op.attempt) == (State.SUBMITTING, 2, 1)
    assert (both.rounds, both.wake[Lane.SUBMIT]) == ([("a", "closed"), ("b", "closed")], 0.0)


def test_a_server_that_only_wants_to_be_called_again_asks_nobody_and_not_for_ever() -> None:
    told = intended(fresh()).then(asks_first(state="s1"))
    assert (told.op.state, told.op.leg, told.op.request_state) == (State.SUBMITTING, 2, "s1")
    assert (told.op.budget_running, told.wake[Lane.SUBMIT]) == (True, 5.0)
    for _ in range(MAX_LEGS - 2):
        told = intended(told).then(asks_first())
    assert told.asked == []
    assert intended(told).then(asks_first()).asked == ["E_INPUT_TOO_MANY"]


def test_nobody_is_asked_for_a_call_that_was_cancelled_meanwhile() -> None:
    told = intended(fresh()).then(CancelAsked("stop"), asks_first("a"))
    assert told.end == ("CANCELLED_ACCEPTED", "cancelled", None, False)


def test_a_cancel_before_the_next_leg_is_sent_ends_it_and_it_is_not_sent() -> None:
    told = first().then(reply(1), reply(2), CancelAsked("stop"))
    assert told.end == ("CANCELLED_ACCEPTED", "cancelled", None, False)


def test_a_budget_that_was_over_when_the_question_came_ends_the_call_by_its_timer() -> None:
    told = intended(fresh()).then(asks_first("a"), budget_left_s=-1.0)
    assert (told.op.state, told.wake) == (State.INPUT_REQUIRED, {Lane.TIMER: 0.0})
    assert told.then(DeadlineReached()).end == ("ACCEPTED", "failed", "E_WAIT_BUDGET_EXHAUSTED", False)


def test_the_budget_of_a_next_leg_that_was_never_sent_is_told_as_such() -> None:
    told = first().then(reply(1), reply(2)).then(DeadlineReached(), budget_left_s=0.0)
    assert told.end == ("ACCEPTED", "failed", "E_WAIT_BUDGET_EXHAUSTED", False)


def test_a_next_leg_that_is_taken_back_leaves_the_one_before_it_sent() -> None:
    told = intended(first().then(reply(1), reply(2))).then(SubmitNotSent(1, "refused", send_token=TOKEN))
    assert (told.op.state, told.op.sent_attempt, told.op.leg) == (State.SUBMITTING, 1, 2)


def test_a_next_leg_that_is_refused_is_told_with_its_own_code_and_nothing_ran() -> None:
    told = first().then(reply(1), reply(2), RefusedBeforeSubmit("E_CAPABILITY_UNSUPPORTED", "no tasks any more"))
    assert told.end == ("REFUSED", "refused", "E_CAPABILITY_UNSUPPORTED", False)
