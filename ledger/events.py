"""What happened, as frozen values. `lane` names the lane whose evidence it is, whichever worker writes it down.

`workers/interpret.py` makes them from an adapter's outcome, doors and timers make their own. Numbers are as the
server told them; clamping is the machine's work.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias
from uuid import UUID

from .states import Lane


@dataclass(frozen=True, slots=True)
class Result:
    """A result as it was read: exact bytes, where the payload is, and whether it may be accepted.

    `problem` is None for a valid one, else E_RESULT_MISSING | E_RESULT_TOO_LARGE | E_RESULT_SCHEMA. `body` is empty
    for the first two.
    """

    digest: bytes | None
    pointer: str
    body: bytes
    problem: str | None = None
    tool_error: bool = False


# -- submit ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskBound:
    """The server named the task of this attempt. `elsewhere`: another open operation already holds that id."""

    lane: ClassVar[Lane] = Lane.SUBMIT
    attempt: int
    task_id: str
    status: str
    created_at: str | None = None
    ttl_ms: int | None = None
    interval_ms: int | None = None
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class ResultAtOnce:
    lane: ClassVar[Lane] = Lane.SUBMIT
    attempt: int
    terminal: Literal["completed", "failed", "cancelled"]
    result: Result


@dataclass(frozen=True, slots=True)
class InputAsked:
    """Input asked before a task exists: same row, same key, next leg (SPEC section 2)."""

    lane: ClassVar[Lane] = Lane.SUBMIT
    attempt: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class SubmitRejected:
    lane: ClassVar[Lane] = Lane.SUBMIT
    attempt: int
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class SubmitNotProcessed:
    """The server's word that this send did not run. `auth`: the credential was refused."""

    lane: ClassVar[Lane] = Lane.SUBMIT
    attempt: int
    code: str
    retry_after_s: float | None = None
    auth: bool = False


@dataclass(frozen=True, slots=True)
class SubmitNotSent:
    """Its bearer knows that no byte left: connect failed, or the intent was refused or late and is withdrawn.

    `send_token` names the bearer's own intent, None where it has none. Only its holder may withdraw an intent: a
    bearer that lost its lease while it connected must not take back what its successor is sending.
    """

    lane: ClassVar[Lane] = Lane.SUBMIT
    attempt: int
    why: str
    retry_after_s: float | None = None
    send_token: UUID | None = None
    auth: bool = False
    """A negotiation was refused the credential: the same three tries as for a submit (SPEC section 1)."""


@dataclass(frozen=True, slots=True)
class SubmitUnclear:
    """Bytes may have left and nothing tells what became of them."""

    lane: ClassVar[Lane] = Lane.SUBMIT
    attempt: int
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class IntentOverdue:
    """A claimer found an open submit intent that is not its own. The machine judges it by the ledger's clock."""

    lane: ClassVar[Lane] = Lane.SUBMIT


@dataclass(frozen=True, slots=True)
class RefusedBeforeSubmit:
    """Negotiation, policy or arguments: nothing was sent and nothing will be."""

    lane: ClassVar[Lane] = Lane.SUBMIT
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Resubmit:
    """The submit lane takes a NOT_FOUND_SAFE operation up again: same row, same key, next attempt."""

    lane: ClassVar[Lane] = Lane.SUBMIT


# -- lookup ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LookupFound:
    lane: ClassVar[Lane] = Lane.LOOKUP
    task_id: str
    status: str
    created_at: str | None = None
    ttl_ms: int | None = None
    interval_ms: int | None = None
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class LookupAbsent:
    """The server says that it holds nothing under the key. `authoritative` is the route's own promise."""

    lane: ClassVar[Lane] = Lane.LOOKUP
    authoritative: bool


@dataclass(frozen=True, slots=True)
class LookupUnsure:
    lane: ClassVar[Lane] = Lane.LOOKUP
    code: str
    why: str


# -- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Progressed:
    lane: ClassVar[Lane] = Lane.POLL
    seq: int
    status: str
    created_at: str | None = None
    ttl_ms: int | None = None
    interval_ms: int | None = None


