"""Rules of the submit and lookup lanes: what an answer, its absence or a lookup means (SPEC sections 1, 2, 7)."""

from dataclasses import replace

from .decision import Answer, Decision, Refusal, Unchanged
from .events import (
    InputAsked,
    IntentOverdue,
    LookupAbsent,
    LookupFound,
    LookupUnsure,
    RefusedBeforeSubmit,
    Resubmit,
    ResultAtOnce,
    SubmitNotProcessed,
    SubmitNotSent,
    SubmitRejected,
    SubmitUnclear,
    TaskBound,
)
from .operation import Operation
from .rules import backoff_s, effects_after_absence, on, request_cancel, unknown
from .rules_result import conclude
from .states import CaseKind, Lane, Outcome, State

BEFORE_TASK = (State.SUBMITTING, State.SUBMISSION_UNKNOWN, State.NOT_FOUND_SAFE)
WITH_TASK = (
    State.WORKING,
    State.INPUT_REQUIRED,
    State.CANCEL_REQUESTED,
    State.TERMINAL_OBSERVED,
    State.FETCHING_RESULT,
)


def _superseded(op: Operation, attempt: int) -> bool:
    """An answer of an earlier attempt while a later one may be out: two remote operations may exist."""
    return attempt < op.sent_attempt or (attempt < op.attempt and op.intent("submit") is not None)


def _two_operations(op: Operation, why: str) -> Answer:
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
    if _superseded(op, event.attempt):
        return _two_operations(
            op, f"attempt {event.attempt} was answered with a task while attempt {op.sent_attempt} is out"
        )
    return _bind(op, event, Lane.SUBMIT)


@on(BEFORE_TASK, LookupFound)
def lookup_found(op: Operation, event: LookupFound) -> Answer:
    if op.intent("submit") is not None:
        return _two_operations(op, f"a late lookup found a task while attempt {op.attempt} is out")
    return _bind(op, event, Lane.LOOKUP)


def _bind(op: Operation, event: TaskBound | LookupFound, lane: Lane) -> Decision:
    """WORKING, and in the same transaction CANCEL_REQUESTED when a cancel was remembered."""
    if event.elsewhere:
        reused = Decision(op).ends("submit", "answered").having(intents=_without_submit(op))
        if op.state is State.SUBMITTING and lane is Lane.SUBMIT:
            reused = reused.move(State.SUBMISSION_UNKNOWN, lane)
        return unknown(
            reused,
            "E_TASK_ID_REUSED",
            f"the server named a task that another open operation holds: {event.task_id[:80]}",
        )
    bound = Decision(op, closes=("UNKNOWN",)).move(
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
        cases=tuple(case for case in op.cases if case.kind != "UNKNOWN"),
    )
    if op.intent("submit") is not None:
        bound = bound.ends("submit", "answered").having(intents=_without_submit(op))
    bound = replace(bound, wake={Lane.POLL: op.policy.clamp_poll_s(event.interval_ms)})
    return cancel_if_remembered(bound, lane)


def cancel_if_remembered(bound: Decision, lane: Lane) -> Decision:
    """A cancel that was asked for before the task id was known is sent as soon as the operation is WORKING."""
    op = bound.operation
    if op.cancel_generation == 0 or not op.policy.can_cancel:
        return bound
    cancel = request_cancel(op, lane, None, "a cancel was asked for before the task id was known")
    return replace(
        cancel.having(cancel_generation=op.cancel_generation),
        steps=(*bound.steps, *cancel.steps),
        intent=bound.intent,
        closes=bound.closes,
    )


def _without_submit(op: Operation) -> tuple:  # type: ignore[type-arg]
    return tuple(intent for intent in op.intents if intent.effect != "submit")


@on(WITH_TASK, TaskBound, LookupFound)
def bound_again(op: Operation, event: TaskBound | LookupFound) -> Answer:
    if event.task_id == op.task_id:
        return Unchanged()
    return _two_operations(op, "a second task was named for this call")


@on(WITH_TASK, ResultAtOnce, InputAsked)
def answered_again(op: Operation, event: ResultAtOnce | InputAsked) -> Answer:
    return _two_operations(op, f"attempt {event.attempt} was answered beside the task that is known")


