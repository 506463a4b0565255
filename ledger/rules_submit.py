"""Rules of the submit lane: what an answer to a submit, or its absence, means and binds (SPEC sections 1, 2)."""

from dataclasses import replace

from .decision import Answer, Decision, Refusal, Unchanged
from .events import (
    InputAsked,
    IntentOverdue,
    LookupFound,
    RefusedBeforeSubmit,
    Resubmit,
    Result,
    ResultAtOnce,
    SubmitNotProcessed,
    SubmitNotSent,
    SubmitRejected,
    SubmitUnclear,
    TaskBound,
)
from .operation import OpenIntent, Operation
from .rules import (
    BEFORE_TASK,
    KNOWN_OVER,
    LIVE,
    backoff_s,
    cancelled,
    effects_before_task,
    nothing_out,
    on,
    request_cancel,
    unknown,
)
from .rules_result import conclude
from .states import CaseKind, Lane, Outcome, State
from .wakes import submit_lane

WITH_TASK = (*LIVE, *KNOWN_OVER)


def superseded(op: Operation, attempt: int) -> bool:
    """An answer of an earlier attempt while a later one may be out: two remote operations may exist."""
    return attempt < op.sent_attempt or (attempt < op.attempt and op.intent("submit") is not None)


def two_operations(op: Operation, why: str) -> Answer:
    """Two remote operations may exist, and no later answer undoes that: the effects case stays open beside what goes
    on.

    Only where the server makes the key unique the other attempt's answer may still name the same task, which answers
    it.
    """
    may_be_one = op.task_id is None and op.policy.absence == "unique"
    kind = CaseKind.UNKNOWN if may_be_one else CaseKind.EFFECT_RECONCILIATION_REQUIRED
    return Decision(op).case(kind, "E_TWO_OPERATIONS", why)


@on(BEFORE_TASK, TaskBound)
def task_bound(op: Operation, event: TaskBound) -> Answer:
    if not superseded(op, event.attempt):
        return _bind(op, event, Lane.SUBMIT)
    why = f"attempt {event.attempt} was answered with a task while attempt {op.sent_attempt} is out"
    return _first_of_two(op, event, why)


def _first_of_two(op: Operation, event: TaskBound | LookupFound, why: str) -> Answer:
    """Where the server promises that both are one, what is known is bound, so that the second answer can be compared
    with it; the case is open until it says the same."""
    if op.policy.absence != "unique":
        return two_operations(op, why)
    bound = _bind(op, event, event.lane)
    return bound.case(CaseKind.EFFECT_RECONCILIATION_REQUIRED, "E_TWO_OPERATIONS", why)


@on(BEFORE_TASK, LookupFound)
def lookup_found(op: Operation, event: LookupFound) -> Answer:
    if op.intent("submit") is None:
        return _bind(op, event, Lane.LOOKUP)
    return _first_of_two(op, event, f"a late lookup found a task while attempt {op.attempt} is out")


def _bind(op: Operation, event: TaskBound | LookupFound, lane: Lane) -> Decision:
    """WORKING, and in the same transaction CANCEL_REQUESTED when a cancel was remembered."""
    if event.elsewhere:
        effect = "submit" if lane is Lane.SUBMIT else "replay"
        reused = Decision(op).ends(effect, "answered").having(intents=_without(op, effect))
        if op.state is State.SUBMITTING and lane is Lane.SUBMIT:
            reused = reused.move(State.SUBMISSION_UNKNOWN, lane)
        return unknown(
            reused,
            "E_TASK_ID_REUSED",
            f"the server named a task that another open operation holds: {event.task_id[:80]}",
        )
    bound = (
        Decision(op)
        .answered()
        .move(
            State.WORKING,
            lane,
            task_id=event.task_id,
            server_status=event.status,
            remote_created_at=event.created_at,
            ttl_ms=event.ttl_ms,
            interval_ms=event.interval_ms,
            sent_attempt=max(op.sent_attempt, event.attempt if isinstance(event, TaskBound) else 0),
            tries=0,
            auth_tries=0,
            # (A recovered ledger may lack the intent that started it.)
            budget_left_s=op.policy.wait_budget_s if op.budget_left_s is None else op.budget_left_s,
            budget_running=True,
        )
    )
    for effect in ("submit", "replay"):
        if op.intent(effect) is not None:
            bound = bound.ends(effect, "answered").having(intents=_without(bound.operation, effect))
    # The interval is for a work that goes on: of one that is over there is only the end to read.
    bound = replace(bound, wake={Lane.POLL: 0.0 if event.over else op.policy.clamp_poll_s(event.interval_ms)})
    return cancel_if_remembered(bound, lane)


