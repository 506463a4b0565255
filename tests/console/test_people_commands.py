"""cases, inputs, cancel, get: what people see before they speak, and what is refused to them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from counterfoil.ledger.digest import canonical_json, sha256
from counterfoil.ledger.events import CancelAcknowledged, CancelAsked, InputRequested, SubmitUnclear, TaskNotFound
from counterfoil.ledger.rounds import Question
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import POLICY, World

from .conftest import Run
from .ledger_kit import desk, lines, refused

SCHEMA = {"type": "object", "properties": {"approve": {"type": "boolean"}}, "required": ["approve"]}
SAID = ("--actor", "ann", "--reason", "searched the server's log")


@pytest.fixture
def ledger(cli_in: Callable[..., Run], database: str, tmp_path: Path) -> Iterator[tuple[World, Run]]:
    with desk(cli_in, database, tmp_path) as made:
        yield made


def lost(world: World, node: str = "run/1") -> None:
    """Its submit's answer is lost, and a person is asked."""
    operation_id, lease, _ = world.sent(node)
    world.bring(operation_id, SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "the connection was \x1b[2Jlost"), lease=lease)


def ask(world: World, node: str = "run/1", *, questions: int = 1) -> None:
    """The tool waits for an answer."""
    operation_id = world.working(node, f"t-{node}")
    params = canonical_json({"message": "Delete 400 rows?\x1b[2J", "requestedSchema": SCHEMA})
    digest = sha256(canonical_json(SCHEMA))
    asked = tuple(Question(f"k{n}", "elicitation/create", params, digest) for n in range(questions))
    world.bring(operation_id, InputRequested(10**9, "input_required", asked))


# -- cases -------------------------------------------------------------------------------------------------------------


