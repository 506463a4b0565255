"""The demo's fourth act, a lost answer: a retry loop and we call one tool through one proxy, which loses the answer of
one submit of each.

The loop (`demo_naive.py`) calls again. We ask the server by our submission key what became of the call.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..ledger.client import Client
from .children import Child, Children
from .demo_book import read_book

TARGET = "demo-lossy"
TOOL = "send_invoice"

_ANSWER_BY_S = 3.0
"""How long both wait. The server answers the loop after the tool's one second, us at once."""


def target(port: int) -> str:
    """The entry of the targets file for the server behind the proxy on this port.

    A lookup counts after `send_by_s` + `settle_s`: here no later than the answer is missed.
    """
    return (
        f"  {TARGET}:\n    url: http://127.0.0.1:{port}/mcp\n    protocol: mcp-2026-07-28\n    tools:\n      {TOOL}:\n"
        f"        send_by_s: 2\n        settle_s: 1\n        answer_by_s: {_ANSWER_BY_S:g}\n"
        "        lookup: {tool: counterfoil_lookup, absence: unique, key_lifetime_s: 604800}\n"
    )


@dataclass(frozen=True, slots=True)
class Tally:
    """How the act ended: operations by the server's own count, and our receipts."""

    naive_operations: int
    operations: int
    receipts: int

    def __str__(self) -> str:
        ours = f"{_counted(self.operations, 'operation')}, {_counted(self.receipts, 'receipt')}"
        return f"naive: {_counted(self.naive_operations, 'operation')} · counterfoil: {ours}"

    def as_json(self) -> dict[str, object]:
        return {
            "act": "a lost answer",
            "tool": TOOL,
            "naive_operations": self.naive_operations,
            "counterfoil_operations": self.operations,
            "counterfoil_receipts": self.receipts,
        }


@dataclass(slots=True)
class LostAnswer:
    """The act. Ours counts under the demo's `run` in the server's book, the loop under a run of its own."""

    run: str
    proxy: Child
    port: int
    loop: Child | None = None
    _told: int = 0

    @property
    def call_node_id(self) -> str:
        return f"demo-{self.run}/lost"

    @property
    def loop_run(self) -> str:
        return f"{self.run}-naive"

    @property
    def has_begun(self) -> bool:
        return self.loop is not None

    @property
    def is_running(self) -> bool:
        """Whether the loop still runs; our call's end is in the ledger."""
        return self.loop is not None and not self.loop.has_ended()

    def begin(self, client: Client, children: Children, environment: Mapping[str, str]) -> None:
        """Both make their call."""
        client.submit(TARGET, TOOL, arguments(self.run), call_node_id=self.call_node_id)
        command = (
            *(sys.executable, "-P", "-m", "counterfoil.console.demo_naive", f"http://127.0.0.1:{self.port}/mcp"),
            *(TOOL, json.dumps(arguments(self.loop_run)), f"{_ANSWER_BY_S}"),
        )
        self.loop = children.start("naive", command, environment)

    def news(self) -> list[str]:
        """What the loop has said since the last time."""
        if self.loop is None:
            return []
        *lines, _unfinished = self.loop.log_file.read_text(errors="replace").split("\n")
        news, self._told = lines[self._told :], len(lines)
        return news

    def tally(self, book_file: Path, client: Client) -> Tally:
        ours, loops = (read_book(book_file, run).runs[TOOL] for run in (self.run, self.loop_run))
        receipt = client.receipt(self.call_node_id) if self.has_begun else None
        return Tally(loops, ours, int(receipt is not None))

    def problems(self, tally: Tally) -> list[str]:
        """What is not as it should be, but for our own call."""
        lost = self.proxy.log_file.read_text(errors="replace").count("lost: 200 ")
        found = [] if lost == 2 else [f"the proxy lost {lost} answers, not 2; see {self.proxy.log_file}"]
        if tally.naive_operations < 2:  # more of them where the server was slow, too
            found.append(f"the server started {tally.naive_operations} operations of the naive loop, not 2")
        return found


def arguments(run: str) -> dict[str, object]:
    """What both send, each under its own run."""
    return {"month": "2026-10", "run": run}


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
