"""Real fleets against a real server: worker processes of ours, a PostgreSQL, a Valkey, and the server's own log as
the judge."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from counterfoil.ledger.client import Call, Client
from counterfoil.ledger.database import Database
from counterfoil.ledger.records import Receipt
from counterfoil.ledger.store import Store

HERE = Path(__file__).parent


@dataclass
class Server:
    """The tools server and what it says that it did."""

    url: str
    log: Path
    process: "subprocess.Popen[str]"

    def release(self) -> None:
        """Let everything go on that was held."""
        self.process.send_signal(signal.SIGUSR1)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def said(self, method: str) -> list[str]:
        """Who sent it, each time."""
        return [line["who"] for line in self.lines() if line["on"] == method]

    def created(self) -> dict[str, list[str]]:
        """Submission key -> tasks, by the server's count."""
        found: dict[str, list[str]] = {}
        for line in self.lines():
            if line["on"] == "tools/call":
                found.setdefault(line["key"], []).append(line["task"])
        return found

    def second_submits(self) -> int:
        return sum(len(tasks) - 1 for tasks in self.created().values())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    log = tmp_path / "server.log"
    log.touch()
    process = subprocess.Popen([sys.executable, HERE / "tasks_server.py", log], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Server(f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", log, process)
    finally:
        process.kill()
        process.communicate()


@dataclass
class Worker:
    """One worker process with its children, in a process group of its own."""

    process: subprocess.Popen[bytes]
    log: Path

    def signal(self, number: signal.Signals) -> None:
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, timeout_s: float = 60) -> int:
        """Ask it to end and wait for it: as Kubernetes does."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout_s)


@dataclass
class Fleet:
    """Workers, and a client to hand calls in."""

    database_url: str
    environ: dict[str, str]
    folder: Path
    client: Client
    workers: list[Worker] = field(default_factory=list)

    def start(self, *, solo: bool = False, **environ: str) -> Worker:
        """Start a worker: a Celery one with a single child, or `solo`."""
        arguments = ["--solo"] if solo else ["--concurrency", "1"]
        return self._spawn("worker", *arguments, **environ)

    def beat(self) -> Worker:
        return self._spawn("beat")

    def _spawn(self, command: str, *arguments: str, **environ: str) -> Worker:
        """One of our commands, in a process group of its own."""
        log = self.folder / f"{command}{len(self.workers)}.log"
        argv = [sys.executable, "-P", "-m", "counterfoil", command, *arguments]
        with log.open("wb") as output:
            process = subprocess.Popen(
                argv,
                env=self.environ | environ,
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.workers.append(Worker(process, log))
        return self.workers[-1]

    def run(self, *arguments: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        """One of our commands, to its end, in a process of its own."""
        argv = [sys.executable, "-P", "-m", "counterfoil", *arguments]
        return subprocess.run(
            argv,
            env=self.environ | environ,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def say(self, *arguments: str) -> str:
        """As `run`, of a command that must succeed; returns what it printed."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def aim(self, targets: str) -> None:
        """Write the targets file: what stands under `targets:`, each line `name: {…}`."""
        lines = "".join(f"  {line}\n" for line in targets.strip().splitlines())
        Path(self.environ["COUNTERFOIL_TARGETS_FILE"]).write_text(f"targets:\n{lines}")

    def announce(self, target: str = "tools", protocol: str = "mcp-2026-07-28") -> None:
        """Make the target known before a worker has, so that calls can be handed in first."""
        database = Database(self.database_url)
        Store(database, "main", 1, lambda target, tool: pytest.fail("nobody asks for a policy here")).register_targets(
            [(target, protocol)]
        )
        database.dispose()

    def submit(self, count: int, **arguments: object) -> list[str]:
        nodes = [f"node-{index:04}" for index in range(count)]
        calls = [Call("tools", "work", {"node": node, **arguments}, node) for node in nodes]
        with self.client._database.begin() as connection:
            self.client.submit_in(connection, calls)
        return nodes

    def states(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for operation in self.client.operations(limit=10_000):
            counts[operation.state] = counts.get(operation.state, 0) + 1
        return counts

    def until(self, claim: str, holds: Any, timeout_s: float) -> float:
        """Wait until something holds; returns how long it took. Real time passes: real processes work meanwhile."""
        started = time.monotonic()
        while not holds():
            if time.monotonic() - started > timeout_s:
                pytest.fail(f"not within {timeout_s} s: {claim}; states {self.states()}\n{self.logs()}")
            time.sleep(0.05)  # other processes have to get on
        return time.monotonic() - started

    def receipts(self, nodes: list[str]) -> list[Receipt]:
        from counterfoil.ledger.reads import find_receipts

        with self.client._database.autocommit() as connection:
            return find_receipts(connection, self.client.namespace, nodes)

    def logs(self) -> str:
        return "\n".join(f"--- {worker.log.name}\n{worker.log.read_text()[-3000:]}" for worker in self.workers)


@contextmanager
def fleet_at(database_url: str, server: Server, folder: Path, *, broker_url: str = "") -> Iterator[Fleet]:
    """A fleet without workers yet, whose one target `tools` is the server. Without a broker only `solo` workers run."""
    targets = folder / "targets.yaml"
    environ = {
        **os.environ,
        "COUNTERFOIL_DATABASE_URL": database_url,
        "COUNTERFOIL_BROKER_URL": broker_url,
        "COUNTERFOIL_TARGETS_FILE": str(targets),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    client = Client(database_url)
    made = Fleet(database_url, environ, folder, client)
    made.aim(
        f"tools: {{url: '{server.url}', protocol: mcp-2026-07-28, qps: 2000, burst: 400,"
        " poll: {min_s: 0.2, max_s: 10, default_s: 1}}"
    )
    try:
        yield made
    finally:
        for worker in made.workers:
            if worker.process.poll() is None:
                worker.signal(signal.SIGCONT)
                worker.kill()
        client.close()


@pytest.fixture
def fleet(database: str, broker: str, server: Server, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_at(database, server, tmp_path, broker_url=broker) as made:
        yield made
