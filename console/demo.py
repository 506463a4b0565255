"""The demo: calls on real parts, a worker killed, an answer lost; our receipts beside the server's own counts."""

import secrets
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from ..ledger.client import Client
from ..ledger.records import ToolOperation
from ..ledger.states import TERMINAL, State
from . import demo_lost, demo_parts
from .children import Child, Children, bare_environment
from .demo_book import ServerBook, read_book
from .demo_lost import LostAnswer, Tally
from .demo_next import next_commands
from .demo_parts import BOOK, LOOK_S, NAMESPACE, PYTHON, read_port
from .demo_view import DemoView, Row, counts
from .exits import Exit
from .output import print_json

TARGET = "demo"
SLOW_PAGES = 8

_DEADLINE_S = 45.0
"""For all receipts. They take about 10 s: the slow tool's 8, and the lease of the worker that was killed."""
_POLLS_BEFORE_KILL = 2


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
    demo_parts.require_demo_extra()
    with demo_parts.started(state_dir, as_json=as_json) as (stack, view):
        server = demo_parts.start_server(stack, state_dir, view)
        urls = demo_parts.start_stack(stack, state_dir, view, keep=keep)
        demo = _start_fleet(stack, state_dir, urls, server, view)
        problems = _play(demo)
        view.close_table()
        return _tell_end(demo, problems, state_dir, as_json=as_json)


# -- starting ----------------------------------------------------------------------------------------------------------


def _start_fleet(stack: ExitStack, state_dir: Path, urls: Mapping[str, str], server: Child, view: DemoView) -> Demo:
    """Two workers and beat, all ready."""
    view.note("starting two workers and beat")
    children = stack.enter_context(Children(state_dir))
    server_port = read_port(server)
    command = (*PYTHON, "counterfoil.console.demo_proxy", str(server_port), demo_lost.TOOL)
    proxy = children.start("proxy", command, bare_environment(), reads_stdout=True)
    proxy_port = read_port(proxy)
    targets_file = state_dir / "demo-targets.yaml"
    targets_file.write_text(_targets(server_port) + demo_lost.target(proxy_port), encoding="utf-8")
    workers, beat = demo_parts.start_workers(children, urls, targets_file, ("worker 1", "worker 2"))
    client = Client(urls["COUNTERFOIL_DATABASE_URL"], namespace=NAMESPACE)
    stack.callback(client.close)
    view.note("ready: " + ", ".join(f"{child.name} (pid {child.pid})" for child in (server, *workers, beat)))
    run = secrets.token_hex(3)
    lost = LostAnswer(run, proxy, proxy_port)
    return Demo(run, client, state_dir / BOOK, children, workers, [server, proxy, beat], lost, view)


def _targets(port: int) -> str:
    return (
        f"targets:\n  {TARGET}:\n    url: http://127.0.0.1:{port}/mcp\n    protocol: mcp-2026-07-28\n"
        "    allow_private: true\n    qps: 20\n    burst: 10\n"
    )


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
        demo_parts.submit(demo.client, TARGET, call.tool, call.arguments, call.call_node_id)
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
        time.sleep(LOOK_S)


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
    demo.lost.begin(demo.client, demo.children, bare_environment())


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
            runs = book.runs[operation.tool]
            print_json(demo_parts.as_json(operation, receipts[call.call_node_id], runs))
        print_json(tally.as_json())
    settled = sum(receipt is not None for receipt in receipts.values())
    if not problems:
        commands = next_commands(state_dir, NAMESPACE, demo.calls[-1].call_node_id)
        demo.view.print("\n".join(("", "Next:", *(f"  {command}" for command in commands), "")))
    rows = [(call.call_node_id, book.runs[call.tool], receipts[call.call_node_id]) for call in demo.calls]
    demo.view.print(counts("CALL NODE", rows))
    demo.view.print(f"The server started {book.runs.total()} operations for us; the ledger holds {settled} receipts.")
    demo.view.print(f"With a lost answer, by the server's own count:\n{tally}")
    return demo_parts.verdict(problems, state_dir)
