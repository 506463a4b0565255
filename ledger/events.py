"""What happened, as frozen values. `lane` names the lane whose evidence it is, whichever worker writes it down.

`workers/interpret.py` makes them from an adapter's outcome, doors and timers make their own. Numbers are as the
server told them; clamping is the machine's work.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias
from uuid import UUID

from .events_submit import (
    InputAsked,
    IntentOverdue,
    LookupAbsent,
    LookupDenied,
    LookupFound,
    LookupOver,
    LookupUnsure,
    RefusedBeforeSubmit,
    ReplayNotSent,
    Resubmit,
    Result,
    ResultAtOnce,
    SubmitNotProcessed,
    SubmitNotSent,
    SubmitRejected,
    SubmitUnclear,
    TaskBound,
)
from .rounds import Question
from .states import Lane

__all__ = [
    "AccessDenied",
    "AnswerRefused",
    "CancelAcknowledged",
    "CancelAsked",
    "CancelNotSent",
    "CancelUnclear",
    "DeadlineReached",
    "Ended",
    "Event",
    "Hinted",
    "InputAsked",
    "InputRequested",
    "IntentOverdue",
    "LookupAbsent",
    "LookupDenied",
    "LookupFound",
    "LookupOver",
    "LookupUnsure",
    "Progressed",
    "Quarantined",
    "ReadFailed",
    "Recovered",
    "RefusedBeforeSubmit",
    "ReplayNotSent",
    "ReplyAcknowledged",
    "ReplyGiven",
    "ReplyNotSent",
    "ReplyUnclear",
    "Resubmit",
    "Result",
    "ResultAtOnce",
    "ResultFetched",
    "SessionRenewed",
    "SubmitNotProcessed",
    "SubmitNotSent",
    "SubmitRejected",
    "SubmitUnclear",
    "TaskBound",
    "TaskNotFound",
    "Verdict",
    "VerdictGiven",
]

Verdict: TypeAlias = Literal["bind", "accept", "never_created", "give_up"]


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
    """The task waits for a person. No `questions`: it was not told for what."""

    lane: ClassVar[Lane] = Lane.POLL
    seq: int
    status: str
    questions: tuple[Question, ...] = ()
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
    """`evidence_waits`: a server said something that this door can't read."""

    lane: ClassVar[Lane] = Lane.DOOR
    reason: str
    evidence_waits: bool = False


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


# -- input -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplyGiven:
    """A person's word on a round, checked at the door against schema and person."""

    lane: ClassVar[Lane] = Lane.DOOR
    number: int
    content: bytes
    actor: str


@dataclass(frozen=True, slots=True)
class ReplyAcknowledged:
    """The server took the reply. The round closes when the task is seen past it."""

    lane: ClassVar[Lane] = Lane.ANSWER
    number: int


@dataclass(frozen=True, slots=True)
class ReplyUnclear:
    """Nobody knows whether the reply arrived, or the server's word on it says nothing: a read tells."""

    lane: ClassVar[Lane] = Lane.ANSWER
    number: int
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class ReplyNotSent:
    """No byte of this reply left. `send_token` as in SubmitNotSent."""

    lane: ClassVar[Lane] = Lane.ANSWER
    number: int
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
    """A word on an open case. It never resubmits (SPEC section 7). `result`: what `accept` accepts, None where the
    evidence carries none."""

    lane: ClassVar[Lane] = Lane.DOOR
    verdict: Verdict
    actor: str
    reason: str
    second_actor: str | None = None
    task_id: str | None = None
    result: Result | None = None
    elsewhere: bool = False
    """Another open operation already holds the task that is to be bound."""
    seen_seq: int | None = None
    """The last journal line that the person saw: where there is a newer one, or evidence moves something first, the
    verdict was made on something else (E_CASE_CHANGED)."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """This ledger was promoted or restored: it may lack intents, so nothing is "never sent" any more (SPEC section
    8)."""

    lane: ClassVar[Lane] = Lane.DOOR


@dataclass(frozen=True, slots=True)
class Hinted:
    """A notification spoke of the task: look now. `status` is its word, and proves nothing."""

    lane: ClassVar[Lane] = Lane.POLL
    status: str | None = None


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
    | LookupOver
    | LookupUnsure
    | LookupDenied
    | ReplayNotSent
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
    | ReplyGiven
    | ReplyAcknowledged
    | ReplyUnclear
    | ReplyNotSent
    | DeadlineReached
    | Quarantined
    | VerdictGiven
    | Recovered
    | Hinted
)
