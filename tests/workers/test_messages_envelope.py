"""Whoever reaches the broker can't stop a worker: what is no task message becomes a dead letter, and the next is taken.

A real worker on a real broker and ledger; what Celery 5.7 makes of these entries without the check is told in
workers/envelope.py.
"""

import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from counterfoil.ledger.digest import MAX_ARGUMENTS_BYTES
from counterfoil.ledger.states import QUEUES
from counterfoil.tests.ledger.world import World
from counterfoil.workers.app import make_app
from counterfoil.workers.envelope import MAX_ENTRY_BYTES, dead_envelope, envelope_fault
from counterfoil.workers.messages import SUBMIT, Message
from counterfoil.workers.settings import Settings

from .kit_messages import SECRET, Worker, body_of, signed, worker

TASKS = frozenset({"counterfoil.plan", "counterfoil.drive", SUBMIT})
LIST = f"counterfoil:{SUBMIT}"
DOCS = Path(__file__).parents[2] / "docs" / "producers.md"


def envelope(raw: bytes | None = None, args: Any = (), **changes: Any) -> dict[str, Any]:
    """A Celery message as the Redis transport stores it; `header_…` and `property_…` change one of these."""
    raw = json.dumps([list(args), {}, {}]).encode() if raw is None else raw
    made: dict[str, Any] = {
        "body": base64.b64encode(raw).decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"lang": "js", "task": SUBMIT, "id": "1", "root_id": "1", "parent_id": None, "group": None},
        "properties": {
            "correlation_id": "1",
            "reply_to": "",
            "delivery_mode": 2,
            "delivery_info": {"exchange": "counterfoil", "routing_key": SUBMIT},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": "1",
        },
    }
    for name, value in changes.items():
        part, _, key = name.partition("_")
        if part in ("header", "property"):
            made["headers" if part == "header" else "properties"][key] = value
        else:
            made[name.replace("_", "-")] = value
    return made


HOSTILE: dict[str, Any] = {
    "nothing": b"",
    "no JSON": b"garbage",
    "no UTF-8": b"\xff\xfe",
    "deep": b"[" * 100_000,
    "a number": 5,
    "a request without an envelope": json.loads(body_of()),
    "no headers": envelope(headers=None),
    "no properties": envelope(properties=None),
    "no delivery info": envelope(property_delivery_info=None),
    "no delivery tag": envelope(property_delivery_tag=None),
    "a reply that is no queue": envelope(property_reply_to=5),
    "no body": envelope(body=None),
    "a body that is not base64": envelope(body="###"),
    "a body cut short": envelope(body="aaaaa"),
    "a body in another encoding": envelope(property_body_encoding="rot13"),
    "a body that is no JSON": envelope(b"{nope"),
    "a body that is an object": envelope(b'{"a":1}'),
    "a body that is a number": envelope(b"5"),
    "a body of numbers": envelope(b"[5,5,5]"),
    "a body that nests deep": envelope(b"[" * 5000),
    "a value that is not of its type": envelope(b'[[{"__type__":"uuid","__value__":{"hex":"zz"}}],{},{}]'),
    "a chain": envelope(b'[["x"],{},{"chain":[{"task":"counterfoil.plan"}]}]'),
    "pickle": envelope(content_type="application/x-python-serialize"),
    "yaml": envelope(content_type="application/x-yaml"),
    "another task": envelope(header_task="counterfoil.submit"),
    "a task that is no name": envelope(header_task=["x"]),
    "no task id": envelope(header_id=None),
    "an ETA": envelope(header_eta="2026-11-29T22:30:00"),
    "an expiry": envelope(header_expires="2020-01-01T00:00:00"),
    "a time limit": envelope(header_timelimit=[0.1, 0.1]),
    "a compressed body": envelope(header_compression="application/x-gzip"),
    "stamps": envelope(header_stamps={"a": 1}, header_stamped_headers=["a"]),
}


