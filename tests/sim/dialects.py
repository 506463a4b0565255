"""The bytes of the three MCP protocols, as a server speaks them. Written from the protocols, not from our adapters."""

import json
import math
from dataclasses import dataclass
from typing import Any

from counterfoil.adapters.contract import Answered, Request

from .remote import INTERVAL_MS, TTL_MS, Heard, Reply, Server, Task

TOOL = "work"
OUTPUT_SCHEMA = {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]}
KEY = "dev.counterfoil/submission-key"

JSON_TYPE = {"content-type": "application/json"}


@dataclass(frozen=True)
class Said:
    """An answer, and how long the server takes for it."""

    reply: Answered
    takes_s: float = 0.0


def born(task: Task, shift_s: float = 0.0) -> str:
    """createdAt. Two tasks of one run never share it."""
    at_s = task.born_s + shift_s
    hostile = "\0\ud800" if task.course.hostile else ""
    return f"2026-12-01T{10 + int(at_s) // 3600}:{int(at_s) // 60 % 60:02}:{at_s % 60:06.3f}{task.number:03}Z{hostile}"


def hear(server: Server, protocol: str, now_s: float, request: Request, fault: str) -> Said:
    """What the server does about a request and what it answers. `fault`: what goes wrong there, "" for nothing."""
    if request.method == "DELETE":
        server.log.append(Heard(now_s, "DELETE", ""))
        return Said(Answered(200, {}, b""))
    message: dict[str, Any] = json.loads(request.body)
    method, params, id_ = message.get("method", "reply"), message.get("params", {}), str(message.get("id", ""))
    if method == "reply":
        params = {"taskId": message["result"]["_meta"][RELATED]["taskId"], "result": message["result"]}
    key = params.get("_meta", {}).get(KEY)
    if params.get("name") == LOOKUP:
        method, key = "lookup", params["arguments"]["submission_key"]
    processed = fault not in REFUSALS and fault != METHOD_GONE
    server.log.append(Heard(now_s, method, id_, key, params.get("taskId"), processed, fault == "credential refused"))
    if fault == METHOD_GONE:
        return _refuse(id_, -32601)
    if not processed:
        return Said(REFUSALS[fault])
    said = _ROUTES[protocol](server, now_s, method, params, id_, fault)
    if fault in BROKEN:
        return Said(BROKEN[fault], said.takes_s)
    return said


def _error_body(code: int) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": "no"}}).encode()


REFUSALS = {
    "asked to wait": Answered(429, JSON_TYPE | {"retry-after": "3"}, _error_body(-32000)),
    "unavailable": Answered(503, JSON_TYPE, _error_body(-32000)),
    "credential refused": Answered(401, {"www-authenticate": "Bearer"}, b""),
    "session gone": Answered(404, JSON_TYPE, _error_body(-32600)),
}
"""Answers of a server (or of what stands before it) that has done nothing."""

METHOD_GONE = "method gone"
"""The tool is not to be called just now: for certain nothing ran, of this call."""

BROKEN = {
    "unavailable behind": Answered(503, JSON_TYPE | {"retry-after": "2"}, _error_body(-32000)),
    "broken behind": Answered(500, {"content-type": "text/html"}, b"<html>Bad gateway</html>"),
}
"""Answers of a gateway whose server has done what it was asked."""


def _say(server: Server, now_s: float, id_: str, result: Any, task: Task | None = None, **headers: str) -> Said:
    body = json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}).encode()
    server.said.append((now_s, task.number if task else None, body))
    return Said(Answered(200, JSON_TYPE | headers, body))


