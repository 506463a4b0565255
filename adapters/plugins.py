"""Adapters that other packages bring: entry points of the group `counterfoil.adapters`, named as their protocol.

An entry point names a callable that is given a `JsonRpc` (the maker of request ids) and returns an `Adapter`. It is
loaded when a target asks for its protocol and not before, so that a broken one breaks nobody else.
"""

import logging
from collections.abc import Collection, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from .contained import CODE, Contained
from .contract import Adapter
from .jsonrpc import JsonRpc
from .profile import Profile

GROUP = "counterfoil.adapters"

_VERBS = tuple(name for name, value in vars(Adapter).items() if callable(value) and not name.startswith("_"))

log = logging.getLogger(__name__)


class BrokenAdapter(ValueError):
    """The adapter of another package can't be used. The message names the package, the entry point and the cause."""

    code = CODE

    def __init__(self, told: str) -> None:
        super().__init__(f"{self.code}: {told}")


@cache
def offered(ours: Collection[str]) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Protocol -> who brings an adapter for it. Read once a process; nothing of them is imported.

    `ours` are not to be taken over: what was checked for them must be what runs.
    """
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in sorted(entry_points(group=GROUP), key=_package):
        if entry.name in ours:
            log.warning("%s: %s is a protocol of Counterfoil's own; it is not taken from there", *_blame(entry))
        else:
            found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


def load(entries: Collection[EntryPoint], rpc: JsonRpc) -> Adapter:
    """The adapter that these entry points of one protocol name. Raises BrokenAdapter."""
    entry, *others = entries
    if others:
        raise BrokenAdapter(f"{entry.name} comes from {_package(entry)} and from {_package(others[0])}; remove one.")
    try:
        made = entry.load()(rpc)
    except Exception as error:
        raise BrokenAdapter(f"{_where(entry)} can't be loaded ({type(error).__name__}: {error}).") from error
    profile = getattr(made, "profile", None)
    if not isinstance(profile, Profile) or profile.protocol != entry.name:
        raise BrokenAdapter(f"{_where(entry)} has no profile of the protocol {entry.name}.")
    missing = [verb for verb in _VERBS if not callable(getattr(made, verb, None))]
    if missing:
        raise BrokenAdapter(f"{_where(entry)} lacks {', '.join(missing)} (docs/adapters.md).")
    return Contained(made)


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an unnamed package"


def _where(entry: EntryPoint) -> str:
    return f"{entry.name} = {entry.value} of {_package(entry)}"


def _blame(entry: EntryPoint) -> tuple[str, str]:
    return BrokenAdapter.code, _where(entry)
