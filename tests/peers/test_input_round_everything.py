"""Questions of the npm reference server (MCP 2025-11-25), which asks on a stream, once, in a session."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from cryptography.fernet import Fernet

from counterfoil.ledger import sessions
from counterfoil.tests.fleet.conftest import Fleet
from counterfoil.tests.peers.test_server_everything import TOOL, free_port, script

__all__ = ["script"]

HASTY = Path(__file__).with_name("hasty_timers.cjs")


@dataclass(frozen=True)
class Everything:
    """The running server and what it writes to its stderr."""

    url: str
    log: Path

    def tasks(self, session: str) -> list[str]:
        """The server's own list of a session's tasks."""
        request = {"jsonrpc": "2.0", "id": 1, "method": "tasks/list"}
        headers = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        headers["accept"] = "application/json, text/event-stream"
        said = httpx.post(self.url, json=request, headers=headers, timeout=20, trust_env=False).text
        (data,) = (line.removeprefix("data: ") for line in said.splitlines() if line.startswith("data: {"))
        return [task["taskId"] for task in json.loads(data)["result"]["tasks"]]


@pytest.fixture
def everything(request: pytest.FixtureRequest, script: Path, tmp_path: Path) -> Iterator[Everything]:
    """With options of node's as the parameter, where there is one."""
    port, log = free_port(), tmp_path / "everything.log"
    with log.open("w") as stderr:
        server = subprocess.Popen(
            ["node", *getattr(request, "param", ()), script, "streamableHttp"],
            env=os.environ | {"PORT": str(port)},
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
    try:
        yield Everything(f"http://127.0.0.1:{port}/mcp", log)
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def asking(fleet: Fleet, everything: Everything) -> Fleet:
    """A fleet at this server, and an ambiguous query handed in as call node `tea`."""
    fleet.until("it listens", lambda: "listening" in everything.log.read_text(), 30)
    fleet.aim(f"everything: {{url: '{everything.url}', protocol: mcp-2025-11-25, qps: 50, burst: 20}}")
    fleet.environ["COUNTERFOIL_KEYS"] = Fernet.generate_key().decode()
    fleet.environ["COUNTERFOIL_POLL_LEASE_S"] = "5"
    fleet.announce("everything", "mcp-2025-11-25")
    fleet.client.submit("everything", TOOL, {"topic": "tea", "ambiguous": True}, call_node_id="tea")
    return fleet


def asked(fleet: Fleet) -> None:
    fleet.until("the question waits", lambda: fleet.client.get("tea").input_round == 1, 30)


def research(fleet: Fleet) -> tuple[str, int]:
    """The title of the report on the receipt, and how many questions went without our answer."""
    fleet.until("the receipt is there", lambda: fleet.client.receipt("tea") is not None, 30)
    receipt = fleet.client.receipt("tea")
    assert receipt is not None
    assert (receipt.outcome, receipt.problems()) == ("succeeded", [])
    return receipt.result["content"][0]["text"].splitlines()[0], receipt.unanswered_rounds


def test_a_question_read_by_one_process_is_answered_from_another_and_sent_by_a_third(
    asking: Fleet, everything: Everything
) -> None:
    """The question came on a stream that is closed, to a worker that is dead; the answer goes into the same session
    all the same, and the task ends with it. The server made one task."""
    first = asking.start(solo=True)
    asked(asking)
    first.kill()
    (question,) = [json.loads(line) for line in asking.say("inputs", "list", "-o", "json").splitlines()]
    assert (question["tool"], question["number"]) == (TOOL, 1)
    assert "interpretation" in question["request_schema"]["properties"]
    wrong = asking.run("inputs", "answer", "tea", '{"interpretation": "astrology"}', "--actor", "ann")
    assert (wrong.returncode, wrong.stderr.partition(":")[0]) == (2, "E_INPUT_SCHEMA")
    asking.say("inputs", "answer", "tea", '{"interpretation": "historical"}', "--actor", "ann")
    asking.start(solo=True)
    assert research(asking) == ("# Research Report: tea (historical)", 0)
    assert everything.tasks(session_of(asking)) == [asking.client.get("tea").task_id]


def session_of(fleet: Fleet) -> str:
    """The id of the one session that the fleet has there."""
    database = fleet.client._database
    with database.begin() as connection:
        ids = connection.exec_driver_sql("SELECT id FROM counterfoil.remote_session").scalars().all()
    (kept,) = sessions.read_sessions(database, ids)
    opened: dict[str, str] = json.loads(Fernet(fleet.environ["COUNTERFOIL_KEYS"]).decrypt(kept.sealed))
    return opened["id"]


@pytest.mark.parametrize("everything", [("--require", HASTY)], indirect=True, ids=["hasty"])
def test_a_reply_after_the_server_went_on_by_itself_is_no_answer_and_the_receipt_says_so(
    asking: Fleet, everything: Everything
) -> None:
    """The server waits for an answer for as long as it likes and tells nobody; then it goes on with a default of its
    own, and still says HTTP 202 to whoever comes late. We may not take that for an answer that was used."""
    asking.start(solo=True)
    asked(asking)
    asking.until("the server gave up", lambda: "Elicitation failed" in everything.log.read_text(), 30)
    asking.say("inputs", "answer", "tea", '{"interpretation": "historical"}', "--actor", "ann")
    assert research(asking) == ("# Research Report: tea (technical (default - elicitation unavailable))", 1)
