"""What the answers of every MCP version have in common: pure functions from a reply to a message or an outcome.

Codes in outcomes: `-32603` is the server's JSON-RPC code, `HTTP 503` its status, `E_…` ours.
"""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import cast

from .answers import retry_after_s, trouble, wants_credential
from .contract import (
    Answered,
    Endpoint,
    NoAnswer,
    Reply,
    Sent,
)
from .jsonrpc import INVALID_REQUEST, Message, NoResponse, RpcError, read, read_cut
from .outcomes import (
    Busy,
    NoAccess,
    NotProcessed,
    NotSent,
    Over,
    Payload,
    Refused,
    Rejected,
    SubmitOutcome,
    Terminal,
    Unclear,
)
from .profile import Profile
from .strict_json import Json, is_storable, storable

MAX_WORD_CHARS = 64
MAX_TEXT_CHARS = 1000
MAX_TASK_ID_CHARS = 512
MAX_SAFE_INTEGER = 2**53 - 1
MAX_INPUT_KEYS = 64

KEY_REUSED = "E_KEY_REUSED_DIFFERENT_REQUEST"
"""The server knows the submission key with another request: our code, and its own `data.code`."""

# -32000 and -32001: what TypeScript servers say under HTTP 400; -32600: Python's ("Session not found")
SESSION_CODES = frozenset({-32000, -32001, INVALID_REQUEST})


class Malformed(ValueError):
    """A field that must be exact can't be used. The message repeats none of the content."""


# -- the answer to a request with an effect ----------------------------------------------------------------------------


def heard_submit(
    profile: Profile,
    endpoint: Endpoint,
    request_id: str,
    reply: Reply,
    read_result: Callable[[Message, dict[str, Json]], SubmitOutcome],
) -> SubmitOutcome:
    """SPEC section 1, point 5: what certainly never ran, what was certainly refused, and everything else is unclear.

    `read_result` reads a version's own result objects; it may raise Malformed.
    """
    heard = heard_effect(profile, endpoint, request_id, reply)
    if not isinstance(heard, Message):
        return heard
    if heard.error is not None:
        return _error_of_submit(profile, heard.error, reply)
    if not isinstance(heard.result, dict):
        return Unclear("E_UNREADABLE_ANSWER", "the result is not an object")
    try:
        return read_result(heard, heard.result)
    except Malformed as error:
        return Unclear("E_UNREADABLE_ANSWER", str(error))


def _error_of_submit(profile: Profile, error: RpcError, reply: Reply) -> SubmitOutcome:
    """With sessions a code that the transport may have made for a lost session is no definite rejection."""
    if member(error.data, "code") == KEY_REUSED:
        return Unclear(KEY_REUSED, error.message)
    of_session = profile.sessions and isinstance(reply, Answered) and is_of_session(reply.status, error.code)
    if error.code in profile.definite_codes and not of_session:
        return Rejected(str(error.code), error.message)
    return Unclear(str(error.code), error.message)


def is_of_session(status: int, code: int | None) -> bool:
    """Whether an answer speaks of the session and not of the request in it: HTTP 404, and 400 with a session's code."""
    return status == 404 or (status == 400 and code in SESSION_CODES)


def heard_effect(
    profile: Profile, endpoint: Endpoint, request_id: str, reply: Reply
) -> Message | NotProcessed | Unclear | NotSent:
    """The response to a request with an effect, or what its absence says. Statuses speak only where no result does."""
    if isinstance(reply, NoAnswer):
        if reply.sent is Sent.NO:
            return NotSent(reply.why)
        too_large = len(reply.body) >= endpoint.max_response_bytes
        unclear = Unclear("E_RESULT_TOO_LARGE" if too_large else "E_NO_ANSWER", reply.why)
        return read_cut(reply.body, request_id) or unclear
    message, why = _read(reply, request_id)
    status, wait_s = reply.status, retry_after_s(reply.headers)
    if message is not None and message.error is None:
        if 200 <= status < 300:
            return message
        return Unclear(f"HTTP {status}", "a result under a status that says there is none", wait_s)
    if wants_credential(reply):
        return NotProcessed(f"HTTP {status}", wait_s, auth=True)
    if status in profile.not_processed_statuses | endpoint.not_processed_statuses:
        return NotProcessed(f"HTTP {status}", wait_s)
    if message is None or status >= 500:
        return Unclear(f"HTTP {status}" if status >= 300 else "E_UNREADABLE_ANSWER", why, wait_s)
    return message


