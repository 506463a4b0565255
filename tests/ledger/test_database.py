"""Connections: the app role, short limits, the right database, the ledger's clock."""

from collections.abc import Callable

import psycopg
import pytest
from sqlalchemy import Connection

from counterfoil.ledger.database import TRIES, Database, driver_url, execute, statement
from counterfoil.ledger.errors import LedgerUnavailable, RecoverFirst
from counterfoil.ledger.ids import uuid7
from counterfoil.tests.ledger.world import World


def test_every_connection_works_under_the_app_role_and_its_limits(world: World) -> None:
    with world.database.begin() as connection:
        query = (
            "SELECT current_user, current_setting('idle_in_transaction_session_timeout'),"
            " current_setting('statement_timeout'), current_setting('transaction_isolation')"
        )
        assert connection.exec_driver_sql(query).one() == ("counterfoil_app", "2s", "5s", "read committed")


def test_a_database_that_was_promoted_or_restored_is_refused_until_recover(world: World) -> None:
    """Review B9: what was sent before may be missing here."""
    for change in ("timeline = timeline + 1", "timeline = timeline - 1, system_identifier = system_identifier + 1"):
        world.sql(f"UPDATE counterfoil.execution_epoch SET {change}")
        with pytest.raises(RecoverFirst, match="counterfoil recover"):
            World(world.url)
    world.sql("UPDATE counterfoil.execution_epoch SET system_identifier = system_identifier - 1")
    World(world.url).close()


def test_the_ledgers_clock_can_be_frozen_by_the_owner_alone_and_is_a_live_clock_otherwise(world: World) -> None:
    now = "SELECT counterfoil.ledger_now()"
    with world.database.begin() as connection:
        first, later = (connection.exec_driver_sql(now).scalar_one() for _ in range(2))
        assert first < later  # not the transaction's beginning: a deadline is judged as of now, also after a lock wait
    world.freeze()
    assert world.sql(now) == world.sql(now)
    with world.owner() as connection:
        connection.execute("SET ROLE counterfoil_app")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("UPDATE counterfoil.ledger_clock SET frozen_at = now()")
    assert world.sql("SELECT provolatile FROM pg_proc WHERE proname = 'ledger_now'") == [("s",)]


def test_a_due_row_is_found_by_the_index(world: World) -> None:
    """Review X4: a volatile clock is no index bound; 10,000 rows were read for one."""
    world.sql(
        "INSERT INTO counterfoil.wake (operation_id, lane, fleet, target, due_at)"
        " SELECT gen_random_uuid(), 'poll', 'main', 'reports', now() + make_interval(secs => n)"
        " FROM generate_series(1, 5000) AS n"
    )
    world.sql("ANALYZE counterfoil.wake")
    plan = "\n".join(
        row[0]
        for row in world.sql(
            "EXPLAIN SELECT 1 FROM counterfoil.wake WHERE fleet = 'main' AND lane = 'poll' AND target = 'reports'"
            " AND due_at <= counterfoil.ledger_now() LIMIT 100"
        )
    )
    assert "wake_due" in plan
    assert "due_at <= " in plan.partition("Index Cond")[2]
    assert "Filter" not in plan


@pytest.mark.parametrize(("sqlstate", "runs"), [("40001", TRIES), ("40P01", TRIES), ("55P03", TRIES), ("22012", 1)])
def test_a_transaction_that_lost_a_race_is_run_again_from_its_locks_and_no_other(
    world: World, sqlstate: str, runs: int
) -> None:
    ran = 0

    def work() -> None:
        nonlocal ran
        ran += 1
        with world.database.begin() as connection:
            connection.exec_driver_sql(f"DO $$ BEGIN RAISE EXCEPTION 'in the way' USING ERRCODE = '{sqlstate}'; END $$")

    with pytest.raises(psycopg.Error):
        world.database.again(work)
    assert ran == runs


@pytest.mark.parametrize(
    "ask",
    [
        lambda connection: connection.exec_driver_sql("SELECT 1"),
        lambda connection: execute(connection, "ledger_id", {}),
    ],
    ids=["a statement of SQLAlchemy's", "one of our own"],
)
def test_a_connection_that_was_ended_is_told_as_such(world: World, ask: Callable[[Connection], object]) -> None:
    def work() -> None:
        with world.database.begin() as connection:
            pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            with world.owner() as owner:
                owner.execute("SELECT pg_terminate_backend(%s)", (pid,))
            ask(connection)

    with pytest.raises(LedgerUnavailable, match="E_LEDGER_UNAVAILABLE"):
        work()
    with world.database.begin() as connection:  # and the next one is another
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1


def test_the_cause_names_no_password() -> None:
    with pytest.raises(LedgerUnavailable) as told, Database("postgresql://nobody:hush@127.0.0.1:1/none").begin():
        pass
    assert "hush" not in str(told.value)


def test_urls_of_other_tools_are_taken_and_every_statement_is_a_file() -> None:
    assert {driver_url(f"{scheme}://h/d") for scheme in ("postgres", "postgresql", "postgresql+psycopg")} == {
        "postgresql+psycopg://h/d"
    }
    assert statement("fence").text.startswith("--")
    with pytest.raises(FileNotFoundError):
        statement("nothing")


def test_an_error_of_either_way_is_the_drivers(world: World) -> None:
    with pytest.raises(psycopg.errors.InvalidTextRepresentation), world.database.begin() as connection:
        connection.exec_driver_sql("SELECT 'x'::int")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation), world.database.begin() as connection:
        execute(connection, "show_cases", {"ids": ["x"]})


@pytest.mark.parametrize("name", ["lock_operations", "read_operations", "show_operations", "open_operations"])
def test_a_statement_of_every_submit_or_transition_is_planned_once(world: World, name: str) -> None:
    """For one id as for many: with the number in sight each execution was planned anew."""
    shared = {"fleet": "none", "namespace": "default", "principal": "default"}
    arrays = dict.fromkeys(("ids", "nodes", "digests", "targets", "tools", "bodys", "keys"))
    counts = "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement LIKE %s"
    with world.database.begin() as connection:
        for round_ in range(20):
            ids = [uuid7() for _ in range(1 + round_ % 5)]
            texts = {key: [str(id_) for id_ in ids] for key in arrays}
            execute(connection, name, texts | {"digests": [b""] * len(ids), "bodys": [b""] * len(ids)} | shared)
        first = statement(name).text.partition("\n")[0]
        ((generic, custom),) = connection.exec_driver_sql(counts, (f"{first}%",)).all()
    assert custom <= 5 < generic
