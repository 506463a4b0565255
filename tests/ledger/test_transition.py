"""Transitions: one hostile row costs the others nothing, nothing is applied twice, rows are decided as they are now."""

import pytest

from counterfoil.ledger import epochs
from counterfoil.ledger.errors import StaleEpoch
from counterfoil.ledger.events import (
    AccessDenied,
    CancelAsked,
    Ended,
    Event,
    Progressed,
    SubmitUnclear,
    TaskBound,
    TaskNotFound,
)
from counterfoil.ledger.states import EDGES, Lane, State
from counterfoil.ledger.work import Item
from counterfoil.tests.ledger.world import RESULT, World, steps

NUL = Progressed(10, "work\0ing", None, None, 2000)
HUGE = Progressed(10, "working", None, int(1e30), 2000)
SURROGATE = Progressed(10, "work\ud800ing", None, None, 2000)


@pytest.mark.parametrize("hostile", [NUL, HUGE, SURROGATE], ids=["NUL", "ttl 1e30", "lone surrogate"])
def test_in_a_batch_of_100_the_guilty_row_is_parked_and_99_move(world: World, hostile: Event) -> None:
    """Review M8, X7: the set-based write of all 100 aborts, so it is repeated row by row."""
    for number in range(100):
        world.opened(f"run/{number:03}")
    leases = world.claim()
    world.intend_all(leases.values())
    bound = [
        Item(id_, Lane.SUBMIT, (TaskBound(1, f"t-{id_}", "working", None, None, 1),), lease.token)
        for id_, lease in leases.items()
    ]
    world.transitions.apply(bound)
    world.sql("UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now()")
    pollers = world.claim(Lane.POLL)
    guilty = sorted(pollers)[50]
    good = Progressed(10, "working", None, None, 2000)
    applied = world.transitions.apply(
        Item(id_, Lane.POLL, (hostile if id_ == guilty else good,), lease.token, lease.kick)
        for id_, lease in pollers.items()
    )
    assert [one.operation_id for one in applied if one.failed] == [guilty]
    assert world.sql("SELECT count(*) FROM counterfoil.operation WHERE interval_ms = 2000") == [(99,)]
    row = world.wakes(guilty)["poll"]
    assert (row["claim_count"], row["lease_token"]) == (1, None)
    assert row["due_in_s"] > 0  # not at once again
    assert world.sql("SELECT count(*) FROM counterfoil.wake WHERE claim_count > 0") == [(1,)]
    world.sql("UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now()")
    assert world.claim(Lane.POLL)[guilty].claim_count == 1  # what the loop counts to five


def test_a_row_is_decided_as_it_is_under_its_lock_and_not_as_it_was_claimed(world: World) -> None:
    operation_id = world.working()
    world.sql("UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now()")
    poller = world.claim(Lane.POLL)[operation_id]
    world.door.apply([Item(operation_id, Lane.DOOR, (CancelAsked("stop"),))])
    applied = world.ended(operation_id, lease=poller)
    assert applied.verdict == "accepted"
    receipt = world.client.receipt("run/1")
    assert receipt is not None
    assert (receipt.outcome, receipt.cancel_generation) == (
        "succeeded",
        1,
    )  # a completion that wins is taken as what it is


def test_an_unchanged_poll_writes_the_wake_row_alone(world: World) -> None:
    operation_id = world.working()
    world.bring(operation_id, Progressed(10, "working", "2026-11-29T10:00:00Z", None, 1000))
    before = world.sql("SELECT xmin, * FROM counterfoil.operation")
    lines = world.sql("SELECT count(*) FROM counterfoil.journal")
    world.bring(operation_id, Progressed(11, "working", "2026-11-29T10:00:00Z", None, 1000))
    assert world.sql("SELECT xmin, * FROM counterfoil.operation") == before
    assert world.sql("SELECT count(*) FROM counterfoil.journal") == lines


def test_an_older_reading_never_overwrites_a_younger_one_and_an_end_counts_at_any_sequence(world: World) -> None:
    operation_id = world.working()
    world.bring(operation_id, Progressed(20, "half way", None, None, 2000))
    world.bring(operation_id, Progressed(10, "just begun", None, None, 9000))
    assert world.one(operation_id, "server_status, interval_ms, observed_seq") == ("half way", 2000, 20)
    assert world.bring(operation_id, Ended(5, "completed", "completed", RESULT)).verdict == "accepted"


def test_readings_are_ordered_by_one_sequence_of_the_database(world: World) -> None:
    """Drawn at each claim, renewal and hand-over, so that a bearer that lost its lease reads with an older number."""
    world.freeze()
    operation_id = world.working()
    world.pass_time(1)
    slow = world.claim(Lane.POLL, lease_s=5)[operation_id]
    world.pass_time(6)
    quick = world.claim(Lane.POLL, lease_s=5)[operation_id]
    assert slow.read_seq < quick.read_seq
    world.bring(operation_id, Progressed(quick.read_seq, "second", None, None, 2000), lease=quick)
    world.bring(operation_id, Progressed(slow.read_seq, "first", None, None, 9000), lease=slow)
    assert world.one(operation_id, "server_status") == "second"


