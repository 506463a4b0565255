"""Which wake rows a state needs (DESIGN: each transition writes exactly these, in its own transaction).

The values are default delays in seconds; a decision may replace them. A non-terminal operation without a row has an
open case, always: that is the "no orphan" rule of SPEC section 7, and it is searched exhaustively in the tests.
"""

from collections.abc import Callable, Mapping

from .operation import Operation
from .states import TERMINAL, Lane, State

UNKNOWN_BOUND_S = 900.0
"""At 15 minutes an UNKNOWN has a machine's answer or an open case (SPEC section 7)."""

SETTLE_GRACE_S = 2.0
"""The writer of a settlement accepts at once; if it died, its successor comes by this much later."""

AUDIT_FIRST_S = 30.0
"""The first look after an end, also written by accept_terminal."""

SLOW_READ_S = 60.0
"""Pace of reads beside an unconfirmed cancel's case."""


def wakes(operation: Operation) -> Mapping[Lane, float]:
    """Lane -> seconds until it is due, for every row that must exist. Empty: over, or a person has to speak."""
    if operation.state in TERMINAL:
        return _audit(operation)
    if operation.settle_as is not None:
        return {Lane.FETCH: SETTLE_GRACE_S}
    if operation.parked:
        left_s = operation.abandon_left_s
        return {} if left_s is None else {Lane.TIMER: left_s}
    return _NEEDS[operation.state](operation)


def _audit(op: Operation) -> dict[Lane, float]:
    """Looked at in doubling pauses: soon after the end, where a work that runs on shows, and seldom for a key that is
    remembered for days."""
    if op.audit_left_s is None or op.audit_left_s <= 0 or op.audit_s is None:
        return {}
    since_s = op.audit_s - op.audit_left_s
    return {Lane.AUDIT: min(max(since_s, AUDIT_FIRST_S), op.audit_left_s)}


def submit_lane(op: Operation) -> Lane:
    """A call that blocks until it is over has a lane of its own."""
    return Lane.SYNC if op.policy.sync else Lane.SUBMIT


def _submitting(op: Operation) -> dict[Lane, float]:
    intent = op.intent("submit")
    rows = {submit_lane(op): 0.0 if intent is None else max(intent.send_left_s, 0.0)}
    if op.budget_running and op.budget_left_s is not None:
        # A budget that ends while an intent is open is judged when the intent closes (SPEC section 3).
        rows[Lane.TIMER] = max(op.budget_left_s, 0.0 if intent is None else intent.answer_left_s, 0.0)
    return rows


def _budget(op: Operation) -> dict[Lane, float]:
    if op.budget_running and op.budget_left_s is not None:
        return {Lane.TIMER: max(op.budget_left_s, 0.0)}
    return {}


def _submission_unknown(op: Operation) -> dict[Lane, float]:
    intent = op.intent("replay")
    lookup_s = max(op.settle_left_s, 0.0) if intent is None else max(intent.send_left_s, 0.0)
    return {Lane.LOOKUP: lookup_s, Lane.TIMER: UNKNOWN_BOUND_S}


def _input_required(op: Operation) -> dict[Lane, float]:
    rows = _budget(op) if op.input_left_s is None else {Lane.TIMER: max(op.input_left_s, 0.0)}
    if op.task_id is None:
        # The budget rests while a person thinks, but for one that was over when the question came.
        over = op.budget_left_s is not None and op.budget_left_s <= 0
        return {Lane.TIMER: 0.0} if over else rows
    waiting = op.waiting_rounds
    if op.all_replied or not waiting or any(one.state == "unclear" for one in waiting):
        # The server is to go on, to say what it asks, or whether a reply arrived.
        rows[Lane.POLL] = op.policy.clamp_poll_s(op.interval_ms)
    elif op.policy.input_watch_s > 0:
        rows[Lane.POLL] = op.policy.input_watch_s
    intent = op.intent("answer")
    if intent is not None:
        # Whoever sends it may die: the row stays, so that a successor finds the open intent.
        rows[Lane.ANSWER] = max(intent.send_left_s, 0.0)
    elif any(one.state == "replied" for one in waiting):
        rows[Lane.ANSWER] = 0.0
    return rows


def _cancel_requested(op: Operation) -> dict[Lane, float]:
    rows = {
        Lane.POLL: SLOW_READ_S
        if op.has_case("UNKNOWN", "E_CANCEL_UNCONFIRMED")
        else op.policy.clamp_poll_s(op.interval_ms)
    }
    intent = op.intent("cancel")
    if op.cancel_due:
        rows[Lane.CANCEL] = 0.0
    elif intent is not None:
        # Whoever sends it may die: the row stays, so that a successor finds the open intent.
        rows[Lane.CANCEL] = max(intent.send_left_s, 0.0)
    if op.confirm_left_s is not None:
        rows[Lane.TIMER] = max(op.confirm_left_s, 0.0)
    return rows


def _terminal_observed(_op: Operation) -> dict[Lane, float]:
    return {Lane.FETCH: 0.0}


_NEEDS: dict[State, Callable[[Operation], dict[Lane, float]]] = {
    State.SUBMITTING: _submitting,
    State.SUBMISSION_UNKNOWN: _submission_unknown,
    State.NOT_FOUND_SAFE: lambda op: {submit_lane(op): 0.0, **_budget(op)},
    State.WORKING: lambda op: {Lane.POLL: op.policy.clamp_poll_s(op.interval_ms), **_budget(op)},
    State.INPUT_REQUIRED: _input_required,
    State.CANCEL_REQUESTED: _cancel_requested,
    State.TERMINAL_OBSERVED: _terminal_observed,
    State.FETCHING_RESULT: _terminal_observed,
}
