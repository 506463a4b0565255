"""Who waits for a token, and when to ask the bucket again. One request to the bucket per (target, lane) at a time.

While the bucket grants all that is asked for, tokens are taken for what will be asked for within `HOLD_S` as well: one
call instead of one in every slot.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping

from ..ledger.states import Lane

HOLD_S = 0.2
"""How long a token is held for a request to come. The bucket's own bound is 250 ms (SPEC section 9)."""

Expected = Callable[[], Mapping[tuple[str, Lane], int]]
"""By (target, lane): requests that will be sent within `HOLD_S`."""


class Tokens:
    """Send ids that wait, by (target, lane), first come first served."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, Lane], OrderedDict[int, None]] = {}
        self._asking: set[tuple[str, Lane]] = set()
        self._closed_s: dict[tuple[str, Lane], float] = {}
        self._held: dict[tuple[str, Lane], tuple[int, float]] = {}
        """Tokens in hand, and until when they are good."""

    def wait(self, target: str, lane: Lane, send_id: int) -> None:
        self._waiting.setdefault((target, lane), OrderedDict())[send_id] = None

    def forget(self, target: str, lane: Lane, send_id: int) -> None:
        """The request came to its end without a token."""
        self._waiting.get((target, lane), OrderedDict()).pop(send_id, None)

    def waiting(self, target: str, lane: Lane) -> list[int]:
        return list(self._waiting.get((target, lane), ()))

    def clear(self) -> list[int]:
        """Everybody who waited."""
        gone = [send_id for waiting in self._waiting.values() for send_id in waiting]
        self._waiting.clear()
        self._held.clear()
        return gone

    def closed_s(self, target: str, lane: Lane, now_s: float) -> float:
        """For how long there is none, as the bucket said last."""
        return max(self._closed_s.get((target, lane), 0.0) - now_s, 0.0)

    def in_hand(self, now_s: float) -> list[int]:
        """The send ids that may go with tokens that were taken ahead."""
        ready = []
        for key, (count, until_s) in list(self._held.items()):
            waiting = self._waiting.get(key, OrderedDict())
            go = min(count, len(waiting)) if now_s <= until_s else 0
            ready += [waiting.popitem(last=False)[0] for _ in range(go)]
            if count > go and now_s <= until_s:
                self._held[key] = (count - go, until_s)
            else:
                del self._held[key]
        return ready

    def drop(self, target: str) -> None:
        """Nothing may leave for this target on a token that is in hand: it asked for quiet."""
        for key in [key for key in self._held if key[0] == target]:
            del self._held[key]

    def wanted(self, now_s: float, expected: Expected) -> list[tuple[str, Lane, int]]:
        """What to ask the bucket for now. Each entry is asked once, until `grant` answers it."""
        asked = [
            (key, len(waiting))
            for key, waiting in self._waiting.items()
            if waiting and key not in self._asking and self._closed_s.get(key, 0.0) <= now_s
        ]
        self._asking.update(key for key, _ in asked)
        soon = expected() if asked else {}
        # A bucket that refused is asked for what is needed: it keeps a place for all that it was asked for.
        return [(*key, count + (0 if key in self._closed_s else soon.get(key, 0))) for key, count in asked]

    def grant(self, target: str, lane: Lane, granted: int, wait_s: float, now_s: float) -> list[int]:
        """The bucket's answer: the send ids that may go."""
        key = (target, lane)
        self._asking.discard(key)
        waiting = self._waiting.get(key, OrderedDict())
        ready = [waiting.popitem(last=False)[0] for _ in range(min(granted, len(waiting)))]
        if granted > len(ready):
            self._held[key] = (granted - len(ready), now_s + HOLD_S)
        if wait_s > 0:
            self._closed_s[key] = now_s + wait_s
        else:
            self._closed_s.pop(key, None)
        return ready

    def next_s(self, now_s: float) -> float:
        """When to ask again, infinity when nobody waits."""
        moments = [
            max(self._closed_s.get(key, 0.0), now_s)
            for key, waiting in self._waiting.items()
            if waiting and key not in self._asking
        ]
        return min(moments, default=math.inf)
