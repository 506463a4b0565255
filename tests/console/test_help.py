"""Help: every command has some worth reading, and it comes at once."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from counterfoil.console import cli

from .conftest import Run, environment_of


def commands() -> list[tuple[str, ...]]:
    def below(command: object, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if isinstance(command, TyperGroup):
            for name, child in command.commands.items():
                yield from below(child, (*path, name))
        else:
            yield path

    return list(below(get_command(cli.program()), ()))


def test_the_commands_are_the_ones_that_the_readme_names() -> None:
    assert {" ".join(path) for path in commands()} >= {
        *("demo", "dev up", "dev stop", "dev status", "dev reset", "worker", "beat", "submit", "get", "list", "watch"),
        *("receipt", "ready", "db upgrade", "db check", "version"),
        *("check", "try", "targets add", "targets check", "targets list", "targets explain"),
        *("doctor", "config show", "explain"),
    }


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_command_explains_itself(cli_in: Callable[..., Run], path: tuple[str, ...]) -> None:
    told = cli_in()(*path, "--help")
    assert told.code == 0
    assert told.err == ""
    assert "Usage:" in told.out
    assert max(map(len, told.out.splitlines())) <= 120


@pytest.mark.parametrize(
    "name",
    ["submit", "get", "list", "watch", "receipt", "ready", "worker", "demo", "check", "try", "doctor", "explain"],
)
def test_the_commands_of_every_day_show_examples(cli_in: Callable[..., Run], name: str) -> None:
    told = cli_in()(name, "--help")
    assert f"  counterfoil {name}" in told.out.partition("Examples:")[2]


def test_the_first_page_has_first_steps_and_the_exit_codes(cli_in: Callable[..., Run]) -> None:
    told = cli_in()("--help")
    assert "counterfoil demo" in told.out
    assert "7  still running" in told.out


def test_help_and_version_load_nothing_heavy() -> None:
    code = "import sys; from counterfoil.console import cli; cli.program()\n"
    code += "print(sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], env=environment_of(), capture_output=True, text=True, check=True
    ).stdout
    for heavy in ("sqlalchemy", "psycopg", "celery", "httpx", "pydantic", "psutil", "rich"):
        assert f"'{heavy}'" not in loaded


def test_version_prints_the_version_alone(cli_in: Callable[..., Run]) -> None:
    import counterfoil

    assert cli_in()("version").out == f"{counterfoil.__version__}\n"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [(["recipt"], "receipt"), (["dev", "statu"], "status"), (["list", "--stat", "WORKING"], "--state")],
)
def test_a_typo_names_the_near_command(cli_in: Callable[..., Run], typed: list[str], meant: str) -> None:
    told = cli_in()(*typed)
    assert told.code == 2
    assert meant in told.err
    assert told.out == ""
