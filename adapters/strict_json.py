"""JSON from a server: strict, bounded, and the only way into Python for bytes that we did not write.

The standard parser does the work. Before it runs, the shape is counted without parsing (depth, number of values), since
the C scanner answers deep nesting with RecursionError and a wide array with memory. While it runs, hooks refuse
duplicate keys (two readers of one message would see two messages), NaN, Infinity and numbers too long to convert (int()
of a million digits is quadratic).
"""

import json
import math
import re
from collections.abc import Mapping
from typing import NoReturn, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_DEPTH = 64
MAX_VALUES = 500_000
MAX_NUMBER_CHARS = 400
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

# Possessive, and the closing quote is optional: one pass whatever the bytes are. With a required quote an unterminated
# text full of escaped quotes is quadratic.
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


class BadJson(ValueError):
    """Not JSON that we take. The message says what is wrong and where, and repeats none of the content."""


def loads(data: bytes) -> Json:
    """Parse exact bytes (UTF-8, one value). Raises BadJson and nothing else.

    Texts may still hold NUL or lone surrogates, which JSON allows as escapes and PostgreSQL can't store: see `storable`
    and `find_unstorable`.
    """
    _check_shape(data)
    try:
        return _DECODER.decode(data.decode("utf-8"))  # type: ignore[no-any-return]  # json.JSONDecoder is untyped
    except BadJson:
        raise
    except UnicodeDecodeError as error:
        raise BadJson(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise BadJson(f"not JSON: {error.msg} at character {error.pos}") from None


def dumps(value: Json) -> bytes:
    """One text for one value: sorted keys, no spaces, UTF-8. The value must be storable (`find_unstorable` is None)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def splice(members: Mapping[str, bytes]) -> bytes:
    """An object of JSON texts, put in unchanged (a text that was digested leaves as it was)."""
    return b"{" + b",".join(dumps(name) + b":" + text for name, text in members.items()) + b"}"


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can store the text as it is: no NUL, no lone surrogate."""
    return _UNSTORABLE.search(text) is None


def storable(value: object, max_chars: int) -> str | None:
    """A server's text for people: what can't be stored is replaced, the rest cut. None for anything but a text."""
    return _UNSTORABLE.sub(REPLACEMENT, value[:max_chars]) if isinstance(value, str) else None


def find_unstorable(value: Json) -> str | None:
    """The RFC 6901 pointer of the first key or text that can't be stored; None when all can."""
    stack: list[tuple[str, Json]] = [("", value)]
    while stack:
        where, node = stack.pop()
        if isinstance(node, str):
            if not is_storable(node):
                return where
        elif isinstance(node, list):
            stack.extend((f"{where}/{index}", item) for index, item in enumerate(node))
        elif isinstance(node, dict):
            for key, item in node.items():
                if not is_storable(key):
                    return f"{where}/{escape(_UNSTORABLE.sub(REPLACEMENT, key))}"
                stack.append((f"{where}/{escape(key)}", item))
    return None


def escape(key: str) -> str:
    """A key as one reference token of an RFC 6901 pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def resolve(value: Json, pointer: str) -> Json:
    """The value that an RFC 6901 pointer names. Raises BadJson when there is none."""
    if pointer and not pointer.startswith("/"):
        raise BadJson("a JSON pointer is empty or starts with '/'")
    for token in pointer.split("/")[1:]:
        if isinstance(value, dict):
            key = token.replace("~1", "/").replace("~0", "~")
            if key not in value:
                raise BadJson("the pointer names a key that is not there")
            value = value[key]
        elif isinstance(value, list):
            if not _INDEX.fullmatch(token) or int(token) >= len(value):
                raise BadJson("the pointer names an item that is not there")
            value = value[int(token)]
        else:
            raise BadJson("the pointer goes on below a plain value")
    return value


def _check_shape(data: bytes) -> None:
    """Refuse what nests too deep or holds too many values. Counts over raw bytes are upper bounds: usually enough."""
    openings = data.count(b"[") + data.count(b"{")
    if openings <= MAX_DEPTH and openings + data.count(b",") < MAX_VALUES:
        return
    bare = _TEXT.sub(b"", data)
    if bare.count(b"[") + bare.count(b"{") + bare.count(b",") >= MAX_VALUES:
        raise BadJson(f"more than {MAX_VALUES} values")
    depth = 0
    for bracket in bare.translate(None, _NOT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            raise BadJson(f"nested deeper than {MAX_DEPTH}")


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise BadJson("an object has the same key twice")
    return members


def _integer(text: str) -> int:
    if len(text) > MAX_NUMBER_CHARS:
        raise BadJson(f"a number of more than {MAX_NUMBER_CHARS} characters")
    return int(text)


def _fraction(text: str) -> float:
    number = float(text) if len(text) <= MAX_NUMBER_CHARS else math.inf
    if math.isinf(number):
        raise BadJson("a number out of range")
    return number


def _constant(name: str) -> NoReturn:
    raise BadJson(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_fraction, parse_constant=_constant
)
