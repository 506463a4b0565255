"""Who waits for a token, and when to ask the bucket again. One request to the bucket per (target, lane) at a time."""

import math
from collections import OrderedDict

from ..ledger.states import Lane


class Tokens:
    """Send ids that wait, by (target, lane), first come first served."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, Lane], OrderedDict[int, None]] = {}
        self._asking: set[tuple[str, Lane]] = set()
        self._closed_s: dict[tuple[str, Lane], float] = {}

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
        return gone

    def closed_s(self, target: str, lane: Lane, now_s: float) -> float:
        """For how long there is none, as the bucket said last."""
        return max(self._closed_s.get((target, lane), 0.0) - now_s, 0.0)

    def wanted(self, now_s: float) -> list[tuple[str, Lane, int]]:
        """What to ask the bucket for now. Each entry is asked once, until `grant` answers it."""
        asks = []
        for key, waiting in self._waiting.items():
            if waiting and key not in self._asking and self._closed_s.get(key, 0.0) <= now_s:
                self._asking.add(key)
                asks.append((*key, len(waiting)))
        return asks

    def grant(self, target: str, lane: Lane, granted: int, wait_s: float, now_s: float) -> list[int]:
        """The bucket's answer: the send ids that may go."""
        key = (target, lane)
        self._asking.discard(key)
        waiting = self._waiting.get(key, OrderedDict())
        ready = [waiting.popitem(last=False)[0] for _ in range(min(granted, len(waiting)))]
        self._closed_s[key] = now_s + wait_s if wait_s > 0 else 0.0
        return ready

    def next_s(self, now_s: float) -> float:
        """When to ask again, infinity when nobody waits."""
        moments = [
            max(self._closed_s.get(key, 0.0), now_s)
            for key, waiting in self._waiting.items()
            if waiting and key not in self._asking
        ]
        return min(moments, default=math.inf)
