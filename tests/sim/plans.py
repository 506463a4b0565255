"""Who makes trouble in the runs of a family."""

from collections.abc import Callable
from functools import partial

from . import people, trouble
from .world import World


def everybody(world: World) -> None:
    trouble.of_producers(world)
    trouble.of_cancellers(world, 0.35)
    trouble.of_roll_back(world, 0.25)
    trouble.of_workers(world, 0.15)


def calmly(world: World) -> None:
    trouble.of_cancellers(world, 0.1)
    trouble.of_workers(world, 0.05)


def cancelled(world: World) -> None:
    trouble.of_cancellers(world, 1.0)
    trouble.of_workers(world, 0.15)
    trouble.of_roll_back(world, 0.1)


def at_every_point(what: str) -> Callable[[World], None]:
    def plan(world: World) -> None:
        trouble.at_every_point(world, what)
        trouble.of_cancellers(world, 0.3)
        trouble.of_roll_back(world, 0.15)

    return plan


def crashes_anywhere(world: World) -> None:
    for name in world.names:
        world.plan_for(name, "crashes", world.crash, 0.95, anchored=0.0)


def lookups(world: World) -> None:
    trouble.of_producers(world)
    trouble.of_cancellers(world, 0.25)
    trouble.of_roll_back(world, 0.2)
    trouble.of_workers(world, 0.3)


def questions(world: World) -> None:
    trouble.of_answers(world)
    trouble.of_cancellers(world, 0.15)
    trouble.of_roll_back(world, 0.15)
    trouble.of_workers(world, 0.15)


def verdicts(world: World) -> None:
    trouble.of_verdicts(world)
    trouble.of_answers(world, 0.2)
    trouble.of_cancellers(world, 0.2)
    trouble.of_workers(world, 0.2)


def switches(world: World) -> None:
    trouble.of_switches(world)
    trouble.of_producers(world, 0.5)
    trouble.of_roll_back(world, 0.2)
    trouble.of_workers(world, 0.15)


def canary(world: World) -> None:
    people.ramp(world, 0.0)
    people.submit(world, 1)
    trouble.of_canary(world)
    trouble.of_workers(world, 0.1)


def failover(world: World) -> None:
    trouble.of_the_database(world)
    trouble.of_producers(world, 0.3)
    trouble.of_cancellers(world, 0.2)
    trouble.of_workers(world, 0.1)


def bounded(world: World) -> None:
    trouble.at_every_point(world, "crashes")
    trouble.of_cancellers(world, 0.2)


def late_readings(world: World) -> None:
    trouble.of_late_readings(world)
    trouble.of_answers(world, 0.9)


def late_transitions(world: World) -> None:
    trouble.of_late_transitions(world)
    trouble.of_answers(world, 0.8)
    trouble.of_cancellers(world, 0.2)


def late_answers(world: World) -> None:
    """By the time it comes somebody may have spoken, or another attempt may be out."""
    trouble.of_silence(world)
    world.sometime("dee gives up", partial(people.give_up, world, "dee"), (8.8, 9.2, 9.6, 9.9), 0.9)
    world.sometime("op1 is cancelled", partial(people.cancel, world, 1), (8.3, 9.0), 0.2)
    world.sometime("the epoch is bumped", partial(people.bump, world), (9.5, 9.9), 0.3)


def late_bytes(world: World) -> None:
    trouble.of_late_bytes(world)
    trouble.of_cancellers(world, 0.4)


def contradicted(world: World) -> None:
    """A cancel comes right before the end, and the result is not to be had at once: the end is known and not settled
    while the cancel's answer is still on its way."""
    world.forced["tasks/result 1"] = "unavailable"
    world.sometime("op1 is cancelled", partial(people.cancel, world, 1), (2.5, 2.7, 2.9), 0.95)
    trouble.of_workers(world, 0.05)


def requester_answers(world: World) -> None:
    """Whoever asked for the call answers its question, and somebody else comes too."""
    world.sometime("the requester answers", partial(people.answer, world, "default"), (2.5, 3.5), 0.9)
    world.sometime("ann answers", partial(people.answer, world, "ann"), (4.0, 5.0), 0.6)
    trouble.of_workers(world, 0.05)


def two_answers(world: World) -> None:
    """Two people say the opposite, one right after the other."""

    def look() -> None:
        people.answer(world, "ann", go=True, thinks_s=0.0)
        people.answer(world, "bob", go=False, thinks_s=(0.2, 0.5, 0.9)[world.choices.pick("bob thinks", 3)])

    world.sometime("they look at the questions", look, (2.5, 3.5, 4.5), 0.95)


def read_on(world: World) -> None:
    trouble.of_denials(world)
    for who, at_s in (("dee", (12.0, 16.0)), ("eve", (20.0, 30.0))):
        world.sometime(f"{who} reads on", partial(people.read_on, world, who), at_s, 0.9)


def killed_early(world: World) -> None:
    for name in world.names:
        world.sometime(f"{name} is killed", partial(world.for_worker, name, world.crash), (0.5, 2.0, 3.5), 0.9)


def desk(world: World) -> None:
    """Two people and a canceller come at the same time, and a case waits for them."""
    for who in ("dee", "eve"):
        world.sometime(f"{who} settles", partial(people.settle, world, who), (12.0,), 0.9)
    world.sometime("op1 is cancelled", partial(people.cancel, world, 1), (12.0,), 0.8)


def slowly(world: World) -> None:
    for time in ("", " again"):
        world.plan(f"the bucket is wiped{time}", partial(trouble.wipe, world), 0.7)
    trouble.of_cancellers(world, 0.2)
    trouble.of_workers(world, 0.1)


def bumps(world: World) -> None:
    trouble.of_roll_back(world, 1.0)
    trouble.of_slow_acceptance(world, partial(people.bump, world), "the epoch is bumped")
    trouble.of_cancellers(world, 0.4)
    trouble.of_workers(world, 0.1)


def doors_against_workers(world: World) -> None:
    trouble.of_cancellers(world, 0.9)
    trouble.of_answers(world, 0.5)
    trouble.of_verdicts(world, 0.3)
    trouble.of_workers(world, 0.05)


def doors_against_acceptance(world: World) -> None:
    trouble.of_slow_acceptance(world, partial(people.cancel, world, 1), "op1 is cancelled", 0.95)
    trouble.of_cancellers(world, 0.3)


def doors_against_submits(world: World) -> None:
    trouble.of_cancellers(world, 1.0)
    world.plan("op1 is cancelled twice", lambda: people.cancel(world, 1), 0.5)


def leases(world: World) -> None:
    for name in world.names:
        world.plan_for(name, "stops", trouble.stop, 0.7)
    world.plan("a forged wake-up", lambda: trouble.forge(world), 0.7)
    trouble.of_cancellers(world, 0.3)


def doors(world: World) -> None:
    people.submit(world, 1)
    people.submit(world, 1)
    world.plan("op1 is handed in once more", lambda: people.submit(world, 1), 0.7)
    trouble.of_cancellers(world, 0.3)
    trouble.of_roll_back(world, 0.3)
