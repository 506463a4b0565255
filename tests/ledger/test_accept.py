"""`accept_terminal`: the only writer of receipts, one verdict a row, a failing row costs the others nothing (SPEC
section 6)."""

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from counterfoil.ledger import epochs
from counterfoil.ledger.accept import accept
from counterfoil.ledger.digest import ready_id, receipt_id
from counterfoil.ledger.events import CancelAsked, Ended, RefusedBeforeSubmit
from counterfoil.ledger.operation import Operation
from counterfoil.ledger.rows import Row, read_rows
from counterfoil.ledger.states import Lane, State
from counterfoil.tests.ledger.world import RESULT, World


def decided(world: World, node: str = "run/1") -> Row:
    """Its end is decided and not yet accepted, as a worker leaves it that dies in between."""
    operation_id = world.working(node, f"task of {node}")
    with world.acceptance_failing():
        world.ended(operation_id)
    with world.database.begin() as connection:
        (row,) = read_rows(connection, [operation_id], world.policy_of, lock=False)
    assert row.operation.settle_as is State.ACCEPTED
    return row


def verdict(world: World, row: Row, *, epoch: int | None = None) -> str:
    return accept(world.database, "main", epoch or world.epoch, [(row, Lane.POLL)])[row.id]


def changed(row: Row, **changes: Any) -> Row:
    """What a caller saw, with something else in it."""
    inner = {name: value for name, value in changes.items() if name in Operation.__dataclass_fields__}
    outer = {name: value for name, value in changes.items() if name not in inner}
    return replace(row, operation=replace(row.operation, **inner), **outer)


def test_one_call_writes_receipt_ready_row_register_state_and_journal(world: World) -> None:
    row = decided(world)
    assert verdict(world, row) == "accepted"
    receipt = world.client.receipt("run/1")
    assert receipt is not None
    assert (receipt.id, receipt.outcome, receipt.problems()) == (receipt_id("default", "run/1"), "succeeded", [])
    assert world.sql("SELECT id, receipt_id FROM counterfoil.ready_outbox") == [
        (ready_id("default", "run/1"), receipt.id)
    ]
    register = world.sql("SELECT outcome, receipt_id, receipt_digest FROM counterfoil.call_node")
    assert register == [("succeeded", receipt.id, bytes.fromhex(receipt.digest))]
    assert world.one(row.id, "state, settle_as") == ("ACCEPTED", None)
    assert world.wakes(row.id) == {}
    last = world.client.journal("run/1")[-1]
    assert (last.event, last.source, last.target, last.lane) == ("accepted", "FETCHING_RESULT", "ACCEPTED", "poll")


def test_a_repeat_is_told_same_and_another_end_differs(world: World) -> None:
    row = decided(world)
    assert [verdict(world, row), verdict(world, row)] == ["accepted", "same"]
    assert verdict(world, changed(row, settle_as=State.REFUSED)) == "differs"
    assert verdict(world, changed(row, result_digest=b"x" * 32)) == "differs"
    assert world.sql("SELECT count(*) FROM counterfoil.terminal_receipt") == [(1,)]
    assert world.sql("SELECT count(*) FROM counterfoil.journal WHERE event = 'accepted'") == [(1,)]


def test_what_differs_from_the_row_is_not_accepted(world: World) -> None:
    row = decided(world)
    seen: list[dict[str, Any]] = [
        {"namespace": "another"},
        {"call_node_id": "run/2"},
        {"request_digest": b"x" * 32},
        {"task_id": "another"},
        {"task_id": None},
        {"tool_version": None},
        {"settle_as": State.CANCELLED_ACCEPTED},
        {"result_digest": None},
    ]
    assert [verdict(world, changed(row, **changes)) for changes in seen] == ["state"] * len(seen)
    assert verdict(world, changed(row, cancel_generation=7)) == "generation"
    assert world.client.receipt("run/1") is None
    assert world.one(row.id, "state, settle_as") == ("FETCHING_RESULT", "ACCEPTED")
    assert verdict(world, row) == "accepted"


