"""What is on its way into the ledger: outcomes gathered for a moment, one batch at a time."""

import math
from collections.abc import Iterable

from ..ledger.work import Item
from .actions import Apply
from .jobs import Pace

BATCH = 200
RETRY_S = 0.5
"""After a write that failed."""


class Outcomes:
    """Items in order of arrival. What comes while a batch is being written shares the next transaction."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._items: list[Item] = []
        self._flush_at_s = math.inf
        self._flushed_at_s = -math.inf
        self._writing = False

    def __len__(self) -> int:
        return len(self._items)

    def add(self, items: Iterable[Item], now_s: float, *, urgent: bool = False) -> None:
        """`urgent`: something was said or is known that can't be had again, so it goes as soon as it can: at once while
        little happens, with the next flush while much does (what a server said is evidence already)."""
        self._items += items
        if self._items:
            due_s = max(now_s, self._flushed_at_s + self._pace.flush_s) if urgent else now_s + self._pace.flush_s
            self._flush_at_s = min(self._flush_at_s, due_s)

    def batch(self, now_s: float) -> Apply | None:
        """The next batch, once its moment has come and the one before is written."""
        if not self._items or self._writing or self._flush_at_s > now_s:
            return None
        batch, self._items = self._items[:BATCH], self._items[BATCH:]
        self._flush_at_s = now_s if self._items else math.inf
        self._flushed_at_s = now_s
        self._writing = True
        return Apply(tuple(batch))

    def written(self) -> None:
        self._writing = False

    def failed(self, batch: Apply, now_s: float) -> None:
        """Nothing of it was written: the same again, a little later."""
        self._writing = False
        self._items = [*batch.items, *self._items]
        self._flush_at_s = now_s + RETRY_S

    def clear(self) -> None:
        self._items.clear()

    def next_s(self) -> float:
        """When the next batch is due, infinity while there is none or one is being written."""
        return math.inf if self._writing or not self._items else self._flush_at_s
