"""The Celery tasks of the loop: `plan` sends wake-ups without operation ids, `drive` passes one on to its process."""

import queue
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from redis import Redis
from sqlalchemy.engine import make_url

from counterfoil.ledger.client import Call, Client
from counterfoil.ledger.states import Lane
from counterfoil.workers import fleet
from counterfoil.workers.bucket import LocalBucket
from counterfoil.workers.drive import Drive
from counterfoil.workers.jobs import Pace

from .kit_peer import PATIENCE_S
from .kit_world import targets


@pytest.fixture
def ended() -> queue.Queue[str]:
    return queue.Queue()


@pytest.fixture
def loop(database: str, broker: str, ended: "queue.Queue[str]", monkeypatch: pytest.MonkeyPatch) -> Iterator[Drive]:
    """This process's loop; it serves no lane, so that due rows stay due."""
    monkeypatch.setenv("COUNTERFOIL_BROKER_URL", broker)
    known = targets("a", "b")
    drive = Drive(
        database, known, LocalBucket(known.limits, lambda: 0.0), pace=Pace(claim_batch=100), lanes=(), ended=ended.put
    )
    drive.start()
    monkeypatch.setattr(fleet, "_drive", drive)
    yield drive
    assert drive.stop(PATIENCE_S)


def hand_in(database: str, target: str, count: int) -> None:
    client = Client(database)
    calls = [Call(target, "work", {}, f"{target}-{number}") for number in range(count)]
    with client._database.begin() as connection:
        client.submit_in(connection, calls)
    client.close()


def messages(broker: str) -> dict[str, int]:
    """Queue -> messages in it."""
    with Redis.from_url(broker) as redis:
        names = [f"counterfoil:counterfoil.{lane}" for lane in Lane if lane is not Lane.DOOR]
        return {name.rpartition(".")[2]: count for name in names if (count := int(redis.llen(name)))}


def test_plan_sends_at_most_two_wake_ups_per_lane_and_target(loop: Drive, database: str, broker: str) -> None:
    from counterfoil.workers import tasks

    hand_in(database, "a", 350)
    tasks.plan()
    assert messages(broker) == {"submit": 2}
    hand_in(database, "b", 3)
    tasks.plan()
    assert messages(broker) == {"submit": 5}


def test_plan_sends_nothing_where_nothing_is_due(loop: Drive, broker: str) -> None:
    from counterfoil.workers import tasks

    tasks.plan()
    assert messages(broker) == {}


def test_a_tick_that_came_through_is_remembered_in_the_ledger(loop: Drive, database: str) -> None:
    from counterfoil.workers import tasks

    url = make_url(database).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as connection:
        query = "SELECT fleet, name FROM counterfoil.pulse WHERE seen_at > counterfoil.ledger_now() - interval '1 min'"
        assert connection.execute(query).fetchall() == []
        tasks.plan()
        assert connection.execute(query).fetchall() == [("main", "beat")]


FORGED: list[tuple[Any, Any]] = [
    ("nonsense", "a"),
    ("door", "a"),
    ("poll", "nobody"),
    ("", ""),
    ([], "a"),
    ({}, "a"),
    (None, None),
    ("poll", 5),
]


def test_forged_wake_ups_do_nothing(loop: Drive, ended: "queue.Queue[str]") -> None:
    from counterfoil.workers import tasks

    for lane, target in FORGED:
        tasks.drive(lane, target)
    assert loop.stop(PATIENCE_S)
    assert ended.empty()  # neither stale nor crashed


def test_a_process_without_a_loop_passes_every_message_over(
    database: str, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERFOIL_BROKER_URL", broker)
    monkeypatch.setattr(fleet, "_drive", None)
    from counterfoil.workers import tasks

    tasks.plan()
    tasks.drive("poll", "a")
    assert messages(broker) == {}


def test_a_wake_up_that_comes_after_the_end_of_the_loop_is_no_trouble(loop: Drive) -> None:
    """Smallest input: stop, then a message that Celery had taken already. It met a closed event loop."""
    from counterfoil.workers import tasks

    assert loop.stop(PATIENCE_S)
    tasks.drive("poll", "a")
