"""Fields of an answer, whatever the protocol: what a server says is made storable and cut, or it is not used."""

from collections.abc import Sequence
from math import isfinite

from .outcomes import Refused
from .strict_json import Json, storable

MAX_WORD_CHARS = 64
MAX_TEXT_CHARS = 1000
MAX_TASK_ID_CHARS = 512
MAX_SAFE_INTEGER = 2**53 - 1


class Malformed(ValueError):
    """A field that must be exact can't be used. The message repeats none of the content."""


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