def test_an_end_that_nobody_decided_is_not_accepted(world: World) -> None:
    operation_id = world.working()
    with world.database.begin() as connection:
        (row,) = read_rows(connection, [operation_id], world.policy_of, lock=False)
    assert verdict(world, changed(row, settle_as=State.ACCEPTED)) == "state"


def test_bytes_that_do_not_match_their_digest_are_not_accepted(world: World) -> None:
    row = decided(world)
    world.sql("UPDATE counterfoil.operation_result SET body = 'another'")
    assert verdict(world, row) == "state"
    world.sql("DELETE FROM counterfoil.operation_result")
    assert verdict(world, row) == "state"


def test_an_older_epoch_accepts_nothing_and_is_counted(world: World) -> None:
    row = decided(world)
    epochs.bump(world.database, "main", "test")
    assert verdict(world, row) == "stale_epoch"
    assert world.client.receipt("run/1") is None
    assert world.sql("SELECT what, operation_id, epoch FROM counterfoil.refused_write") == [
        ("accept_terminal", row.id, 1)
    ]
    assert verdict(world, row, epoch=2) == "accepted"
    receipt = world.client.receipt("run/1")
    assert receipt is not None
    assert receipt.execution_epoch == 2


def test_a_failing_row_of_a_batch_costs_the_others_nothing(world: World) -> None:
    rows = [decided(world, f"run/{number}") for number in range(3)]
    world.sql(
        "UPDATE counterfoil.operation SET outcome = NULL WHERE call_node_id = 'run/1'"
    )  # the receipt's NOT NULL refuses it
    verdicts = accept(world.database, "main", world.epoch, [(row, Lane.POLL) for row in rows])
    assert [verdicts[row.id] for row in rows] == ["accepted", "failed", "accepted"]
    assert world.one(rows[1].id, "state, settle_as") == ("FETCHING_RESULT", "ACCEPTED")
    assert [world.client.receipt(f"run/{number}") is not None for number in range(3)] == [True, False, True]
    assert world.sql("SELECT count(*) FROM counterfoil.ready_outbox") == [(2,)]


def test_each_row_of_a_batch_has_its_own_verdict(world: World) -> None:
    rows = [decided(world, f"run/{number}") for number in range(4)]
    assert verdict(world, rows[0]) == "accepted"
    brought = [rows[0], changed(rows[1], cancel_generation=7), changed(rows[2], task_id="another"), rows[3]]
    verdicts = accept(world.database, "main", world.epoch, [(row, Lane.POLL) for row in brought])
    assert [verdicts[row.id] for row in rows] == ["same", "generation", "state", "accepted"]
    assert [world.client.receipt(f"run/{number}") is not None for number in range(4)] == [True, False, False, True]
    assert world.sql("SELECT count(*) FROM counterfoil.ready_outbox") == [(2,)]


def test_cancelled_and_refused_ends_go_the_same_way(world: World) -> None:
    world.bring(world.opened("run/1"), CancelAsked("stop"), lane=Lane.DOOR)
    world.bring(world.opened("run/2"), RefusedBeforeSubmit("E_CAPABILITY_UNSUPPORTED", "no tasks"), lane=Lane.SUBMIT)
    world.bring(world.working("run/3"), Ended(9, "cancelled", "cancelled"))
    receipts = [world.client.wait(f"run/{number}", timeout_s=0) for number in (1, 2, 3)]
    told = [(r.state, r.outcome, r.error_code, r.effects_possible, r.result) for r in receipts]
    assert told == [
        ("CANCELLED_ACCEPTED", "cancelled", None, False, None),
        ("REFUSED", "refused", "E_CAPABILITY_UNSUPPORTED", False, None),
        ("ACCEPTED", "cancelled", "E_REMOTE_CANCELLED", True, None),
    ]


# -- receipts are for ever ---------------------------------------------------------------------------------------------

