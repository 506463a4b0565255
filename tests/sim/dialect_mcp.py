"""The bytes of the three MCP protocols, as a server speaks them. Written from the protocols, not from our adapters."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from counterfoil.adapters.contract import Answered, Request

from .remote import INTERVAL_MS, TTL_MS, Reply, Server, Task
from .spoken import (
    KEY,
    OUTPUT_SCHEMA,
    SILENCE,
    TOOL,
    Asked,
    Said,
    Told,
    answer,
    born,
    known,
    looked_up,
    odd,
    rows_of,
    say,
    status_told,
)


def read(request: Request) -> Asked:
    """A JSON-RPC message, or the end of a session."""
    if request.method == "DELETE":
        return Asked("DELETE")
    message: dict[str, Any] = json.loads(request.body)
    method, params, id_ = message.get("method", "reply"), message.get("params", {}), str(message.get("id", ""))
    if method == "reply":
        params = {"taskId": message["result"]["_meta"][RELATED]["taskId"], "result": message["result"]}
    key = params.get("_meta", {}).get(KEY)
    if params.get("name") == LOOKUP:
        return Asked("lookup", params["arguments"]["submission_key"], id=id_, params=params)
    arguments = json.dumps(params.get("arguments"), sort_keys=True)
    leg = json.dumps(params.get("inputResponses"), sort_keys=True)
    return Asked(method, key, params.get("taskId"), arguments, leg, id_, params)


def gone(id_: str) -> Said:
    """No such method."""
    return _refuse(id_, -32601)


def _say(server: Server, now_s: float, id_: str, result: Any, task: Task | None = None, **headers: str) -> Said:
    return say(server, now_s, answer({"jsonrpc": "2.0", "id": id_, "result": result}, **headers), task)


def _refuse(id_: str, code: int, message: str = "no") -> Said:
    return answer({"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}})


def _create(server: Server, now_s: float, params: Mapping[str, Any], *, reuse: bool = False) -> Task | str | None:
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


def _lookup(server: Server, now_s: float, params: Mapping[str, Any], id_: str) -> Said:
    """The owner's lookup tool: what there is under a key. It answers truly."""
    made = looked_up(server, params["arguments"]["submission_key"])
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
    told = {"content": [{"type": "text", "text": json.dumps(found)}], "structuredContent": found}
    return _say(server, now_s, id_, told, made[0] if made else None)


def payload(task: Task) -> dict[str, Any] | None:
    """The result of a task, None where it has none."""
    rows = rows_of(task)
    if rows is None:
        return None
    content = [{"type": "text", "text": f"{rows['rows']} rows"}]
    if task.course.result == "error":
        return {"content": content, "isError": True}
    return {"content": content, "structuredContent": rows}


def _tool(**more: Any) -> dict[str, Any]:
    return {"name": TOOL, "inputSchema": {"type": "object"}, "outputSchema": OUTPUT_SCHEMA, **more}


# -- 2026-07-28 ------------------------------------------------------------------------------------------------------


def hear_2026(server: Server, now_s: float, asked: Asked, fault: str) -> Said:
    """The answer of a server of 2026-07-28."""
    method, params, id_ = asked.method, asked.params, asked.id
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
            task = known(server, now_s, params["taskId"], fault)
            if task is None:
                return _refuse(id_, -32602, "no such task")
            told = _task_2026(task, now_s, fault)
            about = Told(told["taskId"], told["status"], "inputRequests" in told)
            return replace(_say(server, now_s, id_, told, task), told=about)
        case "tasks/cancel":
            task = known(server, now_s, params["taskId"], fault)
            if task is None:
                return _refuse(id_, -32602, "no such task")
            server.cancel(now_s, task, at_once=False)
            return _say(server, now_s, id_, {"resultType": "complete"}, task)
        case "tasks/update":
            task = known(server, now_s, params["taskId"], fault)
            if task is None:
                return _refuse(id_, -32602, "no such task")
            for question, content in params["inputResponses"].items():
                server.reply(now_s, task, question, json.dumps(content, sort_keys=True))
            return _say(server, now_s, id_, {"resultType": "complete"}, task)
        case _:
            return _refuse(id_, -32601)


