"""The demo: calls on real parts, a worker killed, an answer lost; our receipts beside the server's own counts."""

import importlib.util
import os
import secrets
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from rich.table import Table

from ..ledger.client import Client
from ..ledger.errors import InputRefused
from ..ledger.records import Receipt, ToolOperation
from ..ledger.states import TERMINAL, State
from . import demo_lost
from .children import Child, Children
from .demo_book import ServerBook, read_book
from .demo_lost import LostAnswer, Tally
from .demo_next import next_commands
from .demo_view import DemoView, Row
from .devstack import DevStack, DevStackError, up
from .exits import Exit
from .output import print_json, say

NAMESPACE = "demo"
TARGET = "demo"
SLOW_PAGES = 8
PACE_S = 1.0

# -P: the current folder may be a checkout, whose own folders must not be found as modules.
_PYTHON = (sys.executable, "-P", "-m")
_BOOK = "demo-server.jsonl"
_READY_DEADLINE_S = 30.0
_DEADLINE_S = 45.0
"""For all receipts. They take about 10 s: the slow tool's 8, and the lease of the worker that was killed."""
_LOOK_S = 0.1
_POLLS_BEFORE_KILL = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class DemoCall:
    """A call with the outcome that it must have."""

    call_node_id: str
    tool: str
    arguments: Mapping[str, object]
    expected: str


@dataclass(slots=True)
class Demo:
    """What runs while the demo does."""

    run: str
    client: Client
    book_file: Path
    children: Children
    workers: list[Child]
    others: list[Child]
    lost: LostAnswer
    view: DemoView
    killed: Child | None = None
    calls: list[DemoCall] = field(default_factory=list)

    def read_book(self) -> ServerBook:
        return read_book(self.book_file, self.run)

    def read_tally(self) -> Tally:
        return self.lost.tally(self.book_file, self.client)


def run_demo(state_dir: Path, *, as_json: bool, keep: bool) -> Exit:
    """Run it. OK only if each call has one sound receipt of the right outcome and the server started each tool once.

    Raises DevStackError, InputRefused, LedgerUnavailable, SettingsError. Everything that was started has ended when
    this returns or raises; with `keep` the development stack goes on.
    """
    if importlib.util.find_spec("fastmcp_tasks") is None:
        raise InputRefused(
            "the demo's server needs fastmcp.", code="E_DEMO_EXTRA", next_step="pip install 'counterfoil[demo]'"
        )
    with ExitStack() as stack:
        _end_on_signals()
        stack.callback(_restore_signals)
        try:
            view = stack.enter_context(DemoView(to_stderr=as_json))
            state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            server = _start_server(stack, state_dir, view)
            urls = _start_stack(stack, state_dir, view, keep=keep)
            demo = _start_fleet(stack, state_dir, urls, server, view)
            problems = _play(demo)
            view.close_table()
            return _tell_end(demo, problems, state_dir, as_json=as_json)
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


def _start_server(stack: ExitStack, state_dir: Path, view: DemoView) -> Child:
    """First of all, since fastmcp takes two seconds to import: the stack starts meanwhile."""
    view.note("starting an MCP server (fastmcp)")
    children = stack.enter_context(Children(state_dir))
    command = (*_PYTHON, "counterfoil.console.demo_server", str(state_dir / _BOOK), str(PACE_S))
    return children.start("server", command, _own_environment(), reads_stdout=True)


def _start_stack(stack: ExitStack, state_dir: Path, view: DemoView, *, keep: bool) -> dict[str, str]:
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


def _start_fleet(stack: ExitStack, state_dir: Path, urls: Mapping[str, str], server: Child, view: DemoView) -> Demo:
    """Two workers and beat, all ready."""
    view.note("starting two workers and beat")
    children = stack.enter_context(Children(state_dir))
    server_port = _read_port(server)
    command = (*_PYTHON, "counterfoil.console.demo_proxy", str(server_port), demo_lost.TOOL)
    proxy = children.start("proxy", command, _own_environment(), reads_stdout=True)
    proxy_port = _read_port(proxy)
    targets_file = state_dir / "demo-targets.yaml"
    targets_file.write_text(_targets(server_port) + demo_lost.target(proxy_port), encoding="utf-8")
    environment = {
        **_own_environment(),
        **urls,
        "COUNTERFOIL_TARGETS_FILE": str(targets_file),
        # The shortest lease: after the kill the slow call is noticed when it has run out.
        "COUNTERFOIL_POLL_LEASE_S": "5",
    }
    worker = (*_PYTHON, "counterfoil", "worker", "--concurrency", "1")
    workers = [children.start(f"worker {number}", worker, environment) for number in (1, 2)]
    beat = children.start("beat", (*_PYTHON, "counterfoil", "beat"), environment)
    _wait_ready(workers)
    client = Client(urls["COUNTERFOIL_DATABASE_URL"], namespace=NAMESPACE)
    stack.callback(client.close)
    view.note("ready: " + ", ".join(f"{child.name} (pid {child.pid})" for child in (server, *workers, beat)))
    run = secrets.token_hex(3)
    lost = LostAnswer(run, proxy, proxy_port)
    return Demo(run, client, state_dir / _BOOK, children, workers, [server, proxy, beat], lost, view)


