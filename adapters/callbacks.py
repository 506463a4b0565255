"""Callbacks: what a server posts to us about work of ours. They are hints, in every protocol: never evidence."""

from . import strict_json
from .fields import Malformed, member, word
from .http_answers import id_text
from .outcomes import Hint
from .strict_json import BadJson, Json

MAX_CALLBACK_BYTES = 64 * 1024
MAX_HINTS = 16

_IDS = ("taskId", "id", "name", "jobID", "jobId", "operationId")
_STATUSES = ("status", "state")


def read(body: bytes) -> tuple[Hint, ...]:
    """Every id that a callback names at its top, or one level below (`{"task": {"id": …}}`). Never raises.

    Which member is the id needs no declaration: an id that is none of ours wakes nothing.
    """
    if len(body) > MAX_CALLBACK_BYTES:
        return ()
    try:
        value = strict_json.loads(body)
    except BadJson:
        return ()
    if not isinstance(value, dict):
        return ()
    hints = dict[str, Hint]()
    for one in (value, *(item for item in value.values() if isinstance(item, dict))):
        for name in _IDS:
            found = _id(one.get(name))
            if found is not None:
                status = next((word(member(one, said)) for said in _STATUSES if word(member(one, said))), None)
                hints.setdefault(found, Hint(found, status))
    return tuple(hints.values())[:MAX_HINTS]


def _id(value: Json) -> str | None:
    try:
        return id_text(value, slashes=True)
    except Malformed:
        return None
