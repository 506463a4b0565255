"""`decide(operation, event)`: pure and total. One table (state, kind of event) -> one small function.

No clock, no randomness, no I/O: what counts (to three), what waits (seconds left) and what was told before stands in
the operation. The search in tests/ledger/test_machine_search.py walks everything reachable from here.
"""

from . import rules_cancel, rules_input, rules_lookup, rules_people, rules_read, rules_submit, rules_time
from .decision import Answer, Decision, Refusal, Unchanged
from .events import (
    AccessDenied,
    AnswerRefused,
    CancelAsked,
    DeadlineReached,
    Ended,
    Event,
    Hinted,
    InputAsked,
    InputRequested,
    LookupAbsent,
    LookupDenied,
    LookupFound,
    LookupOver,
    LookupUnsure,
    Progressed,
    ReadFailed,
    ReplyGiven,
    ResultAtOnce,
    ResultFetched,
    SessionRenewed,
    TaskBound,
    TaskNotFound,
    VerdictGiven,
)
from .operation import Operation
from .rules import TABLE, unknown
from .states import CaseKind, Lane, Outcome, State

RULES = (rules_submit, rules_lookup, rules_read, rules_input, rules_cancel, rules_time, rules_people)
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
    if isinstance(event, CancelAsked | VerdictGiven | ReplyGiven):
        return _asked_after_the_end(operation, event)
    if isinstance(event, Hinted):
        return _hint_after_the_end(operation, event)
    if isinstance(event, TaskNotFound):
        # With the receipt in hand nothing is asked for any more: the server may forget the task (SPEC section 7).
        forgotten = CaseKind.EXPIRED_WITH_RECEIPT
        noted = Decision(operation).having(audit_left_s=None)
        return noted.case(forgotten, "E_OPERATION_UNKNOWN", "the server forgot the task after its end", closed=True)
    if operation.outcome is not Outcome.SUCCEEDED and _shows_that_it_ran(operation, event):
        late = "E_LATE_COMPLETION_AFTER_CANCEL" if operation.outcome is Outcome.CANCELLED else "E_LATE_ANSWER"
        why = f"{kind} came after the end; something ran at the server"
        known = Decision(operation).having(audit_left_s=None)
        return known.case(CaseKind.EFFECT_RECONCILIATION_REQUIRED, late, why)
    if _differs(operation, event):
        return unknown(Decision(operation), "E_RESULT_DIGEST_CONFLICT", "a second reading of the result differs")
    if isinstance(event, LookupAbsent) and event.authoritative and operation.policy.absence == "closes":
        return Decision(operation).having(audit_left_s=None)  # it can't come any more: nothing more to look for
    if isinstance(event, Ended) and operation.audit_left_s is not None:
        return Unchanged()  # as the receipt says, so far: a work that runs on may still overwrite it
    if isinstance(event, SessionRenewed):
        return Decision(operation).having(session_id=event.session_id)
    if isinstance(event, Progressed | InputRequested) and operation.terminal_status in SERVER_ENDS:
        return Refusal("E_STATUS_REGRESSED", f"{event.status} after {operation.terminal_status}")
    if isinstance(event, _SAYS_NOTHING):
        return Unchanged()
    return Refusal("E_LATE_EVIDENCE", f"{kind} came after the end")


SERVER_ENDS = frozenset({"completed", "failed", "cancelled"})
"""Terminal words of a server; ends that are ours alone leave none."""

_SAYS_NOTHING = (
    AccessDenied,
    AnswerRefused,
    DeadlineReached,
    InputRequested,
    LookupAbsent,
    LookupDenied,
    LookupUnsure,
    Progressed,
    ReadFailed,
)
"""What an audit may hear without being any wiser."""


def _asked_after_the_end(operation: Operation, event: CancelAsked | VerdictGiven | ReplyGiven) -> Answer:
    if isinstance(event, VerdictGiven) and operation.cases:
        return rules_people.verdict(operation, event)
    if isinstance(event, ReplyGiven):
        return Refusal("E_INPUT_ROUND_CLOSED", f"reply for round {event.number} refused; the operation is over")
    return Refusal("E_ALREADY_OVER", f"the operation is over: {operation.outcome}")


def _hint_after_the_end(operation: Operation, event: Hinted) -> Answer:
    """After a won cancel a hint alone opens the effects case: whatever it proves, a person should look."""
    if operation.outcome is Outcome.CANCELLED and event.status == "completed":
        late, why = "E_LATE_COMPLETION_AFTER_CANCEL", "a notification says that the task completed after the cancel"
        return Decision(operation).case(CaseKind.EFFECT_RECONCILIATION_REQUIRED, late, why)
    return Unchanged()


def _shows_that_it_ran(operation: Operation, event: Event) -> bool:
    if isinstance(event, Ended):
        # Whatever it ended with, it went on after the cancel.
        return event.terminal != "cancelled" and operation.outcome is Outcome.CANCELLED
    if isinstance(event, TaskBound | LookupFound):
        return event.task_id != operation.task_id
    if isinstance(event, ResultAtOnce | LookupOver):
        same = event.result.value_digest == operation.result_value_digest
        return not (same and event.terminal == operation.server_status)
    return isinstance(event, InputAsked)


def _differs(operation: Operation, event: Event) -> bool:
    """Another value under the result that was accepted. The first one stored stands."""
    result = event.result if isinstance(event, ResultFetched | Ended | ResultAtOnce | LookupOver) else None
    known = operation.result_value_digest
    return result is not None and None not in (known, result.value_digest) and known != result.value_digest
