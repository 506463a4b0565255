"""A protocol version is switched off while a producer hands in a call of it and has not committed yet. A plain look
finds nothing open, so the version goes off, the producer commits, and an operation is open whose adapter is gone. `off`
takes the bump's lock: it waits for the door, and then sees what came in. It ends nobody: a producer in a long
transaction keeps it, and `off` says so. `create off`, which is safe without, waits for nobody."""

import pytest

from counterfoil.ledger import switches
from counterfoil.ledger.client import Call
from counterfoil.ledger.errors import CounterfoilError
from counterfoil.tests.ledger.world import POLICY, World
from counterfoil.tests.races.waiting import Thread, until_blocked

CALL = Call("reports", "generate", {}, "run/1")
P = POLICY.protocol


def off(world: World) -> None:
    switches.set_adapter(world.database, "main", P, "off", reason="race", known=(P,))


def off_beside_a_door(world: World, *, commit: bool) -> Thread:
    world.store.register_targets([("reports", P)])
    with world.owner() as producer, producer.transaction(force_rollback=not commit):
        world.client.submit_in(producer, [CALL])
        switch = Thread(lambda: off(world))
        until_blocked(world, 1)
    return switch


def modes(world: World) -> list[tuple[object, ...]]:
    return world.sql("SELECT mode FROM counterfoil.adapter_mode")


def test_what_came_in_keeps_the_version_in_use(world: World) -> None:
    with pytest.raises(CounterfoilError, match="E_ADAPTER_IN_USE"):
        off_beside_a_door(world, commit=True).outcome()
    assert modes(world) == []


def test_what_did_not_come_in_does_not(world: World) -> None:
    off_beside_a_door(world, commit=False).outcome()
    assert modes(world) == [("off",)]


def test_a_producer_in_a_long_transaction_keeps_it_and_is_not_ended(world: World) -> None:
    world.store.register_targets([("reports", P)])
    with world.owner() as producer, producer.transaction():
        world.client.submit_in(producer, [CALL])
        with pytest.raises(CounterfoilError, match="E_BUMP_BLOCKED"):
            off(world)
        switches.set_create(world.database, "main", on=False, reason="at once")
    assert world.client.get("run/1").state == "SUBMITTING"
    assert modes(world) == []
