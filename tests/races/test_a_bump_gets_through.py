"""A bump against a fleet that accepts all the time: it waits for those that hold the epoch, and those who come later
wait for it.

As a plain UPDATE it starved for 8 s behind overlapping share locks (6,065 accepts passed); behind one stopped client it
failed at its lock timeout, and every accept waited with it.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from counterfoil.ledger import epochs
from counterfoil.ledger.accept import accept
from counterfoil.ledger.database import Database
from counterfoil.ledger.rows import Row, read_rows
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races import fence_holder
from counterfoil.tests.races.waiting import Thread, process, told, until

ACCEPTORS = 16


@contextmanager
def accepting(world: World) -> Iterator[list[int]]:
    """16 connections that accept without a pause; how often, each."""
    operation_id = world.working()
    world.ended(operation_id)
    with world.database.begin() as connection:
        rows = read_rows(connection, [operation_id], world.policy_of, lock=False)
    stop, counts = threading.Event(), [0] * ACCEPTORS
    database = Database(world.url, fleet="main", pool_size=ACCEPTORS)

    def again(number: int, row: Row) -> None:
        while not stop.is_set():
            accept(database, "main", 1, [(row, Lane.POLL)])
            counts[number] += 1

    threads = [Thread(lambda number=number: again(number, rows[0])) for number in range(ACCEPTORS)]  # type: ignore[misc]
    try:
        until(lambda: min(counts) > 0)
        yield counts
    finally:
        stop.set()
        for thread in threads:
            thread.outcome()
        database.dispose()


def bumped_s(world: World) -> float:
    began_s = time.monotonic()
    epochs.bump(world.database, "main", "race")
    return time.monotonic() - began_s


def test_a_bump_under_16_concurrent_accepts_takes_less_than_a_second(world: World) -> None:
    with accepting(world):
        took_s = bumped_s(world)
    assert took_s < 1.0
    assert world.sql("SELECT count(*) > 0 FROM counterfoil.refused_write WHERE what = 'accept_terminal'") == [(True,)]


def test_with_one_of_them_stopped_inside_its_transaction_it_takes_less_than_three(world: World) -> None:
    with process(fence_holder.work, world.url) as (child, word), accepting(world):
        assert told(word) == "held"
        assert child.pid is not None
        os.kill(child.pid, signal.SIGSTOP)
        try:
            took_s = bumped_s(world)
        finally:
            os.kill(child.pid, signal.SIGCONT)
        word.send("go on")
        assert told(word) == "ended"
    assert took_s < 3.0
    assert world.sql("SELECT epoch FROM counterfoil.execution_epoch") == [(2,)]
    assert world.sql("SELECT count(*) FROM counterfoil.refused_write WHERE what = 'late'") == [(0,)]
