"""The work of every paced measurement, and the words in which the starting and the started process speak.

A producer, a peer's producer and a bare loop are processes of one kind: they make everything ready, print READY, and
begin at SIGUSR1. What an interpreter costs to start is thus in nobody's figure: it is no cost of an operation.

Of the standard library only: the peers' programs import it from their own environment.
"""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

READY = "READY"
BEGIN = signal.SIGUSR1

WORK_S = 5.0
"""How long a job takes: five polls a second apart find it completed."""

RATE = 20.0
"""Operations a second: 100 in flight."""

AT_ONCE = 1e9
"""The rate of a burst."""


@dataclass(frozen=True, slots=True)
class Work:
    """`count` operations, `rate` a second, each a job of `work_s` seconds."""

    count: int
    rate: float = RATE
    work_s: float = WORK_S

    @property
    def lasts_s(self) -> float:
        """From the first submit to the last result, if nothing is late."""
        return self.count / self.rate + self.work_s

    @classmethod
    def read(cls, arguments: Sequence[str]) -> "tuple[Work, str]":
        """From a command line: COUNT RATE WORK_S NAME."""
        count, rate, work_s, name = arguments
        return cls(int(count), float(rate), float(work_s)), name


def ready() -> None:
    """Say that everything is ready."""
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()


def wait_for_begin() -> None:
    """Say that everything is ready, and wait."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {BEGIN})
    ready()
    signal.sigwait({BEGIN})


def wait_for_end() -> None:
    """Done, and still there: the CPU that was used is read before the process is ended."""
    while True:
        signal.pause()


def moments(work: Work) -> Iterator[int]:
    """The number of each operation, at its moment: a late one does not move the next."""
    began_s = time.monotonic()
    for number in range(work.count):
        left_s = began_s + number / work.rate - time.monotonic()
        if left_s > 0:
            time.sleep(left_s)
        yield number


async def moments_async(work: Work) -> AsyncIterator[int]:
    """As `moments`, for a producer with an event loop."""
    began_s = time.monotonic()
    for number in range(work.count):
        await asyncio.sleep(max(0.0, began_s + number / work.rate - time.monotonic()))
        yield number
