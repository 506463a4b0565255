"""Every key of the targets file, once: what `counterfoil targets explain` shows and docs/targets.md is made of.

Nothing is said here: names, types, ranges and words come from `target_entries.py`, a policy's defaults from Policy.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ..adapters.http_api import Key as ApiKey
from ..adapters.http_api import Places, Routes, Statuses
from ..ledger.errors import InputRefused
from ..ledger.policy import Policy
from .target_entries import Credentials, LookupEntry, Overrides, Poll, Shares, TargetEntry, TargetsFile, ToolEntry

_BY_PROTOCOL = frozenset({"can_cancel", "effect_case", "settle_s"})
"""Policy fields whose default the protocol's profile decides."""

_BELOW: dict[str, type[BaseModel]] = {
    "poll": Poll,
    "lookup": LookupEntry,
    "routes": Routes,
    "statuses": Statuses,
    "fields": Places,
    "key": ApiKey,
    "shares": Shares,
    "credentials": Credentials,
}
_KINDS: dict[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a mapping",
}


@dataclass(frozen=True, slots=True)
class Key:
    """One key. `where` it may stand; `default` "-" where there is none, then it must be written."""

    name: str
    where: str
    kind: str
    default: str
    means: str


def all_keys() -> list[Key]:
    """In the order of the file: the file's, a target's, what may stand at a target or a tool, a tool's."""
    at_target = TargetEntry.model_fields.keys() - Overrides.model_fields.keys()
    return [
        *_keys(TargetsFile, "the file", TargetsFile.model_fields.keys()),
        *_keys(TargetEntry, "a target", at_target),
        *_keys(Overrides, "a target or a tool", Overrides.model_fields.keys()),
        *_keys(ToolEntry, "a tool", ToolEntry.model_fields.keys() - Overrides.model_fields.keys()),
    ]


def find(name: str) -> list[Key]:
    """The key `poll` with those below it, or `poll.min_s` alone. Raises InputRefused, which names the nearest."""
    keys = all_keys()
    found = [key for key in keys if key.name == name or key.name.startswith(f"{name}.")]
    if not found:
        names = {key.name: key.name for key in keys} | {key.name.rpartition(".")[2]: key.name for key in keys}
        near = [names[hit] for hit in get_close_matches(name[:64], names, n=1, cutoff=0.5)]
        raise InputRefused(
            f"the targets file has no key {name[:64]!r}." + (f" Did you mean {near[0]}?" if near else ""),
            code="E_TARGETS",
            next_step="`counterfoil targets explain` lists them all.",
        )
    return found


def _keys(model: type[BaseModel], where: str, names: Collection[str]) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        if name in names:
            yield _key(name, where, field)
            below = _BELOW.get(name)
            for child, its_field in below.model_fields.items() if below else ():
                yield _key(f"{name}.{child}", where, its_field)


def _key(name: str, where: str, field: FieldInfo) -> Key:
    assert field.description is not None, f"{name} is not described"
    of_policy = where == "a target or a tool" and not name.startswith("lookup")  # which is written as one key
    policy = Policy.model_fields.get(name.replace(".", "_")) if of_policy else None
    return Key(name, where, _kind(field, policy), _default(name, field, policy), field.description)


def _kind(field: FieldInfo, policy: FieldInfo | None) -> str:
    """Type and range in words."""
    kind: object = field.annotation
    if get_origin(kind) in (Union, UnionType):  # `float | None`: what is not written is not asked for
        kind = next(part for part in get_args(kind) if part is not NoneType)
    if get_origin(kind) is Literal:
        return " or ".join(get_args(kind))
    word = _KINDS.get(get_origin(kind) or kind, "a mapping")
    bounds = [text for limit in (policy or field).metadata if (text := _bound(limit))]
    return f"{word} {', '.join(bounds)}" if bounds else word


def _bound(limit: object) -> str | None:
    match limit:
        case Gt(gt=bound):
            return f"above {bound}"
        case Ge(ge=bound):
            return f"from {bound}"
        case Lt(lt=bound):
            return f"below {bound}"
        case Le(le=bound):
            return f"up to {bound}"
        case _:
            return None


def _default(name: str, field: FieldInfo, policy: FieldInfo | None) -> str:
    if name in _BY_PROTOCOL:
        return "by protocol"
    if field.is_required():
        return "-"
    default = (policy or field).default
    if isinstance(default, BaseModel):
        return "below"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int | float):
        return f"{default:.15g}"
    return default if isinstance(default, str) else "none"
