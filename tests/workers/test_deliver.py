"""Delivery on a real ledger to a real receiver: at least once, signed, one lease one delivery, nothing held up."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil.ledger import events
from counterfoil.tests.ledger.world import World
from counterfoil.tests.workers.kit_deliver import delivering, endpoint, hook_of, made, open_rows, settled, until
from counterfoil.tests.workers.kit_receiver import SECRET, Receiver, receiver
from counterfoil.workers import deliver, fleet
from counterfoil.workers.settings import Settings
from counterfoil.workers.traces import traceparent
from counterfoil.workers.webhooks import WebhooksError


@pytest.fixture
def world(database: str) -> Iterator[World]:
    made = World(database)
    yield made
    made.close()


@pytest.fixture
def hooks() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


# -- what is sent ----------------------------------------------------------------------------------------------------


def test_a_receipt_and_a_notice_arrive_signed_and_are_acknowledged(world: World, hooks: Receiver) -> None:
    (ready,) = settled(world)
    operation_id, lease, _ = world.sent("run/asks")
    world.bring(operation_id, events.SubmitUnclear(1, "E_NO_ANSWER", "lost"), lease=lease)
    with delivering(world, hook_of(hooks)):
        came = {hook.event["type"]: hook for hook in hooks.wait_for(2)}
        until(world, lambda: open_rows(world) == 0)
    receipt = came["dev.counterfoil.operation.succeeded.v1"]
    notice = came["dev.counterfoil.operation.attention.v1"]
    assert receipt.id == receipt.event["id"] == ready
    kept = world.client.receipt("run/0")
    assert kept is not None
    assert receipt.event["data"]["receipt_digest"] == kept.digest
    assert receipt.event["data"]["result_digest"] == kept.result_digest
    assert "result" not in receipt.event["data"]
    assert notice.event["subject"] == "run/asks"
    assert notice.event["data"]["code"] == "E_NO_ANSWER"
    for hook in (receipt, notice):
        assert hook.signed_with(SECRET)
        assert hook.headers["content-type"] == "application/cloudevents+json"
        assert abs(int(hook.headers["webhook-timestamp"]) - time.time()) < 60
    assert endpoint(world) is None, "a healthy endpoint costs no row"
    assert world.client.ready() == []


def test_an_event_carries_the_trace_of_its_operation_where_traces_are_on(world: World, hooks: Receiver) -> None:
    operation_id = world.working()
    world.ended(operation_id)
    with delivering(world, hook_of(hooks), traced=True):
        (hook,) = hooks.wait_for(1)
    assert hook.headers["traceparent"] == traceparent(operation_id, 1)
    assert hook.signed_with(SECRET)


def test_a_small_result_comes_along_where_it_is_asked_for(
    world: World, hooks: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled(world)
    with delivering(world, hook_of(hooks, include_result=True)):
        assert hooks.wait_for(1)[0].event["data"]["result"] == {"rows": 3}
    monkeypatch.setattr(deliver, "INLINE_RESULT_BYTES", 10)
    world.ended(world.working("run/large", "large"))
    with delivering(world, hook_of(hooks, include_result=True)):
        assert "result" not in hooks.wait_for(2)[1].event["data"]


def test_a_namespace_without_a_webhook_is_left_to_pull(world: World, hooks: Receiver) -> None:
    settled(world, namespace="silent")
    settled(world)
    with delivering(world, hook_of(hooks)):
        until(world, lambda: open_rows(world) == 1)
    assert len(hooks.hooks) == 1
    assert len(world.client_of(namespace="silent").ready()) == 1


# -- at least once, and once a lease ---------------------------------------------------------------------------------


def test_two_deliverers_at_once_send_each_event_once(world: World, hooks: Receiver) -> None:
    ids = settled(world, 30)
    with delivering(world, hook_of(hooks)), delivering(world, hook_of(hooks)):
        until(world, lambda: open_rows(world) == 0)
    assert hooks.counts() == dict.fromkeys(ids, 1)


KILLED = """
import random, sys, time
from counterfoil.adapters.credentials import Credentials
from counterfoil.workers.deliver import Deliverer
from counterfoil.workers.settings import Settings
from counterfoil.workers.webhooks import Webhook, WebhooksError

