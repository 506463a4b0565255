"""Tier B: every SQL statement is a yield point, on connections of its own, with real row locks.

The product's code runs unchanged on threads of which one moves at a time. A thread that waits for a lock is found out
by
`pg_blocking_pids`, as PostgreSQL's own isolation tester does it, never by a timeout: so an ordering can be played
again.
"""

import select
import threading
import time
from collections.abc import Callable, Generator
from importlib.resources import files
from typing import Any

import psycopg
from sqlalchemy import event

from .ledgerdb import LedgerDb

POOL = 8
"""Connections made beforehand: making the first one holds a lock of the pool's."""

GATE_KEY = 20260728
GATE = f"""
CREATE OR REPLACE FUNCTION counterfoil.sim_gate() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock_shared({GATE_KEY}); RETURN NEW; END $$;
CREATE OR REPLACE TRIGGER sim_gate BEFORE INSERT ON counterfoil.terminal_receipt
    FOR EACH ROW EXECUTE FUNCTION counterfoil.sim_gate();
"""
"""A place to stop in the middle of `accept_terminal`, which is one statement: between its fence and its receipt."""

LOOK_S = 0.0015
"""How long a statement may take before somebody looks whether it waits for a lock."""

_here = threading.local()


class Killed(BaseException):
    """The process that this thread belongs to is dead. No Exception: nothing may catch it and clean up."""


class Cursor(psycopg.Cursor[Any]):
    """Remembers what is about to be executed, for the story."""

    def execute(self, query: Any, *arguments: Any, **more: Any) -> "Cursor":
        self.connection.about = _name_of(query.decode() if isinstance(query, bytes) else str(query))  # type: ignore[attr-defined]
        super().execute(query, *arguments, **more)
        return self


class Connection(psycopg.Connection[Any]):
    """Yields before each statement of a strand."""

    about = ""
    settled = False
    """It has been set up."""

    def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **more: Any) -> Any:
        strand: Strand | None = getattr(_here, "strand", None)
        if strand is None or not self.settled:
            return super().wait(gen, *arguments, **more)
        return strand.execute(self, gen)

    def _set_autocommit(self, value: bool) -> None:
        """No statement, so no place to stop at: whoever was killed here took the connection from its pool for good, and
        told it under the name of what the connection did last."""
        was, self.settled = self.settled, False
        try:
            super()._set_autocommit(value)
        finally:
            self.settled = was

    def commit(self) -> None:
        self.about = "COMMIT"
        super().commit()

    def rollback(self) -> None:
        self.about = "ROLLBACK"
        super().rollback()


_names: dict[str, str] = {}


def _name_of(query: str) -> str:
    """The file that a statement stands in, or its first words."""
    if not _names:
        for path in files("counterfoil.ledger").joinpath("sql").iterdir():
            _names[path.read_text(encoding="utf-8").partition("\n")[0]] = path.name.removesuffix(".sql")
    first = query.partition("\n")[0]
    return _names.get(first) or " ".join(query.split()[:3]).lower()


