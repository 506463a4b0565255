"""A2A 1.0 through the whole fleet loop: PostgreSQL, sockets, an agent that keeps its own count of what it ran."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from counterfoil.adapters.contract import Answered
from counterfoil.adapters.credentials import Credentials
from counterfoil.adapters.registry import adapter
from counterfoil.ledger.client import Client
from counterfoil.ledger.states import Lane
from counterfoil.workers.bucket import Limit, LocalBucket
from counterfoil.workers.desk import Desk
from counterfoil.workers.drive import Drive
from counterfoil.workers.hooks import Hook, HooksApp, Waker
from counterfoil.workers.jobs import Pace
from counterfoil.workers.target_entries import TargetEntry
from counterfoil.workers.targets import Target, Targets

from .a2a_server import LOST, Agent, Json, question, serving

PATIENCE_S = 20.0
LOOKUP = {"tool": "ListTasks"}


class Fleet:
    """One loop on one agent, whose target is read every 50 ms unless `changes` say otherwise."""

    def __init__(self, database: str, agent: Agent, **changes: Any) -> None:
        entry = TargetEntry.model_validate(
            {
                "url": agent.url,
                "protocol": "a2a-1.0",
                "poll": {"min_s": 0.05, "default_s": 0.05},
                "input_watch_s": 0.1,
                "send_by_s": 0.3,
                "settle_s": 0.05,
                "lookup": LOOKUP,
            }
            | changes
        )
        self.targets = Targets({"agent": Target("agent", adapter(entry.protocol).profile, entry)})
        self.agent = agent
        self.database = database
        self.client = Client(database)
        bucket = LocalBucket({"agent": Limit(qps=1000, burst=100)}, time.monotonic)
        self.drive = Drive(database, self.targets, bucket, pace=Pace(tick_s=0.1, self_tick_s=0.1), ended=lambda _: None)

    def submit(self, node: str) -> None:
        self.client.submit("agent", "generate", {"data": {"month": "2026-10"}}, call_node_id=node)
        self.drive.kick(Lane.SUBMIT, "agent")

    def until(self, claim: str, holds: Callable[[], Any]) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < until_s, f"never: {claim}"
            time.sleep(0.01)  # other threads have to get on: what is waited for shows in the database only

    def working(self, node: str) -> str:
        """The task of a call, once the ledger knows it."""
        self.until("the task is known", lambda: self.client.get(node).state == "WORKING")
        task_id = self.client.get(node).task_id
        assert task_id is not None
        return task_id


@pytest.fixture
def fleet(database: str) -> Iterator[Fleet]:
    with serving() as agent:
        made = Fleet(database, agent)
        made.drive.start()
        try:
            yield made
        finally:
            assert made.drive.stop(PATIENCE_S)
            made.client.close()


def test_the_artifacts_of_a_task_are_the_result_on_the_receipt(fleet: Fleet) -> None:
    fleet.submit("node")
    fleet.agent.complete(fleet.working("node"), {"pages": 3})
    receipt = fleet.client.wait("node", timeout_s=PATIENCE_S)
    assert receipt.outcome == "succeeded"
    assert receipt.result == [{"artifactId": "a-1", "name": "report", "parts": [{"data": {"pages": 3}}]}]
    assert len(fleet.agent.runs) == 1


def test_a_lost_submit_is_found_by_its_context_and_nothing_is_sent_again(fleet: Fleet) -> None:
    """The agent makes the task and closes the connection instead of answering."""

    def lost(asked: Json) -> Answered:
        del fleet.agent.rules["SendMessage"]
        fleet.agent._rpc(asked)
        return Answered(LOST)

    fleet.agent.rules["SendMessage"] = lost
    fleet.submit("node")
    fleet.agent.complete(fleet.working("node"), {"pages": 3})
    assert fleet.client.wait("node", timeout_s=PATIENCE_S).outcome == "succeeded"
    assert fleet.agent.runs == [str(fleet.client.get("node").submission_key)]
    assert fleet.agent.count("SendMessage") == 1
    assert fleet.agent.count("ListTasks") >= 1


def test_a_person_answers_a_task_that_waits_and_it_goes_on(fleet: Fleet) -> None:
    fleet.submit("node")
    task_id = fleet.working("node")
    fleet.agent.set(task_id, "INPUT_REQUIRED", question("Which paper?"))
    fleet.until("a person is asked", lambda: fleet.client.get("node").state == "INPUT_REQUIRED")
    desk = Desk(fleet.database, fleet.targets)
    (asked,) = desk.inputs()
    assert asked.message == "Which paper?"
    desk.answer(asked.operation_id, asked.number, "accept", {"text": "A4"}, actor="alice")
    desk.close()
    fleet.drive.kick(Lane.ANSWER, "agent")
    fleet.until("the reply arrived", lambda: fleet.agent.tasks[task_id]["history"][-1]["parts"] == [{"text": "A4"}])
    fleet.agent.complete(task_id, {"paper": "A4"})
    receipt = fleet.client.wait("node", timeout_s=PATIENCE_S)
    assert (receipt.outcome, receipt.unanswered_rounds) == ("succeeded", 0)
    assert fleet.agent.count("SendMessage") == 2


def test_a_cancel_is_over_when_a_reading_says_so_and_not_with_its_answer(fleet: Fleet) -> None:
    """The agent answers `canceled` and works on, as the reference server was seen to do: the answer ends nothing."""

    def says_so(asked: Json) -> Answered:
        task = fleet.agent.tasks[asked["params"]["id"]]
        return fleet.agent._of_task(asked, lambda _: task | {"status": {"state": "TASK_STATE_CANCELED"}})

    fleet.agent.rules["CancelTask"] = says_so
    fleet.submit("node")
    task_id = fleet.working("node")
    fleet.client.cancel("node")
    fleet.drive.kick(Lane.CANCEL, "agent")
    fleet.until("it was asked to cancel", lambda: fleet.agent.count("CancelTask"))
    read = fleet.agent.count("GetTask")
    fleet.until("it was read again", lambda: fleet.agent.count("GetTask") > read + 1)
    assert fleet.client.get("node").state == "CANCEL_REQUESTED"
    fleet.agent.set(task_id, "CANCELED")
    assert fleet.client.wait("node", timeout_s=PATIENCE_S).outcome == "cancelled"


def test_completed_without_an_artifact_is_no_success(fleet: Fleet) -> None:
    fleet.submit("node")
    fleet.agent.complete(fleet.working("node"))
    fleet.until("a person is asked", lambda: fleet.client.get("node").state == "FETCHING_RESULT")
    assert any(line.code == "E_RESULT_MISSING" for line in fleet.client.journal("node"))
    assert fleet.client.ready() == []


# -- pushes ------------------------------------------------------------------------------------------------------------


class Pushing:
    """The callbacks' door beside the fleet, and an agent that knocks at it. Tasks are read once a minute by
    themselves."""

    def __init__(self, fleet: Fleet) -> None:
        self.waker = Waker(fleet.database, fleet.targets)
        hook = Hook(("env:SECRET",), Limit(qps=1000, burst=1000))
        credentials = Credentials(time.monotonic, {"SECRET": "agents-secret"})
        self.app = HooksApp({"agent": hook}, fleet.targets, self.waker.wake, credentials, time.monotonic)

    def push(self, event: Json) -> None:
        """As an agent pushes it; answered 204 whatever it names."""
        told: list[Any] = []

        async def receive() -> Json:
            return {"type": "http.request", "body": json.dumps(event).encode()}

        async def send(message: Any) -> None:
            told.append(message)

        headers = [(b"x-a2a-notification-token", b"agents-secret"), (b"content-type", b"application/a2a+json")]
        scope = {"type": "http", "method": "POST", "path": "/hooks/agent", "headers": headers}
        asyncio.run(self.app(scope, receive, send))
        assert told[0]["status"] == 204


def moved(task_id: str, state: str) -> Json:
    return {"statusUpdate": {"taskId": task_id, "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}}}


@pytest.fixture
def slow(database: str) -> Iterator[tuple[Fleet, Pushing]]:
    with serving() as agent:
        fleet = Fleet(database, agent, poll={"min_s": 0.05, "default_s": 60.0}, audit_s=0.0)
        pushing = Pushing(fleet)
        fleet.drive.start()
        try:
            yield fleet, pushing
        finally:
            assert fleet.drive.stop(PATIENCE_S)
            pushing.waker.close()
            fleet.client.close()


def test_a_push_wakes_a_reading_that_is_a_minute_away_and_the_reading_decides(slow: tuple[Fleet, Pushing]) -> None:
    """First a lie: the task works on. Then the truth, twice, and once more after the end."""
    fleet, pushing = slow
    fleet.submit("node")
    task_id = fleet.working("node")
    pushing.push(moved(task_id, "COMPLETED"))
    fleet.until("it was read", lambda: fleet.agent.count("GetTask") >= 1)
    fleet.agent.complete(task_id, {"pages": 3})
    pushing.push(moved(task_id, "COMPLETED"))
    pushing.push({"task": fleet.agent.tasks[task_id]})
    receipt = fleet.client.wait("node", timeout_s=PATIENCE_S)
    assert receipt.outcome == "succeeded"
    pushing.push(moved(task_id, "FAILED"))
    assert fleet.client.receipt("node") == receipt


def test_a_push_before_the_answer_to_its_submit_changes_nothing(slow: tuple[Fleet, Pushing]) -> None:
    fleet, pushing = slow

    def pushed_first(asked: Json) -> Answered:
        answer = fleet.agent._rpc(asked)
        pushing.push(moved("task-1", "COMPLETED"))
        return answer

    fleet.agent.rules["SendMessage"] = pushed_first
    fleet.submit("node")
    assert fleet.working("node") == "task-1"
    assert fleet.agent.count("GetTask") == 0


def test_completed_pushed_after_a_won_cancel_opens_the_effects_case_and_leaves_the_receipt(
    slow: tuple[Fleet, Pushing],
) -> None:
    """The agent said `canceled`, to a reading too, and its work ran on."""
    fleet, pushing = slow
    fleet.submit("node")
    task_id = fleet.working("node")
    fleet.client.cancel("node")
    fleet.drive.kick(Lane.CANCEL, "agent")
    receipt = fleet.client.wait("node", timeout_s=PATIENCE_S)
    assert receipt.outcome == "cancelled"
    pushing.push(moved(task_id, "COMPLETED"))
    assert any(line.code == "E_LATE_COMPLETION_AFTER_CANCEL" for line in fleet.client.journal("node"))
    assert fleet.client.receipt("node") == receipt
