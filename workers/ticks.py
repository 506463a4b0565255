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
        self._was_full = False
        self._write(-math.inf)

    def note(self, now_s: float, *, full: bool) -> None:
        """A tick came to this process. `full`: it has no room for what is due; at its second one in a row the others
        are to look for themselves (in a burst the second process began 2 s after the first)."""
        if not full:
            self._write(now_s)
        elif self._was_full:
            self._write(-math.inf)
        self._was_full = full

    def _write(self, last_s: float) -> None:
        struct.pack_into("d", self._shared, 0, last_s)

    @property
    def last_s(self) -> float:
        """When it did, -inf for never."""
        (moment_s,) = struct.unpack_from("d", self._shared)
        return float(moment_s)
