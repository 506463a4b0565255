"""How MCP is spoken in a transcript: which step a request asks for, and what a step's answer is on the wire.

The handshake is answered from the transcript's `tool`. 2025 servers hand out a session; both versions answer as JSON
unless a step streams.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ..adapters import mcp_hints, strict_json
from ..adapters.contract import Answered, Request
from ..adapters.mcp_lookup import TOOL as LOOKUP_TOOL
from ..adapters.mcp_negotiation import SUBMISSION_KEY
from ..adapters.outcomes import Hint
from ..adapters.strict_json import BadJson
from .conform_dialect import JSON_HEADERS, Asked, headers_of, padded, plain_answer

STREAM_HEADERS = {"content-type": "text/event-stream"}

_KINDS = {
    "tools/call": "submit",
    "tasks/get": "status",
    "tasks/result": "result",
    "tasks/cancel": "cancel",
    "tasks/update": "input",
    "tasks/list": "list",
    "lookup": "lookup",
    "initialize": "handshake",
}


class McpDialect:
    """One server of a transcript. Remembers the requests that it sent, so that replies to them are known."""

    def __init__(self, tool: Mapping[str, Any], *, stateless: bool) -> None:
        self._tool = tool
        self._stateless = stateless
        self._sessions = 0
        self._sent: dict[str, str] = {}

    # -- requests ------------------------------------------------------------------------------------------------------

    def read(self, request: Request) -> Asked:
        """What a request of our loop asks for."""
        if request.method != "POST":
            return Asked(request.method, None)
        message = _object(request.body)
        params = _members(message.get("params"))
        key = _members(params.get("_meta")).get(SUBMISSION_KEY)
        on = self._on(message, params)
        headers = {name.lower(): value for name, value in request.headers}
        view = headers | message | params | _members(message.get("result")) | ({} if key is None else {"key": key})
        kind = "input" if on.startswith("reply:") else _KINDS.get(on)
        return Asked(on, kind, view, key if kind == "submit" else None, message.get("id"))

    def _on(self, message: Mapping[str, Any], params: Mapping[str, Any]) -> str:
        if "method" not in message:
            return f"reply:{self._sent.get(_name(message.get('id')), 'a request that was never sent')}"
        if message["method"] == "tools/call" and params.get("name") == LOOKUP_TOOL:
            return "lookup"
        return str(message["method"])

    # -- answers -------------------------------------------------------------------------------------------------------

    def handshake(self, asked: Asked) -> Answered | None:
        """What every server says, whatever its transcript; None where only a step can answer."""
        if asked.on == "DELETE" or asked.on.startswith("notifications/"):
            return Answered(202)
        if asked.on == "GET":
            return Answered(405)
        result = self._of_tool(asked)
        if result is None:
            return None
        headers = JSON_HEADERS
        if asked.on == "initialize":
            self._sessions += 1
            headers = JSON_HEADERS | {"mcp-session-id": f"session-{self._sessions}"}
        return Answered(200, headers, _response(asked, {"result": result}))

    def _of_tool(self, asked: Asked) -> dict[str, Any] | None:
        capabilities: dict[str, Any] = {"tools": {}} | dict(self._tool.get("capabilities", {}))
        info = {"name": "transcript", "version": "1"}
        if asked.on == "initialize" and not self._stateless:
            version = asked.view.get("protocolVersion")
            return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
        if asked.on == "server/discover" and self._stateless:
            versions = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "serverInfo": info}
            return versions | {"resultType": "complete"}
        if asked.on == "tools/list":
            return {"tools": self._tools()} | ({"resultType": "complete"} if self._stateless else {})
        return None

    def _tools(self) -> Sequence[dict[str, Any]]:
        tool: dict[str, Any] = {"name": self._tool["name"], "inputSchema": {"type": "object"}}
        if self._tool.get("outputSchema") is not None:
            tool["outputSchema"] = self._tool["outputSchema"]
        if self._tool.get("taskSupport", "absent") != "absent":
            tool["execution"] = {"taskSupport": self._tool["taskSupport"]}
        if self._tool["keyLookup"] == "none":
            return [tool]
        hints = {"readOnlyHint": True, "idempotentHint": True}
        return [tool, {"name": LOOKUP_TOOL, "inputSchema": {"type": "object"}, "annotations": hints}]

    def answer(self, asked: Asked, respond: Mapping[str, Any]) -> Answered:
        """A step's answer as it goes over the wire."""
        status = respond.get("status", 200)
        headers = headers_of(respond)
        if "stream" in respond:
            return Answered(status, STREAM_HEADERS | headers, self._stream(asked, respond))
        plain = plain_answer(respond)
        if plain is not None:
            return plain
        if asked.on.startswith("reply:"):
            return Answered(respond.get("status", 202), headers)
        return Answered(status, JSON_HEADERS | headers, padded(self._message(asked, respond), respond))

    def _message(self, asked: Asked, respond: Mapping[str, Any]) -> bytes:
        if "error" in respond:
            return _response(asked, {"error": respond["error"]})
        result = respond.get("result")
        return _response(asked, {"result": self._tool_result(result) if asked.on == "lookup" else result})

    def _tool_result(self, told: Any) -> dict[str, Any]:
        """What the look-up tool says, as a tool says it: structured, and as text for old clients."""
        text = {"type": "text", "text": strict_json.dumps(told).decode()}
        result = {"content": [text], "structuredContent": told, "isError": False}
        return result | ({"resultType": "complete"} if self._stateless else {})

    def _stream(self, asked: Asked, respond: Mapping[str, Any]) -> bytes:
        events = []
        for sent in respond["stream"]:
            if "id" in sent:
                self._sent[_name(sent["id"])] = str(sent.get("method"))
            events.append(strict_json.dumps({"jsonrpc": "2.0"} | sent))
        if "result" in respond or "error" in respond:
            events.append(padded(self._message(asked, respond), respond))
        return b"".join(b"event: message\ndata: " + event + b"\n\n" for event in events)

    def hints(self, message: Mapping[str, Any]) -> tuple[Hint, ...]:
        """What a notification says, which comes on a stream."""
        data = strict_json.dumps({"jsonrpc": "2.0"} | dict(message))
        return mcp_hints.read(Answered(200, STREAM_HEADERS, b"event: message\ndata: " + data + b"\n\n"))

    def payload(self, result: Any) -> Any:
        """As it is."""
        return result


def _response(asked: Asked, said: Mapping[str, Any]) -> bytes:
    return strict_json.dumps({"jsonrpc": "2.0", "id": asked.id} | dict(said))


def _object(body: bytes) -> dict[str, Any]:
    try:
        return _members(strict_json.loads(body))
    except BadJson:
        return {}


def _members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _name(id_: Any) -> str:
    """JSON-RPC ids are texts or numbers, and 1 is not "1"."""
    return strict_json.dumps(id_).decode()
