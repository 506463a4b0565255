"""Rules of the timer lane: deadlines, budgets, quarantine (SPEC sections 3, 4, 5, 7)."""

from dataclasses import replace

from .decision import Answer, Decision, Unchanged
from .events import DeadlineReached, Quarantined
from .operation import Operation
from .rules import cancelled, effects_before_task, on, request_cancel, unknown
from .rules_submit import over_budget_unsent, refuse
from .states import OPEN, Lane, Outcome, State
from .wakes import SLOW_READ_S

BESIDE_S = 5.0
"""How much later a timer comes again that leaves the end to another lane."""


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
    if op.cancel_generation > 0:
        return Decision(op, wake={Lane.TIMER: BESIDE_S})  # the submit lane is due, and ends what was cancelled
    return refuse(Decision(op), "E_NOT_RESUBMITTED", "the wait budget ended before the second attempt")


@on((State.WORKING,), DeadlineReached)
def working_deadline(op: Operation, event: DeadlineReached) -> Answer:
    return _budget_ends(op) if _budget_over(op) else Unchanged()


def _budget_ends(op: Operation) -> Answer:
    code, why = "E_WAIT_BUDGET_EXHAUSTED", f"waited {op.policy.wait_budget_s:g} s"
    if op.policy.on_budget == "cancel" and op.policy.can_cancel:
        return request_cancel(Decision(op).note(code, why), Lane.TIMER)
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
    if op.task_id is not None and op.input_left_s is None and _budget_over(op):
        return _budget_ends(op)  # everything was replied to, and the task does not go on
    if op.input_left_s is None or op.input_left_s > 0:
        return Unchanged()
    code, why = "E_INPUT_DEADLINE", "nobody answered in time"
    if op.policy.on_input_deadline == "reconcile" or (op.task_id is not None and not op.policy.can_cancel):
        return unknown(Decision(op).note(code, why), code, why)
    if op.task_id is not None:
        return request_cancel(Decision(op).note(code, why), Lane.TIMER)
    raised = Decision(op).having(cancel_generation=op.cancel_generation + 1).note(code, why)
    return cancelled(raised, effects=effects_before_task(op), code=code)


@on((State.CANCEL_REQUESTED,), DeadlineReached)
def cancel_deadline(op: Operation, event: DeadlineReached) -> Answer:
    """No end seen in time: a person is told, reading goes on slowly."""
    if op.confirm_left_s is None or op.confirm_left_s > 0:
        return Unchanged()
    code = "E_CANCEL_UNCONFIRMED"
    why = f"no end seen {op.policy.cancel_confirm_s:g} s after the cancel"
    # Whoever reads it now goes by the pace of before.
    return replace(unknown(Decision(op).having(confirm_left_s=None), code, why), wake={Lane.POLL: SLOW_READ_S})


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
    given_up = Decision(op).note("E_ABANDONED", f"on_unknown: abandon, after {op.policy.on_unknown_after_s:g} s")
    return given_up.settle(State.ACCEPTED, Outcome.ABANDONED, code="E_ABANDONED", effects=False)


@on(sorted(OPEN), Quarantined)
def quarantined(op: Operation, event: Quarantined) -> Answer:
    """One hostile row must not take its bearers down for ever: it waits for a person, alone."""
    return unknown(Decision(op), "E_QUARANTINED", f"five claims in a row ended without an outcome ({event.where})")
