"""How records are shown, and with which code a command ends."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from counterfoil.console.exits import OUTCOMES, Exit, exit_for, tell
from counterfoil.console.operation_view import settled, show_operation, unsettled
from counterfoil.console.output import Format, clean, print_table
from counterfoil.ledger import errors
from counterfoil.ledger.records import Case, Receipt, ToolOperation
from counterfoil.ledger.states import Outcome

NIL = UUID(int=0)
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def operation(*cases: Case, **changes: Any) -> ToolOperation:
    nothing = dict.fromkeys(ToolOperation.model_fields)
    facts = {
        "format": "toolOperation.v1",
        "id": NIL,
        "namespace": "default",
        "call_node_id": "run-42/step-3",
        "request_digest": "00",
        "target": "reports",
        "tool": "generate_report",
        "principal": "default",
        "submission_key": NIL,
        "state": "WORKING",
        "attempt": 1,
        "input_round": 0,
        "cancel_generation": 0,
        "execution_epoch": 1,
        "created_at": NOON,
        "updated_at": NOON,
        "task_id": "t-1",
    }
    return ToolOperation.model_validate(nothing | facts | {"cases": cases} | changes)


def receipt(outcome: str) -> Receipt:
    nothing = dict.fromkeys(set(Receipt.model_fields) - {"result_trust"})
    facts = {
        "format": "receipt.v1",
        "id": NIL,
        "namespace": "default",
        "call_node_id": "n",
        "operation_id": NIL,
        "request_digest": "00",
        "submission_key": NIL,
        "target": "reports",
        "tool": "t",
        "principal": "default",
        "state": "ACCEPTED",
        "outcome": outcome,
        "effects_possible": True,
        "attempt": 1,
        "cancel_generation": 0,
        "unanswered_rounds": 0,
        "execution_epoch": 1,
        "digest": "00",
        "accepted_at": NOON,
    }
    return Receipt.model_validate(nothing | facts)


CASE = Case(
    id=NIL,
    kind="UNKNOWN",
    code="E_OPERATION_UNKNOWN",
    why="the server no longer knows the task",
    version=1,
    opened_at=NOON,
    closed_at=None,
    closed_by=None,
)


def test_an_open_case_is_shown_with_why_and_what_to_search_for(capsys: pytest.CaptureFixture[str]) -> None:
    show_operation(Format.TABLE, operation(CASE))
    shown = capsys.readouterr().out
    assert "open case E_OPERATION_UNKNOWN (UNKNOWN), since 2026-11-29 12:00:00 UTC" in shown
    assert "why         the server no longer knows the task" in shown
    assert f"search for  submission key {NIL} or task id t-1 on reports" in shown


def test_a_closed_case_is_no_question_any_more(capsys: pytest.CaptureFixture[str]) -> None:
    closed = CASE.model_copy(update={"closed_at": NOON})
    show_operation(Format.TABLE, operation(closed))
    assert "open case" not in capsys.readouterr().out
    assert exit_for(unsettled(operation(closed))) == Exit.STILL_RUNNING


def test_an_operation_that_waits_for_a_person_ends_a_wait_with_6_and_the_cases_code() -> None:
    error = unsettled(operation(CASE))
    assert (exit_for(error), error.code) == (Exit.NEEDS_PERSON, "E_OPERATION_UNKNOWN")


@pytest.mark.parametrize(
    ("outcome", "code"),
    [("succeeded", 0), ("failed", 4), ("cancelled", 5), ("abandoned", 6), ("refused", 8)],
)
def test_each_outcome_has_its_exit_code(outcome: str, code: int) -> None:
    assert settled(receipt(outcome), operation()) == code


def test_an_open_question_about_effects_counts_more_than_the_outcome() -> None:
    assert settled(receipt("cancelled"), operation(CASE)) == Exit.NEEDS_PERSON


def test_no_outcome_is_without_an_exit_code() -> None:
    assert OUTCOMES.keys() == set(Outcome)


def test_a_server_cannot_write_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_operation(Format.TABLE, operation(CASE.model_copy(update={"why": "\x1b[2Jgone\u202e"}), task_id="\x07[red]t"))
    print_table(("A",), [("\x1b]0;title\x07[bold]b",)])
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    assert r"\x1b[2Jgone\u202e" in shown
    assert "[red]t" in shown
    assert "[bold]b" in shown


def test_plain_text_of_any_language_stays_as_it_is() -> None:
    assert clean("Bücher, 本, ok") == "Bücher, 本, ok"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InputRefused("x"), 2),
        (errors.CallNodeConflict("x"), 2),
        (errors.NoSuchOperation("x"), 3),
        (errors.RecoverFirst("x"), 6),
        (errors.StillRunning("x"), 7),
        (errors.CreateStopped("x"), 8),
        (errors.LedgerUnavailable("x"), 9),
        (errors.LedgerUnavailable("x", code="E_NO_DATABASE"), 9),
        (errors.SchemaOutdated("x"), 9),
        (errors.StaleEpoch("x"), 75),
        (errors.CounterfoilError("x"), 1),
    ],
)
def test_each_error_has_its_exit_code(error: errors.CounterfoilError, code: int) -> None:
    assert exit_for(error) == code


def test_an_error_is_told_as_code_cause_and_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    tell(errors.NoSuchOperation("there is none.", next_step="Look with `counterfoil list`."))
    assert capsys.readouterr().err == "E_NOT_FOUND: there is none.\n  Look with `counterfoil list`.\n"


def test_a_bug_is_told_without_a_statements_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    from sqlalchemy.exc import DataError

    assert tell(DataError("INSERT", {"arguments": "secret"}, Exception("bad"))) == Exit.INTERNAL
    told = capsys.readouterr().err
    assert "E_INTERNAL: DataError" in told
    assert "secret" not in told
