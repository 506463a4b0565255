"""The tables, and docs/compare.md."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from .judge import BAD, Verdict

if TYPE_CHECKING:
    from .__main__ import Compared

PATH = Path(__file__).resolve().parents[2] / "docs" / "compare.md"
TITLES = {"aip-151": "AIP-151", "http-202": "HTTP 202, a status monitor", "a2a-1.0": "A2A 1.0"}


def tables(compared: "Compared") -> str:
    """One table a protocol, then the sums."""
    parts = [_table(compared, protocol) for protocol in TITLES]
    return "\n\n".join([*parts, _sums(compared)])


def _table(compared: "Compared", protocol: str) -> str:
    columns = [column for column in compared.cells if column.protocol == protocol]
    heads = [f"{column.client} {compared.versions[column.client]}, {column.words}" for column in columns]
    lines = [f"## {TITLES[protocol]}", f"| fault | {' | '.join(heads)} |", f"| --- |{' --- |' * len(columns)}"]
    for fault in compared.faults:
        cells = [compared.cells[column][fault.name] for column in columns]
        shown = [f"**{cell.text()}**" if cell.verdict in BAD else cell.text() for cell in cells]
        lines.append(f"| {fault.words} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _sums(compared: "Compared") -> str:
    heads = [verdict.value for verdict in Verdict]
    lines = ["## In sum", f"| client | {' | '.join(heads)} |", f"| --- |{' --- |' * len(heads)}"]
    for column, cells in compared.cells.items():
        verdicts = [cell.verdict for cell in cells.values()]
        counts = " | ".join(str(verdicts.count(verdict)) for verdict in Verdict)
        lines.append(f"| {column.client}, {column.words} | {counts} |")
    return "\n".join(lines)


def write(compared: "Compared") -> None:
    PATH.write_text(_head(compared) + tables(compared) + "\n")


def _head(compared: "Compared") -> str:
    return HEAD.format(date=f"{datetime.now(UTC):%Y-%m-%d}", machine=_machine(), took_s=round(compared.took_s))


def _machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


HEAD = """# Compared with people's own clients
Written by `make compare REPORT=1` on {date} ({machine}, {took_s} s); don't edit it.

Each client makes one call that works for 1.5 s (10 s where it is cancelled), and one thing goes wrong at the server,
once or twice; then the server is well. The counts are the server's: *operations* that it made, *sends* of the submit
that reached it. Bold is what no caller would want: a **second operation**; **lost**, work that is done and whose caller
holds an exception; **wrong**, something else taken for the result; **hangs**, no end within a minute.

What is compared, and how it is fair:
- `google-api-core`: the call and `operation.from_gapic` over REST as generated clients have them, with a `requestId`
  for each call (AIP-155), which the server heeds; then the same with its documented `Retry()` for call and polls.
- `azure-core`: `LROPoller` with `LROBasePolling()` over the policies of generated clients; then the same with an
  `Operation-Id` of the caller's, which the server heeds. It has no cancel.
- `a2a-sdk`: the client as it comes, which blocks until the answer; then `polling=True` with a loop that asks once a
  second, since "it is the callers job". It has no retry. This server dedupes nothing, as the reference server.
- Ours: the loop of a worker on a PostgreSQL, with a target as an operator would declare it for this server.
- A killed process is started again with the same work. It goes on from what the client documents for that
  (`continuation_token()`, an operation's name, a task's id) if it had come so far; else the program runs from its
  beginning, with a new id for its call. Nothing but the process is lost: what it kept on disk is there.
- Every client is given the same timeout of 2 s where an answer is late, and the same 10 s of patience where it takes a
  bound of the whole (the word that no protocol has). All else is default.
- "Raises" isn't wrong by itself: a caller may hold the id and ask again by hand. That is what is done here by a ledger.

"""
