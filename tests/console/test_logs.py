"""Logs: one line a record, as text or as JSON, and never a secret."""

import json
import logging
import sys

import pytest

from counterfoil.console.logs import Hider, JsonLines, TextLines

ENVIRON = {
    "REPORTS_TOKEN": "s3cr3t-of-reports",
    "COUNTERFOIL_KEYS": "first-key=,second-key=",
    "COUNTERFOIL_PRODUCERS_FILE": "/etc/producers.yaml",
    "HOOK_SECRET_FILE": "/run/secrets/hook",
    "LANG": "C.UTF-8",
}
HIDE = Hider(ENVIRON, ("postgresql+psycopg://me:p%40ss-word@db/x", None))


def record(message: str, *arguments: object, **more: object) -> logging.LogRecord:
    made = logging.LogRecord("counterfoil.workers.drive", logging.WARNING, "x.py", 1, message, arguments, None)
    made.__dict__.update(more)
    return made


def lines(message: str, *arguments: object, **more: object) -> tuple[str, dict[str, object]]:
    made = record(message, *arguments, **more)
    return TextLines(HIDE).format(made), json.loads(JsonLines(HIDE).format(made))


@pytest.mark.parametrize(
    "leak",
    [
        "GET https://user:hunter2@host/x failed",
        "header Authorization: Bearer hunter2hunter2",
        "whsec_hunter2hunter2",
        "{'password': 'hunter2'}",
        "api_key=hunter2 was refused",
        "the server said s3cr3t-of-reports",
        "keys first-key= and second-key=",
        "connect to p%40ss-word or p@ss-word",
    ],
)
def test_no_secret_is_logged_whatever_a_library_says(leak: str) -> None:
    text, told = lines("it broke: %s", leak)
    secrets = ("hunter2", "s3cr3t", "first-key", "second-key", "ss-word")
    assert not [secret for secret in secrets if secret in text or secret in str(told["message"])]
    assert "***" in text


def test_what_is_no_secret_is_left_as_it_is() -> None:
    text, told = lines("the file /etc/producers.yaml and /run/secrets/hook; E_TARGETS: token bucket of 3; C.UTF-8")
    assert (
        told["message"] == "the file /etc/producers.yaml and /run/secrets/hook; E_TARGETS: token bucket of 3; C.UTF-8"
    )
    assert "***" not in text


def test_a_secret_in_a_traceback_is_hidden_too() -> None:
    made = record("the transport failed")
    try:
        int("https://user:hunter2@host")
    except ValueError:
        made.exc_info = sys.exc_info()
    told = json.loads(JsonLines(HIDE).format(made))
    assert told["error"] == "ValueError"
    assert "hunter2" not in told["traceback"] + TextLines(HIDE).format(made)


def test_a_json_line_has_its_fields_and_only_those_that_are_meant_to_be_there() -> None:
    _, told = lines("E_ORPHANS: nobody comes for %s", "poll", arguments={"a": 1})
    assert {"at", "process"} <= told.keys()
    assert {name: told[name] for name in sorted(told.keys() - {"at", "process"})} == {
        "code": "E_ORPHANS",
        "level": "WARNING",
        "logger": "counterfoil.workers.drive",
        "message": "E_ORPHANS: nobody comes for poll",
    }
    assert str(told["at"]).endswith("Z")


def test_nobody_else_writes_a_line_into_our_log() -> None:
    text, _ = lines("a server said %s", "x\r\n2026-11-30 00:00:00,000 ERROR 1 counterfoil: all is lost")
    assert text.count("\n") == 0
    assert "\\r\\n2026-11-30" in text
