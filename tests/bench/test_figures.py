"""What the bench computes from what it counted: pure functions of a log and of counts."""

import re

import pytest

from counterfoil.bench.fair import Fairness, Healthy, Neighbour, Saturated
from counterfoil.bench.full import table
from counterfoil.bench.meter import Counts
from counterfoil.bench.profile import functions
from counterfoil.bench.quick import Figures
from counterfoil.bench.rows import Row
from counterfoil.bench.serverlog import ServerLog
from counterfoil.bench.statistics import Spread, percentile
from counterfoil.bench.unchanged import Unchanged

LOG = ServerLog.of(
    [
        [100.0, "submit", "x-0"],
        [100.5, "submit", "x-1"],
        [101.1, "poll", "x-0"],
        [102.1, "end", "x-0"],
        [102.2, "result", "x-0"],
        [103.0, "submit", "x-1"],
    ]
)


def row(contender: str = "counterfoil", *, mode: str = "paced", cpu_s: float = 1.0, done: int = 100) -> Row:
    return Row(
        contender=contender,
        name=f"{contender}-1",
        mode=mode,
        count=100,
        done=done,
        second_submits=0,
        polls=500,
        ops_per_s=16.0,
        detect_p50_s=0.01,
        detect_p99_s=0.05,
        worker_rss_bytes=80_000_000,
        foreign_cpu_share=0.1,
        used=Counts(30.0, {"worker": cpu_s}, 1200, 400, 1_000_000, 900),
    )


@pytest.mark.parametrize(("part", "found"), [(0.5, 2.0), (0.99, 4.0), (0.0, 1.0), (1.0, 4.0)])
def test_a_percentile_is_a_value_that_was_measured(part: float, found: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], part) == found


def test_no_values_have_no_spread_and_no_percentile() -> None:
    assert (percentile([], 0.99), Spread.of([])) == (0.0, Spread(0.0, 0.0, 0.0))


def test_a_second_submit_is_counted_by_its_call() -> None:
    assert (LOG.count("submit"), LOG.second_submits, LOG.only("x-0").second_submits) == (3, 1, 0)


def test_lateness_counts_from_one_interval_after_the_reading_before_or_from_the_ledgers_knowing() -> None:
    assert LOG.lateness_s({}) == pytest.approx([0.0])
    assert LOG.lateness_s({"x-0": 100.0}) == pytest.approx([0.1, 0.0])


def test_detection_and_pace_come_from_the_servers_clock() -> None:
    assert LOG.detections_s(2.0) == pytest.approx([0.1])
    assert LOG.ops_per_s() == pytest.approx(1 / 2.2)


def test_a_row_survives_its_own_line() -> None:
    assert Row.read(row().line()) == row()


def test_figures_per_operation_are_over_what_was_done() -> None:
    assert (row(done=50).per_operation("cpu_ms"), row(done=50).per_operation("polls")) == (20.0, 10.0)


def test_the_last_line_is_plain_decimals_in_a_fixed_order() -> None:
    floors = {"bare httpx": row("bare httpx", cpu_s=0.5), "bare aiohttp": row("bare aiohttp", cpu_s=0.25)}
    unchanged = Unchanged(800, Counts(8.0, {"worker": 0.1}, 20, 10, 40_000, 300))
    line = Figures(row(), floors, unchanged, 0.0671).line()
    names = (
        "cpu_ms_per_op floor_httpx floor_aiohttp ratio_httpx poll_late_p99_s statements_per_poll wal_bytes_per_op"
        " wal_bytes_per_poll commits_per_op second_submits"
    )
    assert [part.partition("=")[0] for part in line.split(" ")] == names.split(" ")
    assert all(re.fullmatch(r"\d+(\.\d+)?", part.partition("=")[2]) for part in line.split(" "))
    assert "cpu_ms_per_op=10.00 floor_httpx=5.00 floor_aiohttp=2.50 ratio_httpx=2.000 poll_late_p99_s=0.067" in line


def test_the_table_has_a_median_with_its_spread_and_the_cheapest_first() -> None:
    lines = table([row(cpu_s=3.0), row(cpu_s=1.0), row(cpu_s=2.0), row("bare httpx", cpu_s=0.5)])
    first, second = lines[3:5]
    assert first.startswith("| bare httpx | no |")
    assert second.startswith("| counterfoil | yes | 300 of 300 | 20.00 (10.00 to 30.00) |")


def test_a_profile_lists_what_a_function_spends_itself_and_with_its_callees() -> None:
    lines = functions(["main;send 3", "main;send;write 1"])
    assert lines[1:] == [
        "  0.0           100.0  main",
        " 75.0           100.0  send",
        " 25.0            25.0  write",
    ]


def saturated(*more: list[object], polls: int = 5) -> Saturated:
    """Ten seconds in which `a` is read every other second, and `b` is cancelled at 100."""
    rows: list[list[object]] = [[100.0 + 2 * number, "poll", "a"] for number in range(polls)]
    return Saturated.of(ServerLog.of([*rows, *more]), ["a", "b"], {"b": 100.0}, 110.0)


def test_a_cancel_counts_from_its_commit_to_its_first_byte_and_to_the_end_that_was_read() -> None:
    found = saturated([100.4, "cancel", "b"], [103.0, "end", "b"], [110.5, "cancel", "b"])
    assert (found.first_bytes_s, found.confirmed_s) == (pytest.approx([0.4]), pytest.approx([3.0]))


def test_saturation_is_what_is_wanted_each_second_over_what_left() -> None:
    assert saturated().saturation == pytest.approx(1 / 0.5)


@pytest.mark.parametrize(("polls", "starved"), [(5, 0), (2, 1), (0, 1)])
def test_an_operation_that_is_read_no_more_is_starved_although_no_pause_of_it_has_ended(
    polls: int, starved: int
) -> None:
    assert saturated(polls=polls).starved == starved


@pytest.mark.parametrize(("late_s", "first_byte_s", "good"), [(0.2, 0.9, True), (0.3, 0.9, False), (0.2, 1.0, False)])
def test_fairness_is_no_later_polls_beside_the_two_and_cancels_within_a_second(
    late_s: float, first_byte_s: float, good: bool
) -> None:
    waits_s = {f"held-{number}": [4.0, 4.0, 4.0] for number in range(200)}
    fairness = Fairness(
        Healthy(row(), [0.1]),
        Healthy(row(), [late_s]),
        [Neighbour("slow", 100, 20, 0)],
        Saturated(46.0, waits_s, [first_byte_s] * 100, [5.0] * 100, 0),
    )
    assert fairness.good is good
    assert all(re.fullmatch(r"\w+=\d+(\.\d+)?", part) for part in fairness.lines()[-1].split(" "))
