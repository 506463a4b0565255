"""Everything that a measurement needs, started and ended: servers, the remote server, fleets, producers."""

import json
import select
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..console.children import Child, Children, bare_environment
from .meter import Meter
from .peers.work import BEGIN, READY
from .serverlog import ServerLog
from .servers import Servers

MODULE = (sys.executable, "-P", "-m")
READY_S = 30.0
LOOK_S = 0.05


class BenchError(Exception):
    """A measurement can't be made; the text says why."""


@dataclass(frozen=True, slots=True)
class Remote:
    """The remote server, by its own control requests."""

    url: str
    child: Child

    def log(self) -> ServerLog:
        return ServerLog.of(self._ask("GET", "/bench/log"))

    def counts(self) -> Mapping[str, int]:
        found: Mapping[str, int] = self._ask("GET", "/bench/count")
        return found

    def reset(self) -> None:
        self._ask("POST", "/bench/reset")

    def _ask(self, verb: str, path: str) -> Any:
        request = urllib.request.Request(f"{self.url}{path}", method=verb)  # noqa: S310  our own server
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer)


@dataclass(slots=True)
class Field:
    """One remote server, one pair of servers, and whoever is started on them."""

    servers: Servers
    remote: Remote
    meter: Meter
    children: Children
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, name: str, command: Sequence[str], **environment: str) -> Child:
        """A process whose stdout is not read."""
        return self.children.start(name, command, self.environment | environment)

    def prepare(self, name: str, command: Sequence[str], **environment: str) -> Child:
        """A process that has said READY and waits for `begin`."""
        child = self.children.start(name, command, self.environment | environment, reads_stdout=True)
        if READY not in first_line(child):
            raise BenchError(f"{name} did not start; the end of {child.log_file}:\n{child.log_tail(20)}")
        return child

    def begin(self, child: Child) -> None:
        child.process.send_signal(BEGIN)

    def wait(self, claim: str, holds: Callable[[], bool], timeout_s: float) -> bool:
        """Whether it held in time. Nothing tells: other processes do it."""
        end_s = time.monotonic() + timeout_s
        while not holds():
            if time.monotonic() > end_s:
                sys.stderr.write(f"not within {timeout_s:.0f} s: {claim}\n")
                return False
            time.sleep(LOOK_S)
        return True


def first_line(child: Child, timeout_s: float = READY_S) -> str:
    """What a process says first on its stdout; nothing where it says nothing in time."""
    assert child.process.stdout is not None
    ready = select.select([child.process.stdout], [], [], timeout_s)[0]
    return child.process.stdout.readline() if ready else ""


@contextmanager
def field_on(servers: Servers, *remote_arguments: str) -> Iterator[Field]:
    """A field with its remote server up."""
    with ExitStack() as stack:
        children = stack.enter_context(Children(servers.folder))
        remote = start_remote(children, *remote_arguments)
        meter = Meter(servers)
        stack.callback(meter.close)
        yield Field(servers, remote, meter, children, own_environment(servers, remote))


def start_remote(children: Children, *arguments: str, name: str = "remote") -> Remote:
    """A remote server of one's own."""
    child = children.start(
        name, (*MODULE, "counterfoil.bench.remote", *arguments), bare_environment(), reads_stdout=True
    )
    port = first_line(child).strip()
    if not port.isdigit():
        raise BenchError(f"the remote server did not start:\n{child.log_tail(20)}")
    return Remote(f"http://127.0.0.1:{port}", child)


def own_environment(servers: Servers, remote: Remote) -> dict[str, str]:
    return {
        **bare_environment(),
        "COUNTERFOIL_DATABASE_URL": servers.database_url,
        "COUNTERFOIL_BROKER_URL": servers.broker_url,
        "COUNTERFOIL_TARGETS_FILE": str(servers.folder / "targets.yaml"),
        "REMOTE_URL": remote.url,
        "PYTHONUNBUFFERED": "1",
    }


def root() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parents[1]
