"""JSON Schema checks of arguments and results, with schemas that a server wrote.

A schema is hostile until shown otherwise. Measured with jsonschema-rs 0.61: definitions that each refer twice to the
next double the work at every step (20 of them: 2^20 visits; 18 failing: 1.5 GB of error objects; 14 with
`unevaluatedProperties`: 2 s to compile, 18: no end seen), and a value nested 100,000 deep ended the process. So nothing
outside the schema is ever read, patterns have a backtracking limit, and the most work that a schema can cause is worked
out before it is compiled (`_Weigher`).
"""

import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import unquote

from ..ledger.errors import CounterfoilError

if TYPE_CHECKING:
    import jsonschema_rs

MAX_SCHEMA_BYTES = 256 * 1024
MAX_DEPTH = 64
"""Nesting of a schema or a value; the strict JSON reader has the same cap."""

MAX_WEIGHT = 4_000
"""Schema nodes that may be tried along one path into a value: the costliest schema found under it compiled in 0.7 s."""

MAX_VISITS = 20_000_000
"""Schema nodes that may be tried over a whole value: about 0.4 s at 18 ns each."""

MAX_VISITS_FOR_ALL = 20_000
"""Up to here every problem is listed: the library makes all its error objects at once, of 6 KB each."""

BACKTRACKING_COSTS_VISITS = 500
"""A schema with a pattern that backtracks (0.14 ms a string at its limit) counts as so much more work: 6 s at most."""

MAX_PROBLEMS = 20
MAX_SHOWN_CHARS = 80
MAX_MESSAGE_CHARS = 300

_BACKTRACKING = re.compile(r"\(\?<?[=!]|\\[1-9k]")
"""Lookaround and references back. Everything else runs in time linear in the text."""


class SchemaError(CounterfoilError):
    """The schema can't be used: not JSON, not a schema, remote, too large, or able to keep a worker busy for ever."""

    code = "E_SCHEMA_INVALID"


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why a value does not fit. `path` is an RFC 6901 pointer into the value, "" for all of it."""

    path: str
    message: str


def check(schema: bytes, value: object) -> list[Problem]:
    """Every way in which a JSON value breaks the schema (JSON text), at most 20; an empty list means that it fits.

    Raises SchemaError (E_SCHEMA_INVALID). What the value holds is shown up to 80 characters. Compiled schemas are kept.
    """
    compiled = _compiled(schema)
    try:
        nodes = _size(value)
    except _TooDeepError:
        return [Problem("", f"is nested more than {MAX_DEPTH} deep.")]
    visits = nodes * compiled.weight * (BACKTRACKING_COSTS_VISITS if compiled.backtracks else 1)
    if visits > MAX_VISITS:
        raise SchemaError(f"checking a value of {nodes} parts could take {visits} steps; the cap is {MAX_VISITS}.")
    try:
        if compiled.validator.is_valid(value):
            return []
        return compiled.problems(value, every=visits <= MAX_VISITS_FOR_ALL)
    except ValueError:  # a lone surrogate, a key that is no string, a type that is not JSON's
        return [Problem("", "is not a JSON value.")]


def require_schema(schema: bytes) -> None:
    """Raises SchemaError (E_SCHEMA_INVALID) where `check` would."""
    _compiled(schema)


@dataclass(frozen=True, slots=True)
class _Compiled:
    validator: "jsonschema_rs.Validator"
    weight: int
    branches: bool
    backtracks: bool

    def problems(self, value: object, *, every: bool) -> list[Problem]:
        if every:
            return [_problem(error) for error in itertools.islice(self.validator.iter_errors(value), MAX_PROBLEMS)]
        if self.branches:  # the one error of an anyOf holds the errors of all its branches
            return [Problem("", "breaks the schema; it is too large for a list of reasons.")]
        import jsonschema_rs  # noqa: PLC0415  see `_compiled`

        try:
            self.validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return [_problem(error)]
        return []


@functools.lru_cache(maxsize=128)
def _compiled(schema: bytes) -> _Compiled:
    if len(schema) > MAX_SCHEMA_BYTES:
        raise SchemaError(f"the schema is {len(schema)} bytes; the cap is {MAX_SCHEMA_BYTES}.")
    try:
        document = json.loads(schema)
        _size(document)
    except (ValueError, RecursionError):
        raise SchemaError("the schema is not JSON text.") from None
    except _TooDeepError:
        raise SchemaError(f"the schema is nested more than {MAX_DEPTH} deep.") from None
    if not isinstance(document, dict | bool):
        raise SchemaError(f"a schema is an object or a boolean, not a {type(document).__name__}.")
    weigher = _Weigher(document)
    weight = weigher.weight()
    import jsonschema_rs  # noqa: PLC0415  4 MB, which a worker without schemas need not hold

    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=10_000, size_limit=1 << 20, dfa_size_limit=1 << 20)
    try:
        validator = jsonschema_rs.validator_for(
            document, retriever=_refuse, pattern_options=patterns, mask="the value", validate_formats=False
        )
    except ValueError as error:
        where = _pointer(getattr(error, "instance_path", []))
        why = str(getattr(error, "message", error))[:MAX_MESSAGE_CHARS]
        raise SchemaError(f"the schema can't be used, at {where or 'its root'}: {why}.") from None
    return _Compiled(validator, weight, weigher.branches, weigher.backtracks)


def _refuse(_uri: str) -> NoReturn:
    raise ValueError("a schema may only refer to itself")


def _problem(error: "jsonschema_rs.ValidationError") -> Problem:
    """The library's words with the value left out (`mask`); a short value is added, for it is what people look for."""
    message = error.message[:MAX_MESSAGE_CHARS]
    shown = json.dumps(error.instance, ensure_ascii=False, default=str)
    if len(shown) <= MAX_SHOWN_CHARS and not isinstance(error.instance, dict | list):
        message += f" (it is {shown})"
    return Problem(_pointer(error.instance_path)[:MAX_MESSAGE_CHARS], f"{message}.")


