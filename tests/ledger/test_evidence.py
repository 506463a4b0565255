"""What a server said is never lost because its bearer lost a lease, a generation or an epoch (SPEC section 1.6, review
B3)."""

import pytest

from counterfoil.ledger import epochs
from counterfoil.ledger.decision import Decision
from counterfoil.ledger.events import (
    CancelAcknowledged,
    CancelAsked,
    DeadlineReached,
    IntentOverdue,
    LookupAbsent,
    LookupFound,
    Resubmit,
    ResultAtOnce,
    SubmitNotSent,
    SubmitUnclear,
    TaskBound,
)
from counterfoil.ledger.states import Lane
from counterfoil.ledger.work import Item
from counterfoil.tests.ledger.world import POLICY, RESULT, World, steps

BOUND = TaskBound(1, "t-1", "working")
OTHER = TaskBound(2, "t-2", "working")
BOUNDED = POLICY.model_copy(update={"lookup": "by_key", "absence": "bounded", "bounded_allowed": True, "settle_s": 5.0})


def unknown(world: World) -> tuple[object, object]:
    """The worker that sent the submit left no answer in time."""
    operation_id, lease, _ = world.sent()
    world.bring(operation_id, SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut"), lease=lease)
    return operation_id, lease


def consumed(world: World) -> list[bool]:
    return [
        row[0] for row in world.sql("SELECT consumed_at IS NOT NULL FROM counterfoil.evidence ORDER BY received_at, id")
    ]


def test_exact_bytes_are_kept_and_consumed_once(world: World) -> None:
    operation_id, lease, _ = world.sent()
    world.keep(operation_id, BOUND)
    assert consumed(world) == [False]
    assert world.bring(operation_id, lease=lease).answers != ()
    assert (world.state(operation_id), consumed(world)) == ("WORKING", [True])
    assert world.bring(operation_id).answers == ()


@pytest.mark.parametrize(
    "brought",
    [LookupAbsent(authoritative=True), DeadlineReached(), IntentOverdue(), CancelAsked("stop")],
    ids=lambda e: type(e).__name__,
)
def test_evidence_is_consumed_before_anything_else_that_is_brought(world: World, brought: object) -> None:
    """Table E, 12: evidence committed, no transition. Whoever comes by next finds the task: no lookup, no case."""
    world.policy = BOUNDED
    world.freeze()
    operation_id, _ = unknown(world)
    world.pass_time(16)
    world.keep(operation_id, BOUND)
    applied = world.bring(operation_id, brought, lane=Lane.LOOKUP)
    first = applied.answers[0]
    assert isinstance(first, Decision)
    assert [step.target for step in first.steps] == ["WORKING"]
    assert world.cases(operation_id) == []


def test_an_answer_whose_bearer_lost_its_lease_is_used(world: World) -> None:
    """B3a: the submit answer took longer than the lease, and somebody else has given up on it."""
    operation_id, _ = unknown(world)
    assert world.cases(operation_id) == [("UNKNOWN", "E_SUBMISSION_UNKNOWN", True)]
    world.keep(operation_id, BOUND)
    world.bring(operation_id)
    assert world.state(operation_id) == "WORKING"
    assert world.cases(operation_id) == [("UNKNOWN", "E_SUBMISSION_UNKNOWN", False)]


def test_an_answer_after_a_remembered_cancel_binds_and_sends_the_cancel(world: World) -> None:
    """B3b: a compare-and-set on the generation would have lost the id, and the cancel could never be sent."""
    operation_id, lease, _ = world.sent()
    world.door.apply([Item(operation_id, Lane.DOOR, (CancelAsked("stop"),))])
    assert world.one(operation_id, "state, cancel_generation") == ("SUBMITTING", 1)
    world.keep(operation_id, BOUND)
    assert steps(world.bring(operation_id, lease=lease)) == ["WORKING", "CANCEL_REQUESTED"]
    assert world.one(operation_id, "task_id, cancel_generation, cancel_due") == ("t-1", 1, True)
    assert world.wakes(operation_id)["cancel"]["due_in_s"] <= 0


def test_evidence_of_an_older_epoch_is_kept_and_the_new_epoch_reads_it_again(world: World) -> None:
    operation_id, _, _ = world.sent()
    epochs.bump(world.database, "main", "test")
    world.keep(operation_id, BOUND)
    assert world.sql("SELECT epoch FROM counterfoil.evidence") == [(1,)]
    young = World(world.url)
    young.bring(operation_id)
    assert young.one(operation_id, "state, execution_epoch") == ("WORKING", 2)
    young.close()


def test_evidence_that_its_bearer_did_not_consume_is_due_work_in_any_state(world: World) -> None:
    world.freeze()
    operation_id, lease, _ = world.sent()
    world.keep(operation_id, BOUND)
    assert world.store.overdue_evidence(["reports"], 10) == []  # a living bearer is left its time
    world.pass_time(2.1)
    assert world.store.overdue_evidence(["reports"], 10) == [operation_id]
    world.bring(operation_id, lease=lease)
    assert world.store.overdue_evidence(["reports"], 10) == []
    world.ended(operation_id)
    world.keep(operation_id, BOUND)
    world.pass_time(2.1)
    assert world.store.overdue_evidence(["reports"], 10) == [operation_id]
    world.bring(operation_id)
    assert world.store.overdue_evidence(["reports"], 10) == []


def attempt_two(world: World) -> object:
    world.freeze()
    operation_id, _ = unknown(world)
    world.pass_time(16)
    world.bring(operation_id, LookupAbsent(authoritative=True), lane=Lane.LOOKUP)
    assert world.state(operation_id) == "NOT_FOUND_SAFE"
    return operation_id


def test_a_late_answer_before_the_second_intent_binds_the_first_task(world: World) -> None:
    world.policy = BOUNDED
    operation_id = attempt_two(world)
    world.bring(operation_id, Resubmit(), lane=Lane.SUBMIT)
    world.keep(operation_id, BOUND)
    world.bring(operation_id)
    assert world.one(operation_id, "state, task_id, sent_attempt") == ("WORKING", "t-1", 1)


def test_a_late_answer_while_the_second_attempt_is_out_stays_a_case_whatever_comes_next(world: World) -> None:
    """B3e. Closing the case with the second answer would hide that two tasks run."""
    world.policy = BOUNDED
    operation_id = attempt_two(world)
    world.bring(operation_id, Resubmit(), lane=Lane.SUBMIT)
    assert world.intend(world.claim()[operation_id], attempt=2).send_token
    world.keep(operation_id, BOUND)
    world.bring(operation_id)
    assert world.state(operation_id) == "SUBMITTING"
    world.keep(operation_id, OTHER, attempt=2)
    world.bring(operation_id)
    assert world.one(operation_id, "state, task_id") == ("WORKING", "t-2")
    assert ("EFFECT_RECONCILIATION_REQUIRED", "E_TWO_OPERATIONS", True) in world.cases(operation_id)
    assert set(world.wakes(operation_id)) >= {"poll"}  # and the call goes on beside it


def test_where_the_key_is_unique_the_second_answer_names_the_same_task_and_closes_the_case(world: World) -> None:
    world.policy = BOUNDED.model_copy(update={"absence": "unique"})
    operation_id = attempt_two(world)
    world.bring(operation_id, Resubmit(), lane=Lane.SUBMIT)
    assert world.intend(world.claim()[operation_id], attempt=2).send_token
    world.keep(operation_id, BOUND)
    world.keep(operation_id, TaskBound(2, "t-1", "working"), attempt=2)
    world.bring(operation_id)
    assert world.one(operation_id, "state, task_id") == ("WORKING", "t-1")
    assert [case for case in world.cases(operation_id) if case[2]] == []


def test_a_late_lookup_is_heard_after_the_key_was_found_absent(world: World) -> None:
    """Two lookups cross; where only time speaks the first request landed in between."""
    world.policy = BOUNDED
    operation_id = attempt_two(world)
    world.bring(operation_id, LookupFound("t-1", "working"), lane=Lane.LOOKUP)
    assert world.one(operation_id, "state, task_id") == ("WORKING", "t-1")


def test_an_answer_after_the_end_changes_no_receipt_and_opens_the_effects_case(world: World) -> None:
    operation_id, _, granted = world.sent()
    world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
    applied = world.bring(operation_id, SubmitNotSent(1, "refused", send_token=granted.send_token), lane=Lane.SUBMIT)
    assert applied.verdict == "accepted"
    before = world.client.receipt("run/1")
    world.keep(operation_id, BOUND)
    world.bring(operation_id)
    assert world.client.receipt("run/1") == before
    assert world.cases(operation_id) == [("EFFECT_RECONCILIATION_REQUIRED", "E_LATE_COMPLETION_AFTER_CANCEL", True)]


def test_evidence_between_the_decision_and_the_acceptance_opens_the_effects_case_too(world: World) -> None:
    """The end is decided, its worker dies before it accepts, a late answer comes: it must not be swallowed."""
    world.policy = BOUNDED
    operation_id = attempt_two(world)
    with world.acceptance_failing():
        world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
    assert world.one(operation_id, "state, settle_as") == ("NOT_FOUND_SAFE", "CANCELLED_ACCEPTED")
    world.keep(operation_id, BOUND)
    applied = world.bring(operation_id)
    assert (applied.verdict, world.state(operation_id)) == ("accepted", "CANCELLED_ACCEPTED")
    assert ("EFFECT_RECONCILIATION_REQUIRED", "E_LATE_COMPLETION_AFTER_CANCEL", True) in world.cases(operation_id)


def test_the_answer_to_a_cancel_is_evidence_like_any_other(world: World) -> None:
    world.policy = POLICY.model_copy(update={"cancel_is_evidence": True})
    operation_id = world.working()
    world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
    assert world.intend(world.claim(Lane.CANCEL)[operation_id], effect="cancel", generation=1).send_token
    world.keep(operation_id, CancelAcknowledged(1, cancelled=True), kind="cancel", generation=1)
    assert world.bring(operation_id).verdict == "accepted"
    assert world.state(operation_id) == "CANCELLED_ACCEPTED"


def test_a_late_result_of_an_unknown_submit_is_the_result(world: World) -> None:
    operation_id, _ = unknown(world)
    applied = world.bring(operation_id, ResultAtOnce(1, "completed", RESULT), lane=Lane.SUBMIT)
    assert (applied.verdict, steps(applied)) == ("accepted", ["TERMINAL_OBSERVED", "FETCHING_RESULT"])
    receipt = world.client.receipt("run/1")
    assert receipt is not None
    assert (receipt.outcome, receipt.result) == ("succeeded", {"rows": 3})
