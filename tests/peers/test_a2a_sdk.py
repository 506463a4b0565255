"""The reference SDK's server (a2a-sdk, A2A 1.0 over JSON-RPC) through the whole loop."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil.ledger.states import Lane
from counterfoil.workers.desk import Desk

from .kit_loop import PATIENCE_S, Loop, Server, serving


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Server]:
    with serving("a2a_sdk_server.py", tmp_path) as server:
        yield server


@pytest.fixture
def loop(agent: Server, database: str) -> Iterator[Loop]:
    with Loop(
        database,
        url=f"{agent.url}/agent",
        protocol="a2a-1.0",
        input_watch_s=0.2,
        lookup={"tool": "ListTasks"},
    ) as made:
        yield made


def test_check_names_its_skills_and_how_each_is_cancelled(agent: Server) -> None:
    command = [sys.executable, "-P", "-m", "counterfoil", "check", f"{agent.url}/agent", "--protocol", "a2a-1.0"]
    told = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=30, check=True)
    tools = json.loads(told.stdout)["tools"]
    assert [tool["name"] for tool in tools] == ["report", "ask"]
    assert "the status is read until it is over" in tools[0]["words"]["cancel"]


def test_a_task_is_submitted_read_and_its_artifacts_are_the_result(loop: Loop, agent: Server) -> None:
    loop.submit("report", {"text": "October"})
    loop.until("it works", lambda: loop.client.get("node").server_status == "working")
    agent.release()
    receipt = loop.client.wait("node", timeout_s=PATIENCE_S)
    assert (receipt.outcome, receipt.protocol) == ("succeeded", "a2a-1.0")
    (artifact,) = receipt.result
    assert (artifact["name"], artifact["parts"]) == ("report", [{"text": "made of October"}])
    assert agent.effects() == ["done October"]


def test_a_person_answers_what_the_agent_asks_and_it_goes_on(loop: Loop, agent: Server) -> None:
    loop.submit("ask", {"text": "October"})
    loop.until("a person is asked", lambda: loop.client.get("node").state == "INPUT_REQUIRED")
    desk = Desk(loop.database, loop.targets)
    (asked,) = desk.inputs()
    assert asked.message == "Which paper?"
    desk.answer(asked.operation_id, asked.number, "accept", {"text": "A4"}, actor="alice")
    desk.close()
    loop.kick(Lane.ANSWER)
    receipt = loop.client.wait("node", timeout_s=PATIENCE_S)
    assert (receipt.outcome, receipt.unanswered_rounds) == ("succeeded", 0)
    assert receipt.result[0]["parts"] == [{"text": "made of A4"}]
    assert agent.effects() == ["done A4"]


def test_a_cancel_ends_the_task_and_a_reading_says_so(loop: Loop, agent: Server) -> None:
    loop.submit("report", {"text": "October"})
    loop.until("it works", lambda: loop.client.get("node").server_status == "working")
    loop.client.cancel("node")
    loop.kick(Lane.CANCEL)
    receipt = loop.client.wait("node", timeout_s=PATIENCE_S)
    assert receipt.outcome == "cancelled"
    assert agent.effects() == ["cancelled"]
