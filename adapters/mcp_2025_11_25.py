"""MCP 2025-11-25 with core tasks (SEP-1686): what to send. What answers mean is in `mcp_2025_11_25_answers.py`.

The client asks for the task; the server and the tool must both have declared that they take it as one. Status and
result are two reads (`tasks/get`, `tasks/result`). There is no submission key, so a lost submit stays unknown unless
the tool declares a lookup of its own. The key travels in `_meta` all the same.
"""

from dataclasses import replace

from . import mcp_2025_11_25_answers as answers
from . import mcp_hints, mcp_lookup, mcp_question, mcp_session, strict_json
from .contract import (
    Call,
    Effect,
    Endpoint,
    Exchange,
    InputReply,
    RemoteTask,
    Reply,
    Request,
    Search,
)
from .fields import member, word
from .jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, JsonRpc
from .mcp_session import heard_in
from .outcomes import (
    CancelOutcome,
    Hint,
    LookupOutcome,
    NeedsInput,
    Negotiation,
    Observation,
    ReplyOutcome,
    SubmitOutcome,
)
from .profile import BucketScope, Lookup, Profile, ReplyReplay
from .strict_json import Json

PROTOCOL = "mcp-2025-11-25"
VERSION = "2025-11-25"

PROFILE = Profile(
    protocol=PROTOCOL,
    lookup=Lookup.NONE,
    absence=None,
    lookup_tool=mcp_lookup.TOOL,
    # -32602 is not among them: a server answered it after the tool's body had run. Where HTTP says that the session is
    # meant (404; 400 with -32600) neither of the two is definite.
    definite_codes=frozenset({INVALID_REQUEST, METHOD_NOT_FOUND}),
    not_processed_statuses=frozenset(),
    can_cancel=True,
    # the answer is the task, which must already be `cancelled` and stays so, even if the work runs on
    cancel_is_evidence=True,
    # the answer to a reply is HTTP 202 whatever it was: only the task tells whether it was taken
    reply_replay=ReplyReplay.READ_FIRST,
    result_separate=True,
    watches_input=True,
    settle_s=5.0,
    bucket_scope=BucketScope.TARGET,
    sessions=True,
)


