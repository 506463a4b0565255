"""watch: each change a line, and Ctrl-C ends the watching only."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Callable

import pytest

from .conftest import PROGRAM, Run, Served, environment_of

FOREVER = '{"pages": 100000, "run": "r"}'

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def submit(run: Run, namespace: str) -> Callable[[str, str], None]:
    def hand_in(tool: str, arguments: str) -> None:
        told = run("submit", "reports", tool, arguments, "--call-node", "n", "-n", namespace)
        assert told.code == 0, told.err

    return hand_in


def test_each_change_is_a_line_and_the_exit_code_is_the_outcomes(
    run: Run, submit: Callable[[str, str], None], namespace: str
) -> None:
    submit("fail_report", '{"run": "r"}')
    told = run("watch", "n", "-n", namespace)
    assert told.code == 4
    events = [line.split(maxsplit=1)[1] for line in told.out.splitlines()]
    assert events[0] == "opened SUBMITTING (door)"
    assert "moved SUBMITTING -> WORKING (submit)" in events
    assert "server says completed" in events
    assert any(event.startswith("accepted FETCHING_RESULT -> ACCEPTED") for event in events)
    assert told.err == ""


def test_as_json_each_change_is_one_object(run: Run, submit: Callable[[str, str], None], namespace: str) -> None:
    submit("generate_report", '{"month": "2026-10", "run": "r"}')
    told = run("watch", "n", "-n", namespace, "-o", "json")
    changes = [json.loads(line) for line in told.out.splitlines()]
    assert [change["seq"] for change in changes] == list(range(1, len(changes) + 1))
    assert (changes[0]["event"], changes[-1]["target"]) == ("opened", "ACCEPTED")
    assert told.code == 0


def test_a_timeout_ends_the_watching_with_7(run: Run, submit: Callable[[str, str], None], namespace: str) -> None:
    submit("slow_report", FOREVER)
    told = run("watch", "n", "-n", namespace, "--timeout", "0.1")
    assert (told.code, told.err.partition(":")[0]) == (7, "E_STILL_RUNNING")


@pytest.mark.parametrize("command", ["watch", "submit"])
def test_ctrl_c_stops_the_watching_and_the_operation_goes_on(
    run: Run, start: Start, served: Served, namespace: str, command: str
) -> None:
    submit = ("submit", "reports", "slow_report", FOREVER, "--call-node", "n", "-n", namespace)
    assert run(*submit).code == 0
    arguments = {"watch": ("watch", "n", "-n", namespace), "submit": (*submit, "--wait")}
    watcher = start(*arguments[command], DATABASE_URL=served.database_url)
    first = {"watch": watcher.stdout, "submit": watcher.stderr}[command]
    assert first is not None
    assert {"watch": "opened", "submit": "waiting"}[command] in first.readline()
    watcher.send_signal(signal.SIGINT)
    _, told = watcher.communicate(timeout=30)
    assert watcher.returncode == 130
    assert told.endswith("the operation goes on.\n")
    assert "Traceback" not in told
    operation = json.loads(run("get", "n", "-n", namespace, "-o", "json").out)
    assert (operation["outcome"], operation["cancel_generation"]) == (None, 0)


def test_on_a_terminal_a_last_line_shows_how_it_stands_and_ctrl_c_works(
    submit: Callable[[str, str], None], served: Served, namespace: str
) -> None:
    submit("slow_report", FOREVER)
    reader, terminal = pty.openpty()
    environment = environment_of(DATABASE_URL=served.database_url) | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(
        [*PROGRAM, "watch", "n", "-n", namespace],
        env=environment,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509 - it only calls the kernel
    ) as watcher:
        os.close(terminal)
        shown = read_until(reader, b"Ctrl-C stops watching only")
        os.write(reader, b"\x03")  # as a person does it: the terminal turns it into SIGINT
        shown += read_until(reader, b"goes on.")
        assert watcher.wait(timeout=30) == 130
    os.close(reader)
    assert b"opened SUBMITTING" in shown
    assert b"stopped watching; the operation goes on." in shown


def take_terminal() -> None:
    """Make the new session's stdin its controlling terminal."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def read_until(reader: int, wanted: bytes) -> bytes:
    shown = b""
    while wanted not in shown:
        shown += os.read(reader, 4096)
    return shown