def _call_2026(server: Server, now_s: float, params: Mapping[str, Any], id_: str, fault: str) -> Said:
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
    status = status_told(task, now_s, fault)
    if fault == "other task":
        other = {"resultType": "complete", "taskId": "somebody-else", "status": "completed", **_times_2026(task, fault)}
        return other | {"result": {"content": [], "structuredContent": {"rows": 999}}}
    told: dict[str, Any] = {"resultType": "complete", "taskId": task.id, "status": status, **_times_2026(task, fault)}
    if odd(task, fault):
        told["statusMessage"] = odd(task, fault)
        told["status"] = status if status != "working" else "wor\0king\ud800"
    if status == "completed":
        result = payload(task)
        told |= {} if result is None else {"result": result}
    elif status == "failed":
        told["error"] = {"code": -32000, "message": "it failed"}
    elif status == "input_required":
        told["inputRequests"] = {task.question: QUESTION}
    return told


# -- 2025-11-25 and blocking calls -----------------------------------------------------------------------------------


def _hello(server: Server, now_s: float, id_: str) -> Said:
    server.sessions += 1
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}},
        "serverInfo": {"name": "simulated", "version": "1"},
    }
    return _say(server, now_s, id_, hello, **{"mcp-session-id": f"session-{server.sessions}"})


def hear_2025(server: Server, now_s: float, asked: Asked, fault: str) -> Said:  # noqa: C901, PLR0912  one dispatch
    """The answer of a server of 2025-11-25."""
    method, params, id_ = asked.method, asked.params, asked.id
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
            task = server.find(params["taskId"])
            if task is not None:
                content = {name: value for name, value in params["result"].items() if name != "_meta"}
                server.reply(now_s, task, id_, json.dumps(content, sort_keys=True))
            return Said(Answered(202, {}, b""))
        case "tasks/get":
            task = known(server, now_s, params["taskId"], fault)
            if task is None:
                return _refuse(id_, -32602, "no such task")
            told = _task_2025(task, now_s, fault)
            return replace(_say(server, now_s, id_, told, task), told=Told(told["taskId"], told["status"]))
        case "tasks/result":
            return _result_2025(server, now_s, params, id_, fault)
        case "tasks/cancel":
            task = known(server, now_s, params["taskId"], fault)
            if task is None or task.status(now_s) in ("completed", "failed", "cancelled"):
                return _refuse(id_, -32602, "unknown, over, or not yours")
            server.cancel(now_s, task, at_once=True)
            return _say(server, now_s, id_, _task_2025(task, now_s, fault), task)
        case _:
            return _refuse(id_, -32601)


def _call_2025(server: Server, now_s: float, params: Mapping[str, Any], id_: str, fault: str) -> Said:
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
        "status": status_told(task, now_s, fault),
        "createdAt": born(task, shift_s),
        "lastUpdatedAt": born(task, now_s),
        "ttl": TTL_MS,
        "pollInterval": INTERVAL_MS,
    }
    if odd(task, fault):
        told["statusMessage"] = odd(task, fault)
        told["status"] = told["status"] if told["status"] != "working" else "wor\0king\ud800"
    return told


def _result_2025(server: Server, now_s: float, params: Mapping[str, Any], id_: str, fault: str) -> Said:
    task = known(server, now_s, params["taskId"], fault)
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
    number = len(task.answers) + 1
    if task.delivered >= number:
        return SILENCE
    task.delivered = number
    params = QUESTION["params"] | {"_meta": {RELATED: {"taskId": task.id}}}  # type: ignore[operator]
    asked = {"jsonrpc": "2.0", "id": task.question, "method": QUESTION["method"], "params": params}
    body = f"event: message\ndata: {json.dumps(asked)}\n\n".encode()
    return Said(
        Answered(200, {"content-type": "text/event-stream"}, body), told=Told(task.id, "input_required", asks=True)
    )


RELATED = "io.modelcontextprotocol/related-task"


def hear_sync(server: Server, now_s: float, asked: Asked, fault: str) -> Said:
    """The answer of a server of blocking calls."""
    method, params, id_ = asked.method, asked.params, asked.id
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
            return hear_2025(server, now_s, asked, fault)
