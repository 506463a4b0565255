"""A real ledger to play transcripts on: a database of its own, with a clock that stands until it is moved."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from sqlalchemy.engine import make_url

from ..ledger import migrate
from ..ledger.database import Database
from ..ledger.errors import LedgerUnavailable
from ..ledger.states import Lane
from ..ledger.store import EVIDENCE_GRACE_S
from . import devstack
from .devstack import DevStack
from .devstate import ServerName

START = datetime(2026, 11, 29, 10, tzinfo=UTC)
"""When every transcript begins."""


_SERVERS: tuple[ServerName, ...] = ("postgres",)


@contextmanager
def throw_away_ledger(environ: Mapping[str, str] = os.environ) -> Iterator["ConformLedger"]:
    """A migrated database that nobody else sees, dropped at the end: on a PostgreSQL that lives as long as the block,
    or on COUNTERFOIL_DATABASE_URL's, whose user may create databases there.

    Raises DevStackError, LedgerUnavailable (also where no database may be made), SchemaOutdated.
    """
    with _server(environ) as stack, _database(stack) as url:
        migrate.upgrade(url)
        ledger = ConformLedger(url)
        try:
            yield ledger
        finally:
            ledger.close()


@contextmanager
def _server(environ: Mapping[str, str]) -> Iterator[DevStack]:
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-conform-"))
    folder.chmod(0o755)  # where we are root, Postgres's account must be able to pass
    places = (folder / "state", folder / "data")
    try:
        own = DevStack(places[0], servers=_SERVERS, migrate=False, environ=environ, root_data_dir=places[1])
        with own as stack:
            yield stack
        devstack.reset(places[0], root_data_dir=places[1])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _database(stack: DevStack) -> Iterator[str]:
    url = make_url(stack.database_url)
    name = f"counterfoil_conform_{secrets.token_hex(6)}"
    operator = url.set(drivername="postgresql").render_as_string(hide_password=False)
    _operate(operator, "CREATE DATABASE {}", name)
    try:
        # Nobody cuts the power for a minute, and what is lost with it is thrown away anyway.
        _operate(operator, "ALTER DATABASE {} SET synchronous_commit = off", name)
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        _operate(operator, "DROP DATABASE {} WITH (FORCE)", name)


def _operate(operator: str, statement: LiteralString, name: str) -> None:
    try:
        with psycopg.connect(operator, autocommit=True, connect_timeout=5) as connection:
            connection.execute(sql.SQL(statement).format(sql.Identifier(name)))
    except psycopg.Error as error:
        first = (str(error).strip().splitlines() or ["no answer"])[0]
        raise LedgerUnavailable(
            f"no database can be made for the transcripts: {first}",
            next_step="Give COUNTERFOIL_DATABASE_URL a user that may create databases, or unset it: then a PostgreSQL "
            "of our own is started.",
        ) from error


@dataclass(frozen=True, slots=True)
class Trail:
    """What only the owner's eyes see of an operation."""

    cases: Sequence[tuple[str, str, bool]]
    """(kind, code, open)."""
    refused: Sequence[str]
    """Codes of writes that a fence refused."""
    outbox: int


class ConformLedger:
    """The database for workers and producers, and the owner's connection for the clock and for looking."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.database = Database(url, pool_size=4)
        plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._owner: psycopg.Connection[Any] = psycopg.connect(plain, autocommit=True)
        self._owner.execute("SET ROLE counterfoil_owner")
        self._owner.execute("INSERT INTO counterfoil.ledger_clock (frozen_at) VALUES (%s)", (START,))

    def close(self) -> None:
        self._owner.close()
        self.database.dispose()

    def set_clock(self, now_us: int) -> None:
        """Let it be `now_us` microseconds after the start, for every safety decision of the ledger."""
        self._owner.execute(
            "UPDATE counterfoil.ledger_clock SET frozen_at = %s + make_interval(secs => %s::float8 / 1e6)",
            (START, now_us),
        )

    def add_fleet(self, fleet: str) -> None:
        """A fleet of its own for one case: nothing that an earlier one left behind is due there."""
        self._owner.execute(
            "INSERT INTO counterfoil.execution_epoch (fleet, epoch, system_identifier, timeline)"
            " SELECT %s, 1, system_identifier, timeline FROM counterfoil.execution_epoch WHERE fleet = 'main'",
            (fleet,),
        )

    def next_due_us(self, fleet: str, lanes: Sequence[Lane]) -> int | None:
        """When the ledger has work again, in microseconds after the start: a wake row (none of a closed target, but
        for lanes without a wire), or evidence that its bearer left. None: nothing is due, ever."""
        found = self._owner.execute(
            "SELECT ceil(extract(epoch FROM min(due.at) - %(start)s) * 1e6)::int8 FROM ("
            " SELECT greatest(w.due_at, CASE WHEN w.lane NOT IN ('timer', 'fetch') THEN t.closed_until END) AS at"
            " FROM counterfoil.wake AS w JOIN counterfoil.target_state AS t USING (fleet, target)"
            " WHERE w.fleet = %(fleet)s AND w.lane = ANY(%(lanes)s)"
            " UNION ALL SELECT e.received_at + make_interval(secs => %(grace_s)s) FROM counterfoil.evidence AS e"
            " WHERE e.fleet = %(fleet)s AND e.consumed_at IS NULL) AS due",
            {"start": START, "fleet": fleet, "lanes": [str(lane) for lane in lanes], "grace_s": EVIDENCE_GRACE_S},
        ).fetchone()
        return None if found is None or found[0] is None else int(found[0])

    def input_ends_us(self, operation_id: object) -> int | None:
        """When the open question's time is up, in microseconds after the start."""
        found = self._owner.execute(
            "SELECT ceil(extract(epoch FROM input_ends_at - %s) * 1e6)::int8 FROM counterfoil.operation WHERE id = %s",
            (START, operation_id),
        ).fetchone()
        return None if found is None or found[0] is None else int(found[0])

    def read_seq(self, operation_id: object) -> int:
        """The sequence that the present holder of the poll row reads under; 0 where nobody may read any more."""
        found = self._owner.execute(
            "SELECT coalesce(max(read_seq), 0) FROM counterfoil.wake WHERE operation_id = %s", (operation_id,)
        ).fetchone()
        return 0 if found is None else int(found[0])

    def trail(self, operation_id: object) -> Trail:
        """What the ledger kept of an operation beside its row, journal and receipt."""
        key = (operation_id,)
        cases = self._owner.execute(
            "SELECT kind, code, closed_at IS NULL FROM counterfoil.reconciliation_case"
            " WHERE operation_id = %s ORDER BY opened_at, id",
            key,
        ).fetchall()
        refused = self._owner.execute(
            "SELECT code FROM counterfoil.refused_write WHERE operation_id = %s", key
        ).fetchall()
        outbox = self._owner.execute(
            "SELECT count(*) FROM counterfoil.ready_outbox AS o JOIN counterfoil.terminal_receipt AS r"
            " ON r.id = o.receipt_id WHERE r.operation_id = %s",
            key,
        ).fetchone()
        return Trail(cases, [row[0] for row in refused], int(outbox[0]) if outbox else 0)