def _refuse(id_: str, code: int, message: str = "no") -> Said:
    body = json.dumps({"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}).encode()
    return Said(Answered(200, JSON_TYPE, body))


def _create(server: Server, now_s: float, params: dict[str, Any], *, reuse: bool = False) -> Task | str | None:
    """A task; None for a refusal; a state where the call has to be answered first."""
    arguments, key = json.dumps(params.get("arguments"), sort_keys=True), params["_meta"][KEY]
    for question, content in params.get("inputResponses", {}).items():
        asked = key in server.asking
        server.replies.append(Reply(now_s, key, question, json.dumps(content, sort_keys=True), asked))
        server.asking.discard(key)
        server.answered.add(key)
    return server.create(now_s, key, arguments, reuse=reuse)


QUESTION = {
    "method": "elicitation/create",
    "params": {
        "message": "go on?",
        "requestedSchema": {"type": "object", "properties": {"go": {"type": "boolean"}}, "required": ["go"]},
    },
}
LOOKUP = "counterfoil_lookup"


def _lookup(server: Server, now_s: float, params: dict[str, Any], id_: str) -> Said:
    """The owner's lookup tool: what there is under a key. It answers truly."""
    made = server.with_key(params["arguments"]["submission_key"])
    if not made:
        found: dict[str, Any] = {"found": False, "authoritative": True}
    elif server.blocks:
        task = made[0]
        over = now_s >= task.over_s
        found = (
            {"found": True, "result": payload(task) or {"content": []}} if over else {"found": True, "running": True}
        )
    else:
        found = {"found": True, "taskId": made[0].id, "status": made[0].status(now_s), "createdAt": born(made[0])}
    server.sometimes.add(f"a lookup {'found' if made else 'missed'}")
    answer = {"content": [{"type": "text", "text": json.dumps(found)}], "structuredContent": found}
    return _say(server, now_s, id_, answer, made[0] if made else None)


def payload(task: Task) -> dict[str, Any] | None:
    """The result of a task, None where it has none."""
    if task.course.result == "none":
        return None
    rows: Any = "many" if task.course.result == "broken" else task.number
    content = [{"type": "text", "text": f"{rows} rows"}]
    if task.course.result == "error":
        return {"content": content, "isError": True}
    return {"content": content, "structuredContent": {"rows": rows}}


def _tool(**more: Any) -> dict[str, Any]:
    return {"name": TOOL, "inputSchema": {"type": "object"}, "outputSchema": OUTPUT_SCHEMA, **more}


# -- 2026-07-28 ------------------------------------------------------------------------------------------------------


def _hear_2026(server: Server, now_s: float, method: str, params: dict[str, Any], id_: str, fault: str) -> Said:  # noqa: PLR0917  one line of a dispatch
    match method:
        case "server/discover":
            extensions = {"io.modelcontextprotocol/tasks": {}}
            return _say(
                server,
                now_s,
                id_,
                {"supportedVersions": ["2026-07-28"], "capabilities": {"extensions": extensions}},
            )
        case "tools/list":
            return _say(server, now_s, id_, {"tools": [_tool()]})
        case "lookup":
            return _lookup(server, now_s, params, id_)
        case "tools/call":
            return _call_2026(server, now_s, params, id_, fault)
        case "tasks/get":
            task = _known(server, now_s, params, fault)
            if task is None:
                return _refuse(id_, -32602, "no such task")
            return _say(server, now_s, id_, _task_2026(task, now_s, fault), task)
        case "tasks/cancel":
            task = _known(server, now_s, params, fault)
            if task is None:
                return _refuse(id_, -32602, "no such task")
            server.cancel(now_s, task, at_once=False)
            return _say(server, now_s, id_, {"resultType": "complete"}, task)
        case "tasks/update":
            task = _known(server, now_s, params, fault)
            if task is None:
                return _refuse(id_, -32602, "no such task")
            for question, content in params["inputResponses"].items():
                server.reply(now_s, task, question, json.dumps(content, sort_keys=True))
            return _say(server, now_s, id_, {"resultType": "complete"}, task)
        case _:
            return _refuse(id_, -32601)


def _call_2026(server: Server, now_s: float, params: dict[str, Any], id_: str, fault: str) -> Said:
    task = _create(server, now_s, params, reuse=fault == "reused id")
    if isinstance(task, str):
        asked = {"resultType": "input_required", "inputRequests": {"first": QUESTION}, "requestState": task}
        return _say(server, now_s, id_, asked)
    if task is None:
        return _refuse(id_, -32601)
    if task.course.submit_error or fault == "internal error":
        return _refuse(id_, task.course.submit_error or -32603)
    if task.course.at_once:
        return _say(server, now_s, id_, {"resultType": "complete", **(payload(task) or {"content": []})}, task)
    named = {"resultType": "task", "taskId": task.id, "status": "working", **_times_2026(task, fault)}
    return _say(server, now_s, id_, named, task)


def _times_2026(task: Task, fault: str) -> dict[str, Any]:
    shift_s = 3600.0 if fault == "other birth" else 0.0
    return {"createdAt": born(task, shift_s), "ttlMs": TTL_MS, "pollIntervalMs": INTERVAL_MS}


def _task_2026(task: Task, now_s: float, fault: str) -> dict[str, Any]:
    status = task.status(max(now_s - 4.0, task.born_s) if fault == "older status" else now_s)
    if fault == "other task":
        other = {"resultType": "complete", "taskId": "somebody-else", "status": "completed", **_times_2026(task, fault)}
        return other | {"result": {"content": [], "structuredContent": {"rows": 999}}}
    told: dict[str, Any] = {"resultType": "complete", "taskId": task.id, "status": status, **_times_2026(task, fault)}
    if fault == "hostile text" or task.course.hostile:
        told["statusMessage"] = "\0\ud800"
        told["status"] = status if status != "working" else "wor\0king\ud800"
    if status == "completed":
        result = payload(task)
        told |= {} if result is None else {"result": result}
    elif status == "failed":
        told["error"] = {"code": -32000, "message": "it failed"}
    elif status == "input_required":
        told["inputRequests"] = {"later": QUESTION}
    return told


def _known(server: Server, now_s: float, params: dict[str, Any], fault: str) -> Task | None:
    task = server.find(params["taskId"])
    if task is None or task.forgotten(now_s) or fault == "not found":
        server.not_found.append((now_s, params["taskId"]))
        return None
    return task


# -- 2025-11-25 and blocking calls -----------------------------------------------------------------------------------


def _hello(server: Server, now_s: float, id_: str) -> Said:
    server.sessions += 1
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}},
        "serverInfo": {"name": "simulated", "version": "1"},
    }
    return _say(server, now_s, id_, hello, **{"mcp-session-id": f"session-{server.sessions}"})


