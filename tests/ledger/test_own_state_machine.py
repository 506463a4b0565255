"""docs/state-machine.md: its worked example, run as it stands there."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from counterfoil.ledger import events
from counterfoil.ledger.states import Lane, Outcome
from counterfoil.tests.ledger.machine import asks
from counterfoil.tests.ledger.world import RESULT, World

PAGE = (Path(__file__).parents[2] / "docs" / "state-machine.md").read_text()
ENDS = {
    "succeeded": "done",
    "failed": "error",
    "cancelled": "stopped",
    "refused": "error",
    "abandoned": "ask a person",
    "attention": "waiting",
    "input_required": "waiting",
    "nothing yet": "waiting",
}


@pytest.fixture
def example() -> dict[str, Any]:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "docs/state-machine.md", "exec"), names)
    return names


@pytest.fixture
def mine(world: World) -> Any:
    """The producer's own table, and a node of it for every way that a call can go."""
    world.ended(world.working("succeeded", "t-1"))
    world.ended(world.working("failed", "t-2"), replace(RESULT, tool_error=True))
    world.bring(world.opened("cancelled"), events.CancelAsked("not needed"), lane=Lane.DOOR)
    for node in ("abandoned", "attention"):
        operation_id, lease, _ = world.sent(node)
        world.bring(operation_id, events.SubmitUnclear(1, "E_NO_ANSWER", "lost"), lease=lease)
    lease = world.claimed("refused")
    world.bring(lease.operation_id, events.RefusedBeforeSubmit("E_TOOL_UNKNOWN", "no such tool"), lease=lease)
    world.bring(world.client.get("abandoned").id, events.VerdictGiven("give_up", "ann", "nobody knows"), lane=Lane.DOOR)
    world.bring(world.working("input_required", "t-3"), asks("q", seq=10))
    world.working("nothing yet", "t-4")
    with world.owner() as connection:
        connection.execute(
            "CREATE TABLE node (id text PRIMARY KEY, state text DEFAULT 'waiting', receipt uuid, note text)"
        )
        for node in ENDS:
            connection.execute("INSERT INTO node (id) VALUES (%s)", (node,))
        yield connection


def nodes(mine: psycopg.Connection[Any]) -> dict[str, str]:
    return dict(mine.execute("SELECT id, state FROM node").fetchall())


def test_the_example_moves_every_node_as_the_page_says(world: World, mine: Any, example: dict[str, Any]) -> None:
    assert example["turn"](world.client, mine) == 5
    assert nodes(mine) == ENDS
    notes = dict(mine.execute("SELECT id, note FROM node WHERE note IS NOT NULL").fetchall())
    assert notes == {"attention": "E_NO_ANSWER", "input_required": "input_required"}
    assert example["turn"](world.client, mine) == 0
    assert world.client.ready() == world.client.notices() == []


def test_the_example_broken_off_anywhere_moves_nothing_twice(world: World, mine: Any, example: dict[str, Any]) -> None:
    world.freeze()
    broken = world.client_of()
    broken.ack_in = lambda *_: 1 / 0  # type: ignore[method-assign,assignment]
    with pytest.raises(ZeroDivisionError):
        example["turn"](broken, mine)
    assert set(nodes(mine).values()) == {"waiting"}, "rolled back with what it had moved"
    world.pass_time(60)
    assert example["turn"](world.client, mine) == 5
    assert nodes(mine) == ENDS


def test_a_late_repeat_does_not_move_a_node_that_went_on(world: World, mine: Any, example: dict[str, Any]) -> None:
    mine.execute("UPDATE node SET state = 'gone on' WHERE id = 'succeeded'")
    assert example["turn"](world.client, mine) == 4
    assert nodes(mine)["succeeded"] == "gone on"


def test_the_page_and_the_example_know_every_outcome(example: dict[str, Any]) -> None:
    assert set(example["NEXT"]) == {str(outcome) for outcome in Outcome}
    assert all(f"`{outcome}`" in PAGE for outcome in Outcome)
    assert len(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0].splitlines()) <= 36
