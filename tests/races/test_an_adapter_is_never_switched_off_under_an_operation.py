"""`adapters off` while a producer hands a call of that protocol in.

The switch counts what is open; an operation in a transaction that is not committed yet is not to be seen. So the switch
waits for every open door, and every later door waits for the switch: either it is refused (E_ADAPTER_IN_USE), or the
call is (E_ADAPTER_DRAINING). Never an operation whose adapter is off.
"""

import pytest

from counterfoil.ledger import switches
from counterfoil.ledger.client import Call
from counterfoil.ledger.errors import CounterfoilError, CreateStopped
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.waiting import Thread, held, until_blocked

CALL = Call("reports", "generate", {"month": "2026-10"}, "run/1")
PROTOCOL = "mcp-2026-07-28"


def switch_off(world: World) -> Thread:
    def turn() -> str:
        try:
            switches.set_adapter(world.database, "main", PROTOCOL, "off", reason="dead", known=(PROTOCOL,))
        except CounterfoilError as error:
            return error.code
        return "off"

    return Thread(turn)


@pytest.mark.parametrize("commits", [True, False], ids=["committed", "rolled back"])
def test_it_waits_for_the_door_that_is_open(world: World, commits: bool) -> None:
    world.store.register_targets([("reports", PROTOCOL)])
    with world.owner() as connection, connection.transaction(force_rollback=not commits):
        world.client.submit_in(connection, [CALL])
        off = switch_off(world)
        until_blocked(world, 1)
    assert off.outcome() == ("E_ADAPTER_IN_USE" if commits else "off")
    assert world.sql("SELECT count(*) FROM counterfoil.operation") == [(int(commits),)]
    assert world.sql("SELECT count(*) FROM counterfoil.adapter_mode") == [(int(not commits),)]


def test_the_door_that_comes_later_waits_for_it_and_is_refused(world: World) -> None:
    """The wait-point: the switch has the epoch's lock and has counted nothing, and waits to write."""
    world.store.register_targets([("reports", PROTOCOL)])
    with held(world, "LOCK TABLE counterfoil.adapter_mode IN SHARE MODE"):
        off = switch_off(world)
        until_blocked(world, 1)
        door = Thread(world.opened)
        until_blocked(world, 2)
    assert off.outcome() == "off"
    with pytest.raises(CreateStopped, match="E_ADAPTER_DRAINING"):
        door.outcome()
    assert world.sql("SELECT count(*) FROM counterfoil.operation") == [(0,)]
