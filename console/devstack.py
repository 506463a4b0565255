"""The development stack: a real PostgreSQL and a real Valkey, without Docker and without a system database.

    with DevStack(".counterfoil") as stack:       # for as long as the block runs: tests, notebooks, the demo
        Client(stack.database_url)

    up(".counterfoil")                            # stays in the background: `counterfoil dev up|stop|status|reset`

`COUNTERFOIL_DATABASE_URL` and `COUNTERFOIL_BROKER_URL` put a server of yours in the place of either.
"""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import psutil

from ..ledger.location import DEFAULT_STATE_DIR
from .devservers import SUPERUSER
from .devstate import (
    ENVIRONMENT_URLS,
    ROOT_DATA_DIR,
    SERVER_NAMES,
    DevStackError,
    DevState,
    Layout,
    ServerName,
    StateLock,
    read_state,
    write_state,
)
from .supervisor import READY_DEADLINE_S, end_leftovers

__all__ = ["DevStack", "DevStackError", "ServerStatus", "Status", "reset", "status", "stop", "up"]

Progress = Callable[[str], None]

# Both servers one after the other, plus initdb on a slow disk.
_START_DEADLINE_S = 2 * READY_DEADLINE_S + 30.0
# Postgres is given 20 + 5 + 5 s, Valkey 10 + 5 s.
_STOP_DEADLINE_S = 50.0
_LOOK_S = 0.05


def _silent(_: str) -> None:
    """Progress nobody asked for."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server of the stack. `url` holds the password; `address` is for showing."""

    name: ServerName
    external: bool
    running: bool
    pid: int | None
    url: str | None = field(repr=False)

    @property
    def address(self) -> str | None:
        """Host, port and database, without credentials."""
        if self.url is None:
            return None
        parts = urlsplit(self.url)
        return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


@dataclass(frozen=True, slots=True)
class Status:
    """What runs. An external server is told, not tried: `running` is True for it."""

    state_dir: Path
    supervisor_pid: int | None
    servers: tuple[ServerStatus, ...]

    @property
    def running(self) -> bool:
        return all(server.running for server in self.servers)

    def __getitem__(self, name: ServerName) -> ServerStatus:
        return next(server for server in self.servers if server.name == name)


class DevStack:
    """The stack for as long as a `with` block runs; it also ends when this process does, however that ends.

    Where a background stack runs in the same folder it is used and left running.

    Args:
        state_dir: where `dev.json`, the logs and the data go; data stay from one run to the next.
        servers: which servers are needed.
        migrate: bring the ledger's schema up to date.
        progress: is told each step in a few words.
        environ: where the external URLs are looked for.
        root_data_dir: where Postgres's data go if this is run by root.

    Raises:
        DevStackError: on entering, if a server can't be started; the end of its log is in the message.
    """

    def __init__(
        self,
        state_dir: Path | str = DEFAULT_STATE_DIR,
        *,
        servers: Collection[ServerName] = SERVER_NAMES,
        migrate: bool = True,
        progress: Progress = _silent,
        environ: Mapping[str, str] = os.environ,
        root_data_dir: Path = ROOT_DATA_DIR,
    ) -> None:
        self._layout = Layout.at(state_dir, root_data_dir)
        self._servers = servers
        self._migrate = migrate
        self._progress = progress
        self._environ = environ
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._status: Status | None = None

    def __enter__(self) -> Self:
        self._status, self._supervisor = _ensure_running(
            self._layout, self._servers, self._environ, self._progress, background=False
        )
        try:
            if self._migrate and "postgres" in self._servers:
                _migrate(self.database_url, self._progress)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def status(self) -> Status:
        """What was started, or found running.

        Raises:
            DevStackError: outside of the `with` block.
        """
        if self._status is None:
            raise DevStackError("The stack has not been started: use it in a `with` block.")
        return self._status

    @property
    def database_url(self) -> str:
        """SQLAlchemy URL of the database, of a role that may make databases and roles and is no superuser."""
        return self._url("postgres")

    @property
    def broker_url(self) -> str:
        """`redis://` URL of the broker."""
        return self._url("valkey")

    @property
    def superuser_url(self) -> str | None:
        """SQLAlchemy URL of our Postgres's superuser, for what only an operator does; None for an external one."""
        if self.status["postgres"].external:
            return None
        host = urlsplit(self.database_url).netloc.rpartition("@")[2]
        password = urlsplit(self.database_url).password
        return f"postgresql+psycopg://{SUPERUSER}:{password}@{host}/postgres"

    def _url(self, name: ServerName) -> str:
        url = self.status[name].url if name in self._servers else None
        if url is None:
            raise DevStackError(f"This stack was started without {name}.")
        return url

    def _end(self) -> None:
        self._status = None
        if self._supervisor is not None:
            _end_supervisor(self._supervisor)
            self._supervisor = None


