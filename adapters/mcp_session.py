"""Sessions of MCP 2025 (streamable HTTP): begun by `initialize`, named in every later request, ended by DELETE.

A task is in practice bound to the session that it was made in: a worker with a session of its own gets -32602 for a
live task (seen with the reference servers in Python and TypeScript). So the session is a value: any worker that has its
bytes goes on with it. A server may also keep none (no `Mcp-Session-Id`); then only the version is kept.

Sessions are to be ended: the official Python SDK takes 10,000 at a time, then answers 503; one that was idle for 30
minutes is gone by itself (mcp 2.3).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from . import strict_json
from .answers import trouble
from .contract import (
    MAX_REQUESTS_PER_EXCHANGE,
    Answered,
    Call,
    Effect,
    Endpoint,
    Exchange,
    Reply,
    Request,
)
from .fields import member, word
from .jsonrpc import JsonRpc, Message, response_to
from .jsonrpc_answers import heard_read, is_of_session
from .mcp_negotiation import CLIENT_INFO, CONTENT_HEADERS, Negotiator, submit_meta
from .outcomes import (
    Busy,
    Negotiated,
    Negotiation,
    NoAccess,
    NotOffered,
    Refused,
    SessionGone,
)
from .strict_json import BadJson, Json

MAX_TOOL_PAGES = MAX_REQUESTS_PER_EXCHANGE - 3
"""Beside `initialize`, its notification, and the end of a session that nothing came of."""

END_DEADLINE_S = 5.0
"""A goodbye is a courtesy: servers drop idle sessions themselves."""

END_MAX_BYTES = 64 * 1024

# The specification allows visible ASCII only, which also keeps a server from writing headers of ours. 4 KB: some
# servers put a signed token there.
_SESSION_ID = re.compile(r"[\x21-\x7e]{1,4096}")
_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Objection: TypeAlias = Callable[[Json, dict[str, Json]], str | None]
"""(the server's capabilities, the tool's descriptor) -> why the tool can't be called with this protocol, or None. The
text goes on after the server's name."""


@dataclass(frozen=True, slots=True)
class Session:
    """The negotiated version, and the server's session id if it gave one."""

    version: str
    id: str | None = None

    def pack(self) -> bytes:
        """The opaque bytes that the ledger keeps."""
        return strict_json.dumps({"id": self.id, "version": self.version})

    @classmethod
    def unpack(cls, packed: bytes | None, version: str) -> "Session":
        """What `pack` made. Without usable bytes: `version` and no id, which a server that keeps sessions refuses."""
        try:
            kept = strict_json.loads(packed or b"{}")
        except BadJson:
            kept = {}
        members = kept if isinstance(kept, dict) else {}
        known, given = members.get("version"), members.get("id")
        return cls(
            known if isinstance(known, str) and _VERSION.fullmatch(known) else version,
            given if isinstance(given, str) and _SESSION_ID.fullmatch(given) else None,
        )

    def headers(self) -> tuple[tuple[str, str], ...]:
        version = ("MCP-Protocol-Version", self.version)
        return (version,) if self.id is None else (version, ("Mcp-Session-Id", self.id))


