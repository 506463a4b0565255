"""Claims, kicks and leases: a kick never touches a lease, a release never eats a kick (SPEC section 6, review B4)."""

import uuid
from dataclasses import replace

import pytest

from counterfoil.ledger import epochs
from counterfoil.ledger.events import CancelAcknowledged, CancelAsked, Progressed, TaskBound
from counterfoil.ledger.states import Lane
from counterfoil.ledger.store import Due
from counterfoil.ledger.work import Item
from counterfoil.tests.ledger.world import World

BOUND = TaskBound(1, "t-1", "working", None, None, 1000)


def test_a_claim_writes_the_wake_row_and_nothing_else(world: World) -> None:
    operation_id = world.opened()
    before = world.sql("SELECT * FROM counterfoil.operation")
    lease = world.claim(lease_s=20)[operation_id]
    assert world.sql("SELECT * FROM counterfoil.operation") == before
    row = world.wakes(operation_id)["submit"]
    assert (row["lease_token"], row["lease_epoch"]) == (lease.token, world.epoch)
    assert (
        row["due_in_s"] == pytest.approx(row["lease_left_s"], abs=0.1) == pytest.approx(20, abs=2)
    )  # a dead holder's row is simply due again


def test_a_claimed_row_is_nobody_elses_until_its_lease_ends(world: World) -> None:
    world.freeze()
    operation_id = world.opened()
    first = world.claim(lease_s=5)[operation_id]
    assert world.claim() == {}
    world.pass_time(5.1)
    second = world.claim()[operation_id]
    assert second.token != first.token
    assert (first.claim_count, second.claim_count) == (0, 1)  # it was claimed and nothing came of it
    assert second.read_seq > first.read_seq


def test_a_row_is_claimed_ahead_and_its_lease_counts_from_the_due_moment(world: World) -> None:
    world.freeze()
    operation_id = world.working(interval_ms=2000)
    assert world.claim(Lane.POLL, ahead_s=1.0) == {}
    lease = world.claim(Lane.POLL, ahead_s=2.5, lease_s=8)[operation_id]
    assert lease.due_in_s == pytest.approx(2.0)
    assert world.wakes(operation_id)["poll"]["lease_left_s"] == pytest.approx(10.0)


def test_a_release_moves_the_due_moment(world: World) -> None:
    world.freeze()
    operation_id = world.opened()
    lease = world.claim()[operation_id]
    world.store.release([(lease, 7.0)])
    row = world.wakes(operation_id)["submit"]
    assert (row["lease_token"], row["claim_count"], row["due_in_s"]) == (None, 0, pytest.approx(7.0))


def test_a_failed_release_counts_the_claim(world: World) -> None:
    operation_id = world.opened()
    world.store.release([(world.claim()[operation_id], 0.0)], failed=True)
    assert world.claim()[operation_id].claim_count == 1


def test_a_release_with_a_lost_token_changes_nothing(world: World) -> None:
    operation_id = world.opened()
    lease = world.claim()[operation_id]
    world.store.release([(replace(lease, token=uuid.uuid4()), 99.0)])
    assert world.wakes(operation_id)["submit"]["lease_token"] == lease.token


def test_a_kick_never_touches_a_lease_and_a_release_never_eats_a_kick(world: World) -> None:
    world.freeze()
    operation_id = world.working()
    world.pass_time(5)
    poller = world.claim(Lane.POLL)[operation_id]
    kicked = world.sql(
        "UPDATE counterfoil.wake SET kick = kick + 1, due_at = counterfoil.ledger_now() WHERE lane = 'poll'"
        " RETURNING lease_token"
    )
    assert kicked == [(poller.token,)]
    world.store.release([(poller, 300.0)])
    row = world.wakes(operation_id)["poll"]
    assert (row["lease_token"], row["due_in_s"]) == (None, pytest.approx(0.0))


