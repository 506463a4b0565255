"""Answers of an MCP server, and how the adapters read them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from counterfoil.adapters import mcp_2026_07_28_answers as answers
from counterfoil.adapters.contract import (
    Answered,
    Call,
    Endpoint,
    Exchange,
    RemoteTask,
    Reply,
    Request,
)
from counterfoil.adapters.mcp_2026_07_28 import PROFILE
from counterfoil.adapters.outcomes import (
    Observation,
    ReplyOutcome,
    SubmitOutcome,
    TaskStarted,
)

T = TypeVar("T")

ENDPOINT = Endpoint(
    "reports", "http://127.0.0.1:1/mcp", max_response_bytes=2000, not_processed_statuses=frozenset({503})
)
CALL = Call("generate", b"{}", "key-1", 60.0, request_id="r-1")
TASK = RemoteTask("t-1", request_id="r-1")
SSE = {"content-type": "text/event-stream"}
TASK_RESULT = {
    "resultType": "task",
    "taskId": "t-1",
    "status": "working",
    "createdAt": "2026-11-29T10:00:00Z",
    "lastUpdatedAt": "2026-11-29T10:00:00Z",
    "ttlMs": 3600000,
    "pollIntervalMs": 2000,
}
STARTED = TaskStarted("t-1", "working", "2026-11-29T10:00:00Z", 3600000, 2000)


def said(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "r-1"} | members).encode()


def ok(**result: object) -> Answered:
    return Answered(200, {"content-type": "application/json"}, said(result=result))


def failed(code: int, status: int = 200, **headers: str) -> Answered:
    return Answered(status, headers, said(error={"code": code, "message": "no"}))


def key_reused(code: int) -> Answered:
    """The server knows the submission key with another request."""
    data = {"code": "E_KEY_REUSED_DIFFERENT_REQUEST"}
    return Answered(200, {}, said(error={"code": code, "message": "no", "data": data}))


def submit(reply: Reply) -> SubmitOutcome:
    return answers.read_submit(PROFILE, ENDPOINT, CALL, reply)


def poll(reply: Reply) -> Observation:
    return answers.read_poll(ENDPOINT, TASK, reply)


def cancel(reply: Reply) -> ReplyOutcome:
    return answers.read_acknowledgement(PROFILE, ENDPOINT, TASK, reply)


@dataclass(frozen=True)
class Says:
    """A JSON-RPC response, given under the id of the request that it answers."""

    message: Mapping[str, object]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def to(self, request: Request) -> Answered:
        response = {"jsonrpc": "2.0", "id": json.loads(request.body or b"{}").get("id")} | dict(self.message)
        return Answered(self.status, self.headers, json.dumps(response).encode())


def play(exchange: Exchange[T], replies: Iterable[Reply | Says | Mapping[str, object]]) -> tuple[T, list[Request]]:
    """Drive an exchange: a mapping is a response (see `Says`), anything else the reply itself."""
    sent: list[Request] = []
    answers_ = iter(replies)
    try:
        sent.append(next(exchange))
        while True:
            answer = next(answers_)
            says = Says(answer) if isinstance(answer, Mapping) else answer
            sent.append(exchange.send(says.to(sent[-1]) if isinstance(says, Says) else says))
    except StopIteration as stop:
        return stop.value, sent


def error(code: int, data: object = None) -> dict[str, object]:
    return {"error": {"code": code, "message": "no", "data": data}}
