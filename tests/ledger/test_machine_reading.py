"""Reading, results, input and budgets, as examples (SPEC sections 3, 4, 6; review table D)."""

import pytest

from counterfoil.ledger.events import (
    AccessDenied,
    AnswerRefused,
    DeadlineReached,
    Ended,
    Progressed,
    Quarantined,
    ReadFailed,
    Result,
    ResultFetched,
    TaskBound,
    TaskNotFound,
)
from counterfoil.ledger.states import Lane, State
from counterfoil.tests.ledger.machine import GOOD, asks, in_state, said

FETCHING = in_state(State.WORKING).then(Ended(1, "completed", "completed", None))


# -- working -----------------------------------------------------------------------------------------------------------


def test_the_servers_pace_is_clamped_and_the_policys_default_stands_in() -> None:
    for told_ms, pace_s in ((None, 5.0), (1, 1.0), (2500, 2.5), (10**9, 300.0)):
        assert in_state(State.WORKING).then(Progressed(1, "half", interval_ms=told_ms)).wake[Lane.POLL] == pace_s


def test_a_reading_that_suggests_no_pace_leaves_the_last_one() -> None:
    assert in_state(State.WORKING, interval_ms=2500).then(Progressed(1, "half")).wake[Lane.POLL] == 2.5


def test_an_older_reading_changes_nothing_and_a_terminal_one_counts_at_any_sequence() -> None:
    told = in_state(State.WORKING, observed_seq=5)
    assert told.then(Progressed(4, "older")).op == told.op
    assert told.then(asks("d", seq=4)).op == told.op
    assert told.then(Ended(4, "completed", "completed", GOOD)).end[:2] == ("ACCEPTED", "succeeded")


def test_the_same_id_with_another_birth_is_another_task() -> None:
    for event in (
        Progressed(1, "working", "c2"),
        asks("d", seq=1, created_at="c2"),
        Ended(1, "completed", "done", GOOD, "c2"),
    ):
        told = in_state(State.WORKING, remote_created_at="c1").then(event)
        assert (told.op.state, told.asked, told.op.settle_as) == (State.WORKING, ["E_TASK_ID_REUSED"], None)


def test_a_second_task_for_the_call_is_a_case_beside_which_reading_goes_on() -> None:
    told = in_state(State.WORKING).then(TaskBound(2, "t-2", "working"))
    assert (told.op.task_id, told.asked, Lane.POLL in told.wake) == ("t-1", ["E_TWO_OPERATIONS"], True)
    assert in_state(State.WORKING).then(TaskBound(1, "t-1", "working")).asked == []


def test_an_unknown_task_is_asked_for_three_times_and_a_sign_of_life_begins_anew() -> None:
    gone = TaskNotFound(1, "unknown task")
    told = in_state(State.WORKING).then(gone, gone)
    assert (told.asked, told.wake[Lane.POLL]) == ([], 5.0)
    assert told.then(gone).asked == ["E_OPERATION_UNKNOWN"]
    assert told.then(Progressed(2, "working"), gone, gone).asked == []


def test_troubles_while_working_are_not_counted_against_the_fetching_of_the_result() -> None:
    told = in_state(State.WORKING, not_found_count=2, auth_tries=2).then(Ended(1, "completed", "completed", None))
    assert told.then(TaskNotFound(2, "gone"), AccessDenied("401")).asked == []


def test_transient_trouble_only_backs_off_and_is_never_counted_to_an_end() -> None:
    told = in_state(State.WORKING)
    for failures in (1, 5, 500):
        again = told.then(ReadFailed("E_BUSY", failures, 30.0))
        assert (again.op, again.wake[Lane.POLL]) == (told.op, max(30.0, min(2.0 ** (failures - 1), 60.0)))


def test_a_refused_credential_is_a_case_at_the_third_try() -> None:
    denied = AccessDenied("401")
    assert in_state(State.WORKING).then(denied, denied).asked == []
    assert in_state(State.WORKING).then(denied, denied, denied).asked == ["E_AUTH_EXPIRED"]


