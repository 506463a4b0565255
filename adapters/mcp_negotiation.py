"""What the negotiations of every MCP version have in common: reads that must succeed, and the search for a tool."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from . import strict_json
from .answers import trouble
from .contract import (
    Answered,
    Call,
    Exchange,
    Reply,
    Request,
)
from .fields import items, word
from .jsonrpc import INTERNAL_ERROR, NoResponse, read
from .outcomes import (
    Busy,
    Negotiated,
    NoAccess,
    NotOffered,
)
from .strict_json import Json

SUBMISSION_KEY = "dev.counterfoil/submission-key"
"""The `_meta` key under which the submission key travels with a call."""


def submit_meta(call: Call) -> dict[str, Json]:
    """What travels with a call beside its arguments: the key, and the trace context where there is one."""
    meta: dict[str, Json] = {SUBMISSION_KEY: call.submission_key}
    if call.traceparent:
        meta["traceparent"] = call.traceparent
    return meta


ADAPTER_VERSION = "1"
"""Raised when what is sent, or how answers are read, changes."""

CLIENT_INFO: dict[str, Json] = {"name": "counterfoil", "version": ADAPTER_VERSION}
CONTENT_HEADERS = (("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream"))

MAX_NAME_CHARS = 128

Trouble: TypeAlias = Busy | NoAccess | NotOffered
"""Why a negotiation has no result object to go on with."""


@dataclass(frozen=True, slots=True)
class Negotiator:
    """Asks one server, for one protocol. `post` makes the request: (request id, method, params)."""

    protocol: str
    server: str
    new_id: Callable[[], str]
    post: Callable[[str, str, dict[str, bytes]], Request]

    def ask(self, method: str, params: dict[str, bytes]) -> Exchange[dict[str, Json] | Trouble]:
        """One read: the result object, or why there is none."""
        request_id = self.new_id()
        reply = yield self.post(request_id, method, params)
        return self.result(method, reply, request_id)

    def result(self, method: str, reply: Reply, request_id: str) -> dict[str, Json] | Trouble:
        """The result object of an answer to `method`, or why there is none."""
        found = trouble(reply)
        if found is not None:
            return found
        assert isinstance(reply, Answered)  # `trouble` took everything else
        try:
            message = read(reply, request_id)
        except NoResponse as error:
            return self.unsupported(f"{method}: HTTP {reply.status}, {error}")
        if message.error is not None:
            if message.error.code == INTERNAL_ERROR:
                return Busy(str(INTERNAL_ERROR))
            return self.unsupported(f"{method}: error {message.error.code}, {message.error.message}")
        if not isinstance(message.result, dict):
            return self.unsupported(f"{method}: the result is not an object")
        return message.result

    def find_tool(self, tool: str, max_pages: int) -> Exchange[dict[str, Json] | Trouble]:
        """`tools/list` page by page until the tool is there: its descriptor, every text of it storable."""
        names: list[str] = []
        cursor: str | None = None
        for _ in range(max_pages):
            params: dict[str, bytes] = {} if cursor is None else {"cursor": strict_json.dumps(cursor)}
            heard = yield from self.ask("tools/list", params)
            if not isinstance(heard, dict):
                return heard
            tools = [item for item in items(heard.get("tools")) if isinstance(item, dict)]
            for item in tools:
                if item.get("name") == tool:
                    return self._usable(item, tool)
            names += [name for item in tools if isinstance(name := item.get("name"), str)]
            following = heard.get("nextCursor")
            if not isinstance(following, str) or following == cursor or not strict_json.is_storable(following):
                return self._no_such_tool(tool, names, "")
            cursor = following
        return self._no_such_tool(tool, names, f" on the first {max_pages} pages of its list")

    def agreed(self, descriptor: dict[str, Json], session: bytes | None = None) -> Negotiated:
        """The outcome for a tool whose descriptor `find_tool` gave."""
        return Negotiated(
            protocol=self.protocol,
            descriptor=strict_json.dumps(descriptor),
            tool_version=word(descriptor.get("version")),
            input_schema=_object_text(descriptor.get("inputSchema")),
            output_schema=_object_text(descriptor.get("outputSchema")),
            session=session,
        )

    def unusable(self, tool: str, why: str) -> NotOffered:
        return NotOffered(
            "E_TOOL_UNKNOWN", f"Not sent: {self.server} offers {tool}, but {why}. Ask its owner to mend it."
        )

    def unsupported(self, why: str) -> NotOffered:
        return NotOffered("E_CAPABILITY_UNSUPPORTED", f"Not sent: {self.server} does not speak {self.protocol}: {why}")

    def _usable(self, descriptor: dict[str, Json], tool: str) -> dict[str, Json] | NotOffered:
        unstorable = strict_json.find_unstorable(descriptor)
        if unstorable is None:
            return descriptor
        return self.unusable(tool, f"its descriptor holds a text that can't be stored, at {unstorable[:200]}")

    def _no_such_tool(self, tool: str, names: list[str], where: str) -> NotOffered:
        storable = tuple(dict.fromkeys(name for name in names if strict_json.is_storable(name)))
        usable = [name for name in storable if len(name) <= MAX_NAME_CHARS]
        near = get_close_matches(tool, usable[:1000], n=3)  # difflib is quadratic, and the names are the server's
        hint = f" Near names: {', '.join(near)}." if near else ""
        return NotOffered("E_TOOL_UNKNOWN", f"Not sent: {self.server} offers no tool {tool}{where}.{hint}", storable)


def _object_text(value: Json) -> bytes | None:
    return strict_json.dumps(value) if isinstance(value, dict) else None
