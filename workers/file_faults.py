"""What pydantic finds wrong with a file of ours, in our words and with the line of each."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType

from pydantic import ValidationError

from .yaml_lines import Document, KeyPath, Problem

_MAPPING = "must be a mapping: indented lines of `key: value`."
_WORDS = {
    "missing": "is missing.",
    "model_type": _MAPPING,
    "dict_type": _MAPPING,
    "model_attributes_type": _MAPPING,
}


def described(
    document: Document,
    above: KeyPath,
    error: ValidationError,
    known: Callable[[KeyPath], Iterable[str]],
    words: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Problem]:
    """The library's findings, with their lines. `above`: where in the file the value stands that was judged. `known`:
    which keys may stand at a place, of which the nearest is named for one that may not. `words`: what this file says
    to a kind of finding (`too_short`)."""
    said = {**_WORDS, **words}
    for fault in error.errors(include_input=False, include_url=False):
        path = (*above, *(part for part in fault["loc"] if part != "[key]"))
        if fault["type"] == "extra_forbidden":
            near = get_close_matches(str(path[-1]), known(path[:-1]), n=1)
            what = "there is no such setting" + (f"; did you mean {near[0]}?" if near else ".")
        else:
            what = said.get(fault["type"], told(fault["msg"]))
        yield document.line(path), f"{dotted(path)}: {what}"


def told(message: str) -> str:
    """The library's message, or a validator's of ours, as one sentence."""
    return f"{message.removeprefix('Value error, ').removeprefix('Input ')}.".replace("..", ".")


def dotted(path: KeyPath) -> str:
    """A place in the file, as people write it."""
    return ".".join(map(str, path)) or "the file"
