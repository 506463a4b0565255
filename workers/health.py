"""Signs of life for whoever restarts processes: a file that is written again while a process *moves*.

Life is progress of the process's own loop. Whether the broker or the database can be reached is none of it: a worker
without them waits, and restarting it would help nobody. (`celery inspect ping` took 6 s, and asks the very connection
that dies.)
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..ledger.errors import CounterfoilError

EVERY_S = 1.0
WITHIN_S = 30.0
"""A loop that stood still for longer is not alive. It turns once a second even where nothing is due."""

STARTING, SERVING = "starting", "serving"


class HealthError(CounterfoilError):
    """The folder for signs of life can't be used."""

    code = "E_HEALTH_DIR"


class Pulse:
    """The sign of life of this process, `kind-PID` in `folder`. Made after a fork. `beat` never raises: a full disk
    must not stop a loop (its file gets old then, which says the same)."""

    def __init__(self, folder: Path, kind: str) -> None:
        """Raises HealthError where the folder can't be made."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HealthError(
                f"COUNTERFOIL_HEALTH_DIR, {folder}, can't be made: {error.strerror}.",
                next_step="Name a folder that this user may write to, or unset it.",
            ) from None
        self._path = folder / f"{kind}-{os.getpid()}"
        self._word = ""
        self._next_s = 0.0

    def beat(self, now_s: float, word: str) -> None:
        """This process moves, and is STARTING or SERVING. Written once a second at most."""
        if word == self._word and now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        with suppress(OSError):
            if word != self._word or not self._path.exists():
                fresh = self._path.with_suffix(".new")  # a reader finds the old word or the new one
                fresh.write_text(word)
                fresh.replace(self._path)
                self._word = word
            os.utime(self._path)


def troubles(folder: Path, kind: str, *, ready: bool, within_s: float = WITHIN_S) -> Iterator[str]:
    """What is wrong with the processes of this kind on this machine, in words; nothing when all move (and, with
    `ready`, all serve)."""
    found = [path for path in folder.glob(f"{kind}-*") if path.suffix == "" and _runs(path)]
    if not found:
        yield f"no {kind} has left a sign of life in {folder}."
    for path in sorted(found):
        with suppress(FileNotFoundError):
            still_s = time.time() - path.stat().st_mtime  # noqa: TID251  what files are dated by
            if still_s > within_s:
                yield f"{path.name} has stood still for {still_s:.0f} s."
            elif ready and path.read_text() != SERVING:
                yield f"{path.name} does not serve yet."


def _runs(path: Path) -> bool:
    """Whether the process that left this file is still there; a child that has ended was replaced by another."""
    number = path.name.rpartition("-")[2]
    if not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
