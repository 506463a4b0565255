"""What metrics are made of: each number against a ledger in which something is the matter."""

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from counterfoil.ledger import epochs
from counterfoil.ledger.errors import LedgerUnavailable
from counterfoil.ledger.events import SubmitUnclear
from counterfoil.ledger.gauges import COUNTS, GAUGES, Gauges
from counterfoil.tests.ledger.world import World


@pytest.fixture
def gauges(world: World) -> Iterator[Gauges]:
    """A reader of a ledger whose clock stands still."""
    world.freeze()
    made = Gauges(world.url, "main")
    yield made
    made.close()


def found(gauges: Gauges, statement: str) -> list[dict[str, Any]]:
    reading = gauges.read()
    assert reading.failed == {}
    return [dict(row) for row in reading.rows[statement]]


def test_an_empty_ledger_is_read_without_a_fault(gauges: Gauges) -> None:
    reading = gauges.read()
    assert reading.failed == {}
    assert set(reading.rows) == {*GAUGES, "orphans"}
    assert set(reading.counted) == set(COUNTS)


def test_open_operations_are_counted_by_state_and_target_and_those_that_are_over_are_not(
    world: World, gauges: Gauges
) -> None:
    world.opened("a")
    world.working("b")
    world.ended(world.working("c", "t-2"))
    rows = found(gauges, "operations")
    assert sorted((row["state"], row["target"], row["protocol"], row["n"]) for row in rows) == [
        ("SUBMITTING", "reports", "mcp-2026-07-28", 1.0),
        ("WORKING", "reports", "mcp-2026-07-28", 1.0),
    ]


def test_the_oldest_due_row_ages_but_not_while_its_target_asked_for_quiet(world: World, gauges: Gauges) -> None:
    world.opened()
    world.pass_time(40)
    assert [(row["lane"], row["n"], row["oldest_s"]) for row in found(gauges, "due")] == [("submit", 1.0, 40.0)]
    world.store.close_target("reports", 30.0)
    assert found(gauges, "due")[0]["oldest_s"] == 0.0
    assert found(gauges, "targets")[0]["closed_s"] == 30.0
    world.pass_time(45)
    assert found(gauges, "due")[0]["oldest_s"] == 15.0
    assert found(gauges, "targets")[0]["closed_s"] == 0.0


def test_a_lost_submit_ages_from_the_moment_it_was_lost_and_says_whether_a_person_was_asked(
    world: World, gauges: Gauges
) -> None:
    operation_id, lease, _ = world.sent()
    world.pass_time(100)
    world.bring(operation_id, SubmitUnclear(1, "E_NO_ANSWER", "gone"), lease=lease)
    world.pass_time(899)
    (row,) = found(gauges, "unknown")
    assert (row["n"], row["overdue"], row["oldest_s"]) == (1.0, 0.0, 899.0)
    world.pass_time(2)
    (row,) = found(gauges, "unknown")
    asked = "yes" if any(is_open for _, _, is_open in world.cases(operation_id)) else "no"
    assert (row["asked"], row["overdue"], row["oldest_s"]) == (asked, 1.0, 901.0)


def test_a_cancel_ages_from_its_commit_until_its_end(world: World, gauges: Gauges) -> None:
    operation_id = world.working()
    world.client.cancel("run/1")
    world.pass_time(61)
    (row,) = found(gauges, "cancels")
    assert (row["target"], row["n"], row["p99_s"], row["oldest_s"]) == ("reports", 1.0, 61.0, 61.0)
    world.ended(operation_id)
    assert found(gauges, "cancels") == []
    world.pass_time(20)
    (receipt,) = gauges.read().counted["receipts"]
    assert (receipt["outcome"], receipt["cancel_s"]) == ("succeeded", 61.0)


def test_receipts_are_counted_once_and_only_when_nothing_older_can_still_commit(world: World, gauges: Gauges) -> None:
    assert gauges.read().counted["receipts"] == ()
    operation_id = world.working()
    world.pass_time(3)
    world.ended(operation_id)
    assert list(gauges.read().counted["receipts"]) == []
    world.pass_time(10.001)
    (row,) = gauges.read().counted["receipts"]
    assert (row["target"], row["outcome"], row["code"], row["n"]) == ("reports", "succeeded", "", 1.0)
    assert (row["bucket"], row["took_s"], row["cancel_bucket"]) == (2, 3.0, None)
    assert list(gauges.read().counted["receipts"]) == []


