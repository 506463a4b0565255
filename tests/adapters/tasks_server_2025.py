"""A small MCP 2025-11-25 server with tasks that the test steers: nothing ends before the test says so.

Its manners are those of real servers: tasks belong to their session, an unknown session is HTTP 404 (or, as TypeScript
servers do, 400 with -32000), a tool call is answered on a stream that stays open, a cancelled task's work runs on, a
question is sent once and only on the stream of `tasks/result`, any answer to it is HTTP 202 and the first one counts.
"""

import itertools
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .conftest import Connection

TASKS = {"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
RELATED = "io.modelcontextprotocol/related-task"
TERMINAL = ("completed", "failed", "cancelled")

Answer = dict[str, Any]


def refusal(code: int, message: str) -> Answer:
    return {"error": {"code": code, "message": message}}


@dataclass
class Task:
    id: str
    key: str
    status: str = "working"
    result: Answer = field(default_factory=dict)
    unsent: list[Answer] = field(default_factory=list)
    answers: dict[Any, Answer] = field(default_factory=dict)

    def shown(self) -> Answer:
        times = {"createdAt": "2026-11-29T10:00:00Z", "lastUpdatedAt": "2026-11-29T10:00:00Z"}
        return {"taskId": self.id, "status": self.status, "ttl": 300000, "pollInterval": 1000} | times


@dataclass
class TasksServer:
    """Serves connections of `serve_raw`. `started` holds every operation that was ever made, in order."""

    capabilities: Answer = field(default_factory=lambda: TASKS)
    stream_stays_open: bool = False
    typescript: bool = False
    sessions: dict[str, dict[str, Task]] = field(default_factory=dict)
    started: list[Task] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def end(self, status: str, **answer: Any) -> None:
        """The last operation ends; `answer` is what tasks/result says: result=… or error=…."""
        if self.started[-1].status not in TERMINAL:
            self.started[-1].status, self.started[-1].result = status, answer

    def ask(self, *ids: Any, message: str = "Which?") -> None:
        """The last operation asks a person: one question an id."""
        task = self.started[-1]
        task.status = "input_required"
        params = {"message": message, "requestedSchema": {"type": "object"}, "_meta": {RELATED: {"taskId": task.id}}}
        task.unsent += [{"id": id_, "method": "elicitation/create", "params": params} for id_ in ids]

    async def serve(self, connection: Connection) -> None:
        while request := await connection.request():
            head, _, body = request.partition(b"\r\n\r\n")
            lines = [line.partition(":") for line in head.decode().splitlines()[1:]]
            headers = {name.lower(): value.strip() for name, _, value in lines}
            if head.startswith(b"DELETE"):
                self.asked["DELETE"] += 1
                known = self.sessions.pop(headers["mcp-session-id"], None)
                await connection.answer(b"", "200 OK" if known is not None else "404 Not Found")
                continue
            message = json.loads(body)
            self.asked[message.get("method", "response")] += 1
            await self._answer(connection, message, headers)

    async def _answer(self, connection: Connection, message: Answer, headers: dict[str, str]) -> None:
        if message.get("method") == "initialize":
            session = f"session-{next(self._numbers)}"
            self.sessions[session] = {}
            hello = {"protocolVersion": "2025-11-25", "capabilities": self.capabilities}
            await self._say(connection, message, {"result": hello}, f"Mcp-Session-Id: {session}\r\n")
            return
        tasks = self.sessions.get(headers.get("mcp-session-id", ""))
        if tasks is None or headers.get("mcp-protocol-version") != "2025-11-25":
            status, code = ("400 Bad Request", -32000) if self.typescript else ("404 Not Found", -32001)
            gone = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": "No valid session"}}
            await connection.answer(json.dumps(gone).encode(), status, "Content-Type: application/json\r\n")
        elif "id" not in message:
            await connection.answer(b"", "202 Accepted")
        elif "method" not in message:
            self._take(tasks, message)
            await connection.answer(b"", "202 Accepted")
        elif message["method"] == "tools/call" and message["params"]["name"] == "counterfoil_lookup":
            found = self._look_up(message["params"]["arguments"])
            await self._say(connection, message, {"result": {"content": [], "structuredContent": found}})
        elif message["method"] == "tools/call":
            await self._stream(connection, message, self._call(tasks, message["params"]))
        elif message["method"] == "tasks/result" and self._waits(tasks, message["params"]["taskId"]):
            await self._ask(connection, tasks[message["params"]["taskId"]])
        else:
            await self._say(connection, message, self._about(tasks, message["method"], message["params"]))

    async def _say(self, connection: Connection, message: Answer, answer: Answer, headers: str = "") -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"]} | answer).encode()
        await connection.answer(body, headers=f"Content-Type: application/json\r\n{headers}")

    async def _stream(self, connection: Connection, message: Answer, answer: Answer) -> None:
        """A notification, a request of the server's own under the same id, and the response; then, maybe, nothing."""
        events = (
            {"method": "notifications/message", "params": {"data": message["id"]}},
            {"id": message["id"], "method": "ping"},
            {"id": message["id"]} | answer,
        )
        await connection.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for event in events:
            await connection.say(b"event: message\ndata: " + json.dumps({"jsonrpc": "2.0"} | event).encode() + b"\n\n")
        if self.stream_stays_open:
            await connection.rest()
        connection.writer.close()

    async def _ask(self, connection: Connection, task: Task) -> None:
        """What was not sent yet, after a status and somebody else's question; then nothing until the client leaves."""
        status = {"method": "notifications/tasks/status", "params": task.shown()}
        foreign = {"id": 99, "method": "elicitation/create", "params": {"message": "Whose?"}}
        events, task.unsent = [status, foreign, *task.unsent], []
        await connection.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for event in events:
            await connection.say(b"data: " + json.dumps({"jsonrpc": "2.0"} | event).encode() + b"\n\n")
        await connection.rest()

    def _waits(self, tasks: dict[str, Task], task_id: str) -> bool:
        return task_id in tasks and tasks[task_id].status == "input_required"

    def _take(self, tasks: dict[str, Task], response: Answer) -> None:
        """The first answer counts; whose question it was is told by its task."""
        task = tasks[response["result"]["_meta"][RELATED]["taskId"]]
        if task.status == "input_required":
            task.answers[response["id"]] = response["result"]
            task.status = "working"

    def _look_up(self, arguments: Answer) -> Answer:
        for task in self.started:
            if task.key == arguments["submission_key"]:
                return {"found": True, "taskId": task.id, "status": task.status, "ttlMs": 300000}
        return {"found": False, "authoritative": True}

    def _call(self, tasks: dict[str, Task], params: Answer) -> Answer:
        if "task" not in params or params["name"] != "generate":
            return refusal(-32601, "no such thing")
        task = Task(f"task-{next(self._numbers)}", params["_meta"]["dev.counterfoil/submission-key"])
        self.started.append(task)
        tasks[task.id] = task
        return {"result": {"task": task.shown()}}

    def _about(self, tasks: dict[str, Task], method: str, params: Answer) -> Answer:
        if method == "tools/list":
            tools = [{"name": "generate", "execution": {"taskSupport": "required"}}, {"name": "echo"}]
            return {"result": {"tools": tools[1:] if params else tools[:1]} | ({} if params else {"nextCursor": "2"})}
        task = tasks.get(params["taskId"])
        if task is None:
            return refusal(-32602, "Task not found")
        if method == "tasks/get":
            return {"result": task.shown()}
        if method == "tasks/result":
            return task.result
        if task.status in TERMINAL:
            return refusal(-32602, "already terminal")
        task.status = "cancelled"
        return {"result": task.shown()}
