"""`make compare`: people's own clients and ours, on the same scripted faults, counted by the server's log.

make compare                      the tables; the last line is JSON; exit 1 if ours doubles, loses or hangs anywhere
make compare ONLY=submit-lost     some faults alone, by name
make compare REPORT=1             writes docs/compare.md
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.console.devstack import DevStack
from counterfoil.tests.peers import environment
from counterfoil.tests.sim import ledgerdb

from . import report
from .dialects import A2a, Aip151, Azure
from .faults import BY_NAME, FAULTS, Fault
from .judge import BAD, Cell, Verdict, judge
from .programs import COLUMNS, Column, Program, Said, job
from .service import Dialect, Run, Service

CLIENTS = Path(__file__).parent / "clients"
PATIENCE_S = 60.0
"""How long a client may take for one call of 1.5 s: one that has not ended then hangs."""
AT_ONCE = 8
TEMPLATE = "compare_template"

DIALECTS: dict[str, tuple[type[Dialect], bool]] = {
    "aip-151": (Aip151, True),
    "http-202": (Azure, True),
    "a2a-1.0": (A2a, False),
}
"""Of each protocol: who speaks it, and whether a repeated key returns the first operation."""


@dataclass(frozen=True)
class Compared:
    """Everything that was seen: column -> fault -> cell, the clients' versions, and how long it took."""

    faults: list[Fault]
    cells: dict[Column, dict[str, Cell]]
    versions: dict[str, str]
    took_s: float

    def doubts(self) -> Iterator[str]:
        """Why the comparison can't be trusted, or must not stand."""
        for column, cells in self.cells.items():
            for name, cell in cells.items():
                if name == "none" and cell.verdict is not Verdict.SETTLED:
                    yield f"{column.id}: without any fault: {cell.text()}"
                elif column.is_ours and cell.verdict in BAD:
                    yield f"{column.id}: {name}: {cell.text()}"

    def summary(self) -> dict[str, Any]:
        found = {}
        for column, cells in self.cells.items():
            verdicts = [cell.verdict for cell in cells.values()]
            found[column.id] = {verdict.name.lower(): verdicts.count(verdict) for verdict in Verdict}
        return {"faults": len(self.faults), "took_s": round(self.took_s, 1), "clients": found}


def main() -> int:
    only = [BY_NAME[name] for name in os.environ.get("ONLY", "").split(",") if name]
    python = environment.python()
    compared = _compare(only or FAULTS, python)
    print(report.tables(compared))
    if os.environ.get("REPORT", "") not in ("", "0") and not only:
        report.write(compared)
    doubts = list(compared.doubts())
    for doubt in doubts:
        print(f"NOT AS IT SHOULD BE  {doubt}")
    print(json.dumps(compared.summary() | {"ok": not doubts}))
    return 1 if doubts else 0


def _compare(faults: list[Fault], python: Path) -> Compared:
    began_s = time.monotonic()
    runs = {column: [_run(column, fault) for fault in faults] for column in COLUMNS}
    said = {column: Said() for column in COLUMNS}
    with tempfile.TemporaryDirectory(prefix="counterfoil-compare-") as name, ledgerdb.server() as stack:
        ledgerdb.make_template(stack, TEMPLATE)
        every = [run for column in COLUMNS for run in runs[column]]
        with Service(every) as service, ThreadPoolExecutor(AT_ONCE) as pool:
            programs = []
            for column in sorted(COLUMNS, key=lambda one: not one.is_ours):  # ours wait longest: first
                for group in _groups(runs[column]):
                    jobs = [job(run, service.url(run), Path(name)) for run in group]
                    argv, told = _ours(column, stack, len(programs)) if column.is_ours else _theirs(column, python)
                    programs.append(Program(argv, told | {"jobs": jobs}, said[column], Path(name), group))
            for _ in pool.map(lambda program: program.run(PATIENCE_S), programs):
                pass
    cells = {
        column: {run.fault.name: judge(run, said[column].ends.get(run.fault.name)) for run in runs[column]}
        for column in COLUMNS
    }
    versions = {column.client: said[column].version for column in COLUMNS}
    return Compared(faults, cells, versions, time.monotonic() - began_s)


def _theirs(column: Column, python: Path) -> tuple[list[str], dict[str, Any]]:
    return [str(python), str(CLIENTS / column.script)], {"variant": column.variant}


def _ours(column: Column, stack: DevStack, number: int) -> tuple[list[str], dict[str, Any]]:
    """Each program of ours has a ledger of its own, which outlives it."""
    superuser = ledgerdb.superuser_url(stack)
    database = ledgerdb.create_database(superuser, stack.database_url, f"compare_{number}", TEMPLATE)
    told = {"protocol": column.protocol, "patience_s": PATIENCE_S - 10, "database": database}
    return [sys.executable, "-P", "-m", "counterfoil.tests.compare.ours"], told


def _run(column: Column, fault: Fault) -> Run:
    dialect, dedupes = DIALECTS[column.protocol]
    return Run(f"{column.id}-{fault.name}", dialect(), fault, dedupes)


def _groups(runs: list[Run]) -> Iterator[list[Run]]:
    """What shares a process: who is to be killed dies alone."""
    together = [run for run in runs if not run.fault.kills]
    yield from ([together] if together else [])
    yield from ([run] for run in runs if run.fault.kills)


if __name__ == "__main__":
    sys.exit(main())