def _own_environment() -> dict[str, str]:
    """Without the caller's settings: the demo is the same everywhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COUNTERFOIL_")}


def _targets(port: int) -> str:
    return (
        f"targets:\n  {TARGET}:\n    url: http://127.0.0.1:{port}/mcp\n    protocol: mcp-2026-07-28\n"
        "    allow_private: true\n    qps: 20\n    burst: 10\n"
    )


def _read_port(server: Child) -> int:
    assert server.process.stdout is not None
    line = ""
    if select.select([server.process.stdout], [], [], _READY_DEADLINE_S)[0]:
        line = server.process.stdout.readline()
    if not line.strip().isdigit():
        raise _did_not_start(server)
    return int(line)


def _wait_ready(workers: Sequence[Child]) -> None:
    end_s = time.monotonic() + _READY_DEADLINE_S
    for worker in workers:
        while "worker ready:" not in worker.log_file.read_text(errors="replace"):
            if worker.has_ended() or time.monotonic() > end_s:
                raise _did_not_start(worker)
            time.sleep(_LOOK_S)


def _did_not_start(child: Child) -> DevStackError:
    return DevStackError(f"The demo's {child.name} did not start; the end of {child.log_file}:\n{child.log_tail()}")


# -- the story ---------------------------------------------------------------------------------------------------------


def _play(demo: Demo) -> list[str]:
    """Submit, kill a worker while the slow call is out, wait for all receipts. Returns what is not as it should be."""
    node = f"demo-{demo.run}"
    run = {"run": demo.run}
    demo.calls = [
        DemoCall(f"{node}/report", "generate_report", {"month": "2026-10", **run}, "succeeded"),
        DemoCall(f"{node}/fail", "fail_report", run, "failed"),
        DemoCall(f"{node}/slow", "slow_report", {"pages": SLOW_PAGES, **run}, "succeeded"),
    ]
    for call in demo.calls:
        _submit(demo.client, call)
    demo.view.note("submitted three calls")
    end_s = time.monotonic() + _DEADLINE_S
    while True:
        operations = {call.tool: demo.client.get(call.call_node_id) for call in demo.calls}
        book = demo.read_book()
        demo.view.show([_row(operation, book) for operation in operations.values()])
        for news in demo.lost.news():
            demo.view.note(f"naive loop: {news}")
        slow = operations["slow_report"]
        if demo.killed is None and slow.state == State.WORKING:
            _kill_holder(demo, slow, book)
        elif demo.killed is not None and not demo.lost.has_begun:
            _lose_an_answer(demo)
        elif all(operation.state in TERMINAL for operation in operations.values()) and not demo.lost.is_running:
            return _check(demo, book)
        for child in (*demo.workers, *demo.others):
            if child is not demo.killed and child.has_ended():
                return [f"{child.name} ended by itself; the end of {child.log_file}:\n{child.log_tail()}"]
        if time.monotonic() > end_s:
            return [f"not every receipt was there after {_DEADLINE_S:.0f} s", *_check(demo, book)]
        time.sleep(_LOOK_S)


def _submit(client: Client, call: DemoCall) -> None:
    """A worker says that it is ready a moment before its child has announced the targets."""
    end_s = time.monotonic() + _READY_DEADLINE_S
    while True:
        try:
            client.submit(TARGET, call.tool, call.arguments, call_node_id=call.call_node_id)
        except InputRefused as error:
            if error.code != "E_TARGET_UNKNOWN" or time.monotonic() > end_s:
                raise
            time.sleep(_LOOK_S)
        else:
            return


def _row(operation: ToolOperation, book: ServerBook) -> Row:
    task_id = operation.task_id or ""
    words = [operation.server_status or "", "" if operation.outcome else book.progress.get(task_id, "")]
    return Row(
        operation.call_node_id,
        operation.tool,
        operation.state,
        ", ".join(word for word in words if word),
        book.polls[task_id],
        operation.outcome or "",
    )


def _kill_holder(demo: Demo, slow: ToolOperation, book: ServerBook) -> None:
    """End the worker that polls the slow call, once it has polled it a few times.

    Which one that is, the server's book tells: the port that the last poll came from is one of that process's.
    """
    task_id = slow.task_id
    if task_id is None or book.polls[task_id] < _POLLS_BEFORE_KILL:
        return
    port = book.asker_port[task_id]
    holder = next((worker for worker in demo.workers if worker.speaks_from(port)), None)
    demo.killed = victim = holder or demo.workers[0]
    other = next(worker for worker in demo.workers if worker is not victim)
    held = "it holds the slow call: the last poll came from it" if holder else "who holds the slow call is not known"
    victim.kill()
    demo.view.note(f"SIGKILL to {victim.name} (pid {victim.pid}) and its group; {held}")
    demo.view.note(f"no new one is started: {other.name} goes on when the lease of 5 s has run out")


def _lose_an_answer(demo: Demo) -> None:
    """While the slow call waits for its new worker, which is free."""
    demo.calls.append(DemoCall(demo.lost.call_node_id, demo_lost.TOOL, demo_lost.arguments(demo.run), "succeeded"))
    demo.view.note(f"a proxy loses the answer to {demo_lost.TOOL}, once for us and once for a naive retry loop")
    demo.view.note("the loop calls again; we ask the server by our submission key what became of the call")
    demo.lost.begin(demo.client, demo.children, _own_environment())


# -- the end -----------------------------------------------------------------------------------------------------------


def _check(demo: Demo, book: ServerBook) -> list[str]:
    problems = [] if demo.killed else ["the slow call was over before a worker could be killed"]
    for call in demo.calls:
        receipt = demo.client.receipt(call.call_node_id)
        if receipt is None:
            problems.append(f"{call.call_node_id} has no receipt")
            continue
        problems += [f"{call.call_node_id}: {problem}" for problem in receipt.problems()]
        if receipt.outcome != call.expected:
            problems.append(f"{call.call_node_id} is {receipt.outcome} ({receipt.error_code}), not {call.expected}")
    problems += demo.lost.problems(demo.read_tally())
    wanted = {call.tool: 1 for call in demo.calls}
    if dict(book.runs) != wanted:
        problems.append(f"the server started {dict(book.runs)}, not {wanted}")
    return problems


def _tell_end(demo: Demo, problems: list[str], state_dir: Path, *, as_json: bool) -> Exit:
    """The server's counts beside our receipts, then what to do next."""
    book, tally = demo.read_book(), demo.read_tally()
    receipts = {call.call_node_id: demo.client.receipt(call.call_node_id) for call in demo.calls}
    if as_json:
        for call in demo.calls:
            operation = demo.client.get(call.call_node_id)
            print_json(_as_json(operation, receipts[call.call_node_id], book))
        print_json(tally.as_json())
    settled = sum(receipt is not None for receipt in receipts.values())
    if not problems:
        commands = next_commands(state_dir, NAMESPACE, demo.calls[-1].call_node_id)
        demo.view.print("\n".join(("", "Next:", *(f"  {command}" for command in commands), "")))
    demo.view.print(_counts(demo, receipts, book))
    demo.view.print(f"The server started {book.runs.total()} operations for us; the ledger holds {settled} receipts.")
    demo.view.print(f"With a lost answer, by the server's own count:\n{tally}")
    if not problems:
        return Exit.OK
    for problem in problems:
        say(f"NOT AS IT SHOULD BE: {problem}")
    say(f"  The logs are in {state_dir}.")
    return Exit.INTERNAL


def _as_json(operation: ToolOperation, receipt: Receipt | None, book: ServerBook) -> dict[str, object]:
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
        "server_runs": book.runs[operation.tool],
    }


def _counts(demo: Demo, receipts: Mapping[str, Receipt | None], book: ServerBook) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("CALL NODE", "STARTED BY THE SERVER", "RECEIPTS", "OUTCOME", "DIGESTS"):
        table.add_column(column)
    for call in demo.calls:
        receipt = receipts[call.call_node_id]
        outcome, digests = "-", "-"
        if receipt is not None:
            outcome, digests = receipt.outcome, "differ" if receipt.problems() else "sound"
        row = (call.call_node_id, str(book.runs[call.tool]), str(int(receipt is not None)), outcome, digests)
        table.add_row(*row)
    return table
