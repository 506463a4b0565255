"""Rules of input rounds: what is asked, what people say, what the server makes of it (SPEC section 4)."""

from dataclasses import replace

from .decision import Answer, Decision, Refusal, Unchanged
from .events import InputAsked, InputRequested, ReplyAcknowledged, ReplyGiven, ReplyNotSent, ReplyUnclear
from .operation import Operation
from .rounds import MAX_ROUNDS, REPLY_SENDS, Question, Round, RoundState
from .rules import (
    BEFORE_TASK,
    KNOWN_OVER,
    LIVE,
    backoff_s,
    cancel_again,
    cancelled,
    effects_before_task,
    id_reused,
    on,
    pace_s,
    reused,
    told,
    unknown,
)
from .rules_submit import superseded
from .states import OPEN, Lane, State
from .wakes import submit_lane

MAX_LEGS = 50
"""A server that never comes to the point must not call for ever."""

UNREAD_ASKS = 3
"""How often a question that its server does not deliver is asked for."""


# -- the server asks -------------------------------------------------------------------------------------------------


@on(BEFORE_TASK, InputAsked)
def input_asked(op: Operation, event: InputAsked) -> Answer:
    """Before a task exists: the call goes on with its next leg once everything is answered."""
    if op.state is not State.SUBMITTING or superseded(op, event.attempt):
        return unknown(
            Decision(op), "E_SUBMISSION_UNKNOWN", "the server asked for input on an attempt that is no longer open"
        )
    intents = tuple(intent for intent in op.intents if intent.effect != "submit")
    answered = Decision(op).ends("submit", "answered").having(intents=intents)
    if op.cancel_generation > 0:
        return cancelled(answered, effects=effects_before_task(op))
    if not event.questions:
        return _next_leg_later(answered.having(request_state=event.state))
    if len(op.rounds) + len(event.questions) > MAX_ROUNDS:
        return _too_many(answered.move(State.INPUT_REQUIRED, Lane.SUBMIT, input_left_s=None, budget_running=False))
    return _opened(answered.move(State.INPUT_REQUIRED, Lane.SUBMIT, request_state=event.state), event.questions)


def _next_leg_later(decision: Decision) -> Answer:
    """The server wants to be called again with its state, and nobody is asked anything."""
    op = decision.operation
    if op.leg >= MAX_LEGS:
        return unknown(decision, "E_INPUT_TOO_MANY", f"the server did not answer the call in {MAX_LEGS} legs")
    return replace(decision.having(leg=op.leg + 1, tries=0), wake={submit_lane(op): op.policy.clamp_poll_s(None)})


@on(LIVE, InputRequested)
def input_requested(op: Operation, event: InputRequested) -> Answer:
    known = {one.key for one in op.rounds if one.leg == op.leg}
    fresh = tuple(question for question in event.questions if question.key not in known)
    if event.seq < op.observed_seq and not (fresh and _unread(op)):
        return Unchanged(pace_s(op))  # (a question that is delivered once may come after a reading that went without)
    if reused(op, event.created_at):
        return id_reused(op)
    seen = replace(told(op, event), observed_seq=max(op.observed_seq, event.seq))
    if op.state is State.CANCEL_REQUESTED:
        again = Decision(replace(seen, cancel_due=True), wake={Lane.CANCEL: 0.0})
        return again if cancel_again(op) else _same(op, seen)
    if len(op.rounds) + len(fresh) > MAX_ROUNDS:
        return _too_many(Decision(seen))
    if op.state is State.WORKING:
        if event.questions and not fresh:
            return _same(op, seen)  # keys that were answered are never used again, and may be listed for a while
        return _opened(Decision(seen).move(State.INPUT_REQUIRED, Lane.POLL, tries=0), fresh)
    if not event.questions:
        return _still_waits(op, seen)
    return _other_questions(op, seen, event.questions, fresh)


def _unread(op: Operation) -> bool:
    """The task waits, and for what was not delivered yet."""
    return op.state is State.INPUT_REQUIRED and not op.waiting_rounds and op.input_left_s is not None


def _same(op: Operation, seen: Operation) -> Answer:
    if replace(seen, observed_seq=op.observed_seq) == op:
        return Unchanged(pace_s(op))
    return Decision(seen, wake={Lane.POLL: pace_s(seen)})


def _too_many(decision: Decision) -> Decision:
    return unknown(decision, "E_INPUT_TOO_MANY", f"the tool asked more than {MAX_ROUNDS} questions")


def _opened(decision: Decision, questions: tuple[Question, ...]) -> Decision:
    """Open a round for each question; its deadline stands from now on, and the budget rests."""
    op = decision.operation
    asked = decision.ask(questions)
    return asked.having(
        input_round=len(asked.operation.rounds), input_left_s=op.policy.input_deadline_s, budget_running=False
    )