def _pointer(path: list[str | int]) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


class _TooDeepError(Exception):
    pass


def _size(value: object) -> int:
    """How many parts a JSON value has. Not recursive: the value may be deeper than Python's stack."""
    count, level = 0, [value]
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return count
        count += len(level)
        level = [child for part in level for child in _children(part)]
    raise _TooDeepError


def _children(part: object) -> Iterator[object]:
    if isinstance(part, dict):
        yield from part.values()
    elif isinstance(part, list | tuple):
        yield from part


_OF_EACH_PROPERTY = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_OF_EACH_ITEM = ("items", "additionalItems", "contains", "unevaluatedItems")
_Weight = tuple[int, int, int]
"""Schema nodes tried: at this place of the value; below it if it is an object; below it if it is an array."""


class _Weigher:
    """How many schema nodes are tried along one path into a value, at most. Times the value's parts it bounds the work.

    A value is an object or an array, and below it each name or index is one path: alternatives are no sum. Reference
    chains without a loop end by themselves; a recursive schema is followed as deep as a value may be.
    """

    def __init__(self, document: object) -> None:
        self.branches = False
        self.backtracks = False
        self._root = document
        self._open: set[tuple[int, int]] = set()
        self._known: dict[tuple[int, int], _Weight] = {}
        self._settled: dict[int, _Weight] = {}
        self._cuts = 0

    def weight(self) -> int:
        """Raises SchemaError over `MAX_WEIGHT`, and for what could not be weighed."""
        try:
            total = _total(self._weigh(self._root, MAX_DEPTH))
        except RecursionError:
            raise SchemaError("the schema's references form too long a chain.") from None
        if total > MAX_WEIGHT:
            raise SchemaError(f"the schema can cause more than {MAX_WEIGHT} checks at one place of a value.")
        return total

    def _weigh(self, schema: object, depth: int) -> _Weight:
        if not isinstance(schema, dict):
            return (1, 0, 0)
        if settled := self._settled.get(id(schema)):
            return settled
        key = (id(schema), depth)
        if depth == 0 or key in self._known:
            self._cuts += 1  # what is computed from a cut branch holds for this depth only
            return self._known.get(key, (1, 0, 0))
        if key in self._open:
            raise SchemaError("the schema refers to itself without going deeper into the value.")
        if len(self._known) + len(self._settled) > 50_000:
            raise SchemaError("the schema is too large to be weighed.")
        cuts = self._cuts
        self._open.add(key)
        weight = self._sum(schema, depth)
        self._open.remove(key)
        if self._cuts == cuts:
            self._settled[id(schema)] = weight
        else:
            self._known[key] = weight
        return weight

    def _sum(self, schema: dict[str, object], depth: int) -> _Weight:
        here, below_object, below_array = 1, 0, 0
        for child in self._in_place(schema):
            weight = self._weigh(child, depth)
            here, below_object, below_array = here + weight[0], below_object + weight[1], below_array + weight[2]
        if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:  # everything in place is tried once more
            here, below_object, below_array = 2 * here, 2 * below_object, 2 * below_array

        def below(children: Iterable[object]) -> Iterator[int]:
            return (_total(self._weigh(child, depth - 1)) for child in children)

        below_object += max(below(_values(schema.get("properties"))), default=0)
        below_object += sum(below(_values(schema.get("patternProperties"))))
        below_object += sum(below(child for name in _OF_EACH_PROPERTY for child in _one(schema.get(name))))
        below_array += max(below(_each(schema.get("prefixItems"))), default=0)
        below_array += max(below(_each(schema.get("items"))), default=0)
        below_array += sum(below(child for name in _OF_EACH_ITEM for child in _one(schema.get(name))))
        return here, below_object, below_array

    def _in_place(self, schema: dict[str, object]) -> Iterator[object]:
        """The schemas that are tried on the same place of the value."""
        if schema is not self._root and isinstance(schema.get("$id"), str):
            raise SchemaError("a schema inside the schema has an $id of its own.")
        if "draft-04" in str(schema.get("$schema")):
            raise SchemaError("draft 4 is not supported; write the schema in draft 2020-12.")
        if "$dynamicRef" in schema or "$recursiveRef" in schema:
            raise SchemaError("$dynamicRef and $recursiveRef are not followed.")
        if "$ref" in schema:
            yield self._resolve(schema["$ref"])
        for name in ("not", "if", "then", "else"):
            yield from _one(schema.get(name))
        for name in ("allOf", "anyOf", "oneOf"):
            yield from _each(schema.get(name))
        for name in ("dependentSchemas", "dependencies"):
            yield from _values(schema.get(name))
        self.branches = self.branches or "anyOf" in schema or "oneOf" in schema
        for pattern in (schema.get("pattern"), *_names(schema.get("patternProperties"))):
            self.backtracks = self.backtracks or bool(_BACKTRACKING.search(str(pattern)))

    def _resolve(self, reference: object) -> object:
        if reference != "#" and not str(reference).startswith("#/"):
            raise SchemaError("a reference leaves the schema; only those such as #/$defs/name are followed.")
        found: object = self._root
        try:
            for part in unquote(str(reference)).split("/")[1:]:
                step = part.replace("~1", "/").replace("~0", "~")
                found = found[int(step)] if isinstance(found, list) else found[step]  # type: ignore[index]
        except (LookupError, TypeError, ValueError):
            raise SchemaError("a reference of the schema leads nowhere.") from None
        return found


def _total(weight: _Weight) -> int:
    return weight[0] + max(weight[1], weight[2])


def _one(value: object) -> Iterable[object]:
    return (value,) if isinstance(value, dict) else ()


def _each(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


def _values(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else ()


def _names(value: object) -> Iterable[str]:
    return value if isinstance(value, dict) else ()
