"""What the answers of every JSON-RPC protocol have in common: pure functions from a reply to a message or an outcome.

Codes in outcomes: `-32603` is the server's JSON-RPC code, `HTTP 503` its status, `E_…` ours.
"""

from collections.abc import Callable
from typing import cast

from .answers import retry_after_s, trouble, wants_credential
from .contract import (
    Answered,
    Endpoint,
    NoAnswer,
    Reply,
    Sent,
)
from .fields import Malformed, member
from .jsonrpc import INVALID_REQUEST, Message, NoResponse, RpcError, read, read_cut
from .outcomes import (
    KEY_REUSED,
    Busy,
    NoAccess,
    NotProcessed,
    NotSent,
    Refused,
    Rejected,
    SubmitOutcome,
    Unclear,
)
from .profile import Profile
from .strict_json import Json

# -32000 and -32001: what TypeScript servers say under HTTP 400; -32600: Python's ("Session not found")
SESSION_CODES = frozenset({-32000, -32001, INVALID_REQUEST})


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