@on(BEFORE_TASK, ResultAtOnce)
def result_at_once(op: Operation, event: ResultAtOnce) -> Answer:
    if _superseded(op, event.attempt):
        return _two_operations(
            op, f"attempt {event.attempt} was answered with a result while attempt {op.sent_attempt} is out"
        )
    decision = (
        Decision(op, closes=("UNKNOWN",)).ends("submit", "answered").having(intents=_without_submit(op), cases=())
    )
    if event.terminal == "cancelled":
        return decision.move(State.TERMINAL_OBSERVED, Lane.SUBMIT, server_status="cancelled").settle(
            State.ACCEPTED,
            Outcome.CANCELLED,
            code="E_REMOTE_CANCELLED",
            effects=op.policy.effects,
            terminal="cancelled",
        )
    decision = decision.move(
        State.TERMINAL_OBSERVED, Lane.SUBMIT, server_status=event.terminal, terminal_status=event.terminal
    )
    return conclude(decision, event.result, Lane.SUBMIT)


@on(BEFORE_TASK, InputAsked)
def input_asked(op: Operation, event: InputAsked) -> Answer:
    if op.state is not State.SUBMITTING or _superseded(op, event.attempt):
        return unknown(
            Decision(op), "E_SUBMISSION_UNKNOWN", "the server asked for input on an attempt that is no longer open"
        )
    return (
        Decision(op)
        .ends("submit", "answered")
        .move(
            State.INPUT_REQUIRED,
            Lane.SUBMIT,
            input_round=op.input_round + 1,
            input_digest=event.digest,
            input_left_s=op.policy.input_deadline_s,
            budget_running=False,
            intents=_without_submit(op),
        )
    )


@on(BEFORE_TASK, SubmitRejected)
def rejected(op: Operation, event: SubmitRejected) -> Answer:
    """Definite for a first attempt only: on a later one it says nothing of the first (SPEC section 1)."""
    if event.attempt != 1 or op.sent_attempt > 1 or op.state is State.NOT_FOUND_SAFE:
        return _unclear(
            op, event.attempt, "E_SUBMISSION_UNKNOWN", f"attempt {event.attempt} was rejected with {event.code}"
        )
    decision = (
        Decision(op, closes=("UNKNOWN",)).ends("submit", "answered").having(intents=_without_submit(op), cases=())
    )
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
        return _refuse(unsent, "E_AUTH_EXPIRED", "the credential was refused three times")
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
        return _refuse(unsent, "E_AUTH_EXPIRED", "the credential was refused three times")
    return _again(unsent.note("E_NOT_SENT_YET", event.why), event.retry_after_s)