def _hear_2025(server: Server, now_s: float, method: str, params: dict[str, Any], id_: str, fault: str) -> Said:  # noqa: C901, PLR0912, PLR0917  one dispatch
    match method:
        case "initialize":
            return _hello(server, now_s, id_)
        case "notifications/initialized":
            return Said(Answered(202, {}, b""))
        case "tools/list":
            return _say(server, now_s, id_, {"tools": [_tool(execution={"taskSupport": "optional"})]})
        case "lookup":
            return _lookup(server, now_s, params, id_)
        case "tools/call":
            return _call_2025(server, now_s, params, id_, fault)
        case "reply":
            asked = server.find(params["taskId"])
            if asked is not None:
                content = {name: value for name, value in params["result"].items() if name != "_meta"}
                server.reply(now_s, asked, id_, json.dumps(content, sort_keys=True))
            return Said(Answered(202, {}, b""))
        case "tasks/get":
            task = _known(server, now_s, params, fault)
            if task is None:
                return _refuse(id_, -32602, "no such task")
            return _say(server, now_s, id_, _task_2025(task, now_s, fault), task)
        case "tasks/result":
            return _result_2025(server, now_s, params, id_, fault)
        case "tasks/cancel":
            task = _known(server, now_s, params, fault)
            if task is None or task.status(now_s) in ("completed", "failed", "cancelled"):
                return _refuse(id_, -32602, "unknown, over, or not yours")
            server.cancel(now_s, task, at_once=True)
            return _say(server, now_s, id_, _task_2025(task, now_s, fault), task)
        case _:
            return _refuse(id_, -32601)


