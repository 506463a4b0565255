"""The producers' doors: the same call node is the same operation, and a refusal leaves nothing half-written."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session

from counterfoil.ledger import epochs
from counterfoil.ledger.client import Call, Client
from counterfoil.ledger.errors import (
    CallNodeConflict,
    CounterfoilError,
    CreateStopped,
    InputRefused,
    LedgerUnavailable,
    NoSuchOperation,
    SchemaOutdated,
    StillRunning,
)
from counterfoil.tests.ledger.world import World

TABLES = ("call_node", "operation", "wake", "journal")


def written(world: World) -> dict[str, int]:
    return {name: world.sql(f"SELECT count(*) FROM counterfoil.{name}")[0][0] for name in TABLES}


NOTHING = dict.fromkeys(TABLES, 0)


@pytest.fixture
def engine(world: World) -> Any:
    world.store.register_targets([("reports", "mcp-2026-07-28")])
    made = create_engine(world.url)
    yield made
    made.dispose()


def calls(*nodes: str) -> list[Call]:
    return [Call("reports", "generate", {"month": "2026-10"}, node) for node in nodes]


def test_a_repeat_is_the_same_operation_and_writes_nothing(world: World) -> None:
    world.store.register_targets([("reports", "mcp-2026-07-28")])
    first = world.client.submit("reports", "generate", {"a": 1, "b": [1.0, "ü"]}, call_node_id="run/1")
    assert world.client.submit("reports", "generate", {"b": [1, "ü"], "a": 1.0}, call_node_id="run/1") == first
    assert written(world) == dict.fromkeys(TABLES, 1)


@pytest.mark.parametrize(
    "other", [("reports", "generate", {"a": 2}), ("reports", "other", {"a": 1}), ("store", "generate", {"a": 1})]
)
def test_another_request_of_a_known_call_node_is_a_conflict(
    world: World, other: tuple[str, str, dict[str, object]]
) -> None:
    world.store.register_targets([("reports", "mcp-2026-07-28"), ("store", "mcp-2026-07-28")])
    world.client.submit("reports", "generate", {"a": 1}, call_node_id="run/1")
    with pytest.raises(CallNodeConflict, match=r"E_CALL_NODE_CONFLICT: call node 'run/1' already stands for another"):
        world.client.submit(*other, call_node_id="run/1")
    assert written(world) == dict.fromkeys(TABLES, 1)


def test_the_principal_is_part_of_the_request_and_the_namespace_keeps_producers_apart(world: World) -> None:
    operation_id = world.opened()
    with pytest.raises(CallNodeConflict):
        world.client_of(principal="somebody else").submit(
            "reports", "generate", {"month": "2026-10"}, call_node_id="run/1"
        )
    other = world.client_of(namespace="another").submit(
        "reports", "generate", {"month": "2026-10"}, call_node_id="run/1"
    )
    assert other.id != operation_id
    assert world.sql("SELECT count(DISTINCT submission_key) FROM counterfoil.operation") == [(2,)]


REFUSED: list[tuple[str, tuple[Any, ...], str, str]] = [
    ("unknown target", ("report", "generate", {}, "run/1"), "E_TARGET_UNKNOWN", "Did you mean 'reports'?"),
    ("nothing near", ("zzz", "generate", {}, "run/1"), "E_TARGET_UNKNOWN", "Known: reports."),
    (
        "10 KB call node",
        ("reports", "generate", {}, "x" * 10_240),
        "E_CALL_NODE_INVALID",
        "10240 characters; the cap is 512",
    ),
    ("wide call node", ("reports", "generate", {}, "\U0001f600" * 400), "E_CALL_NODE_INVALID", "run \\+ step"),
    ("empty call node", ("reports", "generate", {}, ""), "E_CALL_NODE_INVALID", "empty"),
    ("NUL in a call node", ("reports", "generate", {}, "run\0/1"), "E_CALL_NODE_INVALID", "control character"),
    ("surrogate in a tool", ("reports", "gen\ud800", {}, "run/1"), "E_TOOL_INVALID", "lone surrogate"),
    ("big integer", ("reports", "generate", {"n": 2**53}, "run/1"), "E_ARGUMENTS_INVALID", "as a string"),
    ("small integer", ("reports", "generate", {"n": [-(2**53)]}, "run/1"), "E_ARGUMENTS_INVALID", "2\\^53"),
    ("not a number", ("reports", "generate", {"n": float("nan")}, "run/1"), "E_ARGUMENTS_INVALID", "not JSON"),
    ("surrogate in a value", ("reports", "generate", {"s": "\ud800"}, "run/1"), "E_ARGUMENTS_INVALID", "not JSON"),
    ("surrogate in a key", ("reports", "generate", {"\ud800": 1}, "run/1"), "E_ARGUMENTS_INVALID", "not JSON"),
    ("not a mapping", ("reports", "generate", ["2026-10"], "run/1"), "E_ARGUMENTS_INVALID", "not an object"),
    ("bytes", ("reports", "generate", {"b": b"x"}, "run/1"), "E_ARGUMENTS_INVALID", "not JSON"),
    (
        "over the cap",
        ("reports", "generate", {"s": "x" * 1024 * 1024}, "run/1"),
        "E_ARGUMENTS_TOO_LARGE",
        "pass a reference",
    ),
]


@pytest.mark.parametrize(("call", "code", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_bad_input_is_refused_with_its_cause_and_nothing_is_written(
    world: World, call: tuple[Any, ...], code: str, words: str
) -> None:
    world.store.register_targets([("reports", "mcp-2026-07-28")])
    target, tool, arguments, node = call
    with pytest.raises(InputRefused, match=words) as refused:
        world.client.submit(target, tool, arguments, call_node_id=node)
    assert (refused.value.code, len(str(refused.value)) < 400) == (code, True)
    assert written(world) == NOTHING


def test_the_largest_integer_that_json_carries_is_taken(world: World) -> None:
    world.store.register_targets([("reports", "mcp-2026-07-28")])
    world.client.submit("reports", "generate", {"n": 2**53 - 1}, call_node_id="run/1")
    assert world.sql("SELECT arguments FROM counterfoil.operation") == [(b'{"n":9007199254740991}',)]


def test_with_create_off_a_known_call_node_is_answered_and_a_new_one_is_not(world: World) -> None:
    operation_id = world.opened()
    world.sql("UPDATE counterfoil.control SET create_on = false")
    assert world.opened() == operation_id
    with pytest.raises(CreateStopped):
        world.opened("run/2")
    assert written(world) == dict.fromkeys(TABLES, 1)


def test_a_namespace_belongs_to_one_fleet(world: World) -> None:
    world.opened()
    world.sql(
        "INSERT INTO counterfoil.execution_epoch"
        " SELECT 'other', 1, system_identifier, timeline FROM counterfoil.execution_epoch;"
        " INSERT INTO counterfoil.target_state (fleet, target, protocol) VALUES ('other', 'reports', 'mcp-2026-07-28')"
    )
    with pytest.raises(InputRefused, match="E_NAMESPACE_TAKEN"):
        world.client_of(fleet="other").submit("reports", "generate", {}, call_node_id="run/2")
    with pytest.raises(InputRefused, match="E_FLEET_UNKNOWN"):
        world.client_of(fleet="nowhere", namespace="n").submit("reports", "generate", {}, call_node_id="run/2")
    assert written(world) == dict.fromkeys(TABLES, 1)


def test_a_client_lives_through_bumps(world: World) -> None:
    world.opened("run/1")
    epochs.bump(world.database, "main", "test")
    operation_id = world.opened("run/2")
    assert world.one(operation_id, "execution_epoch") == 2


# -- in the producer's own transaction ---------------------------------------------------------------------------------


def by_session(client: Client, engine: Engine, wanted: list[Call], *, commit: bool) -> list[Any]:
    with Session(engine) as session:
        ids = client.submit_in(session, wanted)
        (session.commit if commit else session.rollback)()
    return ids


def by_connection(client: Client, engine: Engine, wanted: list[Call], *, commit: bool) -> list[Any]:
    with engine.connect() as connection:
        ids = client.submit_in(connection, wanted)
        (connection.commit if commit else connection.rollback)()
    return ids


def by_psycopg(client: Client, engine: Engine, wanted: list[Call], *, commit: bool) -> list[Any]:
    with psycopg.connect(
        engine.url.set(drivername="postgresql").render_as_string(hide_password=False), row_factory=dict_row
    ) as connection:
        ids = client.submit_in(connection, wanted)
        (connection.commit if commit else connection.rollback)()
    return ids


Door = Callable[..., list[Any]]


@pytest.mark.parametrize("door", [by_session, by_connection, by_psycopg])
def test_calls_live_and_die_with_the_producers_transaction(world: World, engine: Engine, door: Door) -> None:
    for _ in range(
        2
    ):  # the second time the client knows the ledger already: its own look-up must not be what began the transaction
        door(world.client, engine, calls("run/9", "run/8"), commit=False)
        assert written(world) == NOTHING
    ids = door(world.client, engine, calls("run/9", "run/8"), commit=True)
    assert [world.client.get(node).id for node in ("run/9", "run/8")] == ids
    assert door(world.client, engine, calls("run/8", "run/9", "run/9"), commit=True) == [ids[1], ids[0], ids[0]]
    assert door(world.client, engine, [], commit=True) == []


@pytest.mark.parametrize("door", [by_session, by_connection, by_psycopg])
def test_a_refused_call_takes_its_neighbours_with_it_and_leaves_the_producers_work(
    world: World, engine: Engine, door: Door
) -> None:
    world.opened("run/5")
    wanted = [*calls("run/1"), Call("reports", "generate", {"month": "another"}, "run/5")]
    with pytest.raises(CallNodeConflict):
        door(world.client, engine, wanted, commit=True)
    assert written(world) == dict.fromkeys(TABLES, 1)
    with Session(engine) as session:
        with pytest.raises(CallNodeConflict):
            world.client.submit_in(session, wanted)
        world.client.submit_in(session, calls("run/2"))
        session.commit()
    assert [operation.call_node_id for operation in world.client.operations()] == ["run/2", "run/5"]


def test_in_repeatable_read_a_lost_race_says_run_it_again(world: World, engine: Engine) -> None:
    """Review X12: `ON CONFLICT DO NOTHING` raises 40001 for a row that the snapshot doesn't see."""
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        connection.exec_driver_sql("SELECT 1 FROM counterfoil.ledger_identity")  # the snapshot is taken
        world.opened("run/1")
        with pytest.raises(CounterfoilError, match=r"E_SERIALIZATION.*the same call nodes give the same operations"):
            world.client.submit_in(connection, calls("run/1"))
        connection.rollback()
        assert world.client.submit_in(connection, calls("run/1")) == [world.client.get("run/1").id]
        connection.rollback()


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_a_wait_that_ends_changes_nothing(world: World) -> None:
    operation_id = world.working()
    before = world.sql("SELECT o, w FROM counterfoil.operation o, counterfoil.wake w")
    with pytest.raises(StillRunning, match="'run/1' is WORKING; it goes on"):
        world.client.wait("run/1", timeout_s=0)
    with pytest.raises(StillRunning):
        world.client.call("reports", "generate", {"month": "2026-10"}, call_node_id="run/1", timeout_s=0)
    assert world.sql("SELECT o, w FROM counterfoil.operation o, counterfoil.wake w") == before
    world.ended(operation_id)
    assert world.client.wait("run/1", timeout_s=0).result == {"rows": 3}


