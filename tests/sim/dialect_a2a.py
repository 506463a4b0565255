"""The bytes of A2A 1.0 over JSON-RPC, as an agent speaks them. Written from the protocol, not from our adapter.

A messageId is no key to it: the same message sent twice makes two tasks. It keeps the contextId that a client chose."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from counterfoil.adapters.contract import Request

from .remote import Server, Task
from .spoken import (
    KEY,
    OUTPUT_SCHEMA,
    TOOL,
    Asked,
    Said,
    Told,
    answer,
    known,
    looked_up,
    odd,
    rows_of,
    say,
    status_told,
)

LISTED = "ListTasks"

_DATA: dict[str, Any] = {"properties": {"data": OUTPUT_SCHEMA}}
_RESULT = {"type": "array", "items": {"properties": _DATA["properties"] | {"parts": {"items": _DATA}}}}
ENTRY: dict[str, Any] = {"tools": {TOOL: {"output_schema": _RESULT}}}
"""What the targets file says of an agent: its artifacts, or the parts of a message, hold rows."""

_CALLED = {"GetTask": "tasks/get", "CancelTask": "tasks/cancel", LISTED: "lookup"}
_STATES = {"cancelled": "canceled"}


def read(request: Request) -> Asked:
    """The card, or a JSON-RPC message."""
    if request.method == "GET":
        return Asked("server/discover", params={"origin": "{0.scheme}://{0.netloc}".format(urlsplit(request.url))})
    message: dict[str, Any] = json.loads(request.body)
    method, params, id_ = message["method"], message["params"], message["id"]
    if method == "SendMessage":
        said = params["message"]
        if "taskId" in said:
            return Asked("tasks/update", task=said["taskId"], id=id_, params=said)
        arguments = json.dumps(said["parts"][0]["data"], sort_keys=True)
        return Asked("tools/call", said["metadata"][KEY], arguments=arguments, id=id_, params=params)
    return Asked(_CALLED[method], params.get("contextId"), params.get("id"), id=id_, params=params)


def hear(server: Server, now_s: float, asked: Asked, fault: str) -> Said:
    """Its answer."""
    match asked.method:
        case "server/discover":
            return answer(_CARD)
        case "tools/call":
            return _send(server, now_s, asked, fault)
        case "lookup":
            found = [_task(task, now_s, "") | {"contextId": task.key} for task in looked_up(server, asked.key)]
            return _result(asked, {"tasks": found, "nextPageToken": "", "totalSize": len(found)})
    task = known(server, now_s, asked.task, fault)
    if task is None:
        return _error(asked, -32001)
    if asked.method == "tasks/cancel":
        if task.status(now_s) in ("completed", "failed", "cancelled"):
            return _error(asked, -32002)
        server.cancel(now_s, task, at_once=False)
        return _result(asked, _task(task, now_s, ""))
    if asked.method == "tasks/update":
        task.heard.append(asked.params["messageId"])
        content = {"action": "accept", "content": asked.params["parts"][0]}
        server.reply(now_s, task, task.question, json.dumps(content, sort_keys=True))
        return _result(asked, {"task": _task(task, now_s, "")})
    told = _task(task, now_s, fault)
    if asked.params.get("historyLength"):
        told["history"] = [{"messageId": id_, "role": "ROLE_USER", "parts": []} for id_ in task.heard]
    status = status_told(task, now_s, fault)
    about = Told(told["id"], status, asks=status == "input_required")
    return replace(say(server, now_s, _result(asked, told), task), told=about)


def _send(server: Server, now_s: float, asked: Asked, fault: str) -> Said:
    task = server.create(now_s, asked.key or "", asked.arguments, reuse=fault == "reused id")
    assert not isinstance(task, str), "an agent makes a task before it asks"
    if task is None:
        return _error(asked, -32601)
    if task.course.submit_error or fault == "internal error":
        return _error(asked, task.course.submit_error or -32603)
    if task.course.at_once:
        message = {"messageId": f"said-{task.number}", "role": "ROLE_AGENT", "parts": [{"data": rows_of(task)}]}
        return say(server, now_s, _result(asked, {"message": message}), task)
    return say(server, now_s, _result(asked, {"task": _task(task, now_s, "")}), task)


def _task(task: Task, now_s: float, fault: str) -> dict[str, Any]:
    if fault == "other task":
        parts = [{"data": {"rows": 999}}]
        return {"id": "somebody-else", "status": _state("completed"), "artifacts": [{"parts": parts}]}
    status = status_told(task, now_s, fault)
    if status == "completed" and task.course.result == "error":
        status = "failed"
    told: dict[str, Any] = {"id": task.id, "contextId": task.key, "status": _state(status, odd(task, fault))}
    if status == "input_required":
        asked = {"messageId": f"question-{task.question}", "role": "ROLE_AGENT", "parts": [{"text": "go on?"}]}
        told["status"]["message"] = asked
    rows = rows_of(task)
    if status == "completed" and rows is not None:
        told["artifacts"] = [{"artifactId": "rows", "parts": [{"data": rows}]}]
    return told


def _state(status: str, text: str = "") -> dict[str, Any]:
    state = {"state": f"TASK_STATE_{_STATES.get(status, status).upper()}"}
    return state | ({"message": {"parts": [{"text": text}]}} if text else {})  # type: ignore[dict-item]


def _result(asked: Asked, result: Any) -> Said:
    return answer({"jsonrpc": "2.0", "id": asked.id, "result": result})


def _error(asked: Asked, code: int) -> Said:
    return answer({"jsonrpc": "2.0", "id": asked.id, "error": {"code": code, "message": "no"}})


_CARD = {
    "name": "simulated",
    "version": "1",
    "supportedInterfaces": [{"url": "http://127.0.0.1:9/mcp", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    "capabilities": {},
    "skills": [{"id": TOOL, "name": "work", "description": "it works", "tags": []}],
}
