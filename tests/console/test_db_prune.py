"""db prune: says what would go, and takes it away when told to."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from counterfoil.tests.ledger.world import World

from .conftest import Ended, Run


@pytest.fixture
def world(database: str) -> Iterator[World]:
    """A receipt that was acknowledged; then the ledger's clock stands years later."""
    made = World(database)
    made.freeze()
    made.ended(made.working())
    made.client.ack([ready.id for ready in made.client.ready()])
    made.pass_time(3 * 365 * 86_400)
    yield made
    made.close()


@pytest.fixture
def run(cli_in: Callable[..., Run], database: str) -> Run:
    return cli_in(DATABASE_URL=database)


def told(ended: Ended) -> dict[tuple[str, str], tuple[int, bool]]:
    assert ended.code == 0, ended.err
    lines = [json.loads(line) for line in ended.out.splitlines()]
    return {(line["kind"], line["name"]): (line["rows"], line["gone"]) for line in lines}


def test_without_yes_nothing_goes(world: World, run: Run) -> None:
    ended = run("db", "prune", "-o", "json")
    found = told(ended)
    assert found["ready", "rows"] == (1, False)
    assert ("evidence", "evidence_before") in found
    assert ("results", "rows") not in found
    assert "nothing was taken away" in ended.err
    assert world.sql("SELECT count(*) FROM counterfoil.ready_outbox") == [(1,)]
    assert "journal_before" in run("db", "prune").out


def test_with_yes_it_goes_and_the_months_lie_in_the_archive(world: World, run: Run, tmp_path: Path) -> None:
    ended = run("db", "prune", "--yes", "--archive", tmp_path / "archive", "--keep", "results=30", "-o", "json")
    assert all(gone for _, gone in told(ended).values())
    assert "ready: 1 gone." in ended.err
    assert (tmp_path / "archive" / "journal_before.jsonl.gz").exists()
    assert world.sql("SELECT count(*) FROM counterfoil.ready_outbox") == [(0,)]
    assert world.sql("SELECT count(*) FROM counterfoil.operation_result") == [(0,)]
    assert world.sql("SELECT count(*) FROM counterfoil.terminal_receipt") == [(1,)]
    assert told(run("db", "prune", "--only", "ready", "-o", "json")) == {("ready", "rows"): (0, False)}


@pytest.mark.parametrize(
    "arguments",
    [("--keep", "receipts=1"), ("--keep", "evidence"), ("--keep", "evidence=0"), ("--only", "results")],
    ids=" ".join,
)
def test_what_can_not_be_is_refused_before_anything_goes(run: Run, arguments: tuple[str, ...]) -> None:
    ended = run("db", "prune", "--yes", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("E_RETENTION: ")
