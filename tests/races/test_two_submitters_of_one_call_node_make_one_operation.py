"""Two producers hand in the same call node at once. The second one waits for the first one's open transaction (it can't
know yet), and then finds its operation, or, after a rollback, makes its own. `ON CONFLICT DO NOTHING` alone would have
answered with no row."""

from typing import Any

import pytest

from counterfoil.ledger.client import Call
from counterfoil.ledger.errors import CallNodeConflict
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.waiting import Thread, until_blocked

CALL = Call("reports", "generate", {"month": "2026-10"}, "run/1")
OTHER = Call("reports", "generate", {"month": "2026-11"}, "run/1")


def second(world: World, call: Call, *, commit: bool) -> tuple[Any, Thread]:
    """What the first one got, and the second one, that had to wait for it."""
    world.store.register_targets([("reports", "mcp-2026-07-28")])
    with world.owner() as connection, connection.transaction(force_rollback=not commit):
        (first,) = world.client.submit_in(connection, [CALL])
        late = Thread(
            lambda: world.client_of().submit(call.target, call.tool, call.arguments, call_node_id=call.call_node_id)
        )
        until_blocked(world, 1)
    return first, late


def test_the_second_one_finds_the_operation_of_the_first(world: World) -> None:
    first, late = second(world, CALL, commit=True)
    assert late.outcome().id == first
    assert world.sql("SELECT count(*) FROM counterfoil.operation") == [(1,)]
    assert world.sql("SELECT count(*) FROM counterfoil.wake") == [(1,)]


def test_after_a_rollback_the_second_one_makes_its_own(world: World) -> None:
    first, late = second(world, CALL, commit=False)
    assert late.outcome().id != first
    assert world.sql("SELECT count(*) FROM counterfoil.operation") == [(1,)]


def test_another_request_for_the_node_is_a_conflict_as_soon_as_the_first_is_committed(world: World) -> None:
    _, late = second(world, OTHER, commit=True)
    with pytest.raises(CallNodeConflict):
        late.outcome()
    assert world.sql("SELECT count(*) FROM counterfoil.operation") == [(1,)]


def test_producers_that_hand_in_the_same_nodes_in_opposite_orders_do_not_deadlock(world: World) -> None:
    world.store.register_targets([("reports", "mcp-2026-07-28")])

    def hand_in(order: list[Call]) -> list[Any]:
        with world.database.begin() as connection:
            return world.client.submit_in(connection, order)

    for round_ in range(5):
        calls = [Call("reports", "generate", {}, f"run/{round_}/{number}") for number in range(20)]
        sides = [Thread(lambda calls=calls: hand_in(calls)), Thread(lambda calls=calls: hand_in(calls[::-1]))]  # type: ignore[misc]
        forward, backward = (side.outcome() for side in sides)
        assert forward == backward[::-1]
    assert world.sql("SELECT count(*) FROM counterfoil.operation") == [(100,)]
    assert world.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == [(0,)]
