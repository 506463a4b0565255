"""Where keys are remembered: three verbs, each one atomic step."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


class StoreError(Exception):
    """The store can't be read or written now. Nothing is run for a key that can't be taken."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a store holds under a name: `value` as it was put, `version` counted from 1, and `age_s`, the seconds since
    it was last put or renewed, by the store's own clock (two hosts' clocks differ)."""

    value: bytes
    version: int
    age_s: float


@runtime_checkable
class Store(Protocol):
    """A store of keys. An owner may bring one: a table with five columns is enough.

    Methods block and are called from threads, several at a time. They raise `StoreError` when the store doesn't
    answer. Names are ASCII of at most 128 characters, values at most 1 MiB. An entry must be there for `lifetime_s`
    after its last put or renewal; afterwards it may go.
    """

    @property
    def durable(self) -> bool:
        """Is an entry that was put never lost, whatever crashes? Then "not found" is said to be authoritative."""

    def get(self, name: str) -> Entry | None:
        """Return the entry, or None where there is none or its lifetime is over."""

    def put(self, name: str, value: bytes, *, version: int, lifetime_s: float) -> bool:
        """Write `version`, in one atomic step, only where the store holds the version before it (for 1: nothing).

        Return whether it was written; of several callers with one version exactly one may read True.
        """

    def renew(self, name: str, *, version: int, lifetime_s: float) -> bool:
        """Set the age to 0 and begin the lifetime again where the store holds this version; return whether it did."""
