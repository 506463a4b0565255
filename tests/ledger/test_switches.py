"""What people switch: each turned whole, seen by every door after it, and refused where it would hurt."""

import threading
from typing import Any

import pytest

from counterfoil.ledger import epochs, switches
from counterfoil.ledger.errors import CounterfoilError, CreateStopped, InputRefused, StaleEpoch
from counterfoil.ledger.events import CancelAcknowledged, CancelAsked
from counterfoil.ledger.intents import Denied, Granted
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import POLICY, World

SPOKEN = ("mcp-2026-07-28", "mcp-2025-11-25", "mcp-sync")
P = POLICY.protocol


def code(asked: Any) -> str:
    with pytest.raises(CounterfoilError) as refused:
        asked()
    assert refused.value.next_step
    return refused.value.code


def turn(world: World, mode: switches.Mode, protocol: str = P) -> None:
    switches.set_adapter(world.database, "main", protocol, mode, reason="drill", known=SPOKEN)


def adapter(world: World, protocol: str = P) -> switches.AdapterNow:
    with world.database.begin() as connection:
        return next(one for one in switches.adapters_now(connection, "main", SPOKEN) if one.protocol == protocol)


def now(world: World) -> switches.EpochNow:
    with world.database.begin() as connection:
        return switches.epoch_now(connection, "main")


# -- epochs ------------------------------------------------------------------------------------------------------------


def test_an_epoch_is_raised_to_a_number_and_the_same_number_again_changes_nothing(world: World) -> None:
    assert epochs.bump(world.database, "main", "release 7", to=7) == 7
    assert epochs.bump(world.database, "main", "its hook ran again", to=7) == 7
    assert (now(world).epoch, now(world).reason) == (7, "release 7")


def test_an_epoch_never_goes_down_and_says_what_to_do_instead(world: World) -> None:
    epochs.bump(world.database, "main", "release 7", to=7)
    assert code(lambda: epochs.bump(world.database, "main", "helm rollback", to=6)) == "E_EPOCH_DOWN"
    assert (now(world).epoch, now(world).reason) == (7, "release 7")


def test_what_an_older_epoch_tried_is_counted(world: World) -> None:
    lease = world.claimed()
    assert (now(world).refused, now(world).last_refused_at) == (0, None)
    epochs.bump(world.database, "main", "roll-back")
    with pytest.raises(StaleEpoch):
        world.intend(lease)
    assert (now(world).refused, now(world).create_on) == (1, True)
    assert now(world).last_refused_at is not None


# -- new operations ----------------------------------------------------------------------------------------------------


def test_create_off_stops_the_door_and_the_intent_of_what_was_not_sent_and_on_lets_both_go_on(world: World) -> None:
    lease = world.claimed("run/1")
    switches.set_create(world.database, "main", on=False, reason="a bad release")
    with pytest.raises(CreateStopped):
        world.opened("run/2")
    denied = world.intend(lease)
    assert isinstance(denied, Denied)
    assert denied.code == "E_CREATE_OFF"
    assert (now(world).create_on, now(world).create_reason, now(world).epoch) == (False, "a bad release", 1)
    switches.set_create(world.database, "main", on=True, reason="mended")
    assert isinstance(world.intend(lease), Granted)
    world.opened("run/2")


def test_a_repeat_finds_its_operation_also_with_create_off(world: World) -> None:
    operation_id = world.opened("run/1")
    switches.set_create(world.database, "main", on=False, reason="drill")
    assert world.opened("run/1") == operation_id


def test_a_roll_back_stops_new_operations_and_bumps_in_one_transaction(world: World) -> None:
    """Seen from another connection there is never one without the other: both commit together or not at all."""
    assert switches.rollback(world.database, "main", "R2 loses answers") == 2
    ((bumped, switched),) = world.sql(
        "SELECT e.xmin::text, c.xmin::text FROM counterfoil.execution_epoch AS e, counterfoil.control AS c"
    )
    assert bumped == switched
    assert (now(world).epoch, now(world).reason, now(world).create_on) == (2, "roll-back: R2 loses answers", False)


def test_a_roll_back_gives_what_older_workers_hold_to_the_new_ones_at_once(world: World) -> None:
    lease = world.claimed()
    world.serve(switches.rollback(world.database, "main", "drill"))
    taken = world.claim()[lease.operation_id]
    assert taken.token != lease.token


