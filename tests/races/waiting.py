"""Wait-points: who waits for whom is asked of PostgreSQL, never guessed from time. And processes that take part in a
race."""

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import psycopg
from sqlalchemy import event

from counterfoil.ledger.database import Database
from counterfoil.tests.ledger.world import World

PATIENCE_S = 20.0


def until(true: Callable[[], bool]) -> None:
    """Come back as soon as it is true; fail when it doesn't become so."""
    end_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end_s, "what the race waits for does not happen"
        threading.Event().wait(0.002)  # real time: another process has to get somewhere


def until_blocked(world: World, count: int) -> None:
    """Until `count` backends of this database wait for a lock that another one holds."""
    query = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0"
    )
    until(lambda: bool(world.sql(query)[0][0] >= count))


def before_each_statement(database: Database, hook: Callable[[psycopg.Cursor[Any], str], None]) -> None:
    """Call `hook` with each statement that this database's connections are about to execute, whoever executes it."""

    class Watched(psycopg.Cursor[Any]):
        def execute(self, query: Any, *arguments: Any, **more: Any) -> "Watched":
            hook(self, query.decode() if isinstance(query, bytes) else str(query))
            super().execute(query, *arguments, **more)
            return self

    def watch(connection: psycopg.Connection[Any], _record: object) -> None:
        connection.cursor_factory = Watched

    event.listen(database._engine, "connect", watch)
    database.dispose()  # what was connected before is not watched


@contextmanager
def held(world: World, lock: str) -> Iterator[None]:
    """A lock of the owner's in between: whoever comes next waits until the block ends."""
    with world.owner() as connection, connection.transaction():
        connection.execute("SET ROLE counterfoil_owner")
        connection.execute(lock)  # type: ignore[call-overload]
        yield
        connection.execute("RESET ROLE")


class Thread(threading.Thread):
    """A thread whose result, or error, is had by `outcome`."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._result: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001  it is raised again where the outcome is asked for
            self._error = error

    def outcome(self) -> Any:
        self.join(PATIENCE_S)
        assert not self.is_alive(), "a thread of the race does not end"
        if self._error is not None:
            raise self._error
        return self._result


@contextmanager
def process(
    work: Callable[..., None], *arguments: Any
) -> Iterator[tuple[multiprocessing.process.BaseProcess, Connection]]:
    """A real process that runs `work(connection, *arguments)`; spawned, since a fork would share our database
    connections."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    child = spawn.Process(target=work, args=(there, *arguments), daemon=True)
    child.start()
    there.close()
    try:
        yield child, here
    finally:
        child.terminate()
        child.join(PATIENCE_S)
        here.close()
        child.close()


def told(connection: Connection) -> Any:
    """The next word of a process."""
    assert connection.poll(PATIENCE_S), "a process of the race does not answer"
    return connection.recv()
