"""The image, where no container engine is at hand: its file is linted and judged, and its steps are replayed in a plain
folder, whose programs then run as the chart runs them."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import dockerfile_parse
import pytest

from .conftest import Count

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "Containerfile"
SIZE_MAX_BYTES = 260_000_000
"""Of what comes on top of the base."""


@pytest.fixture(scope="module")
def steps() -> list[dict[str, Any]]:
    parser = dockerfile_parse.DockerfileParser(fileobj=io.BytesIO(FILE.read_bytes()))
    return [step for step in parser.structure if step["instruction"] != "COMMENT"]


def last(steps: list[dict[str, Any]], instruction: str) -> str:
    return str([step["value"] for step in steps if step["instruction"] == instruction][-1])


def test_the_linter_has_nothing_to_say() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    told = subprocess.run([hadolint, "--failure-threshold", "style", FILE], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (0, ""), told.stderr


def test_the_image_has_two_stages_no_root_no_shell_between_and_nothing_unpinned(steps: list[dict[str, Any]]) -> None:
    stages = [step["value"] for step in steps if step["instruction"] == "FROM"]
    assert len(stages) == 2
    assert {stage.split()[0] for stage in stages} == {"${BASE}"}
    base = next(step["value"] for step in steps if step["instruction"] == "ARG")
    assert re.fullmatch(r"BASE=python:3\.\d+-slim-\w+", base)
    final = steps[max(index for index, step in enumerate(steps) if step["instruction"] == "FROM") :]
    assert [step["instruction"] for step in final if step["instruction"] in ("RUN", "ADD")] == []
    assert [step["value"] for step in final if step["instruction"] == "COPY"] == [
        "--from=build /opt/counterfoil /opt/counterfoil"
    ]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", last(steps, "USER"))
    for instruction in ("ENTRYPOINT", "CMD"):
        assert isinstance(json.loads(last(steps, instruction)), list), "exec form: signals reach the process"
    assert json.loads(last(steps, "ENTRYPOINT")) == ["counterfoil"]
    assert json.loads(last(steps, "HEALTHCHECK").partition(" CMD ")[2])[:2] == ["counterfoil", "health"]
    commands = [part for step in steps if step["instruction"] == "RUN" for part in step["value"].split("&&")]
    installs = [part.strip() for part in commands if " install " in part]
    assert len(installs) == 3
    assert all("--require-hashes" in part or part.endswith("install --no-deps wheels/*.whl") for part in installs)


def test_every_package_goes_in_and_nothing_else(steps: list[dict[str, Any]]) -> None:
    copied = {
        name.removeprefix("./").rstrip("/")
        for step in steps
        if step["instruction"] == "COPY" and "--from" not in step["value"]
        for name in step["value"].split()[:-1]
    }
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {name.split(".")[1] for name in packages if "." in name}
    assert folders == {name for name in copied if (ROOT / name).is_dir()}
    assert {name for name in copied if not (ROOT / name).exists()} == set()
    let_in = {line.lstrip("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert let_in == copied


def replay(steps: list[dict[str, Any]], folder: Path) -> None:
    """The first stage's COPY and RUN, with its /src and /opt in the folder and our interpreter as the base's."""
    source = folder / "src"
    source.mkdir()
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("COUNTERFOIL_", "PYTHON"))}
    for step in steps[: max(index for index, one in enumerate(steps) if one["instruction"] == "FROM")]:
        if step["instruction"] == "COPY":
            *names, where = step["value"].split()
            for name in names:
                copy(ROOT / name, source / where / ("" if where != "./" else name))
        elif step["instruction"] == "RUN":
            command = (
                step["value"].replace("/opt/", f"{folder}/opt/").replace("python -m venv", f"{sys.executable} -m venv")
            )
            told = subprocess.run(
                ["/bin/sh", "-ec", command], cwd=source, env=environ, capture_output=True, text=True, check=False
            )
            assert told.returncode == 0, f"{command}\n{told.stdout}\n{told.stderr}"


def copy(what: Path, where: Path) -> None:
    if what.is_dir():
        shutil.copytree(what, where, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(what, where)


def test_the_steps_make_an_environment_whose_commands_run_and_say_what_they_lack(
    steps: list[dict[str, Any]], tmp_path: Path, count: Count
) -> None:
    replay(steps, tmp_path)
    made = tmp_path / "opt" / "counterfoil"
    program = made / "bin" / "counterfoil"
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*")}

    def run(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        plain = {"PATH": f"{made}/bin:{os.defpath}", "PYTHONDONTWRITEBYTECODE": "1", **environ}
        return subprocess.run(
            [program, *arguments], env=plain, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )

    assert run("version").stdout.strip() == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    nobody = {"COUNTERFOIL_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}
    for command, code, environ, told in (
        (("worker", "--lanes", "submit"), 9, {}, "E_NO_DATABASE"),
        (("worker", "--lanes", "submit"), 9, nobody, "E_LEDGER_UNAVAILABLE"),
        (("beat",), 9, {}, "E_NO_BROKER"),
        (("hooks",), 9, nobody, "E_LEDGER_UNAVAILABLE"),
        (("db", "upgrade"), 9, nobody, "E_LEDGER_UNAVAILABLE"),
        (("epoch", "adopt", "4", "--reason", "release"), 9, nobody, "E_LEDGER_UNAVAILABLE"),
    ):
        ended = run(*command, **environ)
        assert (ended.returncode, ended.stderr.partition(":")[0]) == (code, told), ended.stderr
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*")} == before, "the root is read-only"
    size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file() and not path.is_symlink())
    assert size < SIZE_MAX_BYTES
    count(image_megabytes_over_its_base=round(size / 1e6))
