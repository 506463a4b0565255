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

SLOW_READ_S = 60.0
"""Pace of reads beside an unconfirmed cancel's case."""


def wakes(operation: Operation) -> Mapping[Lane, float]:
    """Lane -> seconds until it is due, for every row that must exist. Empty: terminal, or a person has to speak."""
    if operation.state in TERMINAL:
        return {}
    if operation.settle_as is not None:
        return {Lane.FETCH: SETTLE_GRACE_S}
    if operation.parked:
        left_s = operation.abandon_left_s
        return {} if left_s is None else {Lane.TIMER: left_s}
    return _NEEDS[operation.state](operation)


def _submitting(op: Operation) -> dict[Lane, float]:
    intent = op.intent("submit")
    lane = Lane.SYNC if op.policy.sync else Lane.SUBMIT
    rows = {lane: 0.0 if intent is None else max(intent.send_left_s, 0.0)}
    if op.budget_running and op.budget_left_s is not None:
        # A budget that ends while an intent is open is judged when the intent closes (SPEC section 3).
        rows[Lane.TIMER] = max(op.budget_left_s, 0.0 if intent is None else intent.answer_left_s, 0.0)
    return rows


def _submission_unknown(op: Operation) -> dict[Lane, float]:
    return {Lane.LOOKUP: max(op.settle_left_s, 0.0), Lane.TIMER: UNKNOWN_BOUND_S}


def _budget(op: Operation) -> dict[Lane, float]:
    if op.budget_running and op.budget_left_s is not None:
        return {Lane.TIMER: max(op.budget_left_s, 0.0)}
    return {}


def _input_required(op: Operation) -> dict[Lane, float]:
    rows = {Lane.TIMER: max(op.input_left_s or 0.0, 0.0)}
    if op.task_id is not None and op.policy.input_watch_s > 0:
        rows[Lane.POLL] = op.policy.input_watch_s
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
    State.NOT_FOUND_SAFE: lambda op: {Lane.SYNC if op.policy.sync else Lane.SUBMIT: 0.0, **_budget(op)},
    State.WORKING: lambda op: {Lane.POLL: op.policy.clamp_poll_s(op.interval_ms), **_budget(op)},
    State.INPUT_REQUIRED: _input_required,
    State.CANCEL_REQUESTED: _cancel_requested,
    State.TERMINAL_OBSERVED: _terminal_observed,
    State.FETCHING_RESULT: _terminal_observed,
}