def _still_waits(op: Operation, seen: Operation) -> Answer:
    """The task waits, and nothing new was said for what."""
    if op.waiting_rounds:
        return _again(op, Decision(seen), op.waiting_rounds)
    tries = op.tries + 1
    decision = Decision(seen).having(tries=tries)
    if tries >= UNREAD_ASKS:
        return unknown(
            decision, "E_INPUT_UNREADABLE", f"the task waits for input; its question was not delivered {tries} times"
        )
    return replace(decision, wake={Lane.POLL: pace_s(op)})


def _other_questions(
    op: Operation, seen: Operation, questions: tuple[Question, ...], fresh: tuple[Question, ...]
) -> Answer:
    """Keys that are listed no more are closed, new ones are rounds of their own."""
    named = {question.key for question in questions}
    gone = tuple(one for one in op.waiting_rounds if one.key not in named)
    listed = tuple(one for one in op.waiting_rounds if one.key in named)
    if not gone and not fresh:
        return _again(op, Decision(seen), listed)
    decision = close_rounds(Decision(seen), gone)
    if not (listed or fresh):
        return worked_on(decision)
    if gone and not listed and all(one.state == "sent" for one in gone):
        # Our answer took it on, and it asks something else now.
        decision = decision.move(State.WORKING, Lane.POLL).move(State.INPUT_REQUIRED, Lane.POLL, tries=0)
    return _opened(decision, fresh) if fresh else _all_replied(decision)


def _all_replied(decision: Decision) -> Decision:
    """Once everybody has spoken it is the server that we wait for: people's deadline is over, the budget runs."""
    op = decision.operation
    if not op.all_replied:
        return decision
    return decision.having(input_left_s=None, budget_running=op.budget_left_s is not None)


def _again(op: Operation, decision: Decision, listed: tuple[Round, ...]) -> Answer:
    """Rounds whose reply may be lost, seen to be waiting still: the profile says whether it may be sent again."""
    lost = [one for one in listed if one.state == "unclear"]
    if not lost:
        return _same(op, decision.operation)
    if op.policy.reply_replay == "never" or any(one.sends >= REPLY_SENDS for one in lost):
        return unknown(decision, "E_INPUT_UNCLEAR", "the task still waits, and nobody knows whether our reply arrived")
    for one in lost:
        # After a recovery nobody may have answered at all.
        decision = _put(decision, one, "replied" if one.sends else "open")
    if not decision.operation.all_replied and op.input_left_s is None:
        decision = decision.having(input_left_s=op.policy.input_deadline_s, budget_running=False)
    return replace(decision, wake={Lane.ANSWER: 0.0, Lane.POLL: pace_s(op)})


def close_rounds(decision: Decision, rounds: tuple[Round, ...]) -> Decision:
    """The task was seen past these rounds: with our answer, or without it, which the receipt tells. With
    `require_answer` a question that closed without our answer is a person's business."""
    if not rounds:
        return decision
    out = decision.operation.intent("answer")
    sent = [one for one in rounds if one.state == "sent"]
    # A reply that may have arrived is no lack of one, and a receipt must not say so.
    perhaps = [one for one in rounds if one.sends > 0 or (out is not None and out.attempt == one.number)]
    perhaps = [one for one in perhaps if one not in sent]
    unanswered = [one for one in rounds if one not in sent and one not in perhaps]
    closed = decision.end_rounds((one.number for one in sent), "answered")
    closed = closed.end_rounds((one.number for one in perhaps), "perhaps answered")
    closed = closed.end_rounds((one.number for one in unanswered), "superseded")
    closed = closed.having(unanswered_rounds=closed.operation.unanswered_rounds + len(unanswered))
    if any(one.state == "replied" for one in unanswered):
        closed = closed.note("E_INPUT_ROUND_CLOSED", "the task went on before the reply was sent")
    return _unanswered(closed) if unanswered else closed


def _unanswered(decision: Decision) -> Decision:
    if not decision.operation.policy.require_answer:
        return decision
    return unknown(decision, "E_INPUT_UNANSWERED", "the task went on without the answer that the policy requires")


def left_input(decision: Decision, before: Operation) -> Decision:
    """The task left `input_required`, also one that never told what it asked."""
    left = close_rounds(decision, before.waiting_rounds).having(input_left_s=None)
    if not _unread(before):
        return left
    return _unanswered(left.having(unanswered_rounds=before.unanswered_rounds + 1))


