"""The command line under test: in this process where that is enough, in processes of its own where signals count.

`served` is a whole small fleet, once a session: a real fastmcp server, a database, `counterfoil worker --solo`. Tests
share it, each in a namespace of its own.
"""

import io
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from counterfoil.console import cli
from counterfoil.console.devstack import DevStack
from counterfoil.ledger import migrate

PROGRAM = (sys.executable, "-P", "-m", "counterfoil")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the demo under an account whose interpreter lacks what ours has (markers, as of redis below 3.11.3)."""
    wanted = [item for item in items if "test_demo.py" not in item.nodeid or _can_demo(item)]
    if left_out := [item for item in items if item not in wanted]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = wanted


def _can_demo(item: pytest.Item) -> bool:
    account = (
        item.callspec.params.get("account") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
    )
    if account is None or account.python == sys.executable:
        return True
    probe = [account.python, "-c", "import celery, fastmcp_tasks, redis.asyncio"]
    tried = subprocess.run(
        probe, check=False, cwd="/", env=environment_of(), capture_output=True, **account.popen_options()
    )
    return tried.returncode == 0


@dataclass(frozen=True)
class Ended:
    """What a command left: exit code, data, and what it said to people."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def cli_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Run]:
    """`cli_in(VARIABLE="…")` gives `run(*arguments, stdin=b"")`: `counterfoil …` here, in an empty folder."""

    def with_environment(**environment: str) -> Run:
        monkeypatch.chdir(tmp_path)
        for name, value in environment.items():
            monkeypatch.setenv(f"COUNTERFOIL_{name}", value)

        def run(*arguments: object, stdin: bytes = b"") -> Ended:
            monkeypatch.setattr(sys, "argv", ["counterfoil", *map(str, arguments)])
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            with pytest.raises(SystemExit) as ended:
                cli.main()
            captured = capsys.readouterr()
            return Ended(int(ended.value.code or 0), captured.out, captured.err)

        return run

    return with_environment


def environment_of(**settings: str) -> dict[str, str]:
    """The environment of a process that finds what we find, and has only these settings."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        **{f"COUNTERFOIL_{name}": value for name, value in settings.items()},
    }


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`start(*arguments, **settings)`: `counterfoil …` in a process of its own, ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **settings: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=tmp_path,
            env=environment_of(**settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@dataclass(frozen=True)
class Served:
    """A fleet that works."""

    database_url: str
    targets_file: Path
    book: Path


@pytest.fixture(scope="session")
def demo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """The demo's fastmcp server: its port and its book."""
    book = tmp_path_factory.mktemp("server") / "book.jsonl"
    command = [sys.executable, "-P", "-m", "counterfoil.console.demo_server", str(book), "0.1"]
    with subprocess.Popen(command, env=environment_of(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline()), book
        process.terminate()


@pytest.fixture(scope="session")
def served(
    database_stack: DevStack, demo_server: tuple[int, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    port, book = demo_server
    folder = tmp_path_factory.mktemp("fleet")
    targets_file = folder / "targets.yaml"
    targets_file.write_text(
        f"targets:\n  reports: {{url: 'http://127.0.0.1:{port}/mcp', protocol: mcp-2026-07-28, qps: 100, burst: 50,"
        " poll: {min_s: 0.1}}\n"
    )
    url = make_url(database_stack.database_url)
    name = f"counterfoil_test_{secrets.token_hex(6)}"
    operator = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(operator, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    database_url = url.set(database=name).render_as_string(hide_password=False)
    migrate.upgrade(database_url)
    environment = environment_of(DATABASE_URL=database_url, TARGETS_FILE=str(targets_file), TICK_S="0.1")
    command = [*PROGRAM, "worker", "--solo"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd=folder) as worker:
        assert worker.stderr is not None
        first = worker.stderr.readline()
        assert first.startswith("worker ready:"), first + worker.stderr.read()
        yield Served(database_url, targets_file, book)
        worker.terminate()
        assert "stopping" in worker.stderr.read()
    with psycopg.connect(operator, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def run(cli_in: Callable[..., Run], served: Served) -> Run:
    """`counterfoil …` against the fleet that works."""
    return cli_in(DATABASE_URL=served.database_url)


@pytest.fixture
def namespace() -> str:
    """A namespace that only this test uses."""
    return f"test-{secrets.token_hex(4)}"
