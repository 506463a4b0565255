"""Bad input ends with the cause, the place and the next step; with its exit code; and with nothing half-written."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from .conftest import Run, Served, environment_of

SECRET = "hunter2-do-not-show"


@pytest.fixture
def closed_port() -> int:
    """A port of loopback on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def rows(database: str) -> int:
    url = make_url(database).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM counterfoil.operation").fetchone()
        assert found is not None
        return int(found[0])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ('{"month": ', "E_ARGUMENTS_INVALID"),
        ('["2026-10"]', "E_ARGUMENTS_INVALID"),
        ('{"a": 1, "a": 2}', "E_ARGUMENTS_INVALID"),
        ('{"n": NaN}', "E_ARGUMENTS_INVALID"),
        ('{"n": 1e999}', "E_ARGUMENTS_INVALID"),
        ('{"n": 9007199254740992}', "E_ARGUMENTS_INVALID"),
        ('{"text": "\\ud800"}', "E_ARGUMENTS_INVALID"),
        ('{"text": "' + "x" * (1024 * 1024) + '"}', "E_ARGUMENTS_TOO_LARGE"),
        ("[" * 100_000, "E_ARGUMENTS_INVALID"),
    ],
    ids=["cut", "array", "twice", "nan", "huge", "2^53", "surrogate", "cap", "deep"],
)
def test_arguments_that_cannot_be_sent_are_refused_before_anything_is_written(
    cli_in: Callable[..., Run], database: str, arguments: str, code: str
) -> None:
    told = cli_in(DATABASE_URL=database)("submit", "reports", "t", "-", "--call-node", "n", stdin=arguments.encode())
    assert told.code == 2
    assert told.err.startswith(f"{code}: ")
    assert len(told.err) < 500
    assert told.out == ""
    assert rows(database) == 0


def test_stdin_that_does_not_end_is_not_read_to_its_end(cli_in: Callable[..., Run], database: str) -> None:
    told = cli_in(DATABASE_URL=database)("submit", "r", "t", "-", "--call-node", "n", stdin=b" " * (9 * 1024 * 1024))
    assert (told.code, told.err.partition(":")[0]) == (2, "E_ARGUMENTS_TOO_LARGE")


@pytest.mark.parametrize("command", [["submit", "reports", "t", "{}", "--call-node"], ["get"], ["watch"], ["receipt"]])
def test_a_call_node_of_ten_kilobytes_is_refused_and_not_repeated(
    cli_in: Callable[..., Run], database: str, command: list[str]
) -> None:
    told = cli_in(DATABASE_URL=database)(*command, "n" * 10_240)
    assert told.code == 2
    assert told.err.startswith("E_CALL_NODE_INVALID: the call node has 10240 characters")
    assert len(told.err) < 500


def test_an_unknown_target_names_the_near_one(run: Run, namespace: str) -> None:
    told = run("submit", "report", "generate_report", "{}", "--call-node", "n", "-n", namespace)
    assert told.code == 2
    assert "E_TARGET_UNKNOWN" in told.err
    assert "Did you mean 'reports'?" in told.err
    assert run("list", "-n", namespace, "-o", "json").out == ""


def test_another_request_under_the_same_call_node_is_refused(run: Run, namespace: str) -> None:
    submit = ("submit", "reports", "generate_report", "--call-node", "n", "-n", namespace)
    assert run(*submit, '{"month": "2026-10", "run": "r"}').code == 0
    told = run(*submit, '{"month": "2026-11", "run": "r"}')
    assert (told.code, told.err.partition(":")[0]) == (2, "E_CALL_NODE_CONFLICT")


UNWANTED = {
    "unknown tool": ("genrate_report", {}, "E_TOOL_UNKNOWN", ""),
    "wrong type": ("generate_report", {"month": 3}, "E_ARGUMENTS_INVALID", "/month"),
    "unknown field": ("generate_report", {"month": "2026-10", "colour": "red"}, "E_ARGUMENTS_INVALID", "colour"),
}


@pytest.mark.parametrize("case", UNWANTED)
def test_a_call_that_the_tool_does_not_take_is_refused_unsent(
    run: Run, served: Served, namespace: str, case: str
) -> None:
    tool, arguments, code, why = UNWANTED[case]
    text = json.dumps(arguments | {"run": namespace})
    told = run("submit", "reports", tool, text, "--call-node", "n", "-n", namespace, "--wait", "-o", "json")
    receipt = json.loads(told.out)
    assert (told.code, receipt["outcome"], receipt["error_code"]) == (8, "refused", code)
    assert receipt["effects_possible"] is False
    assert why in run("watch", "n", "-n", namespace).out
    assert namespace not in served.book.read_text()


def test_an_unknown_call_node_is_not_found(run: Run, namespace: str) -> None:
    for command in ("get", "watch", "receipt"):
        told = run(command, "nobody", "-n", namespace)
        assert (told.code, told.err.partition(":")[0], told.out) == (3, "E_NOT_FOUND", "")


def test_an_unknown_fleet_is_bad_input(run: Run, namespace: str) -> None:
    told = run("submit", "reports", "t", "{}", "--call-node", "n", "-n", namespace, "--fleet", "blue")
    assert (told.code, told.err.partition(":")[0]) == (2, "E_FLEET_UNKNOWN")