class Strand:
    """One line of statements: a thread that moves only when it is told to.

    `phase`: idle | ready (a statement waits to be executed) | blocked (it waits for a lock) | done.
    """

    def __init__(self, loom: "Loom", name: str) -> None:
        self.loom = loom
        self.name = name
        self.phase = "idle"
        self.about = ""
        self.paused_at_s = 0.0
        self.cut_off = False
        """The database has ended its connection; it will find out."""
        self.connection: Connection | None = None
        self.result: Any = None
        self._fresh = False
        self._dead = False
        self._work: Callable[[], Any] | None = None
        self._go = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    # -- from the scheduler ------------------------------------------------------------------------------------------

    def start(self, work: Callable[[], Any]) -> None:
        """Begin; the first statement is executed at once."""
        assert self.phase == "idle", self.phase
        self._work, self._fresh, self.connection, self.cut_off = work, True, None, False
        self.resume()

    def resume(self) -> None:
        """Execute the statement that waits, up to the next one, a lock or the end."""
        self._go.release()
        self._back.acquire()

    def take_result(self) -> Any:
        assert self.phase == "done"
        self.phase, result = "idle", self.result
        self.result = None
        return result

    @property
    def in_transaction(self) -> bool:
        connection = self.connection
        return connection is not None and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    def look(self) -> None:
        """A blocked one may have got its lock meanwhile."""
        while self.phase == "blocked":
            assert self.connection is not None
            if select.select([self.connection.pgconn.socket], [], [], 0)[0]:
                self.phase = "ready"
            elif self.loom.blocked(self.connection):
                return
            else:
                select.select([self.connection.pgconn.socket], [], [], 0.01)

    def kill(self) -> None:
        """Its process dies: the connection goes away, no clean-up runs."""
        if self.phase in ("ready", "blocked"):
            self._dead = True
            if self.connection is not None:
                self.loom.terminate(self.connection)
            self.resume()
        self.phase, self.result = "idle", None

    def end(self) -> None:
        self.kill()
        self._work = None
        self._go.release()
        self._thread.join(5.0)

    # -- on the thread -----------------------------------------------------------------------------------------------

    def _main(self) -> None:
        _here.strand = self
        while True:
            self._go.acquire()
            if self._work is None:
                return
            try:
                self.result = (True, self._work())
            except Killed:
                self.result = None
            except Exception as error:  # noqa: BLE001  the scheduler hands it on
                self.result = (False, error)
            self._dead, self._work, self.phase = False, None, "done"
            self._back.release()

    def _pause(self, phase: str) -> None:
        self.phase = phase
        self.paused_at_s = self.loom.now_s()
        self._back.release()
        self._go.acquire()
        if self._dead:
            raise Killed

    def execute(self, connection: Connection, gen: Generator[Any, Any, Any]) -> Any:
        """One statement."""
        if self._dead:
            # Where a `finally` of a dead process would still speak to the database: there is nobody.
            raise psycopg.OperationalError("its process is dead")
        self.connection, self.about = connection, connection.about
        if not self._fresh:
            self._pause("ready")
        self._fresh = False
        socket = connection.pgconn.socket
        try:
            wanted = next(gen)
            while True:
                readable, writable, _ = select.select(
                    [socket] if wanted & 1 else [], [socket] if wanted & 2 else [], [], LOOK_S
                )
                if readable or writable:
                    wanted = gen.send((1 if readable else 0) | (2 if writable else 0))
                elif self.loom.blocked(connection):
                    self.loom.waits += 1
                    self._pause("blocked")
        except StopIteration as stop:
            return stop.value
        except psycopg.errors.DeadlockDetected:
            self.loom.deadlocks.append(f"{self.name} at {self.about}")
            raise


class Loom:
    """All strands of one database."""

    def __init__(self, db: LedgerDb) -> None:
        plain = db.url.replace("postgresql+psycopg://", "postgresql://")
        self._observer: psycopg.Connection[Any] = psycopg.connect(plain, autocommit=True)
        self._gate: psycopg.Connection[Any] = psycopg.connect(plain, autocommit=True)
        self._gate_is_shut = False
        db.owner.execute(GATE, prepare=False)
        self._strands: dict[str, Strand] = {}
        self.waits = 0
        self.deadlocks: list[str] = []
        """Of this run: who was ended while he waited in a circle."""
        self.now_s: Callable[[], float] = lambda: 0.0
        db.database.dispose()
        event.listen(db.database._engine, "do_connect", _connect)
        event.listen(db.database._engine, "connect", _settle)
        warm = [db.database._engine.connect() for _ in range(POOL)]
        for one in warm:
            one.close()

    def strand(self, name: str) -> Strand:
        """The strand of this name, made when it is first asked for."""
        if name not in self._strands:
            self._strands[name] = Strand(self, name)
        return self._strands[name]

    @property
    def busy(self) -> list[Strand]:
        return [strand for strand in self._strands.values() if strand.phase != "idle"]

    def look(self) -> None:
        """Who has got his lock?"""
        for strand in self._strands.values():
            strand.look()

    def blocked(self, connection: Connection) -> bool:
        row = self._observer.execute(
            "SELECT cardinality(pg_blocking_pids(%s))", (connection.info.backend_pid,)
        ).fetchone()
        return bool(row and row[0])

    def terminate(self, connection: Connection) -> None:
        """End its backend, and wait until its locks are gone."""
        pid = connection.info.backend_pid
        self._observer.execute("SELECT pg_terminate_backend(%s)", (pid,))
        while self._observer.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone():
            time.sleep(0.0002)  # a real backend ends in real time

    def shut_gate(self) -> None:
        """Whoever is about to write a receipt, inside of the function that does, waits."""
        if not self._gate_is_shut:
            self._gate.execute(f"SELECT pg_advisory_lock({GATE_KEY})")
            self._gate_is_shut = True

    def open_gate(self) -> None:
        if self._gate_is_shut:
            self._gate.execute(f"SELECT pg_advisory_unlock({GATE_KEY})")
            self._gate_is_shut = False

    def clear(self) -> None:
        """Nothing of a run may be left over."""
        self.open_gate()
        self.deadlocks.clear()
        for strand in self._strands.values():
            strand.kill()

    def close(self) -> None:
        for strand in self._strands.values():
            strand.end()
        self._gate.close()
        self._observer.close()


def _settle(connection: Any, _record: Any) -> None:
    connection.settled = True


def _connect(_dialect: Any, _record: Any, arguments: Any, named: Any) -> Connection:
    connection = Connection.connect(*arguments, **named)
    connection.cursor_factory = Cursor
    return connection
