"""Notices: written with what they tell of, pulled and acknowledged like ready rows, never an end."""

from uuid import UUID

import pytest

from counterfoil.ledger import events
from counterfoil.ledger.database import PRODUCER_ROLE
from counterfoil.ledger.notices import acknowledge_notices, take_notices
from counterfoil.ledger.policy import Policy
from counterfoil.tests.ledger.machine import asks
from counterfoil.tests.ledger.world import World


def unknown(world: World, node: str = "run/1") -> UUID:
    """A submit whose answer is lost: a case opens."""
    operation_id, lease, _ = world.sent(node)
    world.bring(operation_id, events.SubmitUnclear(1, "E_NO_ANSWER", "the connection was lost"), lease=lease)
    assert world.state(operation_id) == "SUBMISSION_UNKNOWN"
    return operation_id


def told(world: World) -> list[tuple[str, str, str | None]]:
    return [(notice.call_node_id, notice.kind, notice.code) for notice in world.client.notices(lease_s=30)]


def test_a_case_gives_notice_once_with_its_code_and_reason(world: World) -> None:
    operation_id = unknown(world)
    (notice,) = world.client.notices()
    assert (notice.call_node_id, notice.kind, notice.code) == ("run/1", "attention", "E_NO_ANSWER")
    assert notice.operation_id == operation_id
    assert notice.why == "the connection was lost"
    assert notice.created_at.utcoffset() is not None
    world.bring(operation_id, events.SubmitUnclear(1, "E_NO_ANSWER", "again"))
    assert world.client.notices() == []
    assert world.client.receipt("run/1") is None, "a notice ends nothing"


def test_each_input_round_gives_one_notice_and_a_repeated_reading_none(world: World) -> None:
    operation_id = world.working()
    world.bring(operation_id, asks("a", seq=10))
    assert told(world) == [("run/1", "input_required", None)]
    world.bring(operation_id, asks("a", seq=11))
    assert told(world) == []
    world.bring(operation_id, asks("b", seq=12))
    assert told(world) == [("run/1", "input_required", None)]


def test_a_round_that_is_over_in_the_same_transition_gives_no_notice(world: World) -> None:
    operation_id = world.working()
    world.bring(operation_id, asks("a", seq=10), events.Progressed(11, "working"))
    assert world.state(operation_id) == "WORKING"
    assert told(world) == []


def test_a_case_that_its_own_evidence_answered_gives_no_notice(world: World) -> None:
    world.policy = Policy(
        protocol="mcp-2026-07-28", lookup="by_key", absence="unique", settle_s=0.0, key_lifetime_s=86400.0
    )
    world.freeze()
    operation_id = unknown(world)
    world.pass_time(3600)
    world.bring(operation_id, events.LookupAbsent(authoritative=True))
    assert world.cases(operation_id) == [("NEVER_CREATED", "E_SUBMISSION_UNKNOWN", False)]
    assert told(world) == []


def test_a_transition_that_fails_gives_no_notice_either(world: World) -> None:
    operation_id, lease, _ = world.sent()
    world.sql("ALTER TABLE counterfoil.reconciliation_case ADD CONSTRAINT broken CHECK (code <> 'E_NO_ANSWER')")
    applied = world.bring(operation_id, events.SubmitUnclear(1, "E_NO_ANSWER", "lost"), lease=lease)
    assert applied.failed
    assert world.sql("SELECT count(*) FROM counterfoil.notice") == [(0,)]


def test_notices_come_oldest_first_and_again_until_they_are_acknowledged(world: World) -> None:
    world.freeze()
    for number in range(3):
        unknown(world, f"run/{number}")
        world.pass_time(1)
    first = world.client.notices(limit=2, lease_s=30)
    assert [notice.call_node_id for notice in first] == ["run/0", "run/1"]
    assert [notice.call_node_id for notice in world.client.notices(lease_s=60)] == ["run/2"]
    assert world.client.ack_notices([first[0].id]) == 1
    assert world.client.ack_notices([first[0].id]) == 0
    world.pass_time(30)
    again = world.client.notices(lease_s=60)
    assert [(notice.id, notice.deliveries) for notice in again] == [(first[1].id, 2)]
    assert world.client.ack_notices([]) == 0


def test_another_namespace_sees_and_acknowledges_nothing(world: World) -> None:
    unknown(world)
    other = world.client_of(namespace="another")
    assert other.notices() == []
    assert other.ack_notices([notice.id for notice in world.client.notices()]) == 0


def test_two_consumers_at_once_never_get_the_same_notice(world: World) -> None:
    for number in range(3):
        unknown(world, f"run/{number}")
    with world.database.begin() as first, world.database.begin() as second:
        mine = take_notices(first, "default", limit=2, lease_s=60)
        yours = take_notices(second, "default", limit=3, lease_s=60)
    assert [notice.call_node_id for notice in mine] == ["run/0", "run/1"]
    assert [notice.call_node_id for notice in yours] == ["run/2"]


@pytest.mark.parametrize("column", ["push_at", "code"])
def test_a_producer_may_pull_and_acknowledge_and_change_nothing_else(world: World, column: str) -> None:
    unknown(world)
    with world.owner() as owner:
        owner.execute(f"SET ROLE {PRODUCER_ROLE}")
        with pytest.raises(Exception, match="permission denied"):
            owner.execute(f"UPDATE counterfoil.notice SET {column} = NULL")
    with world.database.begin() as connection:
        connection.exec_driver_sql(f"SET LOCAL ROLE {PRODUCER_ROLE}")
        (notice,) = take_notices(connection, "default", limit=10, lease_s=60)
        assert acknowledge_notices(connection, "default", [notice.id]) == 1