def cancel_if_remembered(bound: Decision, lane: Lane) -> Decision:
    """A cancel that was asked for before the task id was known is sent as soon as the operation is WORKING."""
    op = bound.operation
    if op.cancel_generation == 0 or not op.policy.can_cancel:
        return bound
    why = "a cancel was asked for before the task id was known"
    return request_cancel(replace(bound, why=bound.why or why), lane, raised=True)


def _without(op: Operation, effect: str) -> tuple[OpenIntent, ...]:
    return tuple(intent for intent in op.intents if intent.effect != effect)


@on(WITH_TASK, TaskBound, LookupFound)
def bound_again(op: Operation, event: TaskBound | LookupFound) -> Answer:
    if event.task_id != op.task_id:
        return two_operations(op, "a second task was named for this call")
    kind = CaseKind.EFFECT_RECONCILIATION_REQUIRED
    if isinstance(event, TaskBound) and event.attempt == op.sent_attempt and op.has_case(kind, "E_TWO_OPERATIONS"):
        kept = tuple(case for case in op.cases if case.kind != kind)
        return Decision(op, closes=(kind,)).having(cases=kept)  # both attempts are one
    return Unchanged()


@on(WITH_TASK, ResultAtOnce, InputAsked)
def answered_again(op: Operation, event: ResultAtOnce | InputAsked) -> Answer:
    return two_operations(op, f"attempt {event.attempt} was answered beside the task that is known")


@on(BEFORE_TASK, ResultAtOnce)
def result_at_once(op: Operation, event: ResultAtOnce) -> Answer:
    if superseded(op, event.attempt) and op.policy.absence != "unique":
        return two_operations(
            op, f"attempt {event.attempt} was answered with a result while attempt {op.sent_attempt} is out"
        )
    decision = Decision(op).ends("submit", "answered").having(intents=_without(op, "submit"))
    return ended_at_once(decision, event.terminal, event.result, Lane.SUBMIT)


def ended_at_once(decision: Decision, terminal: str, result: Result, lane: Lane) -> Answer:
    """The call is over without a task: its result is in the answer itself."""
    op = decision.operation
    decision = decision.answered()
    if terminal == "cancelled":
        return decision.move(State.TERMINAL_OBSERVED, lane, server_status="cancelled").settle(
            State.ACCEPTED,
            Outcome.CANCELLED,
            code="E_REMOTE_CANCELLED",
            effects=op.policy.effects,
            terminal="cancelled",
        )
    decision = decision.move(State.TERMINAL_OBSERVED, lane, server_status=terminal, terminal_status=terminal)
    return conclude(decision, result, lane)


@on(BEFORE_TASK, SubmitRejected)
def rejected(op: Operation, event: SubmitRejected) -> Answer:
    """Definite for a first attempt only: on a later one, or beside a replay, it says nothing of the other (SPEC
    section 1)."""
    replayed = op.state is State.SUBMISSION_UNKNOWN and op.policy.lookup == "replay"
    if event.attempt != 1 or op.sent_attempt > 1 or op.state is State.NOT_FOUND_SAFE or replayed:
        return _unclear(
            op, event.attempt, "E_SUBMISSION_UNKNOWN", f"attempt {event.attempt} was rejected with {event.code}"
        )
    decision = Decision(op).ends("submit", "answered").having(intents=_without(op, "submit"))
    return (
        decision.note(event.code, event.why)
        .move(State.TERMINAL_OBSERVED, Lane.SUBMIT)
        .settle(State.ACCEPTED, Outcome.FAILED, code=event.code, effects=False, terminal="failed")
    )


