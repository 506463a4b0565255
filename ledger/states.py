"""The local states of an operation and the one table of legal moves (SPEC section 2).

These words never pose as protocol states: what a server said stands beside them as `server_status`.
The diagram in docs/states.md is generated from `EDGES`.
"""

from enum import StrEnum


class State(StrEnum):
    SUBMITTING = "SUBMITTING"
    SUBMISSION_UNKNOWN = "SUBMISSION_UNKNOWN"
    NOT_FOUND_SAFE = "NOT_FOUND_SAFE"
    WORKING = "WORKING"
    INPUT_REQUIRED = "INPUT_REQUIRED"
    CANCEL_REQUESTED = "CANCEL_REQUESTED"
    TERMINAL_OBSERVED = "TERMINAL_OBSERVED"
    FETCHING_RESULT = "FETCHING_RESULT"
    ACCEPTED = "ACCEPTED"
    CANCELLED_ACCEPTED = "CANCELLED_ACCEPTED"
    REFUSED = "REFUSED"


TERMINAL = frozenset({State.ACCEPTED, State.CANCELLED_ACCEPTED, State.REFUSED})
OPEN = frozenset(State) - TERMINAL


class Lane(StrEnum):
    """One word each for verb, lane, queue, metric and Deployment. DOOR is no queue: a caller's own transaction."""

    SUBMIT = "submit"
    LOOKUP = "lookup"
    POLL = "poll"
    ANSWER = "answer"
    CANCEL = "cancel"
    FETCH = "fetch"
    AUDIT = "audit"
    SYNC = "sync"
    TIMER = "timer"
    DOOR = "door"


QUEUES = tuple(lane for lane in Lane if lane is not Lane.DOOR)


class Outcome(StrEnum):
    """The receipt's word. ABANDONED: closed by a verdict, effects unknown; never a reason to run again."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    ABANDONED = "abandoned"


class CaseKind(StrEnum):
    """Why a person is asked. NEVER_CREATED is recorded for the trail and closed by its own evidence."""

    UNKNOWN = "UNKNOWN"
    NEVER_CREATED = "NEVER_CREATED"
    EXPIRED_WITH_RECEIPT = "EXPIRED_WITH_RECEIPT"
    EFFECT_RECONCILIATION_REQUIRED = "EFFECT_RECONCILIATION_REQUIRED"


_S = State
_VERDICT = {(state, State.ACCEPTED): frozenset({Lane.DOOR, Lane.TIMER}) for state in OPEN}
"""A person's verdict, or `on_unknown: abandon` when nobody spoke in time."""

EDGES: dict[tuple[State, State], frozenset[Lane]] = {
    **_VERDICT,
    (_S.SUBMITTING, _S.WORKING): frozenset({Lane.SUBMIT, Lane.LOOKUP}),
    (_S.SUBMITTING, _S.INPUT_REQUIRED): frozenset({Lane.SUBMIT}),
    (_S.SUBMITTING, _S.SUBMISSION_UNKNOWN): frozenset({Lane.SUBMIT, Lane.DOOR}),
    (_S.SUBMITTING, _S.TERMINAL_OBSERVED): frozenset({Lane.SUBMIT, Lane.LOOKUP, Lane.TIMER}),
    (_S.SUBMITTING, _S.CANCELLED_ACCEPTED): frozenset({Lane.DOOR, Lane.SUBMIT}),
    (_S.SUBMITTING, _S.REFUSED): frozenset({Lane.SUBMIT, Lane.TIMER}),
    (_S.SUBMISSION_UNKNOWN, _S.WORKING): frozenset({Lane.LOOKUP, Lane.SUBMIT, Lane.DOOR}),
    (_S.SUBMISSION_UNKNOWN, _S.NOT_FOUND_SAFE): frozenset({Lane.LOOKUP}),
    (_S.SUBMISSION_UNKNOWN, _S.TERMINAL_OBSERVED): frozenset({Lane.LOOKUP, Lane.SUBMIT}),
    (_S.NOT_FOUND_SAFE, _S.SUBMITTING): frozenset({Lane.SUBMIT}),
    (_S.NOT_FOUND_SAFE, _S.WORKING): frozenset({Lane.SUBMIT, Lane.LOOKUP}),
    (_S.NOT_FOUND_SAFE, _S.TERMINAL_OBSERVED): frozenset({Lane.SUBMIT, Lane.LOOKUP}),
    (_S.NOT_FOUND_SAFE, _S.SUBMISSION_UNKNOWN): frozenset({Lane.DOOR}),
    (_S.NOT_FOUND_SAFE, _S.REFUSED): frozenset({Lane.SUBMIT, Lane.TIMER}),
    (_S.NOT_FOUND_SAFE, _S.CANCELLED_ACCEPTED): frozenset({Lane.DOOR, Lane.SUBMIT}),
    (_S.WORKING, _S.INPUT_REQUIRED): frozenset({Lane.POLL}),
    (_S.WORKING, _S.TERMINAL_OBSERVED): frozenset({Lane.POLL}),
    (_S.WORKING, _S.CANCEL_REQUESTED): frozenset({Lane.DOOR, Lane.TIMER, Lane.SUBMIT, Lane.LOOKUP}),
    (_S.INPUT_REQUIRED, _S.WORKING): frozenset({Lane.POLL}),
    (_S.INPUT_REQUIRED, _S.SUBMITTING): frozenset({Lane.DOOR}),
    (_S.INPUT_REQUIRED, _S.TERMINAL_OBSERVED): frozenset({Lane.POLL, Lane.TIMER}),
    (_S.INPUT_REQUIRED, _S.CANCEL_REQUESTED): frozenset({Lane.DOOR, Lane.TIMER}),
    (_S.INPUT_REQUIRED, _S.CANCELLED_ACCEPTED): frozenset({Lane.DOOR, Lane.TIMER}),
    (_S.CANCEL_REQUESTED, _S.CANCELLED_ACCEPTED): frozenset({Lane.CANCEL, Lane.POLL}),
    (_S.CANCEL_REQUESTED, _S.TERMINAL_OBSERVED): frozenset({Lane.CANCEL, Lane.POLL}),
    (_S.TERMINAL_OBSERVED, _S.FETCHING_RESULT): frozenset(
        {Lane.POLL, Lane.FETCH, Lane.SUBMIT, Lane.LOOKUP, Lane.CANCEL}
    ),
    (_S.TERMINAL_OBSERVED, _S.ACCEPTED): frozenset({Lane.DOOR, Lane.SUBMIT, Lane.LOOKUP, Lane.TIMER, Lane.POLL}),
    (_S.FETCHING_RESULT, _S.ACCEPTED): frozenset(
        {Lane.DOOR, Lane.FETCH, Lane.POLL, Lane.SUBMIT, Lane.LOOKUP, Lane.CANCEL, Lane.TIMER}
    ),
}
"""Each legal move with the lanes whose evidence may cause it (the lane of the event, whichever worker writes it
down)."""


def may_move(source: State, target: State, lane: Lane) -> bool:
    return lane in EDGES.get((source, target), frozenset())
