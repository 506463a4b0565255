"""The execution epoch: doors take the current one, workers keep theirs for life, a bump gets through."""

import time

import psycopg
import pytest

from counterfoil.ledger import epochs
from counterfoil.ledger.errors import InputRefused, StaleEpoch
from counterfoil.tests.ledger.world import World


def test_a_bump_raises_the_epoch_by_one_and_says_why(world: World) -> None:
    assert epochs.current_epoch(world.database, "main") == 1
    assert [epochs.bump(world.database, "main", "roll-back of R2"), epochs.bump(world.database, "main", "x" * 999)] == [
        2,
        3,
    ]
    assert world.sql("SELECT epoch, length(reason) FROM counterfoil.execution_epoch") == [(3, 200)]


def test_a_fleet_that_does_not_exist_has_no_epoch(world: World) -> None:
    for ask in (
        lambda: epochs.current_epoch(world.database, "nowhere"),
        lambda: epochs.bump(world.database, "nowhere", "test"),
    ):
        with pytest.raises(InputRefused, match="E_FLEET_UNKNOWN"):
            ask()


def test_the_fence_refuses_any_other_number_also_one_that_is_still_to_come(world: World) -> None:
    for wrong in (0, 2):
        with (
            world.database.begin() as connection,
            pytest.raises(StaleEpoch, match=f"worker epoch {wrong}, ledger epoch 1"),
        ):
            epochs.check_fence(connection, "main", wrong)
    with world.database.begin() as connection:
        assert epochs.check_fence(connection, "main", 1) == epochs.check_fence(connection, "main", None) == 1


def test_a_held_fence_keeps_a_bump_out_and_a_plain_read_does_not(world: World) -> None:
    with world.owner() as holder, world.owner() as other:
        with holder.transaction():
            holder.execute("SELECT epoch FROM counterfoil.execution_epoch FOR SHARE")
            other.execute("SET lock_timeout = '50ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable), other.transaction():
                other.execute("LOCK TABLE counterfoil.execution_epoch IN EXCLUSIVE MODE")
        with other.transaction():
            other.execute("LOCK TABLE counterfoil.execution_epoch IN EXCLUSIVE MODE")
            assert holder.execute("SELECT epoch FROM counterfoil.execution_epoch").fetchone() == (1,)


def test_a_client_that_holds_the_epoch_and_does_not_move_is_ended(world: World) -> None:
    """Review X8: a bump that only waits fails behind one stopped client, and every accept waits with it."""
    with world.owner() as stopped:
        stopped.execute("BEGIN")
        stopped.execute("SELECT epoch FROM counterfoil.execution_epoch FOR SHARE")
        began_s = time.monotonic()
        assert epochs.bump(world.database, "main", "test") == 2
        assert time.monotonic() - began_s < 3.0
        with pytest.raises(psycopg.OperationalError):
            stopped.execute("SELECT 1")
        stopped.close()
    with world.database.autocommit() as connection:  # the connection that ended it works under its role again
        assert connection.exec_driver_sql("SELECT current_user").scalar_one() == "counterfoil_app"
