"""A tools server of MCP 2026-07-28 as a value: requests in, exact bytes out, and its own count of what it was asked."""

import json
from collections.abc import Callable
from typing import Any

from counterfoil.adapters.contract import Answered, Request

EXTENSION = "io.modelcontextprotocol/tasks"
KEY = "dev.counterfoil/submission-key"
TOOL: dict[str, Any] = {
    "name": "work",
    "version": "7",
    "inputSchema": {"type": "object", "properties": {"secs": {"type": "number"}}, "additionalProperties": False},
    "outputSchema": {"type": "object", "required": ["n"]},
}
Rule = Callable[[dict[str, Any]], Answered | None]


def answered(request: dict[str, Any], **said: Any) -> Answered:
    body = json.dumps({"jsonrpc": "2.0", "id": request["id"], **said}).encode()
    return Answered(200, {"content-type": "application/json"}, body)


class TaskServer:
    """Dedupes nothing: two creates are two tasks. `status` holds each task's word, `rules` what a test puts before the
    answer to a method."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.keys: list[str] = []
        self.status: dict[str, str] = {}
        self.rules: dict[str, Rule] = {}
        self.first_status = "working"
        self.interval_ms = 1000
        self.result: dict[str, Any] = {"structuredContent": {"n": 1}, "content": [], "isError": False}

    def answer(self, request: Request) -> Answered:
        asked = json.loads(request.body)
        self.asked.append(asked["method"])
        rule = self.rules.get(asked["method"])
        return (rule(asked) if rule is not None else None) or answered(asked, result=self._result(asked))

    def count(self, method: str) -> int:
        return self.asked.count(method)

    def _result(self, asked: dict[str, Any]) -> dict[str, Any]:
        params = asked["params"]
        match asked["method"]:
            case "server/discover":
                told = {"supportedVersions": ["2026-07-28"], "capabilities": {"extensions": {EXTENSION: {}}}}
                return {"resultType": "complete", **told}
            case "tools/list":
                return {"resultType": "complete", "tools": [TOOL]}
            case "tools/call":
                self.keys.append(params["_meta"][KEY])
                task = f"task-{len(self.keys)}"
                self.status[task] = self.first_status
                return {"resultType": "task", **self._shown(task)}
            case "tasks/cancel":
                self.status[params["taskId"]] = "cancelled"
                return {"resultType": "complete"}
            case "tasks/get":
                return {"resultType": "complete", **self._shown(params["taskId"]), **self._end(params["taskId"])}
            case method:
                raise AssertionError(f"nobody asks for {method}")

    def _shown(self, task: str) -> dict[str, Any]:
        at = "2026-11-29T10:00:00Z"
        times = {"createdAt": at, "lastUpdatedAt": at, "ttlMs": 3_600_000, "pollIntervalMs": self.interval_ms}
        return {"taskId": task, "status": self.status[task], **times}

    def _end(self, task: str) -> dict[str, Any]:
        return {"result": self.result} if self.status[task] == "completed" else {}