def worked_on(left: Decision) -> Decision:
    """With our answer, or without it: it goes on as the protocol says (SPEC section 4)."""
    op = left.operation
    moved = left.move(State.WORKING, Lane.POLL, input_left_s=None, budget_running=op.budget_left_s is not None, tries=0)
    return replace(moved, wake={Lane.POLL: op.policy.clamp_poll_s(op.interval_ms)})


# -- people reply ----------------------------------------------------------------------------------------------------


@on(sorted(OPEN), ReplyGiven)
def reply_given(op: Operation, event: ReplyGiven) -> Answer:
    """Used once: a round that is over, was replied to or is late takes no reply."""
    asked = next((one for one in op.rounds if one.number == event.number), None)
    if op.state is not State.INPUT_REQUIRED or asked is None or asked.state != "open":
        waiting = ", ".join(str(one.number) for one in op.rounds if one.state == "open") or "none"
        return Refusal("E_INPUT_ROUND_CLOSED", f"reply for round {event.number} refused; open: {waiting}")
    if op.input_left_s is not None and op.input_left_s <= 0:
        return Refusal("E_INPUT_ROUND_CLOSED", f"reply for round {event.number} refused; its deadline is over")
    said = replace(Decision(op), reply=(event.number, event.content, event.actor))
    replied = _put(said, asked, "replied").note("E_INPUT_REPLIED", f"round {event.number}, by {event.actor}")
    if not replied.operation.all_replied:
        return replied if op.task_id is None else replace(replied, wake={Lane.ANSWER: 0.0})
    replied = _all_replied(replied)
    if op.task_id is not None:
        return replace(replied, wake={Lane.ANSWER: 0.0})
    numbers = [one.number for one in replied.operation.waiting_rounds]
    next_leg = replied.end_rounds(numbers, "answered").move(State.SUBMITTING, Lane.DOOR, leg=op.leg + 1, tries=0)
    return replace(next_leg, wake={submit_lane(op): 0.0})


def _put(decision: Decision, asked: Round, state: RoundState, *, sent: bool = False) -> Decision:
    after = replace(asked, state=state, sends=asked.sends + (1 if sent else 0))
    rounds = tuple(after if one.number == asked.number else one for one in decision.operation.rounds)
    return decision.having(rounds=rounds)


# -- the server hears ------------------------------------------------------------------------------------------------


def _answered(op: Operation, number: int, how: str) -> tuple[Decision, Round | None]:
    """Close the intent of this reply, if it is open, and find its round, if it waits."""
    intent = op.intent("answer")
    decision = Decision(op)
    if intent is not None and intent.attempt == number:
        decision = decision.ends("answer", how).having(intents=tuple(i for i in op.intents if i.effect != "answer"))
    return decision, next((one for one in op.waiting_rounds if one.number == number), None)


@on((*LIVE, *KNOWN_OVER), ReplyAcknowledged)
def reply_acknowledged(op: Operation, event: ReplyAcknowledged) -> Answer:
    """An acknowledgement proves nothing (202 is said to anything): the task tells."""
    decision, asked = _answered(op, event.number, "answered")
    if asked is None or asked.state == "sent" or op.state is not State.INPUT_REQUIRED:
        return decision
    return replace(_put(decision, asked, "sent", sent=True), wake={Lane.POLL: pace_s(op)})


@on((*LIVE, *KNOWN_OVER), ReplyUnclear)
def reply_unclear(op: Operation, event: ReplyUnclear) -> Answer:
    decision, asked = _answered(op, event.number, "lost")
    decision = decision.note(event.code, event.why)
    if asked is None or asked.state in ("sent", "unclear") or op.state is not State.INPUT_REQUIRED:
        return decision  # (what the server took stays taken)
    if op.policy.reply_replay == "safe" and asked.sends + 1 < REPLY_SENDS:
        again = _put(decision, asked, "replied", sent=True)
        return replace(again, wake={Lane.ANSWER: backoff_s(asked.sends + 1)})
    return replace(_put(decision, asked, "unclear", sent=True), wake={Lane.POLL: 0.0})


@on((*LIVE, *KNOWN_OVER), ReplyNotSent)
def reply_not_sent(op: Operation, event: ReplyNotSent) -> Answer:
    intent = op.intent("answer")
    if intent is not None and intent.send_token != event.send_token:
        return Refusal("E_INTENT_OPEN", "the open intent is another bearer's: only its holder may withdraw it")
    decision, asked = _answered(op, event.number, "withdrawn")
    if asked is None or op.state is not State.INPUT_REQUIRED:
        return decision
    tries = op.tries + 1
    return replace(decision.having(tries=tries), wake={Lane.ANSWER: backoff_s(tries, event.retry_after_s)})
