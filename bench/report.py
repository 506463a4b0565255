"""`make bench REPORT=1`: docs/performance.md, from what was measured last."""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from .field import root
from .full import BURST, PACED, by_contender, table
from .peer_contenders import PEERS, PYTHON, describe
from .rows import Row
from .statistics import Spread

PAGE = root() / "docs" / "performance.md"
KEPT = root() / "build" / "bench"
NAMES = {PACED: "performance-cpu.svg", BURST: "performance-burst.svg"}
FLAME = "performance-flame.svg"
SHOWN = 20
"""Functions of our own that are named in words."""

TITLES = {PACED: "CPU ms an operation, all processes (less is better)", BURST: "Operations a second (more is better)"}
WORK = """\
The work: submit over HTTP 202, five polls a second apart, fetch the result; 20 operations a second, then all at once.
One remote server for everybody, in a process of its own; its log is the clock and the count. CPU is that of all
processes (workers, beat, producer, PostgreSQL with its ended backends, Valkey) from the first submit to a second
after the last result, without the remote server and without what interpreters cost to start. *CPU of others* is the
share of the machine's work meanwhile that was nobody's of these."""


def keep(name: str, lines: Sequence[str]) -> None:
    """Keep what a measurement said last, for the report."""
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / f"{name}.txt").write_text("\n".join(lines) + "\n")


def write_report(rows: Sequence[Row]) -> Path:
    """The page with its two plots; returns where it is."""
    for mode, name in NAMES.items():
        _plot(mode, rows, PAGE.with_name(name))
    rounds = max((len(runs) for _, runs in by_contender(rows, PACED)), default=0)
    again = f"{rounds} round{'s' if rounds != 1 else ''} of each, median with the lowest and highest in brackets"
    lines = [
        "# What an operation costs",
        "Made by `make bench REPORT=1`; don't edit.",
        "",
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {_machine()}; {again}.",
        f"Peers: {describe()}. PostgreSQL 18 with fsync on, Valkey with its append-only file on.",
        "",
        WORK,
        "",
        f"![{TITLES[PACED]}]({NAMES[PACED]})",
        f"![{TITLES[BURST]}]({NAMES[BURST]})",
        "",
        *table(rows),
        *_flame(),
        *_kept("million", "A million in flight", "make bench-million"),
        *_kept("kill", "kill -9 with 300 in flight", "make bench-kill"),
        *_kept("fair", "A slow and a dead neighbour", "make bench-fair"),
        "## Tried, and not kept",
        *(f"- {what}: {number}." for what, number in _tried()),
    ]
    PAGE.write_text("\n".join(lines) + "\n")
    return PAGE


def _flame() -> list[str]:
    """Where a worker's CPU goes, as it was sampled last: the graph beside the page, and who calls most in words."""
    graph, functions = KEPT / "worker.svg", KEPT / "worker.txt"
    if not graph.exists():
        return []
    text, here = graph.read_text(), f"{root()}/"
    PAGE.with_name(FLAME).write_text(text.replace(here, "").replace(f"({root().name}/", "("))
    title, *lines = functions.read_text().splitlines()
    ours = [line for line in lines if f"({root().name}/" in line][:SHOWN]
    told = [line.replace(f"({root().name}/", "(") for line in ours]
    return [
        "## Where a worker's CPU goes",
        "`make bench PROFILE=1`, at the steady rate; only a thread that holds the interpreter lock is sampled.",
        "",
        f"![flame graph]({FLAME})",
        "",
        "```",
        title,
        *told,
        "```",
        "",
    ]


def _kept(name: str, title: str, command: str) -> list[str]:
    path = KEPT / f"{name}.txt"
    if not path.exists():
        return []
    return [f"## {title}", f"`{command}`:", "```", *path.read_text().splitlines(), "```", ""]


def _tried() -> list[tuple[str, str]]:
    return [(what, number) for what, number in json.loads((PEERS.parent / "tried.json").read_text())]


def _plot(mode: str, rows: Sequence[Row], out: Path) -> None:
    bars = []
    for name, runs in by_contender(rows, mode):
        spread = Spread.of([row.per_operation("cpu_ms") if mode == PACED else row.ops_per_s for row in runs])
        bars.append([name, spread.median, spread.low, spread.high])
    command = [str(PYTHON), str(PEERS / "plot.py"), TITLES[mode], str(out)]
    subprocess.run(command, input=json.dumps(bars), text=True, check=True)


def _machine() -> str:
    """Cores, processor, memory, system."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{os.cpu_count()} shared cores ({model}), {memory_gb:.0f} GB, {platform.system()} {platform.release()}"