class Mcp20251125:
    """The adapter. Stateless but for the maker of request ids."""

    profile = PROFILE

    def __init__(self, rpc: JsonRpc) -> None:
        self._rpc = rpc
        # Elicitation is declared because a task that may ask is better than a tool that refuses (an empty object means
        # forms, in every version); sampling and roots are not, since no person answers them; tasks of our own are not,
        # since we run none.
        self._sessions = mcp_session.Sessions(rpc, PROTOCOL, (VERSION,), {"elicitation": {}}, _objection)

    def negotiate(self, endpoint: Endpoint, tool: str) -> Exchange[Negotiation]:
        """A new session, whose server and tool both take tasks."""
        return self._sessions.negotiate(endpoint, tool)

    def submit(self, endpoint: Endpoint, call: Call) -> Exchange[SubmitOutcome]:
        """`tools/call` that asks for a task."""
        call = replace(call, request_id=call.request_id or self._rpc.new_id())
        session = self._sessions.unpack(call.session)
        asked: dict[str, Json] = {} if call.ttl_ms is None else {"ttl": call.ttl_ms}
        reply = yield mcp_session.tool_call(endpoint, session, call, {"task": strict_json.dumps(asked)})
        return self.read_submit(endpoint, call, reply)

    def read_submit(self, endpoint: Endpoint, call: Call, reply: Reply) -> SubmitOutcome:
        """Pure: kept evidence reads the same in another worker (with the `request_id` that was sent)."""
        return answers.read_submit(self.profile, endpoint, call, reply)

    def lookup(self, endpoint: Endpoint, search: Search) -> Exchange[LookupOutcome]:
        """The owner's lookup tool, in the session that submitted."""
        session, request_id = self._sessions.unpack(search.session), self._rpc.new_id()
        reply = yield mcp_session.ask(endpoint, session, request_id, "tools/call", mcp_lookup.params(search))
        return mcp_lookup.read(heard_in(session, endpoint, request_id, reply), makes_tasks=True)

    def poll(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """`tasks/get`: the status alone; and where the task waits, the question from the stream of `tasks/result`."""
        task, session = replace(task, request_id=self._rpc.new_id()), self._sessions.unpack(task.session)
        reply = yield self._task_request(endpoint, task, "tasks/get")
        told = answers.read_poll(endpoint, task, session, reply)
        if not isinstance(told, NeedsInput) or not task.reads_question:
            return told
        task = replace(task, request_id=self._rpc.new_id())
        request = self._task_request(endpoint, task, "tasks/result")
        reply = yield replace(
            request,
            deadline_s=min(request.deadline_s, mcp_question.DEADLINE_S),
            max_bytes=min(request.max_bytes, mcp_question.MAX_STREAM_BYTES),
            until=mcp_question.or_response(task.task_id, task.request_id),
        )
        return answers.read_question(endpoint, task, session, told, reply)

    def read_input(self, endpoint: Endpoint, task: RemoteTask, body: bytes) -> Observation:
        """Pure. The session is part of a question's key: it must be the one that asked."""
        return answers.read_input(task, self._sessions.unpack(task.session), body)

    def reply(self, endpoint: Endpoint, task: RemoteTask, reply: InputReply) -> Exchange[ReplyOutcome]:
        """Our response to the server's request, posted on its own. HTTP 202 says only that it arrived."""
        session = self._sessions.unpack(task.session)
        response = JsonRpc.response(reply.reply_to.encode(), mcp_question.related(reply.content, task.task_id))
        answer = yield replace(mcp_session.post(endpoint, session, response), effect=Effect.ANSWER)
        return self.read_reply(endpoint, task, answer)

    def read_reply(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> ReplyOutcome:
        """Pure, as `read_submit`."""
        return answers.read_reply(self.profile, endpoint, self._sessions.unpack(task.session), reply)

    def hints(self, reply: Reply) -> tuple[Hint, ...]:
        """`notifications/tasks/status`, unasked for, on any stream."""
        return mcp_hints.read(reply)

    def fetch(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """`tasks/result`, only for a task that is over: before that the server blocks, and some never answer."""
        task = replace(task, request_id=self._rpc.new_id())
        reply = yield self._task_request(endpoint, task, "tasks/result")
        return answers.read_fetch(endpoint, task, self._sessions.unpack(task.session), reply)

    def cancel(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[CancelOutcome]:
        """`tasks/cancel`, never `notifications/cancelled`."""
        task = replace(task, request_id=task.request_id or self._rpc.new_id())
        reply = yield self._task_request(endpoint, task, "tasks/cancel", Effect.CANCEL)
        return self.read_cancel(endpoint, task, reply)

    def read_cancel(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> CancelOutcome:
        """Pure, as `read_submit`."""
        return answers.read_cancel(self.profile, endpoint, task, reply)

    def end_session(self, endpoint: Endpoint, session: bytes) -> Exchange[None]:
        """Its tasks can't be read afterwards: only after the last operation."""
        return mcp_session.end(endpoint, self._sessions.unpack(session))

    def _task_request(self, endpoint: Endpoint, task: RemoteTask, method: str, effect: Effect | None = None) -> Request:
        session = self._sessions.unpack(task.session)
        params = {"taskId": strict_json.dumps(task.task_id)}
        return mcp_session.ask(endpoint, session, task.request_id, method, params, effect=effect)


def _objection(capabilities: Json, descriptor: dict[str, Json]) -> str | None:
    """Both the server and the tool must take the call as a task (`taskSupport`; absent means forbidden)."""
    tool, support = word(descriptor.get("name")), member(descriptor, "execution", "taskSupport")
    hint = "Use `protocol: mcp-sync`, which waits for the answer of a call, within a bound."
    if not mcp_session.declares_tasks(capabilities):
        return f"declares no task support for tools/call under MCP {VERSION}. {hint}"
    if support not in ("optional", "required"):
        return f"takes tasks under MCP {VERSION}, but not for its tool {tool}. {hint}"
    return None
