"""`make bench`: everybody on the same work, in turn, several times over."""

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .contenders import COUNTERFOIL, FLOORS
from .field import BenchError, Field, field_on, root
from .paced import Contender, measure
from .peer_contenders import IN_MEMORY, peer_contenders
from .peers.work import AT_ONCE, Work
from .rows import Row
from .servers import servers
from .statistics import Spread

RESULTS = root() / "build" / "bench" / "results.jsonl"
PACED, BURST = "paced", "burst"
PACED_COUNT = 300
BURST_COUNT = 2000

DURABLE_NOT = frozenset({floor.name for floor in FLOORS} | IN_MEMORY)
"""What `durable` in the table denies: a poll that a `kill -9` forgets."""


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    rounds: int = 3
    paced: int = PACED_COUNT
    burst: int = BURST_COUNT
    only: tuple[str, ...] = ()
    """Names of contenders; empty: all."""

    def contenders(self) -> list[Contender]:
        every = [COUNTERFOIL, *FLOORS, *peer_contenders()]
        return [one for one in every if not self.only or one.name in self.only]


def run_full(plan: Plan) -> list[Row]:
    """Measure, print a line each as it comes, keep them all. A contender that fails is said so and left out."""
    rows: list[Row] = []
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with servers() as both, field_on(both) as field, RESULTS.open("w") as results:
        for number in range(plan.rounds):
            # Every round begins with another one: what the machine does meanwhile is nobody's in particular.
            contenders = plan.contenders()
            for contender in contenders[number % len(contenders) :] + contenders[: number % len(contenders)]:
                for row in _measured(field, contender, plan):
                    rows.append(row)
                    results.write(f"{row.line()}\n")
                    results.flush()
    sys.stdout.write("\n".join(table(rows)) + f"\n{RESULTS}\n")
    return rows


def _measured(field: Field, contender: Contender, plan: Plan) -> list[Row]:
    rows = []
    for mode, work in ((PACED, Work(plan.paced)), (BURST, Work(plan.burst, AT_ONCE))):
        if not work.count:
            continue
        try:
            # A start of its own for each: nobody begins with the queue that another run left.
            with contender.running(field):
                rows.append(measure(field, contender, mode, work))
        except BenchError as error:
            sys.stderr.write(f"{contender.name}, {mode}: {error}\n")
        else:
            sys.stderr.write(f"{_said(rows[-1])}\n")
    return rows


def _said(row: Row) -> str:
    return (
        f"{row.contender:14} {row.mode} {row.done}/{row.count}: {row.per_operation('cpu_ms'):.2f} ms,"
        f" {row.ops_per_s:.0f}/s, detected p99 {row.detect_p99_s:.3f} s, others {row.foreign_cpu_share:.0%}"
    )


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what stands over it, which figure, and how it is written."""

    title: str
    figure: Callable[[Row], float]
    digits: int

    def cell(self, rows: Sequence[Row]) -> str:
        spread = Spread.of([self.figure(row) for row in rows])
        low, high = (f"{value:.{self.digits}f}" for value in (spread.low, spread.high))
        text = f"{spread.median:.{self.digits}f}"
        return text if low == high else f"{text} ({low} to {high})"


COLUMNS: Mapping[str, Sequence[Column]] = {
    PACED: (
        Column("CPU ms/op", lambda row: row.per_operation("cpu_ms"), 2),
        Column("detected p50 s", lambda row: row.detect_p50_s, 3),
        Column("p99 s", lambda row: row.detect_p99_s, 3),
        Column("polls/op", lambda row: row.per_operation("polls"), 2),
        Column("statements/op", lambda row: row.per_operation("statements"), 1),
        Column("commits/op", lambda row: row.per_operation("commits"), 1),
        Column("WAL bytes/op", lambda row: row.per_operation("wal_bytes"), 0),
        Column("Valkey commands/op", lambda row: row.per_operation("redis_commands"), 1),
        Column("largest process MB", lambda row: row.worker_rss_bytes / 1e6, 0),
        Column("CPU of others %", lambda row: 100 * row.foreign_cpu_share, 0),
    ),
    BURST: (
        Column("ops/s", lambda row: row.ops_per_s, 0),
        Column("CPU ms/op", lambda row: row.per_operation("cpu_ms"), 2),
        Column("polls/op", lambda row: row.per_operation("polls"), 2),
        Column("detected p50 s", lambda row: row.detect_p50_s, 3),
        Column("p99 s", lambda row: row.detect_p99_s, 3),
        Column("CPU of others %", lambda row: 100 * row.foreign_cpu_share, 0),
    ),
}


def by_contender(rows: Sequence[Row], mode: str) -> list[tuple[str, list[Row]]]:
    """The runs of a mode, cheapest contender first (by CPU; in a burst the fastest)."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.mode == mode:
            found[row.contender].append(row)

    def rank(named: tuple[str, list[Row]]) -> float:
        sign = 1 if mode == PACED else -1
        return (
            sign
            * Spread.of([row.per_operation("cpu_ms") if mode == PACED else row.ops_per_s for row in named[1]]).median
        )

    return sorted(found.items(), key=rank)


def table(rows: Sequence[Row]) -> list[str]:
    """Markdown: one table a mode, medians with the spread in brackets."""
    lines = []
    for mode, columns in COLUMNS.items():
        if not any(row.mode == mode for row in rows):
            continue
        titles = ["", "durable", "done", *(column.title for column in columns), "second submits"]
        lines += [f"### {mode.capitalize()}", _line(titles), _line(["---"] * len(titles))]
        for name, runs in by_contender(rows, mode):
            done = f"{sum(row.done for row in runs)} of {sum(row.count for row in runs)}"
            cells = [column.cell(runs) for column in columns]
            durable = "no" if name in DURABLE_NOT else "yes"
            lines.append(_line([name, durable, done, *cells, str(sum(row.second_submits for row in runs))]))
        lines.append("")
    return lines


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def read_results(path: Path = RESULTS) -> list[Row]:
    """The rows of the last run."""
    return [Row.read(line) for line in path.read_text().splitlines()]