@pytest.mark.parametrize(
    "command",
    [
        *(["get", "n"], ["list"], ["watch", "n"], ["receipt", "n"], ["ready"]),
        ["submit", "reports", "t", "{}", "--call-node", "n"],
        *(["worker"], ["worker", "--solo"], ["db", "check"], ["db", "upgrade"]),
    ],
    ids=" ".join,
)
def test_a_database_that_is_down_is_told_with_the_next_command(
    cli_in: Callable[..., Run], closed_port: int, command: list[str]
) -> None:
    told = cli_in(DATABASE_URL=f"postgresql://me:{SECRET}@127.0.0.1:{closed_port}/x")(*command)
    assert told.code == 9
    assert told.err.startswith("E_LEDGER_UNAVAILABLE: ")
    assert "counterfoil dev up" in told.err
    assert SECRET not in told.err
    assert "Traceback" not in told.err
    assert told.out == ""


@pytest.mark.parametrize("command", [["list"], ["worker"], ["db", "upgrade"]], ids=" ".join)
def test_no_database_at_all_is_told_with_the_next_command(cli_in: Callable[..., Run], command: list[str]) -> None:
    told = cli_in()(*command)
    assert told.code == 9
    assert told.err.startswith("E_NO_DATABASE: ")
    assert "counterfoil dev up" in told.err


def test_a_url_that_is_none_is_told_without_its_password(cli_in: Callable[..., Run]) -> None:
    told = cli_in(DATABASE_URL=f"mysql://me:{SECRET}@h/x")("list")
    assert told.code == 2
    assert told.err.startswith("E_SETTINGS: COUNTERFOIL_DATABASE_URL: ")
    assert SECRET not in told.err


@pytest.mark.parametrize("command", [["list"], ["worker", "--solo"]], ids=" ".join)
def test_a_database_without_the_schema_is_told_with_the_next_command(
    cli_in: Callable[..., Run], empty_database: str, command: list[str]
) -> None:
    told = cli_in(DATABASE_URL=empty_database)(*command)
    assert (told.code, told.err.partition(":")[0]) == (9, "E_SCHEMA")
    assert "counterfoil db upgrade" in told.err


@pytest.mark.parametrize("command", [["worker"], ["beat"]], ids=" ".join)
def test_a_broker_that_is_down_is_told_before_celery_starts(
    cli_in: Callable[..., Run], served: Served, closed_port: int, command: list[str]
) -> None:
    told = cli_in(
        DATABASE_URL=served.database_url,
        TARGETS_FILE=str(served.targets_file),
        BROKER_URL=f"redis://:{SECRET}@127.0.0.1:{closed_port}/0",
    )(*command)
    assert told.code == 9
    assert told.err.startswith(f"E_BROKER_UNAVAILABLE: the broker at 127.0.0.1:{closed_port}")
    assert "counterfoil dev up" in told.err
    assert SECRET not in told.err


def test_a_worker_without_a_targets_file_says_which_it_looked_for(cli_in: Callable[..., Run], database: str) -> None:
    told = cli_in(DATABASE_URL=database)("worker", "--solo")
    assert (told.code, told.err.partition(":")[0]) == (2, "E_NO_TARGETS")
    assert "targets.yaml" in told.err


def test_a_targets_file_with_faults_is_told_line_by_line(
    cli_in: Callable[..., Run], database: str, tmp_path: Path
) -> None:
    (tmp_path / "targets.yaml").write_text("targets:\n  reports:\n    ulr: http://127.0.0.1/mcp\n    protocol: mcp-1\n")
    told = cli_in(DATABASE_URL=database)("worker", "--solo")
    assert (told.code, told.err.partition(":")[0]) == (2, "E_TARGETS")
    assert "targets.yaml:3: " in told.err
    assert "did you mean url?" in told.err


def test_an_unknown_lane_names_the_near_one(cli_in: Callable[..., Run], database: str) -> None:
    told = cli_in(DATABASE_URL=database)("worker", "--solo", "--lanes", "poll,submt")
    assert told.code == 2
    assert "did you mean submit?" in told.err


def test_a_timeout_without_a_wait_is_no_silent_wish(cli_in: Callable[..., Run], database: str) -> None:
    told = cli_in(DATABASE_URL=database)("submit", "reports", "t", "{}", "--call-node", "n", "--timeout", "3")
    assert (told.code, "Add --wait" in told.err) == (2, True)


def test_without_the_extras_the_command_line_names_the_one_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; import counterfoil.console.cli"
    told = subprocess.run(
        [sys.executable, "-c", code], check=False, env=environment_of(), capture_output=True, text=True
    )
    assert told.returncode == 1
    assert told.stderr == "E_EXTRA: the command line needs more: pip install 'counterfoil[fleet]'\n"


def test_deleting_the_stack_is_asked_for_and_nobody_there_means_no(cli_in: Callable[..., Run]) -> None:
    told = cli_in()("dev", "reset")
    assert told.code == 2
    assert "--yes" in told.err
