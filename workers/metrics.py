"""The fleet's metrics for Prometheus, made of what the ledger says: one exporter sees all, whoever did it.

No label holds an id: targets, lanes, states, codes and protocols are few, operations are not.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from ..ledger.errors import CounterfoilError
from ..ledger.gauges import BOUNDS_S, Gauges, Reading, Row

log = logging.getLogger(__name__)

CACHED_S = 4.0
"""Two servers that scrape at the same time cost one reading."""


@dataclass(frozen=True, slots=True)
class Family:
    """A gauge: its name behind `counterfoil_`, the statement and the column that it comes from, its labels, its
    meaning. Rows without a value are left out."""

    name: str
    statement: str
    column: str
    labels: tuple[str, ...]
    means: str


FAMILIES = (
    Family("operations", "operations", "n", ("state", "target", "protocol"), "Operations that are not over."),
    Family("due_rows", "due", "n", ("lane", "target"), "Due rows that nobody has claimed, 10,000 at most."),
    Family(
        "oldest_due_seconds", "due", "oldest_s", ("lane", "target"), "For how long the oldest due row has been due."
    ),
    Family("unknown", "unknown", "n", ("target", "asked"), "Lost submits; asked: a person has an open case."),
    Family("unknown_overdue", "unknown", "overdue", ("target", "asked"), "Lost submits older than 15 minutes."),
    Family("unknown_oldest_seconds", "unknown", "oldest_s", ("target", "asked"), "Age of the oldest lost submit."),
    Family("cancels_unconfirmed", "cancels", "n", ("target",), "Committed cancels without an end."),
    Family("cancel_unconfirmed_p99_seconds", "cancels", "p99_s", ("target",), "Age of those, 99th percentile."),
    Family("cancel_unconfirmed_oldest_seconds", "cancels", "oldest_s", ("target",), "Age of the oldest of those."),
    Family("outbox_waiting", "outbox", "n", ("kind", "consumed"), "Events without an acknowledgement."),
    Family("outbox_oldest_seconds", "outbox", "oldest_s", ("kind", "consumed"), "Age of the oldest of those."),
    Family(
        "bucket_closed_seconds", "targets", "closed_s", ("target",), "For how long the target stays closed; 0: open."
    ),
    Family("target_announced_seconds", "targets", "announced_s", ("target",), "Since a worker started with it."),
    Family("adapter_open_operations", "adapters", "n", ("protocol", "mode"), "Open ones, of versions that drain."),
    Family("cases_open", "cases", "n", ("kind", "code"), "Questions that wait for a person."),
    Family("case_oldest_seconds", "cases", "oldest_s", ("kind", "code"), "Age of the oldest of those."),
    Family("orphans", "orphans", "n", ("lane",), "Operations that nobody will come by for. Must be none."),
    Family("orphan_oldest_seconds", "orphans", "oldest_s", ("lane",), "Age of the oldest of those."),
    Family("execution_epoch", "fleet", "epoch", (), "The fleet's epoch."),
    Family("epoch_age_seconds", "fleet", "bumped_s", (), "Since it was raised."),
    Family("create_on", "fleet", "create_on", (), "1: new operations are taken."),
    Family("beat_age_seconds", "fleet", "beat_s", (), "Since a tick of beat reached a worker, to within 5 s."),
    Family("evidence_unconsumed", "fleet", "evidence", (), "Answers of servers that no transition has read yet."),
    Family("evidence_oldest_seconds", "fleet", "evidence_s", (), "Age of the oldest of those."),
    Family("partitions_ahead_seconds", "partitions", "ahead_s", ("table",), "For how long months are prepared."),
    Family("webhooks_failing", "fleet", "webhooks_failing", (), "Namespaces whose endpoint fails."),
    Family("webhooks_stopped", "fleet", "webhooks_stopped", (), "Namespaces whose endpoint was given up."),
)
REFUSED = ("intent", "transition", "accept_terminal")
"""What an older epoch may try to write."""

ALWAYS = frozenset({"orphans"})
"""Gauges that say 0 where there is nothing: what must be none is seen to be none."""


class LedgerCollector(Collector):
    """Reads the ledger when it is scraped, at most every `CACHED_S`. `clock` answers seconds that only grow. One
    thread at a time."""

    def __init__(self, gauges: Gauges, clock: Callable[[], float]) -> None:
        self._gauges = gauges
        self._clock = clock
        self._metrics: list[Metric] = []
        self._until_s: float | None = None
        self._counts = Counts()
        self._away = False

    def collect(self) -> Iterator[Metric]:
        """All metrics. With the ledger away: `counterfoil_ledger_up` 0, and the counters as they stand."""
        now_s = self._clock()
        if self._until_s is None or now_s >= self._until_s:
            self._metrics = list(self._read())
            self._until_s = self._clock() + CACHED_S
        yield from self._metrics

    def _read(self) -> Iterator[Metric]:
        began_s = self._clock()
        reading: Reading | None = None
        try:
            reading = self._gauges.read()
        except CounterfoilError as error:
            if not self._away:
                log.warning("%s: the ledger can't be read: %s", error.code, error.message)
        self._away = reading is None
        up = GaugeMetricFamily("counterfoil_ledger_up", "1: the ledger was read. 0: nothing else here is of now.")
        up.add_metric([], 0.0 if reading is None else 1.0)
        yield up
        if reading is not None:
            self._counts.add(reading)
            yield from _gauges(reading)
        yield from self._counts.metrics()
        took = GaugeMetricFamily("counterfoil_read_seconds", "How long the last reading of the ledger took.")
        took.add_metric([], self._clock() - began_s)
        yield took


def _gauges(reading: Reading) -> Iterator[Metric]:
    for family in FAMILIES:
        rows = reading.rows.get(family.statement)
        if rows is None:
            continue
        metric = GaugeMetricFamily(f"counterfoil_{family.name}", family.means, labels=family.labels)
        for row in rows:
            if row[family.column] is not None:
                metric.add_metric([str(row[label]) for label in family.labels], row[family.column])
        if not rows and family.name in ALWAYS:
            metric.add_metric(["none"] * len(family.labels), 0.0)
        yield metric
    failed = GaugeMetricFamily(
        "counterfoil_read_failed", "1: this part of the ledger could not be read.", labels=("what", "sqlstate")
    )
    for what, sqlstate in reading.failed.items():
        failed.add_metric([what, sqlstate], 1.0)
    yield failed


class Counts:
    """What only grows, since this process began to look."""

    def __init__(self) -> None:
        self._receipts: dict[tuple[str, ...], float] = {}
        # From 0 on: a series that begins with its first refusal has, for `increase()`, not increased.
        self._refused: dict[tuple[str, ...], float] = {("E_STALE_EPOCH", what): 0.0 for what in REFUSED}
        self._letters: dict[tuple[str, ...], float] = {}
        self._took: dict[tuple[str, ...], _Histogram] = {}
        self._cancelled: dict[tuple[str, ...], _Histogram] = {}

    def add(self, reading: Reading) -> None:
        for row in reading.counted.get("receipts", ()):
            _add(self._receipts, row, "target", "outcome", "code")
            outcome, target = (row["target"], row["outcome"]), (row["target"],)
            self._took.setdefault(outcome, _Histogram()).add(row["bucket"], row["n"], row["took_s"])
            if row["cancel_bucket"] is not None:
                self._cancelled.setdefault(target, _Histogram()).add(row["cancel_bucket"], row["n"], row["cancel_s"])
        for row in reading.counted.get("refused", ()):
            _add(self._refused, row, "code", "what")
        for row in reading.counted.get("dead_letters", ()):
            _add(self._letters, row, "code")

    def metrics(self) -> Iterator[Metric]:
        yield _counter("receipts", "Receipts.", ("target", "outcome", "code"), self._receipts)
        yield _counter("refused_writes", "What older epochs tried.", ("code", "what"), self._refused)
        yield _counter("dead_letters", "Messages that became no operation.", ("code",), self._letters)
        yield _histogram("operation", "From the call to its receipt.", ("target", "outcome"), self._took)
        yield _histogram("cancel", "From a committed cancel to its end.", ("target",), self._cancelled)


def counted() -> Iterator[tuple[Metric, str]]:
    """What only grows, with its labels: for the page."""
    labels = ("target, outcome, code", "code, what", "code", "target, outcome", "target")
    for metric, names in zip(Counts().metrics(), labels, strict=True):
        yield metric, ", ".join(f"`{name}`" for name in names.split(", "))


class _Histogram:
    def __init__(self) -> None:
        self.counts = [0.0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, bucket: int, count: float, sum_s: float) -> None:
        self.counts[bucket] += count
        self.sum_s += sum_s


def _add(counts: dict[tuple[str, ...], float], row: Row, *labels: str) -> None:
    key = tuple(str(row[label]) for label in labels)
    counts[key] = counts.get(key, 0.0) + row["n"]


def _counter(name: str, means: str, labels: tuple[str, ...], counts: dict[tuple[str, ...], float]) -> Metric:
    metric = CounterMetricFamily(f"counterfoil_{name}", means, labels=labels)
    for key, count in counts.items():
        metric.add_metric(key, count)
    return metric


def _histogram(name: str, means: str, labels: tuple[str, ...], found: dict[tuple[str, ...], _Histogram]) -> Metric:
    metric = HistogramMetricFamily(f"counterfoil_{name}_seconds", means, labels=labels)
    for key, histogram in found.items():
        below, buckets = 0.0, list[tuple[str, float]]()
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), histogram.counts, strict=True):
            below += count
            buckets.append((bound, below))
        metric.add_metric(key, buckets, histogram.sum_s)
    return metric