def _call_2025(server: Server, now_s: float, params: dict[str, Any], id_: str, fault: str) -> Said:
    task = _create(server, now_s, params, reuse=fault == "reused id")
    if task is None or isinstance(task, str):
        return _refuse(id_, -32601)
    if task.course.submit_error or fault == "internal error":
        return _refuse(id_, task.course.submit_error or -32603)
    if task.course.at_once:
        return _say(server, now_s, id_, payload(task) or {"content": []}, task)
    return _say(server, now_s, id_, {"task": _task_2025(task, now_s, fault)}, task)


def _task_2025(task: Task, now_s: float, fault: str) -> dict[str, Any]:
    shift_s = 3600.0 if fault == "other birth" else 0.0
    told: dict[str, Any] = {
        "taskId": "somebody-else" if fault == "other task" else task.id,
        "status": task.status(max(now_s - 4.0, task.born_s) if fault == "older status" else now_s),
        "createdAt": born(task, shift_s),
        "lastUpdatedAt": born(task, now_s),
        "ttl": TTL_MS,
        "pollInterval": INTERVAL_MS,
    }
    if fault == "hostile text" or task.course.hostile:
        told["statusMessage"] = "\0\ud800"
        told["status"] = told["status"] if told["status"] != "working" else "wor\0king\ud800"
    return told


def _result_2025(server: Server, now_s: float, params: dict[str, Any], id_: str, fault: str) -> Said:
    task = _known(server, now_s, params, fault)
    if task is None:
        return _refuse(id_, -32602, "no such task")
    if task.status(now_s) == "input_required":
        return _question_2025(task)
    if task.status(now_s) == "failed":
        said = _refuse(id_, -32000, "it failed")
        server.said.append((now_s, task.number, said.reply.body))
        return said
    if task.status(now_s) == "cancelled":
        return _refuse(id_, -32000, "it was cancelled")
    result = payload(task) or {}
    return _say(server, now_s, id_, result | {"_meta": {RELATED: {"taskId": task.id}}}, task)


def _question_2025(task: Task) -> Said:
    """The stream of `tasks/result`: the question once, then nothing for as long as it waits."""
    if task.question_delivered:
        return Said(Answered(200, {"content-type": "text/event-stream"}, b""), math.inf)
    task.question_delivered = True
    params = QUESTION["params"] | {"_meta": {RELATED: {"taskId": task.id}}}  # type: ignore[operator]
    asked = {"jsonrpc": "2.0", "id": f"q-{task.number}", "method": QUESTION["method"], "params": params}
    body = f"event: message\ndata: {json.dumps(asked)}\n\n".encode()
    return Said(Answered(200, {"content-type": "text/event-stream"}, body))


RELATED = "io.modelcontextprotocol/related-task"


def _hear_sync(server: Server, now_s: float, method: str, params: dict[str, Any], id_: str, fault: str) -> Said:  # noqa: PLR0917
    match method:
        case "tools/list":
            return _say(server, now_s, id_, {"tools": [_tool()]})
        case "lookup":
            return _lookup(server, now_s, params, id_)
        case "tools/call":
            task = _create(server, now_s, params)
            if task is None or isinstance(task, str):
                return _refuse(id_, -32601)
            if task.course.submit_error or fault == "internal error":
                return _refuse(id_, task.course.submit_error or -32603)
            said = _say(server, now_s, id_, payload(task) or {"content": []}, task)
            return Said(said.reply, max(task.over_s - now_s, 0.0))
        case _:
            return _hear_2025(server, now_s, method, params, id_, fault)


_ROUTES = {"mcp-2026-07-28": _hear_2026, "mcp-2025-11-25": _hear_2025, "mcp-sync": _hear_sync}