def test_a_cancel_during_a_polled_lease_is_due_at_once_and_stays_so_when_the_poll_is_applied(world: World) -> None:
    """Review B4: with one row for all lanes the apply wrote lane `poll`, due in 300 s, over the cancel."""
    world.freeze()
    operation_id = world.working()
    world.pass_time(5)
    poller = world.claim(Lane.POLL)[operation_id]
    world.door.apply([Item(operation_id, Lane.DOOR, (CancelAsked("stop"),))])
    rows = world.wakes(operation_id)
    assert rows["cancel"]["due_in_s"] == pytest.approx(0.0)
    assert rows["poll"]["lease_token"] == poller.token  # the poller keeps what it holds
    world.bring(operation_id, Progressed(poller.read_seq, "working", None, None, 300_000), lease=poller)
    rows = world.wakes(operation_id)
    assert rows["cancel"]["due_in_s"] == pytest.approx(0.0)
    assert rows["poll"]["due_in_s"] == pytest.approx(300.0)


def test_a_transition_kicks_a_leased_row_that_its_decision_names(world: World) -> None:
    world.freeze()
    operation_id = world.working()
    world.pass_time(5)
    poller = world.claim(Lane.POLL)[operation_id]
    world.door.apply([Item(operation_id, Lane.DOOR, (CancelAsked("stop"),))])
    canceller = world.claim(Lane.CANCEL)[operation_id]
    world.intend(canceller, effect="cancel", generation=1)
    world.bring(operation_id, CancelAcknowledged(1, cancelled=False), lease=canceller)  # read now, it says
    row = world.wakes(operation_id)["poll"]
    assert (row["kick"], row["lease_token"], row["due_in_s"]) == (poller.kick + 1, poller.token, pytest.approx(0.0))
    assert world.store.reread([(operation_id, Lane.POLL, poller.token)]) == {(operation_id, Lane.POLL): poller.kick + 1}
    # What the poller read before it was kicked must not put the next reading off.
    world.bring(operation_id, Progressed(poller.read_seq, "working", None, None, 300_000), lease=poller)
    row = world.wakes(operation_id)["poll"]
    assert (row["lease_token"], row["due_in_s"]) == (None, pytest.approx(0.0))


def test_rows_that_the_new_state_does_not_name_go_even_if_leased(world: World) -> None:
    operation_id = world.working()
    world.sql("UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now()")
    poller = world.claim(Lane.POLL)[operation_id]
    world.ended(operation_id, None)
    assert set(world.wakes(operation_id)) == {"fetch"}
    assert world.store.renew([(operation_id, Lane.POLL, poller.token, 9.0)]) == {}
    assert world.store.reread([(operation_id, Lane.POLL, poller.token)]) == {}


def test_a_submitter_stays_resident_as_the_poller(world: World) -> None:
    """A transition may write the next lane's row already leased to its writer."""
    operation_id, lease, _ = world.sent()
    applied = world.bring(operation_id, BOUND, lease=lease, hold_s=8.0, hold_lanes=frozenset({Lane.POLL}))
    (held,) = applied.held
    assert (held.lane, held.token) == (Lane.POLL, lease.token)
    assert world.wakes(operation_id)["poll"]["lease_token"] == lease.token
    assert world.claim(Lane.POLL, ahead_s=60) == {}
    renewed = world.store.renew([(operation_id, Lane.POLL, lease.token, 9.0)])[operation_id, Lane.POLL]
    assert renewed.read_seq > held.read_seq  # a renewal reads again: its readings are younger


def test_a_renewal_takes_the_due_moment_along_whichever_statement_wrote_the_lease(world: World) -> None:
    """The two come from two calls of the clock, a microsecond apart and in either order: a row that was born leased
    kept its first due moment for ever, and was planned and claimed in vain twice a second."""
    operation_id, lease, _ = world.sent()
    world.bring(operation_id, BOUND, lease=lease, hold_s=8.0, hold_lanes=frozenset({Lane.POLL}))
    for until_s in (60.0, 120.0):
        assert world.store.renew([(operation_id, Lane.POLL, lease.token, until_s)])
        assert world.wakes(operation_id)["poll"]["due_in_s"] == pytest.approx(until_s, abs=5)
    assert world.store.plan([Lane.POLL], ahead_s=60.0, limit=200) == []


def test_nobody_stays_resident_longer_than_one_lease(world: World) -> None:
    operation_id, lease, _ = world.sent()
    far = TaskBound(1, "t-1", "working", None, None, 60_000)
    applied = world.bring(operation_id, far, lease=lease, hold_s=8.0, hold_lanes=frozenset({Lane.POLL}))
    assert applied.held == ()
    assert world.wakes(operation_id)["poll"]["lease_token"] is None