def test_an_answer_that_cannot_be_ours_is_noted_once_and_reading_goes_on() -> None:
    strange = AnswerRefused("E_STATUS_UNKNOWN", "cogitating")
    told = in_state(State.WORKING).then(strange)
    assert (told.op.state, told.asked, told.op.last_code) == (State.WORKING, [], "E_STATUS_UNKNOWN")
    assert told.then(strange).op == told.op


@pytest.mark.parametrize(
    ("policy", "state", "codes"),
    [
        ({}, State.WORKING, ["E_WAIT_BUDGET_EXHAUSTED"]),
        ({"on_budget": "cancel"}, State.CANCEL_REQUESTED, []),
        ({"on_budget": "cancel", "can_cancel": False}, State.WORKING, ["E_WAIT_BUDGET_EXHAUSTED"]),
    ],
    ids=str,
)
def test_at_the_end_of_the_budget_the_policy_speaks(policy: dict[str, object], state: State, codes: list[str]) -> None:
    told = in_state(State.WORKING, policy=policy).then(DeadlineReached(), budget_left_s=0.0)
    assert (told.op.state, told.asked) == (state, codes)
    early = in_state(State.WORKING, policy=policy)
    assert early.then(DeadlineReached()).op == early.op


# -- results -----------------------------------------------------------------------------------------------------------


def test_a_status_is_not_a_result() -> None:
    assert (FETCHING.op.state, FETCHING.op.settle_as, FETCHING.wake) == (
        State.TERMINAL_OBSERVED,
        None,
        {Lane.FETCH: 0.0},
    )
    assert FETCHING.then(ResultFetched(GOOD)).end[:2] == ("ACCEPTED", "succeeded")


@pytest.mark.parametrize("problem", ["E_RESULT_MISSING", "E_RESULT_TOO_LARGE", "E_RESULT_SCHEMA"])
def test_a_result_that_cannot_be_accepted_is_a_case_and_no_failure_that_invites_a_second_run(problem: str) -> None:
    bad = Result(None, "", b"", problem=problem)
    told = FETCHING.then(ResultFetched(bad))
    assert (told.op.state, told.asked, told.op.settle_as) == (State.FETCHING_RESULT, [problem], None)
    assert told.then(ResultFetched(GOOD)).end[:2] == ("ACCEPTED", "succeeded")
    assert told.then(said("give_up")).end[:2] == ("ACCEPTED", "abandoned")


def test_a_tool_error_is_a_failure_whatever_the_status_word() -> None:
    wrong = Result(b"e" * 32, "", b"{}", tool_error=True)
    assert FETCHING.then(ResultFetched(wrong)).end == ("ACCEPTED", "failed", "E_TOOL_ERROR", True)
    failed = in_state(State.WORKING, policy={"effects": False}).then(Ended(1, "failed", "failed", GOOD))
    assert failed.end == ("ACCEPTED", "failed", "E_TOOL_ERROR", False)


def test_terminal_is_sticky_and_two_terminal_words_are_a_case() -> None:
    assert FETCHING.then(Progressed(9, "working")).refused == "E_STATUS_REGRESSED"
    assert FETCHING.then(Ended(9, "failed", "failed", None)).asked == ["E_STATUS_REGRESSED"]
    assert FETCHING.then(Ended(9, "completed", "completed", None)).op == FETCHING.op


def test_a_result_that_is_gone_is_a_case_after_three_asks() -> None:
    gone = TaskNotFound(1, "gone")
    told = FETCHING.then(gone, gone)
    assert (told.asked, told.wake) == ([], {Lane.FETCH: 2.0})
    assert told.then(gone).asked == ["E_RESULT_MISSING"]


def test_one_hostile_row_waits_for_a_person_alone() -> None:
    told = in_state(State.WORKING).then(Quarantined("poll"))
    assert (told.op.state, told.asked, told.wake) == (State.WORKING, ["E_QUARANTINED"], {})
    assert told.then(Quarantined("poll")).asked == ["E_QUARANTINED"]
