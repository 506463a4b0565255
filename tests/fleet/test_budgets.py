"""What an operation and an unchanged poll may cost, in counts: no timer, so that a slow machine fails nobody.

One worker process, beat, PostgreSQL with `pg_stat_statements`, Valkey, and a remote server that logs every request.
The loop's ticks cost the same however much is polled, so a budget has a part for each second beside the part for each
operation or poll; batches get smaller on a slow machine, so every limit is twice of what was measured, or more.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from counterfoil.bench import fleet
from counterfoil.bench.field import Field, field_on
from counterfoil.bench.meter import Counts
from counterfoil.bench.servers import servers
from counterfoil.bench.unchanged import measure_unchanged
from counterfoil.tests.memory import server_folder

OPERATIONS = 60
JOB_S = 1.5
"""Two polls an operation: at 1 s and at 2 s."""

WINDOW_S = 3.0


@dataclass(frozen=True)
class Budget:
    """At most `each` an operation or a poll, and `a_second` beside it."""

    what: str
    each: float
    a_second: float
    why: str


TICKING = 8.0
"""Statements a second of a fleet with one process: a plan twice a second, a look at the resident rows every other, a
renewal every fourth, the sweep of evidence. Measured 3.3."""

OPERATION = (
    Budget("statements", 12.0, TICKING, "3 of the producer's own; the loop's are shared by a batch of outcomes"),
    Budget(
        "commits", 5.0, TICKING, "the door, the intent, the evidence, two transitions, the receipt; most are shared"
    ),
    Budget("wal_bytes", 24_000, 4_000, "row, register, intent, evidence, journal, result, receipt, outbox: 11 KB"),
    Budget("redis_commands", 10.0, 60.0, "one bucket call a slot and lane; Celery's queues are asked once a second"),
)
POLL = (
    Budget("statements", 0.05, TICKING, "an unchanged poll writes nothing and reads nothing: its row is resident"),
    Budget("wal_bytes", 150, 6_000, "a renewal every four seconds is all that is logged (105); a row a poll is 300 up"),
    Budget("redis_commands", 1.5, 60.0, "tokens are taken for a slot of 50 ms, not for a poll"),
)


@pytest.fixture
def field() -> Iterator[Field]:
    """A fleet of one process, a new one for each test: what another left in flight is polled on, and held back whole
    operations for more than 40 s. No test here cuts the power."""
    with servers({"fsync": "off"}, server_folder("budgets")) as both, field_on(both) as made:
        fleet.aim(made)
        started = [fleet.start_worker(made, "--concurrency", "1"), fleet.start_beat(made)]
        fleet.wait_until_announced(made)
        yield made
        for child in started:
            child.kill()  # what is in flight is nobody's any more


def over_budget(budgets: tuple[Budget, ...], used: Counts, count: int) -> list[str]:
    found = []
    for budget in budgets:
        spent, allowed = getattr(used, budget.what), budget.each * count + budget.a_second * used.at_s
        print(f"{budget.what}: {spent} of {allowed:.0f} in {used.at_s:.1f} s for {count}")
        if spent > allowed:
            found.append(
                f"{budget.what}: {spent} for {count} in {used.at_s:.1f} s, allowed {allowed:.0f}: {budget.why}"
            )
    return found


def test_an_operation_stays_in_its_budget(field: Field) -> None:
    name = "whole"
    field.remote.reset()
    before = field.meter.start()
    fleet.hand_in(field, name, OPERATIONS, JOB_S)
    assert field.wait("all have receipts", lambda: fleet.receipts(field, f"{name}-") == OPERATIONS, 40)
    used = field.meter.stop().since(before)
    assert over_budget(OPERATION, used, OPERATIONS) == []
    # HTTP requests: one submit, one result, a poll a second, and nothing else.
    log = field.remote.log()
    assert log.count("submit") == log.count("result") == log.count("end") == OPERATIONS
    assert log.count("poll") <= OPERATIONS * JOB_S
    assert len(log.lines) == log.count("submit", "poll", "end", "result")


def test_an_unchanged_poll_stays_in_its_budget(field: Field) -> None:
    unchanged = measure_unchanged(field, window_s=WINDOW_S)
    assert over_budget(POLL, unchanged.used, unchanged.polls) == []