def test_jitter_only_makes_a_poll_later(world: World) -> None:
    world.freeze()
    operation_id, lease, _ = world.sent()
    world.bring(operation_id, BOUND, lease=lease, jitter=0.1)
    assert world.wakes(operation_id)["poll"]["due_in_s"] == pytest.approx(1.0)  # nobody's own row: no bearer, no jitter
    world.pass_time(1)
    poller = world.claim(Lane.POLL)[operation_id]
    world.bring(operation_id, Progressed(poller.read_seq, "working", None, None, 2000), lease=poller, jitter=0.1)
    assert world.wakes(operation_id)["poll"]["due_in_s"] == pytest.approx(2.2)


def test_a_lease_of_an_older_epoch_is_no_lease(world: World) -> None:
    operation_id = world.working()
    world.sql("UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now()")
    old = world.claim(Lane.POLL, lease_s=300)[operation_id]
    # a bump, without the sweep that only makes it quicker: the row still shows the old lease
    world.sql("UPDATE counterfoil.execution_epoch SET epoch = epoch + 1")
    world.sql("UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now()")
    young = World(world.url)
    lease = young.claim(Lane.POLL)[operation_id]
    assert lease.claim_count == 0  # not the row's fault
    assert young.wakes(operation_id)["poll"]["lease_epoch"] == world.epoch + 1
    world.store.release([(old, 0.0)])
    assert young.wakes(operation_id)["poll"]["lease_token"] == lease.token
    young.close()


def test_after_a_bump_the_leases_of_older_epochs_are_due_at_once(world: World) -> None:
    operation_id = world.working()
    world.sql("UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now()")
    world.claim(Lane.POLL, lease_s=300)
    epochs.bump(world.database, "main", "test")
    assert world.wakes(operation_id)["poll"]["due_in_s"] <= 0
    assert world.wakes(operation_id)["poll"]["lease_token"] is None


def test_plan_counts_what_is_due_up_to_its_limit(world: World) -> None:
    for number in range(3):
        world.opened(f"run/{number}")
    assert world.store.plan(list(Lane), ahead_s=1.0, limit=200) == [Due(Lane.SUBMIT, "reports", 3)]
    assert world.store.plan([Lane.SUBMIT, Lane.POLL], ahead_s=1.0, limit=2) == [Due(Lane.SUBMIT, "reports", 2)]
    world.claim()
    assert world.store.plan([Lane.SUBMIT], ahead_s=1.0, limit=200) == []


def test_plan_tells_when_what_is_due_soon_is_due_but_of_polls_which_are_claimed_ahead(world: World) -> None:
    world.freeze()
    world.store.release([(world.claimed("run/1"), 0.25)])
    world.working("run/2")
    assert world.store.plan([Lane.SUBMIT], ahead_s=0.2, limit=200) == []
    assert world.store.plan([Lane.SUBMIT], ahead_s=1.0, limit=200) == [Due(Lane.SUBMIT, "reports", 0, 0.25)]
    assert world.store.plan([Lane.POLL], ahead_s=1.0, limit=200) == [Due(Lane.POLL, "reports", 1)]
    world.opened("run/3")
    assert world.store.plan([Lane.SUBMIT], ahead_s=1.0, limit=200) == [Due(Lane.SUBMIT, "reports", 1, 0.25)]


def test_plan_counts_what_is_due_before_what_will_be(world: World) -> None:
    """Smallest input: a limit of one, a row that is due in a while and, made later, one that is due."""
    world.freeze()
    world.store.release([(world.claimed("run/1"), 0.25)])
    world.opened("run/2")
    assert world.store.plan([Lane.SUBMIT], ahead_s=1.0, limit=1) == [Due(Lane.SUBMIT, "reports", 1)]


def test_a_closed_target_is_left_alone_and_its_closing_only_grows(world: World) -> None:
    world.freeze()
    world.opened()
    assert world.store.close_target("reports", 60.0) == pytest.approx(60.0)
    assert world.store.close_target("reports", 5.0) == pytest.approx(60.0)
    assert world.store.plan([Lane.SUBMIT], ahead_s=0.0, limit=10) == []
    world.store.register_targets([("reports", "mcp-2026-07-28")])  # a worker that starts reopens nothing
    world.pass_time(60)
    assert world.store.plan([Lane.SUBMIT], ahead_s=0.0, limit=10) == [Due(Lane.SUBMIT, "reports", 1)]
