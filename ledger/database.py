"""The one way to PostgreSQL: an engine whose connections work under our role, our limits and the right database.

`SET ROLE` leaves a login user with no more rights than the app role has (no write on receipts). The time limits are the
ones that keep a stopped client from holding a bump: 2 s idle in a transaction, 5 s a statement.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar, cast

import psycopg
from psycopg.abc import DumperKey
from psycopg.adapt import PyFormat
from psycopg.rows import namedtuple_row
from psycopg.types.array import ListDumper
from sqlalchemy import Connection, Engine, TextClause, create_engine, event, text
from sqlalchemy.exc import DBAPIError

from .errors import CounterfoilError, LedgerUnavailable, RecoverFirst, SchemaOutdated, StoodStill

APP_ROLE = "counterfoil_app"
PRODUCER_ROLE = "counterfoil_producer"
READER_ROLE = "counterfoil_reader"
TRIES = 3
"""40001, 40P01, 55P03: the transaction is run again from its locks, at most three times; nothing sent is part of it."""

_AGAIN = frozenset({"40001", "40P01", "55P03"})
_ENDED = frozenset({"25P03", "25P04"})
"""Idle in a transaction for too long, or a transaction for too long: this process stood still, no row is at fault."""

NO_SCHEMA = frozenset({"3F000", "42P01", "42883", "42703"})
"""No such schema, table, function or column: in statements that are fixed, the ledger is missing or older."""

T = TypeVar("T")


@cache
def statement(name: str) -> TextClause:
    """The SQL of `sql/<name>.sql`, for a transaction that is not ours: a producer's or the owner's."""
    return text(files("counterfoil.ledger").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8"))


def execute(
    connection: "Connection | psycopg.Connection[Any]", name: str, arguments: Mapping[str, Any]
) -> psycopg.Cursor[Any]:
    """Run `sql/<name>.sql` in the connection's transaction; the cursor has its rows, as named tuples.

    Over the driver's own connection: what SQLAlchemy does for a statement, these don't need (132 -> 63 us each).
    Prepared at first sight: each is run for a connection's life, and the driver's own patience of five is five plans
    for nothing. Errors are the driver's.
    """
    plain = driver(connection) if isinstance(connection, Connection) else connection
    return plain.cursor(row_factory=namedtuple_row).execute(_for_driver(name), arguments, prepare=True)


@cache
def _for_driver(name: str) -> bytes:
    """The same statement with the driver's parameters (`:id` -> `%(id)s`)."""
    return re.sub(r"(?<!:):(\w+)", r"%(\1)s", statement(name).text.replace("%", "%%")).encode()


def driver(connection: Connection) -> psycopg.Connection[Any]:
    """The driver's connection under one of SQLAlchemy's, in the same transaction."""
    return cast("psycopg.Connection[Any]", connection.connection.driver_connection)


def driver_url(database_url: str) -> str:
    """The same URL with the psycopg driver named, for SQLAlchemy."""
    for plain in ("postgresql://", "postgres://"):
        if database_url.startswith(plain):
            return "postgresql+psycopg://" + database_url[len(plain) :]
    return database_url


def sqlstate(error: BaseException) -> str | None:
    """The SQLSTATE of a driver's or a SQLAlchemy error, if there is one."""
    return getattr(getattr(error, "orig", error), "sqlstate", None)


class UntypedListDumper(ListDumper):
    """Lists whose type the statement names (`CAST(:ids AS uuid[])`), not their first element: a column of NULLs or of
    larger numbers is no other statement, so each is planned once a connection. (One with 45 columns came in 16 variants
    and was planned nearly every time: 0.8 ms.)"""

    def get_key(self, obj: list[Any], format: PyFormat) -> DumperKey:  # noqa: A002  psycopg's name
        return self.cls