def _unsent(op: Operation, how: str, **changes: object) -> Decision:
    """The send is taken back: it does not use up the attempt (same attempt, new send token)."""
    started = op.budget_left_s is None
    taken_back = op.sent_attempt if op.intent("submit") is None else min(op.sent_attempt, op.attempt - 1)
    return (
        Decision(op)
        .ends("submit", how)
        .having(
            sent_attempt=taken_back,
            intents=_without_submit(op),
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
    if op.cancel_generation > 0 and op.sent_attempt == 0:
        return decision.settle(State.CANCELLED_ACCEPTED, Outcome.CANCELLED, effects=False, terminal="cancelled")
    if op.budget_left_s is not None and op.budget_left_s <= 0:
        return over_budget_unsent(decision, Lane.SUBMIT)
    return replace(decision, wake={Lane.SUBMIT: backoff_s(op.tries, retry_after_s)})


def over_budget_unsent(decision: Decision, lane: Lane) -> Decision:
    """The budget is over and the current attempt never left: E_NEVER_SENT, or E_NOT_RESUBMITTED after a first
    attempt."""
    op = decision.operation
    if op.sent_attempt > 0:
        return _refuse(decision, "E_NOT_RESUBMITTED", "the wait budget ended before the second attempt was sent")
    return (
        decision.note("E_NEVER_SENT", "the wait budget ended and nothing was ever sent")
        .move(State.TERMINAL_OBSERVED, lane)
        .settle(State.ACCEPTED, Outcome.FAILED, code="E_NEVER_SENT", effects=False, terminal="failed")
    )


def _refuse(decision: Decision, code: str, why: str) -> Decision:
    op = decision.operation
    if op.sent_attempt > 0:
        code = "E_NOT_RESUBMITTED"
    return decision.note(code, why).settle(
        State.REFUSED, Outcome.REFUSED, code=code, effects=effects_after_absence(op), terminal="refused"
    )


@on((State.SUBMITTING, State.NOT_FOUND_SAFE), RefusedBeforeSubmit)
def refused_before_submit(op: Operation, event: RefusedBeforeSubmit) -> Answer:
    if op.intent("submit") is not None:
        return Refusal("E_INTENT_OPEN", "a submit may be on its way; its answer decides")
    return _refuse(Decision(op), event.code, event.why)


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
        return Decision(op, wake={Lane.SUBMIT: intent.send_left_s})
    return _unclear(op, intent.attempt, "E_SUBMISSION_UNKNOWN", "the worker that sent it left no answer")


def _unclear(op: Operation, attempt: int, code: str, why: str) -> Answer:
    if op.state is State.NOT_FOUND_SAFE or (attempt < op.attempt and op.state is State.SUBMITTING):
        return Refusal("E_LATE_EVIDENCE", f"attempt {attempt}: {why}")
    decision = Decision(op).note(code, why)
    if op.state is State.SUBMITTING:
        decision = decision.move(State.SUBMISSION_UNKNOWN, Lane.SUBMIT, tries=0)
    if op.intent("submit") is not None:
        decision = decision.ends("submit", "lost").having(intents=_without_submit(op))
    if op.policy.lookup == "none" or code == "E_KEY_REUSED_DIFFERENT_REQUEST":
        return unknown(decision, code, why)
    return decision


# -- lookup ----------------------------------------------------------------------------------------------------------


@on((State.SUBMISSION_UNKNOWN,), LookupAbsent)
def lookup_absent(op: Operation, event: LookupAbsent) -> Answer:
    """Absence counts only with its proof, after the last `send_by` and the settle window by the ledger's clock (SPEC
    section 7)."""
    if op.settle_left_s > 0:
        return Decision(op, wake={Lane.LOOKUP: op.settle_left_s})
    proven = op.policy.absence in ("unique", "closes") or (op.policy.absence == "bounded" and op.policy.bounded_allowed)
    if not (event.authoritative and proven):
        return unknown(Decision(op), "E_SUBMISSION_UNKNOWN", "the lookup found nothing, which proves nothing here")
    return (
        Decision(op, closes=("UNKNOWN",))
        .case(CaseKind.NEVER_CREATED, "E_SUBMISSION_UNKNOWN", "the server holds nothing under the key", closed=True)
        .move(State.NOT_FOUND_SAFE, Lane.LOOKUP, tries=0, cases=())
    )


LOOKUP_TRIES = 5


@on((State.SUBMISSION_UNKNOWN,), LookupUnsure)
def lookup_unsure(op: Operation, event: LookupUnsure) -> Answer:
    tries = op.tries + 1
    decision = Decision(op).having(tries=tries)
    if tries >= LOOKUP_TRIES:
        return unknown(decision, event.code, event.why)
    return replace(decision, wake={Lane.LOOKUP: backoff_s(tries)})


@on((State.NOT_FOUND_SAFE,), Resubmit)
def resubmit(op: Operation, event: Resubmit) -> Answer:
    if op.cancel_generation > 0:
        return Decision(op).settle(
            State.CANCELLED_ACCEPTED, Outcome.CANCELLED, effects=effects_after_absence(op), terminal="cancelled"
        )
    if op.attempt >= op.policy.max_attempts:
        return unknown(Decision(op), "E_SUBMISSION_UNKNOWN", f"{op.attempt} attempts were made")
    return Decision(op, wake={Lane.SUBMIT: 0.0}).move(State.SUBMITTING, Lane.SUBMIT, attempt=op.attempt + 1, tries=0)
