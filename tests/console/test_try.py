"""`counterfoil try` where a call goes wrong: servers that nobody ships."""

import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.fernet import Fernet

from .conftest import Run
from .mcp_server import Answer, Respond, mcp_2025, result, serving, tool

BOUND = ("--sync-bound-s", "20")


def answering(call: Respond) -> Respond:
    """A server of one blocking tool, whose calls are answered by `call`."""
    rest = mcp_2025(tool("add"))
    return lambda method, message: call(method, message) if method == "tools/call" else rest(method, message)


@pytest.fixture
def run(cli_in: Callable[..., Run], database: str) -> Run:
    return cli_in(DATABASE_URL=database, KEYS=Fernet.generate_key().decode())


def test_a_call_whose_answer_is_lost_asks_a_person_and_is_not_made_again(run: Run) -> None:
    with serving(answering(lambda _method, _message: (502, {}, b""))) as server:
        told = run("try", server.url, "add", "{}", *BOUND)
    assert told.code == 6
    assert told.err.count("E_SUBMISSION_UNKNOWN: call node") == 1
    assert "search for  submission key" in told.out
    assert server.asked.count("tools/call") == 1


def test_ctrl_c_ends_the_watching_and_brings_home_what_is_out(
    start: Callable[..., subprocess.Popen[str]], cli_in: Callable[..., Run], database: str
) -> None:
    asked, answer = threading.Event(), threading.Event()

    def slow(_method: str, message: dict[str, Any]) -> Answer:
        asked.set()
        assert answer.wait(30)
        return result(message, {"content": [{"type": "text", "text": "late"}]})

    with serving(answering(slow)) as server:
        settings = {"DATABASE_URL": database, "KEYS": Fernet.generate_key().decode()}
        process = start("try", server.url, "add", "{}", *BOUND, **settings)
        assert asked.wait(30)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert any("Ctrl-C again stops at once" in line for line in process.stderr)
        answer.set()
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert server.asked.count("tools/call") == 1
    listed = cli_in(DATABASE_URL=database)("list", "-n", "try", "-o", "json")
    assert '"outcome":"succeeded"' in listed.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["{"], "E_ARGUMENTS_INVALID"), (["{}", "--protocol", "mcp-2"], "E_TARGETS"), (["[1]"], "E_ARGUMENTS_INVALID")],
)
def test_bad_input_is_refused_before_anything_is_asked_or_started(run: Run, arguments: list[str], code: str) -> None:
    with serving(mcp_2025(tool("add"))) as server:
        told = run("try", server.url, "add", *arguments)
    assert (told.code, told.err.partition(":")[0], server.asked) == (2, code, [])
