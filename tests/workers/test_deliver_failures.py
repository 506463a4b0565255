"""Receivers that fail: what is tried again and when, what stops, what is told; secrets nowhere."""

import logging
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from counterfoil.ledger.pushes import resume_webhook
from counterfoil.tests.ledger.world import World
from counterfoil.tests.workers.kit_deliver import (
    delivering,
    endpoint,
    failed,
    hook_of,
    open_rows,
    settled,
    tried,
    until,
)
from counterfoil.tests.workers.kit_receiver import SECRET, Receiver, receiver, saying
from counterfoil.workers import deliver
from counterfoil.workers.webhooks import Webhook


@pytest.fixture
def world(database: str) -> Iterator[World]:
    made = World(database)
    yield made
    made.close()


@pytest.fixture
def hooks() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (saying(500), "HTTP 500"),
        (saying(404), "HTTP 404"),
        (saying(302, Location="http://127.0.0.1:1/elsewhere"), "HTTP 302 (redirects are not followed)"),
        (lambda _: (200, {}, b"x" * (deliver.MAX_ANSWER_BYTES + 1)), "the answer is larger than 1048576 bytes"),
    ],
    ids=["error", "missing", "redirect", "huge"],
)
def test_what_is_no_plain_yes_is_tried_again_later_with_the_same_id(
    world: World, hooks: Receiver, rule: Any, why: str
) -> None:
    world.freeze()
    (ready,) = settled(world)
    hooks.rules["/hooks"] = rule
    with delivering(world, hook_of(hooks)):
        until(world, lambda: failed(world))
        known = endpoint(world)
        assert known is not None
        assert (known.failures, known.why) == (1, why)
        del hooks.rules["/hooks"]
        world.pass_time(1.0)
        assert len(hooks.at()) == 1, "one second and its jitter are not over"
        world.pass_time(0.2)
        hooks.wait_for(2)
        until(world, lambda: open_rows(world) == 0)
        until(world, lambda: not failed(world))
    assert hooks.counts() == {ready: 2}


def test_a_receiver_that_never_answers_costs_one_deadline(
    world: World, hooks: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "DEADLINE_S", 0.2)
    settled(world)
    go_on = threading.Event()
    hooks.rules["/hooks"] = lambda _: (200 if go_on.wait(20) else 500, {}, b"")
    with delivering(world, hook_of(hooks)):
        until(world, lambda: failed(world))
        go_on.set()
    assert endpoint(world).why == "the deadline passed"  # type: ignore[union-attr]


@pytest.mark.parametrize("status", [429, 503])
def test_a_receiver_says_itself_when_it_may_be_asked_again(world: World, hooks: Receiver, status: int) -> None:
    world.freeze()
    settled(world, 2)
    hooks.rules["/hooks"] = saying(status, Retry_After="600")
    with delivering(world, hook_of(hooks)):
        until(world, lambda: failed(world))
        del hooks.rules["/hooks"]
        world.pass_time(599)
        due = "SELECT next_at - counterfoil.ledger_now() FROM counterfoil.webhook_endpoint"
        assert world.sql(due)[0][0].total_seconds() == 1
        assert len(hooks.at()) == 2
        world.pass_time(1)
        until(world, lambda: open_rows(world) == 0)


def test_a_failing_endpoint_is_probed_with_one_event_and_then_gets_everything(world: World, hooks: Receiver) -> None:
    world.freeze()
    settled(world, 5)
    hooks.rules["/hooks"] = saying(500)
    with delivering(world, hook_of(hooks)), delivering(world, hook_of(hooks)):
        until(world, lambda: tried(world, 1))
        world.pass_time(1.2)
        until(world, lambda: tried(world, 2))
        assert len(hooks.at()) == 6
        del hooks.rules["/hooks"]
        world.pass_time(3)
        until(world, lambda: open_rows(world) == 0)
    assert sorted(hooks.counts().values()) == [2, 2, 2, 2, 3]


def test_an_event_that_its_receiver_can_not_digest_holds_up_nothing_behind_it(world: World, hooks: Receiver) -> None:
    """It failed before, so it backs off alone: what comes later arrives at once, however often it fails."""
    world.freeze()
    (poison,) = settled(world)
    hooks.rules["/hooks"] = lambda hook: (500 if hook.id == poison else 200, {}, b"")
    with delivering(world, hook_of(hooks)):
        for tries in range(1, 6):
            until(world, partial(tried, world, tries))
            world.pass_time(1.2 * 2 ** (tries - 1))
        until(world, lambda: tried(world, 6))
        assert endpoint(world).failures == 1  # type: ignore[union-attr]
        world.ended(world.working("run/later", "later"))
        world.pass_time(1.2)
        until(world, lambda: open_rows(world) == 1)
        until(world, lambda: endpoint(world) is None)


