"""Who makes trouble in a run, and when: each a choice of its own."""

from collections.abc import Callable
from functools import partial

from counterfoil.workers import actions as act
from counterfoil.workers.engine import SERVED

from . import people
from .worker import Worker
from .world import World

STOPS_S = (10.0, 2.5, 5.0, 40.0)

# -- workers ---------------------------------------------------------------------------------------------------------


def of_workers(world: World, chance: float = 0.2) -> None:
    """What can happen to any process, in any family."""
    for name in world.names:
        world.plan_for(name, "crashes", world.crash, chance)
        world.plan_for(name, "stops", stop, chance)
        world.plan_for(name, "hangs", hang, chance / 2)
        world.plan_for(name, "loses a commit", lose, chance)
    world.plan_for(world.names[0], "drains", lambda worker: worker.take(act.Drain()), chance / 3)
    world.plan("a forged wake-up", partial(forge, world), chance / 2)
    world.plan("the bucket is wiped", partial(wipe, world), chance)


def stop(worker: Worker) -> None:
    """Stopped, and going on later as if nothing had been."""
    world = worker.world
    worker.frozen_until_s = world.now_s + STOPS_S[world.choices.pick(f"{worker.name} stops for", 4)]
    world.sometimes("a worker was stopped")


def hang(worker: Worker) -> None:
    """The database is slow: for one line, before or after its commit."""
    world = worker.world
    way = world.choices.pick(f"{worker.name} hangs how", 4)
    until_s = world.now_s + (3.0, 9.0)[way // 2]
    line = "urgent" if world.choices.pick(f"{worker.name} hangs where", 2) == 0 else "bulk"
    if way % 2:
        worker.ready_at_s[line] = until_s
    else:
        worker.hanging_until_s[line] = until_s


def lose(worker: Worker) -> None:
    """The connection to the database breaks at the next commit of a line: before it, or with its answer lost; seen at
    once,
    or when a lease is over."""
    way = worker.world.choices.pick(f"{worker.name} loses how", 8)
    line = ("urgent", "bulk")[way // 2 % 2]
    worker.lost[line] = ("after", "before")[way % 2]
    if way >= 4:
        worker.ready_at_s[line] = worker.world.now_s + 9.0
    worker.world.sometimes("a commit's outcome was lost")


def forge(world: World) -> None:
    """Wake-ups that nobody sent."""
    for worker in world.workers:
        if worker.alive:
            for lane in SERVED:
                worker.take(act.Kick(lane, people.TARGET))
            worker.take(act.Kick(SERVED[0], "nowhere"))


def wipe(world: World) -> None:
    """Redis forgets everything."""
    world.wipe_bucket()
    world.sometimes("the bucket was wiped")


def make_obstinate(worker: Worker) -> None:
    """A bad release: it goes on, whatever the ledger tells it."""
    worker.obstinate = True


def at_every_point(world: World, what: str) -> None:
    """One kind of trouble, for both, right before any kind of move."""
    happens = {"crashes": world.crash, "stops": stop, "loses a commit": lose, "hangs": hang}[what]
    for name, chance in zip(world.names, (0.9, 0.5), strict=False):
        world.plan_for(name, what, happens, chance, anchored=0.9)


def of_slow_acceptance(world: World, then: Callable[[], None], what: str, chance: float = 0.8) -> None:
    """(Tier B) Somebody is held in the middle of `accept_terminal`, until the gate is opened, and `then` happens."""

    def shut() -> None:
        if world.loom is not None:
            world.loom.shut_gate()
            world.later(0.3, "the gate is opened", world.open_gate)
            if world.choices.pick(f"and {what}", 2, chance):
                then()

    world.plan("acceptance is slow", shut, chance, anchored=0.0)
    if world.loom is not None and world.choices.pick("acceptance is slow at once", 2, chance):
        world.right_before("w bulk accept", "acceptance is slow", shut)


def of_late_withdrawals(world: World) -> None:
    """A worker learns long after its lease that its intent was never committed, while its successor is sending."""

    def lose_intent(worker: Worker) -> None:
        worker.lost["urgent"] = "before"
        world.right_before("w loop steps", f"{worker.name} stops", partial(stop_past_lease, worker), worker=worker.name)

    who = world.choices.pick("who learns late", 3, 0.9)
    if who:
        name, other = world.names[who - 1], world.names[2 - who]
        happen = partial(world.for_worker, name, lose_intent)
        world.right_before("w urgent Intend", f"{name} loses its intent", happen, worker=name)
        world.sometime(f"{other} is killed", partial(world.for_worker, other, world.crash), (12.0,), 0.9)


def of_denials(world: World) -> None:
    """The server denies a task three times in a row, after it has been read for a while."""
    late = world.choices.pick("denied from", 4, 0.9)
    for time in range(3) if late else ():
        world.forced[f"tasks/get {3 + 4 * late + time}"] = "not found"


def of_late_readings(world: World) -> None:
    """A worker is stopped with the answer to a reading in its hands, and others read on meanwhile."""
    for name in world.names:
        time = world.choices.pick(f"{name} reads late", 4, 0.8)
        if time:
            happen = partial(world.for_worker, name, stop_past_lease)
            kind = ("tasks/get  is answered", "tasks/result  is answered")[world.choices.pick(f"{name} reads what", 2)]
            world.right_before(kind, f"{name} stops", happen, worker=name, time=time)


def of_late_intents(world: World) -> None:
    """A worker is stopped right before it commits an intent, until its lease is over."""
    for name in world.names:
        if world.choices.pick(f"{name} intends late", 2, 0.8):
            happen = partial(world.for_worker, name, stop_past_lease)
            world.right_before("w urgent Intend", f"{name} stops", happen, worker=name)


def of_late_commits(world: World) -> None:
    """The database is slow to answer a worker's commit."""
    for name in world.names:
        drawn = world.choices.pick(f"{name} learns late of", 4, 0.9)
        if drawn:
            happen = partial(world.for_worker, name, hang_after)
            kind = ("w urgent Intend", "w urgent Keep", "w urgent Intend")[drawn - 1]
            world.right_before(kind, f"{name} hangs", happen, worker=name)


def hang_after(worker: Worker) -> None:
    """What it commits next is committed, and it is told after nine seconds."""
    worker.ready_at_s["urgent"] = worker.world.now_s + 9.0


def of_late_transitions(world: World) -> None:
    """A worker is stopped with what it has read in its hands, right before it writes it down, until its lease is
    over."""
    for name in world.names:
        drawn = world.choices.pick(f"{name} writes late", 5, 0.9)
        if drawn:
            happen = partial(world.for_worker, name, stop_past_lease)
            world.right_before("w bulk Apply", f"{name} stops", happen, worker=name, time=drawn)


def of_silence(world: World) -> None:
    """A worker is stopped while its call is on its way, until its lease is over; then it hears the answer."""
    for name in world.names:
        drawn = world.choices.pick(f"{name} falls silent", 6, 0.95)
        if drawn:
            happen = partial(world.for_worker, name, stop_past_lease)
            soon = partial(world.later, 0.02, f"{name} stops", happen)
            world.right_before("tools/call  leaves", f"{name} will stop", soon, worker=name, time=1 + drawn // 4)


def of_late_bytes(world: World) -> None:
    """A worker is stopped with its intent granted, right before the first byte, until its lease is over."""
    for name in world.names:
        drawn = world.choices.pick(f"{name} sends late", 5, 0.95)
        if drawn:
            happen = partial(world.for_worker, name, stop_past_lease)
            kind = ("tools/call  leaves", "tasks/cancel  leaves")[drawn % 2]
            world.right_before(kind, f"{name} stops", happen, worker=name)


def stop_past_lease(worker: Worker) -> None:
    worker.frozen_until_s = worker.world.now_s + 10.0


def of_long_stops(world: World) -> None:
    """Nobody is there for as long as a key is remembered."""
    for name in world.names:
        world.plan_for(name, "stops for long", stop_for_long, 0.9, anchored=0.3)


def stop_for_long(worker: Worker) -> None:
    worker.frozen_until_s = worker.world.now_s + 42.0


# -- people ----------------------------------------------------------------------------------------------------------


def of_producers(world: World, chance: float = 0.1) -> None:
    """Calls are handed in twice; consumers take what is ready."""
    for number in range(1, world.family.operations + 1):
        world.plan(f"op{number} is handed in again", partial(people.submit, world, number), chance)
    world.sometime("a consumer comes", partial(people.consume, world), (3.0, 12.0, 70.0), 2 * chance)


def of_cancellers(world: World, chance: float = 0.4) -> None:
    for number in range(1, world.family.operations + 1):
        world.plan(f"op{number} is cancelled", partial(people.cancel, world, number), chance)


def of_roll_back(world: World, chance: float = 0.3) -> None:
    """The epoch is bumped; sometimes a bad release goes on all the same."""
    world.plan("the epoch is bumped", partial(people.bump, world), chance)
    world.plan("the epoch is bumped again", partial(people.bump, world), chance / 3)
    if world.choices.pick(f"{world.names[0]} is a bad release", 2, chance):
        world.plan_for(world.names[0], "is a bad release", make_obstinate, 1.0, at=1)


def of_answers(world: World, chance: float = 0.6) -> None:
    """One or two people look for questions, as soon as they like or late."""
    for who in ("ann", "bob"):
        world.plan(f"{who} looks at the questions", partial(people.answer, world, who), chance)
    for who in ("cy", "di"):
        world.sometime(f"{who} looks at the questions", partial(people.answer, world, who), (3.0, 4.0, 9.0), chance)


def of_verdicts(world: World, chance: float = 0.5) -> None:
    """Cases are settled: by two people at once, now or late, even in the end."""
    world.plan("dee settles", partial(people.settle, world, "dee"), chance)
    world.sometime("eve settles", partial(people.settle, world, "eve"), (10.0, 25.0, 70.0), chance)
    world.sometime("fay settles", partial(people.settle, world, "fay"), (10.0, 30.0, 90.0), chance)


def of_switches(world: World, chance: float = 0.5) -> None:
    """New operations are switched off and on, the protocol is drained, the part that is taken on grows."""
    world.plan("create is off", partial(people.create_off, world), chance)
    world.plan("create is on again", partial(people.create_on, world), chance)
    world.plan("the protocol is drained", partial(people.drain, world), chance / 2)


def of_canary(world: World, chance: float = 0.5) -> None:
    """The part that is taken on grows, while calls are handed in again and again."""
    world.plan("half is taken on", partial(people.ramp, world, 50.0), chance)
    world.plan("all is taken on", partial(people.ramp, world, 100.0), chance)
    for number in range(1, world.family.operations + 1):
        for time in ("again", "once more"):
            world.plan(f"op{number} is handed in {time}", partial(people.submit, world, number), 0.8)


def of_the_database(world: World) -> None:
    """The standby is behind, and soon it is all that there is."""

    def fall_behind() -> None:
        world.fall_behind()
        in_s = (0.1, 0.5, 2.0, 9.0)[world.choices.pick("the database fails over after", 4)]
        world.later(in_s, "the database fails over", partial(world.fail_over, partial(people.recover, world)))

    world.plan("the standby falls behind", fall_behind, 0.95, anchored=0.7)
