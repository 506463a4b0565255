"""The audit's wake row: there from the acceptance on, gone when its time or its question is over (SPEC 5 and 7)."""

from uuid import UUID

import pytest

from counterfoil.ledger.events import (
    CancelAsked,
    Ended,
    Event,
    LookupAbsent,
    Progressed,
    RefusedBeforeSubmit,
    SubmitUnclear,
    TaskNotFound,
)
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import POLICY, RESULT, World

KEYED = POLICY.model_copy(update={"lookup": "by_key", "absence": "unique", "key_lifetime_s": 3600.0})


def won(world: World) -> UUID:
    """A cancel that won, accepted."""
    world.freeze()
    operation_id = world.working()
    world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
    assert world.intend(world.claim(Lane.CANCEL)[operation_id], effect="cancel", generation=1).send_token
    world.bring(operation_id, Ended(10, "cancelled", "cancelled"))
    assert world.state(operation_id) == "CANCELLED_ACCEPTED"
    return operation_id


def due(world: World, operation_id: UUID) -> dict[str, float]:
    return {lane: row["due_in_s"] for lane, row in world.wakes(operation_id).items()}


def audited(world: World, operation_id: UUID, event: Event) -> dict[str, float]:
    """One look: claimed, asked, brought."""
    world.pass_time(due(world, operation_id)["audit"])
    world.bring(operation_id, event, lease=world.claim(Lane.AUDIT)[operation_id])
    return due(world, operation_id)


def test_a_won_cancel_is_looked_after_in_doubling_pauses_until_its_time_is_over(world: World) -> None:
    operation_id = won(world)
    assert due(world, operation_id) == {"audit": pytest.approx(30.0)}
    pauses = []
    while rows := audited(world, operation_id, Ended(10, "cancelled", "cancelled")):
        pauses.append(round(rows["audit"]))
    assert pauses == [30, 60, 120, 60]


def test_what_an_audit_finds_out_ends_it(world: World) -> None:
    operation_id = won(world)
    assert audited(world, operation_id, Ended(11, "completed", "completed", RESULT)) == {}
    assert ("EFFECT_RECONCILIATION_REQUIRED", "E_LATE_COMPLETION_AFTER_CANCEL", True) in world.cases(operation_id)
    receipt = world.client.receipt("run/1")
    assert receipt is not None
    assert (receipt.outcome, receipt.result_digest) == ("cancelled", None)


def test_a_task_that_its_server_forgot_ends_the_audit_and_is_recorded(world: World) -> None:
    operation_id = won(world)
    assert audited(world, operation_id, TaskNotFound(11, "gone")) == {}
    assert world.cases(operation_id) == [("EXPIRED_WITH_RECEIPT", "E_OPERATION_UNKNOWN", False)]


def test_an_end_that_could_not_prove_that_nothing_ran_is_audited_until_the_key_is_forgotten(world: World) -> None:
    world.policy = KEYED
    world.freeze()
    operation_id, lease, _ = world.sent()
    world.bring(operation_id, SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut"), lease=lease)
    world.pass_time(20)
    world.bring(operation_id, LookupAbsent(authoritative=True), lane=Lane.LOOKUP)
    world.bring(operation_id, RefusedBeforeSubmit("E_ADAPTER_DRAINING", "drained"), lane=Lane.SUBMIT)
    assert world.one(operation_id, "state, effects_possible, audit_s") == ("REFUSED", True, pytest.approx(3580.0))
    looked = 0
    while audited(world, operation_id, LookupAbsent(authoritative=True)):
        looked += 1
    assert looked == 7
    assert world.sql("SELECT audit_ends_at <= counterfoil.ledger_now() FROM counterfoil.operation") == [(True,)]


def test_no_other_end_leaves_a_row_behind(world: World) -> None:
    done = world.working("run/1", "t-1")
    world.ended(done)
    cancelled = world.opened("run/2")
    world.bring(cancelled, CancelAsked("stop"), lane=Lane.DOOR)
    assert (world.wakes(done), world.wakes(cancelled)) == ({}, {})


def test_an_audit_whose_bearer_died_is_taken_over_and_what_it_heard_meanwhile_is_no_orphan(world: World) -> None:
    operation_id = won(world)
    world.pass_time(30)
    world.claim(Lane.AUDIT, lease_s=8.0)
    world.pass_time(8.1)
    lease = world.claim(Lane.AUDIT)[operation_id]
    assert lease.claim_count == 1
    world.bring(operation_id, Progressed(12, "working"), lease=lease)
    assert world.wakes(operation_id)["audit"]["claim_count"] == 0
