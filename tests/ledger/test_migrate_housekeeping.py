"""From 0003 to this version under a fleet that is at work: nothing is lost, and whatever was in flight settles."""

import threading
from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest
from alembic import command
from sqlalchemy import text

from counterfoil.ledger import migrate
from counterfoil.ledger.events import SubmitUnclear
from counterfoil.ledger.ids import uuid7
from counterfoil.ledger.intents import Granted
from counterfoil.ledger.orphans import find_orphans
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.machine import asks, said
from counterfoil.tests.ledger.world import World

PATIENCE_S = 30.0


@pytest.fixture
def old_database(empty_database: str) -> str:
    """A ledger of version 0003, as the release before this one left it."""
    with migrate._connected(empty_database) as connection:
        connection.exec_driver_sql(migrate.roles_sql(), execution_options={"no_parameters": True})
        connection.execute(text("CREATE SCHEMA counterfoil AUTHORIZATION counterfoil_owner"))
        connection.execute(text("SET LOCAL ROLE counterfoil_owner"))
        command.upgrade(migrate._config(connection), "0003")
        connection.commit()
    return empty_database


class Before(World):
    """The fleet of the release before: what this release writes with, 0003 has as well, but for the door, which answers
    with less."""

    def opened(self, node: str = "run/1") -> UUID:
        self.store.register_targets([("reports", "mcp-2026-07-28")])
        query = (
            "SELECT operation_id FROM counterfoil.open_operation(%(id)s, 'main', 'default', %(node)s, 'd', 'reports',"
            " 'generate', 'default', '{}', gen_random_uuid()) WHERE verdict = 'opened'"
        )
        ((operation_id,),) = self.sql(query, {"id": uuid7(), "node": node})
        assert isinstance(operation_id, UUID)
        return operation_id


@pytest.fixture
def world(old_database: str) -> Iterator[World]:
    made = Before(old_database)
    yield made
    made.close()


def in_flight(world: World) -> dict[str, UUID]:
    """One operation in each way of being open, made by the statements of both releases."""
    found = {"sent": world.sent("sent")[0]}
    found["working"] = world.working("working", "t-w")
    found["asked"] = world.working("asked", "t-a")
    world.bring(found["asked"], asks("a", seq=11))
    found["cancelled"] = world.working("cancelled", "t-c")
    world.client.cancel("cancelled")
    lost, lease, _ = world.sent("lost")
    world.bring(lost, SubmitUnclear(1, "E_NO_ANSWER", "cut"), lease=lease)
    found["lost"] = lost
    heard, lease, _ = world.sent("heard")
    world.keep(heard, SubmitUnclear(1, "E_NO_ANSWER", "cut"))  # and its bearer died before the transition
    found["heard"] = heard
    found["due"] = world.opened("due")
    return found


def test_whatever_was_in_flight_settles_and_not_one_line_is_lost(old_database: str, world: World) -> None:
    operations = in_flight(world)
    counts = "SELECT (SELECT count(*) FROM counterfoil.journal), (SELECT count(*) FROM counterfoil.evidence)"
    before = world.sql(counts)
    assert migrate.upgrade(old_database) == migrate.head()
    assert migrate.check(old_database) == []
    assert world.sql(counts) == before
    with world.database.begin() as connection:
        assert find_orphans(connection, "main", bound_s=3600.0) == []

    lease = world.claim()[operations["due"]]
    assert isinstance(world.intend(lease), Granted)
    for name in ("working", "asked", "cancelled"):
        assert world.ended(operations[name]).verdict == "accepted"
    for name in ("lost", "heard", "sent", "due"):
        world.bring(operations[name], SubmitUnclear(1, "E_NO_ANSWER", "cut"), lane=Lane.SUBMIT)
        world.bring(operations[name], said("give_up"), lane=Lane.DOOR)
    assert {name: world.state(id_) for name, id_ in operations.items()} == dict.fromkeys(operations, "ACCEPTED")
    assert world.sql("SELECT count(*) FROM counterfoil.terminal_receipt") == [(len(operations),)]
    assert world.sql("SELECT count(*) FROM counterfoil.evidence WHERE consumed_at IS NULL") == [(0,)]
    with world.database.begin() as connection:
        assert find_orphans(connection, "main", bound_s=3600.0) == []


def test_a_worker_of_the_release_before_hears_answers_all_the_while_and_none_is_lost(
    old_database: str, world: World
) -> None:
    """The most sacred write, in the very form that the release before has it: evidence of an answer, fenced by nothing.
    A migration locks the table for a moment; who waits there goes on with the partitions."""
    operation_id, _, _ = world.sent()
    kept, stop, failures = 0, threading.Event(), list[Exception]()

    def hears() -> None:
        nonlocal kept
        while not stop.is_set():
            try:
                world.keep(operation_id, SubmitUnclear(1, "E_NO_ANSWER", f"answer {kept}"))
            except Exception as error:  # noqa: BLE001
                failures.append(error)
            else:
                kept += 1

    worker = threading.Thread(target=hears)
    worker.start()
    try:
        migrate.upgrade(old_database)
        after = world.sql("SELECT count(*) FROM counterfoil.evidence")[0][0]
        while world.sql("SELECT count(*) FROM counterfoil.evidence")[0][0] <= after:
            pass  # it hears on in the new tables
    finally:
        stop.set()
        worker.join(PATIENCE_S)
    assert failures == []
    assert world.sql("SELECT count(*) FROM counterfoil.evidence") == [(kept,)]


def test_rows_that_lie_in_no_month_are_moved_and_found(old_database: str, world: World) -> None:
    """Ids that are no UUIDv7 may sort behind every month."""
    operation_id = world.working()
    odd = UUID("ffffffff-ffff-4fff-bfff-ffffffffffff")
    plain = old_database.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(plain, autocommit=True) as owner:
        owner.execute("SET ROLE counterfoil_owner")
        owner.execute(
            "INSERT INTO counterfoil.evidence (id, fleet, operation_id, kind, attempt, generation, epoch, status,"
            " headers, body) VALUES (%s, 'main', %s, 'result', 0, 0, 1, 200, '{}', '')",
            (odd, operation_id),
        )
        owner.execute(
            "INSERT INTO counterfoil.journal (operation_id, seq, at, epoch, actor, event)"
            " VALUES (%s, 1, now(), 1, 'x', 'y')",
            (odd,),
        )
    migrate.upgrade(old_database)
    assert world.sql("SELECT id FROM counterfoil.evidence_rest") == [(odd,)]
    assert world.sql("SELECT operation_id FROM counterfoil.journal_rest") == [(odd,)]
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="immutable"):
        world.sql("DELETE FROM counterfoil.evidence_rest")