@on((State.SUBMITTING,), SubmitNotProcessed)
def not_processed(op: Operation, event: SubmitNotProcessed) -> Answer:
    if event.attempt != op.attempt:
        return Refusal("E_LATE_EVIDENCE", f"attempt {event.attempt} was not processed; attempt {op.attempt} is open")
    auth_tries = op.auth_tries + 1 if event.auth else op.auth_tries
    unsent = _unsent(op, "not_processed", auth_tries=auth_tries)
    if event.auth and auth_tries >= op.policy.auth_tries:
        return refuse(unsent, "E_AUTH_EXPIRED", "the credential was refused three times")
    return _again(unsent.note(event.code, "the server did not process it"), event.retry_after_s)


@on((State.SUBMISSION_UNKNOWN,), SubmitNotProcessed, SubmitNotSent)
def unsent_late(op: Operation, event: SubmitNotProcessed | SubmitNotSent) -> Answer:
    """A late word that the attempt we gave up on never ran. There is no edge back, so it is kept for the person;
    where a lookup is due the lookup answers, and nobody needs to be asked."""
    if event.attempt != op.sent_attempt or event.attempt != op.attempt:
        return Refusal("E_LATE_EVIDENCE", f"attempt {event.attempt} did not run")
    said = event.code if isinstance(event, SubmitNotProcessed) else event.why
    noted = Decision(op).note("E_SUBMISSION_UNKNOWN", f"a late answer says that the attempt did not run: {said}")
    if op.policy.lookup != "none":
        return noted
    return unknown(noted, "E_SUBMISSION_UNKNOWN", "a late answer says that the attempt did not run")


@on((State.SUBMITTING,), SubmitNotSent)
def not_sent(op: Operation, event: SubmitNotSent) -> Answer:
    if event.attempt != op.attempt:
        return Refusal("E_LATE_EVIDENCE", f"attempt {event.attempt} was not sent; attempt {op.attempt} is open")
    intent = op.intent("submit")
    if intent is not None and intent.send_token != event.send_token:
        return Refusal("E_INTENT_OPEN", "the open intent is another bearer's: only its holder may withdraw it")
    auth_tries = op.auth_tries + 1 if event.auth else op.auth_tries
    unsent = _unsent(op, "withdrawn", auth_tries=auth_tries)
    if event.auth and auth_tries >= op.policy.auth_tries:
        return refuse(unsent, "E_AUTH_EXPIRED", "the credential was refused three times")
    return _again(unsent.note("E_NOT_SENT_YET", event.why), event.retry_after_s)


def _unsent(op: Operation, how: str, **changes: object) -> Decision:
    """The send is taken back: it does not use up the attempt (same attempt, new send token). A leg that was taken back
    leaves the one before it sent."""
    started = op.budget_left_s is None
    taken_back = op.sent_attempt
    if op.intent("submit") is not None and op.leg == 1:
        taken_back = min(op.sent_attempt, op.attempt - 1)
    return (
        Decision(op)
        .ends("submit", how)
        .having(
            sent_attempt=taken_back,
            intents=_without(op, "submit"),
            tries=op.tries + 1,
            # A target that never lets us connect must not hold a call for ever, so the budget starts here at the
            # latest.
            budget_left_s=op.policy.wait_budget_s if started else op.budget_left_s,
            budget_running=True,
            **changes,
        )
    )


def _again(decision: Decision, retry_after_s: float | None) -> Decision:
    """Same key, back off, inside the budget; a remembered cancel or an ended budget ends it now, since nothing ran."""
    op = decision.operation
    if op.cancel_generation > 0:
        return cancelled(decision, effects=effects_before_task(op))
    if op.budget_left_s is not None and op.budget_left_s <= 0:
        return over_budget_unsent(decision, Lane.SUBMIT)
    return replace(decision, wake={submit_lane(op): backoff_s(op.tries, retry_after_s)})


