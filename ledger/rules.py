"""What the rules of the machine are made of: the table they register in, and the moves that several of them make."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from .decision import Answer, Decision
from .events import InputRequested, Progressed
from .operation import Operation
from .states import CaseKind, Lane, Outcome, State
from .wakes import wakes

Rule = Callable[[Operation, Any], Answer]
TABLE: dict[tuple[State, type], Rule] = {}
R = TypeVar("R", bound=Rule)

BEFORE_TASK = (State.SUBMITTING, State.SUBMISSION_UNKNOWN, State.NOT_FOUND_SAFE)
LIVE = (State.WORKING, State.INPUT_REQUIRED, State.CANCEL_REQUESTED)
KNOWN_OVER = (State.TERMINAL_OBSERVED, State.FETCHING_RESULT)

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


def request_cancel(decision: Decision, lane: Lane, *, raised: bool = False) -> Decision:
    """CANCEL_REQUESTED under the row lock, before anything is sent (SPEC section 5). `raised`: its generation was
    raised when it was asked for."""
    op = decision.operation
    requested = decision.answered().move(
        State.CANCEL_REQUESTED,
        lane,
        cancel_generation=op.cancel_generation + (0 if raised else 1),
        cancel_due=True,
        cancel_sends=0,
        cancel_acked=False,
        confirm_left_s=op.policy.cancel_confirm_s,
        input_left_s=None,
        budget_running=False,
    )
    return replace(requested, wake={Lane.CANCEL: 0.0})


def nothing_out(op: Operation) -> bool:
    """No byte of the current send can be on its way. (An intent that was answered or lost left SUBMITTING with it; one
    that was withdrawn or not processed did not.)"""
    return op.state is State.SUBMITTING and op.intent("submit") is None


def effects_before_task(op: Operation) -> bool:
    """Whether an end may leave effects behind that comes before a task is known and while nothing is out.

    A first attempt that was never sent, or that asked a question instead of running, did nothing. An earlier attempt
    needs `closes` to say so (SPEC section 7). After a recovery an open question may have been answered, and two tasks
    that were heard of do run.
    """
    was_sent = op.attempt > 1 or op.state is State.NOT_FOUND_SAFE
    perhaps_answered = any(one.state == "unclear" for one in op.rounds)
    known = op.has_case(CaseKind.EFFECT_RECONCILIATION_REQUIRED)
    return (was_sent and op.policy.absence != "closes") or perhaps_answered or known


def cancelled(decision: Decision, *, effects: bool, code: str | None = None) -> Decision:
    """A won cancel. Where all the evidence is that the server said so, and the work may run on behind it, people look
    after what it did (SPEC section 5)."""
    op = decision.operation
    won = decision.settle(State.CANCELLED_ACCEPTED, Outcome.CANCELLED, code=code, effects=effects, terminal="cancelled")
    if not (effects and op.task_id is not None and op.policy.effect_case == "always"):
        return won
    why = "the cancel was taken, which doesn't say that the work stopped: check what it did outside"
    return won.case(CaseKind.EFFECT_RECONCILIATION_REQUIRED, "E_EFFECTS_POSSIBLE", why)


# -- readings --------------------------------------------------------------------------------------------------------


def pace_s(op: Operation) -> float:
    """The pause before the next reading."""
    return wakes(op).get(Lane.POLL, op.policy.clamp_poll_s(op.interval_ms))


def told(op: Operation, event: Progressed | InputRequested) -> Operation:
    """What a reading of a living task says of itself."""
    return replace(
        op,
        server_status=event.status,
        # A question that comes on a stream of its own says none of these again.
        ttl_ms=op.ttl_ms if event.ttl_ms is None else event.ttl_ms,
        interval_ms=op.interval_ms if event.interval_ms is None else event.interval_ms,
        remote_created_at=op.remote_created_at or event.created_at,
        not_found_count=0,
        auth_tries=0,
    )


def reused(op: Operation, created_at: str | None) -> bool:
    """The same id with another birth is another task (SPEC section 3)."""
    return created_at is not None and op.remote_created_at is not None and created_at != op.remote_created_at


def id_reused(op: Operation) -> Decision:
    return unknown(Decision(op), "E_TASK_ID_REUSED", "the server shows another createdAt under the task's id")


def cancel_again(op: Operation) -> bool:
    """A lost acknowledgement and the task still works: the same generation may be sent again, at most three times."""
    return (
        not op.cancel_acked
        and not op.cancel_due
        and op.intent("cancel") is None
        and 0 < op.cancel_sends < op.policy.cancel_sends
    )
