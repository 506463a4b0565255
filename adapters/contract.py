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

from .outcomes import (
    CancelOutcome,
    Hint,
    LookupOutcome,
    Negotiation,
    Observation,
    ReplyOutcome,
    SubmitOutcome,
)
from .profile import Profile

MAX_REQUESTS_PER_EXCHANGE = 8
"""A server can't make one exchange go on for ever."""


class Effect(StrEnum):
    """The one request of an exchange that changes something at the server; it needs a committed intent (SPEC section
    1)."""

    SUBMIT = "submit"
    ANSWER = "answer"
    CANCEL = "cancel"


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
    deadline_s: float = 15.0
    max_bytes: int = 8 * 1024 * 1024
    until: Callable[[bytes], bool] | None = None
    """Asked with each event's data of a stream: True once that is all we came for; then the stream is closed and the
    events so far are the body. A server may hold it open ("SHOULD terminate"): reading on would cost the deadline."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A whole answer: status, headers with lower-case names, exact bytes after transfer decoding."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No usable answer. `why` is for people and carries no secret; `body` is what had arrived (a cut answer)."""

    sent: Sent
    why: str
    body: bytes = b""


KEPT_HEADERS = (
    "azure-asyncoperation",
    "content-type",
    "date",
    "location",
    "operation-location",
    "retry-after",
    "www-authenticate",
)
"""Headers that are kept with the answer to an effect, each up to MAX_HEADER_CHARS: all that `read_submit` and its like
may look at, since evidence is read again without the rest."""

MAX_HEADER_CHARS = 2000

Reply = Answered | NoAnswer
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
    api: str = ""
    """What the operator declared of the tool's API, where its protocol leaves that to him (`HttpApi.text`)."""


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
    replies: "tuple[InputReply, ...]" = ()
    """People's words on what was asked before a task existed: this send is the call's next leg (SPEC section 2)."""
    state: str | None = None
    """As `NeedsInput.state`: what the next leg carries back."""
    lookup_tool: str = ""
    """What the target declares for finding this submit again; empty: nothing."""
    traceparent: str = ""
    """The W3C Trace Context to hand on with the call, the same in every repeat of the submit; empty: none."""
    made_at_s: float = 0.0
    """When the call was handed in, Unix seconds: the same in every repeat of the submit."""


@dataclass(frozen=True, slots=True)
class RemoteTask:
    """One task at the server, as the ledger knows it."""

    task_id: str
    submission_key: str = ""
    created_at: str | None = None
    request_id: str = ""
    """As `Call.request_id`, for a cancel or a reply."""
    session: bytes | None = None
    """The session that the task was made in, or a newer one."""
    terminal: str | None = None
    """The terminal status word (`Terminal`) that was already read: a fetched result doesn't say it again."""
    reads_question: bool = True
    """Where a question has to be fetched beside the status: False while the one that is open is already known."""


@dataclass(frozen=True, slots=True)
class Search:
    """What is known of a submit whose answer is lost. `lookup_tool` is the read-only tool that its server's owner
    declared; it is asked in the session (if any) and with the credential that submitted."""

    tool: str
    submission_key: str
    attempt: int
    lookup_tool: str
    session: bytes | None = None


@dataclass(frozen=True, slots=True)
class InputReply:
    """A person's word on one open question. `content` is the exact JSON that the protocol wants as the answer to
    `method`; `reply_to` is the question's own (`InputKey.reply_to`)."""

    key: str
    method: str
    content: bytes
    reply_to: str = ""


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

    def lookup(self, endpoint: Endpoint, search: Search) -> Exchange[LookupOutcome]:
        """Ask for a lost submit by its key. A read: it has no effect and may be asked again."""
        ...

    def poll(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]: ...

    def read_input(self, endpoint: Endpoint, task: RemoteTask, body: bytes) -> Observation:
        """Pure: what `NeedsInput.body`, kept as evidence, asks. NeedsInput, or Refused for bytes that can't be it."""
        ...

    def reply(self, endpoint: Endpoint, task: RemoteTask, reply: InputReply) -> Exchange[ReplyOutcome]:
        """Hand a person's word to a task that waits for it: a request with the effect ANSWER."""
        ...

    def read_reply(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> ReplyOutcome: ...

    def hints(self, reply: Reply) -> tuple[Hint, ...]:
        """What a stream said of tasks beside its answer. Never raises."""
        ...

    def fetch(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """The result of a task that is over, where the protocol keeps it apart (`profile.result_separate`): Over
        with a payload."""
        ...

    def end_session(self, endpoint: Endpoint, session: bytes) -> Exchange[None]:
        """Tell the server that a session is not needed any more; whatever it answers is fine."""
        ...

    def cancel(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[CancelOutcome]: ...

    def read_cancel(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> CancelOutcome: ...
