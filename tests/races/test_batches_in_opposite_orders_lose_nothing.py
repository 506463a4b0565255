"""Two appliers bring overlapping batches in opposite orders, beside a claimer, a renewer and a releaser of the same
rows.

`UPDATE … FROM unnest` of sorted arrays still deadlocked (2 in 400: plans differ); locking in order of id first does
not. Nothing may be lost or counted twice: each "not found" that is brought raises its operation's count by one.
"""

from collections.abc import Sequence
from uuid import UUID

from counterfoil.ledger.events import TaskNotFound
from counterfoil.ledger.states import Lane
from counterfoil.ledger.work import Item
from counterfoil.tests.ledger.world import POLICY, World
from counterfoil.tests.races.waiting import Thread, held, until_blocked

ROWS, ROUNDS = 30, 25


def test_batches_in_opposite_orders_lose_nothing(world: World) -> None:
    world.policy = POLICY.model_copy(update={"not_found_asks": 10_000})
    ids = [world.working(f"run/{number:02}", f"t-{number}") for number in range(ROWS)]

    def apply(order: Sequence[UUID], size: int) -> int:
        brought = 0
        for round_ in range(ROUNDS):
            batch = [order[(round_ + place) % ROWS] for place in range(size)]
            applied = world.transitions.apply(Item(id_, Lane.POLL, (TaskNotFound(1, "?"),)) for id_ in batch)
            assert not any(one.failed for one in applied)
            brought += len(applied)
        return brought

    def claim_renew_release() -> int:
        held = 0
        for _ in range(ROUNDS):
            leases = world.claim(Lane.POLL, limit=ROWS, ahead_s=600.0)
            held += len(leases)
            if leases:
                world.store.renew([(id_, Lane.POLL, lease.token, 9.0) for id_, lease in leases.items()])
                world.store.release([(lease, 0.0) for lease in reversed(leases.values())])
        return held

    sides = [
        Thread(lambda: apply(ids, ROWS)),
        Thread(lambda: apply(ids[::-1], ROWS)),
        Thread(lambda: apply(ids[::-1], ROWS // 3)),
        Thread(claim_renew_release),
        Thread(claim_renew_release),
    ]
    brought = [side.outcome() for side in sides]
    assert world.sql("SELECT sum(not_found_count) FROM counterfoil.operation") == [(sum(brought[:3]),)]
    assert world.sql("SELECT count(*) FROM counterfoil.journal WHERE code = 'E_OPERATION_UNKNOWN'") == [
        (sum(brought[:3]),)
    ]
    assert sum(brought[3:]) > 0
    assert world.sql("SELECT count(*) FROM counterfoil.wake WHERE lane = 'poll'") == [(ROWS,)]
    assert world.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == [(0,)]


def test_a_transition_takes_wake_rows_in_order_whatever_order_its_writes_are_planned_in(world: World) -> None:
    """It waits for the first of two rows and holds nothing of the second: a release of both, in order, gets past it."""
    first, second = sorted(world.working(f"run/{number}", f"t-{number}") for number in range(2))
    row = "FROM counterfoil.wake WHERE operation_id = '{}' AND lane = 'poll' FOR UPDATE"
    world.sql(
        "UPDATE counterfoil.wake SET kick = kick WHERE operation_id = %(id)s", {"id": first}
    )  # now behind the other one
    with held(world, f"SELECT 1 {row.format(first)}"):
        both = [Item(id_, Lane.POLL, (TaskNotFound(1, "?"),)) for id_ in (second, first)]
        applying = Thread(lambda: world.transitions.apply(both))
        until_blocked(world, 1)
        assert world.sql(f"SELECT 1 {row.format(second)} NOWAIT") == [(1,)]
    assert not any(one.failed for one in applying.outcome())
