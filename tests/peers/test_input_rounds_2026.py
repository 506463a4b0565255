"""Questions under MCP 2026-07-28 at servers that are not ours: fastmcp's tasks, and the official SDK's own rounds."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.tests.fleet.conftest import Fleet

HERE = Path(__file__).parent
UPDATE = "tasks/update"


@dataclass(frozen=True)
class Asking:
    """The server's URL, and what it was asked."""

    url: str
    log: Path

    def heard(self, method: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line["params"] for line in lines if line["on"] == method]


@contextmanager
def asking(kind: str, folder: Path) -> Iterator[Asking]:
    log = folder / f"{kind}.log"
    log.touch()
    server = subprocess.Popen(
        [sys.executable, "-P", HERE / "asking_servers.py", kind, log],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield Asking(f"http://127.0.0.1:{int(server.stdout.readline())}/mcp", log)
    finally:
        server.kill()
        server.communicate()


def settled(fleet: Fleet, node: str) -> Any:
    fleet.until("the receipt is there", lambda: fleet.client.receipt(node) is not None, 40)
    receipt = fleet.client.receipt(node)
    assert receipt is not None
    assert (receipt.outcome, receipt.unanswered_rounds, receipt.problems()) == ("succeeded", 0, [])
    return receipt.result


def test_questions_in_a_task_and_before_one_are_answered_by_processes_that_never_saw_them(
    fleet: Fleet, tmp_path: Path
) -> None:
    """One worker hears both questions and is killed; a person answers from another process; a third sends.

    fastmcp 4.1.4 asks in a task: the key alone carries the answer. mcp 2.3 answers the call itself with a question and
    a sealed state: the next leg is the same call under the same key, with the answer and the state beside it, and only
    then there is a task.
    """
    with asking("fastmcp", tmp_path) as tasks, asking("sdk", tmp_path) as rounds:
        settings = "protocol: mcp-2026-07-28, qps: 50, burst: 20, poll: {min_s: 0.2}"
        fleet.aim(f"tasks: {{url: '{tasks.url}', {settings}}}\nrounds: {{url: '{rounds.url}', {settings}}}")
        fleet.environ["COUNTERFOIL_POLL_LEASE_S"] = "5"
        for target in ("tasks", "rounds"):
            fleet.announce(target)
            fleet.client.submit(target, "order", {"what": "tea"}, call_node_id=target)
        first = fleet.start(solo=True)
        fleet.until("both questions wait", lambda: fleet.states() == {"INPUT_REQUIRED": 2}, 40)
        first.kill()
        assert fleet.client.get("tasks").task_id is not None
        assert fleet.client.get("rounds").task_id is None
        fleet.say("inputs", "answer", "tasks", '{"size": "large"}', "--actor", "ann")
        fleet.say("inputs", "answer", "rounds", '{"size": "small"}', "--actor", "ann")
        fleet.start(solo=True)
        assert settled(fleet, "tasks") == {"result": {"ordered": "tea, large"}}
        assert settled(fleet, "rounds") == {"ordered": "tea, small", "state": "for tea"}

    (call,), ((reply,),) = tasks.heard("tools/call"), [one["inputResponses"].values() for one in tasks.heard(UPDATE)]
    assert (call["arguments"], reply) == ({"what": "tea"}, {"action": "accept", "content": {"size": "large"}})
    leg, next_leg = rounds.heard("tools/call")
    keys = [one["_meta"]["dev.counterfoil/submission-key"] for one in (leg, next_leg)]
    assert keys == [str(fleet.client.get("rounds").submission_key)] * 2
    assert leg["arguments"] == next_leg["arguments"] == {"what": "tea"}
    assert next_leg["inputResponses"] == {"size": {"action": "accept", "content": {"size": "small"}}}
    assert "for tea" not in next_leg["requestState"]
    assert fleet.client.get("rounds").attempt == 1
