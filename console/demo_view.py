"""How the demo is looked at: a live table on a terminal, timestamped lines elsewhere."""

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..ledger.records import Receipt
from .output import clean


@dataclass(frozen=True, slots=True)
class Row:
    """One call as it stands: what the ledger has, and beside it what the server says."""

    call_node_id: str
    tool: str
    state: str
    server: str
    polls: int
    outcome: str


class DemoView:
    """Everything that the demo says to people. `to_stderr`: stdout is for data."""

    def __init__(self, *, to_stderr: bool) -> None:
        self._console = Console(file=sys.stderr if to_stderr else sys.stdout, highlight=False, soft_wrap=True)
        # Refreshed by us: no thread, so that processes may be started meanwhile.
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None
        self._began_s = time.monotonic()
        self._shown: dict[str, Row] = {}

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def note(self, text: str) -> None:
        """Say one thing, with the seconds since the beginning."""
        self._console.print(Text(f"[{time.monotonic() - self._began_s:5.1f} s] {clean(text)}"))

    def show(self, rows: Sequence[Row]) -> None:
        """Show how the calls stand; in lines, only what has changed (polls alone are no news)."""
        if self._live is not None:
            self._live.update(_table(rows), refresh=True)
            return
        for row in rows:
            before = self._shown.get(row.call_node_id)
            if before is None or (before.state, before.server, before.outcome) != (row.state, row.server, row.outcome):
                self._shown[row.call_node_id] = row
                polls = f"{row.polls} polls" if row.polls else ""
                self.note(
                    "  ".join(part for part in (row.call_node_id, row.state, row.server, polls, row.outcome) if part)
                )

    def close_table(self) -> None:
        """The table stays as it is; what is said from now on stands below it."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def print(self, table: Table | str) -> None:
        self._console.print(table if isinstance(table, Table) else Text(table))


def counts(column: str, rows: Iterable[tuple[str, int, Receipt | None]]) -> Table:
    """What a server counted beside what the ledger holds: (what, how often it was started, our receipt)."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (column, "STARTED BY THE SERVER", "RECEIPTS", "OUTCOME", "DIGESTS"):
        table.add_column(title)
    for name, runs, receipt in rows:
        outcome, digests = "-", "-"
        if receipt is not None:
            outcome, digests = receipt.outcome, "differ" if receipt.problems() else "sound"
        table.add_row(name, str(runs), str(int(receipt is not None)), outcome, digests)
    return table


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("CALL NODE", "TOOL", "STATE", "THE SERVER SAYS", "POLLS", "OUTCOME"):
        table.add_column(column, overflow="fold")
    for row in rows:
        cells = (row.call_node_id, row.tool, row.state, row.server, str(row.polls), row.outcome)
        table.add_row(*(Text(clean(cell)) for cell in cells))
    return table