def entry(made: Any) -> bytes:
    return made if isinstance(made, bytes) else json.dumps(made).encode()


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_task_message_is_told_and_kept(what: str) -> None:
    fault = envelope_fault(entry(HOSTILE[what]), SUBMIT, TASKS)
    assert fault
    assert fault.isprintable()
    replaced = dead_envelope(entry(HOSTILE[what]), fault)
    assert envelope_fault(replaced, SUBMIT, TASKS) == ""
    args, kwargs, _ = json.loads(base64.b64decode(json.loads(replaced)["body"]))
    assert Message.of(args, kwargs).fault == f"not a task message: {fault}"
    assert Message.of(args, kwargs).body == entry(HOSTILE[what]).decode("utf-8", "replace").encode()


def test_the_largest_message_fits_and_what_is_larger_is_not_parsed() -> None:
    body = body_of(arguments={"text": "\N{EURO SIGN}" * (MAX_ARGUMENTS_BYTES // 3 - 100)})
    ascii_twice = entry(envelope(args=signed(body)))
    assert envelope_fault(ascii_twice, SUBMIT, TASKS) == ""
    assert "the cap is" in envelope_fault(b"[" * (MAX_ENTRY_BYTES + 1), SUBMIT, TASKS)


def test_a_hint_may_expire_and_one_of_a_newer_release_is_left_to_celery() -> None:
    hint = envelope(header_task="counterfoil.plan", header_expires="2026-11-29T22:30:00")
    assert envelope_fault(entry(hint), "counterfoil.plan", TASKS) == ""
    assert envelope_fault(entry(envelope(header_task="counterfoil.newer")), "counterfoil.plan", TASKS) == ""


@pytest.fixture
def running(tmp_path: Path, database: str, broker: str) -> Iterator[Worker]:
    with worker(tmp_path, database, broker) as made:
        yield made


def test_a_worker_outlives_every_entry_and_takes_the_next_message(running: Worker) -> None:
    with Redis.from_url(running.broker) as redis:
        for made in HOSTILE.values():
            redis.lpush(LIST, entry(made))
        redis.lpush(LIST, entry(envelope(args=signed())))
        running.until(running.client.operations)
        letters = running.letters()
        assert redis.llen(LIST) == 0
    assert {letter.code for letter in letters} == {"E_MESSAGE_MALFORMED"}
    assert len(letters) == len(HOSTILE)
    assert [(one.call_node_id, one.principal) for one in running.client.operations()] == [("run/1", "svc-billing")]


def test_a_producer_sends_it_by_name_through_its_own_celery_app_as_the_page_says(
    running: Worker, tmp_path: Path
) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    (tmp_path / "producer.py").write_text(block)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "producer.py"],
        cwd=tmp_path,
        env={"COUNTERFOIL_BROKER_URL": running.broker, "BILLING_KEY": SECRET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    running.until(running.client.operations)
    (operation,) = running.client.operations()
    assert (operation.namespace, operation.call_node_id, operation.tool) == (
        "billing",
        "run-42/step-3",
        "generate_report",
    )
    assert running.letters() == []


def test_our_own_app_routes_it_to_the_queue_of_its_name() -> None:
    with make_app(Settings.load(broker_url="redis://127.0.0.1:1/0")) as app:
        assert app.amqp.router.route({}, SUBMIT, signed(), {})["queue"].name == SUBMIT
        assert SUBMIT in app.amqp.queues
        assert SUBMIT not in {f"counterfoil.{lane}" for lane in QUEUES}


def test_a_message_taken_while_the_ledger_refuses_is_held_then_put_back_and_taken_when_it_is_mended(
    running: Worker, database: str
) -> None:
    """15 s of real time: that is how long a message is held before it goes back to the broker."""
    world = World(database)
    running.until(lambda: world.sql("SELECT 1 FROM counterfoil.target_state"))
    world.sql("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA counterfoil FROM counterfoil_app")
    with Redis.from_url(running.broker) as redis:
        redis.lpush(LIST, entry(envelope(args=signed())))
        redis.lpush(LIST, entry(envelope(args=signed(call_node_id="run/2"))))
        running.until(lambda: "went back to the queue" in running.log.read_text())
        world.sql("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA counterfoil TO counterfoil_app")
        running.until(lambda: len(running.client.operations()) == 2)
        assert redis.llen(LIST) == 0
    world.close()
    assert running.letters() == []
    assert "month" not in running.log.read_text()
