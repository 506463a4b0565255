"""Task notifications that a server put on the stream of another answer.

`notifications/tasks/status` (2025-11-25) and `notifications/tasks` (2026-07-28) name a task that has moved. They are
hints: optional, perhaps late, perhaps forged. They wake a read of that task and are never evidence (SPEC section 5).
"""

from itertools import islice

from . import strict_json
from .contract import Answered, Reply
from .fields import MAX_TASK_ID_CHARS, member, word
from .jsonrpc import NoResponse, events
from .outcomes import Hint
from .sse import is_stream
from .strict_json import BadJson, is_storable

MAX_HINTS = 50
MAX_NOTIFICATIONS = 500
"""Looked at in one stream: a flood of them costs no more than this many parses."""

_METHODS = ("notifications/tasks/status", "notifications/tasks")
_TRACE = b"notifications"


def read(reply: Reply) -> tuple[Hint, ...]:
    """What was said, each word of a task once, in the order of the stream. The tasks may be anybody's."""
    if _TRACE not in reply.body or (isinstance(reply, Answered) and not is_stream(reply.headers)):
        return ()
    found: dict[Hint, None] = {}
    try:
        for data in islice((data for data in events(reply.body) if _TRACE in data), MAX_NOTIFICATIONS):
            hint = _hint(data)
            if hint is not None and len(found) < MAX_HINTS:
                found[hint] = None
    except NoResponse:  # the stream can't be read any further
        pass
    return tuple(found)


def _hint(data: bytes) -> Hint | None:
    try:
        message = strict_json.loads(data)
    except BadJson:
        return None
    named = member(message, "params", "taskId") if member(message, "method") in _METHODS else None
    if not isinstance(named, str) or not 0 < len(named) <= MAX_TASK_ID_CHARS or not is_storable(named):
        return None
    return Hint(named, word(member(message, "params", "status")))
