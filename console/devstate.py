"""What a development stack leaves on disk: its folder, `dev.json`, the lock, and who a recorded process was.

.counterfoil/          the state folder (0700)
    lock               held by the supervisor for life: held = a stack runs here
    dev.json           passwords, ports, process ids with their starts (0600, replaced whole)
    *.log              one per process; the last run's is kept as *.log.old
    postgres/ valkey/  data (for root, Postgres's lies elsewhere: see `Layout`)
"""

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import psutil
from pydantic import BaseModel, ConfigDict, Field, ValidationError

ServerName = Literal["postgres", "valkey"]
SERVER_NAMES: tuple[ServerName, ...] = ("postgres", "valkey")
ENVIRONMENT_URLS: Mapping[ServerName, str] = {
    "postgres": "COUNTERFOIL_DATABASE_URL",
    "valkey": "COUNTERFOIL_BROKER_URL",
}

ROOT_DATA_DIR = Path("/var/lib/counterfoil")


class DevStackError(Exception):
    """The development stack can't do what was asked: what is wrong, where, and what to do next."""


class ProcessIdentity(BaseModel):
    """A process that can be told from a later one with the same number: pid and when it started."""

    model_config = ConfigDict(frozen=True)

    pid: int = Field(gt=1)
    started: str

    @classmethod
    def of(cls, pid: int) -> Self:
        return cls(pid=pid, started=_start_mark(pid))

    def find(self) -> psutil.Process | None:
        """Return the living process, or None where it has ended, is a zombie, or its number belongs to another."""
        try:
            process = psutil.Process(self.pid)
            return process if _start_mark(self.pid) == self.started and not has_ended(process) else None
        except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            return None


def has_ended(process: psutil.Process) -> bool:
    """Tell whether it runs no more. A zombie doesn't: psutil's own wait goes on until somebody collects it."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _start_mark(pid: int) -> str:
    if sys.platform != "linux":
        return f"{psutil.Process(pid).create_time():.2f}"
    # Ticks since boot: the wall clock of a start, as psutil tells it, moves when the clock is stepped.
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}+{ticks}"


class ServerRecord(BaseModel):
    """One server of ours: how to reach it, and its process while it runs."""

    port: int
    password: str = Field(repr=False)
    process: ProcessIdentity | None = None
    url: str = Field(default="", repr=False)  # for tools that read the file


class DevState(BaseModel):
    """The content of `dev.json`. `ready` is only believed while `supervisor` lives."""

    format: Literal["counterfoil-dev-1"] = "counterfoil-dev-1"
    supervisor: ProcessIdentity | None = None
    ready: bool = False
    servers: dict[ServerName, ServerRecord] = Field(default_factory=dict)

    def is_running(self) -> bool:
        return self.ready and self.supervisor is not None and self.supervisor.find() is not None


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a stack keeps what.

    Postgres refuses to run as root, so root's Postgres runs under another account, which can't be expected to reach
    a state folder below a private home. Its data then lie in `root_data_dir` / hash of the state folder's path; no
    folder that was there before has its mode changed.
    """

    state_dir: Path
    root_data_dir: Path = ROOT_DATA_DIR

    @classmethod
    def at(cls, state_dir: Path | str, root_data_dir: Path = ROOT_DATA_DIR) -> Self:
        return cls(Path(state_dir).resolve(), root_data_dir.resolve())

    @property
    def state_file(self) -> Path:
        return self.state_dir / "dev.json"

    @property
    def account_dir(self) -> Path | None:
        """Root's own folder for the other account's files; None for everybody else."""
        if os.geteuid() != 0:
            return None
        return self.root_data_dir / hashlib.sha256(os.fsencode(self.state_dir)).hexdigest()[:16]

    @property
    def postgres_dir(self) -> Path:
        return (self.account_dir or self.state_dir) / "postgres"

    @property
    def valkey_dir(self) -> Path:
        return self.state_dir / "valkey"

    def log_file(self, name: str) -> Path:
        return self.state_dir / f"{name}.log"

    def create(self) -> None:
        """Make the folders.

        Raises:
            DevStackError: the state folder belongs to another user.
        """
        if not self.state_dir.exists():
            self.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._require_own(self.state_dir)
        ignore = self.state_dir / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
        if self.account_dir is not None:
            self.account_dir.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._require_own(self.account_dir)
            self._owner_file.write_text(f"{self.state_dir}\n")

    def delete(self) -> None:
        """Delete the data, the logs and the state, and nothing that isn't known to be a stack's.

        Raises:
            DevStackError: nothing proves that the folder is a stack's, or it belongs to another user.
        """
        if not self.state_dir.exists():
            return
        self._require_own(self.state_dir)
        if read_state(self) is None:
            raise DevStackError(
                f"{self.state_dir} has no dev.json, so nothing proves that it is a development stack's folder: "
                "nothing was deleted. Remove it by hand if it is yours."
            )
        if self.account_dir is not None and self.account_dir.exists():
            self._require_own(self.account_dir)
            if self._owner_file.read_text() != f"{self.state_dir}\n":
                raise DevStackError(f"{self._owner_file} names another stack: nothing was deleted.")
            shutil.rmtree(self.account_dir)
        for folder in ("postgres", "postgres.new", "valkey"):
            path = self.state_dir / folder
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
        for pattern in ("*.log", "*.log.old", ".dev.json.*", ".gitignore", "dev.json", "lock"):
            for path in self.state_dir.glob(pattern):
                path.unlink()
        with suppress(OSError):  # something of the user's lies in it: then it stays
            self.state_dir.rmdir()

    @property
    def _owner_file(self) -> Path:
        return (self.account_dir or self.state_dir) / "owner"

    @staticmethod
    def _require_own(folder: Path) -> None:
        owner = folder.stat().st_uid
        if owner != os.geteuid():
            raise DevStackError(
                f"{folder} belongs to user id {owner}, and this is user id {os.geteuid()}: "
                "run as that user, or give another state folder."
            )


def read_state(layout: Layout) -> DevState | None:
    """Return what `dev.json` says; None where there is none.

    Raises:
        DevStackError: it is there and can't be understood (its content isn't shown: it holds passwords).
    """
    try:
        return DevState.model_validate_json(layout.state_file.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise DevStackError(
            f"{layout.state_file} is no state file of this version ({error.error_count()} faults). "
            "Move it away; the data beside it can't be opened without its passwords."
        ) from None


def write_state(layout: Layout, state: DevState) -> None:
    """Replace `dev.json` in one step, readable by its owner only."""
    handle, name = tempfile.mkstemp(dir=layout.state_dir, prefix=".dev.json.")  # mkstemp makes it 0600
    with os.fdopen(handle, "w") as file:
        file.write(state.model_dump_json(indent=2))
    Path(name).replace(layout.state_file)


class StateLock:
    """The lock of a state folder. The kernel frees it when its holder dies, however it dies."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    def try_acquire(cls, layout: Layout) -> Self | None:
        """Return the lock, or None while another process holds it."""
        path = layout.state_dir / "lock"
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # `reset` deletes the file while it holds the lock: a lock on a deleted file keeps nobody out.
                if path.exists() and path.stat().st_ino == os.fstat(handle).st_ino:
                    return cls(handle)
            except BlockingIOError:
                os.close(handle)
                return None
            os.close(handle)

    def release(self) -> None:
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
