"""The durable peers on the same work, each as its own documentation has it, from an environment of their own."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from psycopg import sql

from .field import BenchError, Field, root
from .paced import Contender

PEERS = root() / "bench" / "peers"
PYTHON = root() / "build" / "peers" / "bin" / "python"
RESTATE = root() / "build/peers-node/node_modules/@restatedev/restate-server-linux-x64/bin/restate-server"
DATABASE = "peer"

VARIANTS = {
    "docket loop": ("docket_peer.py", "loop"),
    "docket": ("docket_peer.py", ""),
    "pgqueuer": ("pgqueuer_peer.py", ""),
    "procrastinate": ("procrastinate_peer.py", ""),
    "celery": ("celery_peer.py", ""),
    "celery + row": ("celery_peer.py", "ledger"),
    "dbos one step": ("dbos_peer.py", "onestep"),
    "dbos steps": ("dbos_peer.py", ""),
    "restate": ("restate_peer.py", ""),
}
"""What is printed -> program and variant."""

IN_MEMORY = frozenset({"docket loop", "dbos one step"})
"""Durable between operations only: their polls live in a process that may be killed."""


def peer_contenders() -> list[Contender]:
    """All that can run here. Raises BenchError where their environment is missing."""
    if not PYTHON.exists():
        raise BenchError(f"the peers' environment is missing: there is no {PYTHON}. `make bench` sets it up.")
    if not RESTATE.exists():
        sys.stderr.write("restate is left out: its server comes from npm, for Linux on x86-64 only\n")
    names = [name for name in VARIANTS if name != "restate" or RESTATE.exists()]
    return [_contender(name, *VARIANTS[name]) for name in names]


def _contender(name: str, program: str, variant: str) -> Contender:
    command = (str(PYTHON), str(PEERS / program))
    environment = {"PEER_VARIANT": variant}
    return Contender(name, (*command, "produce"), _running((*command, "worker"), environment), ("worker",), environment)


def _running(command: tuple[str, ...], environment: dict[str, str]) -> Callable[[Field], AbstractContextManager[None]]:
    @contextmanager
    def running(field: Field) -> Iterator[None]:
        _new_places(field)
        field.environment |= {
            "PEER_DATABASE_URL": _database_url(field),
            "PEER_BROKER_URL": field.servers.broker_url,
            "RESTATE_SERVER": str(RESTATE),
            "RESTATE_PORT_FILE": str(field.servers.folder / "restate.port"),
        }
        worker = field.prepare("peer", command, **environment)
        field.meter.watch("worker", worker.pid)
        counted, field.meter.database = field.meter.database, DATABASE
        try:
            yield
        finally:
            field.meter.database = counted
            field.meter.forget("worker")
            worker.kill()

    return running


def _new_places(field: Field) -> None:
    """An empty database of the peers' own, an empty Valkey."""
    name = sql.Identifier(DATABASE)
    with field.servers.connect() as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
    with field.servers.broker() as broker:
        broker.flushall()


def _database_url(field: Field) -> str:
    record = field.servers.postgres.record
    return f"postgresql://postgres:{record.password}@127.0.0.1:{record.port}/{DATABASE}"


def describe() -> str:
    """Which programs are compared, with their versions."""
    import subprocess  # noqa: PLC0415  only the report asks

    names = ("celery", "dbos", "httpx", "pgqueuer", "procrastinate", "pydocket")
    code = f"import importlib.metadata as m; print(*(f'{{n}} {{m.version(n)}}' for n in {names!r}), sep=', ')"
    done = subprocess.run([str(PYTHON), "-c", code], check=True, capture_output=True, text=True)
    return f"{done.stdout.strip()}, Python {sys.version.split()[0]}"