url, hook, secret = sys.argv[1:]
webhook = Webhook("default", hook, ("env:HOOK",), False, False)
credentials = Credentials(time.monotonic, {"HOOK": secret})
deliverer = Deliverer(url, {"default": webhook}, credentials, rng=random.random, tick_s=0.02)
deliverer.start()
sys.stdin.read()
"""


def test_killed_between_the_answer_and_the_acknowledgement_it_is_delivered_again_with_the_same_id(
    world: World, hooks: Receiver
) -> None:
    (ready,) = settled(world)
    with world.owner() as owner:

        def blocking_the_acknowledgement(_: object) -> tuple[int, dict[str, str], bytes]:
            owner.execute("BEGIN")
            owner.execute("SELECT id FROM counterfoil.ready_outbox FOR UPDATE")
            return 200, {}, b"thank you"

        hooks.rules["/hooks"] = blocking_the_acknowledgement
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        arguments = [sys.executable, "-c", KILLED, world.url, hooks.url(), SECRET]
        with subprocess.Popen(arguments, stdin=subprocess.PIPE, env=environment) as process:
            hooks.wait_for(1)
            until(world, lambda: world.sql("SELECT count(*) FROM pg_locks WHERE NOT granted")[0][0] > 0)
            process.send_signal(signal.SIGKILL)
        owner.execute("ROLLBACK")
    del hooks.rules["/hooks"]
    until(world, lambda: world.sql("SELECT count(*) FROM pg_locks WHERE NOT granted")[0][0] == 0)
    with delivering(world, hook_of(hooks)) as deliverer:
        assert open_rows(world) == 1
        assert len(hooks.at()) == 1, "its lease still stands"
        world.sql("UPDATE counterfoil.ready_outbox SET lease_until = counterfoil.ledger_now()")
        first, second = hooks.wait_for(2)
        until(world, lambda: open_rows(world) == 0)
        assert deliverer.stop()
    assert first.id == second.id == ready
    assert second.event == first.event


def test_a_stop_brings_home_what_is_out(world: World, hooks: Receiver) -> None:
    settled(world)
    entered, go_on = threading.Event(), threading.Event()

    def slow(_: object) -> tuple[int, dict[str, str], bytes]:
        entered.set()
        assert go_on.wait(20)
        return 200, {}, b""

    hooks.rules["/hooks"] = slow
    deliverer = made(world, hook_of(hooks))
    deliverer.start()
    assert entered.wait(20)
    assert not deliverer.stop(grace_s=0)
    go_on.set()
    assert deliverer.stop()
    assert open_rows(world) == 0


def test_a_slow_endpoint_holds_up_no_other(world: World, hooks: Receiver) -> None:
    settled(world, 2)
    settled(world, 12, namespace="quick")
    go_on = threading.Event()

    def slow(_: object) -> tuple[int, dict[str, str], bytes]:
        assert go_on.wait(20)
        return 200, {}, b""

    hooks.rules["/slow"] = slow
    with delivering(world, hook_of(hooks, path="/slow"), hook_of(hooks, "quick", "/quick")):
        hooks.wait_for(1, "/slow")
        hooks.wait_for(12, "/quick")
        until(world, lambda: open_rows(world) == 2)
        assert endpoint(world) is None, "the slow one is still being waited for"
        go_on.set()
        until(world, lambda: open_rows(world) == 0)


# -- in a worker process ---------------------------------------------------------------------------------------------


def test_a_worker_process_with_a_webhooks_file_delivers_beside_its_loop(
    world: World, hooks: Receiver, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "targets.yaml").write_text("targets: {reports: {url: 'http://127.0.0.1:9', protocol: mcp-2026-07-28}}")
    (tmp_path / "webhooks.yaml").write_text(f"webhooks: {{default: {{url: '{hooks.url()}', secret: env:HOOK}}}}")
    settings = {"DATABASE_URL": world.url, "BROKER_URL": broker, "TICK_S": "0.05"}
    settings |= {"TARGETS_FILE": str(tmp_path / "targets.yaml"), "WEBHOOKS_FILE": str(tmp_path / "webhooks.yaml")}
    for name, value in settings.items():
        monkeypatch.setenv(f"COUNTERFOIL_{name}", value)
    monkeypatch.setenv("HOOK", SECRET)
    for name, value in {"_ending": threading.Event(), "_drive": None, "_deliverer": None}.items():
        monkeypatch.setattr(fleet, name, value)
    settled(world)
    fleet._serve()
    try:
        until(world, lambda: open_rows(world) == 0)
    finally:
        fleet._end()
    assert [hook.signed_with(SECRET) for hook in hooks.hooks] == [True]


def test_without_a_webhooks_file_nothing_is_delivered_and_a_bad_one_is_told(world: World, tmp_path: Path) -> None:
    assert fleet.make_deliverer(Settings.load(database_url=world.url)) is None
    with pytest.raises(WebhooksError):
        fleet.make_deliverer(Settings.load(database_url=world.url, webhooks_file=tmp_path / "none.yaml"))