def test_410_stops_the_endpoint_until_it_is_resumed(
    world: World, hooks: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    world.freeze()
    settled(world, 3)
    hooks.rules["/hooks"] = saying(410)
    with caplog.at_level(logging.WARNING), delivering(world, hook_of(hooks)):
        until(world, lambda: failed(world))
        until(world, lambda: "is stopped: HTTP 410" in caplog.text)
        del hooks.rules["/hooks"]
        world.pass_time(7 * 86_400)
        world.ended(world.working("run/later", "later"))
        assert endpoint(world).stopped_at is not None  # type: ignore[union-attr]
        assert len(world.client.ready(lease_s=1)) == 4, "they can be pulled meanwhile"
        world.pass_time(2)
        assert len(hooks.at()) == 3
        assert resume_webhook(world.database, "default")
        assert not resume_webhook(world.database, "default")
        until(world, lambda: open_rows(world) == 0)
    assert len(hooks.at()) == 7


def test_three_days_without_a_success_stop_the_endpoint(world: World, hooks: Receiver) -> None:
    world.freeze()
    settled(world)
    hooks.rules["/hooks"] = saying(500)
    with delivering(world, hook_of(hooks)):
        until(world, lambda: failed(world))
        for tries in range(2, 14):
            assert endpoint(world).stopped_at is None  # type: ignore[union-attr]
            world.pass_time(deliver.LAST_RETRY_S * 6)
            until(world, partial(tried, world, tries))
        assert endpoint(world).stopped_at is not None, "12 times 6 hours after the first failure"  # type: ignore[union-attr]
    assert endpoint(world).why == "HTTP 500"  # type: ignore[union-attr]


def test_a_private_address_is_refused_unless_it_is_meant(world: World, hooks: Receiver) -> None:
    settled(world)
    webhook = Webhook("default", "http://169.254.169.254/latest", ("env:HOOK",), False, False)
    with delivering(world, webhook):
        until(world, lambda: failed(world))
    assert "E_ADDRESS_REFUSED" in str(endpoint(world).why)  # type: ignore[union-attr]


@pytest.mark.parametrize("secret", [None, "whsec_hunter2hunter2hunter2"], ids=["missing", "unusable"])
def test_a_secret_that_is_missing_or_bad_sends_nothing_and_is_shown_nowhere(
    world: World, hooks: Receiver, caplog: pytest.LogCaptureFixture, secret: str | None
) -> None:
    settled(world)
    environ = {} if secret is None else {"HOOK": secret}
    with caplog.at_level(logging.DEBUG), delivering(world, hook_of(hooks), environ=environ):
        until(world, lambda: failed(world))
        until(world, lambda: "did not take" in caplog.text)
    assert hooks.hooks == []
    why = str(endpoint(world).why)  # type: ignore[union-attr]
    assert "HOOK" in why or "whsec_" in why
    assert "hunter2" not in why + caplog.text


def test_secrets_and_urls_reach_no_log_and_no_row(
    world: World, hooks: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    settled(world, 2)
    path = "/hooks?token=canary-in-the-url"
    hooks.rules[path] = saying(500)
    with caplog.at_level(logging.DEBUG), delivering(world, hook_of(hooks, path=path)):
        until(world, lambda: failed(world))
        hooks.rules[path] = saying(410)
        until(world, lambda: "is stopped" in caplog.text)
    tables = world.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'counterfoil'")
    rows = " ".join(str(world.sql(f"SELECT t::text FROM counterfoil.{name} AS t")) for (name,) in tables)
    for canary in (SECRET, SECRET.removeprefix("whsec_"), "canary-in-the-url"):
        assert canary not in rows
        assert canary not in caplog.text


def test_a_ledger_that_is_away_is_waited_for(world: World, hooks: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    world.sql("ALTER TABLE counterfoil.ready_outbox RENAME TO away")
    with caplog.at_level(logging.WARNING), delivering(world, hook_of(hooks)):
        until(world, lambda: "webhooks wait: E_SCHEMA" in caplog.text)
        world.sql("ALTER TABLE counterfoil.away RENAME TO ready_outbox")
        settled(world)
        hooks.wait_for(1)
    assert caplog.text.count("webhooks wait") == 1, "said once, not each tick"


def test_the_back_off_doubles_from_a_second_to_an_hour_and_jitter_only_adds() -> None:
    assert [deliver.backoff_s(tries, 0.0) for tries in (1, 2, 3, 12, 13, 10_000)] == [1, 2, 4, 2048, 3600, 3600]
    assert deliver.backoff_s(1, 1.0) == 1.25
