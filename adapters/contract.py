"""What an adapter is: a sans-I/O translator between one protocol and the words of this file.

An adapter never touches a socket. Each verb is a generator (an *exchange*) that yields a `Request`, is sent a
`Reply` and returns an outcome. The same adapter therefore runs in production (asyncio), in the simulator (every
request is a yield point), against a transcript and in a unit test.

Outcomes say what a server said, never what the ledger should do about it: `workers/interpret.py` turns them into ledger
events. Every value that comes from a server is *storable* when it leaves an adapter: no NUL, no lone surrogate,
numbers in range, text capped (one hostile row must not stop a batch).
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias, TypeVar

from .profile import Profile

MAX_REQUESTS_PER_EXCHANGE = 8
"""A server can't make one exchange go on for ever."""


class Effect(StrEnum):
    """The one request of an exchange that changes something at the server; it needs a committed intent (SPEC section
    1)."""

    SUBMIT = "submit"
    ANSWER = "answer"
    CANCEL = "cancel"


class Read(StrEnum):
    """How the wire reads the answer: whole, or event by event (`text/event-stream`)."""

    BODY = "body"
    EVENTS = "events"


class Sent(StrEnum):
    """What a missing answer says about the request. NO only when not one byte of it was written."""

    NO = "no"
    MAYBE = "maybe"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. `headers` hold no credential: the wire adds it at send time (secrets by reference)."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    effect: Effect | None = None
    read: Read = Read.BODY
    deadline_s: float = 15.0
    max_bytes: int = 8 * 1024 * 1024
    until: Callable[[bytes], bool] | None = None
    """Asked with the data of each event of a `text/event-stream`: True once that is all we came for. A server may hold
    the stream open after its answer ("SHOULD terminate"): reading on would cost the whole deadline."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A whole answer: status, headers with lower-case names, exact bytes after transfer decoding."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Event:
    """One SSE event's data, exact bytes. Only for `Read.EVENTS`."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """The event stream is over; `clean` when the server closed it in order."""

    clean: bool


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No usable answer. `why` is for people and carries no secret; `body` is what had arrived (a cut answer)."""

    sent: Sent
    why: str
    body: bytes = b""


Reply = Answered | Event | Ended | NoAnswer
T_co = TypeVar("T_co", covariant=True)
Exchange: TypeAlias = Generator[Request, Reply, T_co]


# -- what the loop hands to an adapter -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a target is and which limits hold for it (from the targets file)."""

    name: str
    url: str
    deadline_s: float = 15.0
    max_response_bytes: int = 8 * 1024 * 1024
    not_processed_statuses: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Call:
    """One submit. `arguments` is the canonical JSON text that was digested; it is sent as it is."""

    tool: str
    arguments: bytes
    submission_key: str
    answer_by_s: float
    descriptor: Mapping[str, object] | None = None
    attempt: int = 1
    request_id: str = ""
    """The id to send the request under, new for every send (the intent's send token). Kept with the intent it
    lets evidence be read as strictly by another worker; empty: the adapter makes one, which only its own exchange
    can check."""
    session: bytes | None = None
    """As `Negotiated.session`: what is sent belongs to that session."""
    ttl_ms: int | None = None
    """How long the server is asked to keep the task from its creation, where the protocol lets the client ask. It may
    decide otherwise; None leaves it to the server."""


@dataclass(frozen=True, slots=True)
class RemoteTask:
    """One task at the server, as the ledger knows it."""

    task_id: str
    submission_key: str = ""
    created_at: str | None = None
    request_id: str = ""
    """As `Call.request_id`, for a cancel."""
    session: bytes | None = None
    """The session that the task was made in, or a newer one."""
    terminal: str | None = None
    """The terminal status word (`Terminal`) that was already read: a fetched result doesn't say it again."""


# -- outcomes --------------------------------------------------------------------------------------------------------


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
    """Nothing will be sent: the version, the extension or the tool is not there. `code` is one of ours (`E_…`)."""

    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Payload:
    """Where the result is: the exact bytes of the message that carried it and the RFC 6901 pointer of the payload."""

    body: bytes
    pointer: str


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """The server returned a task id that can be queried."""

    task_id: str
    status: str
    created_at: str | None
    ttl_ms: int | None
    interval_ms: int | None


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


@dataclass(frozen=True, slots=True)
class NeedsInput:
    """The task (or, before a task exists, the call) waits for a person. `state` is what the next leg must carry
    back."""

    status: str
    keys: tuple[InputKey, ...]
    created_at: str | None = None
    ttl_ms: int | None = None
    interval_ms: int | None = None
    state: str | None = None


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


SubmitOutcome: TypeAlias = TaskStarted | Over | NeedsInput | Rejected | NotProcessed | Unclear | NotSent
Observation: TypeAlias = StillWorking | NeedsInput | Over | NotFound | Busy | NoAccess | Refused | SessionGone
CancelOutcome: TypeAlias = Acknowledged | Over | NotFound | NotProcessed | Unclear | NotSent | NoSuchVerb
Negotiation: TypeAlias = Negotiated | NotOffered | Busy | NoAccess


class Adapter(Protocol):
    """One protocol version. Stateless: everything it needs is in its arguments, everything it learned is in the
    outcome.

    `read_submit` is pure, so that an answer kept as evidence can be read again from its exact bytes by another worker
    or another epoch.
    """

    profile: Profile

    def negotiate(self, endpoint: Endpoint, tool: str) -> Exchange[Negotiation]: ...

    def submit(self, endpoint: Endpoint, call: Call) -> Exchange[SubmitOutcome]: ...

    def read_submit(self, endpoint: Endpoint, call: Call, reply: Reply) -> SubmitOutcome: ...

    def poll(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]: ...

    def fetch(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """The result of a task that is over, where the protocol keeps it apart (`profile.result_separate`): Over
        with a payload."""
        ...

    def end_session(self, endpoint: Endpoint, session: bytes) -> Exchange[None]:
        """Tell the server that a session is not needed any more; whatever it answers is fine."""
        ...

    def cancel(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[CancelOutcome]: ...

    def read_cancel(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> CancelOutcome: ...
