"""Reads for people."""

import uuid

import pytest

from counterfoil.ledger import reads
from counterfoil.ledger.errors import NoSuchOperation
from counterfoil.ledger.events import CancelAsked, SubmitUnclear, TaskBound
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import POLICY, World


def test_an_operation_shows_what_is_pinned_what_is_said_and_what_is_asked(world: World) -> None:
    operation_id, lease, _ = world.sent()
    world.bring(operation_id, SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "the answer was cut"), lease=lease)
    operation = world.client.get("run/1")
    assert (operation.format, operation.state, operation.attempt, operation.protocol) == (
        "toolOperation.v1",
        "SUBMISSION_UNKNOWN",
        1,
        "mcp-2026-07-28",
    )
    assert operation.descriptor_digest == (b"d" * 32).hex()
    assert operation.wait_budget_ends_at is not None
    assert operation.wait_budget_ends_at.utcoffset().total_seconds() == 0  # type: ignore[union-attr]
    (case,) = operation.cases
    assert (case.kind, case.code, case.why, case.version, case.closed_at) == (
        "UNKNOWN",
        "E_SUBMISSION_UNKNOWN",
        "the answer was cut",
        1,
        None,
    )
    assert "arguments" not in operation.model_dump()


def test_a_case_that_evidence_answered_says_so(world: World) -> None:
    operation_id, lease, _ = world.sent()
    world.bring(operation_id, SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut"), lease=lease)
    world.bring(operation_id, TaskBound(1, "t-1", "working"), lane=Lane.SUBMIT)
    (case,) = world.client.get("run/1").cases
    assert (case.closed_by, case.version) == ("evidence", 2)


def test_lists_are_newest_first_and_filtered(world: World) -> None:
    first, second = world.working("run/1", "t-1"), world.opened("run/2")
    world.client_of(namespace="another").submit("reports", "generate", {}, call_node_id="run/3")
    assert [operation.id for operation in world.client.operations()] == [second, first]
    assert [operation.id for operation in world.client.operations(limit=1)] == [second]
    assert [operation.id for operation in world.client.operations(states=["WORKING"])] == [first]
    assert world.client.operations(target="elsewhere") == []
    everywhere = world.client.operations(all_namespaces=True)
    assert [operation.namespace for operation in everywhere] == ["another", "default", "default"]


def test_what_is_not_there_is_said_by_name(world: World) -> None:
    for ask in (lambda: world.client.get("run/7"), lambda: world.client.journal("run/7")):
        with pytest.raises(NoSuchOperation, match=r"'run/7' in namespace 'default'.*counterfoil list"):
            ask()
    with world.database.begin() as connection:
        assert reads.find_receipt(connection, uuid.UUID(int=1)) is None
        with pytest.raises(NoSuchOperation):
            reads.get_operation_by_id(connection, uuid.UUID(int=1))


def test_the_journal_tells_the_story_in_order(world: World) -> None:
    operation_id = world.working()
    world.bring(operation_id, CancelAsked("the user pressed stop"), lane=Lane.DOOR)
    told = [(line.event, line.source, line.target, line.lane, line.actor) for line in world.client.journal("run/1")]
    assert told == [
        ("opened", None, "SUBMITTING", "door", "door"),
        ("intent", None, None, "submit", "worker"),
        ("moved", "SUBMITTING", "WORKING", "submit", "worker"),
        ("moved", "WORKING", "CANCEL_REQUESTED", "door", "worker"),
    ]
    assert world.client.journal("run/1")[-1].why == "the user pressed stop"


def test_a_policy_is_read_again_by_its_digest(world: World) -> None:
    operation_id, _, _ = world.sent()
    ((digest, body),) = world.sql("SELECT digest, body FROM counterfoil.tool_policy")
    assert (digest, body) == (POLICY.digest(), POLICY.canonical())
    assert world.one(operation_id, "policy_digest") == POLICY.digest()
