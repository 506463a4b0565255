"""What happened to a submit: its answer, its silence, and what a question by key says of a lost one (see events.py)."""

from dataclasses import dataclass
from typing import ClassVar, Literal
from uuid import UUID

from .rounds import Question
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
    value_digest: bytes | None = None
    """SHA-256 over the RFC 8785 text of the value at `pointer`: two readings of one result may differ in the message
    around it (its JSON-RPC id), never in this."""


# -- submit ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskBound:
    """The server named the task of this attempt. `over`: its status is one of an end. `elsewhere`: another open
    operation already holds that id."""

    lane: ClassVar[Lane] = Lane.SUBMIT
    attempt: int
    task_id: str
    status: str
    created_at: str | None = None
    ttl_ms: int | None = None
    interval_ms: int | None = None
    over: bool = False
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class ResultAtOnce:
    lane: ClassVar[Lane] = Lane.SUBMIT
    attempt: int
    terminal: Literal["completed", "failed", "cancelled"]
    result: Result


@dataclass(frozen=True, slots=True)
class InputAsked:
    """Input asked before a task exists: same row, same key, next leg (SPEC section 2). `state` goes back with it."""

    lane: ClassVar[Lane] = Lane.SUBMIT
    attempt: int
    questions: tuple[Question, ...] = ()
    state: str | None = None


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
    """The submit lane takes an operation up: a NOT_FOUND_SAFE one again (same row, same key, next attempt), or one for
    which a cancel was remembered that can be given now."""

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
    over: bool = False
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class LookupAbsent:
    """The server says that it holds nothing under the key. `authoritative` is the route's own promise; `attempt` the
    one that was out when it was asked: it says nothing of one that was sent since."""

    lane: ClassVar[Lane] = Lane.LOOKUP
    authoritative: bool
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class LookupOver:
    """What was lost is over, and this is its result (found by key, or answered to a replay)."""

    lane: ClassVar[Lane] = Lane.LOOKUP
    terminal: Literal["completed", "failed", "cancelled"]
    result: Result


@dataclass(frozen=True, slots=True)
class LookupUnsure:
    """The question by key was not answered. `final`: asking again can't help; `transient`: it may, and asking costs
    nothing (busy, still running)."""

    lane: ClassVar[Lane] = Lane.LOOKUP
    code: str
    why: str
    retry_after_s: float | None = None
    final: bool = False
    transient: bool = False


@dataclass(frozen=True, slots=True)
class LookupDenied:
    """The credential of the submit is refused now: nobody else may ask in its scope."""

    lane: ClassVar[Lane] = Lane.LOOKUP
    why: str


@dataclass(frozen=True, slots=True)
class ReplayNotSent:
    """No byte of this replay left. `send_token` as in SubmitNotSent."""

    lane: ClassVar[Lane] = Lane.LOOKUP
    why: str
    retry_after_s: float | None = None
    send_token: UUID | None = None
