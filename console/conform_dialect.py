"""What a transcript's server has to know of a protocol: which step a request asks for, and what an answer is on the
wire."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..adapters import strict_json
from ..adapters.contract import Answered, Request
from ..adapters.outcomes import Hint

JSON_HEADERS = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as a transcript sees it. `on` names the steps that may answer it; `view` is what `match` is held
    against; `kind` None is counted nowhere."""

    on: str
    kind: str | None
    view: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    id: Any = None


class Dialect(Protocol):
    """One server of a transcript."""

    def read(self, request: Request) -> Asked:
        """What a request of our loop asks for."""
        ...

    def handshake(self, asked: Asked) -> Answered | None:
        """What every server says, whatever its transcript; None where only a step can answer."""
        ...

    def answer(self, asked: Asked, respond: Mapping[str, Any]) -> Answered:
        """A step's answer as it goes over the wire."""
        ...

    def hints(self, message: Mapping[str, Any]) -> tuple[Hint, ...]:
        """What a push or a callback of this server says of its tasks."""
        ...

    def payload(self, result: Any) -> Any:
        """A receipt's result as transcripts write it."""
        ...


def headers_of(respond: Mapping[str, Any]) -> dict[str, str]:
    """As our wire hands them on: with names in lower case."""
    return {name.lower(): value for name, value in respond.get("headers", {}).items()}


def plain_answer(respond: Mapping[str, Any]) -> Answered | None:
    """An answer whose body is written out (`text`, `raw`, `json`); None for any other."""
    status, headers = respond.get("status", 200), headers_of(respond)
    if "text" in respond:
        return Answered(status, {"content-type": "text/html"} | headers, respond["text"].encode())
    if "raw" in respond:
        return Answered(status, JSON_HEADERS | headers, respond["raw"].encode())
    if "json" in respond:
        return Answered(status, JSON_HEADERS | headers, padded(strict_json.dumps(respond["json"]), respond))
    return None


def padded(message: bytes, respond: Mapping[str, Any]) -> bytes:
    """`fill`: as many bytes at the least. Space after a value is JSON, and it is sent like any other byte."""
    return message.ljust(respond.get("fill", 0))
