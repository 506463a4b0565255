"""The outbox as webhooks see it: leases, acknowledgements that count from whoever brings them, one failure a round."""

import pytest

from counterfoil.ledger.pushes import Failing, Push, Pushes, resume_webhook, webhook_endpoints
from counterfoil.tests.ledger.world import World

DAY_S = 86_400.0


@pytest.fixture
def pushes(world: World) -> Pushes:
    """Three receipts wait."""
    world.freeze()
    for number in range(3):
        world.ended(world.working(f"run/{number}", f"t-{number}"))
        world.pass_time(1)
    return Pushes(world.database)


def take(pushes: Pushes, limit: int = 8) -> list[Push]:
    return pushes.take("default", limit=limit, lease_s=30.0, result_bytes=0)


def failing(failures: int = 1, *, gone: bool = False) -> Failing:
    return Failing(failures, 1.0, "HTTP 500", gone, 3 * DAY_S)


def test_a_late_failure_does_not_give_back_what_another_holds_by_now(world: World, pushes: Pushes) -> None:
    (mine,) = take(pushes, 1)
    world.pass_time(30)
    (theirs,) = take(pushes, 1)
    assert (theirs.id, theirs.deliveries) == (mine.id, 2)
    pushes.settle("default", [], [(mine, 0.0)], None)
    assert mine.id not in {push.id for push in take(pushes)}


def test_a_late_yes_counts_whoever_holds_the_row(world: World, pushes: Pushes) -> None:
    (mine,) = take(pushes, 1)
    world.pass_time(30)
    (theirs,) = take(pushes, 1)
    pushes.settle("default", [mine], [], None)
    pushes.settle("default", [], [(theirs, 0.0)], None)
    world.pass_time(60)
    assert mine.id not in {push.id for push in take(pushes)}


def test_pull_and_push_share_the_lease_but_a_back_off_binds_the_push_alone(world: World, pushes: Pushes) -> None:
    (first,) = take(pushes, 1)
    assert first.id not in {row.id for row in world.client.ready(lease_s=5)}
    assert take(pushes) == [], "pulled"
    pushes.settle("default", [], [(first, 600.0)], None)
    world.pass_time(5)
    assert first.id not in {push.id for push in take(pushes)}
    assert first.id in {row.id for row in world.client.ready(lease_s=5)}


def test_two_processes_that_fail_at_the_same_time_are_one_failure(world: World, pushes: Pushes) -> None:
    one, two = take(pushes, 1), take(pushes, 1)
    for batch in (one, two):
        pushes.settle("default", [], [(batch[0], 1.0)], failing(batch[0].failures + 1))
    assert [endpoint.failures for endpoint in webhook_endpoints(world.database)] == [1]


def test_a_failing_endpoint_is_due_again_at_its_moment_for_one_process_with_one_event(
    world: World, pushes: Pushes
) -> None:
    pushes.settle("default", [], [(push, 0.0) for push in take(pushes)], failing())
    assert pushes.due(["default"]) == take(pushes) == []
    world.pass_time(1)
    assert pushes.due(["default", "another"]) == ["default"]
    (probe,) = take(pushes)
    assert probe.failures == 1
    assert pushes.due(["default"]) == take(pushes) == []
    pushes.settle("default", [probe], [], None)
    assert [push.failures for push in take(pushes)] == [0, 0]


def test_a_prober_that_dies_is_followed_by_another_when_its_lease_is_over(world: World, pushes: Pushes) -> None:
    pushes.settle("default", [], [(push, 0.0) for push in take(pushes)], failing())
    world.pass_time(1)
    assert len(take(pushes)) == 1
    world.pass_time(29)
    assert take(pushes) == []
    world.pass_time(1)
    assert len(take(pushes)) == 1


@pytest.mark.parametrize("gone", [True, False])
def test_a_stopped_endpoint_stays_stopped_and_keeps_its_first_reason_until_it_is_resumed(
    world: World, pushes: Pushes, *, gone: bool
) -> None:
    assert pushes.settle("default", [], [(push, 9e5) for push in take(pushes)], failing(gone=gone)) is gone
    world.pass_time(3 * DAY_S - 1)
    assert pushes.settle("default", [], [], failing(2)) is gone
    world.pass_time(1)
    assert pushes.settle("default", [], [], Failing(3, 0.0, "HTTP 404", gone=False, give_up_s=3 * DAY_S))
    (known,) = webhook_endpoints(world.database)
    assert known.why == ("HTTP 500" if gone else "HTTP 404")
    world.pass_time(30 * DAY_S)
    assert pushes.due(["default"]) == take(pushes) == []
    assert resume_webhook(world.database, "default")
    assert len(take(pushes)) == 3, "all at once, whatever they waited for"


def test_only_what_a_result_may_weigh_comes_along(world: World, pushes: Pushes) -> None:
    sizes = [len(push.result_body or b"") for push in pushes.take("default", limit=1, lease_s=1, result_bytes=10_000)]
    assert sizes == [len(b'{"result":{"structuredContent":{"rows":3}}}')]
    assert [push.result_body for push in pushes.take("default", limit=1, lease_s=1, result_bytes=42)] == [None]


def test_the_timestamp_is_the_ledgers(world: World, pushes: Pushes) -> None:
    (frozen,) = world.sql("SELECT extract(epoch FROM frozen_at)::int8 FROM counterfoil.ledger_clock")
    assert {push.now_s for push in take(pushes)} == set(frozen)
