"""Housekeeping: old months and old rows go, whole and archived; what lives, and the register, stays."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from counterfoil.ledger.errors import InputRefused, LedgerUnavailable
from counterfoil.ledger.events import SubmitUnclear
from counterfoil.ledger.housekeeping import KEPT_DAYS, Housekeeping, kept_days
from counterfoil.tests.ledger.world import World

DAY_S = 86_400.0


@pytest.fixture
def house(world: World) -> Iterator[Housekeeping]:
    """The housekeeper of a ledger whose clock stands still."""
    world.freeze()
    made = Housekeeping(world.url)
    yield made
    made.close()


def names(world: World, parent: str) -> list[str]:
    query = "SELECT name FROM counterfoil.partition WHERE parent = %(parent)s ORDER BY upper_id NULLS LAST"
    return [row[0] for row in world.sql(query, {"parent": parent})]


def ended(world: World, node: str = "run/1") -> None:
    """A call that is over, with evidence that was read."""
    operation_id, lease, _ = world.sent(node)
    world.keep(operation_id, SubmitUnclear(1, "E_NO_ANSWER", "gone"))
    world.bring(operation_id, lease=lease)
    world.sql("UPDATE counterfoil.reconciliation_case SET closed_at = now(), closed_by = 'ann', verdict = 'give_up'")
    world.sql(
        "UPDATE counterfoil.operation SET state = 'ACCEPTED', outcome = 'abandoned' WHERE id = %(id)s",
        {"id": operation_id},
    )
    world.sql("UPDATE counterfoil.call_node SET outcome = 'abandoned', receipt_id = gen_random_uuid()")
    world.sql("DELETE FROM counterfoil.wake")


def grown_old(world: World) -> None:
    """The first month ended 91 days ago, the second one did not."""
    query = "SELECT until_at + interval '91 days' FROM counterfoil.partition WHERE name = 'evidence_before'"
    world.sql(f"UPDATE counterfoil.ledger_clock SET frozen_at = ({query})")


def the_operation(world: World) -> UUID:
    ((found,),) = world.sql("SELECT id FROM counterfoil.operation")
    assert isinstance(found, UUID)
    return found


# -- months ------------------------------------------------------------------------------------------------------------


def test_the_months_to_come_are_there_and_one_that_comes_near_is_made_by_whoever_is_first(world: World) -> None:
    world.freeze()
    assert len(names(world, "journal")) == len(names(world, "evidence")) == 4  # before, two ahead, the rest
    world.pass_time(31 * DAY_S)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: world.store.make_partitions(), range(3)))
    for parent in ("journal", "evidence"):
        *months, rest = names(world, parent)
        assert rest == f"{parent}_rest"
        assert len(months) == 4
        assert months[0] == f"{parent}_before"
    bounds = world.sql("SELECT upper_id FROM counterfoil.partition WHERE parent = 'journal' AND upper_id IS NOT NULL")
    lowers = world.sql("SELECT lower_id FROM counterfoil.partition WHERE parent = 'journal' AND lower_id IS NOT NULL")
    assert set(lowers) < set(bounds), "no gap between two months"


def test_a_fleet_that_stood_still_for_a_year_writes_into_the_rest_and_makes_the_months_that_are_free(
    world: World,
) -> None:
    """Nobody made this month, so its rows already lie in the rest: they stay there, and the next months are made."""
    world.freeze()
    world.pass_time(365 * DAY_S)
    query = (
        "INSERT INTO counterfoil.evidence (id, fleet, operation_id, kind, attempt, generation, epoch, status, headers,"
        " body) VALUES (counterfoil.id_floor(counterfoil.ledger_now()), 'main', gen_random_uuid(), 'submit', 1, 0, 1,"
        " 200, '{}', '')"
    )
    world.sql(query)
    before = set(names(world, "evidence"))
    world.store.make_partitions()
    assert len(set(names(world, "evidence")) - before) == 2  # the two ahead
    assert len(names(world, "journal")) == 4 + 3  # this month as well
    assert world.sql("SELECT count(*) FROM counterfoil.evidence_rest") == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE counterfoil.evidence",
        "TRUNCATE counterfoil.evidence_before",
        "TRUNCATE counterfoil.journal",
        "TRUNCATE counterfoil.journal_rest",
        "DELETE FROM counterfoil.evidence",
        "DELETE FROM counterfoil.evidence_before",
    ],
)
def test_no_partition_is_emptied_or_thinned_out_not_even_by_its_owner(world: World, statement: str) -> None:
    operation_id, _, _ = world.sent()
    world.keep(operation_id, SubmitUnclear(1, "E_NO_ANSWER", "gone"))
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="immutable"):
        world.sql(statement)


def test_a_partition_that_was_made_later_refuses_as_well(world: World) -> None:
    world.freeze()
    world.pass_time(62 * DAY_S)
    world.store.make_partitions()
    newest = names(world, "evidence")[-2]
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="immutable"):
        world.sql(f"TRUNCATE counterfoil.{newest}")


def test_a_month_goes_when_it_is_old_and_nothing_that_lives_needs_it(world: World, house: Housekeeping) -> None:
    ended(world)
    assert house.months("evidence", 90) == []
    grown_old(world)
    assert [month.name for month in house.months("evidence", 90)] == ["evidence_before"]
    assert house.months("evidence", 200) == []
    world.opened("run/2")
    assert [month.name for month in house.months("journal", 90)] == [], "the journal of an open call is still written"
    assert [month.name for month in house.months("evidence", 90)] == ["evidence_before"]


@pytest.mark.parametrize(
    "needs",
    [
        "UPDATE counterfoil.call_node SET outcome = NULL, receipt_id = NULL",
        "UPDATE counterfoil.operation SET audit_ends_at = counterfoil.ledger_now() + interval '1 minute'",
        "UPDATE counterfoil.reconciliation_case SET closed_at = NULL, closed_by = NULL",
        "UPDATE counterfoil.evidence SET consumed_at = NULL",
    ],
    ids=["an operation", "an audit", "a case", "unread evidence"],
)
def test_a_month_that_something_living_needs_stays_however_old_it_is(
    world: World, house: Housekeeping, needs: str
) -> None:
    ended(world)
    world.pass_time(3650 * DAY_S)
    assert "evidence_before" in [month.name for month in house.months("evidence", 90)]
    world.sql(needs)
    assert "evidence_before" not in [month.name for month in house.months("evidence", 90)]


def test_an_archived_month_holds_every_row_and_the_receipts_stay(
    world: World, house: Housekeeping, tmp_path: Path
) -> None:
    ended(world)
    kept = world.sql("SELECT row_to_json(e)::text FROM counterfoil.evidence AS e")
    grown_old(world)
    for kind in ("evidence", "journal"):
        (month,) = house.months(kind, 90)
        assert house.take_month(month, tmp_path)
    text = gzip.decompress((tmp_path / "evidence_before.jsonl.gz").read_bytes())
    assert [json.loads(line) for line in text.splitlines()] == [json.loads(row) for (row,) in kept]
    digest = (tmp_path / "evidence_before.jsonl.sha256").read_text()
    assert digest == f"{hashlib.sha256(text).hexdigest()}  evidence_before.jsonl\n"
    assert {path.name for path in tmp_path.iterdir()} == {
        *("evidence_before.jsonl.gz", "evidence_before.jsonl.sha256"),
        *("journal_before.jsonl.gz", "journal_before.jsonl.sha256"),
    }
    assert world.sql("SELECT count(*) FROM counterfoil.evidence") == [(0,)]
    assert world.sql("SELECT count(*) FROM counterfoil.call_node") == [(1,)]
    assert world.sql("SELECT count(*) FROM counterfoil.operation") == [(1,)]
    again = world.client.submit("reports", "generate", {"month": "2026-10"}, call_node_id="run/1")
    assert str(again.outcome) == "abandoned", "a repeat is known as one"


def test_a_run_that_broke_off_after_the_detachment_is_finished_by_the_next(
    world: World, house: Housekeeping, tmp_path: Path
) -> None:
    ended(world)
    grown_old(world)
    world.sql("ALTER TABLE counterfoil.evidence DETACH PARTITION counterfoil.evidence_before")
    (tmp_path / "evidence_before.jsonl.partial").write_bytes(b"half a file")
    (month,) = house.months("evidence", 90)
    assert (month.name, month.attached) == ("evidence_before", False)
    assert house.take_month(month, tmp_path)
    assert len(gzip.decompress((tmp_path / "evidence_before.jsonl.gz").read_bytes()).splitlines()) == 1
    assert house.months("evidence", 90) == []


def test_an_answer_that_comes_in_between_the_look_and_the_detachment_keeps_its_month(
    world: World, house: Housekeeping, tmp_path: Path
) -> None:
    ended(world)
    grown_old(world)
    (month,) = house.months("evidence", 90)
    world.keep(the_operation(world), SubmitUnclear(1, "E_NO_ANSWER", "late"))
    assert not house.take_month(month, tmp_path)
    assert "evidence_before" in names(world, "evidence")
    assert list(tmp_path.iterdir()) == []


def test_what_is_said_about_a_dropped_month_later_is_kept_in_the_rest(world: World, house: Housekeeping) -> None:
    ended(world)
    grown_old(world)
    (month,) = house.months("evidence", 90)
    assert house.take_month(month, None)
    world.keep(the_operation(world), SubmitUnclear(1, "E_NO_ANSWER", "late"))
    assert world.sql("SELECT count(*) FROM counterfoil.evidence_rest") == [(1,)]


def test_a_month_that_is_read_for_long_is_left_and_nobody_waits_behind_it(world: World, house: Housekeeping) -> None:
    """A dump holds its lock; the detachment waits 0.7 s five times, and in between whoever waited behind it goes on."""
    ended(world)
    grown_old(world)
    (month,) = house.months("evidence", 90)
    with world.owner() as dump, dump.transaction():
        dump.execute("SELECT count(*) FROM counterfoil.evidence")
        with pytest.raises(LedgerUnavailable, match="long transaction") as caught:
            house.take_month(month, None)
    assert caught.value.code == "E_BUSY"
    assert "evidence_before" in names(world, "evidence")


# -- rows --------------------------------------------------------------------------------------------------------------


def test_acknowledged_events_go_after_their_days_and_waiting_ones_never(world: World, house: Housekeeping) -> None:
    world.ended(world.working("a"))
    world.ended(world.working("b", "t-2"))
    (first, _) = world.client.ready()
    world.client.ack([first.id])
    assert house.count("ready", 30) == 0
    world.pass_time(31 * DAY_S)
    assert house.count("ready", 30) == 1
    progress: list[int] = []
    assert house.take_rows("ready", 30, progress.append) == 1
    assert progress == [1]
    assert world.sql("SELECT count(*) FROM counterfoil.ready_outbox") == [(1,)]
    assert house.count("ready", 30) == 0


def test_results_go_only_when_somebody_says_when_and_the_receipt_keeps_its_digest(
    world: World, house: Housekeeping
) -> None:
    assert "results" not in kept_days({})
    operation_id = world.working()
    world.ended(operation_id)
    world.pass_time(100 * DAY_S)
    assert house.count("results", kept_days({"results": 90})["results"]) == 1
    world.sql("UPDATE counterfoil.operation SET audit_ends_at = counterfoil.ledger_now() + interval '1 minute'")
    assert house.count("results", 90) == 0
    world.pass_time(3600)
    assert house.take_rows("results", 90, lambda _: None) == 1
    receipt = world.client.receipt("run/1")
    assert receipt is not None
    assert receipt.result_digest is not None


SESSION = (
    "remote_session (id, fleet, target, credential, sealed, ended_at)"
    " VALUES (gen_random_uuid(), 'main', 't', 'c', '', now())"
)
NOTICE = (
    "notice (id, namespace, call_node_id, operation_id, kind, created_at, acked_at)"
    " VALUES (gen_random_uuid(), 'default', 'n', gen_random_uuid(), 'attention', now(), now())"
)


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("refused", "refused_write (id, fleet, code, epoch, what) VALUES (gen_random_uuid(), 'main', 'E', 1, 'x')"),
        (
            "letters",
            "dead_letter (id, fleet, code, why, body_digest, body) VALUES (gen_random_uuid(), 'main', 'E', '', '', '')",
        ),
        ("sessions", SESSION),
        ("notices", NOTICE),
    ],
    ids=["refused", "letters", "sessions", "notices"],
)
def test_each_kind_of_row_goes_after_its_days(world: World, house: Housekeeping, kind: str, row: str) -> None:
    world.opened()  # the namespace
    world.sql(f"INSERT INTO counterfoil.{row}")
    days = KEPT_DAYS[kind]
    assert days is not None
    world.pass_time((days - 1) * DAY_S)
    assert house.count(kind, days) == 0
    world.pass_time(2 * DAY_S)
    assert (house.count(kind, days), house.take_rows(kind, days, lambda _: None), house.count(kind, days)) == (1, 1, 0)


def test_what_a_person_replied_goes_only_with_an_operation_that_is_over(world: World, house: Housekeeping) -> None:
    operation_id = world.working()
    world.sql(
        "INSERT INTO counterfoil.input_round (operation_id, number, leg, key, method, params, schema_digest, reply_to,"
        " opened_at, state, closed_at, how)"
        " VALUES (%(id)s, 1, 1, 'k', 'm', '', '', '', now(), 'closed', now(), 'sent')",
        {"id": operation_id},
    )
    world.pass_time(800 * DAY_S)
    assert house.count("rounds", 700) == 0
    world.ended(operation_id)
    world.pass_time(800 * DAY_S)
    assert house.take_rows("rounds", 700, lambda _: None) == 1


def test_the_register_can_not_be_named(world: World) -> None:
    for kind in ("operations", "receipts", "call_node"):
        with pytest.raises(InputRefused, match="nothing that is taken away"):
            kept_days({kind: 1})
