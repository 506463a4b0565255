"""Ready rows: taken under a lease by one consumer at a time, acknowledged in the consumer's own transaction."""

from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from counterfoil.ledger.digest import ready_id
from counterfoil.ledger.outbox import take_ready
from counterfoil.tests.ledger.world import World


@pytest.fixture
def three(world: World) -> World:
    """Three receipts wait."""
    world.freeze()
    for number in range(3):
        world.ended(world.working(f"run/{number}", f"t-{number}"))
        world.pass_time(1)
    return world


def test_rows_are_handed_out_oldest_first_and_again_when_the_lease_is_over(three: World) -> None:
    assert [row.call_node_id for row in three.client.ready(limit=2, lease_s=30)] == ["run/0", "run/1"]
    assert [row.call_node_id for row in three.client.ready(lease_s=60)] == ["run/2"]
    assert three.client.ready() == []
    three.pass_time(30)
    again = three.client.ready(lease_s=60)
    assert [(row.call_node_id, row.deliveries, row.id) for row in again] == [
        ("run/0", 2, ready_id("default", "run/0")),
        ("run/1", 2, ready_id("default", "run/1")),
    ]


def test_an_acknowledged_row_never_comes_back_and_a_repeat_counts_zero(three: World) -> None:
    rows = three.client.ready(lease_s=30)
    assert three.client.ack([row.id for row in rows[:2]]) == 2
    assert three.client.ack([row.id for row in rows[:2]]) == 0
    three.pass_time(3600)
    assert [row.call_node_id for row in three.client.ready()] == ["run/2"]
    assert three.client.ack([]) == 0


def test_another_namespace_sees_and_acknowledges_nothing(three: World) -> None:
    other = three.client_of(namespace="another")
    assert other.ready() == []
    assert other.ack([row.id for row in three.client.ready()]) == 0


def test_two_consumers_at_once_never_get_the_same_row(three: World) -> None:
    """The second one asks while the first one's transaction is still open: it neither waits nor repeats."""
    with three.database.begin() as first, three.database.begin() as second:
        mine = take_ready(first, "default", limit=2, lease_s=60)
        yours = take_ready(second, "default", limit=3, lease_s=60)
    assert [row.call_node_id for row in mine] == ["run/0", "run/1"]
    assert [row.call_node_id for row in yours] == ["run/2"]


def by_session(world: World, ids: list[Any], *, commit: bool) -> int:
    engine = create_engine(world.url)
    with Session(engine) as session:
        session.execute(text("INSERT INTO progress VALUES (1)"))
        done = world.client.ack_in(session, ids)
        (session.commit if commit else session.rollback)()
    engine.dispose()
    return done


def by_psycopg(world: World, ids: list[Any], *, commit: bool) -> int:
    plain = world.url.replace("+psycopg", "")
    with psycopg.connect(plain, row_factory=dict_row) as connection:
        connection.execute("INSERT INTO progress VALUES (1)")
        done = world.client.ack_in(connection, ids)
        (connection.commit if commit else connection.rollback)()
    return done


@pytest.mark.parametrize("door", [by_session, by_psycopg])
def test_progress_and_acknowledgement_are_one_fact(three: World, door: Any) -> None:
    with three.owner() as owner:
        owner.execute("CREATE TABLE progress (step int)")
    ids = [row.id for row in three.client.ready(lease_s=30)]
    assert door(three, ids, commit=False) == 3
    with three.owner() as owner:
        assert owner.execute("SELECT count(*) FROM progress").fetchone() == (0,)
    three.pass_time(30)
    assert len(three.client.ready(lease_s=30)) == 3  # at least once
    assert door(three, ids, commit=True) == 3
    three.pass_time(30)
    assert three.client.ready() == []
    with three.owner() as owner:
        assert owner.execute("SELECT count(*) FROM progress").fetchone() == (1,)
