"""The story of an operation: everything that the ledger holds about it, in order, and nothing of a person's reply."""

import re

from counterfoil.ledger import events, reads
from counterfoil.ledger.events import CancelAsked, Ended, InputRequested, ReplyGiven, SubmitUnclear, TaskBound
from counterfoil.ledger.rounds import Question
from counterfoil.ledger.states import Lane
from counterfoil.ledger.story import EXCERPT_CHARS, StoryLine, tell_story
from counterfoil.tests.ledger.world import RESULT, World


def story(world: World, node: str = "run/1") -> list[StoryLine]:
    operation = world.client.get(node)
    with world.database.begin() as connection:
        journal = reads.read_journal(connection, operation.id)
        return tell_story(connection, operation, journal, world.client.receipt(node))


def told(world: World, node: str = "run/1") -> list[tuple[str, str, str]]:
    """(kind, who, what) without what is different in every run."""
    return [
        (line.kind, line.who, re.sub(r"[0-9a-f-]{36}|[0-9a-f]{12}…", "#", line.what)) for line in story(world, node)
    ]


def test_a_call_that_succeeds_is_told_from_the_door_to_the_receipt(world: World) -> None:
    world.freeze()
    operation_id = world.opened()
    world.pass_time(1)
    lease = world.claim()[operation_id]
    world.intend(lease)
    world.pass_time(1)
    bound = TaskBound(1, "t-1", "working")
    world.keep(operation_id, bound)
    world.bring(operation_id, lease=lease)
    world.pass_time(1)
    world.bring(operation_id, Ended(9, "completed", "completed", RESULT))
    lines = told(world)
    assert [line for line in lines if line[0] != "heard"] == [
        ("decided", "door", "handed in: reports/generate on behalf of default, submission key #"),
        ("sent", "worker", "submit intended: may leave within 10 s, its answer is awaited for 60 s"),
        ("decided", "worker", "SUBMITTING -> WORKING by submit"),
        ("decided", "ledger", "submit is over: answered"),
        ("decided", "worker", "WORKING -> TERMINAL_OBSERVED by poll"),
        ("decided", "worker", "TERMINAL_OBSERVED -> FETCHING_RESULT by poll"),
        ("over", "accept_terminal", "receipt #: succeeded, effects: possible, result sha256 #"),
    ]
    ((_, who, what),) = [line for line in lines if line[0] == "heard"]
    assert who == "server"
    assert what.startswith("to submit: HTTP 200, ")
    assert '{"kind": "TaskBound", "attempt": 1, "task_id": "t-1"' in what
    intended, over = next(line for line in story(world) if line.kind == "sent"), story(world)[-1]
    assert (intended.epoch, intended.generation, intended.attempt) == (1, 0, 1)
    assert (over.epoch, over.generation, over.attempt) == (1, 0, 1)
    assert over.at.utcoffset().total_seconds() == 0  # type: ignore[union-attr]


def test_a_lost_submit_is_told_with_its_case_and_the_verdict_on_it(world: World) -> None:
    operation_id, lease, _ = world.sent()
    world.bring(operation_id, SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "the connection was lost"), lease=lease)
    said = events.VerdictGiven("never_created", "ann", "searched the server's log", "ben")
    world.bring(operation_id, said, lane=Lane.DOOR)
    lines = told(world)
    assert ("case", "ledger", "case E_SUBMISSION_UNKNOWN (UNKNOWN): the connection was lost") in lines
    verdict = "case E_SUBMISSION_UNKNOWN is closed, verdict never_created, reason: searched the server's log"
    assert ("case", "ann", f"{verdict}, second person: ben") in lines
    assert lines[-1][2].startswith("receipt #: failed (E_NOT_SENT_BY_VERDICT)")


def test_a_question_is_told_with_who_replied_and_not_with_what(world: World) -> None:
    operation_id = world.working()
    params = b'{"message":"Delete\\u001b[2J 400 rows?","requestedSchema":{"type":"object"}}'
    world.bring(operation_id, InputRequested(5, "input_required", (Question("k", "elicitation/create", params, b"d"),)))
    world.bring(operation_id, ReplyGiven(1, b'{"action":"accept","content":{"pin":"1234"}}', "ann"), lane=Lane.DOOR)
    lines = [line for line in told(world) if line[0] == "asked"]
    assert lines == [
        ("asked", "server", "question 1 (elicitation/create): Delete\x1b[2J 400 rows?"),
        ("asked", "ann", "replied to question 1: accept"),
    ]
    assert "1234" not in str(story(world))


def test_a_cancel_is_told_with_its_reason_and_generation(world: World) -> None:
    operation_id = world.working()
    world.bring(operation_id, CancelAsked("the user pressed stop"), lane=Lane.DOOR)
    world.intend(world.claim(Lane.CANCEL)[operation_id], effect="cancel", generation=1)
    (moved,) = [line for line in story(world) if "CANCEL_REQUESTED" in line.what]
    assert moved.what == "WORKING -> CANCEL_REQUESTED by door (the user pressed stop)"
    (sent,) = [line for line in story(world) if line.what.startswith("cancel intended")]
    assert sent.generation == 1


def test_what_a_server_said_is_cut_and_may_be_any_bytes(world: World) -> None:
    operation_id, _, _ = world.sent()
    world.keep(operation_id, TaskBound(1, "t" * 5_000, "working"))
    world.sql("UPDATE counterfoil.evidence SET status = 0, body = body || decode('ff00fe', 'hex')")
    (heard,) = [line for line in story(world) if line.kind == "heard"]
    assert "an answer that was cut" in heard.what
    assert ", not read yet: " in heard.what
    assert len(heard.what) < EXCERPT_CHARS + 200
