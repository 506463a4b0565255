"""Which rows to ask the ledger for: one claim in flight per (lane, target)."""

from collections.abc import Collection
from typing import TypeAlias

from ..ledger.states import Lane
from .actions import Claim
from .jobs import Pace

LaneOf: TypeAlias = tuple[Lane, str]
"""(lane, target)."""


class Claims:
    """Claims that are out, with the rows that each may bring, and wake-ups that have to wait for them."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._out: dict[LaneOf, int] = {}
        self._wanted: set[LaneOf] = set()

    def coming(self, lanes: Collection[Lane], target: str | None = None) -> int:
        """How many rows the claims that are out may bring in these lanes, of one target or of all."""
        return sum(limit for (lane, whose), limit in self._out.items() if lane in lanes and target in (None, whose))

    def ask(self, key: LaneOf, room: int) -> Claim | None:
        """A claim for at most `room` rows. None: asked again when one is back or a place is free."""
        limit = min(self._pace.claim_batch, room)
        if key in self._out or limit <= 0:
            self._wanted.add(key)
            return None
        self._wanted.discard(key)
        self._out[key] = limit
        lane, target = key
        ahead_s = self._pace.claim_ahead_s if lane is Lane.POLL else 0.0
        return Claim(lane, target, limit, ahead_s, self._pace.lease_s(lane))

    def back(self, claim: Claim, found: int) -> None:
        """It is answered. A full batch says that there is more."""
        del self._out[claim.lane, claim.target]
        if found >= claim.limit:
            self._wanted.add((claim.lane, claim.target))

    def failed(self, claim: Claim) -> None:
        """The ledger could not be asked; the next wake-up tries again."""
        del self._out[claim.lane, claim.target]
        self._wanted.discard((claim.lane, claim.target))

    def wanted(self) -> list[LaneOf]:
        """What can be asked for now as far as claims in flight go."""
        return [key for key in self._wanted if key not in self._out]