def over_budget_unsent(decision: Decision, lane: Lane) -> Decision:
    """The budget is over and the current send never left: E_NEVER_SENT, E_NOT_RESUBMITTED after a first attempt, or
    E_WAIT_BUDGET_EXHAUSTED after a leg of this one."""
    op = decision.operation
    if 0 < op.sent_attempt < op.attempt:
        return refuse(decision, "E_NOT_RESUBMITTED", "the wait budget ended before the second attempt was sent")
    if op.sent_attempt > 0:
        code, why = "E_WAIT_BUDGET_EXHAUSTED", "the wait budget ended before the next leg was sent"
    else:
        code, why = "E_NEVER_SENT", "the wait budget ended and nothing was ever sent"
    return (
        decision.note(code, why)
        .move(State.TERMINAL_OBSERVED, lane)
        .settle(State.ACCEPTED, Outcome.FAILED, code=code, effects=effects_before_task(op), terminal="failed")
    )


def refuse(decision: Decision, code: str, why: str) -> Decision:
    """REFUSED while nothing is out. Of a later attempt it is told that it was not sent, whatever stood in its way."""
    op = decision.operation
    if op.attempt > 1 or op.state is State.NOT_FOUND_SAFE:
        code = "E_NOT_RESUBMITTED"
    return decision.note(code, why).settle(
        State.REFUSED, Outcome.REFUSED, code=code, effects=effects_before_task(op), terminal="refused"
    )


@on((State.SUBMITTING, State.NOT_FOUND_SAFE), RefusedBeforeSubmit)
def refused_before_submit(op: Operation, event: RefusedBeforeSubmit) -> Answer:
    if op.state is State.SUBMITTING and not nothing_out(op):
        return Refusal("E_INTENT_OPEN", "a submit may be on its way; its answer decides")
    if op.cancel_generation > 0:
        return cancelled(Decision(op), effects=effects_before_task(op))
    return refuse(Decision(op), event.code, event.why)


@on(BEFORE_TASK, SubmitUnclear)
def unclear(op: Operation, event: SubmitUnclear) -> Answer:
    return _unclear(op, event.attempt, event.code, event.why)


@on((State.SUBMITTING,), IntentOverdue)
def intent_overdue(op: Operation, event: IntentOverdue) -> Answer:
    """Past `send_by` with the lease lost, or past `answer_by`, and no evidence: nobody knows (SPEC section 1)."""
    intent = op.intent("submit")
    if intent is None:
        return Unchanged()
    if intent.send_left_s > 0:
        return Decision(op, wake={submit_lane(op): intent.send_left_s})
    return _unclear(op, intent.attempt, "E_SUBMISSION_UNKNOWN", "the worker that sent it left no answer")


def _unclear(op: Operation, attempt: int, code: str, why: str) -> Answer:
    if op.state is State.NOT_FOUND_SAFE or (attempt < op.attempt and op.state is State.SUBMITTING):
        return Refusal("E_LATE_EVIDENCE", f"attempt {attempt}: {why}")
    decision = Decision(op).note(code, why)
    if op.state is State.SUBMITTING:
        decision = decision.move(State.SUBMISSION_UNKNOWN, Lane.SUBMIT, tries=0)
    if op.intent("submit") is not None:
        decision = decision.ends("submit", "lost").having(intents=_without(op, "submit"))
    if op.policy.lookup == "none" or code == "E_KEY_REUSED_DIFFERENT_REQUEST":
        return unknown(decision, code, why)
    return decision


@on((State.SUBMITTING,), Resubmit)
def submit_unsent(op: Operation, event: Resubmit) -> Answer:
    """A cancel was remembered beside evidence that has been read since: nothing is out, and nothing will be sent."""
    if op.cancel_generation == 0 or not nothing_out(op):
        return Unchanged()
    return cancelled(Decision(op), effects=effects_before_task(op))


@on((State.NOT_FOUND_SAFE,), Resubmit)
def resubmit(op: Operation, event: Resubmit) -> Answer:
    if op.cancel_generation > 0:
        return cancelled(Decision(op), effects=effects_before_task(op))
    if op.attempt >= op.policy.max_attempts:
        return unknown(Decision(op), "E_SUBMISSION_UNKNOWN", f"{op.attempt} attempts were made")
    again = Decision(op, wake={submit_lane(op): 0.0})
    return again.move(State.SUBMITTING, Lane.SUBMIT, attempt=op.attempt + 1, tries=0)