class Database:
    """A pool of connections for one process. Not shared over a fork: make it after.

    Work is done under `role` where the login is a member of it, else (and with None) under the login's own rights.
    `fleet` makes every new connection compare the database's identity with the one in the epoch row (SPEC section 8:
    after a promotion or a restore nothing is sent until `recover` has run; a promotion ends connections, so opening
    is the moment).
    """

    def __init__(
        self, database_url: str, *, fleet: str | None = None, role: str | None = APP_ROLE, pool_size: int = 4
    ) -> None:
        self._fleet = fleet
        self._role = role
        self._engine: Engine = create_engine(
            driver_url(database_url),
            pool_size=pool_size,
            max_overflow=4,
            pool_timeout=10,
            # The connection that was used last has its statements prepared and planned.
            pool_use_lifo=True,
            connect_args={"connect_timeout": 5},
        )
        self._auto = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        event.listen(self._engine, "connect", self._prepare)

    def _prepare(self, connection: Any, _record: Any) -> None:
        connection.adapters.register_dumper(list, UntypedListDumper)
        was, connection.autocommit = connection.autocommit, True
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT set_config('idle_in_transaction_session_timeout', '2s', false),"
                    " set_config('statement_timeout', '5s', false), set_config('lock_timeout', '4s', false),"
                    " CASE WHEN pg_has_role(session_user, (SELECT oid FROM pg_roles WHERE rolname = %s), 'MEMBER')"
                    " THEN set_config('role', %s, false) END",
                    (self._role, self._role),
                )
                if self._fleet is not None:
                    cursor.execute(
                        files("counterfoil.ledger").joinpath("sql", "identity.sql").read_text(), {"fleet": self._fleet}
                    )
                    _require_same_database(cursor.fetchone())
        except BaseException:
            connection.close()
            raise
        connection.autocommit = was

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """One short transaction, READ COMMITTED."""
        with translated(), self._engine.begin() as connection, self._watched(connection):
            yield connection

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """For one statement that is its own transaction: one round trip, so a stopped client holds no lock."""
        with translated(), self._auto.connect() as connection, self._watched(connection):
            yield connection

    @contextmanager
    def _watched(self, connection: Connection) -> Iterator[None]:
        """What SQLAlchemy does for statements of its own: a connection that has ended goes, and those that were made
        before the same server went away go with it."""
        try:
            yield
        except psycopg.Error as error:
            if not connection.invalidated and driver(connection).closed:
                connection.invalidate(error)
                self._engine.dispose()
            raise

    def again(self, work: Callable[[], T]) -> T:
        """Run a whole transaction, and run it again from its locks after a serialization failure, deadlock or lock
        timeout, or after this process stood still in it."""
        for _ in range(TRIES - 1):
            try:
                return work()
            except StoodStill:
                continue
            except psycopg.Error as error:
                if error.sqlstate not in _AGAIN:
                    raise
        return work()

    def dispose(self) -> None:
        """Close every idle connection."""
        self._engine.dispose()


def _require_same_database(found: tuple[bool | None] | None) -> None:
    """`found` is None for a fleet that is not there yet. Raises RecoverFirst, LedgerUnavailable (a standby)."""
    if found is not None and found[0] is None:
        raise LedgerUnavailable(
            "this database is a standby that is not promoted.",
            next_step="Use the primary's address; or promote it, then run `counterfoil recover`.",
        )
    if found is not None and not found[0]:
        raise RecoverFirst(
            "this database was promoted or restored since the fleet last ran; it may lack sent calls.",
            next_step="Run `counterfoil recover` before anything is sent.",
        )


@contextmanager
def translated() -> Iterator[None]:
    """Turn "can't reach it" and "no such schema" into our errors; the driver's own words stay as the cause. All others
    leave as the driver's, whoever executed the statement."""
    try:
        yield
    except (DBAPIError, psycopg.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if not isinstance(cause, psycopg.Error):
            raise
        ours = _ours(cause)
        if ours is not None:
            raise ours from cause
        raise cause from None


def _ours(error: psycopg.Error) -> CounterfoilError | None:
    state = error.sqlstate or ""
    if state in _ENDED:
        return StoodStill(
            "the database ended a transaction that stood still; nothing of it was written.",
            next_step="It is done again; a machine that starves its processes shows here first.",
        )
    if state in NO_SCHEMA:
        return SchemaOutdated(
            "the ledger's tables are missing or older than this version.", next_step="Run `counterfoil db upgrade`."
        )
    if isinstance(error, psycopg.OperationalError) and (not state or state.startswith(("08", "57P"))):
        first = (str(error).strip().splitlines() or ["no answer"])[0]
        return LedgerUnavailable(
            f"the database can't be used: {first}",
            next_step="Start one with `counterfoil dev up`, or set COUNTERFOIL_DATABASE_URL.",
        )
    return None
