"""Schema versions: bring a database up to this version, or tell how it differs.

Migrations run in-process through Alembic's API (a call of its command line costs 1.2 to 1.9 s). Which version a
database has is read without it: a worker asks that at its start, and would keep Alembic's 6 MB for life. We are guests
in the database: one schema, no superuser, `search_path` untouched.
"""
# ruff: noqa: PLC0415 - see above

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, create_engine, select, text
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlalchemy.pool import NullPool

from .database import driver_url, statement
from .errors import LedgerUnavailable, ReleaseTooOld, SchemaOutdated
from .side_tables import schema_floor
from .store import MONTHS_AHEAD
from .tables import SCHEMA, metadata

if TYPE_CHECKING:
    from alembic.config import Config

_LOCK = 7_401_001
"""Advisory lock number: two `upgrade`s at once, one does the work."""


def _config(connection: Connection) -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(str(files("counterfoil.ledger"))) / "migrations"))
    config.attributes["connection"] = connection
    return config


@contextmanager
def _connected(database_url: str) -> Iterator[Connection]:
    engine = create_engine(driver_url(database_url), poolclass=NullPool)
    try:
        with engine.connect() as connection:
            yield connection
    except OperationalError as error:
        raise LedgerUnavailable(
            f"the database can't be used: {str(error.orig).strip().splitlines()[0]}",
            next_step="Start one with `counterfoil dev up`, or set COUNTERFOIL_DATABASE_URL.",
        ) from error
    finally:
        engine.dispose()


def roles_sql() -> str:
    """The statements that make our roles, for a database administrator to run."""
    return files("counterfoil.ledger.migrations").joinpath("roles.sql").read_text(encoding="utf-8")


def upgrade(database_url: str) -> str:
    """Bring the schema to this version and return the one that it has. Does nothing when it is there, or is newer.

    Raises SchemaOutdated when the roles are missing and can't be made by this user (its text holds the SQL for an
    administrator), LedgerUnavailable when the database can't be reached.
    """
    from alembic import command

    with _connected(database_url) as connection:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        found = _version(connection)
        if found is not None and found > head():
            return found
        try:
            with connection.begin_nested():
                connection.exec_driver_sql(roles_sql(), execution_options={"no_parameters": True})
        except ProgrammingError as error:
            raise SchemaOutdated(
                "this user may not create roles.",
                next_step=f"Have an administrator run, then try again:\n{roles_sql()}",
            ) from error
        connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA} AUTHORIZATION counterfoil_owner")
        connection.exec_driver_sql("SET LOCAL ROLE counterfoil_owner")
        command.upgrade(_config(connection), "head")
        connection.execute(statement("make_partitions"), {"ahead": MONTHS_AHEAD})
        connection.commit()
        return head()


def head() -> str:
    """The schema version that this code was written for: that of its last migration."""
    names = (file.name for file in files("counterfoil.ledger.migrations.versions").iterdir())
    return max(found[1] for name in names if (found := _REVISION.fullmatch(name)))


def current(database_url: str) -> str | None:
    """The schema version that the database has, None without our schema."""
    with _connected(database_url) as connection:
        return _version(connection)


def _version(connection: Connection) -> str | None:
    """Where Alembic keeps it."""
    if connection.scalar(text(f"SELECT to_regclass('{SCHEMA}.alembic_version')")) is None:
        return None
    version: str | None = connection.scalar(text(f"SELECT version_num FROM {SCHEMA}.alembic_version"))  # noqa: S608
    return version


_REVISION = re.compile(r"v(\d{4})_\w+\.py")
_PARTITION = re.compile(r"(journal|evidence)_(before|rest|\d{4}_\d{2})")


def require(database_url: str) -> str:
    """That this release may work on this ledger; returns the version that the ledger has. A newer one is fine unless a
    migration since shut older releases out (`schema_floor`): after a roll-back the release before runs on the newer
    schema.

    Raises SchemaOutdated where the ledger is older than this release or no ledger, ReleaseTooOld, LedgerUnavailable.
    """
    with _connected(database_url) as connection:
        found = _version(connection)
        if found is None or found < head():
            raise SchemaOutdated(
                f"the ledger's schema is at version {found or 'none'}, this release wants {head()}.",
                next_step="Run `counterfoil db upgrade`.",
            )
        floor, why = connection.execute(select(schema_floor.c.version, schema_floor.c.why)).one()
    if head() < floor:
        raise ReleaseTooOld(
            f"this release is of schema version {head()}, the ledger takes {floor} and newer: {why}.",
            next_step="Start the release that is current; what is in flight goes on with it.",
        )
    return found


def _ours(name: str | None, kind: str, _parents: object) -> bool:
    """Only our schema is looked at: we are guests. Partitions are as their parents."""
    if kind == "schema":
        return name == SCHEMA
    return kind != "table" or _PARTITION.fullmatch(name or "") is None


def check(database_url: str) -> list[str]:
    """How the database differs from `tables.py`, one line a difference; empty when it is right."""
    from alembic.autogenerate import compare_metadata
    from alembic.runtime.migration import MigrationContext

    with _connected(database_url) as connection:
        options = {
            "version_table_schema": SCHEMA,
            "include_schemas": True,
            "include_name": _ours,
            "compare_type": True,
        }
        context = MigrationContext.configure(connection, opts=options)
        found = context.get_current_revision()
        if found != head():
            return [f"the schema is at version {found}, this code wants {head()}: run `counterfoil db upgrade`"]
        return [str(difference) for difference in compare_metadata(context, metadata)]
