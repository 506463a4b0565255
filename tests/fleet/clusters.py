"""PostgreSQL clusters of a drill's own: a primary that may be killed, standbys that may be promoted, copies."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg

from counterfoil.console.devprograms import postgres_account, postgres_bin
from counterfoil.console.devservers import PostgresServer, new_record, stop_process, wait_ready, with_port
from counterfoil.console.devstate import Layout, ServerRecord

READY_S = 30.0


@dataclass
class Cluster:
    """One cluster with a folder, a port and a superuser's password. `start`ed and ended as often as one likes."""

    server: PostgresServer
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Of the database `counterfoil`, as a guest's role."""
        return self.server.record.url

    @property
    def data(self) -> Path:
        return self.server.layout.postgres_dir

    def start(self, *, port: int | None = None) -> None:
        """On its own port, or on another's that is free by now."""
        record = self.server.record
        self.server.record = with_port("postgres", record if port is None else record.model_copy(update={"port": port}))
        assert port in (None, self.server.record.port), "the port is still taken"
        self.process = self.server.start()
        wait_ready(self.server, self.process, self.server.layout, READY_S)

    def stop(self) -> None:
        """As an operator does."""
        assert self.process is not None
        stop_process(psutil.Process(self.process.pid), self.server.stopping)
        self.process.wait()

    def kill(self) -> None:
        """The whole machine is gone: no process of it goes on."""
        if self.process is None or self.process.poll() is not None:
            return
        postmaster = psutil.Process(self.process.pid)
        for process in (postmaster, *postmaster.children()):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()

    def ask(self, query: LiteralString, database: str = "postgres") -> Any:
        """One value, as the superuser."""
        with self.connect(database) as connection:
            row = connection.execute(query).fetchone()
        return None if row is None else row[0]

    def connect(self, database: str) -> psycopg.Connection[Any]:
        record = self.server.record
        return psycopg.connect(
            host="127.0.0.1",
            port=record.port,
            user="postgres",
            password=record.password,
            dbname=database,
            autocommit=True,
        )

    def program(self, name: str, *arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """One of PostgreSQL's programs, on this cluster."""
        account, record = postgres_account(), self.server.record
        return subprocess.run(
            [postgres_bin(self.server.layout, account) / name, "-h", "127.0.0.1", "-p", str(record.port), *arguments],
            env={"PATH": os.defpath, "LC_ALL": "C", "PGUSER": "postgres", "PGPASSWORD": record.password},
            cwd="/",
            check=True,
            capture_output=True,
            user=account.user,
            group=account.group,
            extra_groups=account.extra_groups,
            **options,
        )


@dataclass
class Clusters:
    """The clusters of one drill, all ended with it."""

    folder: Path
    _made: ExitStack = field(default_factory=ExitStack)

    def primary(self, name: str) -> Cluster:
        """A new cluster with our role and database, running. No test here cuts the power."""
        made = self._cluster(name, new_record("postgres"))
        made.server.prepare()
        with (made.data / "postgresql.auto.conf").open("a") as settings:
            settings.write("fsync = off\n")
        made.start()
        made.server.set_up()
        return made

    def standby(self, name: str, primary: Cluster) -> Cluster:
        """A streaming standby, asynchronous, running."""
        made = self._cluster(name, _heir(primary))
        made.data.mkdir(mode=0o700)
        postgres_account().own(made.data)
        primary.program("pg_basebackup", "-D", made.data, "-X", "stream", "-c", "fast", "-R")
        made.start()
        return made

    def copy(self, name: str, stopped: Cluster) -> Cluster:
        """The same data once more, not running."""
        made = self._cluster(name, _heir(stopped))
        account = postgres_account()
        shutil.copytree(stopped.data, made.data)
        for path in (made.data, *made.data.rglob("*")):
            account.own(path)
        return made

    def _cluster(self, name: str, record: ServerRecord) -> Cluster:
        layout = Layout.at(self.folder / name / "state", self.folder / name / "data")
        layout.create()
        made = Cluster(PostgresServer(layout, record))
        self._made.callback(made.kill)
        return made

    def close(self) -> None:
        self._made.close()


def _heir(of: Cluster) -> ServerRecord:
    """A port of its own, and the passwords that come with the data."""
    return new_record("postgres").model_copy(update={"password": of.server.record.password})


@contextmanager
def clusters(folder: Path) -> Iterator[Clusters]:
    made = Clusters(folder)
    try:
        yield made
    finally:
        made.close()
