"""What the rules of the machine are made of: the table they register in, and the moves that several of them make."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from .decision import Answer, Decision
from .operation import Operation
from .states import CaseKind, Lane, State

Rule = Callable[[Operation, Any], Answer]
TABLE: dict[tuple[State, type], Rule] = {}
R = TypeVar("R", bound=Rule)

BACKOFF_MAX_S = 60.0
RETRY_AFTER_MAX_S = 3600.0
"""A server may close itself for an hour at most; a Retry-After of 1e9 s would shut a target for years."""


def on(states: Iterable[State], *kinds: type) -> Callable[[R], R]:
    """Register a rule for states and event kinds. A pair has exactly one rule."""

    def register(rule: R) -> R:
        for state in states:
            for kind in kinds:
                if (state, kind) in TABLE:
                    raise ValueError(f"two rules for {state} x {kind.__name__}")
                TABLE[state, kind] = rule
        return rule

    return register


def backoff_s(failures: int, retry_after_s: float | None = None) -> float:
    """Exponential from 1 s, at most a minute, never sooner than the server asked (clamped to an hour)."""
    wait_s = min(2.0 ** min(max(failures - 1, 0), 10), BACKOFF_MAX_S)
    if retry_after_s is None:
        return wait_s
    return max(wait_s, min(max(retry_after_s, 0.0), RETRY_AFTER_MAX_S))


def unknown(decision: Decision, code: str, why: str) -> Decision:
    """Ask a person."""
    return decision.case(CaseKind.UNKNOWN, code, why)


def request_cancel(operation: Operation, lane: Lane, code: str | None, why: str) -> Decision:
    """CANCEL_REQUESTED under the row lock, before anything is sent (SPEC section 5)."""
    decision = Decision(operation, code=code, why=why).move(
        State.CANCEL_REQUESTED,
        lane,
        cancel_generation=operation.cancel_generation + 1,
        cancel_due=True,
        cancel_sends=0,
        cancel_acked=False,
        confirm_left_s=operation.policy.cancel_confirm_s,
        input_left_s=None,
        budget_running=False,
    )
    return Decision(
        decision.operation,
        decision.steps,
        {Lane.CANCEL: 0.0},
        code=decision.code,
        why=decision.why,
        closes=("UNKNOWN",),
    )


def effects_after_absence(operation: Operation) -> bool:
    """An end that says "nothing ran" after a send needs `closes`; everything else leaves effects possible (SPEC
    section 7)."""
    return operation.sent_attempt > 0 and operation.policy.absence != "closes"


def effects_before_task(operation: Operation) -> bool:
    """A question before a task says that nothing of this attempt runs; an earlier attempt needs `closes` all the
    same."""
    return operation.attempt > 1 and operation.policy.absence != "closes"
