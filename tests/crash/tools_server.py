"""A tools server (MCP 2026-07-28 tasks) that keeps its own count: the judge of the crash points.

Run as a process: `python tools_server.py LOG`. Prints its port. Each line of LOG is one JSON object: {"on", "node",
"key", "task"}, `on` being a method, or `arrived` (a whole call was read), `part` (its client died while writing it),
`lookup`.

The path says what the server promises: `/nothing` makes a task of every call, `/looks` too but answers lookups by key,
`/unique` answers a repeated key with its first task. A call's arguments say what goes wrong with its first send:
`answer`: `hold` (none is given) or `cut` (half of it); `lands`: `late` (it takes effect when the key is sent again, or
on `test/land`); `reject`; `hidden` (lookups don't show it before the key is sent again). `cancel` and `update`: `hold`
does what is asked and answers only a repeat. `asks`: the task waits for a person.
"""

import asyncio
import json
import re
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

EXTENSION = "io.modelcontextprotocol/tasks"
KEY = "dev.counterfoil/submission-key"
LOOKUP_TOOL = "counterfoil_lookup"
TOOLS = [{"name": name, "version": "1", "inputSchema": {"type": "object"}} for name in ("work", LOOKUP_TOOL)]
QUESTION = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Which paper?",
        "requestedSchema": {"type": "object", "properties": {"paper": {"type": "string"}}, "required": ["paper"]},
    },
}
NODE = re.compile(rb'"node":"([^"]+)"')


class Held(Exception):
    """No answer is given."""


class Rejected(Exception):
    """An error that proves that nothing ran."""


class Tasks:
    """Every task of this process, whatever the path, and the log of what was asked."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("a", buffering=1)
        self._tasks: dict[str, dict[str, Any]] = {}
        self._sends: dict[str, int] = defaultdict(int)
        self._by_key: dict[str, str] = {}
        self._again: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def note(self, on: str, node: object, **line: Any) -> None:
        self._log.write(json.dumps({"on": on, "node": node, **line}) + "\n")

    async def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        method, params = request["method"], request["params"]
        match method:
            case "server/discover":
                return {"supportedVersions": ["2026-07-28"], "capabilities": {"extensions": {EXTENSION: {}}}}
            case "tools/list":
                return {"tools": TOOLS}
            case "tools/call" if params["name"] == LOOKUP_TOOL:
                return {"content": [], "structuredContent": self._lookup(params["arguments"]["submission_key"])}
            case "tools/call":
                return await self._call(path, params["arguments"], params["_meta"][KEY])
            case "test/land":
                for landing in self._again.values():
                    landing.set()
                return {}
            case _:
                return self._of_task(method, self._tasks[params["taskId"]], params)

    # -- calls ---------------------------------------------------------------------------------------------------------

    async def _call(self, path: str, given: dict[str, Any], key: str) -> dict[str, Any]:
        self._sends[key] += 1
        first = self._sends[key] == 1
        self.note("arrived", given["node"], key=key)
        if given.get("reject"):
            raise Rejected
        if first and given.get("lands") == "late":
            await self._again[key].wait()
        task = self._create(path, given, key)
        if not first:
            self._again[key].set()
        if first and given.get("answer") == "hold":
            raise Held
        return {"resultType": "task", **self._shown(task)}

    def _create(self, path: str, given: dict[str, Any], key: str) -> dict[str, Any]:
        known = self._by_key.get(key) if path == "/unique" else None
        task_id = known or f"task-{len(self._tasks) + 1}"
        if known is None:
            self._tasks[task_id] = {"id": task_id, "over_at": time.time() + given["secs"], "given": given}
            self._by_key.setdefault(key, task_id)
        self.note("created", given["node"], key=key, task=task_id)
        return self._tasks[task_id]

    def _lookup(self, key: str) -> dict[str, Any]:
        task = self._tasks.get(self._by_key.get(key, ""))
        self.note("lookup", None, key=key)
        if task is None or (task["given"].get("hidden") and self._sends[key] == 1):
            return {"found": False, "authoritative": True}
        return {"found": True, **self._shown(task)}

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def _of_task(self, method: str, task: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
        given = task["given"]
        self.note(method, given["node"], task=task["id"])
        verb = method.partition("/")[2]
        if verb == "get":
            return {**self._shown(task), **self._end(task)}
        again = verb in task
        task.setdefault(verb, params.get("inputResponses"))
        if given.get(verb) == "hold" and not again:
            raise Held
        return {}

    def _shown(self, task: dict[str, Any]) -> dict[str, Any]:
        times = {"createdAt": "2026-11-29T10:00:00Z", "ttlMs": 3_600_000, "pollIntervalMs": 300}
        return {"taskId": task["id"], "status": self._status(task), "lastUpdatedAt": "2026-11-29T10:00:00Z", **times}

    def _status(self, task: dict[str, Any]) -> str:
        if "cancel" in task:
            return "cancelled"
        if task["given"].get("asks"):
            return "completed" if "update" in task else "input_required"
        return "completed" if time.time() >= task["over_at"] else "working"

    def _end(self, task: dict[str, Any]) -> dict[str, Any]:
        match self._status(task):
            case "input_required":
                return {"inputRequests": {"paper": QUESTION}}
            case "completed":
                told = {"node": task["given"]["node"], "told": task.get("update")}
                return {"result": {"structuredContent": told, "content": [], "isError": False}}
            case _:
                return {}


class Connection(asyncio.Protocol):
    """Enough of HTTP/1.1: content-length bodies and keep-alive."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._heard = b""
        self._answering: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        node = NODE.search(self._heard)
        if node is not None:
            self._tasks.note("part", node[1].decode())

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, mark, rest = self._heard.partition(b"\r\n\r\n")
        if not mark:
            return
        line, *fields = head.split(b"\r\n")
        lengths = [field.partition(b": ")[2] for field in fields if field.lower().startswith(b"content-length")]
        if len(rest) >= int(lengths[0]):
            self._heard = b""
            task = asyncio.ensure_future(self._answer(line.split()[1].decode(), json.loads(rest)))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, path: str, request: dict[str, Any]) -> None:
        try:
            said: dict[str, Any] = {"result": {"resultType": "complete", **await self._tasks.answer(path, request)}}
        except Held:
            return
        except Rejected:
            said = {"error": {"code": -32600, "message": "no such report"}}
        except KeyError:
            said = {"error": {"code": -32602, "message": "unknown task"}}
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], **said}).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        given = request["params"].get("arguments", {})
        if given.get("answer") == "cut" and said["result"]["resultType"] == "task":
            self._transport.write(head.encode() + body[: len(body) // 2])
            self._transport.close()
        else:
            self._transport.write(head.encode() + body)


async def main(log: Path) -> None:
    tasks = Tasks(log)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(tasks), "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
