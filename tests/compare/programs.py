"""Runs one client's program over all faults: starts it, kills it where the fault says so, and starts it again."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .faults import TIMEOUT_S, Act, Kind
from .service import Run


@dataclass(frozen=True)
class Column:
    """One client as it is set: a column of a table. `variant`: its settings, in `words`."""

    client: str
    words: str
    protocol: str
    variant: str = ""
    script: str = ""

    @property
    def is_ours(self) -> bool:
        return not self.script

    @property
    def id(self) -> str:
        return f"{self.client}-{self.protocol}-{self.variant}".strip("-").replace(".", "")


COLUMNS = [
    Column("google-api-core", "as generated clients use it", "aip-151", "default", "google_client.py"),
    Column("google-api-core", "with its `Retry()` for call and polls", "aip-151", "retry", "google_client.py"),
    Column("counterfoil", "`aip-151`, lookup by replay", "aip-151"),
    Column("azure-core", "as it comes, with its RetryPolicy", "http-202", "default", "azure_client.py"),
    Column("azure-core", "the same, an Operation-Id given", "http-202", "key", "azure_client.py"),
    Column("counterfoil", "`http-202`, preset `azure`", "http-202"),
    Column("a2a-sdk", "as it comes: blocking", "a2a-1.0", "default", "a2a_client.py"),
    Column("a2a-sdk", "`polling=True`, a loop of the caller's", "a2a-1.0", "polling", "a2a_client.py"),
    Column("counterfoil", "`a2a-1.0`, lookup `ListTasks`", "a2a-1.0"),
]


@dataclass
class Said:
    """What a column's programs told: its version, and per fault how it ended."""

    version: str = ""
    ends: dict[str, dict[str, Any]] = field(default_factory=dict)


KEEP_S = 10.0
START_S = 120.0
"""How long a program may take until it is ready, on a machine that does other things."""


class Program:
    """The process of some runs of one column. `argv` but for its last argument, which are the jobs."""

    def __init__(
        self, argv: Sequence[str], told: dict[str, Any], said: Said, folder: Path, runs: Sequence[Run]
    ) -> None:
        self._argv = [*argv, json.dumps(told)]
        self._said = said
        self._log = folder / f"{runs[0].name}.log"
        self._kills = runs[0].fault.act is Act.KILLED
        self._process: subprocess.Popen[str] | None = None
        self._given_up = False
        # Some clients poll on a thread of their own: what can be kept is kept before the process dies at a poll.
        waits = self._kills and runs[0].fault.on is Kind.STATUS and "variant" in told
        self._kept = folder / f"{runs[0].name}.kept" if waits else None
        for run in runs:
            run.kill = self._kill

    def run(self, patience_s: float) -> None:
        """To its end, or until patience is over: then it hangs. A killed one is started again, once.

        Raises RuntimeError for a program that ended by itself before it was through.
        """
        code = self._once(patience_s)
        if code != 0 and self._kills and not self._given_up:
            code = self._once(patience_s)
        if code != 0 and not self._given_up:
            raise RuntimeError(f"{self._log.name} ended with {code}:\n{self._log.read_text()[-2000:]}")

    def _once(self, patience_s: float) -> int:
        with self._log.open("a") as log:
            self._process = subprocess.Popen(self._argv, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ)
        assert self._process.stdout is not None
        deadline = self._deadline(START_S)
        try:
            for line in self._process.stdout:
                told = json.loads(line)
                if "version" in told:  # it is ready: to import takes longer on a busy machine
                    self._said.version = told["version"]
                    deadline.cancel()
                    deadline = self._deadline(patience_s)
                else:
                    self._said.ends[told.pop("fault")] = told
            return self._process.wait()
        finally:
            deadline.cancel()

    def _deadline(self, within_s: float) -> threading.Timer:
        timer = threading.Timer(within_s, self._give_up)
        timer.start()
        return timer

    def _kill(self) -> None:
        until_s = time.monotonic() + KEEP_S
        while self._kept is not None and not self._kept.exists() and time.monotonic() < until_s:
            time.sleep(0.01)  # another process writes it
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _give_up(self) -> None:
        self._given_up = True
        self._kill()


def job(run: Run, url: str, folder: Path) -> dict[str, Any]:
    """One job as the programs take it."""
    return {
        "fault": run.fault.name,
        "url": url,
        "kept": str(folder / f"{run.name}.kept"),
        "cancels": run.fault.cancels,
        "timeout_s": TIMEOUT_S if run.fault.act is Act.LATE else None,
        "patience_s": run.fault.patience_s,
    }
