"""A cancel is asked for while the end of the same task is applied, and in the moment between the decision and the
acceptance.

First the cancel: the generation moves, and the end that comes after it is accepted as what it is, under the new one.
First the end: the cancel is told that it is over, and no generation moves under a receipt.
"""

import pytest

from counterfoil.ledger.decision import Decision, Refusal
from counterfoil.ledger.events import CancelAsked
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.meeting import OPERATION, in_both_orders, meet, said
from counterfoil.tests.races.waiting import Thread, held, until_blocked


@pytest.mark.parametrize("first", ["end", "cancel"])
def test_a_completion_is_accepted_under_the_generation_that_then_holds(world: World, first: str) -> None:
    operation_id = world.working()
    sides, sort = in_both_orders(
        first,
        ("end", "cancel"),
        lambda: world.ended(operation_id),
        lambda: said(world, operation_id, CancelAsked("stop")),
    )
    _, asked = sort(meet(world, OPERATION, *sides))
    answer = asked.answers[-1]
    receipt = world.client.wait("run/1", timeout_s=0)
    assert receipt.outcome == "succeeded"
    if first == "end":
        assert isinstance(answer, Refusal)
        assert answer.code == "E_ALREADY_OVER"
    else:
        assert isinstance(answer, Decision)
    generation = 0 if first == "end" else 1
    assert world.one(operation_id, "cancel_generation") == generation
    assert receipt.cancel_generation == generation
    assert world.wakes(operation_id) == {}


def test_a_cancel_between_decision_and_acceptance_is_told_that_it_is_over(world: World) -> None:
    """The wait-point: the end is decided and committed, its receipt waits for a lock."""
    operation_id = world.working()
    with held(world, "LOCK TABLE counterfoil.terminal_receipt IN SHARE MODE"):
        accepting = Thread(lambda: world.ended(operation_id))
        until_blocked(world, 1)
        asking = Thread(lambda: said(world, operation_id, CancelAsked("stop")))
        until_blocked(world, 2)  # the acceptance holds the row
    assert accepting.outcome().verdict == "accepted"
    refusal = asking.outcome().answers[-1]
    assert isinstance(refusal, Refusal)
    assert refusal.code == "E_ALREADY_OVER"
    assert world.client.wait("run/1", timeout_s=0).outcome == "succeeded"
