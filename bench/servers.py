"""PostgreSQL and Valkey for a measurement: the development stack's own servers (fsync on, append-only file on), empty,
in a folder that goes with them.

Not through the stack's supervisor, since that offers no way to load `pg_stat_statements`, and what is measured must be
ended with what measures.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
import redis
from psycopg import sql

from ..console.devservers import (
    DATABASE,
    ROLE,
    SUPERUSER,
    PostgresServer,
    Server,
    ValkeyServer,
    new_record,
    stop_process,
    wait_ready,
)
from ..console.devstate import Layout
from ..ledger import migrate

READY_S = 30.0
LIBRARIES = "pg_stat_statements"


@dataclass(frozen=True, slots=True)
class Servers:
    """Both, ready."""

    folder: Path
    postgres: PostgresServer
    valkey: ValkeyServer
    postgres_pid: int
    valkey_pid: int

    @property
    def database_url(self) -> str:
        """SQLAlchemy URL of the ledger's database."""
        return self.postgres.record.url

    @property
    def broker_url(self) -> str:
        return self.valkey.record.url

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """As the superuser, in autocommit."""
        record = self.postgres.record
        return psycopg.connect(
            host="127.0.0.1",
            port=record.port,
            user=SUPERUSER,
            password=record.password,
            dbname=database,
            autocommit=True,
        )

    def broker(self) -> "redis.Redis":
        return redis.Redis.from_url(self.broker_url)

    def new_database(self) -> None:
        """An empty ledger with our schema, and an empty broker."""
        with self.connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(DATABASE)))
            connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(DATABASE), sql.Identifier(ROLE))
            )
        migrate.upgrade(self.database_url)
        with self.broker() as broker:
            broker.flushall()


@contextmanager
def servers(settings: dict[str, str] | None = None, folder: Path | None = None) -> Iterator[Servers]:
    """Both servers with a ledger; PostgreSQL with these settings over its defaults. The folder goes with them."""
    folder = folder or Path(tempfile.mkdtemp(prefix="counterfoil-bench-"))
    folder.chmod(0o755)  # as root, PostgreSQL's account must be able to pass
    layout = Layout.at(folder / "state", folder / "data")
    layout.create()
    postgres = PostgresServer(layout, new_record("postgres"))
    valkey = ValkeyServer(layout, new_record("valkey"))
    try:
        with ExitStack() as running:
            postgres.prepare()
            with (layout.postgres_dir / "postgresql.auto.conf").open("a") as file:
                for name, value in ({"shared_preload_libraries": LIBRARIES} | (settings or {})).items():
                    file.write(f"{name} = '{value}'\n")
            postgres_pid = _start(running, postgres, layout)
            postgres.set_up()
            valkey.prepare()
            valkey_pid = _start(running, valkey, layout)
            made = Servers(folder, postgres, valkey, postgres_pid, valkey_pid)
            with made.connect() as connection:
                connection.execute("CREATE EXTENSION pg_stat_statements")
            migrate.upgrade(made.database_url)
            yield made
    finally:
        shutil.rmtree(folder)


def _start(running: ExitStack, server: Server, layout: Layout) -> int:
    process: subprocess.Popen[bytes] = server.start()

    def stop() -> None:
        stop_process(psutil.Process(process.pid), server.stopping)
        process.wait()

    running.callback(stop)
    wait_ready(server, process, layout, READY_S)
    return process.pid
