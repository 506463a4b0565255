"""Rules of the timer lane and of people: deadlines, quarantine, verdicts (SPEC sections 3, 4, 5, 7)."""

from .decision import Answer, Decision, Refusal, Unchanged
from .events import DeadlineReached, Quarantined, VerdictGiven
from .operation import Operation
from .rules import effects_after_absence, effects_before_task, on, request_cancel, unknown
from .rules_submit import cancel_if_remembered, over_budget_unsent
from .states import OPEN, Lane, Outcome, State


def _budget_over(op: Operation) -> bool:
    return op.budget_running and op.budget_left_s is not None and op.budget_left_s <= 0


@on((State.SUBMITTING,), DeadlineReached)
def submitting_deadline(op: Operation, event: DeadlineReached) -> Answer:
    if not _budget_over(op):
        return Unchanged()
    intent = op.intent("submit")
    if intent is not None:
        return Decision(op, wake={Lane.TIMER: max(intent.answer_left_s, 1.0)})
    return over_budget_unsent(Decision(op).having(budget_running=False), Lane.TIMER)


@on((State.SUBMISSION_UNKNOWN,), DeadlineReached)
def unknown_deadline(op: Operation, event: DeadlineReached) -> Answer:
    return unknown(Decision(op), "E_SUBMISSION_UNKNOWN", "nothing told in 15 minutes what became of the submit")


@on((State.NOT_FOUND_SAFE,), DeadlineReached)
def not_found_safe_deadline(op: Operation, event: DeadlineReached) -> Answer:
    if not _budget_over(op):
        return Unchanged()
    return (
        Decision(op)
        .note("E_NOT_RESUBMITTED", "the wait budget ended before the second attempt")
        .settle(
            State.REFUSED,
            Outcome.REFUSED,
            code="E_NOT_RESUBMITTED",
            effects=effects_after_absence(op),
            terminal="refused",
        )
    )


@on((State.WORKING,), DeadlineReached)
def working_deadline(op: Operation, event: DeadlineReached) -> Answer:
    if not _budget_over(op):
        return Unchanged()
    code, why = "E_WAIT_BUDGET_EXHAUSTED", f"waited {op.policy.wait_budget_s:g} s"
    if op.policy.on_budget == "cancel" and op.policy.can_cancel:
        return request_cancel(op, Lane.TIMER, code, why)
    return unknown(Decision(op).having(budget_running=False).note(code, why), code, why)


@on((State.INPUT_REQUIRED,), DeadlineReached)
def input_deadline(op: Operation, event: DeadlineReached) -> Answer:
    if op.task_id is None and op.budget_left_s is not None and op.budget_left_s <= 0:
        return (
            Decision(op)
            .note("E_WAIT_BUDGET_EXHAUSTED", "the wait budget ended while a question was open and no task existed")
            .move(State.TERMINAL_OBSERVED, Lane.TIMER)
            .settle(
                State.ACCEPTED,
                Outcome.FAILED,
                code="E_WAIT_BUDGET_EXHAUSTED",
                effects=effects_before_task(op),
                terminal="failed",
            )
        )
    if op.input_left_s is None or op.input_left_s > 0:
        return Unchanged()
    code, why = "E_INPUT_DEADLINE", "nobody answered in time"
    if op.policy.on_input_deadline == "reconcile" or (op.task_id is not None and not op.policy.can_cancel):
        return unknown(Decision(op).note(code, why), code, why)
    if op.task_id is not None:
        return request_cancel(op, Lane.TIMER, code, why)
    raised = Decision(op).having(cancel_generation=op.cancel_generation + 1).note(code, why)
    return raised.settle(
        State.CANCELLED_ACCEPTED, Outcome.CANCELLED, code=code, effects=effects_before_task(op), terminal="cancelled"
    )


@on((State.CANCEL_REQUESTED,), DeadlineReached)
def cancel_deadline(op: Operation, event: DeadlineReached) -> Answer:
    """No end seen in time: a person is told, reading goes on slowly."""
    if op.confirm_left_s is None or op.confirm_left_s > 0:
        return Unchanged()
    code = "E_CANCEL_UNCONFIRMED"
    return unknown(
        Decision(op).having(confirm_left_s=None), code, f"no end seen {op.policy.cancel_confirm_s:g} s after the cancel"
    )


@on((State.TERMINAL_OBSERVED, State.FETCHING_RESULT), DeadlineReached)
def nothing_due(op: Operation, event: DeadlineReached) -> Answer:
    return Unchanged()


def parked_deadline(op: Operation) -> Answer:
    """Nobody spoke in time and the tool changes nothing outside: closed without a person, no reason to run again."""
    left_s = op.abandon_left_s
    if left_s is None:
        return Unchanged()
    if left_s > 0:
        return Decision(op, wake={Lane.TIMER: left_s})
    asked = Decision(op, closes=tuple({case.kind for case in op.cases})).having(cases=())
    why = f"on_unknown: abandon, after {op.policy.on_unknown_after_s:g} s"
    return asked.note("E_ABANDONED", why).settle(State.ACCEPTED, Outcome.ABANDONED, code="E_ABANDONED", effects=False)


@on(sorted(OPEN), Quarantined)
def quarantined(op: Operation, event: Quarantined) -> Answer:
    """One hostile row must not take its bearers down for ever: it waits for a person, alone."""
    return unknown(Decision(op), "E_QUARANTINED", f"five claims in a row ended without an outcome ({event.where})")


@on(sorted(OPEN), VerdictGiven)
def verdict(op: Operation, event: VerdictGiven) -> Answer:
    if not op.cases:
        return Refusal("E_NO_CASE", "no case is open on this operation", note=False)
    closing = Decision(op, closes=tuple({case.kind for case in op.cases})).having(cases=())
    if event.verdict == "give_up":
        return closing.settle(State.ACCEPTED, Outcome.ABANDONED, code="E_ABANDONED", effects=True)
    if op.state is not State.SUBMISSION_UNKNOWN:
        return Refusal("E_VERDICT_NOT_OFFERED", f"{event.verdict} is no answer to a case in {op.state}", note=False)
    if event.verdict == "never_created":
        return closing.settle(State.ACCEPTED, Outcome.FAILED, code="E_NOT_SENT_BY_VERDICT", effects=True)
    if not event.task_id:
        return Refusal("E_VERDICT_INCOMPLETE", "a bind needs the task id", note=False)
    bound = closing.move(State.WORKING, Lane.DOOR, task_id=event.task_id, budget_running=op.budget_left_s is not None)
    return cancel_if_remembered(bound, Lane.DOOR)