def test_a_switch_waits_for_the_door_that_stands_open_and_the_next_door_sees_it(world: World) -> None:
    """A producer has handed a call in and not committed. The roll-back waits: after it no call of before can still
    come in."""
    world.store.register_targets([("reports", P)])
    done = threading.Event()

    def roll_back() -> None:
        switches.rollback(world.database, "main", "drill")
        done.set()

    with world.owner() as producer, producer.transaction():
        world.client.submit_in(producer, [])
        producer.execute("SELECT epoch FROM counterfoil.execution_epoch FOR SHARE")
        thread = threading.Thread(target=roll_back)
        thread.start()
        waiting = (
            "SELECT count(*) FROM pg_locks WHERE relation = 'counterfoil.execution_epoch'::regclass AND NOT granted"
        )
        while world.sql(waiting) == [(0,)]:
            pass
        assert not done.is_set()
    thread.join()
    assert done.is_set()
    with pytest.raises(CreateStopped):
        world.opened()


@pytest.mark.parametrize(
    "switch",
    [
        lambda database: switches.set_create(database, "nowhere", on=False, reason=""),
        lambda database: switches.rollback(database, "nowhere", ""),
        lambda database: switches.set_adapter(database, "nowhere", P, "drain", reason="", known=SPOKEN),
    ],
    ids=["create", "rollback", "adapter"],
)
def test_a_fleet_that_does_not_exist_has_no_switches(world: World, switch: Any) -> None:
    assert code(lambda: switch(world.database)) == "E_FLEET_UNKNOWN"
    assert world.sql("SELECT count(*) FROM counterfoil.control") == [(1,)]


# -- protocol versions -------------------------------------------------------------------------------------------------


def test_a_draining_version_takes_no_new_call_and_sends_no_unsent_one(world: World) -> None:
    lease = world.claimed("run/1")
    working = world.working("run/2", "t-2")
    turn(world, "drain")
    with pytest.raises(CreateStopped, match="E_ADAPTER_DRAINING"):
        world.opened("run/3")
    denied = world.intend(lease)
    assert isinstance(denied, Denied)
    assert denied.code == "E_ADAPTER_DRAINING"
    world.bring(working, CancelAsked("stop"), lane=Lane.DOOR)
    cancel = world.claim(Lane.CANCEL)[working]
    assert isinstance(world.intend(cancel, effect="cancel", generation=1), Granted)


def test_a_version_is_in_use_until_its_last_operation_and_audit_are_over(world: World) -> None:
    unsent, working = world.opened("run/1"), world.working("run/2", "t-2")
    assert (adapter(world).operations, adapter(world).targets) == (2, ("reports",))
    turn(world, "drain")
    assert code(lambda: turn(world, "off")) == "E_ADAPTER_IN_USE"
    world.ended(working)
    assert (adapter(world).operations, adapter(world).mode) == (1, "drain")
    assert code(lambda: turn(world, "off")) == "E_ADAPTER_IN_USE"
    world.bring(unsent, CancelAsked("stop"), lane=Lane.DOOR)
    turn(world, "off")
    assert (adapter(world).mode, adapter(world).reason, adapter(world).operations) == ("off", "drill", 0)


def test_an_audit_after_a_won_cancel_keeps_its_version_in_use(database: str) -> None:
    world = World(database, policy=POLICY.model_copy(update={"cancel_is_evidence": True}))
    try:
        operation_id = world.working()
        world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
        world.intend(world.claim(Lane.CANCEL)[operation_id], effect="cancel", generation=1)
        world.bring(operation_id, CancelAcknowledged(1, cancelled=True), lane=Lane.CANCEL)
        assert (world.state(operation_id), adapter(world).operations, adapter(world).audits) == (
            *("CANCELLED_ACCEPTED", 0),
            1,
        )
        assert code(lambda: turn(world, "off")) == "E_ADAPTER_IN_USE"
    finally:
        world.close()


def test_one_versions_operations_hold_no_other_version(world: World) -> None:
    world.working()
    turn(world, "off", "mcp-sync")
    assert (adapter(world, "mcp-sync").mode, adapter(world).mode) == ("off", "open")


def test_an_unknown_version_is_refused_and_the_nearest_is_named(world: World) -> None:
    with pytest.raises(InputRefused, match=r"Did you mean mcp-2025-11-25\?") as refused:
        turn(world, "drain", "mcp-2025-11-24")
    assert refused.value.code == "E_PROTOCOL_UNKNOWN"
    assert world.sql("SELECT count(*) FROM counterfoil.adapter_mode") == [(0,)]


def test_a_version_whose_adapter_is_gone_can_be_switched_while_the_ledger_names_it(world: World) -> None:
    world.store.register_targets([("attic", "mcp-2024-11-05")])
    turn(world, "off", "mcp-2024-11-05")
    assert adapter(world, "mcp-2024-11-05").mode == "off"


def test_an_opened_version_takes_calls_again(world: World) -> None:
    turn(world, "off")
    turn(world, "open")
    world.opened()