def test_one_task_id_named_for_two_operations_of_one_batch_binds_the_first_and_asks_about_the_second(
    world: World,
) -> None:
    for node in ("run/1", "run/2"):
        world.opened(node)
    leases = world.claim()
    world.intend_all(leases.values())
    applied = world.transitions.apply(
        Item(id_, Lane.SUBMIT, (TaskBound(1, "t-1", "working"),), lease.token) for id_, lease in leases.items()
    )
    states = sorted(str(one.row.operation.state) for one in applied if one.row is not None)
    assert states == ["SUBMISSION_UNKNOWN", "WORKING"]
    (asked,) = (
        one.operation_id for one in applied if one.row is not None and one.row.operation.state == "SUBMISSION_UNKNOWN"
    )
    assert world.cases(asked) == [("UNKNOWN", "E_TASK_ID_REUSED", True)]
    assert world.sql("SELECT how FROM counterfoil.intent") == [("answered",), ("answered",)]


def test_a_task_id_that_another_open_operation_holds_is_a_case_and_a_closed_one_may_be_named_again(
    world: World,
) -> None:
    first = world.working("run/1", "t-1")
    second = world.working("run/2", "t-1")
    assert world.state(second) == "SUBMISSION_UNKNOWN"
    world.ended(first)
    assert world.state(world.working("run/3", "t-1")) == "WORKING"


def test_a_case_that_a_later_event_of_the_same_batch_answers_does_not_stay_open(world: World) -> None:
    """Otherwise the next transition reads it and parks an operation that nobody asks about any more."""
    operation_id, lease, _ = world.sent()
    applied = world.bring(
        operation_id, SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut"), TaskBound(1, "t-1", "working"), lease=lease
    )
    assert steps(applied) == ["SUBMISSION_UNKNOWN", "WORKING"]
    assert world.cases(operation_id) == [("UNKNOWN", "E_SUBMISSION_UNKNOWN", False)]
    world.bring(operation_id, Progressed(10, "half way"))
    assert set(world.wakes(operation_id)) == {"poll", "timer"}


def test_a_case_that_is_answered_and_asked_again_in_one_batch_is_open_once(world: World) -> None:
    operation_id = world.working()
    denied = AccessDenied("401")
    world.bring(operation_id, denied, denied, denied, Ended(9, "completed", "completed", None), denied, denied, denied)
    assert world.cases(operation_id) == [("UNKNOWN", "E_AUTH_EXPIRED", False), ("UNKNOWN", "E_AUTH_EXPIRED", True)]


def test_a_failing_acceptance_never_runs_the_transition_again(world: World) -> None:
    """The transition is committed before the acceptance: run again, `TaskNotFound` of a neighbour would count twice."""
    ends, lost = world.working("run/1", "t-1"), world.working("run/2", "t-2")
    with world.acceptance_failing():
        applied = world.transitions.apply(
            [
                Item(ends, Lane.POLL, (Ended(9, "completed", "completed", RESULT),)),
                Item(lost, Lane.POLL, (TaskNotFound(9, "unknown task"),)),
            ]
        )
    assert {one.operation_id: (one.verdict, one.failed) for one in applied} == {
        ends: (None, False),
        lost: (None, False),
    }
    assert world.one(lost, "not_found_count") == 1
    assert world.one(ends, "state, settle_as") == ("FETCHING_RESULT", "ACCEPTED")
    assert set(world.wakes(ends)) == {"fetch"}
    assert world.bring(ends, lane=Lane.FETCH).verdict == "accepted"  # what the fetch lane does when it comes by


def test_the_journal_tells_each_step_with_the_lane_whose_evidence_caused_it(world: World) -> None:
    first, second = world.working("run/1", "t-1"), world.working("run/2", "t-2")
    world.transitions.apply(
        [
            Item(first, Lane.TIMER, (Ended(9, "completed", "completed", RESULT),)),
            Item(second, Lane.DOOR, (Ended(9, "cancelled", "cancelled", None),)),
        ]
    )
    moved = world.sql("SELECT source, target, lane FROM counterfoil.journal WHERE source IS NOT NULL")
    assert len(moved) == 7
    assert [move for move in moved if Lane(move[2]) not in EDGES[State(move[0]), State(move[1])]] == []


def test_the_journal_is_numbered_without_a_gap(world: World) -> None:
    operation_id = world.working()
    world.ended(operation_id)
    lines = world.client.journal("run/1")
    assert [line.seq for line in lines] == list(range(1, len(lines) + 1))
    assert [line.event for line in lines] == ["opened", "intent", "moved", "moved", "moved", "accepted"]
    assert world.one(operation_id, "journal_seq") == len(lines)


def test_an_operation_that_is_not_there_is_answered_without_a_row(world: World) -> None:
    operation_id = world.working()
    gone = type(operation_id)(int=0)
    applied = world.transitions.apply([Item(gone, Lane.POLL, (Progressed(9, "?"),)), Item(operation_id, Lane.POLL)])
    assert {one.operation_id: one.row is None for one in applied} == {gone: True, operation_id: False}
    assert world.transitions.apply([]) == []


def test_a_transition_of_an_older_epoch_writes_nothing_and_is_counted(world: World) -> None:
    operation_id = world.working()
    before = world.sql("SELECT * FROM counterfoil.operation")
    epochs.bump(world.database, "main", "test")
    with pytest.raises(StaleEpoch):
        world.bring(operation_id, Ended(9, "completed", "completed", RESULT))
    assert world.sql("SELECT * FROM counterfoil.operation") == before
    assert world.sql("SELECT what, epoch FROM counterfoil.refused_write") == [("transition", 1)]


def test_a_door_takes_the_ledgers_current_epoch(world: World) -> None:
    operation_id = world.working()
    epochs.bump(world.database, "main", "test")
    world.door.apply([Item(operation_id, Lane.DOOR, (CancelAsked("stop"),))])
    assert world.one(operation_id, "state, execution_epoch") == ("CANCEL_REQUESTED", 2)
