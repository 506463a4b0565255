"""A lookup finds nothing while the answer to the same submit is stored: the lookup was asked before the server had the
call, or it lags behind.

What lies there when the lookup's bearer gets the row's lock is read first, so the absence finds a known task. An answer
that is stored after that moment binds out of NOT_FOUND_SAFE, before a second intent is committed.
"""

import pytest

from counterfoil.ledger.events import LookupAbsent
from counterfoil.ledger.intents import Denied
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.meeting import OPERATION, UNIQUE, bound, in_both_orders, meet, unknown
from counterfoil.tests.races.waiting import Thread, held, until_blocked

ABSENT = LookupAbsent(authoritative=True)


@pytest.mark.parametrize("first", ["evidence", "lookup"])
def test_an_answer_that_is_there_wins_whoever_is_first(world: World, first: str) -> None:
    world.policy = UNIQUE
    operation_id = unknown(world)
    world.keep(operation_id, bound(1, "t-1"))
    sides, _ = in_both_orders(
        first,
        ("evidence", "lookup"),
        lambda: world.bring(operation_id, lane=Lane.TIMER),
        lambda: world.bring(operation_id, ABSENT, lane=Lane.LOOKUP),
    )
    meet(world, OPERATION, *sides)
    assert world.one(operation_id, "state, task_id, attempt") == ("WORKING", "t-1", 1)
    assert world.cases(operation_id) == []


def test_an_answer_that_comes_after_the_lookup_has_looked_binds_before_anything_is_sent_again(world: World) -> None:
    """The wait-point: the lookup's bearer has read that there is no evidence, and waits to write its journal line."""
    world.policy = UNIQUE
    operation_id = unknown(world)
    with held(world, "LOCK TABLE counterfoil.journal IN SHARE MODE"):
        absent = Thread(lambda: world.bring(operation_id, ABSENT, lane=Lane.LOOKUP))
        until_blocked(world, 1)
        world.keep(operation_id, bound(1, "t-1"))
        late = Thread(lambda: world.bring(operation_id, lane=Lane.TIMER))
        until_blocked(world, 2)
    absent.outcome()
    lease = world.claim().get(operation_id)
    late.outcome()
    assert world.one(operation_id, "state, task_id, attempt") == ("WORKING", "t-1", 1)
    assert world.cases(operation_id) == [("NEVER_CREATED", "E_SUBMISSION_UNKNOWN", False)]
    if lease is not None:  # claimed between the two
        assert isinstance(world.intend(lease, attempt=2), Denied)
