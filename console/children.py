"""Processes that live no longer than the one that started them: each a group of its own, ended on every way out."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from .devprograms import end_with_parent

_GRACE_S = 6.0
"""What a worker takes to bring home its requests; then the group is killed, and the ledger keeps what was out."""
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Child:
    """One started process, the leader of its group."""

    name: str
    process: subprocess.Popen[str]
    log_file: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def has_ended(self) -> bool:
        """Whether it runs no more. It is not collected by asking, so its number stays its own."""
        if self.process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def kill(self) -> None:
        """End the whole group at once, as a machine's failure would, and collect its leader."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()

    def speaks_from(self, port: int) -> bool:
        """Whether one of the group's processes has a TCP connection from this local port."""
        with suppress(psutil.NoSuchProcess):
            leader = psutil.Process(self.pid)
            for process in (leader, *leader.children(recursive=True)):
                with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    if any(connection.laddr.port == port for connection in process.net_connections("tcp")):
                        return True
        return False

    def log_tail(self, lines: int = 8) -> str:
        with suppress(OSError):
            return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])
        return ""


def bare_environment() -> dict[str, str]:
    """This process's without our settings: what is shown or measured is the same everywhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COUNTERFOIL_")}


class Children:
    """Starts processes; on leaving the block all of them have ended. Also when this process is killed (on Linux)."""

    def __init__(self, log_dir: Path) -> None:
        self._log_dir = log_dir
        self._children: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        alive = [child for child in self._children if child.process.returncode is None]
        for child in alive:
            with suppress(ProcessLookupError):
                child.process.terminate()
                os.killpg(child.pid, signal.SIGCONT)  # one that was stopped could not hear it
        end_s = time.monotonic() + _GRACE_S
        while time.monotonic() < end_s and not all(child.has_ended() for child in alive):
            time.sleep(_LOOK_S)
        # While its leader is not collected, a group's number can't have become another's.
        for child in alive:
            child.kill()
            if child.process.stdout is not None:
                child.process.stdout.close()

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], *, reads_stdout: bool = False
    ) -> Child:
        """Start one. What it says goes to a log file; with `reads_stdout` its stdout is a pipe for us."""
        log_file = self._log_dir / f"demo-{name.replace(' ', '-')}.log"
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if reads_stdout else log,
                stderr=log,
                env=dict(environment),
                text=True,
                process_group=0,  # Ctrl-C is for us, and a kill takes a worker's children along
                # Asked to end, a worker whose broker and ledger end with us as well would wait for both.
                preexec_fn=end_with_parent(signal.SIGKILL),  # noqa: PLW1509 - there is no other thread yet
            )
        child = Child(name, process, log_file)
        self._children.append(child)
        return child
