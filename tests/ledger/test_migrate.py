"""The schema: made once, by any number at once, as a guest in somebody's database."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from counterfoil.ledger import migrate
from counterfoil.ledger.errors import LedgerUnavailable, ReleaseTooOld, SchemaOutdated
from counterfoil.tests.ledger.world import World


def plain(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def test_tables_and_code_say_the_same(database: str) -> None:
    assert migrate.check(database) == []
    assert migrate.current(database) == migrate.head()


def test_an_empty_database_is_told_apart_and_brought_up_by_two_at_once(empty_database: str) -> None:
    assert migrate.current(empty_database) is None
    assert migrate.check(empty_database) == [
        f"the schema is at version None, this code wants {migrate.head()}: run `counterfoil db upgrade`"
    ]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(migrate.upgrade, [empty_database] * 2)) == [migrate.head()] * 2
    assert migrate.check(empty_database) == []


def test_a_difference_is_told(database: str) -> None:
    with psycopg.connect(plain(database), autocommit=True) as connection:
        connection.execute("SET ROLE counterfoil_owner")
        connection.execute("ALTER TABLE counterfoil.wake DROP COLUMN claim_count")
    (difference,) = migrate.check(database)
    assert "claim_count" in difference


def test_we_are_guests_everything_stands_in_one_schema(database: str) -> None:
    with psycopg.connect(plain(database)) as connection:
        query = (
            "SELECT DISTINCT relnamespace::regnamespace::text FROM pg_class WHERE relnamespace::regnamespace::text"
            " NOT IN ('pg_catalog', 'pg_toast', 'information_schema')"
        )
        assert connection.execute(query).fetchall() == [("counterfoil",)]
        owners = (
            "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = 'counterfoil'::regnamespace"
        )
        assert connection.execute(owners).fetchall() == [("counterfoil_owner",)]
        flags = "SELECT rolcanlogin, rolsuper, rolcreaterole FROM pg_roles WHERE rolname LIKE 'counterfoil\\_%'"
        assert set(connection.execute(flags)) == {(False, False, False)}


def test_a_user_who_may_not_make_roles_is_given_the_statements(database_stack: Any, empty_database: str) -> None:
    """In a cluster where our roles are there already, what is missing is the membership."""
    name = "counterfoil_test_guest"
    with psycopg.connect(plain(database_stack.database_url), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'guest'").format(sql.Identifier(name)))
    try:
        guest = make_url(empty_database).set(username=name, password="guest").render_as_string(hide_password=False)
        with pytest.raises(SchemaOutdated, match="CREATE ROLE %I NOLOGIN"):
            migrate.upgrade(guest)
        assert migrate.current(empty_database) is None
    finally:
        with psycopg.connect(plain(database_stack.database_url), autocommit=True) as connection:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_without_a_server_the_next_command_is_told() -> None:
    with pytest.raises(LedgerUnavailable, match="counterfoil dev up"):
        migrate.upgrade("postgresql://nobody:secret@127.0.0.1:1/none")


# -- which releases may work -------------------------------------------------------------------------------------------


def as_owner(database: str, statement: str) -> None:
    with psycopg.connect(plain(database), autocommit=True) as connection:
        connection.execute("SET ROLE counterfoil_owner")
        connection.execute(statement.encode())


def test_a_release_works_on_its_own_schema_and_on_none_that_is_older_or_missing(
    database: str, empty_database: str
) -> None:
    assert migrate.require(database) == migrate.head()
    with pytest.raises(SchemaOutdated, match=f"at version none, this release wants {migrate.head()}"):
        migrate.require(empty_database)
    as_owner(database, "UPDATE counterfoil.alembic_version SET version_num = '0001'")
    with pytest.raises(SchemaOutdated, match="at version 0001"):
        migrate.require(database)


def test_after_a_roll_back_a_release_works_on_the_newer_schema_and_upgrades_nothing(database: str) -> None:
    as_owner(database, "UPDATE counterfoil.alembic_version SET version_num = '9998'")
    assert migrate.require(database) == "9998"
    assert migrate.upgrade(database) == "9998"


def test_a_migration_that_shuts_older_releases_out_keeps_them_from_starting(database: str) -> None:
    as_owner(database, "UPDATE counterfoil.alembic_version SET version_num = '9998'")
    as_owner(database, "UPDATE counterfoil.schema_floor SET version = '9998', why = 'receipts are sealed'")
    with pytest.raises(ReleaseTooOld, match="the ledger takes 9998 and newer: receipts are sealed"):
        migrate.require(database)


# -- what the tables themselves refuse ---------------------------------------------------------------------------------

REFUSED = (
    ("operation", "state = 'WORKING', task_id = NULL", "operation_working_has_task"),
    ("operation", "state = 'ACCEPTED', outcome = NULL", "operation_terminal_has_outcome"),
    ("operation", "attempt = 3", "operation_attempts"),
    ("operation", "sent_attempt = 2", "operation_attempts"),
    ("operation", "outcome = 'succeeded', result_digest = NULL", "operation_success_has_result"),
    ("operation", "state = 'working'", "operation_state"),
    ("operation", "budget_s = 1, budget_ends_at = now()", "operation_budget_runs_or_rests"),
    ("wake", "lane = 'mail'", "wake_lane"),
    ("wake", "lease_until = NULL", "wake_lease_whole"),
    ("intent", "closed_at = now()", "intent_closed_whole"),
    ("execution_epoch", "epoch = 0", "execution_epoch_positive"),
    ("call_node", "outcome = 'failed'", "call_node_outcome_with_receipt"),
)


def test_the_checks_restate_the_invariants(world: World) -> None:
    world.sent()
    for table, change, constraint in REFUSED:
        with pytest.raises(psycopg.errors.CheckViolation, match=constraint):
            world.sql(f"UPDATE counterfoil.{table} SET {change}")