def test_waiting_for_a_call_node_that_was_never_handed_in_says_so(world: World) -> None:
    with pytest.raises(NoSuchOperation, match="no operation for call node 'run/7'"):
        world.client.wait("run/7", timeout_s=0)
    assert world.client.receipt("run/7") is None


def test_cancelling_an_acall_ends_its_waiting_and_nothing_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.store.register_targets([("reports", "mcp-2026-07-28")])
    looked, ended = threading.Event(), threading.Event()
    receipt, wait = world.client.receipt, world.client._wait

    def looking(call_node_id: str) -> Any:
        looked.set()
        return receipt(call_node_id)

    def waiting(*arguments: Any) -> Any:
        try:
            return wait(*arguments)
        finally:
            ended.set()

    monkeypatch.setattr(world.client, "receipt", looking)
    monkeypatch.setattr(world.client, "_wait", waiting)

    async def run() -> None:
        waiter = asyncio.create_task(world.client.acall("reports", "generate", {}, call_node_id="run/1"))
        await asyncio.to_thread(looked.wait, 10)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter

    asyncio.run(run())
    assert ended.wait(10)  # the thread let go as well
    assert world.client.get("run/1").state == "SUBMITTING"


def test_an_acall_returns_the_receipt(world: World) -> None:
    world.ended(world.working())
    receipt = asyncio.run(world.client.acall("reports", "generate", {"month": "2026-10"}, call_node_id="run/1"))
    assert (receipt.outcome, receipt.result, receipt.problems()) == ("succeeded", {"rows": 3}, [])


# -- a ledger that is not there ----------------------------------------------------------------------------------------


def test_without_a_server_the_client_says_what_to_start() -> None:
    with pytest.raises(LedgerUnavailable, match=r"counterfoil dev up.*COUNTERFOIL_DATABASE_URL"):
        Client("postgresql://nobody:secret@127.0.0.1:1/none").get("run/1")


def test_without_tables_the_client_says_upgrade(empty_database: str) -> None:
    with closing(Client(empty_database)) as client, pytest.raises(SchemaOutdated, match="counterfoil db upgrade"):
        client.submit("reports", "generate", {}, call_node_id="run/1")
