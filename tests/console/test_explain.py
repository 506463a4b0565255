"""`explain`, `config show`, completion, and the pages that are made of what the program knows."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from counterfoil.console import reference
from counterfoil.console.config_view import hide_password
from counterfoil.console.exits import MEANS, Exit
from counterfoil.console.explain import STATES, all_codes
from counterfoil.ledger.states import EDGES, State

from .conftest import Run

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"(?<![A-Z_])E_[A-Z]+(?:_[A-Z]+)*(?![A-Z_…])")
SECRET = "hunter2-do-not-show"


@pytest.fixture
def run(cli_in: Callable[..., Run]) -> Run:
    return cli_in()


# -- explain -----------------------------------------------------------------------------------------------------------


def test_every_code_of_the_program_is_explained_and_only_once() -> None:
    found = {
        code
        for folder in ("adapters", "ledger", "workers", "console")
        for pattern in ("*.py", "*.sql")
        for path in (ROOT / folder).rglob(pattern)
        if path.name != "explain.py"
        for code in CODE.findall(path.read_text())
    }
    assert found - set(all_codes()) - {"E_CODE"} == set()
    assert len(set(all_codes())) == len(all_codes())


def test_every_state_is_explained_with_all_its_moves(run: Run) -> None:
    assert set(STATES) == set(State)
    for state in State:
        told = run("explain", state.lower()).out
        assert STATES[state] in told
        assert all(f"goes to  {target} by " in told for source, target in EDGES if source is state)


def test_a_code_is_told_with_what_to_do_next(run: Run) -> None:
    told = run("explain", "E_RESULT_MISSING").out
    assert "means    It ended, its result can't be accepted.\n" in told
    assert "do next  Do not run it again" in told


@pytest.mark.parametrize(("typed", "meant"), [("E_RESULT_MISING", "E_RESULT_MISSING"), ("workin", "WORKING")])
def test_a_typo_names_the_nearest(run: Run, typed: str, meant: str) -> None:
    told = run("explain", typed)
    assert (told.code, told.out) == (2, "")
    assert f"Did you mean {meant}?" in told.err


# -- the pages ---------------------------------------------------------------------------------------------------------


def test_the_pages_are_in_step_with_the_program() -> None:
    for path, text in reference.pages():
        assert path.read_text(encoding="utf-8") == text, "run `python -m counterfoil.console.reference`"


def test_every_exit_code_is_told_in_the_help_and_on_the_page(run: Run) -> None:
    assert set(MEANS) == set(Exit)
    told, page = run("--help").out, (reference.DOCS / "cli.md").read_text(encoding="utf-8")
    for code, means in MEANS.items():
        assert f"{int(code):>3}  {means}\n" in told
        assert f"| {int(code)} | {means} |\n" in page


# -- config show -------------------------------------------------------------------------------------------------------


def test_each_setting_is_shown_with_where_it_comes_from_and_no_secret(cli_in: Callable[..., Run]) -> None:
    url = f"postgresql://me:{SECRET}@db:5432/app?sslmode=require&sslpassword={SECRET}"
    told = cli_in(DATABASE_URL=url, KEYS=SECRET, TICK_S="0.5")("config", "show", "-o", "json")
    rows = {row["variable"]: row for row in map(json.loads, told.out.splitlines())}
    assert SECRET not in told.out + told.err
    database = rows["COUNTERFOIL_DATABASE_URL"]
    assert database["value"] == "postgresql+psycopg://me:***@db:5432/app?sslmode=require&sslpassword=***"
    assert (database["origin"], rows["COUNTERFOIL_TICK_S"]["value"]) == ("environment", "0.5")
    assert (rows["COUNTERFOIL_FLEET"]["value"], rows["COUNTERFOIL_FLEET"]["origin"]) == ("main", "default")
    assert rows["COUNTERFOIL_KEYS"]["value"] == "***"


def test_what_the_development_stack_says_is_told_as_its(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".counterfoil").mkdir()
    servers = {"valkey": {"url": f"redis://:{SECRET}@127.0.0.1:7/0"}}
    (tmp_path / ".counterfoil" / "dev.json").write_text(json.dumps({"servers": servers}))
    told = run("config", "show")
    (line,) = [line for line in told.out.splitlines() if line.startswith("COUNTERFOIL_BROKER_URL")]
    assert line.split() == ["COUNTERFOIL_BROKER_URL", "redis://:***@127.0.0.1:7/0", "dev", "stack"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h:1/0", "redis://h:1/0"),
        ("redis://user@h/0", "redis://user@h/0"),
        ("redis://:p@w@h/0", "redis://:***@h/0"),
        ("redis+socket:///run/x?virtual_host=1&password=p", "redis+socket:///run/x?virtual_host=1&password=***"),
    ],
)
def test_a_url_loses_its_password_and_nothing_else(url: str, shown: str) -> None:
    assert hide_password(url) == shown


# -- completion --------------------------------------------------------------------------------------------------------


def test_a_shell_completes_commands(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_COUNTERFOIL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "counterfoil targets ex")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert run().out.split() == ["explain"]
