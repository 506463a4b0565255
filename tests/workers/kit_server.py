"""Tools servers as values: requests in, exact bytes out, and their own count of what they were asked.

`TaskServer` speaks MCP 2026-07-28, `SessionServer` 2025-11-25 with its sessions.
"""

import json
from collections.abc import Callable
from typing import Any

from counterfoil.adapters.contract import Answered, Request

EXTENSION = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"
KEY = "dev.counterfoil/submission-key"
LOOKUP_TOOL = "counterfoil_lookup"
TOOL: dict[str, Any] = {
    "name": "work",
    "version": "7",
    "inputSchema": {"type": "object", "properties": {"secs": {"type": "number"}}, "additionalProperties": False},
    "outputSchema": {"type": "object", "required": ["n"]},
}
AT = "2026-11-29T10:00:00Z"
Rule = Callable[[dict[str, Any]], Answered | None]


def answered(request: dict[str, Any], **said: Any) -> Answered:
    body = json.dumps({"jsonrpc": "2.0", "id": request["id"], **said}).encode()
    return Answered(200, {"content-type": "application/json"}, body)


def streamed(*messages: dict[str, Any]) -> Answered:
    """Messages as the events of a stream."""
    body = b"".join(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n" for message in messages)
    return Answered(200, {"content-type": "text/event-stream"}, body)


def question(message: str = "Which paper?") -> dict[str, Any]:
    """The parameters of a form."""
    schema = {"type": "object", "properties": {"paper": {"type": "string"}}, "required": ["paper"]}
    return {"mode": "form", "message": message, "requestedSchema": schema}


def elicitation(message: str = "Which paper?") -> dict[str, Any]:
    return {"method": "elicitation/create", "params": question(message)}


class TaskServer:
    """Dedupes nothing, unless `unique`: two creates are two tasks. `status` holds each task's word, `rules` what a test
    puts before the answer to a method; the lookup tool's own is "lookup"."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.by_key: dict[str, str] = {}
        self.status: dict[str, str] = {}
        self.questions: dict[str, dict[str, Any]] = {}
        """Task -> what it asks, by key."""
        self.legs: list[dict[str, Any]] = []
        """What a call asks before it makes a task, leg by leg (`inputRequests`, `requestState`)."""
        self.replies: list[tuple[str, dict[str, Any]]] = []
        self.rules: dict[str, Rule] = {}
        self.unique = False
        self.first_status = "working"
        self.interval_ms = 1000
        self.result: dict[str, Any] = {"structuredContent": {"n": 1}, "content": [], "isError": False}

    def answer(self, request: Request) -> Answered:
        asked = json.loads(request.body)
        method = self._method(asked)
        self.asked.append(method)
        self.bodies.append(asked)
        rule = self.rules.get(method)
        return (rule(asked) if rule is not None else None) or answered(asked, result=self._result(method, asked))

    def _method(self, asked: dict[str, Any]) -> str:
        looks = asked["method"] == "tools/call" and asked["params"]["name"] == LOOKUP_TOOL
        return "lookup" if looks else asked["method"]

    def count(self, method: str) -> int:
        return self.asked.count(method)

    def ask(self, task: str, **questions: dict[str, Any]) -> None:
        """The task waits for these."""
        self.status[task] = "input_required"
        self.questions[task] = questions

    def _result(self, method: str, asked: dict[str, Any]) -> dict[str, Any]:
        params = asked["params"]
        match method:
            case "server/discover":
                told = {"supportedVersions": ["2026-07-28"], "capabilities": {"extensions": {EXTENSION: {}}}}
                return {"resultType": "complete", **told}
            case "tools/list":
                return {"resultType": "complete", "tools": [TOOL]}
            case "lookup":
                return {"resultType": "complete", "content": [], "structuredContent": self._known(params["arguments"])}
            case "tools/call":
                return self._call(params)
            case "tasks/update":
                return self._update(params)
            case "tasks/cancel":
                self.status[params["taskId"]] = "cancelled"
                return {"resultType": "complete"}
            case "tasks/get":
                return {"resultType": "complete", **self._shown(params["taskId"]), **self._end(params["taskId"])}
            case other:
                raise AssertionError(f"nobody asks for {other}")

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        leg = len(params.get("requestState", "")) if self.legs else 0
        if leg < len(self.legs):
            return {"resultType": "input_required", "requestState": "x" * (leg + 1), **self.legs[leg]}
        key = params["_meta"][KEY]
        self.keys.append(key)
        task = self.by_key.get(key) if self.unique else None
        if task is None:
            task = f"task-{len(self.keys)}"
            self.status[task] = self.first_status
        self.by_key.setdefault(key, task)
        return {"resultType": "task", **self._shown(task)}

    def _known(self, arguments: dict[str, Any]) -> dict[str, Any]:
        task = self.by_key.get(arguments["submission_key"])
        if task is None:
            return {"found": False, "authoritative": True}
        return {"found": True, **self._shown(task)}

    def _update(self, params: dict[str, Any]) -> dict[str, Any]:
        task, responses = params["taskId"], params["inputResponses"]
        self.replies.append((task, responses))
        waiting = self.questions.get(task, {})
        for key in responses:
            waiting.pop(key, None)
        if not waiting and self.status[task] == "input_required":
            self.status[task] = "working"
        return {"resultType": "complete"}

    def _shown(self, task: str) -> dict[str, Any]:
        times = {"createdAt": AT, "lastUpdatedAt": AT, "ttlMs": 3_600_000, "pollIntervalMs": self.interval_ms}
        return {"taskId": task, "status": self.status[task], **times}

    def _end(self, task: str) -> dict[str, Any]:
        if self.status[task] == "input_required":
            return {"inputRequests": self.questions[task]}
        return {"result": self.result} if self.status[task] == "completed" else {}


class SessionServer(TaskServer):
    """A task lives in the session that made it. A question goes out once, on the stream of `tasks/result`."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions: list[str] = []
        self.gone: set[str] = set()
        self.spoke_in: list[tuple[str, str | None]] = []
        """(method, session) of everything that was asked."""
        self.told: set[str] = set()
        self.rules |= {"initialize": self.begun, "tasks/result": self.on_stream}

    def answer(self, request: Request) -> Answered:
        session = dict(request.headers).get("Mcp-Session-Id")
        asked = json.loads(request.body or b'{"method": "DELETE"}')
        method = self._method(asked) if "method" in asked else "response"
        self.spoke_in.append((method, session))
        if session in self.gone:
            self.asked.append(method)
            return Answered(404, {}, b"")
        if "id" in asked and "method" in asked:
            return super().answer(request)
        self.asked.append(method)
        if method == "response":
            self._taken(asked)
        return Answered(202, {}, b"")

    def _taken(self, asked: dict[str, Any]) -> None:
        task = asked["result"]["_meta"][RELATED]["taskId"]
        self.replies.append((task, asked))
        if self.status[task] == "input_required":
            self.status[task] = "working"

    def _result(self, method: str, asked: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "initialize":
                tasks = {"tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}}}
                return {"protocolVersion": "2025-11-25", "capabilities": tasks, "serverInfo": {"name": "s"}}
            case "tools/list":
                return {"tools": [TOOL | {"execution": {"taskSupport": "optional"}}]}
            case "tools/call":
                return {"task": self._without(self._call(asked["params"]))}
            case "tasks/get":
                return self._without(self._shown(asked["params"]["taskId"]))
            case "tasks/cancel":
                self.status[asked["params"]["taskId"]] = "cancelled"
                return self._without(self._shown(asked["params"]["taskId"]))
            case _:
                return super()._result(method, asked)

    def _without(self, shown: dict[str, Any]) -> dict[str, Any]:
        """As 2025 spells it."""
        told = {key: value for key, value in shown.items() if key not in ("resultType", "ttlMs", "pollIntervalMs")}
        return told | {"ttl": 3_600_000, "pollInterval": self.interval_ms}

    def begun(self, asked: dict[str, Any]) -> Answered:
        """A rule for `initialize`: the answer names a new session."""
        self.sessions.append(f"session-{len(self.sessions) + 1}")
        plain = answered(asked, result=self._result("initialize", asked))
        return Answered(200, dict(plain.headers) | {"mcp-session-id": self.sessions[-1]}, plain.body)

    def on_stream(self, asked: dict[str, Any]) -> Answered:
        """A rule for `tasks/result`: the task's question, once, or its result."""
        task = asked["params"]["taskId"]
        if self.status[task] == "input_required" and task not in self.told:
            self.told.add(task)
            params = question() | {"_meta": {RELATED: {"taskId": task}}}
            return streamed({"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": params})
        if self.status[task] == "input_required":
            return streamed()
        return answered(asked, result=self.result | {"_meta": {RELATED: {"taskId": task}}})
