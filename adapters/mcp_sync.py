"""MCP over sessions without tasks: a call that blocks until its answer. For tools that take no task, which is most.

One identity and no second call: there is nothing to poll, to fetch or to cancel, and a lost connection leaves the call
unknown for good. So it needs a bound (`Call.answer_by_s`) within which the tool answers.
"""

from dataclasses import replace

from . import mcp_lookup, mcp_session
from .contract import (
    Call,
    Endpoint,
    Exchange,
    InputReply,
    RemoteTask,
    Reply,
    Search,
)
from .fields import member, word
from .jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, JsonRpc
from .jsonrpc_answers import heard_submit
from .mcp_answers import result_at_once
from .outcomes import (
    CancelOutcome,
    Hint,
    LookupOutcome,
    Negotiation,
    NoSuchVerb,
    Observation,
    Refused,
    ReplyOutcome,
    SubmitOutcome,
)
from .profile import BucketScope, Lookup, Profile, ReplyReplay
from .strict_json import Json

PROTOCOL = "mcp-sync"
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
"""All that have streamable HTTP and sessions; calls and results are the same in them."""

PROFILE = Profile(
    protocol=PROTOCOL,
    lookup=Lookup.NONE,
    absence=None,
    lookup_tool=mcp_lookup.TOOL,
    definite_codes=frozenset({INVALID_REQUEST, METHOD_NOT_FOUND}),
    not_processed_statuses=frozenset(),
    can_cancel=False,
    cancel_is_evidence=False,
    reply_replay=ReplyReplay.NEVER,
    result_separate=False,
    watches_input=False,
    settle_s=5.0,
    bucket_scope=BucketScope.TARGET,
    sessions=True,
    sync=True,
)

_NO_TASKS = "a call of this protocol makes no task: its answer is its end"


class McpSync:
    """The adapter. Stateless but for the maker of request ids."""

    profile = PROFILE

    def __init__(self, rpc: JsonRpc) -> None:
        self._rpc = rpc
        # Nothing is declared: a question in the middle of a call would find nobody, and hold it to its bound.
        self._sessions = mcp_session.Sessions(rpc, PROTOCOL, VERSIONS, {}, _objection)

    def negotiate(self, endpoint: Endpoint, tool: str) -> Exchange[Negotiation]:
        """A new session with one of VERSIONS, and a tool that can be called without a task."""
        return self._sessions.negotiate(endpoint, tool)

    def submit(self, endpoint: Endpoint, call: Call) -> Exchange[SubmitOutcome]:
        """`tools/call`, answered within `call.answer_by_s` seconds."""
        call = replace(call, request_id=call.request_id or self._rpc.new_id())
        reply = yield mcp_session.tool_call(endpoint, self._sessions.unpack(call.session), call, {})
        return self.read_submit(endpoint, call, reply)

    def read_submit(self, endpoint: Endpoint, call: Call, reply: Reply) -> SubmitOutcome:
        """Pure: kept evidence reads the same in another worker (with the `request_id` that was sent)."""
        return heard_submit(self.profile, endpoint, call.request_id, reply, result_at_once)

    def lookup(self, endpoint: Endpoint, search: Search) -> Exchange[LookupOutcome]:
        """The owner's lookup tool, in the session that submitted: a call that is over brings its result."""
        session, request_id = self._sessions.unpack(search.session), self._rpc.new_id()
        reply = yield mcp_session.ask(endpoint, session, request_id, "tools/call", mcp_lookup.params(search))
        return mcp_lookup.read(mcp_session.heard_in(session, endpoint, request_id, reply), makes_tasks=False)

    def poll(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """E_NO_TASKS, without a request."""
        yield from ()
        return Refused("E_NO_TASKS", _NO_TASKS)

    def read_input(self, endpoint: Endpoint, task: RemoteTask, body: bytes) -> Observation:
        """As `poll`."""
        return Refused("E_NO_TASKS", _NO_TASKS)

    def reply(self, endpoint: Endpoint, task: RemoteTask, reply: InputReply) -> Exchange[ReplyOutcome]:
        """As `cancel`."""
        yield from ()
        return NoSuchVerb(_NO_TASKS)

    def read_reply(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> ReplyOutcome:
        """As `cancel`."""
        return NoSuchVerb(_NO_TASKS)

    def hints(self, reply: Reply) -> tuple[Hint, ...]:
        """None: there is no task to wake."""
        return ()

    def fetch(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """As `poll`."""
        return self.poll(endpoint, task)

    def cancel(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[CancelOutcome]:
        """No such verb, without a request."""
        yield from ()
        return NoSuchVerb(_NO_TASKS)

    def read_cancel(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> CancelOutcome:
        """As `cancel`."""
        return NoSuchVerb(_NO_TASKS)

    def end_session(self, endpoint: Endpoint, session: bytes) -> Exchange[None]:
        """Only after the last call in it."""
        return mcp_session.end(endpoint, self._sessions.unpack(session))


def _objection(capabilities: Json, descriptor: dict[str, Json]) -> str | None:
    """A tool that insists on a task can't be called without one (where its server takes tasks at all)."""
    insists = member(descriptor, "execution", "taskSupport") == "required"
    if insists and mcp_session.declares_tasks(capabilities):
        return f"takes calls of its tool {word(descriptor.get('name'))} as tasks only. Use `protocol: mcp-2025-11-25`."
    return None
