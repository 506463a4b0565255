"""An A2A adapter and an agent that it talks to, exchange by exchange."""

from collections.abc import Callable
from typing import Any, TypeVar

from counterfoil.adapters.a2a import A2a10
from counterfoil.adapters.contract import (
    Call,
    Endpoint,
    Exchange,
    RemoteTask,
    Request,
)
from counterfoil.adapters.outcomes import TaskStarted

from .a2a_server import Agent

T = TypeVar("T")

URL = "http://127.0.0.1:1/agent"
KEY = "6f1c9a52-0000-8000-8000-000000000001"
ENDPOINT = Endpoint("reports", URL, deadline_s=7.0, max_response_bytes=8192)
CALL = Call("generate", b'{"data":{"month":"2026-10"}}', KEY, 60.0, request_id="send-token", lookup_tool="ListTasks")


def play(exchange: Exchange[T], answer: Callable[[Request], Any]) -> tuple[T, list[Request]]:
    """Let an exchange run against whoever answers requests."""
    sent: list[Request] = []
    try:
        sent.append(next(exchange))
        while True:
            sent.append(exchange.send(answer(sent[-1])))
    except StopIteration as stop:
        return stop.value, sent


def started(adapter: A2a10, agent: Agent) -> RemoteTask:
    outcome, _ = play(adapter.submit(ENDPOINT, CALL), agent.answer)
    assert isinstance(outcome, TaskStarted)
    return RemoteTask(outcome.task_id, KEY)