def up(
    state_dir: Path | str = DEFAULT_STATE_DIR,
    *,
    migrate: bool = True,
    progress: Progress = _silent,
    environ: Mapping[str, str] = os.environ,
    root_data_dir: Path = ROOT_DATA_DIR,
) -> Status:
    """Start the stack in the background, or find it running; see `DevStack` for the arguments.

    Raises:
        DevStackError: a server can't be started; the end of its log is in the message.
    """
    layout = Layout.at(state_dir, root_data_dir)
    result, _ = _ensure_running(layout, SERVER_NAMES, environ, progress, background=True)
    if migrate and (url := result["postgres"].url) is not None:
        _migrate(url, progress)
    return result


def status(
    state_dir: Path | str = DEFAULT_STATE_DIR,
    *,
    environ: Mapping[str, str] = os.environ,
    root_data_dir: Path = ROOT_DATA_DIR,
) -> Status:
    """Tell what runs in the folder; nothing is started, made or changed."""
    return _status(Layout.at(state_dir, root_data_dir), environ)


def stop(state_dir: Path | str = DEFAULT_STATE_DIR, *, root_data_dir: Path = ROOT_DATA_DIR) -> bool:
    """Stop what runs in the folder, also what a killed supervisor left; the data stay.

    Returns:
        Whether anything ran.

    Raises:
        DevStackError: it does not stop.
    """
    layout = Layout.at(state_dir, root_data_dir)
    if not layout.state_dir.exists():
        return False
    lock, ran = _stop_and_lock(layout)
    lock.release()
    return ran


def reset(state_dir: Path | str = DEFAULT_STATE_DIR, *, root_data_dir: Path = ROOT_DATA_DIR) -> None:
    """Stop the stack and delete its data, logs and passwords; what else lies in the folder stays.

    Raises:
        DevStackError: it does not stop, or nothing proves that the folder is a stack's.
    """
    layout = Layout.at(state_dir, root_data_dir)
    if not layout.state_dir.exists():
        return
    lock, _ = _stop_and_lock(layout)
    with lock:
        layout.delete()


def _state(layout: Layout) -> DevState:
    return read_state(layout) or DevState()


def _status(layout: Layout, environ: Mapping[str, str]) -> Status:
    state = _state(layout)
    running = state.is_running()
    servers = []
    for name in SERVER_NAMES:
        record = state.servers.get(name)
        if external_url := environ.get(ENVIRONMENT_URLS[name]):
            servers.append(ServerStatus(name, external=True, running=True, pid=None, url=external_url))
        elif running and record is not None and record.process is not None:
            servers.append(ServerStatus(name, external=False, running=True, pid=record.process.pid, url=record.url))
        else:
            servers.append(ServerStatus(name, external=False, running=False, pid=None, url=None))
    return Status(layout.state_dir, state.supervisor.pid if running and state.supervisor else None, tuple(servers))


