"""What a server said, in the words of every protocol: the outcomes of an adapter's verbs (see contract.py).

Outcomes never say what the ledger should do: `workers/interpret.py` turns them into ledger events.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

KEY_REUSED = "E_KEY_REUSED_DIFFERENT_REQUEST"
"""The server knows the submission key with another request: our code, and its own `data.code`."""


@dataclass(frozen=True, slots=True)
class Negotiated:
    """The server speaks the pinned version and the tool may be called. `descriptor` is the tool's own JSON (exact
    bytes)."""

    protocol: str
    descriptor: bytes
    tool_version: str | None
    input_schema: bytes | None
    output_schema: bytes | None
    session: bytes | None = None
    """The adapter's own reference of a session that was begun; the ledger keeps it encrypted and hands it back
    unread."""


@dataclass(frozen=True, slots=True)
class NotOffered:
    """Nothing will be sent: the version, the extension or the tool is not there. `code` is one of ours (`E_…`):
    E_TOOL_UNKNOWN only once everything but the tool was agreed."""

    code: str
    why: str
    others: tuple[str, ...] | None = None
    """With E_TOOL_UNKNOWN: the tools that are there (storable names), as far as the server was heard to list them.
    None: it lists none."""


@dataclass(frozen=True, slots=True)
class Payload:
    """Where the result is: the exact bytes of the message that carried it and the RFC 6901 pointer of the payload."""

    body: bytes
    pointer: str


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """The server returned a task id that can be queried. `over`: its status is one of an end."""

    task_id: str
    status: str
    created_at: str | None
    ttl_ms: int | None
    interval_ms: int | None
    over: bool = False


@dataclass(frozen=True, slots=True)
class StillWorking:
    """Not over. `status` is the server's own word; numbers as last told, in range but not clamped to the policy."""

    status: str
    created_at: str | None
    ttl_ms: int | None
    interval_ms: int | None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class InputKey:
    """One open question of a task: its identity, the method asked and the exact JSON of its parameters."""

    key: str
    method: str
    params: bytes
    reply_to: str = ""
    """What a reply must name beside the key: in 2025 the JSON text of the id of the server's own request."""


@dataclass(frozen=True, slots=True)
class NeedsInput:
    """The task (or, before a task exists, the call) waits for a person. `state` is what the next leg must carry
    back.

    No `keys`: the status says that it waits, and not for what. `body` is the exact message that carried the questions:
    what may be delivered once only is kept as evidence before anything else (`Adapter.read_input` reads it again).
    """

    status: str
    keys: tuple[InputKey, ...]
    created_at: str | None = None
    ttl_ms: int | None = None
    interval_ms: int | None = None
    state: str | None = None
    body: bytes = b""


class Terminal(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Over:
    """A terminal status. `payload` is None where the protocol puts the result elsewhere or where the server left it
    out.

    `tool_error` is the tool's own word that it failed (`isError`), whatever the status says.
    """

    terminal: Terminal
    status: str
    payload: Payload | None
    tool_error: bool = False
    message: str | None = None
    created_at: str | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A definite rejection: a code on the profile's list (SPEC section 1). It says that nothing ran, of this attempt
    only."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class NotProcessed:
    """The request certainly did not run (429 and what the target lists; 401, 403 with a challenge: `auth`)."""

    code: str
    retry_after_s: float | None = None
    auth: bool = False


@dataclass(frozen=True, slots=True)
class Unclear:
    """An answer that does not tell whether anything ran, or the connection was lost after bytes had left."""

    code: str
    why: str
    retry_after_s: float | None = None
    """Asked for by a 429 or 503: it closes the target although it says nothing about this request."""


@dataclass(frozen=True, slots=True)
class NotSent:
    """Not one byte of the request was written: DNS, connect, handshake, or the hook refused the intent."""

    why: str


@dataclass(frozen=True, slots=True)
class NotFound:
    """The server does not know this task (never an HTTP 404 of a session)."""

    why: str


@dataclass(frozen=True, slots=True)
class Busy:
    """A transient trouble of a read. `closes_target` when the server asked everyone to wait (429/503 with Retry-
    After)."""

    code: str
    retry_after_s: float | None = None
    closes_target: bool = False


@dataclass(frozen=True, slots=True)
class NoAccess:
    """401, or 403 with a challenge: a new credential is needed."""

    why: str


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that can't be used as what was asked for: another task id, another protocol's shape, an unknown
    word."""

    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The cancel request was taken. Terminal evidence only where the profile says so."""

    status: str | None = None


@dataclass(frozen=True, slots=True)
class SessionGone:
    """The server does not know the session any more: begin a new one and ask again (never "task not found")."""

    why: str


@dataclass(frozen=True, slots=True)
class NoSuchVerb:
    """The server has no such method."""

    why: str


@dataclass(frozen=True, slots=True)
class Hint:
    """A notification about a task: it wakes a read early, and it proves nothing (SPEC section 5). `status` is the
    server's word, None where it said none."""

    task_id: str
    status: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The lost submit made this task (SPEC section 7)."""

    task: TaskStarted


@dataclass(frozen=True, slots=True)
class FoundOver:
    """The lost submit is over, and this is its result."""

    over: Over


@dataclass(frozen=True, slots=True)
class FoundRunning:
    """The lost submit runs, and there is nothing that could be queried: ask again."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing is known under the key. `authoritative` is the server's own word that this is the whole truth."""

    authoritative: bool


SubmitOutcome: TypeAlias = TaskStarted | Over | NeedsInput | Rejected | NotProcessed | Unclear | NotSent
Observation: TypeAlias = StillWorking | NeedsInput | Over | NotFound | Busy | NoAccess | Refused | SessionGone
CancelOutcome: TypeAlias = Acknowledged | Over | NotFound | NotProcessed | Unclear | NotSent | NoSuchVerb
ReplyOutcome: TypeAlias = Acknowledged | NotFound | NotProcessed | Unclear | NotSent | NoSuchVerb
LookupOutcome: TypeAlias = (
    Found | FoundOver | FoundRunning | Absent | Unclear | NoSuchVerb | Busy | NoAccess | SessionGone
)
Negotiation: TypeAlias = Negotiated | NotOffered | Busy | NoAccess
