"""The demo's other story: one call of each protocol, each on a server that speaks it, and a receipt for each.

The MCP server is somebody else's (fastmcp); the protocols that it does not speak have small servers of ours
(`demo_apis.py`), each of which runs the call and loses its answer: it is found by its key, in the way that its entry in
the targets file declares. The oracle is what the servers wrote down that they started.
"""

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..ledger.client import Client
from ..ledger.errors import InputRefused
from ..ledger.records import ToolOperation
from ..ledger.states import TERMINAL
from . import demo_apis, demo_parts
from .children import Child, Children, bare_environment
from .demo_book import read_book
from .demo_parts import BOOK, LOOK_S, NAMESPACE, PACE_S, PYTHON, read_port
from .demo_view import DemoView, Row, counts
from .exits import Exit
from .output import print_json

_APIS_BOOK = "demo-apis.jsonl"
_DEADLINE_S = 45.0
"""For all receipts. They take about 6 s: a lookup counts after `send_by_s` + `settle_s`."""

_QUICK = {"qps": 20, "burst": 10, "poll": {"default_s": PACE_S}, "send_by_s": 2, "settle_s": 1}
_KEY_IN_LOOKUP = {"absence": "unique", "key_lifetime_s": 604_800}

_TARGETS: Mapping[str, Mapping[str, Any]] = {
    "mcp-2026-07-28": {},
    "mcp-2025-11-25": {"lookup": {"tool": "counterfoil_lookup", **_KEY_IN_LOOKUP}},
    "mcp-sync": {"sync_bound_s": 30.0},
    "aip-151": {
        "routes": {"submit": "POST /v1/reports:generate", "lookup": "GET /v1/operations?filter=requestId={key}"},
        "key": {"body": "requestId"},
        "lookup": _KEY_IN_LOOKUP,
    },
    "http-202": {
        "preset": "plain",
        "routes": {
            "submit": "POST /jobs",
            "status": "GET /jobs/{id}",
            "cancel": "DELETE /jobs/{id}",
            "lookup": "GET /jobs?key={key}",
        },
        "key": {"header": "Idempotency-Key"},
        "lookup": _KEY_IN_LOOKUP,
    },
    "a2a-1.0": {"lookup": {"tool": "ListTasks", **_KEY_IN_LOOKUP}},
}
"""What an operator writes of each, beside `url` and `protocol`."""

PROTOCOLS = tuple(_TARGETS)

_PATHS = {"aip-151": "", "http-202": "", "a2a-1.0": "/agent"}
_OF_FASTMCP = {"mcp-2026-07-28": "generate_report", "mcp-sync": "send_invoice"}
"""Its tools: one that takes calls as tasks only, and one that also answers at once."""


@dataclass(frozen=True, slots=True)
class ProtocolCall:
    """One protocol's call. `server_tool`: what its server writes down."""

    protocol: str
    call_node_id: str
    tool: str
    server_tool: str
    arguments: Mapping[str, object]


@dataclass(slots=True)
class _Show:
    """What runs while the calls do."""

    run: str
    client: Client
    books: tuple[Path, ...]
    children: Sequence[Child]
    view: DemoView
    calls: Sequence[ProtocolCall]

    def runs(self, call: ProtocolCall) -> int:
        """How often the servers started it, by their own count."""
        return sum(read_book(book, self.run).runs[call.server_tool] for book in self.books)


def chosen(named: str) -> tuple[str, ...]:
    """The protocol of that name, or `all`. Raises InputRefused."""
    if named not in (*PROTOCOLS, "all"):
        raise InputRefused(
            f"the demo speaks no protocol {named[:64]!r}.", next_step=f"There is: {', '.join(PROTOCOLS)}, all."
        )
    return PROTOCOLS if named == "all" else (named,)


def run_protocols(state_dir: Path, protocols: Sequence[str], *, as_json: bool, keep: bool) -> Exit:
    """One call of each. OK only if each has one sound receipt of a success and its server started it once.

    Raises as `run_demo`, and leaves as little behind.
    """
    demo_parts.require_demo_extra()
    with demo_parts.started(state_dir, as_json=as_json) as (stack, view):
        server = demo_parts.start_server(stack, state_dir, view)
        children = stack.enter_context(Children(state_dir))
        command = (*PYTHON, "counterfoil.console.demo_apis", str(state_dir / _APIS_BOOK), str(PACE_S))
        apis = children.start("apis", command, bare_environment(), reads_stdout=True)
        urls = demo_parts.start_stack(stack, state_dir, view, keep=keep)
        view.note("starting a worker and beat")
        targets_file = state_dir / "demo-targets.yaml"
        targets_file.write_text(targets_text(protocols, read_port(server), read_port(apis)), encoding="utf-8")
        workers, beat = demo_parts.start_workers(children, urls, targets_file, ("worker",))
        client = Client(urls["COUNTERFOIL_DATABASE_URL"], namespace=NAMESPACE)
        stack.callback(client.close)
        run = secrets.token_hex(3)
        books = (state_dir / BOOK, state_dir / _APIS_BOOK)
        calls = [_call(protocol, run) for protocol in protocols]
        show = _Show(run, client, books, (server, apis, *workers, beat), view, calls)
        problems = _play(show)
        view.close_table()
        return _tell_end(show, problems, state_dir, as_json=as_json)


