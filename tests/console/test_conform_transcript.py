"""Transcripts as files: what is no transcript is refused with its place, and nothing is played."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from counterfoil.console.conform_transcript import SCHEMA, TranscriptRefused, load

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "cases"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write(name, **changes)`: a copy of C13, changed."""

    def written(name: str = "C13.json", **changes: Any) -> Path:
        document = json.loads((CASES / "C13.json").read_text()) | changes
        path = tmp_path / name
        path.write_text(json.dumps(document))
        return path

    return written


def problems_of(*paths: Path) -> list[str]:
    with pytest.raises(TranscriptRefused) as refused:
        load(paths)
    assert refused.value.code == "E_TRANSCRIPT_INVALID"
    return refused.value.message.splitlines()[1:]


def test_the_schema_in_the_package_is_the_one_of_the_cases() -> None:
    assert (ROOT / "console" / "data" / SCHEMA).read_bytes() == (CASES / "schema.json").read_bytes()


def test_a_folder_stands_for_its_cases_in_order_of_their_numbers() -> None:
    loaded = [one.id for one in load([CASES])]
    assert len(loaded) == len(list(CASES.glob("C*.json")))
    assert loaded.index("C90") < loaded.index("C100")


def test_what_stands_in_a_file_is_what_is_played(write: Write) -> None:
    (transcript,) = load([write()])
    assert [step.id for step in transcript.server] == ["sub", "g1"]
    (actor,) = transcript.actors
    assert actor.when is not None
    assert (actor.do, actor.when.after, actor.when.count, actor.when.at_start) == ("redeliver", "g1", 1, False)


def test_a_file_that_is_not_there_or_no_json_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"format": ')
    found = problems_of(tmp_path / "missing.json", broken)
    assert found[0].endswith("missing.json: No such file or directory")
    assert "broken.json: not JSON: " in found[1]


@pytest.mark.parametrize(
    ("changes", "place", "word"),
    [
        ({"format": "longop-transcript.v2"}, "/format", "longop-transcript.v1"),
        ({"id": "13"}, "/id", "does not match"),
        ({"protocol": "smtp"}, "/protocol", "smtp"),
        ({"surplus": 1}, "/", "surplus"),
        ({"expected": 3}, "/expected", "object"),
        ({"steps": [{"do": "dance"}]}, "/steps/0/do", "dance"),
        ({"steps": [{"id": "sub", "on": "tools/call"}]}, "/steps/0", "either `respond` or `drop`"),
        ({"steps": [{"id": "sub", "on": "tools/call", "drop": "early"}]}, "/steps/0/drop", "early"),
        ({"steps": ["sub"]}, "/steps/0", "object"),
        ({"steps": [{"do": "cancel", "when": {"after": "g9"}}]}, "/steps/0/when/after", "no server step g9"),
        ({"steps": [{"do": "worker_crash", "point": "after_send"}]}, "/steps/0", "worker_crash needs when"),
        ({"steps": [{"do": "answer_input", "round": 1, "content": 3}]}, "/steps/0/content", "needs an action"),
        ({"steps": [{"do": "advance_clock"}]}, "/steps/0", "advance_clock needs ms"),
        ({"steps": [{"id": "a", "on": "x", "drop": "mid"}] * 2}, "/steps", "the id a stands twice"),
    ],
)
def test_what_is_no_transcript_is_told_with_its_place(
    write: Write, changes: dict[str, Any], place: str, word: str
) -> None:
    (problem,) = problems_of(write(**changes))
    assert f"C13.json: {place} " in problem
    assert word in problem


def test_the_problems_of_all_files_are_told_at_once(write: Write) -> None:
    found = problems_of(write("one.json", title="short"), write("two.json", expected={}), write("three.json"))
    assert {Path(problem.split(":")[0].strip()).name for problem in found} == {"one.json", "two.json"}


def test_a_hostile_file_is_refused_without_being_taken_in(tmp_path: Path) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    assert "nested deeper than" in problems_of(deep)[0]
