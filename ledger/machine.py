"""`decide(operation, event)`: pure and total. One table (state, kind of event) -> one small function.

No clock, no randomness, no I/O: what counts (to three), what waits (seconds left) and what was told before stands in
the operation. The search in tests/ledger/test_machine_search.py walks everything reachable from here.
"""

from . import rules_cancel, rules_read, rules_submit, rules_time
from .decision import Answer, Decision, Refusal
from .events import DeadlineReached, Ended, Event, InputAsked, LookupFound, ResultAtOnce, TaskBound
from .operation import Operation
from .rules import TABLE
from .states import CaseKind, Lane, Outcome, State

RULES = (rules_submit, rules_read, rules_cancel, rules_time)
"""The modules whose rules stand in TABLE; importing them registers the rules."""


def decide(operation: Operation, event: Event) -> Answer:
    """What the ledger does about `event`. Never raises; a pair without a rule is a refusal that says so."""
    if operation.over:
        return _after_the_end(operation, event)
    if operation.parked and isinstance(event, DeadlineReached):
        return rules_time.parked_deadline(operation)
    rule = TABLE.get((operation.state, type(event)))
    if rule is None or (
        event.lane is Lane.POLL and operation.state is State.INPUT_REQUIRED and operation.task_id is None
    ):
        # (A question before a task exists: there is nothing to read.)
        return Refusal("E_NOT_APPLICABLE", f"{type(event).__name__} says nothing to {operation.state}", note=False)
    return rule(operation, event)


def _after_the_end(operation: Operation, event: Event) -> Answer:
    """Evidence after an end never changes a receipt; if something ran and the outcome isn't success, people must
    know."""
    kind = type(event).__name__
    if kind in ("CancelAsked", "VerdictGiven"):
        stands = operation.outcome or operation.settle_as or operation.state
        return Refusal("E_ALREADY_OVER", f"the operation is over: {stands}")
    if operation.outcome is not Outcome.SUCCEEDED and _shows_that_it_ran(operation, event):
        late = "E_LATE_COMPLETION_AFTER_CANCEL" if operation.outcome is Outcome.CANCELLED else "E_LATE_ANSWER"
        why = f"{kind} came after the end; something ran at the server"
        return Decision(operation).case(CaseKind.EFFECT_RECONCILIATION_REQUIRED, late, why)
    return Refusal("E_LATE_EVIDENCE", f"{kind} came after the end")


def _shows_that_it_ran(operation: Operation, event: Event) -> bool:
    if isinstance(event, Ended):
        return event.terminal == "completed" and operation.outcome is Outcome.CANCELLED
    if isinstance(event, TaskBound | LookupFound):
        return event.task_id != operation.task_id
    return isinstance(event, ResultAtOnce | InputAsked)
