"""When somebody last planned, for all processes of one worker."""

import math
import mmap
import struct


class Ticks:
    """A moment of the system's monotonic clock in memory that processes share. Made before the fork.

    Celery hands a tick to whoever is free, which is nearly always the same process. The others learn here that beat
    lives and that what is due has somebody: each of them planned twice a second, too, and took half of the work, which
    costs 4 ms an operation more in two processes than in one.
    """

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, struct.calcsize("d"))
        self.note(-math.inf)

    def note(self, now_s: float) -> None:
        """A tick came to a process that has room for what is due; -inf: it has none, so that the others look for
        themselves (in a burst the second process began 2 s after the first)."""
        struct.pack_into("d", self._shared, 0, now_s)

    @property
    def last_s(self) -> float:
        """When it did, -inf for never."""
        (moment_s,) = struct.unpack_from("d", self._shared)
        return float(moment_s)
