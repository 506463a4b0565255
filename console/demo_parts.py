"""The parts that every demo starts and ends: servers of its own, the development stack, workers and beat."""

import importlib.util
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from ..ledger.client import Client
from ..ledger.errors import InputRefused
from ..ledger.records import Receipt, ToolOperation
from .children import Child, Children, bare_environment
from .demo_view import DemoView
from .devstack import DevStack, DevStackError, up
from .exits import Exit
from .output import say

NAMESPACE = "demo"
PACE_S = 1.0
LOOK_S = 0.1

# -P: the current folder may be a checkout, whose own folders must not be found as modules.
PYTHON = (sys.executable, "-P", "-m")
BOOK = "demo-server.jsonl"
READY_DEADLINE_S = 30.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def require_demo_extra() -> None:
    """Raises InputRefused (E_DEMO_EXTRA)."""
    if importlib.util.find_spec("fastmcp_tasks") is None:
        raise InputRefused(
            "the demo's server needs fastmcp.", code="E_DEMO_EXTRA", next_step="pip install 'counterfoil[demo]'"
        )


@contextmanager
def started(state_dir: Path, *, as_json: bool) -> Iterator[tuple[ExitStack, DemoView]]:
    """What a demo has around it: its view, and a stack for what it starts, ended on every way out."""
    with ExitStack() as stack:
        _end_on_signals()
        stack.callback(_restore_signals)
        try:
            view = stack.enter_context(DemoView(to_stderr=as_json))
            state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            yield stack, view
        except KeyboardInterrupt:
            say("ending what the demo started.")
            raise
        finally:
            _ignore_signals()  # nothing may break the ending of what was started


def _end_on_signals() -> None:
    def end(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    for number in _SIGNALS:
        signal.signal(number, end)


def _ignore_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _restore_signals() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


# -- starting ----------------------------------------------------------------------------------------------------------


def start_server(stack: ExitStack, state_dir: Path, view: DemoView) -> Child:
    """First of all, since fastmcp takes two seconds to import: the stack starts meanwhile."""
    view.note("starting an MCP server (fastmcp)")
    children = stack.enter_context(Children(state_dir))
    command = (*PYTHON, "counterfoil.console.demo_server", str(state_dir / BOOK), str(PACE_S))
    return children.start("server", command, bare_environment(), reads_stdout=True)


def start_stack(stack: ExitStack, state_dir: Path, view: DemoView, *, keep: bool) -> dict[str, str]:
    """The URLs of a stack that is there, its schema up to date."""
    if not keep:
        servers = stack.enter_context(DevStack(state_dir, progress=view.note))
        return _urls(servers.database_url, servers.broker_url)
    found = up(state_dir, progress=view.note)
    database_url, broker_url = found["postgres"].url, found["valkey"].url
    if database_url is None or broker_url is None:
        raise DevStackError(f"The stack in {state_dir} ended while the demo began; see its logs.")
    return _urls(database_url, broker_url)


def _urls(database_url: str, broker_url: str) -> dict[str, str]:
    return {"COUNTERFOIL_DATABASE_URL": database_url, "COUNTERFOIL_BROKER_URL": broker_url}


def read_port(server: Child) -> int:
    assert server.process.stdout is not None
    line = ""
    if select.select([server.process.stdout], [], [], READY_DEADLINE_S)[0]:
        line = server.process.stdout.readline()
    if not line.strip().isdigit():
        raise _did_not_start(server)
    return int(line)


def _wait_ready(workers: Sequence[Child]) -> None:
    end_s = time.monotonic() + READY_DEADLINE_S
    for worker in workers:
        while "worker ready:" not in worker.log_file.read_text(errors="replace"):
            if worker.has_ended() or time.monotonic() > end_s:
                raise _did_not_start(worker)
            time.sleep(LOOK_S)


def _did_not_start(child: Child) -> DevStackError:
    return DevStackError(f"The demo's {child.name} did not start; the end of {child.log_file}:\n{child.log_tail()}")


def start_workers(
    children: Children, urls: Mapping[str, str], targets_file: Path, names: Sequence[str]
) -> tuple[list[Child], Child]:
    """Workers of these names, all ready, and beat."""
    environment = {
        **bare_environment(),
        **urls,
        "COUNTERFOIL_TARGETS_FILE": str(targets_file),
        # The shortest lease: after a kill a call is noticed when it has run out.
        "COUNTERFOIL_POLL_LEASE_S": "5",
    }
    worker = (*PYTHON, "counterfoil", "worker", "--concurrency", "1")
    workers = [children.start(name, worker, environment) for name in names]
    beat = children.start("beat", (*PYTHON, "counterfoil", "beat"), environment)
    _wait_ready(workers)
    return workers, beat


def submit(client: Client, target: str, tool: str, arguments: Mapping[str, object], call_node_id: str) -> None:
    """A worker says that it is ready a moment before its child has announced the targets."""
    end_s = time.monotonic() + READY_DEADLINE_S
    while True:
        try:
            client.submit(target, tool, arguments, call_node_id=call_node_id)
        except InputRefused as error:
            if error.code != "E_TARGET_UNKNOWN" or time.monotonic() > end_s:
                raise
            time.sleep(LOOK_S)
        else:
            return


def as_json(operation: ToolOperation, receipt: Receipt | None, runs: int) -> dict[str, object]:
    """One object an operation. `runs`: how often the server started it, by its own count."""
    return {
        "call_node_id": operation.call_node_id,
        "namespace": operation.namespace,
        "target": operation.target,
        "tool": operation.tool,
        "protocol": operation.protocol,
        "state": operation.state,
        "outcome": operation.outcome,
        "error_code": operation.error_code,
        "receipt_id": None if receipt is None else str(receipt.id),
        "receipt_sound": receipt is not None and not receipt.problems(),
        "task_id": operation.task_id,
        "attempt": operation.attempt,
        "epoch": operation.execution_epoch,
        "server_runs": runs,
    }


def verdict(problems: Sequence[str], state_dir: Path) -> Exit:
    """How a demo ends, with what is not as it should be."""
    if not problems:
        return Exit.OK
    for problem in problems:
        say(f"NOT AS IT SHOULD BE: {problem}")
    say(f"  The logs are in {state_dir}.")
    return Exit.INTERNAL
