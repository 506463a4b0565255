"""What a run rests on: that a seed is one run, and that a recorded one is played again."""

import json
from pathlib import Path

import pytest

from .campaign import Stage, Verdict
from .families import FAMILIES

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.json"))
SEEDS = [(name, seed) for seed, name in enumerate(list(FAMILIES)[::7]) if FAMILIES[name].tier == "A"]


def _of(verdict: Verdict) -> tuple[object, ...]:
    return verdict.trace, verdict.left, dict(verdict.choices), verdict.violations


def test_a_seed_is_the_same_run_in_another_database_with_another_past(stages: tuple[Stage, Stage]) -> None:
    one, other = stages
    there = {key: other.draw(FAMILIES[key[0]], key[1]) for key in reversed(SEEDS)}
    for name, seed in SEEDS:
        here = one.draw(FAMILIES[name], seed)
        assert _of(here) == _of(there[name, seed]), (name, seed)
        assert not here.violations, (name, seed)


def test_a_seed_is_the_same_run_again_when_every_statement_is_a_move(stage_of_statements: Stage) -> None:
    """The last one was another run one time in two: an acceptance that a gate had held ended beside the scheduler."""
    seeds = [("two doors", 3), ("two doors", 4), ("bump against everything", 7)]
    once, again = ([stage_of_statements.draw(FAMILIES[name], seed) for name, seed in seeds] for _ in range(2))
    assert [_of(run) for run in once] == [_of(run) for run in again]
    assert once[0].trace != once[1].trace
    assert not any(run.violations for run in once)


def test_what_was_drawn_is_played_again_from_its_choices(stages: tuple[Stage, Stage]) -> None:
    stage, _ = stages
    for name in ("2026 unique", "2025 questions"):
        drawn = stage.draw(FAMILIES[name], 11)
        assert drawn.choices, name
        assert _of(stage.replay(name, drawn.choices)) == _of(drawn), name


def test_another_seed_is_another_run_and_so_is_the_same_seed_in_another_family(stages: tuple[Stage, Stage]) -> None:
    stage, _ = stages
    runs = [("2026 blind", 1), ("2026 blind", 2), ("crashes 2026", 1)]
    assert len({stage.draw(FAMILIES[name], seed).trace for name, seed in runs}) == 3


def test_what_goes_wrong_with_a_message_makes_another_ordering(stages: tuple[Stage, Stage]) -> None:
    """The same moves up to there: only the fault tells them apart."""
    stage, _ = stages
    plain = stage.replay("2026 blind", {})
    lost = stage.replay("2026 blind", {"fault of tools/call 1": 1})
    assert plain.trace != lost.trace
    assert plain.choices == {}
    assert lost.choices == {"fault of tools/call 1": 1}


@pytest.mark.parametrize("path", REGRESSIONS, ids=[path.stem for path in REGRESSIONS])
def test_what_was_found_once_stays_mended(path: Path, request: pytest.FixtureRequest) -> None:
    """Each file is a run that was wrong when it was found, as few choices as it took."""
    recorded = json.loads(path.read_text())
    stage: Stage = (
        request.getfixturevalue("stage_of_statements")
        if recorded["tier"] == "B"
        else request.getfixturevalue("stages")[0]
    )
    verdict = stage.replay(recorded["family"], recorded["choices"])
    assert not verdict.violations
    assert verdict.choices, "none of its choices comes up any more: it plays the plain course and proves nothing"
