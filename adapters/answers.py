"""What an HTTP answer says before anybody reads its body: waits asked for, credentials asked for, trouble of a read."""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from .contract import (
    Answered,
    NoAnswer,
    Reply,
    Sent,
)
from .outcomes import Busy, NoAccess

MAX_RETRY_AFTER_S = 3600.0
"""A server may not close a target for longer: 1e9 seconds would close it for years. After that it may ask again."""

_SECONDS = re.compile(r"\d{1,15}(\.\d{1,9})?")
_TRANSIENT = frozenset({408, 425, 429})


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds asked for by Retry-After, in [0, MAX_RETRY_AFTER_S]; None when there is none that can be read.

    A date is taken relative to the answer's own Date header: there is no clock here, and theirs may differ from ours.
    """
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if _SECONDS.fullmatch(text):
        wait_s = float(text)
    else:
        try:
            asked_at = parsedate_to_datetime(headers.get("date", ""))
            wait_s = (parsedate_to_datetime(text) - asked_at).total_seconds()
        except (ValueError, TypeError, OverflowError, IndexError):
            return None
    return min(max(wait_s, 0.0), MAX_RETRY_AFTER_S)


def wants_credential(answer: Answered) -> bool:
    """401, or 403 with a challenge: a new credential is needed. A bare 403 may come from the tool itself."""
    return answer.status == 401 or (answer.status == 403 and "www-authenticate" in answer.headers)


def trouble(reply: Reply) -> Busy | NoAccess | None:
    """What keeps a *read* from having an answer; None when there is an answer worth reading."""
    if isinstance(reply, NoAnswer):
        return Busy("E_NO_CONNECTION" if reply.sent is Sent.NO else "E_NO_ANSWER")
    if wants_credential(reply):
        return NoAccess(f"HTTP {reply.status}: the server wants another credential")
    if reply.status >= 500 or reply.status in _TRANSIENT:
        wait_s = retry_after_s(reply.headers)
        return Busy(f"HTTP {reply.status}", wait_s, closes_target=wait_s is not None and reply.status in (429, 503))
    return None
