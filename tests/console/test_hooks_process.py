"""The callbacks' door as a process: how it begins, what it says over HTTP, how it ends."""

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from .conftest import Run

Start = Callable[..., subprocess.Popen[str]]
TARGETS = "targets:\n  agent: {url: 'http://127.0.0.1:1/agent', protocol: a2a-1.0}\n"
HOOKS = "hooks:\n  agent: {secret: 'file:secret', qps: 1000}\n"
PUSH = {"statusUpdate": {"taskId": "nobodys", "status": {"state": "TASK_STATE_COMPLETED"}}}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "targets.yaml").write_text(TARGETS)
    (tmp_path / "hooks.yaml").write_text(HOOKS)
    (tmp_path / "secret").write_text("agents-secret\n")
    return tmp_path


def url_of(process: subprocess.Popen[str]) -> str:
    """Where it listens, by its own word."""
    assert process.stderr is not None
    told = process.stderr.readline()
    found = re.fullmatch(r"hooks ready: (http://\S+)/hooks/TARGET, fleet main, targets agent\.\n", told)
    assert found is not None, told
    return found[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_it_takes_callbacks_from_those_who_bear_the_secret_until_it_is_told_to_stop(
    start: Start, database: str, files: Path, number: signal.Signals
) -> None:
    door = start("hooks", "--port", "0", DATABASE_URL=database)
    url = url_of(door)
    bearer = {"authorization": "Bearer agents-secret"}
    with httpx.Client(base_url=url, trust_env=False) as client:
        assert client.post("/hooks/agent", json=PUSH).status_code == 401
        assert client.post("/hooks/agent", json=PUSH, headers=bearer).status_code == 204
        assert client.post("/hooks/agent", content=b"x" * (1024 * 1024 + 1), headers=bearer).status_code == 413
        assert client.get("/hooks/agent").status_code == 405
    door.send_signal(number)
    _, told = door.communicate(timeout=30)
    assert (door.returncode, told) == (0, "")


def test_a_secret_is_rotated_without_a_restart(start: Start, database: str, files: Path) -> None:
    door = start("hooks", "--port", "0", DATABASE_URL=database)
    with httpx.Client(base_url=url_of(door), trust_env=False) as client:
        (files / "secret").write_text("a-new-one")
        for secret, status in (("agents-secret", 401), ("a-new-one", 204)):
            answer = client.post("/hooks/agent", json=PUSH, headers={"authorization": f"Bearer {secret}"})
            assert answer.status_code == status


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--hooks-file", "none.yaml"), "E_HOOKS: the hooks file none.yaml can't be read: No such file"),
        (("--host", "192.0.2.1"), "E_LISTEN: 192.0.2.1:8790 can't be listened on: "),
    ],
)
def test_what_can_not_be_used_is_said_before_anything_listens(
    cli_in: Callable[..., Run], database: str, files: Path, arguments: tuple[str, ...], says: str
) -> None:
    ended = cli_in(DATABASE_URL=database)("hooks", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err


def test_a_ledger_without_tables_is_said_before_anything_listens(
    cli_in: Callable[..., Run], empty_database: str, files: Path
) -> None:
    ended = cli_in(DATABASE_URL=empty_database)("hooks")
    assert "E_SCHEMA: the ledger's schema is at version none" in ended.err
