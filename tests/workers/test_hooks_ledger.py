"""A callback on the ledger: it makes a reading due in the epoch that holds, and changes nothing else."""

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import make_url

from counterfoil.ledger import epochs
from counterfoil.ledger.client import Client
from counterfoil.ledger.database import Database
from counterfoil.ledger.states import Lane
from counterfoil.workers.drive import Drive
from counterfoil.workers.hooks import Waker
from counterfoil.workers.jobs import Pace

from .kit_peer import PATIENCE_S, GatedBucket, serving
from .kit_world import targets


class Tasks:
    """One operation whose task is known and due in a minute, and nobody who works on it."""

    def __init__(self, database: str) -> None:
        self.url = database
        self.client = Client(database)
        with serving() as peer:
            peer.tasks.interval_ms = 60_000
            made = targets("a", "b", url=peer.url)
            drive = Drive(database, made, GatedBucket(), pace=Pace(), ended=lambda _: None)
            drive.start()
            self.client.submit("a", "work", {}, call_node_id="node")
            drive.kick(Lane.SUBMIT, "a")
            self._wait()
            assert drive.stop(PATIENCE_S)
        self.waker = Waker(database, made)
        self.task_id = self.client.get("node").task_id or ""

    def _wait(self) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while self.client.get("node").state != "WORKING":
            assert time.monotonic() < until_s
            time.sleep(0.01)  # another thread has to get on: what is waited for shows in the database only

    def due_in_s(self) -> float:
        query = "SELECT extract(epoch FROM due_at - counterfoil.ledger_now()) FROM counterfoil.wake WHERE lane = 'poll'"
        return float(self._row(query)[0])

    def facts(self) -> tuple[Any, ...]:
        """What a hint may not change."""
        return self._row("SELECT state, server_status, task_id, outcome, cancel_generation FROM counterfoil.operation")

    def _row(self, query: str) -> tuple[Any, ...]:
        plain = make_url(self.url).set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(plain, autocommit=True) as connection:
            (row,) = connection.execute(query).fetchall()  # type: ignore[arg-type]
        return tuple(row)


@pytest.fixture
def tasks(database: str) -> Iterator[Tasks]:
    made = Tasks(database)
    yield made
    made.waker.close()
    made.client.close()


def test_a_callback_makes_the_reading_due_and_changes_nothing_else(tasks: Tasks) -> None:
    before = tasks.facts()
    assert tasks.due_in_s() > 30
    assert tasks.waker.wake("a", {tasks.task_id: "completed"}) == 1
    assert tasks.due_in_s() <= 0
    assert tasks.waker.wake("a", {tasks.task_id: "completed"}) == 1  # and once more
    assert tasks.facts() == before


def test_a_callback_about_a_task_that_nobody_knows_or_of_another_target_wakes_nobody(tasks: Tasks) -> None:
    """The first is also the one that overtakes the answer to its submit."""
    assert tasks.waker.wake("a", {"not-yet": "completed"}) == 0
    assert tasks.waker.wake("b", {tasks.task_id: "completed"}) == 0
    assert tasks.due_in_s() > 30


def test_a_callback_after_a_bump_wakes_in_the_epoch_that_holds(tasks: Tasks) -> None:
    """The door was started in the old epoch: it has none of its own."""
    operator = Database(tasks.url)
    epochs.bump(operator, "main", "drill")
    operator.dispose()
    assert tasks.waker.wake("a", {tasks.task_id: None}) == 1
    assert tasks.due_in_s() <= 0
