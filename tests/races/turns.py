"""Two transactions in an interleaving that a seed chooses, at every statement and commit of both."""

import random
import threading
from collections.abc import Callable
from typing import Any

import psycopg
from sqlalchemy import event

from counterfoil.ledger.database import Database
from counterfoil.tests.races.waiting import PATIENCE_S, before_each_statement, until

LOOK_S = 0.001
"""After this long without a word from the side whose turn it is, PostgreSQL is asked whether it waits for a lock."""


class Side:
    """One side's connections, whose statements wait for their turn while a race is on."""

    def __init__(self, url: str) -> None:
        self._turn = threading.Semaphore(0)
        self._here = threading.Event()
        self._statements = 0
        self._racing = False
        self.database = Database(url, fleet="main", pool_size=1)
        before_each_statement(self.database, self._statement)
        event.listen(self.database._engine, "commit", self._statement)
        with self.database.autocommit() as connection:
            self._pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()

    def begin(self, work: Callable[[], Any]) -> None:
        self.result: Any = None
        self.over = False
        self._here.clear()
        self._statements = 0
        self._racing = True
        threading.Thread(target=self._run, args=(work,), daemon=True).start()
        assert self._here.wait(PATIENCE_S)

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self.result = work()
        except BaseException as error:  # noqa: BLE001  it is looked at with the result
            self.result = error
        self._racing, self.over = False, True
        self._here.set()

    def _statement(self, *_: object) -> None:
        if not self._racing:
            return
        if self._statements == 0:
            self._here.set()
            self._turn.acquire()
        self._statements -= 1

    @property
    def waits(self) -> bool:
        """For its turn."""
        return self._here.is_set() and not self.over

    def take(self, statements: int, eyes: psycopg.Connection[Any]) -> None:
        """So many statements more; comes back when they are done, or when one waits for a lock."""
        self._here.clear()
        self._statements = statements
        self._turn.release()
        while not self._here.wait(LOOK_S):
            (blocked,) = eyes.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", (self._pid,)).fetchone() or (0,)
            if blocked:
                return

    def close(self) -> None:
        self.database.dispose()


def interleave(
    noise: random.Random, eyes: psycopg.Connection[Any], sides: tuple[Side, Side], *works: Callable[[], Any]
) -> list[Any]:
    """Run both works, now one, now the other; what each of them came to, in their order. Raises what one raised."""
    for side, work in zip(sides, works, strict=True):
        side.begin(work)
    while not all(side.over for side in sides):
        until(lambda: all(side.over for side in sides) or any(side.waits for side in sides))
        ready = [side for side in sides if side.waits]
        if ready:
            noise.choice(ready).take(noise.choice((1, 1, 2, 4)), eyes)
    for side in sides:
        if isinstance(side.result, BaseException):
            raise side.result
    return [side.result for side in sides]
