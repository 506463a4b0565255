"""MCP 2026-07-28 with the tasks extension `io.modelcontextprotocol/tasks` (SEP-2663): what to send.

Stateless: every request is one POST that names version and capabilities itself. The server alone decides whether a call
becomes a task; it has no submission key, so a lost submit stays unknown unless the tool declares a lookup of its own.
The key travels in `_meta` all the same. What answers mean is in `mcp_2026_07_28_answers.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import cast

from . import mcp_2026_07_28_answers as answers
from . import mcp_headers, mcp_hints, mcp_lookup, strict_json
from .contract import (
    MAX_REQUESTS_PER_EXCHANGE,
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
from .jsonrpc import JsonRpc, response_to
from .jsonrpc_answers import heard_read
from .mcp_negotiation import CLIENT_INFO, CONTENT_HEADERS, Negotiator, submit_meta
from .outcomes import (
    CancelOutcome,
    Hint,
    LookupOutcome,
    Negotiation,
    Observation,
    ReplyOutcome,
    SubmitOutcome,
)
from .profile import BucketScope, Lookup, Profile, ReplyReplay
from .strict_json import BadJson, Json

PROTOCOL = "mcp-2026-07-28"
VERSION = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"

MAX_TOOL_PAGES = MAX_REQUESTS_PER_EXCHANGE - 1

_META_PLAIN: dict[str, Json] = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
}

# Elicitation is declared because a task that may ask is better than a tool that refuses (an empty object means forms);
# sampling and roots are not, since no person answers them.
_META: dict[str, Json] = _META_PLAIN | {
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {TASKS: {}}},
}

PROFILE = Profile(
    protocol=PROTOCOL,
    lookup=Lookup.NONE,
    absence=None,
    lookup_tool=mcp_lookup.TOOL,
    # SPEC section 1: only these prove that nothing ran. -32602 is not among them (a server answered it after the tool's
    # body had run), nor are the numbers of drafts (-32001, -32003, -32004), which client libraries make up themselves.
    definite_codes=frozenset({-32600, -32601, -32020, -32021, -32022}),
    # 429 only where the target says so: behind a gateway that retries it proves nothing.
    not_processed_statuses=frozenset(),
    can_cancel=True,
    cancel_is_evidence=False,
    # a server ignores an answered key silently (SHOULD; fastmcp does), and keys are never used again (MUST)
    reply_replay=ReplyReplay.SAFE,
    result_separate=False,
    watches_input=True,
    settle_s=5.0,
    bucket_scope=BucketScope.TARGET,
)


class Mcp20260728:
    """The adapter. Stateless but for the maker of request ids."""

    profile = PROFILE

    def __init__(self, rpc: JsonRpc) -> None:
        self._rpc = rpc

    # -- negotiate -----------------------------------------------------------------------------------------------------

    def negotiate(self, endpoint: Endpoint, tool: str) -> Exchange[Negotiation]:
        """`server/discover`, then `tools/list` page by page until the tool is there."""
        asking = Negotiator(PROTOCOL, endpoint.name, self._rpc.new_id, partial(self._post, endpoint))
        heard = yield from asking.ask("server/discover", {})
        if not isinstance(heard, dict):
            return heard
        refusal = answers.read_discover(heard, endpoint.name, VERSION, TASKS)
        if refusal is not None:
            return refusal
        found = yield from asking.find_tool(tool, MAX_TOOL_PAGES)
        if not isinstance(found, dict):
            return found
        invalid = mcp_headers.invalid_annotation(found.get("inputSchema"))
        if invalid is not None:
            return asking.unusable(tool, f"its input schema has an invalid {mcp_headers.ANNOTATION}: {invalid}")
        return asking.agreed(found)

    # -- submit --------------------------------------------------------------------------------------------------------

    def submit(self, endpoint: Endpoint, call: Call) -> Exchange[SubmitOutcome]:
        """`tools/call`, the one request that has the effect. The digested arguments go out byte for byte; a next leg
        adds what was asked for before a task existed, and the state that came with the question."""
        call = replace(call, request_id=call.request_id or self._rpc.new_id())
        params = {
            "name": strict_json.dumps(call.tool),
            "arguments": call.arguments,
            "_meta": strict_json.dumps(_META | submit_meta(call)),
        }
        if call.replies:
            params["inputResponses"] = _responses(call.replies)
        if call.state is not None:
            params["requestState"] = strict_json.dumps(call.state)
        request = self._post(
            endpoint,
            call.request_id,
            "tools/call",
            params,
            name=call.tool,
            more_headers=_mirrored(call),
            effect=Effect.SUBMIT,
        )
        reply = yield replace(request, deadline_s=call.answer_by_s)
        return self.read_submit(endpoint, call, reply)

    def read_submit(self, endpoint: Endpoint, call: Call, reply: Reply) -> SubmitOutcome:
        """Pure: kept evidence reads the same in another worker (with the `request_id` that was sent)."""
        return answers.read_submit(self.profile, endpoint, call, reply)

    def lookup(self, endpoint: Endpoint, search: Search) -> Exchange[LookupOutcome]:
        """The owner's lookup tool. It is offered neither tasks nor questions: it has to answer at once."""
        request_id = self._rpc.new_id()
        params = mcp_lookup.params(search) | {"_meta": strict_json.dumps(_META_PLAIN)}
        reply = yield self._post(endpoint, request_id, "tools/call", params, name=search.lookup_tool)
        return mcp_lookup.read(heard_read(endpoint, request_id, reply), makes_tasks=True)

    # -- poll, fetch, cancel -------------------------------------------------------------------------------------------

    def poll(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """`tasks/get`: status and, when it is over, the result inline."""
        task = replace(task, request_id=self._rpc.new_id())
        reply = yield self._task_post(endpoint, task, "tasks/get")
        return answers.read_poll(endpoint, task, reply)

    def fetch(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """The result comes with the status, so this is `tasks/get` again."""
        return self.poll(endpoint, task)

    def end_session(self, endpoint: Endpoint, session: bytes) -> Exchange[None]:
        """Nothing to end: every request stands alone."""
        yield from ()

    def cancel(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[CancelOutcome]:
        """`tasks/cancel`: cooperative, the acknowledgement is empty and never an end."""
        task = replace(task, request_id=task.request_id or self._rpc.new_id())
        reply = yield self._task_post(endpoint, task, "tasks/cancel", Effect.CANCEL)
        return self.read_cancel(endpoint, task, reply)

    def read_cancel(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> CancelOutcome:
        """Pure, as `read_submit`."""
        return answers.read_acknowledgement(self.profile, endpoint, task, reply)

    # -- input ---------------------------------------------------------------------------------------------------------

    def read_input(self, endpoint: Endpoint, task: RemoteTask, body: bytes) -> Observation:
        """Pure. Without a task id: a question of the call itself, asked before there was a task."""
        return answers.read_input(task, body)

    def reply(self, endpoint: Endpoint, task: RemoteTask, reply: InputReply) -> Exchange[ReplyOutcome]:
        """`tasks/update` with one key. Others may stay open; an answered one is ignored by the server."""
        task = replace(task, request_id=task.request_id or self._rpc.new_id())
        answer = yield self._task_post(
            endpoint, task, "tasks/update", Effect.ANSWER, {"inputResponses": _responses((reply,))}
        )
        return self.read_reply(endpoint, task, answer)

    def read_reply(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> ReplyOutcome:
        """Pure, as `read_submit`."""
        return answers.read_acknowledgement(self.profile, endpoint, task, reply)

    def hints(self, reply: Reply) -> tuple[Hint, ...]:
        """`notifications/tasks`: only after a subscription, which is not made here; some servers send them anyway."""
        return mcp_hints.read(reply)

    # -- requests ------------------------------------------------------------------------------------------------------

    def _task_post(
        self,
        endpoint: Endpoint,
        task: RemoteTask,
        method: str,
        effect: Effect | None = None,
        more: Mapping[str, bytes] = MappingProxyType({}),
    ) -> Request:
        params = {"taskId": strict_json.dumps(task.task_id), **more}
        # Mcp-Name = task id: intermediaries route on it to the instance that holds the task
        return self._post(endpoint, task.request_id, method, params, name=task.task_id, effect=effect)

    def _post(
        self,
        endpoint: Endpoint,
        request_id: str,
        method: str,
        params: dict[str, bytes],
        *,
        name: str | None = None,
        more_headers: Iterable[tuple[str, str]] = (),
        effect: Effect | None = None,
    ) -> Request:
        headers = [
            *CONTENT_HEADERS,
            ("MCP-Protocol-Version", VERSION),
            ("Mcp-Method", method),
        ]
        if name is not None:
            headers.append(("Mcp-Name", mcp_headers.encode(name)))
        return Request(
            method="POST",
            url=endpoint.url,
            headers=(*headers, *more_headers),
            body=self._rpc.request(request_id, method, {"_meta": strict_json.dumps(_META)} | params),
            effect=effect,
            deadline_s=endpoint.deadline_s,
            max_bytes=endpoint.max_response_bytes,
            until=response_to(request_id),
        )


def _responses(replies: Iterable[InputReply]) -> bytes:
    """`inputResponses`: key -> the answer to the question of that key, in the JSON that it was given in."""
    return strict_json.splice({reply.key: reply.content for reply in replies})


def _mirrored(call: Call) -> Iterable[tuple[str, str]]:
    schema = cast("Json", (call.descriptor or {}).get("inputSchema"))  # it came out of strict_json
    if not mcp_headers.annotates(schema):
        return ()
    try:
        return mcp_headers.param_headers(schema, strict_json.loads(call.arguments))
    except BadJson:
        return ()  # the server says -32020 then, which proves that nothing ran
