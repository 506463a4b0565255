"""A tools server that speaks MCP 2026-07-28 tasks and keeps its own count: the oracle of every fleet test.

Run as a process: `python tasks_server.py LOG`. Prints its port. Each line of LOG is one JSON object, appended before
the answer leaves: {"at", "on": method, "who": the bearer token that came, "key", "task", "node"}. It dedupes nothing:
two creates are two tasks.

The tool `work` takes {"secs": how long a task works, "node": any text, "answer_after_s": seconds before the answer
to the call, "status": its word for working, "ttl", "asks": how many questions it has before it is over,
"update_after_s": seconds before the answer to a reply, "held": works on, a cancel too, until the release,
"answer_held": the answer to the call waits for the release}. SIGUSR1 is the release. The tool `counterfoil_lookup`
finds tasks by submission key. Written on asyncio's own protocols: on two cores the server must not be what a test
measures.
"""

import asyncio
import json
import signal
import sys
import time
import uuid
from pathlib import Path
from typing import Any

EXTENSION = "io.modelcontextprotocol/tasks"
TOOL = {
    "name": "work",
    "version": "1",
    "inputSchema": {
        "type": "object",
        "properties": {
            "secs": {"type": "number"},
            "node": {"type": "string"},
            "answer_after_s": {"type": "number"},
            "status": {"type": "string"},
            "ttl": {"type": "number"},
            "asks": {"type": "integer"},
            "update_after_s": {"type": "number"},
            "held": {"type": "boolean"},
            "answer_held": {"type": "boolean"},
        },
        "additionalProperties": False,
    },
}
LOOKUP = {"name": "counterfoil_lookup", "version": "1", "inputSchema": {"type": "object"}}
QUESTION = {
    "method": "elicitation/create",
    "params": {
        "message": "Which month?",
        "requestedSchema": {"type": "object", "properties": {"month": {"type": "string"}}, "required": ["month"]},
    },
}
REPORT = {"name": "generate_report", "version": "1", "inputSchema": {"type": "object", "required": ["month"]}}


class Tasks:
    """The tasks of this process and the log of what was asked."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("a", buffering=1)
        self._tasks: dict[str, dict[str, Any]] = {}
        self.released = asyncio.Event()

    def note(self, **line: Any) -> None:
        self._log.write(json.dumps({"at": time.time(), **line}) + "\n")

    async def answer(self, request: dict[str, Any], who: str) -> dict[str, Any]:
        method, params = request["method"], request["params"]
        if method == "tools/call" and params["name"] == LOOKUP["name"]:
            return self._look_up(params["arguments"]["submission_key"], who)
        if method == "tools/call":
            return await self._create(params, who)
        self.note(on=method, who=who, task=params.get("taskId"))
        if method == "server/discover":
            return {"supportedVersions": ["2026-07-28"], "capabilities": {"extensions": {EXTENSION: {}}}}
        if method == "tools/list":
            return {"tools": [TOOL, LOOKUP, REPORT]}
        task = self._tasks[params["taskId"]]
        if method == "tasks/cancel":
            task["cancelled"] = True
            return {}
        if method == "tasks/update":
            for key, reply in params["inputResponses"].items():
                task["answers"].setdefault(key, reply)
            await asyncio.sleep(task["given"].get("update_after_s", 0))  # as below
            return {}
        return self._status(task)

    async def _create(self, params: dict[str, Any], who: str) -> dict[str, Any]:
        given = params["arguments"]
        key = params["_meta"]["dev.counterfoil/submission-key"]
        task = {"taskId": uuid.uuid4().hex, "key": key, "over_at": time.time() + given.get("secs", 1), "given": given}
        self._tasks[task["taskId"]] = {**task, "answers": {}}
        self.note(on="tools/call", who=who, key=key, task=task["taskId"], node=given.get("node"))
        await asyncio.sleep(given.get("answer_after_s", 0))  # this server's own slowness: what the test is about
        if given.get("answer_held"):
            await self.released.wait()
        return {"resultType": "task", **self._shown(task, "working")}

    def _look_up(self, key: str, who: str) -> dict[str, Any]:
        self.note(on="lookup", who=who, key=key)
        task = next((one for one in self._tasks.values() if one["key"] == key), None)
        found = (
            {"found": False, "authoritative": True} if task is None else {"found": True, **self._shown(task, "working")}
        )
        return {"structuredContent": found, "content": [], "isError": False}

    def _shown(self, task: dict[str, Any], status: str) -> dict[str, Any]:
        given = task["given"]
        return {
            "taskId": task["taskId"],
            "status": status,
            "createdAt": "2026-11-29T10:00:00Z",
            "lastUpdatedAt": "2026-11-29T10:00:00Z",
            "ttlMs": given.get("ttl", 3_600_000),
            "pollIntervalMs": 1000,
        }

    def _status(self, task: dict[str, Any]) -> dict[str, Any]:
        held = task["given"].get("held") and not self.released.is_set()
        if task.get("cancelled") and not held:
            return self._shown(task, "cancelled")
        if held or time.time() < task["over_at"]:
            return self._shown(task, task["given"].get("status", "working"))
        keys = [f"q{number}" for number in range(task["given"].get("asks", 0))]
        open_keys = {key: QUESTION for key in keys if key not in task["answers"]}
        if open_keys:
            return {**self._shown(task, "input_required"), "inputRequests": open_keys}
        made = {"node": task["given"].get("node")} | ({"answers": task["answers"]} if keys else {})
        done = {"structuredContent": made, "content": [], "isError": False}
        return {**self._shown(task, "completed"), "result": done}


class Connection(asyncio.Protocol):
    """Enough of HTTP/1.1: content-length bodies and keep-alive."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._heard = b""
        self._answering: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, mark, rest = self._heard.partition(b"\r\n\r\n")
        if not mark:
            return
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        length = int(fields.get(b"content-length", b"0"))
        if len(rest) >= length:
            self._heard = rest[length:]
            who = fields.get(b"authorization", b"").decode().removeprefix("bearer ")
            task = asyncio.ensure_future(self._answer(json.loads(rest[:length]), who))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, request: dict[str, Any], who: str) -> None:
        try:
            said: dict[str, Any] = {"result": {"resultType": "complete", **await self._tasks.answer(request, who)}}
        except KeyError:
            said = {"error": {"code": -32602, "message": "unknown task"}}
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], **said}).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


async def main(log: Path) -> None:
    tasks = Tasks(log)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, tasks.released.set)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(tasks), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