def _ensure_running(
    layout: Layout,
    servers: Collection[ServerName],
    environ: Mapping[str, str],
    progress: Progress,
    *,
    background: bool,
) -> tuple[Status, subprocess.Popen[bytes] | None]:
    """Start the supervisor, or find one; whoever gets the lock wins, the others wait until it is ready."""
    own = [name for name in SERVER_NAMES if name in servers and not environ.get(ENVIRONMENT_URLS[name])]
    if not own:
        return _status(layout, environ), None
    layout.create()
    end = time.monotonic() + _START_DEADLINE_S
    supervisor = None
    while not _state(layout).is_running():
        if time.monotonic() > end:
            raise DevStackError(f"Another start of the stack in {layout.state_dir} does not come to an end.")
        if (lock := StateLock.try_acquire(layout)) is None:
            time.sleep(_LOOK_S)
            continue
        lock.release()
        supervisor = _launch(layout, own, progress, end, background=background)
    found = _status(layout, environ)
    if missing := [name for name in own if not found[name].running]:
        raise DevStackError(
            f"The stack in {layout.state_dir} runs without {' and '.join(missing)}: stop it, then start it again."
        )
    return found, supervisor


def _launch(
    layout: Layout, own: list[ServerName], progress: Progress, end: float, *, background: bool
) -> subprocess.Popen[bytes] | None:
    """Start a supervisor and hear it out; None where another one was faster, or ours runs in the background."""
    read_handle, write_handle = os.pipe()
    with os.fdopen(read_handle, "rb", buffering=0) as report:
        try:
            supervisor = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "counterfoil.console.supervisor", str(layout.state_dir)),
                    *("--root-data-dir", str(layout.root_data_dir), "--servers", ",".join(own)),
                    *("--report-handle", str(write_handle)),
                    *(() if background else ("--holder-pid", str(os.getpid()))),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[write_handle],
                start_new_session=True,  # Ctrl-C is for us: workers still need the servers while they end
            )
        finally:
            os.close(write_handle)
        started = False
        try:
            started = _hear(report.fileno(), progress, end)
        except DevStackError:
            raise
        except BaseException:  # Ctrl-C: nothing stays behind of a start that was called off
            if background:
                _stop_and_lock(layout)[0].release()
            raise
        finally:
            if background:
                supervisor.wait()  # it has forked, and this half has ended
            elif not started:
                _end_supervisor(supervisor)
    return supervisor if started and not background else None


def _hear(report_handle: int, progress: Progress, end: float) -> bool:
    """Return whether the servers are ready; False: another supervisor holds the folder.

    Raises:
        DevStackError: what the supervisor says, or that it says nothing.
    """
    text = b""
    while True:
        if not select.select([report_handle], [], [], max(0.0, end - time.monotonic()))[0]:
            raise DevStackError("The stack's supervisor does not answer.")
        chunk = os.read(report_handle, 65536)
        if not chunk:
            raise DevStackError("The stack's supervisor ended before the servers were ready.")
        *lines, text = (text + chunk).split(b"\n")
        for line in lines:
            fact = json.loads(line)
            if "progress" in fact:
                progress(fact["progress"])
            elif "error" in fact:
                raise DevStackError(fact["error"])
            else:
                return bool(fact.get("ready"))


def _end_supervisor(supervisor: subprocess.Popen[bytes]) -> None:
    supervisor.terminate()
    try:
        supervisor.wait(_STOP_DEADLINE_S)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()


def _stop_and_lock(layout: Layout) -> tuple[StateLock, bool]:
    """Return the folder's lock once nothing runs there, and whether anything did."""
    ran = False
    end = time.monotonic() + _STOP_DEADLINE_S
    while (lock := StateLock.try_acquire(layout)) is None:
        ran = True
        if time.monotonic() > end:
            raise DevStackError(f"The stack in {layout.state_dir} does not stop; see {layout.log_file('supervisor')}.")
        state = _state(layout)
        # One that is just starting isn't recorded yet; one that was told already only needs time.
        if state.supervisor is not None and (process := state.supervisor.find()) is not None:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        time.sleep(_LOOK_S)
    try:
        if (left := read_state(layout)) is not None:
            ran |= end_leftovers(left)
            write_state(layout, left)
    except BaseException:
        lock.release()
        raise
    return lock, ran


def _migrate(database_url: str, progress: Progress) -> None:
    from ..ledger.migrate import upgrade  # noqa: PLC0415 - Alembic costs 0.3 s, which `status` and `stop` need not pay

    progress("migrating the ledger")
    upgrade(database_url)
