"""What adapters of declared HTTP APIs have in common: nothing is negotiated on the wire, and nobody is ever asked."""

from abc import ABC, abstractmethod

from . import callbacks
from .contract import (
    Answered,
    Call,
    Endpoint,
    Exchange,
    InputReply,
    RemoteTask,
    Reply,
    Search,
)
from .http_answers import ask
from .http_api import HttpApi
from .outcomes import (
    CancelOutcome,
    Hint,
    LookupOutcome,
    Negotiation,
    NoSuchVerb,
    NotOffered,
    Observation,
    Refused,
    ReplyOutcome,
    SubmitOutcome,
    Unclear,
)
from .profile import Profile

_NO_QUESTIONS = "work of this protocol asks no questions"


class DeclaredAdapter(ABC):
    """The verbs that hang on the declaration alone. `cancel_body` is what a cancel carries."""

    profile: Profile
    cancel_body = b""

    def negotiate(self, endpoint: Endpoint, tool: str) -> Exchange[Negotiation]:
        """Without a request: what was declared is agreed, and it is the tool's descriptor."""
        yield from ()
        api = HttpApi.of(endpoint.api)
        if api.routes.submit is None:
            why = f"Not sent: {endpoint.name} declares no way to submit {tool} (`routes: {{submit: POST /…}}`)."
            return NotOffered("E_CAPABILITY_UNSUPPORTED", why)
        return api.agreed(self.profile.protocol, tool)

    def submit(self, endpoint: Endpoint, call: Call) -> Exchange[SubmitOutcome]:
        """The declared route, the arguments as they were digested, the key where it travels."""
        reply = yield HttpApi.of(endpoint.api).submit(endpoint, call)
        return self.read_submit(endpoint, call, reply)

    @abstractmethod
    def read_submit(self, endpoint: Endpoint, call: Call, reply: Reply) -> SubmitOutcome:
        """Pure: kept evidence reads the same in another worker."""

    def lookup(self, endpoint: Endpoint, search: Search) -> Exchange[LookupOutcome]:
        """The declared question by key: over a collection, or for the thing whose id the key is."""
        api = HttpApi.of(endpoint.api)
        route = api.route("lookup")
        if route is None:
            return NoSuchVerb("no lookup is declared")
        reply = yield from ask(endpoint, api, route.url(endpoint.url, key=search.submission_key, tool=search.tool))
        if isinstance(reply, Refused):
            return Unclear(reply.code, reply.why)
        return self.read_lookup(endpoint, api, reply, by_id=route.key_in_path)

    @abstractmethod
    def read_lookup(self, endpoint: Endpoint, api: HttpApi, reply: Reply, *, by_id: bool) -> LookupOutcome:
        """Pure. `by_id`: the key names the thing itself, so its absence is an HTTP 404."""

    def cancel(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[CancelOutcome]:
        """The declared route."""
        api = HttpApi.of(endpoint.api)
        route = api.route("cancel")
        if route is None:
            return NoSuchVerb("no cancel is declared")
        reply = yield api.cancel(endpoint, route, task.task_id, self.cancel_body)
        return self.read_cancel(endpoint, task, reply)

    @abstractmethod
    def read_cancel(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> CancelOutcome:
        """Pure, as `read_submit`."""

    def end_session(self, endpoint: Endpoint, session: bytes) -> Exchange[None]:
        """Nothing to end: every request stands alone."""
        yield from ()

    def read_input(self, endpoint: Endpoint, task: RemoteTask, body: bytes) -> Observation:
        """Nothing asks."""
        return Refused("E_INPUT_MALFORMED", _NO_QUESTIONS)

    def reply(self, endpoint: Endpoint, task: RemoteTask, reply: InputReply) -> Exchange[ReplyOutcome]:
        """As `read_input`, without a request."""
        yield from ()
        return NoSuchVerb(_NO_QUESTIONS)

    def read_reply(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> ReplyOutcome:
        """As `read_input`."""
        return NoSuchVerb(_NO_QUESTIONS)

    def hints(self, reply: Reply) -> tuple[Hint, ...]:
        """What a callback says, which is a request and bears a Host. An answer speaks of its own work alone."""
        return callbacks.read(reply.body) if isinstance(reply, Answered) and "host" in reply.headers else ()
