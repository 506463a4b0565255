"""Submit messages as a producer makes them, and a real worker that takes them."""

import hashlib
import hmac
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from counterfoil.ledger.client import Client
from counterfoil.ledger.database import Database
from counterfoil.ledger.dead_letters import DeadLetter, list_dead_letters
from counterfoil.workers.messages import Message

KEY_ID = "billing-1"
SECRET = "0123456789abcdef0123456789abcdef"
TARGETS = "targets:\n  reports:\n    url: http://127.0.0.1:9/mcp\n    protocol: mcp-2026-07-28\n"
PRODUCERS = (
    f"producers:\n  {KEY_ID}:\n    secret: env:BILLING_KEY\n    namespace: billing\n    principal: svc-billing\n"
)

WORKER_FLAGS = ("--without-gossip", "--without-mingle", "--without-heartbeat", "-O", "fair")
"""`WORKER_OPTIONS` as Celery's own command line takes them."""


def body_of(**changes: object) -> str:
    """A request's text; what is changed to None is left out."""
    sent_at = datetime.now(UTC).isoformat(timespec="seconds")
    request = {"v": 1, "call_node_id": "run/1", "target": "reports", "tool": "generate", "arguments": {"month": "10"}}
    wanted = request | {"sent_at": sent_at} | changes
    return json.dumps({name: value for name, value in wanted.items() if value is not None})


def signature_of(body: str, key_id: str = KEY_ID, secret: str = SECRET) -> str:
    """As a producer without any code of ours makes it."""
    return hmac.new(secret.encode(), f"counterfoil.submit.v1\n{key_id}\n{body}".encode(), hashlib.sha256).hexdigest()


def signed(body: str | None = None, **changes: object) -> list[str]:
    body = body_of(**changes) if body is None else body
    return [body, KEY_ID, signature_of(body)]


def message(*args: object, **kwargs: object) -> Message:
    return Message.of(args, kwargs)


def letters(database: Database, limit: int = 1000) -> list[DeadLetter]:
    """The oldest first."""
    with database.autocommit() as connection:
        return list_dead_letters(connection, "main", limit)[::-1]


@dataclass
class Worker:
    """A worker's processes, its ledger, and its broker's URL."""

    process: subprocess.Popen[bytes]
    log: Path
    broker: str
    database: Database
    client: Client

    def letters(self) -> list[DeadLetter]:
        return letters(self.database)

    def until(self, holds: Callable[[], Any], timeout_s: float = 30.0) -> None:
        ends = time.monotonic() + timeout_s
        while not holds():
            if time.monotonic() > ends or self.process.poll() is not None:
                pytest.fail(f"the worker (exit code {self.process.poll()}) did not get there:\n{self.log.read_text()}")
            time.sleep(0.05)  # other processes have to get on


@contextmanager
def worker(folder: Path, database: str, broker: str, **environ: str) -> Iterator[Worker]:
    """One worker with one process and one key, BILLING_KEY; its target can't be reached and needn't be."""
    (folder / "targets.yaml").write_text(TARGETS)
    (folder / "producers.yaml").write_text(PRODUCERS)
    environment = {
        **os.environ,
        "BILLING_KEY": SECRET,
        "COUNTERFOIL_BROKER_URL": broker,
        "COUNTERFOIL_DATABASE_URL": database,
        "COUNTERFOIL_PRODUCERS_FILE": "producers.yaml",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        **environ,
    }
    queues = "counterfoil.plan,counterfoil.submit.v1"
    argv = [sys.executable, "-m", "celery", "-A", "counterfoil.workers.app", "-q", "worker", *WORKER_FLAGS]
    log = folder / "worker.log"
    made, client = Database(database, fleet="main", pool_size=1), Client(database, namespace="billing")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*argv, "-c", "1", "-Q", queues, "-l", "warning"], cwd=folder, env=environment, stdout=output, stderr=output
        )
        try:
            yield Worker(process, log, broker, made, client)
        finally:
            process.terminate()
            try:
                assert process.wait(60) == 0, log.read_text()
            finally:
                process.kill()
                client.close()
                made.dispose()