FORBIDDEN = (
    "UPDATE counterfoil.terminal_receipt SET outcome = 'failed'",
    "DELETE FROM counterfoil.terminal_receipt",
    "TRUNCATE counterfoil.terminal_receipt",
    "DELETE FROM counterfoil.call_node",
    "TRUNCATE counterfoil.call_node",
)


NOT_THEIRS = (
    "INSERT INTO counterfoil.terminal_receipt SELECT * FROM counterfoil.terminal_receipt",
    "INSERT INTO counterfoil.call_node (namespace, call_node_id, request_digest) VALUES ('n', 'c', '')",
    "INSERT INTO counterfoil.ready_outbox SELECT * FROM counterfoil.ready_outbox",
    "DELETE FROM counterfoil.evidence",
    "UPDATE counterfoil.evidence SET body = ''",
    "DELETE FROM counterfoil.journal",
    "UPDATE counterfoil.operation_result SET body = ''",
    "INSERT INTO counterfoil.ledger_clock (frozen_at) VALUES (now())",
    "ALTER TABLE counterfoil.terminal_receipt DISABLE TRIGGER ALL",
)


def test_not_even_the_owner_changes_or_removes_a_receipt(world: World) -> None:
    world.ended(world.working())
    for statement in FORBIDDEN:
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="is immutable"):
            world.sql(statement)
    assert world.client.wait("run/1", timeout_s=0).problems() == []


@pytest.mark.parametrize("role", ["counterfoil_app", "counterfoil_producer"])
def test_the_working_roles_have_no_right_to_write_receipts_or_to_rewrite_the_past(world: World, role: str) -> None:
    world.ended(world.working())
    with world.owner() as connection:
        connection.execute(f"SET ROLE {role}")  # type: ignore[call-overload]
        for statement in (*FORBIDDEN, *NOT_THEIRS):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)  # type: ignore[call-overload]


def test_nobody_else_may_call_the_functions(world: World) -> None:
    """Review X13: PUBLIC may execute a new SECURITY DEFINER function by default."""
    query = (
        "SELECT p.proname, coalesce(array_agg(a.grantee::regrole::text ORDER BY 1), '{}') FROM pg_proc p"
        " LEFT JOIN LATERAL aclexplode(p.proacl) a ON a.grantee <> p.proowner"
        " WHERE p.pronamespace = 'counterfoil'::regnamespace AND p.prosecdef GROUP BY p.proname"
    )
    assert dict(world.sql(query)) == {
        "accept_terminal": ["counterfoil_app"],
        "make_partitions": ["counterfoil_app"],
        "open_operation": ["counterfoil_app", "counterfoil_producer"],
    }
    assert world.sql(
        "SELECT count(*) FROM pg_proc WHERE pronamespace = 'counterfoil'::regnamespace AND proacl IS NULL"
    ) == [(0,)]


def test_the_functions_that_work_as_the_owner_pin_their_search_path(world: World) -> None:
    """Else a caller's own temporary table named `terminal_receipt` would be written to."""
    row = decided(world)
    with world.owner() as connection:
        connection.execute("CREATE TEMP TABLE execution_epoch AS SELECT 'main' AS fleet, 99::bigint AS epoch")
        connection.execute("SET search_path = pg_temp, counterfoil")
        (said,) = connection.execute(
            "SELECT verdict FROM counterfoil.accept_terminal('main', 99, ARRAY[%(i)s], ARRAY[%(i)s], ARRAY[%(i)s],"
            " ARRAY['default'], ARRAY['run/1'], ARRAY[''::bytea], ARRAY['t'], ARRAY['1'], ARRAY['ACCEPTED'], ARRAY[0],"
            " ARRAY[''::bytea], ARRAY['poll'])",
            {"i": row.id},
        ).fetchall()
    assert said == ("stale_epoch",)


def test_the_effects_of_a_result_are_what_the_policy_says(world: World) -> None:
    world.policy = world.policy.model_copy(update={"effects": False})
    world.ended(world.working(), RESULT)
    assert world.client.wait("run/1", timeout_s=0).effects_possible is False
