"""`make bench-million`: what a poll costs with a million operations in flight, against ten thousand.

Both ledgers are polled at the same rate, so the interval is longer where there are more, and both do the same for a
poll: the interval is longer than a lease in both, so no row stays resident, and each poll is claimed and given back,
which is the dearest that an unchanged poll can be. What differs is what a poll finds: ten thousand rows lie in pages
that are all warm, of a million each claim touches a page that nobody touched since the last checkpoint, and whatever
looks at the whole ledger now and then (orphans, vacuum) has a hundred times as much to see.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ..console.devservers import DATABASE
from ..ledger.database import Database
from ..ledger.policy import Policy
from ..ledger.states import QUEUES
from ..ledger.store import Store
from . import fleet
from .field import BenchError, Field, field_on
from .producer import TARGET
from .report import keep
from .seed import seed
from .servers import servers
from .statistics import percentile

FEW, MANY = 10_000, 1_000_000
POLLS_A_SECOND = 100.0
WARM_S = 10.0
FEW_WINDOW_S = 60.0
SAMPLE_EVERY_S = 10.0
PLANS_A_SAMPLE = 20

COST_RATIO_MAX = 1.25
PLAN_P99_MAX_S = 0.05
GROWTH_MAX = 1.25
"""Of dead rows and of the index, the last third of the time against the middle one."""

JUDGED_FROM_S = 300.0
"""A shorter run has seen no autovacuum, so its growth says nothing."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The hot table at one moment."""

    at_s: float
    dead_rows: int
    index_bytes: int
    plans_s: Sequence[float]


@dataclass(frozen=True, slots=True)
class Full:
    """One ledger under polls."""

    in_flight: int
    window_s: float
    polls: int
    cpu_ms_per_poll: float
    postgres_cpu_ms_per_poll: float
    statements_per_poll: float
    wal_bytes_per_poll: float
    late_share: float
    """Polls that were due and did not come."""
    samples: Sequence[Sample]

    @property
    def plan_p99_s(self) -> float:
        return percentile([plan_s for sample in self.samples for plan_s in sample.plans_s], 0.99)

    def growth(self, what: str) -> float:
        """The most in the last third against the most in the middle third: before that, autovacuum has not come by."""
        values = [float(getattr(sample, what)) for sample in self.samples]
        third = max(1, len(values) // 3)
        before = values[-2 * third : -third] or values
        return max(values[-third:]) / max(1.0, *before)

    def line(self) -> str:
        said = asdict(self) | {"plan_p99_s": self.plan_p99_s}
        return json.dumps(said)


def run_million(window_s: float) -> bool:
    """Measure both, print. `window_s`: how long the million is polled. Whether all goals are met."""
    few, many = (_polled(count, seconds) for count, seconds in ((FEW, min(window_s, FEW_WINDOW_S)), (MANY, window_s)))
    sys.stderr.write(f"{few.line()}\n{many.line()}\n")
    ratio = many.cpu_ms_per_poll / few.cpu_ms_per_poll
    growths = {what: many.growth(what) for what in ("dead_rows", "index_bytes")}
    summary = (
        f"in_flight={MANY} window_s={window_s:.0f} cpu_ms_per_poll={many.cpu_ms_per_poll:.3f}"
        f" cpu_ms_per_poll_at_{FEW}={few.cpu_ms_per_poll:.3f} cost_ratio={ratio:.3f}"
        f" plan_p99_s={many.plan_p99_s:.4f} dead_rows_max={max(s.dead_rows for s in many.samples)}"
        f" dead_rows_growth={growths['dead_rows']:.2f} index_mb={many.samples[-1].index_bytes / 1e6:.1f}"
        f" index_growth={growths['index_bytes']:.3f}"
    )
    keep("million", [summary])
    sys.stdout.write(f"{summary}\n")
    flat = window_s < JUDGED_FROM_S or max(growths.values()) <= GROWTH_MAX
    return ratio <= COST_RATIO_MAX and many.plan_p99_s <= PLAN_P99_MAX_S and flat


def _polled(count: int, window_s: float) -> Full:
    interval_s = count / POLLS_A_SECOND
    with servers() as both, field_on(both) as field:
        poll = f"{{min_s: {interval_s}, max_s: {interval_s}, default_s: {interval_s}}}"
        fleet.aim(field, fleet.target(TARGET, field.remote.url, poll=poll, more="wait_budget_s: 2592000"))
        first = fleet.start_worker(field)
        fleet.wait_until_announced(field)
        fleet.hand_in(field, "template", 1, 1e9)
        if not field.wait("one is at work", lambda: bool(fleet.bound_s(field, "template-")), 30):
            raise BenchError("the operation that is to be copied does not begin")
        first.process.terminate()
        first.process.wait(60)
        began_s = time.monotonic()
        with both.connect(DATABASE) as connection:
            seed(connection, "template-0", count, interval_s)
        sys.stderr.write(f"{count} operations in {time.monotonic() - began_s:.0f} s\n")
        fleet.start_worker(field)
        fleet.start_beat(field)
        time.sleep(WARM_S)  # statements are prepared, pages come into the cache
        return _measured(field, count, window_s)


def _measured(field: Field, count: int, window_s: float) -> Full:
    field.remote.reset()
    before = field.meter.start()
    samples = _samples(field, window_s)
    used = field.meter.stop().since(before)
    log = field.remote.log().between(before.at_s, before.at_s + used.at_s)
    polls = max(1, log.count("poll"))
    return Full(
        in_flight=count,
        window_s=used.at_s,
        polls=polls,
        cpu_ms_per_poll=used.total_cpu_s * 1000 / polls,
        postgres_cpu_ms_per_poll=used.cpu_s["postgres"] * 1000 / polls,
        statements_per_poll=used.statements / polls,
        wal_bytes_per_poll=used.wal_bytes / polls,
        late_share=max(0.0, 1 - polls / (POLLS_A_SECOND * used.at_s)),
        samples=samples,
    )


def _samples(field: Field, window_s: float) -> list[Sample]:
    """Look at the hot table every few seconds, and ask what is due, as beat's tick does."""
    database = Database(field.servers.database_url)
    store = Store(database, "main", 1, lambda _target, _tool: Policy(protocol="unknown"))
    store.plan(QUEUES, ahead_s=1.0, limit=200)  # connected
    samples, began_s = [], time.monotonic()
    try:
        while (at_s := time.monotonic() - began_s) < window_s:
            plans_s = []
            for _ in range(PLANS_A_SAMPLE):
                asked_s = time.perf_counter()
                store.plan(QUEUES, ahead_s=1.0, limit=200)
                plans_s.append(time.perf_counter() - asked_s)
            query = (
                "SELECT n_dead_tup, pg_relation_size('counterfoil.wake_due') FROM pg_stat_user_tables"
                " WHERE schemaname = 'counterfoil' AND relname = 'wake'"
            )
            dead_rows, index_bytes = fleet.ask(field, query)[0]
            samples.append(Sample(at_s, dead_rows, index_bytes, plans_s))
            time.sleep(min(SAMPLE_EVERY_S, max(0.0, began_s + window_s - time.monotonic())))
    finally:
        database.dispose()
    return samples
