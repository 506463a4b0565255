"""A cancel is asked for while a poll is applied, or while a submit is intended; both wait for the same row, in either
order.

With one wake row for all lanes the poll's write moved the cancel to the next poll, or left no row at all (review B4,
X1); with a claim in the place of an intent the bytes left under a generation that had moved.
"""

from collections.abc import Callable

import pytest

from counterfoil.ledger.events import CancelAsked, Progressed
from counterfoil.ledger.intents import Denied, Granted
from counterfoil.ledger.states import Lane
from counterfoil.ledger.work import Item
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.waiting import Thread, held, until_blocked

OPERATION = "SELECT 1 FROM counterfoil.operation FOR UPDATE"
WAKE = "SELECT 1 FROM counterfoil.wake FOR UPDATE"


def meet(world: World, lock: str, *sides: Callable[[], object]) -> list[Thread]:
    """Start the sides one after the other, each when the one before it waits, then let them go."""
    threads = []
    with held(world, lock):
        for count, side in enumerate(sides, 1):
            threads.append(Thread(side))
            until_blocked(world, count)
    return threads


@pytest.mark.parametrize("lock", [OPERATION, WAKE], ids=["operation", "wake"])
@pytest.mark.parametrize("first", ["poll", "cancel"])
def test_a_poll_that_is_applied_at_the_same_time_never_delays_a_cancel(world: World, first: str, lock: str) -> None:
    operation_id = world.working()
    world.sql("UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now()")
    poller = world.claim(Lane.POLL)[operation_id]
    told = Progressed(poller.read_seq, "half way", None, None, 300_000)
    sides: list[Callable[[], object]] = [
        lambda: world.bring(operation_id, told, lease=poller),
        lambda: world.door.apply([Item(operation_id, Lane.DOOR, (CancelAsked("stop"),))]),
    ]
    for thread in meet(world, lock, *(sides if first == "poll" else reversed(sides))):
        thread.outcome()
    assert world.one(operation_id, "state, cancel_generation, server_status") == ("CANCEL_REQUESTED", 1, "half way")
    rows = world.wakes(operation_id)
    assert set(rows) == {"poll", "cancel", "timer"}
    assert rows["cancel"]["due_in_s"] <= 0
    canceller = world.claim(Lane.CANCEL)[operation_id]
    assert isinstance(world.intend(canceller, effect="cancel", generation=1), Granted)


@pytest.mark.parametrize("first", ["intent", "cancel"])
def test_either_the_submit_is_intended_and_the_cancel_remembered_or_nothing_is_ever_sent(
    world: World, first: str
) -> None:
    lease = world.claimed()
    sides: list[Callable[[], object]] = [
        lambda: world.intend(lease),
        lambda: world.door.apply([Item(lease.operation_id, Lane.DOOR, (CancelAsked("stop"),))]),
    ]
    if first == "cancel":
        sides.reverse()
    outcomes = [thread.outcome() for thread in meet(world, OPERATION, *sides)]
    answer = outcomes[0 if first == "intent" else 1]
    assert world.one(lease.operation_id, "cancel_generation") == 1
    if first == "intent":
        assert isinstance(answer, Granted)
        assert world.state(lease.operation_id) == "SUBMITTING"
        assert world.client.receipt("run/1") is None
    else:
        assert isinstance(answer, Denied)
        assert world.sql("SELECT count(*) FROM counterfoil.intent") == [(0,)]
        receipt = world.client.wait("run/1", timeout_s=0)
        assert (receipt.outcome, receipt.effects_possible) == ("cancelled", False)
