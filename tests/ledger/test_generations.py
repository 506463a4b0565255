"""Generations: configuration may go back, the epoch never does; and who is of another release does not come in."""

import pytest

from counterfoil.ledger import epochs, switches
from counterfoil.ledger.errors import StaleEpoch
from counterfoil.ledger.generations import adopt, join
from counterfoil.tests.ledger.world import World


def now(world: World) -> switches.EpochNow:
    with world.database.begin() as connection:
        return switches.epoch_now(connection, "main")


def test_another_generation_raises_the_epoch_whether_it_is_higher_or_lower_and_the_same_does_nothing(
    world: World,
) -> None:
    told = [adopt(world.database, "main", generation, "a release") for generation in (3, 3, 4, 3, 3)]
    assert [(one.epoch, one.raised) for one in told] == [(2, True), (2, False), (3, True), (4, True), (4, False)]
    assert (now(world).generation, now(world).epoch, now(world).reason) == (3, 4, "a release")


def test_a_worker_of_another_release_does_not_come_in_and_one_without_a_name_does(world: World) -> None:
    """The race: a bump ends the bad release's workers, and whoever runs them starts them anew, in the new epoch."""
    with pytest.raises(StaleEpoch, match="E_GENERATION: this worker is of generation 3, the ledger is in none"):
        join(world.database, "main", 3)
    adopt(world.database, "main", 4, "release 4")
    assert join(world.database, "main", 4) == join(world.database, "main", None) == 2
    switches.rollback(world.database, "main", "release 4 loses answers", generation=3)
    with pytest.raises(StaleEpoch, match="generation 4, the ledger is in 3"):
        join(world.database, "main", 4)
    assert join(world.database, "main", 3) == 3


def test_a_bump_by_hand_leaves_the_generation(world: World) -> None:
    adopt(world.database, "main", 4, "release 4")
    epochs.bump(world.database, "main", "by hand")
    assert join(world.database, "main", 4) == 3


def test_a_roll_back_with_the_key_of_the_last_bump_does_nothing(world: World) -> None:
    """Its hook committed and died before it could say so; meanwhile somebody switched new operations on again."""
    assert switches.rollback(world.database, "main", "drill", generation=3, once="job-1") == 2
    switches.set_create(world.database, "main", on=True, reason="all is well")
    assert switches.rollback(world.database, "main", "drill", generation=3, once="job-1") == 2
    assert (now(world).epoch, now(world).create_on) == (2, True)
    assert switches.rollback(world.database, "main", "drill", generation=3, once="job-2") == 3
    assert (now(world).epoch, now(world).create_on) == (3, False)
    assert switches.rollback(world.database, "main", "drill") == 4
    assert switches.rollback(world.database, "main", "without a key each is one") == 5


def test_values_switch_on_again_only_what_values_switched_off(world: World) -> None:
    def adopted(generation: int, *, create: bool) -> tuple[int, bool]:
        adopt(world.database, "main", generation, "values", create=create)
        return now(world).epoch, now(world).create_on

    assert adopted(1, create=True) == (2, True)
    assert adopted(1, create=False) == (2, False)  # without a bump
    assert adopted(2, create=False) == (3, False)  # and with one
    assert adopted(3, create=True) == (4, True)
    switches.set_create(world.database, "main", on=False, reason="reports is down until noon")
    assert adopted(4, create=True) == (5, False)
    switches.set_create(world.database, "main", on=True, reason="it is back")
    assert adopted(4, create=True) == (5, True)
    switches.rollback(world.database, "main", "drill", generation=3)
    assert adopted(3, create=True) == (6, False)
