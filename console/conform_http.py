"""How a declared HTTP API is spoken in a transcript: `VERB /path` steps, of the routes that its tool names.

Both kinds are here: `http-202` (the submission key in the header Idempotency-Key) and `aip-151` (in the body's
requestId).
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ..adapters import strict_json
from ..adapters.contract import Answered, Request
from ..adapters.http202 import Http202
from ..adapters.outcomes import Hint
from ..adapters.strict_json import BadJson
from .conform_dialect import Asked, headers_of, plain_answer

HTTP_KEY: Mapping[str, Any] = {"header": "Idempotency-Key", "reused_statuses": [422]}
AIP_KEY: Mapping[str, Any] = {"body": "requestId"}

STATUSES = {
    "working": ["queued", "running", "canceling"],
    "completed": ["succeeded"],
    "failed": ["failed"],
    "cancelled": ["canceled", "cancelled"],
}
"""The words of every http-202 server in a transcript."""

_PLACEHOLDER = re.compile(r"\{[a-z]+\}")


class HttpDialect:
    """One server of a transcript. Its routes say which kind of request it is asked."""

    def __init__(self, tool: Mapping[str, Any], key: Mapping[str, Any]) -> None:
        self._key = key
        # Routes with more of their own first: /jobs/{id}/result is no status of the id "{id}/result", /jobs/{key}
        # none of an id that a server made.
        routes = sorted(
            tool["routes"].items(), key=lambda route: ("{key}" not in route[1], -len(_PLACEHOLDER.sub("", route[1])))
        )
        self._kinds = [(kind, _pattern(route)) for kind, route in routes]

    def read(self, request: Request) -> Asked:
        """What a request of our loop asks for."""
        parts = urlsplit(request.url)
        on = f"{request.method} {parts.path}{'?' if parts.query else ''}{parts.query}"
        kind = next((kind for kind, pattern in self._kinds if pattern.fullmatch(on)), None)
        headers = {name.lower(): value for name, value in request.headers}
        body = _members(request.body)
        key = headers.get(self._key.get("header", "").lower()) or body.get(self._key.get("body", ""))
        view = headers | body | ({} if key is None else {"key": key})
        return Asked(on, kind, view, key if kind == "submit" else None)

    def handshake(self, asked: Asked) -> Answered | None:
        """There is none: what isn't a step is not expected."""
        return None

    def answer(self, asked: Asked, respond: Mapping[str, Any]) -> Answered:
        """A step's answer as it goes over the wire."""
        return plain_answer(respond) or Answered(respond.get("status", 200), headers_of(respond))

    def hints(self, message: Mapping[str, Any]) -> tuple[Hint, ...]:
        """What a callback says."""
        return Http202().hints(Answered(200, {"host": "hooks"}, strict_json.dumps(dict(message))))

    def payload(self, result: Any) -> Any:
        """Transcripts write the message that an Any holds, without the name of its type."""
        if isinstance(result, dict):
            return {name: value for name, value in result.items() if name != "@type"}
        return result


def _pattern(route: str) -> re.Pattern[str]:
    bare = ".+".join(re.escape(part) for part in _PLACEHOLDER.split(route.replace("{key}", "\0")))
    return re.compile(bare.replace("\0", "[0-9a-f-]{36}"))


def _members(body: bytes) -> dict[str, Any]:
    try:
        value = strict_json.loads(body) if body else {}
    except BadJson:
        return {}
    return value if isinstance(value, dict) else {}
