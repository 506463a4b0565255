"""What a poll costs that changes nothing: operations that are all at work, read once a second."""

import time
from dataclasses import dataclass

from . import fleet
from .field import BenchError, Field
from .meter import Counts

IN_FLIGHT = 100
"""As many as a steady 20 a second of five seconds each."""

SUBMITTED_S = 10.0
SETTLE_S = 2.5
"""After the last submit: every first reading is over."""

WINDOW_S = 8.0
READING_S = 8.0
"""What reading the counts before and after the window takes, and then some: nothing may end inside of it."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Everything that was counted in a window of nothing but unchanged polls: ticks, plans, renewals, and whatever
    PostgreSQL logs by itself."""

    polls: int
    used: Counts

    @property
    def statements(self) -> float:
        """A poll."""
        return self.used.statements / self.polls

    @property
    def wal_bytes(self) -> float:
        """A poll."""
        return self.used.wal_bytes / self.polls

    @property
    def cpu_ms(self) -> float:
        """A poll."""
        return self.used.total_cpu_s * 1000 / self.polls


def measure_unchanged(field: Field, *, window_s: float = WINDOW_S) -> Unchanged:
    """With a fleet that runs."""
    name = f"unchanged-{int(time.time())}"
    field.remote.reset()
    fleet.hand_in(field, name, IN_FLIGHT, SUBMITTED_S + SETTLE_S + window_s + READING_S)
    if not field.wait("all are submitted", lambda: field.remote.counts().get("submit", 0) >= IN_FLIGHT, SUBMITTED_S):
        raise BenchError("the operations were not submitted in time")
    time.sleep(SETTLE_S)  # their first readings; only the server sees them
    before = field.meter.start()
    time.sleep(window_s)  # the window itself
    used = field.meter.stop().since(before)
    log = field.remote.log().between(before.at_s, before.at_s + used.at_s)
    if not log.count("poll") or log.count("submit", "end", "result"):
        raise BenchError("something else than polls was seen in the window")
    return Unchanged(log.count("poll"), used)
