"""submit, get, list, receipt, ready: what scripts get, on a fleet that works."""

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import make_url

from counterfoil.console.devstack import DevStack

from .conftest import Ended, Run, Served

REPORT = '{"month": "2026-10", "run": "r"}'


@pytest.fixture
def call(run: Run, namespace: str) -> Callable[..., Ended]:
    """Submit in the test's namespace and wait."""

    def submit(tool: str, arguments: str, call_node: str, *more: str) -> Ended:
        return run("submit", "reports", tool, arguments, "--call-node", call_node, "-n", namespace, "--wait", *more)

    return submit


def lines(told: Ended) -> list[dict[str, Any]]:
    return [json.loads(line) for line in told.out.splitlines()]


def test_a_call_that_succeeds_prints_its_receipt_and_exits_0(call: Callable[..., Ended]) -> None:
    told = call("generate_report", REPORT, "run-42/step-3", "-o", "json")
    (receipt,) = lines(told)
    assert told.code == 0
    assert (receipt["outcome"], receipt["result"]) == ("succeeded", {"month": "2026-10", "rows": 3})
    assert receipt["result_trust"] == "untrusted_tool_output"


def test_a_tool_that_fails_exits_4_and_its_words_are_in_the_receipt(call: Callable[..., Ended]) -> None:
    told = call("fail_report", '{"run": "r"}', "n")
    assert told.code == 4
    assert "E_TOOL_ERROR" in told.out
    assert "the ledger of that month is closed" in told.out


def test_a_wait_that_ends_early_exits_7_and_changes_nothing(
    call: Callable[..., Ended], run: Run, namespace: str
) -> None:
    told = call("slow_report", '{"pages": 20, "run": "r"}', "n", "--timeout", "0.1")
    assert (told.code, told.out) == (7, "")
    assert "E_STILL_RUNNING: " in told.err
    assert run("receipt", "n", "-n", namespace).code == 7
    assert call("slow_report", '{"pages": 20, "run": "r"}', "n").code == 0


def test_a_repeat_is_the_same_operation_and_the_server_starts_it_once(
    run: Run, call: Callable[..., Ended], served: Served, namespace: str
) -> None:
    arguments = json.dumps({"month": "2026-10", "run": namespace})
    submit = ("submit", "reports", "generate_report", arguments, "--call-node", "n", "-n", namespace, "-o", "json")
    first, second = (lines(run(*submit))[0] for _ in range(2))
    assert first["id"] == second["id"]
    assert call("generate_report", arguments, "n").code == 0
    assert served.book.read_text().count(f'"run": "{namespace}"') == 1


def test_arguments_come_from_stdin_where_a_dash_stands(run: Run, namespace: str) -> None:
    told = run(
        *("submit", "reports", "generate_report", "-", "--call-node", "n", "-n", namespace, "--wait"),
        stdin=REPORT.encode(),
    )
    assert told.code == 0


def test_get_shows_one_operation_as_json_or_as_facts(call: Callable[..., Ended], run: Run, namespace: str) -> None:
    call("generate_report", REPORT, "n")
    (operation,) = lines(run("get", "n", "-n", namespace, "-o", "json"))
    assert operation["format"] == "toolOperation.v1"
    assert (operation["state"], operation["outcome"], operation["cases"]) == ("ACCEPTED", "succeeded", [])
    facts = run("get", "n", "-n", namespace).out
    assert operation["task_id"] in facts
    assert operation["submission_key"] in facts


def test_list_filters_and_prints_one_object_a_line(call: Callable[..., Ended], run: Run, namespace: str) -> None:
    call("generate_report", REPORT, "first")
    call("fail_report", '{"run": "r"}', "second")
    listed = ("list", "-n", namespace, "-o", "json")
    assert [line["call_node_id"] for line in lines(run(*listed))] == ["second", "first"]
    assert [line["call_node_id"] for line in lines(run(*listed, "--limit", "1"))] == ["second"]
    assert len(lines(run(*listed, "--state", "accepted"))) == 2
    assert lines(run(*listed, "--state", "WORKING")) == []
    assert lines(run(*listed, "--target", "elsewhere")) == []
    assert {line["namespace"] for line in lines(run("list", "-A", "-o", "json"))} >= {namespace}


def test_a_table_in_a_pipe_cuts_nothing(call: Callable[..., Ended], run: Run, namespace: str) -> None:
    long_node = "run-" + "4" * 200
    call("generate_report", REPORT, long_node)
    told = run("list", "-n", namespace)
    assert any(line.startswith(long_node) for line in told.out.splitlines())


def test_a_receipt_that_is_sound_verifies(call: Callable[..., Ended], run: Run, namespace: str) -> None:
    call("generate_report", REPORT, "n")
    told = run("receipt", "n", "-n", namespace, "--verify", "-o", "json")
    assert (told.code, lines(told)[0]["problems"]) == (0, [])
    assert "sound" in told.err


def test_a_receipt_that_somebody_changed_in_the_database_does_not_verify(
    call: Callable[..., Ended], run: Run, served: Served, database_stack: DevStack, namespace: str
) -> None:
    call("fail_report", '{"run": "r"}', "n")
    operator = make_url(database_stack.superuser_url or served.database_url)
    url = operator.set(drivername="postgresql", database=make_url(served.database_url).database)
    with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
        # What only the tables' owner or a superuser can do: in one transaction, so that other tests see the trigger on.
        connection.execute("ALTER TABLE counterfoil.terminal_receipt DISABLE TRIGGER USER")
        connection.execute(
            "UPDATE counterfoil.terminal_receipt SET outcome = 'succeeded', error_code = NULL WHERE namespace = %s",
            (namespace,),
        )
        connection.execute("ALTER TABLE counterfoil.terminal_receipt ENABLE TRIGGER USER")
    told = run("receipt", "n", "-n", namespace, "--verify")
    assert told.code == 1
    assert "NOT SOUND: the digest does not match the receipt's fields" in told.err


def test_ready_rows_stay_until_they_are_acknowledged(call: Callable[..., Ended], run: Run, namespace: str) -> None:
    call("generate_report", REPORT, "n")
    ready = ("ready", "-n", namespace, "-o", "json")
    looked, taken = lines(run(*ready)), lines(run(*ready, "--ack"))
    assert [row["call_node_id"] for row in looked] == ["n"]
    assert [row["id"] for row in taken] == [row["id"] for row in looked]
    assert lines(run(*ready)) == []
    assert "nothing is ready" in run("ready", "-n", namespace).err


def test_the_schema_of_a_fresh_database_is_made_and_then_checked(
    cli_in: Callable[..., Run], empty_database: str
) -> None:
    run = cli_in(DATABASE_URL=empty_database)
    assert run("db", "check").code == 1
    assert run("db", "upgrade").code == 0
    assert run("db", "check").code == 0
