"""Beat without its busy loop and without a file."""

import time
from pathlib import Path
from typing import Any

from celery.beat import Scheduler

from .app import HEALTH_DIR
from .health import SERVING, Pulse


class Ticker(Scheduler):  # type: ignore[misc]  # celery ships no types
    """Celery's in-memory scheduler, woken 1 ms after a tick is due instead of 10 ms before.

    The stock `adjust` subtracts 10 ms, finds the tick not yet due and spins until it is: 0.58 ms of CPU for each
    operation of the measured fleet, 0.08 with this. In memory, since a stored schedule is one more truth: a tick that
    was missed while beat was down is worth nothing.
    """

    def __init__(self, app: Any, *arguments: Any, **named: Any) -> None:
        folder = app.conf.get(HEALTH_DIR)
        self._pulse = None if folder is None else Pulse(Path(folder), "beat")
        super().__init__(app, *arguments, **named)

    def adjust(self, n: float | None, drift: float = 0.001) -> float | None:
        """Seconds until the next look: `n` until the entry is due, plus `drift`."""
        return n + drift if n and n > 0 else n

    def tick(self, *arguments: Any, **named: Any) -> float:
        """As the stock one; then this process has moved, whether or not the broker took the tick."""
        wait_s: float = super().tick(*arguments, **named)
        if self._pulse is not None:
            self._pulse.beat(time.monotonic(), SERVING)  # noqa: TID251  a port
        return wait_s
