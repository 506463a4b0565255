"""A cancel is asked for at the door while the submit lane takes a NOT_FOUND_SAFE operation up again, and later while
its second intent is being committed.

Whoever is first with the row's lock decides: a cancel that is first ends the operation and nothing is ever sent again;
an intent that is first sends, and the cancel is remembered for the task that will come of it.
"""

import pytest

from counterfoil.ledger.events import CancelAsked, Resubmit
from counterfoil.ledger.intents import Denied, Granted
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.meeting import (
    OPERATION,
    UNIQUE,
    bound,
    in_both_orders,
    meet,
    never_created,
    said,
    second_attempt,
)


@pytest.mark.parametrize("first", ["resubmit", "cancel"])
def test_before_the_second_intent_a_cancel_always_ends_it(world: World, first: str) -> None:
    world.policy = UNIQUE
    operation_id = never_created(world)
    lease = world.claim(lease_s=300)[operation_id]
    sides, _ = in_both_orders(
        first,
        ("resubmit", "cancel"),
        lambda: world.bring(operation_id, Resubmit(), lease=lease),
        lambda: said(world, operation_id, CancelAsked("stop")),
    )
    meet(world, OPERATION, *sides)
    receipt = world.client.wait("run/1", timeout_s=0)
    # `unique` doesn't close a key: the first request may still land.
    assert (receipt.outcome, receipt.effects_possible) == ("cancelled", True)
    assert isinstance(world.intend(lease, attempt=2, generation=1), Denied)
    assert world.sql("SELECT count(*) FROM counterfoil.intent") == [(1,)]


@pytest.mark.parametrize("first", ["intent", "cancel"])
def test_either_the_second_attempt_is_sent_and_the_cancel_remembered_or_it_is_never_sent(
    world: World, first: str
) -> None:
    world.policy = UNIQUE
    operation_id, lease = second_attempt(world)
    sides, sort = in_both_orders(
        first,
        ("intent", "cancel"),
        lambda: world.intend(lease, attempt=2),
        lambda: said(world, operation_id, CancelAsked("stop")),
    )
    intent, _ = sort(meet(world, OPERATION, *sides))
    if first == "cancel":
        assert isinstance(intent, Denied)
        assert world.client.wait("run/1", timeout_s=0).outcome == "cancelled"
        return
    assert isinstance(intent, Granted)
    world.keep(operation_id, bound(2, "t-2"), attempt=2)
    world.bring(operation_id, lease=lease)
    assert world.one(operation_id, "state, cancel_generation") == ("CANCEL_REQUESTED", 1)
    assert isinstance(world.intend(world.claim(Lane.CANCEL)[operation_id], effect="cancel", generation=1), Granted)