def targets_text(protocols: Sequence[str], mcp_port: int, apis_port: int) -> str:
    """The targets file, each target named as its protocol. JSON is YAML."""
    entries = {}
    for protocol in protocols:
        port = mcp_port if protocol in _OF_FASTMCP else apis_port
        url = f"http://127.0.0.1:{port}{_PATHS.get(protocol, '/mcp')}"
        entries[protocol] = {"url": url, "protocol": protocol, **_QUICK, **_TARGETS[protocol]}
    return json.dumps({"targets": entries}, indent=2)


def _call(protocol: str, run: str) -> ProtocolCall:
    said: Mapping[str, object] = {"month": "2026-10", "run": run}
    tool = _OF_FASTMCP.get(protocol, demo_apis.TOOL)
    return ProtocolCall(
        protocol,
        f"demo-{run}/{protocol}",
        tool,
        tool if protocol in _OF_FASTMCP else protocol,
        {"data": said} if protocol == "a2a-1.0" else said,
    )


def _play(show: _Show) -> list[str]:
    """Submit, and wait for all receipts. Returns what is not as it should be."""
    for call in show.calls:
        demo_parts.submit(show.client, call.protocol, call.tool, call.arguments, call.call_node_id)
    show.view.note(f"submitted {len(show.calls)} calls, one of each protocol")
    lossy = [call.protocol for call in show.calls if call.protocol not in _OF_FASTMCP]
    if lossy:
        show.view.note(f"the answers to {', '.join(lossy)} are lost: we ask by our key what became of the call")
    end_s = time.monotonic() + _DEADLINE_S
    while True:
        operations = [show.client.get(call.call_node_id) for call in show.calls]
        show.view.show([_row(operation) for operation in operations])
        if all(operation.state in TERMINAL for operation in operations):
            return _check(show)
        for child in show.children:
            if child.has_ended():
                return [f"{child.name} ended by itself; the end of {child.log_file}:\n{child.log_tail()}"]
        if time.monotonic() > end_s:
            return [f"not every receipt was there after {_DEADLINE_S:.0f} s", *_check(show)]
        time.sleep(LOOK_S)


def _row(operation: ToolOperation) -> Row:
    said, outcome = operation.server_status or "", operation.outcome or ""
    return Row(operation.call_node_id, operation.tool, operation.state, said, 0, outcome)


def _check(show: _Show) -> list[str]:
    problems = []
    for call in show.calls:
        receipt, runs = show.client.receipt(call.call_node_id), show.runs(call)
        if receipt is None:
            problems.append(f"{call.call_node_id} has no receipt")
            continue
        problems += [f"{call.call_node_id}: {problem}" for problem in receipt.problems()]
        if (receipt.outcome, receipt.protocol) != ("succeeded", call.protocol):
            problems.append(f"{call.call_node_id} is {receipt.outcome} ({receipt.error_code}) by {receipt.protocol}")
        if runs != 1:
            problems.append(f"the server of {call.protocol} started {runs} operations, not 1")
    return problems


def _tell_end(show: _Show, problems: Sequence[str], state_dir: Path, *, as_json: bool) -> Exit:
    """The servers' counts beside our receipts."""
    receipts = {call.protocol: show.client.receipt(call.call_node_id) for call in show.calls}
    if as_json:
        for call in show.calls:
            operation = show.client.get(call.call_node_id)
            print_json(demo_parts.as_json(operation, receipts[call.protocol], show.runs(call)))
    rows = [(call.protocol, show.runs(call), receipts[call.protocol]) for call in show.calls]
    show.view.print(counts("PROTOCOL", rows))
    settled = sum(receipt is not None for receipt in receipts.values())
    started = sum(show.runs(call) for call in show.calls)
    show.view.print(f"The servers started {started} operations for us; the ledger holds {settled} receipts.")
    return demo_parts.verdict(problems, state_dir)
