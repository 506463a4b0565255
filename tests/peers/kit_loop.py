"""A server of somebody else's in a process of its own, and one loop of ours that calls it."""

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from counterfoil.adapters.registry import adapter
from counterfoil.ledger.client import Client
from counterfoil.ledger.states import Lane
from counterfoil.workers.bucket import Limit, LocalBucket
from counterfoil.workers.drive import Drive
from counterfoil.workers.jobs import Pace
from counterfoil.workers.target_entries import TargetEntry
from counterfoil.workers.targets import Target, Targets

from .environment import python

PATIENCE_S = 30.0
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Server:
    """A running server. What it did stands in its folder."""

    url: str
    folder: Path

    def release(self) -> None:
        """Let what works come to its end."""
        (self.folder / "release").touch()

    def effects(self) -> list[str]:
        path = self.folder / "effects"
        return path.read_text().splitlines() if path.exists() else []


@contextlib.contextmanager
def serving(script: str, folder: Path) -> Iterator[Server]:
    """`script FOLDER` of the peers' own environment, which prints its port."""
    log = folder / "server.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [python(), HERE / script, folder], stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
        )
    try:
        assert process.stdout is not None
        port = process.stdout.readline()
        assert port, log.read_text()[-3000:]
        yield Server(f"http://127.0.0.1:{int(port)}", folder)
    finally:
        process.kill()
        process.communicate()


class Loop:
    """One loop on one target, `peer`, that is read twice a second at the most."""

    def __init__(self, database: str, **entry: Any) -> None:
        checked = TargetEntry.model_validate({"poll": {"min_s": 0.1, "default_s": 0.2}} | entry)
        self.database = database
        self.targets = Targets({"peer": Target("peer", adapter(checked.protocol).profile, checked)})
        self.client = Client(database)
        bucket = LocalBucket({"peer": Limit(qps=100, burst=100)}, time.monotonic)
        pace = Pace(tick_s=0.1, self_tick_s=0.1)
        self._drive = Drive(database, self.targets, bucket, pace=pace, ended=lambda _: None)

    def __enter__(self) -> Self:
        self._drive.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._drive.stop(PATIENCE_S)
        self.client.close()

    def submit(self, tool: str, arguments: dict[str, object], node: str = "node") -> None:
        self.client.submit("peer", tool, arguments, call_node_id=node)
        self.kick(Lane.SUBMIT)

    def kick(self, lane: Lane) -> None:
        self._drive.kick(lane, "peer")

    def until(self, claim: str, holds: Callable[[], Any]) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < until_s, f"never: {claim}; {self.client.operations()}"
            time.sleep(0.02)  # another process works: what is waited for shows in its books and in the database only