def test_one_outage_is_one_line_and_each_case_is_one_when_asked_for(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    assert "no case is open" in run("cases", "list").err
    for node in ("run/1", "run/2", "run/3"):
        lost(world, node)
    (group,) = lines(run("cases", "list", "-o", "json"))
    assert (group["target"], group["code"], group["count"]) == ("reports", "E_SUBMISSION_UNKNOWN", 3)
    (line,) = run("cases", "list").out.splitlines()[1:]
    assert line.split()[:4] == ["reports", "E_SUBMISSION_UNKNOWN", "UNKNOWN", "3"]
    each = lines(run("cases", "list", "--each", "-o", "json"))
    assert [one["call_node_id"] for one in each] == ["run/1", "run/2", "run/3"]
    assert lines(run("cases", "list", "--target", "elsewhere", "-o", "json")) == []
    assert lines(run("cases", "list", "--code", "E_AUTH_EXPIRED", "-o", "json")) == []


def test_a_case_is_shown_with_safe_verdicts_and_the_words_to_search_for_by_id_or_call_node(
    ledger: tuple[World, Run],
) -> None:
    world, run = ledger
    lost(world)
    key = str(world.client.get("run/1").submission_key)
    shown = run("cases", "show", "run/1").out
    assert r"the connection was \x1b[2Jlost" in shown
    assert f"search for, on reports:\n  {key}\n  run/1\n  generate from 20" in shown
    assert "never_created  it never ran" in shown
    assert "accept" not in shown.partition("verdicts:")[2]
    (by_node,) = lines(run("cases", "show", "run/1", "-o", "json"))
    assert by_node["offered"] == ["bind", "never_created", "give_up"]
    assert lines(run("cases", "show", by_node["case"]["id"], "-o", "json")) == [by_node]


def test_a_verdict_settles_its_case_and_shows_how_the_operation_stands(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    lost(world)
    (settled,) = lines(run("cases", "settle", "run/1", "never-created", *SAID, "--second", "ben", "-o", "json"))
    assert (settled["state"], settled["outcome"], settled["error_code"]) == (
        *("ACCEPTED", "failed"),
        "E_NOT_SENT_BY_VERDICT",
    )
    (case,) = settled["cases"]
    assert (case["closed_by"], case["verdict"], case["second_actor"]) == ("ann", "never_created", "ben")
    refused(run("cases", "settle", case["id"], "give_up", *SAID), "E_CASE_CLOSED", 8)
    refused(run("cases", "settle", "run/1", "give_up", *SAID), "E_NO_CASE", 3)


def test_a_bind_names_the_task_and_the_operation_goes_on(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    lost(world)
    refused(run("cases", "settle", "run/1", "bind", *SAID), "E_VERDICT_INCOMPLETE")
    (bound,) = lines(run("cases", "settle", "run/1", "bind", "--task", "t-17", *SAID, "-o", "json"))
    assert (bound["state"], bound["task_id"]) == ("WORKING", "t-17")


def test_verdicts_that_are_not_offered_or_out_of_date_change_nothing(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    lost(world)
    before = world.client.get("run/1")
    refused(run("cases", "settle", "run/1", "accept", *SAID), "E_VERDICT_NOT_OFFERED")
    refused(run("cases", "settle", "run/1", "resubmit", *SAID), "E_VERDICT_NOT_OFFERED")
    refused(run("cases", "settle", "run/1", "give_up", *SAID, "--version", "1"), "E_CASE_CHANGED", 8)
    refused(run("cases", "settle", "run/1", "give_up", "--actor", "ann", "--reason", "  "), "E_REASON")
    refused(run("cases", "settle", "run/1", "give_up", *SAID, "--second", "ann"), "E_FOUR_EYES")
    refused(run("cases", "settle", "run/1", "give_up", "--actor", "", "--reason", "why"), "E_ACTOR_INVALID")
    refused(run("cases", "settle", "00000000-0000-7000-8000-000000000000", "give_up", *SAID), "E_NO_SUCH_CASE", 3)
    refused(run("cases", "settle", "nobody", "give_up", *SAID), "E_NOT_FOUND", 3)
    refused(run("cases", "settle", "give_up", *SAID), "E_INPUT")
    assert world.client.get("run/1") == before


def test_one_verdict_for_all_is_asked_back_and_settles_each(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    for node in ("run/1", "run/2"):
        lost(world, node)
    many = ("cases", "settle", "--all", "--target", "reports", "--code", "E_SUBMISSION_UNKNOWN", "give_up", *SAID)
    asked = run(*many)
    assert (asked.code, "--yes" in asked.err, "2 cases" in asked.err) == (2, True, True)
    assert len(lines(run("cases", "list", "--each", "-o", "json"))) == 2
    assert lines(run(*many, "--yes", "-o", "json")) == [{"settled": 2, "refused": []}]
    assert {operation.outcome for operation in world.client.operations()} == {"abandoned"}
    refused(run(*many, "--yes"), "E_NO_CASE", 3)
    refused(run("cases", "settle", "--all", "give_up", *SAID, "--yes"), "E_INPUT")


def test_a_case_that_refuses_a_bulk_verdict_is_named_and_the_command_asks_for_a_person(
    ledger: tuple[World, Run],
) -> None:
    world, run = ledger
    lost(world, "run/1")
    many = ("cases", "settle", "--all", "--target", "reports", "--code", "E_SUBMISSION_UNKNOWN", "accept", *SAID, "-y")
    told = run(*many)
    (case,) = world.client.get("run/1").cases
    assert (told.code, told.out) == (6, f"settled  0\nrefused  {case.id}  E_VERDICT_NOT_OFFERED\n")


def test_effects_that_were_checked_are_settled_beside_a_receipt_that_stands(
    cli_in: Callable[..., Run], database: str, tmp_path: Path
) -> None:
    policy = POLICY.model_copy(update={"cancel_is_evidence": True, "effect_case": "always"})
    with desk(cli_in, database, tmp_path, policy) as (world, run):
        operation_id = world.working()
        world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
        world.intend(world.claim(Lane.CANCEL)[operation_id], effect="cancel", generation=1)
        world.bring(operation_id, CancelAcknowledged(1, cancelled=True), lane=Lane.CANCEL)
        before = world.client.receipt("run/1")
        (shown,) = lines(run("cases", "show", "run/1", "-o", "json"))
        assert (shown["case"]["code"], shown["offered"]) == ("E_EFFECTS_POSSIBLE", ["accept"])
        (settled,) = lines(run("cases", "settle", "run/1", "accept", *SAID, "-o", "json"))
        assert (settled["state"], settled["cases"][0]["verdict"]) == ("CANCELLED_ACCEPTED", "accept")
        assert world.client.receipt("run/1") == before
        assert "no case is open" in run("cases", "list").err


# -- questions ---------------------------------------------------------------------------------------------------------


def test_a_question_is_listed_shown_with_its_schema_and_answered_once(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    assert "no question waits" in run("inputs", "list").err
    ask(world)
    (listed,) = lines(run("inputs", "list", "-o", "json"))
    assert (listed["call_node_id"], listed["number"], listed["request_schema"]) == ("run/1", 1, SCHEMA)
    shown = run("inputs", "show", "run/1").out
    assert r"Delete 400 rows?\x1b[2J" in shown
    assert '"approve": {' in shown
    told = run("inputs", "answer", "run/1", "-", "--actor", "ann", "-o", "json", stdin=b'{"approve": true}')
    assert (told.code, lines(told)[0]["state"]) == (0, "replied")
    refused(run("inputs", "answer", "run/1", '{"approve": true}', "--actor", "ann"), "E_NO_SUCH_ROUND", 3)
    again = run("inputs", "answer", "run/1", '{"approve": true}', "--actor", "ann", "--round", "1")
    refused(again, "E_INPUT_ROUND_CLOSED", 8)


@pytest.mark.parametrize(("more", "action"), [((), b"decline"), (("--dismiss",), b"cancel")])
def test_a_question_may_be_declined_or_dismissed(
    ledger: tuple[World, Run], more: tuple[str, ...], action: bytes
) -> None:
    world, run = ledger
    ask(world)
    assert run("inputs", "decline", "run/1", "--actor", "ann", *more).code == 0
    assert world.sql("SELECT reply, replied_by FROM counterfoil.input_round") == [(b'{"action":"%s"}' % action, "ann")]


def test_answers_that_do_not_fit_change_nothing(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    ask(world, questions=2)
    answer = ("inputs", "answer", "run/1", "--actor", "ann", "--round", "1")
    refused(run(*answer, '{"approve": "yes"}'), "E_INPUT_SCHEMA")
    refused(run(*answer, "{}"), "E_INPUT_SCHEMA")
    refused(run(*answer, '{"approve": true'), "E_ARGUMENTS_INVALID")
    refused(run(*answer, "[true]"), "E_ARGUMENTS_INVALID")
    refused(run("inputs", "answer", "run/1", '{"approve": true}', "--actor", "ann"), "E_INPUT")
    refused(
        run("inputs", "answer", "run/1", '{"approve": true}', "--actor", "ann", "--round", "9"), "E_NO_SUCH_ROUND", 3
    )
    refused(run("inputs", "show", "nobody"), "E_NOT_FOUND", 3)
    assert world.sql("SELECT DISTINCT state FROM counterfoil.input_round") == [("open",)]


def test_whoever_asked_for_the_call_does_not_answer_it_where_the_policy_wants_four_eyes(
    cli_in: Callable[..., Run], database: str, tmp_path: Path
) -> None:
    with desk(cli_in, database, tmp_path, POLICY.model_copy(update={"four_eyes": True})) as (world, run):
        ask(world)
        refused(run("inputs", "answer", "run/1", '{"approve": true}', "--actor", "default"), "E_FOUR_EYES")
        assert run("inputs", "answer", "run/1", '{"approve": true}', "--actor", "ann").code == 0


def standing(world: World) -> list[tuple[str, str, int, int]]:
    """How every operation stands; what was refused may only be journaled."""
    return [(x.call_node_id, x.state, x.cancel_generation, x.attempt) for x in world.client.operations()]


# -- cancel and get ----------------------------------------------------------------------------------------------------


def test_a_cancel_is_a_request_and_a_repeat_is_the_same_one(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    world.working()
    for _ in range(2):
        (asked,) = lines(run("cancel", "run/1", "--reason", "wrong month", "-o", "json"))
        assert (asked["state"], asked["cancel_generation"], asked["outcome"]) == ("CANCEL_REQUESTED", 1, None)
    assert "wrong month" in run("watch", "run/1", "--timeout", "0").out


def test_a_cancel_of_what_is_over_or_cannot_be_cancelled_is_refused_and_changes_nothing(
    cli_in: Callable[..., Run], database: str, tmp_path: Path
) -> None:
    with desk(cli_in, database, tmp_path, POLICY.model_copy(update={"can_cancel": False})) as (world, run):
        world.working("run/1")
        world.ended(world.working("run/2", "t-2"))
        before = standing(world)
        refused(run("cancel", "run/1"), "E_CANNOT_CANCEL", 8)
        refused(run("cancel", "run/2"), "E_ALREADY_OVER", 8)
        refused(run("cancel", "nobody"), "E_NOT_FOUND", 3)
        assert standing(world) == before


def test_an_operation_is_found_by_submission_key_and_by_task_id_in_any_namespace(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    world.working("run/1", "t-1")
    key = str(world.client.get("run/1").submission_key)
    for how in (("--key", key), ("--task", "t-1"), ("--task", "t-1", "--target", "reports")):
        (found,) = lines(run("get", *how, "-n", "elsewhere", "-o", "json"))
        assert found["call_node_id"] == "run/1"
    refused(run("get", "--task", "t-1", "--target", "elsewhere"), "E_NOT_FOUND", 3)
    refused(run("get", "--key", "00000000-0000-8000-8000-000000000000"), "E_NOT_FOUND", 3)
    for wrong in ((), ("run/1", "--task", "t-1"), ("run/1", "--target", "reports"), ("--key", "t-1")):
        refused(run("get", *wrong), "E_INPUT")


def test_a_task_id_that_several_bear_lists_them(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    world.ended(world.working("run/1", "t-1"))
    world.working("run/2", "t-1")
    assert {one["call_node_id"] for one in lines(run("get", "--task", "t-1", "-o", "json"))} == {"run/1", "run/2"}
    assert "NAMESPACE" in run("get", "--task", "t-1").out


def test_evidence_of_both_sides_stands_beside_the_case(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    operation_id = world.working()
    world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
    for _ in range(3):
        world.bring(operation_id, TaskNotFound(10**9, "unknown task"))
    world.sql(
        "INSERT INTO counterfoil.evidence (id, fleet, operation_id, kind, attempt, generation, epoch, status, headers,"
        " body, consumed_at) SELECT gen_random_uuid(), 'main', %(id)s, v.kind, 1, 0, 1, v.status, '{}', v.body, now()"
        " FROM (VALUES ('submit', 200, '{\"taskId\":\"t-1\"}'::bytea), ('cancel', 0, 'half an'::bytea))"
        " AS v(kind, status, body)",
        {"id": operation_id},
    )
    shown = run("cases", "show", "run/1").out
    assert ' UTC, to submit, attempt 1: HTTP 200, read\n    {"taskId":"t-1"}\n' in shown
    assert " UTC, to cancel, attempt 1: cut, read\n    half an\n" in shown