@dataclass(frozen=True, slots=True)
class InputRequested:
    """The task waits for a person. `digest` identifies the set of open keys."""

    lane: ClassVar[Lane] = Lane.POLL
    seq: int
    status: str
    digest: bytes
    created_at: str | None = None
    ttl_ms: int | None = None
    interval_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A terminal status. `result` is None where the protocol puts it elsewhere (then the fetch lane asks)."""

    lane: ClassVar[Lane] = Lane.POLL
    seq: int
    terminal: Literal["completed", "failed", "cancelled"]
    status: str
    result: Result | None = None
    created_at: str | None = None


@dataclass(frozen=True, slots=True)
class TaskNotFound:
    lane: ClassVar[Lane] = Lane.POLL
    seq: int
    why: str


@dataclass(frozen=True, slots=True)
class ReadFailed:
    """A transient trouble of a read; only backs off. `failures` counts them in a row, this one included."""

    lane: ClassVar[Lane] = Lane.POLL
    code: str
    failures: int
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class SessionRenewed:
    """The server had forgotten the session, and a new one was begun; the task is read in it from now on (SPEC
    section 7)."""

    lane: ClassVar[Lane] = Lane.POLL
    session_id: UUID


@dataclass(frozen=True, slots=True)
class AccessDenied:
    lane: ClassVar[Lane] = Lane.POLL
    why: str


@dataclass(frozen=True, slots=True)
class AnswerRefused:
    """An answer that can't be what was asked for: E_TASK_ID_MISMATCH, E_PROTOCOL_MIX, E_STATUS_UNKNOWN."""

    lane: ClassVar[Lane] = Lane.POLL
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class ResultFetched:
    lane: ClassVar[Lane] = Lane.FETCH
    result: Result


# -- cancel ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CancelAsked:
    lane: ClassVar[Lane] = Lane.DOOR
    reason: str


@dataclass(frozen=True, slots=True)
class CancelAcknowledged:
    """The server took the cancel. `cancelled`: its answer carries the task, already cancelled."""

    lane: ClassVar[Lane] = Lane.CANCEL
    generation: int
    cancelled: bool


@dataclass(frozen=True, slots=True)
class CancelUnclear:
    """The acknowledgement is lost, or the answer means terminal *or* unknown: only a read tells."""

    lane: ClassVar[Lane] = Lane.CANCEL
    generation: int
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class CancelNotSent:
    """No byte of this cancel left. `send_token` as in SubmitNotSent."""

    lane: ClassVar[Lane] = Lane.CANCEL
    generation: int
    why: str
    retry_after_s: float | None = None
    send_token: UUID | None = None


# -- time and people -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeadlineReached:
    """The timer lane came by; which deadline is over is read from the operation's own clock."""

    lane: ClassVar[Lane] = Lane.TIMER


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Five claims in a row ended without an applied outcome: something about this row stops its bearers."""

    lane: ClassVar[Lane] = Lane.TIMER
    where: str


@dataclass(frozen=True, slots=True)
class VerdictGiven:
    """A person's word on an open case. It never resubmits (SPEC section 7)."""

    lane: ClassVar[Lane] = Lane.DOOR
    verdict: Literal["bind", "never_created", "give_up"]
    task_id: str | None = None


Event: TypeAlias = (
    TaskBound
    | ResultAtOnce
    | InputAsked
    | SubmitRejected
    | SubmitNotProcessed
    | SubmitNotSent
    | SubmitUnclear
    | IntentOverdue
    | RefusedBeforeSubmit
    | Resubmit
    | LookupFound
    | LookupAbsent
    | LookupUnsure
    | Progressed
    | InputRequested
    | Ended
    | TaskNotFound
    | ReadFailed
    | SessionRenewed
    | AccessDenied
    | AnswerRefused
    | ResultFetched
    | CancelAsked
    | CancelAcknowledged
    | CancelUnclear
    | CancelNotSent
    | DeadlineReached
    | Quarantined
    | VerdictGiven
)
