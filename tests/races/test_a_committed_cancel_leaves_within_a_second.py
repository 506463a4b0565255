"""From the commit of a cancel to its first byte, on a virtual clock: 100 schedules of one worker that holds resident
polls, other cancels and submits of the same target, its writes answered late by a seed's choice.

Nobody tells the worker of the cancel: it finds the row at its next tick. Where a first byte takes longer than a second,
the bucket must say why (it was closed, and granted nothing that whole time).
"""

import random
from collections.abc import Callable, Iterator

import pytest

from counterfoil.adapters.contract import Effect
from counterfoil.beat_schedule import PLAN_EVERY_S
from counterfoil.tests.workers.kit_world import World
from counterfoil.workers import actions as act
from counterfoil.workers.jobs import Pace

SCHEDULES = 100
PACE = Pace(tick_s=PLAN_EVERY_S, self_tick_s=PLAN_EVERY_S)
"""As `counterfoil worker --solo` runs it: without a broker nothing but its own tick wakes it."""

LATE = (act.Apply, act.Claim, act.Renew, act.Reread, act.Intend, act.Keep)
SLOWEST_WRITE_S = 0.05


def cancelled(world: World, noise: random.Random) -> Iterator[tuple[float, float | None]]:
    """(committed at, first byte at) of each cancel of one schedule."""
    ids = world.polls(noise.randrange(1, 30), due_in_s=noise.random())
    world.submits(noise.randrange(5))
    wanted = sorted((noise.uniform(0.5, 4.0), id_) for id_ in noise.sample(ids, min(len(ids), 5)))
    began_s, asked, left = world.now_s, dict[str, float](), dict[str, float]()
    while world.now_s < began_s + 12 and (wanted or len(left) < len(asked)):
        while wanted and began_s + wanted[0][0] <= world.now_s:
            _, id_ = wanted.pop(0)
            asked[world.task(id_)] = world.now_s
            world.cancel(id_)
        world.now_s += 0.01
        pass_on(world, noise)
        for send in world.left:
            if send.request.effect is Effect.CANCEL:
                left.setdefault(dict(send.request.headers)["Mcp-Name"], world.now_s)
    for task, at_s in asked.items():
        yield at_s, left.get(task)


def pass_on(world: World, noise: random.Random) -> None:
    """A hundredth of a second: some of what waits is answered, the loop takes its step."""
    for action, asked_s in list(world.waiting):
        if world.now_s - asked_s >= noise.uniform(0, SLOWEST_WRITE_S):
            world.waiting.remove((action, asked_s))
            world._do(action, asked_s)
    world.step()


def bucket(world: World, opens_s: float) -> Callable[[act.Take], act.Tokens]:
    """Closed for everybody until then."""

    def take(asked: act.Take) -> act.Tokens:
        closed_s = opens_s - world.now_s
        return act.Tokens(asked, asked.count, 0.0) if closed_s <= 0 else act.Tokens(asked, 0, closed_s)

    return take


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_first_bytes_leave_within_a_second_or_the_bucket_says_why(closed: bool) -> None:
    waits_s: list[float] = []
    for seed in range(SCHEDULES // 5 if closed else SCHEDULES):
        noise = random.Random(seed)
        world = World(pace=PACE, jitter=noise.random())
        world.holds = lambda action: isinstance(action, LATE)
        world.advance(noise.random())
        opens_s = world.now_s + 6.0 if closed else 0.0
        world.bucket = bucket(world, opens_s)
        for asked_s, left_s in cancelled(world, noise):
            assert left_s is not None, (seed, asked_s)
            waits_s.append(left_s - max(asked_s, opens_s))
    waits_s.sort()
    p99_s = waits_s[len(waits_s) * 99 // 100]
    print(f"{len(waits_s)} cancels: p50 {waits_s[len(waits_s) // 2]:.2f} s, p99 {p99_s:.2f} s, max {waits_s[-1]:.2f} s")
    assert p99_s < 1.0
