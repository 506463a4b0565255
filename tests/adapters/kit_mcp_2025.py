"""Answers of an MCP 2025-11-25 server with tasks, and how the adapter reads them."""

from counterfoil.adapters import mcp_2025_11_25_answers as answers
from counterfoil.adapters.contract import RemoteTask, Reply
from counterfoil.adapters.mcp_2025_11_25 import PROFILE
from counterfoil.adapters.mcp_session import Session
from counterfoil.adapters.outcomes import (
    CancelOutcome,
    Observation,
    SubmitOutcome,
    TaskStarted,
)

from .kit_mcp import CALL, ENDPOINT, TASK

SESSION = Session("2025-11-25", "s-1")
STATELESS = Session("2025-11-25")
TASK_2025 = {
    "taskId": "t-1",
    "status": "working",
    "createdAt": "2026-11-29T10:00:00Z",
    "lastUpdatedAt": "2026-11-29T10:00:00Z",
    "ttl": 3600000,
    "pollInterval": 2000,
}
CREATED = {"task": TASK_2025}
STARTED = TaskStarted("t-1", "working", "2026-11-29T10:00:00Z", 3600000, 2000)
RELATED = {"io.modelcontextprotocol/related-task": {"taskId": "t-1"}}


def submit(reply: Reply) -> SubmitOutcome:
    return answers.read_submit(PROFILE, ENDPOINT, CALL, reply)


def poll(reply: Reply, session: Session = SESSION) -> Observation:
    return answers.read_poll(ENDPOINT, TASK, session, reply)


def fetch(reply: Reply, terminal: str | None) -> Observation:
    task = RemoteTask(TASK.task_id, request_id=TASK.request_id, terminal=terminal)
    return answers.read_fetch(ENDPOINT, task, SESSION, reply)


def cancel(reply: Reply) -> CancelOutcome:
    return answers.read_cancel(PROFILE, ENDPOINT, TASK, reply)
