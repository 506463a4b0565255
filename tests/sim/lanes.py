"""Processes that play side by side, each on databases of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from counterfoil.console.devstack import DevStack

from . import ledgerdb

LANES = 2
TEMPLATE = "sim_template"
NURSERY = Path(__file__).resolve().parent / "nursery.py"


def side_by_side(work: Callable[[int], None]) -> None:
    """`work(lane)` in every lane at once. Raises what the first one raised."""
    with ThreadPoolExecutor(LANES) as pool:
        for done in as_completed([pool.submit(work, number) for number in range(LANES)]):
            done.result()


def databases(stack: DevStack, name: str) -> tuple[str, str]:
    """URLs of a migrated database and of its standby."""
    superuser = ledgerdb.superuser_url(stack)
    return (
        ledgerdb.create_database(superuser, stack.database_url, f"sim_{name}", TEMPLATE),
        ledgerdb.create_database(superuser, stack.database_url, f"sim_{name}_standby", TEMPLATE),
    )


class Process:
    """One that answers a JSON line with one. `PYTHONHASHSEED=0`: a seed is the same run in all of them."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": "0"},
            start_new_session=True,  # Ctrl-C is for whoever asks; it ends when nobody can ask any more
        )

    def ask(self, told: dict[str, Any]) -> dict[str, Any]:
        """Raises RuntimeError where the process has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = ""
        try:
            self._process.stdin.write(json.dumps(told) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            pass
        if not line:
            raise RuntimeError(f"a process of the simulator ended with {self._process.wait()} when told {told}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Players:
    """Of each lane one a tier, made when it is first asked for."""

    def __init__(self, stack: DevStack) -> None:
        self._stack = stack
        self._made: dict[tuple[str, int], Process] = {}
        self.broken = False
        """One of them has ended, or somebody said Ctrl-C: there is no point in going on."""

    def stop(self, *_: Any) -> None:
        """After the batches that are being played."""
        self.broken = True

    def ask(self, tier: str, lane: int, told: dict[str, Any]) -> dict[str, Any]:
        """What came of a batch (`play.py`)."""
        if (tier, lane) not in self._made:
            url, standby = databases(self._stack, f"{tier.lower()}{lane}")
            self._made[tier, lane] = Process("-m", "counterfoil.tests.sim.play", url, standby, tier)
        try:
            return self._made[tier, lane].ask(told)
        except RuntimeError:
            self.broken = True
            raise

    def close(self) -> None:
        for process in self._made.values():
            process.close()
