"""Metrics as Prometheus reads them."""

from collections.abc import Iterator

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from counterfoil.ledger.gauges import Gauges
from counterfoil.tests.ledger.world import World
from counterfoil.workers.metrics import CACHED_S, FAMILIES, LedgerCollector

NOTHING: dict[str, float] = {}


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def world(database: str) -> Iterator[World]:
    made = World(database)
    made.freeze()
    yield made
    made.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def collector(world: World, clock: Clock) -> Iterator[LedgerCollector]:
    gauges = Gauges(world.url, "main")
    yield LedgerCollector(gauges, clock)
    gauges.close()


def scraped(collector: LedgerCollector, clock: Clock) -> dict[str, float]:
    """`name{label="value"}` without the prefix -> value, as the next scrape sees it."""
    clock.now_s += CACHED_S
    text = generate_latest(collector).decode()
    values = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            values[f"{sample.name.removeprefix('counterfoil_')}{{{labels}}}"] = sample.value
    return values


def test_every_metric_has_our_prefix_and_a_meaning_and_no_label_that_holds_an_id(
    world: World, collector: LedgerCollector, clock: Clock
) -> None:
    operation_id = world.working("run/1", "task-of-the-server")
    world.client.cancel("run/1")
    text = generate_latest(collector).decode()
    for family in text_string_to_metric_families(text):
        assert family.name.startswith("counterfoil_")
        assert family.documentation
        for sample in family.samples:
            assert not {"run/1", str(operation_id), "task-of-the-server"} & set(sample.labels.values())
    assert {name for family in FAMILIES for name in family.labels} == {
        *("state", "target", "protocol", "lane", "asked", "kind", "consumed", "mode", "code", "table"),
    }


def test_what_must_be_none_says_0(collector: LedgerCollector, clock: Clock, world: World) -> None:
    values = scraped(collector, clock)
    assert values["ledger_up{}"] == 1.0
    assert values["orphans{lane=none}"] == 0.0
    assert values["execution_epoch{}"] == 1.0
    assert "beat_age_seconds{}" not in values, "no tick ever came: there is no age"
    world.opened()
    world.pass_time(61)
    values = scraped(collector, clock)
    assert values["orphans{lane=submit}"] == 1.0
    assert values["oldest_due_seconds{lane=submit,target=reports}"] == 61.0


def test_counters_add_up_over_the_readings_and_histograms_are_cumulative(
    world: World, collector: LedgerCollector, clock: Clock
) -> None:
    scraped(collector, clock)
    for node, took_s in (("a", 3), ("b", 70)):
        operation_id = world.working(node, f"t-{node}")
        if node == "b":
            world.client.cancel(node)
        world.pass_time(took_s)
        world.ended(operation_id)
        world.pass_time(11)
        values = scraped(collector, clock)
    assert values["receipts_total{code=,outcome=succeeded,target=reports}"] == 2.0
    series = "outcome=succeeded,target=reports"
    assert values[f"operation_seconds_bucket{{le=2.0,{series}}}"] == 0.0
    assert values[f"operation_seconds_bucket{{le=5.0,{series}}}"] == 1.0
    assert values[f"operation_seconds_bucket{{le=+Inf,{series}}}"] == 2.0
    assert values[f"operation_seconds_sum{{{series}}}"] == 73.0
    assert values["cancel_seconds_bucket{le=60.0,target=reports}"] == 0.0
    assert values["cancel_seconds_bucket{le=120.0,target=reports}"] == 1.0


def test_two_scrapes_at_once_cost_one_reading(world: World, collector: LedgerCollector, clock: Clock) -> None:
    scraped(collector, clock)
    world.opened()
    clock.now_s += CACHED_S - 0.1
    assert b'state="SUBMITTING"' not in generate_latest(collector)
    clock.now_s += 0.2
    assert b'state="SUBMITTING"' in generate_latest(collector)


def test_without_a_ledger_one_metric_says_so_and_no_gauge_pretends_to_be_of_now() -> None:
    gauges = Gauges("postgresql://nobody@127.0.0.1:1/none", "main")
    clock = Clock()
    values = scraped(LedgerCollector(gauges, clock), clock)
    gauges.close()
    assert {name: value for name, value in values.items() if "refused_writes" not in name} == {
        "ledger_up{}": 0.0,
        "read_seconds{}": 0.0,
    }


def test_what_can_not_be_read_is_a_metric_of_its_own(world: World, collector: LedgerCollector, clock: Clock) -> None:
    world.sql("REVOKE SELECT ON counterfoil.rollout, counterfoil.webhook_endpoint FROM counterfoil_reader")
    values = scraped(collector, clock)
    assert values["read_failed{sqlstate=42501,what=fleet}"] == 1.0
    assert "execution_epoch{}" not in values
