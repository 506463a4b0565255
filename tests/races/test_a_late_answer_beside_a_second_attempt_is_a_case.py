"""The answer to attempt 1 comes while attempt 2 is about to leave; both wait for the same row.

Attempt 1 was called lost, its key was looked up and nothing was there, so attempt 2 may be sent. Now the first bearer
comes back with an answer (review B3e). Read before the second intent is committed, it binds and nothing is sent again.
Read after it, two remote operations may exist: a case, whatever else is known by then.
"""

import pytest

from counterfoil.ledger.events import LookupFound
from counterfoil.ledger.intents import Denied, Granted
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.meeting import OPERATION, UNIQUE, bound, in_both_orders, meet, second_attempt

BOUNDED = UNIQUE.model_copy(update={"absence": "bounded", "bounded_allowed": True})


@pytest.mark.parametrize("policy", [UNIQUE, BOUNDED], ids=["unique", "bounded"])
@pytest.mark.parametrize("first", ["evidence", "intent"])
def test_it_binds_before_the_second_intent_and_is_a_case_after_it(world: World, first: str, policy: Policy) -> None:
    world.policy = policy
    operation_id, lease = second_attempt(world)
    world.keep(operation_id, bound(1, "t-first"))
    sides, sort = in_both_orders(
        first,
        ("evidence", "intent"),
        lambda: world.bring(operation_id, lane=Lane.TIMER),
        lambda: world.intend(lease, attempt=2),
    )
    _, intent = sort(meet(world, OPERATION, *sides))

    if first == "evidence":
        assert isinstance(intent, Denied)
        assert world.one(operation_id, "state, task_id, sent_attempt") == ("WORKING", "t-first", 1)
        assert [one for _, one, still in world.cases(operation_id) if still] == []
        return
    assert isinstance(intent, Granted)
    assert world.cases(operation_id)[-1] == ("EFFECT_RECONCILIATION_REQUIRED", "E_TWO_OPERATIONS", True)
    # Where the server promises that both are one the known one is read on.
    known = ("WORKING", "t-first") if policy is UNIQUE else ("SUBMITTING", None)
    assert world.one(operation_id, "state, task_id") == known
    assert world.client.receipt("run/1") is None


@pytest.mark.parametrize("found", ["answer", "lookup"])
def test_a_second_task_is_told_of_even_where_keys_are_said_to_be_unique(world: World, found: str) -> None:
    """Attempt 1's task is named while attempt 2 is out, by its answer or by a lookup that lagged behind; then attempt 2
    is answered with another task."""
    world.policy = UNIQUE
    operation_id, lease = second_attempt(world)
    assert isinstance(world.intend(lease, attempt=2), Granted)
    if found == "answer":
        world.keep(operation_id, bound(1, "t-first"))
        world.bring(operation_id, lane=Lane.TIMER)
    else:
        world.bring(operation_id, LookupFound("t-first", "working"), lane=Lane.LOOKUP)
    world.keep(operation_id, bound(2, "t-second"), attempt=2)
    world.bring(operation_id, lease=lease)
    assert world.state(operation_id) == "WORKING"
    assert ("EFFECT_RECONCILIATION_REQUIRED", "E_TWO_OPERATIONS", True) in world.cases(operation_id)