def test_what_waits_for_a_consumer_that_acknowledges_is_told_from_what_nobody_fetches(
    world: World, gauges: Gauges
) -> None:
    world.ended(world.working("a"))
    world.pass_time(70)
    rows = {(row["kind"], row["consumed"]): (row["n"], row["oldest_s"]) for row in found(gauges, "outbox")}
    assert rows == {("ready", "no"): (1.0, 70.0)}
    world.client.ack([ready.id for ready in world.client.ready()])
    assert found(gauges, "outbox") == []
    world.ended(world.working("b", "t-2"))
    rows = {(row["kind"], row["consumed"]): (row["n"], row["oldest_s"]) for row in found(gauges, "outbox")}
    assert rows == {("ready", "yes"): (1.0, 0.0)}


def test_what_an_older_epoch_tried_is_counted(world: World, gauges: Gauges) -> None:
    gauges.read()
    epochs.refuse(world.database, "main", 1, "transition", [uuid.uuid4(), uuid.uuid4()])
    world.pass_time(60)
    world.sql("UPDATE counterfoil.refused_write SET at = counterfoil.ledger_now() - interval '15 s'")
    (row,) = gauges.read().counted["refused"]
    assert (row["code"], row["what"], row["n"]) == ("E_STALE_EPOCH", "transition", 2.0)


def test_the_fleets_row_tells_epoch_switch_beat_and_evidence(world: World, gauges: Gauges) -> None:
    (row,) = found(gauges, "fleet")
    assert (row["epoch"], row["create_on"], row["beat_s"], row["evidence"]) == (1.0, 1.0, None, 0.0)
    world.store.seen("beat")
    operation_id, _, _ = world.sent()
    world.keep(operation_id, SubmitUnclear(1, "E_NO_ANSWER", "gone"))
    world.pass_time(31)
    (row,) = found(gauges, "fleet")
    assert (row["beat_s"], row["evidence"], row["evidence_s"]) == (31.0, 1.0, 31.0)


def test_a_part_of_the_fleet_that_is_heard_of_twice_a_second_is_written_down_every_5_s(world: World) -> None:
    world.freeze()
    moments = []
    for _ in range(4):
        world.store.seen("beat")
        moments += world.sql("SELECT seen_at FROM counterfoil.pulse WHERE name = 'beat'")
        world.pass_time(3)
    assert len({moment for (moment,) in moments}) == 2


def test_orphans_and_cases_are_counted(world: World, gauges: Gauges) -> None:
    operation_id = world.opened()
    world.pass_time(61)
    assert [(row["lane"], row["n"]) for row in found(gauges, "orphans")] == [("submit", 1.0)]
    world.sql(
        "INSERT INTO counterfoil.reconciliation_case (id, operation_id, kind, code, why, opened_at)"
        " VALUES (gen_random_uuid(), %(id)s, 'UNKNOWN', 'E_SUBMISSION_UNKNOWN', '', counterfoil.ledger_now())",
        {"id": operation_id},
    )
    world.pass_time(5)
    assert [(row["code"], row["n"], row["oldest_s"]) for row in found(gauges, "cases")] == [
        ("E_SUBMISSION_UNKNOWN", 1.0, 5.0)
    ]


def test_a_reader_reads_every_metric_and_no_argument_no_result_and_no_word_of_a_server(world: World) -> None:
    """The login of an exporter, a member of the reader's role and of nothing else."""
    world.working()
    name = f"exporter_{uuid.uuid4().hex[:8]}"
    login = sql.Identifier(name)
    with world.owner() as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'reads' IN ROLE counterfoil_reader").format(login))
    url = make_url(world.url).set(username=name, password="reads").render_as_string(hide_password=False)
    try:
        gauges = Gauges(url, "main")
        reading = gauges.read()
        gauges.close()
        assert reading.failed == {}
        assert [row["state"] for row in reading.rows["operations"]] == ["WORKING"]
        plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(plain, autocommit=True) as connection:
            for query in (
                "SELECT arguments FROM counterfoil.operation",
                "SELECT body FROM counterfoil.evidence",
                "SELECT body FROM counterfoil.operation_result",
                "SELECT sealed FROM counterfoil.remote_session",
                "SELECT reply FROM counterfoil.input_round",
                "UPDATE counterfoil.wake SET kick = 1",
                "INSERT INTO counterfoil.pulse VALUES ('main', 'beat', now())",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(query)
    finally:
        with world.owner() as connection:
            connection.execute(sql.SQL("DROP ROLE {}").format(login))


def test_what_can_not_be_read_costs_the_other_metrics_nothing(world: World, gauges: Gauges) -> None:
    world.opened()
    world.sql("REVOKE SELECT ON counterfoil.webhook_endpoint FROM counterfoil_reader")
    reading = gauges.read()
    assert reading.failed == {"fleet": "42501"}
    assert len(reading.rows["operations"]) == 1


def test_a_ledger_that_is_away_is_an_error() -> None:
    gauges = Gauges("postgresql://nobody@127.0.0.1:1/none", "main")
    with pytest.raises(LedgerUnavailable):
        gauges.read()
    gauges.close()