@dataclass(frozen=True, slots=True)
class Sessions:
    """How one protocol begins and ends sessions.

    `versions`: those that are taken, the first is asked for. `capabilities`: what we declare. `objection`: judges a
    tool.
    """

    rpc: JsonRpc
    protocol: str
    versions: tuple[str, ...]
    capabilities: dict[str, Json]
    objection: Objection

    def unpack(self, packed: bytes | None) -> Session:
        return Session.unpack(packed, self.versions[0])

    def negotiate(self, endpoint: Endpoint, tool: str) -> Exchange[Negotiation]:
        """`initialize`, its notification, `tools/list`. A session that nothing came of is ended: the next try begins
        another, and nobody else would end this one."""
        request_id = self.rpc.new_id()
        params = {
            "protocolVersion": strict_json.dumps(self.versions[0]),
            "capabilities": strict_json.dumps(self.capabilities),
            "clientInfo": strict_json.dumps(CLIENT_INFO),
        }
        reply = yield ask(endpoint, None, request_id, "initialize", params)
        given = reply.headers.get("mcp-session-id", "") if isinstance(reply, Answered) else ""
        session = Session(self.versions[0], given if _SESSION_ID.fullmatch(given) else None)
        asking = self._asking(endpoint, session)
        hello = asking.result("initialize", reply, request_id)
        if given and session.id is None:
            return asking.unsupported("its session id is not visible ASCII of at most 4096 characters")
        outcome: Negotiation
        if isinstance(hello, dict):
            outcome = yield from self._agree(endpoint, session, hello, tool)
        else:
            outcome = hello
        if not isinstance(outcome, Negotiated):
            yield from end(endpoint, session)
        return outcome

    def _agree(self, endpoint: Endpoint, session: Session, hello: dict[str, Json], tool: str) -> Exchange[Negotiation]:
        """From the answer to `initialize` on: version, notification, tool, objection."""
        answered = hello.get("protocolVersion")
        if not isinstance(answered, str) or answered not in self.versions:
            asked = " or ".join(self.versions)
            return _not_offered(endpoint, f"answers with MCP {word(answered) or 'of no version'}, not {asked}.")
        session = replace(session, version=answered)
        asking = self._asking(endpoint, session)
        reply = yield post(endpoint, session, JsonRpc.notification("notifications/initialized"))
        found = trouble(reply)
        if found is not None:
            return found
        if isinstance(reply, Answered) and not 200 <= reply.status < 300:
            return asking.unsupported(f"notifications/initialized: HTTP {reply.status}")
        descriptor = yield from asking.find_tool(tool, MAX_TOOL_PAGES)
        if not isinstance(descriptor, dict):
            return descriptor
        objection = self.objection(hello.get("capabilities"), descriptor)
        if objection is not None:
            return _not_offered(endpoint, objection)
        return asking.agreed(descriptor, session.pack())

    def _asking(self, endpoint: Endpoint, session: Session) -> Negotiator:
        return Negotiator(self.protocol, endpoint.name, self.rpc.new_id, partial(ask, endpoint, session))


def _not_offered(endpoint: Endpoint, why: str) -> NotOffered:
    return NotOffered("E_CAPABILITY_UNSUPPORTED", f"Not sent: {endpoint.name} {why}")


def declares_tasks(capabilities: Json) -> bool:
    """Whether a server takes `tools/call` as a task. Without it no call may ask for one, whatever the tool says."""
    return isinstance(member(capabilities, "tasks", "requests", "tools", "call"), dict)


# -- requests ----------------------------------------------------------------------------------------------------------


def ask(
    endpoint: Endpoint,
    session: Session | None,
    request_id: str,
    method: str,
    params: dict[str, bytes],
    *,
    effect: Effect | None = None,
) -> Request:
    """One JSON-RPC request; within a session, but for the `initialize` that begins one."""
    request = post(endpoint, session, JsonRpc.request(request_id, method, params))
    return replace(request, effect=effect, until=response_to(request_id))


def post(endpoint: Endpoint, session: Session | None, body: bytes) -> Request:
    """One JSON-RPC message."""
    return Request(
        method="POST",
        url=endpoint.url,
        headers=(*CONTENT_HEADERS, *(session.headers() if session else ())),
        body=body,
        deadline_s=endpoint.deadline_s,
        max_bytes=endpoint.max_response_bytes,
    )


def tool_call(endpoint: Endpoint, session: Session, call: Call, more: dict[str, bytes]) -> Request:
    """`tools/call`, the one request that has the effect. The digested arguments go out byte for byte."""
    params = {
        "name": strict_json.dumps(call.tool),
        "arguments": call.arguments,
        "_meta": strict_json.dumps(submit_meta(call)),
    }
    request = ask(endpoint, session, call.request_id, "tools/call", params | more, effect=Effect.SUBMIT)
    return replace(request, deadline_s=call.answer_by_s)


def end(endpoint: Endpoint, session: Session) -> Exchange[None]:
    """DELETE, where there is an id to end. Whatever the answer is (405: not for clients to do), it is over."""
    if session.id is not None:
        deadline_s = min(endpoint.deadline_s, END_DEADLINE_S)
        yield Request("DELETE", endpoint.url, session.headers(), deadline_s=deadline_s, max_bytes=END_MAX_BYTES)


# -- answers -----------------------------------------------------------------------------------------------------------


def heard_in(
    session: Session, endpoint: Endpoint, request_id: str, reply: Reply
) -> Message | Busy | NoAccess | Refused | SessionGone:
    """The response to a read. A session that is gone is not a task that is gone (SPEC section 7).

    HTTP 404 speaks of the session only where one was named; else the address is wrong, or the server is being replaced.
    """
    if not isinstance(reply, Answered) or (reply.status == 404 and session.id is None):
        return heard_read(endpoint, request_id, reply)
    if reply.status == 404:
        return SessionGone("HTTP 404")
    heard = heard_read(endpoint, request_id, reply)
    error = heard.error if isinstance(heard, Message) else None
    if error is not None and is_of_session(reply.status, error.code):
        return SessionGone(f"HTTP {reply.status}, error {error.code}: {error.message}")
    return heard