def _read(answer: Answered, request_id: str) -> tuple[Message | None, str]:
    try:
        message = read(answer, request_id)
    except NoResponse as error:
        return None, f"HTTP {answer.status}: {error}"
    return message, f"HTTP {answer.status}: {message.error.message}" if message.error else ""


# -- the answer to a read ----------------------------------------------------------------------------------------------


def heard_read(endpoint: Endpoint, request_id: str, reply: Reply) -> Message | Busy | NoAccess | Refused:
    """The response to a read, or what keeps it from us: busy, no access, or larger than we take."""
    if isinstance(reply, NoAnswer) and len(reply.body) >= endpoint.max_response_bytes:
        return Refused("E_RESULT_TOO_LARGE", reply.why)
    cut = read_cut(reply.body, request_id) if isinstance(reply, NoAnswer) else None
    if cut is not None:
        return cut
    found = trouble(reply)
    if found is not None:
        return found
    answer = cast("Answered", reply)  # `trouble` took everything else
    try:
        message = read(answer, request_id)
    except NoResponse:
        return Busy(f"HTTP {answer.status}" if answer.status >= 300 else "E_UNREADABLE_ANSWER")
    if message.error is None and answer.status >= 300:
        return Busy(f"HTTP {answer.status}")
    return message


def result_at_once(message: Message, result: dict[str, Json], at: str = "/result") -> Over | Unclear:
    """The result of a plain call. A handle or a question in another version's shape must not pass for it.

    Raises Malformed.
    """
    if result.get("resultType") not in (None, "complete") or "taskId" in result or "task" in result:
        return Unclear("E_PROTOCOL_MIX", "an answer in the shape of another protocol version")
    if "content" not in result and "structuredContent" not in result:
        raise Malformed("the result is neither a task nor the result of a tool")
    return tool_result(message, result, at)


def tool_result(message: Message, result: dict[str, Json], at: str = "/result") -> Over:
    """A `CallToolResult` that stands in the message `at` a pointer; no payload when it holds nothing."""
    structured = result.get("structuredContent") is not None
    pointer = f"{at}/structuredContent" if structured else at
    payload = Payload(message.body, pointer) if structured or "content" in result else None
    return Over(Terminal.COMPLETED, "completed", payload, tool_error=says_error(result))


def says_error(result: dict[str, Json]) -> bool:
    """`isError` is the tool's own word, whatever the status: anything but absent or false counts as an error."""
    return result.get("isError") not in (None, False)


# -- fields ------------------------------------------------------------------------------------------------------------


def task_id(result: dict[str, Json]) -> str:
    """The id of a task that was made. Raises Malformed: an id that is changed here could never be asked for."""
    found = result.get("taskId")
    if not isinstance(found, str) or not 0 < len(found) <= MAX_TASK_ID_CHARS or not is_storable(found):
        raise Malformed("a task was made, but its id can't be used")
    return found


def word(value: Json) -> str | None:
    """A server's one-word text, storable and cut; None for anything but a text."""
    return storable(value, MAX_WORD_CHARS)


def text(value: Json) -> str | None:
    """A server's text for people, storable and cut; None for anything but a text."""
    return storable(value, MAX_TEXT_CHARS)


def status_unknown(status: Json) -> Refused:
    """A status word that this version does not have is no status (SPEC section 3)."""
    said = word(status)
    return Refused("E_STATUS_UNKNOWN", f"status {said!r}" if said else "no status")


def whole_ms(value: Json) -> int | None:
    """A duration in [0, 2**53 - 1]; 1e30 is the upper end, a negative or a text is no word at all."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return None
    if isinstance(value, float) and not isfinite(value):
        return None
    return int(min(value, MAX_SAFE_INTEGER))


def items(value: Json) -> Sequence[Json]:
    """The items of an array; none for anything else."""
    return value if isinstance(value, list) else ()


def member(value: Json, *names: str) -> Json:
    """The value at a chain of member names; None where the chain breaks off."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
