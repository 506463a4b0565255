"""What the answers of declared HTTP APIs have in common: pure functions from a reply to what was heard, or an outcome.

Statuses speak first here (MCP's speak only where no result does), and the body is read where it can be.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import cast

from . import strict_json
from .answers import retry_after_s, trouble, wants_credential
from .contract import (
    Answered,
    Endpoint,
    NoAnswer,
    Reply,
    Request,
    Sent,
)
from .fields import MAX_TASK_ID_CHARS, Malformed, text
from .http_api import HttpApi
from .http_routes import ForeignUrl, is_usable_id, same_origin
from .outcomes import (
    Busy,
    NoAccess,
    NotFound,
    NotProcessed,
    NotSent,
    Refused,
    Unclear,
)
from .strict_json import BadJson, Json, is_storable

MAX_REDIRECTS = 3
"""Of one read. Never of a request with an effect."""

_MOVED = frozenset({301, 302, 307, 308})


@dataclass(frozen=True, slots=True)
class Heard:
    """A whole answer. `value` is None where there is no body, and where it can't be read: then `fault` says why."""

    status: int
    headers: "dict[str, str]"
    body: bytes
    value: Json
    fault: str | None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def empty(self) -> bool:
        return not self.body.strip()

    @property
    def wait_s(self) -> float | None:
        return retry_after_s(self.headers)

    @property
    def interval_ms(self) -> int | None:
        """When the server wants to be asked again."""
        return None if self.wait_s is None else int(self.wait_s * 1000)

    def at(self, pointer: str) -> Json:
        """The value that a pointer names; None where there is none."""
        try:
            return strict_json.resolve(self.value, pointer)
        except BadJson:
            return None

    def has(self, pointer: str) -> bool:
        try:
            strict_json.resolve(self.value, pointer)
        except BadJson:
            return False
        return self.fault is None and not self.empty


def heard_whole(reply: Answered) -> Heard:
    """An answer with its body read, where it can be."""
    value: Json = None
    fault = None
    try:
        value = strict_json.loads(reply.body) if reply.body.strip() else None
    except BadJson as error:
        fault = str(error)
    return Heard(reply.status, dict(reply.headers), reply.body, value, fault)


def heard_effect(endpoint: Endpoint, reply: Reply) -> Heard | NotProcessed | Unclear | NotSent:
    """The answer to a request with an effect, or what its absence says."""
    if isinstance(reply, NoAnswer):
        if reply.sent is Sent.NO:
            return NotSent(reply.why)
        too_large = len(reply.body) >= endpoint.max_response_bytes
        return Unclear("E_RESULT_TOO_LARGE" if too_large else "E_NO_ANSWER", reply.why)
    if wants_credential(reply):
        return NotProcessed(f"HTTP {reply.status}", retry_after_s(reply.headers), auth=True)
    if reply.status in endpoint.not_processed_statuses:
        return NotProcessed(f"HTTP {reply.status}", retry_after_s(reply.headers))
    return heard_whole(reply)


def heard_read(endpoint: Endpoint, reply: Reply) -> Heard | Busy | NoAccess | Refused | NotFound:
    """The answer to a read (2xx or 303), or what keeps it from us. 410 says more than 404 and means the same: that
    there is nothing to be asked any more."""
    if isinstance(reply, NoAnswer) and len(reply.body) >= endpoint.max_response_bytes:
        return Refused("E_RESULT_TOO_LARGE", reply.why)
    found = trouble(reply)
    if found is not None:
        return found
    answer = cast("Answered", reply)  # `trouble` took everything else
    if answer.status in (404, 410):
        return NotFound(f"HTTP {answer.status}" + (": it was there, and is gone" if answer.status == 410 else ""))
    if 200 <= answer.status < 300 or answer.status == 303:
        return heard_whole(answer)
    return Busy(f"HTTP {answer.status}")


def ask(
    endpoint: Endpoint, api: HttpApi, url: str, *, see_other: bool = False
) -> Generator[Request, Reply, Reply | Refused]:
    """A read that follows where it was moved to, within the target's origin. `see_other`: a 303 is followed as well,
    which of a status would say that it is over."""
    moved = _MOVED | {303} if see_other else _MOVED
    for _ in range(MAX_REDIRECTS):
        reply = yield api.get(endpoint, url)
        if not isinstance(reply, Answered) or reply.status not in moved:
            return reply
        try:
            url = same_origin(endpoint.url, url, reply.headers.get("location", ""))
        except ForeignUrl as error:
            return Refused(error.code, str(error))
    return Refused("E_CROSS_ORIGIN_REDIRECT", f"moved more than {MAX_REDIRECTS} times")


def id_text(value: Json, *, slashes: bool = False) -> str | None:
    """An id as text; None where there is none. A whole number keeps every digit.

    Raises Malformed: an id that is changed here could never be asked for.
    """
    if value is None:
        return None
    number = isinstance(value, int) and not isinstance(value, bool)
    found = str(value) if number else value
    if not isinstance(found, str) or not 0 < len(found) <= MAX_TASK_ID_CHARS or not is_storable(found):
        raise Malformed("the server named an id that can't be used")
    if not is_usable_id(found, slashes=slashes):
        raise Malformed("the server named an id that would lead elsewhere")
    return found


def said_of_failure(value: Json) -> str | None:
    """What a failure says for people: a text, or the `message` of an object."""
    return text(value.get("message")) if isinstance(value, dict) else text(value)
