"""The bytes of two makes of plain HTTP APIs, as their servers speak them: operations of AIP-151, and jobs behind HTTP
202. Written from AIP-151 and RFC 9110, not from our adapters. Neither asks anybody anything."""

import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from counterfoil.adapters.contract import Request

from .remote import Server, Task
from .spoken import OUTPUT_SCHEMA, TOOL, Asked, Said, Told, answer, known, looked_up, odd, rows_of, say, status_told

_TYPED: dict[str, Any] = {"tools": {TOOL: {"output_schema": OUTPUT_SCHEMA}}}

AIP_ROUTES = {"submit": "POST /v1/work:run"}
AIP_LOOKUP = {"lookup": "GET /v1/operations?filter={key}"}
AIP_ENTRY: dict[str, Any] = _TYPED | {"routes": AIP_ROUTES, "key": {"body": "requestId"}}
"""What the targets file declares of the one."""

JOBS_ROUTES = {
    "submit": "POST /jobs",
    "status": "GET /jobs/{id}",
    "result": "GET /jobs/{id}/result",
    "cancel": "DELETE /jobs/{id}",
}
JOBS_LOOKUP = {"lookup": "GET /jobs?key={key}"}
JOBS_ENTRY: dict[str, Any] = _TYPED | {
    "preset": "plain",
    "routes": JOBS_ROUTES,
    "key": {"header": "Idempotency-Key"},
}
"""What it declares of the other."""

WAIT = {"retry-after": "1"}


def _create(server: Server, now_s: float, asked: Asked, fault: str) -> Task | None:
    made = server.create(now_s, asked.key or "", asked.arguments, reuse=fault == "reused id")
    assert not isinstance(made, str), "a course of questions in a protocol that has none"
    return made


# -- AIP-151 ---------------------------------------------------------------------------------------------------------


def read_aip(request: Request) -> Asked:
    """Operations."""
    path = request.url.partition("/v1/")[2]
    if path == "work:run":
        arguments = json.loads(request.body)
        key = arguments.pop("requestId")
        return Asked("tools/call", key, arguments=json.dumps(arguments, sort_keys=True))
    if path.startswith("operations?filter="):
        return Asked("lookup", path.partition("=")[2])
    if path.endswith(":cancel"):
        return Asked("tasks/cancel", task=unquote(path.removesuffix(":cancel")))
    return Asked("tasks/get", task=unquote(path))


def hear_aip(server: Server, now_s: float, asked: Asked, fault: str) -> Said:
    """Its answer."""
    if asked.method == "tools/call":
        return _start_operation(server, now_s, asked, fault)
    if asked.method == "lookup":
        found = [_operation(task, now_s, "") for task in looked_up(server, asked.key)]
        return answer({"operations": found})
    task = known(server, now_s, asked.task, fault)
    if task is None:
        return _status_error(404, "NOT_FOUND")
    if asked.method == "tasks/cancel":
        server.cancel(now_s, task, at_once=False)
        return answer({})
    told = _operation(task, now_s, fault)
    about = Told(told["name"], status_told(task, now_s, fault))
    return replace(say(server, now_s, answer(told, **WAIT), task), told=about)


def _start_operation(server: Server, now_s: float, asked: Asked, fault: str) -> Said:
    task = _create(server, now_s, asked, fault)
    if task is None:
        return _status_error(400, "INVALID_ARGUMENT")
    if fault == "internal error" or task.course.submit_error == -32603:
        return _status_error(500, "INTERNAL")
    if task.course.submit_error:
        return _status_error(409, "ABORTED")
    return say(server, now_s, answer(_operation(task, now_s, ""), **WAIT), task)


def _operation(task: Task, now_s: float, fault: str) -> dict[str, Any]:
    status = status_told(task, now_s, fault)
    if fault == "other task":
        return {"name": "somebody-else", "metadata": {}, "done": True, "response": {"rows": 999}}
    told: dict[str, Any] = {"name": task.id, "metadata": {"note": odd(task, fault)}}
    if status == "failed" or (status == "completed" and task.course.result == "error"):
        return told | {"done": True, "error": {"code": 13, "message": f"it failed{odd(task)}"}}
    if status == "cancelled":
        return told | {"done": True, "error": {"code": 1, "message": "it was cancelled"}}
    if status == "completed":
        result = rows_of(task)
        return told | {"done": True} | ({} if result is None else {"response": result})
    return told


def _status_error(status: int, word: str) -> Said:
    return answer({"error": {"code": status, "status": word, "message": "no"}}, status)


def gone_aip(_id: str) -> Said:
    """No such method."""
    return _status_error(501, "UNIMPLEMENTED")


# -- jobs behind HTTP 202 --------------------------------------------------------------------------------------------


def read_jobs(request: Request) -> Asked:
    """Jobs."""
    path = request.url.partition("/jobs")[2]
    if request.method == "POST":
        key = next(value for name, value in request.headers if name == "Idempotency-Key")
        return Asked("tools/call", key, arguments=json.dumps(json.loads(request.body), sort_keys=True))
    if path.startswith("?key="):
        return Asked("lookup", path.partition("=")[2])
    found = re.fullmatch(r"/([^/]+)(/result)?", path)
    assert found is not None, request.url
    if request.method == "DELETE":
        return Asked("tasks/cancel", task=unquote(found[1]))
    return Asked("tasks/result" if found[2] else "tasks/get", task=unquote(found[1]))


def hear_jobs(server: Server, now_s: float, asked: Asked, fault: str) -> Said:
    """Its answer."""
    if asked.method == "tools/call":
        return _start_job(server, now_s, asked, fault)
    if asked.method == "lookup":
        return answer({"jobs": [_job(task, now_s, "") for task in looked_up(server, asked.key)]})
    task = known(server, now_s, asked.task, fault)
    if task is None:
        return answer({"error": "no such job"}, 404)
    if asked.method == "tasks/cancel":
        server.cancel(now_s, task, at_once=False)
        return answer(_job(task, now_s, ""))
    if asked.method == "tasks/result":
        result = rows_of(task) if task.status(now_s) == "completed" else None
        return say(server, now_s, answer(result, 204 if result is None else 200), task)
    told = _job(task, now_s, fault)
    about = Told(told["id"], status_told(task, now_s, fault))
    return replace(say(server, now_s, answer(told, **WAIT), task), told=about)


def _start_job(server: Server, now_s: float, asked: Asked, fault: str) -> Said:
    task = _create(server, now_s, asked, fault)
    if task is None:
        return answer({"error": "no"}, 422)
    if fault == "internal error" or task.course.submit_error == -32603:
        return answer({"error": "broken"}, 500)
    if task.course.submit_error:
        return answer({"error": "busy"}, 409)
    if task.course.at_once:
        return say(server, now_s, answer(rows_of(task)), task)
    return answer(_job(task, now_s, ""), 202, **WAIT)


def _job(task: Task, now_s: float, fault: str) -> dict[str, Any]:
    status = status_told(task, now_s, fault)
    if fault == "other task":
        return {"id": "somebody-else", "status": "completed"}
    if status == "failed" or (status == "completed" and task.course.result == "error"):
        return {"id": task.id, "status": "failed", "error": {"message": f"it failed{odd(task)}"}}
    if status == "working":
        status = f"running{odd(task, fault)}"
    return {"id": task.id, "status": status}


def gone_jobs(_id: str) -> Said:
    """No such method."""
    return answer({"error": "no"}, 405)
