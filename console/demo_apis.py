"""Four small servers for the demo in one process, of the protocols that its MCP server does not speak: MCP 2025-11-25
with tasks, an `aip-151` and an `http-202` API, an A2A agent. Each keeps its jobs under the caller's key.

    python -m counterfoil.console.demo_apis LOG PACE_S

It prints its port, and writes each job that it starts into LOG, one JSON object a line, before it answers. The answer
to each API's first job it loses: the connection is closed instead.
"""

import itertools
import json
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from ..adapters.a2a_card import BINDING, VERSION, WELL_KNOWN
from ..adapters.mcp_lookup import TOOL as LOOKUP_TOOL
from ..adapters.mcp_negotiation import SUBMISSION_KEY

TOOL = "generate_report"

Json: TypeAlias = dict[str, Any]
Said: TypeAlias = tuple[int, Json | None]
"""Status and body."""

_RESULT = {"rows": 3}
_NOT_FOUND: Said = (404, {"error": {"code": 404, "status": "NOT_FOUND", "message": "no such thing"}})
_A2A_STATES = {"working": "WORKING", "completed": "COMPLETED", "cancelled": "CANCELED"}


@dataclass
class Job:
    """Work that is over after a while, unless it was cancelled before."""

    id: str
    key: str
    over_s: float
    cancelled: bool = False

    @property
    def state(self) -> str:
        """working, completed, cancelled."""
        if self.cancelled:
            return "cancelled"
        return "completed" if time.monotonic() >= self.over_s else "working"


class AnswerLost(Exception):
    """It ran, and nobody will hear of it."""


class Jobs:
    """The jobs of one API. `loses`: the answer to the first one is lost."""

    def __init__(self, protocol: str, log: IO[str], pace_s: float, *, loses: bool) -> None:
        self._loses = loses
        self._protocol = protocol
        self._log = log
        self._pace_s = pace_s
        self._by_id: dict[str, Job] = {}
        self._ids = itertools.count(1)

    def start(self, key: str, run: str) -> Job:
        """The job under this key: a repeat is no second one. Raises AnswerLost."""
        known = self.under(key)
        if known is not None:
            return known
        job = Job(f"{self._protocol}-{next(self._ids)}", key, time.monotonic() + self._pace_s)
        self._by_id[job.id] = job
        print(
            json.dumps({"event": "run", "tool": self._protocol, "run": run, "task_id": job.id}),
            file=self._log,
            flush=True,
        )
        if self._loses:
            self._loses = False
            raise AnswerLost
        return job

    def get(self, id_: object) -> Job | None:
        return self._by_id.get(str(id_))

    def under(self, key: str) -> Job | None:
        return next((job for job in self._by_id.values() if job.key == key), None)

    def cancel(self, job: Job) -> None:
        job.cancelled = job.cancelled or job.state == "working"


def _run(said: object) -> str:
    """Which demo it belongs to, by its own word."""
    return str(said.get("run", "")) if isinstance(said, dict) else ""


# -- declared APIs -----------------------------------------------------------------------------------------------------


def http_202(jobs: Jobs, verb: str, path: str, headers: Mapping[str, str], body: Json) -> Said:
    """`POST /jobs` under an `Idempotency-Key`, `GET /jobs?key=`, `GET` and `DELETE /jobs/{id}`."""
    parts = urlsplit(path)
    if (verb, parts.path) == ("POST", "/jobs"):
        return 202, _shown(jobs.start(headers["idempotency-key"], _run(body)))
    if (verb, parts.path) == ("GET", "/jobs"):
        found = jobs.under(parse_qs(parts.query)["key"][0])
        return 200, {"jobs": [] if found is None else [_shown(found)]}
    job = jobs.get(parts.path.removeprefix("/jobs/"))
    if job is None:
        return _NOT_FOUND
    if verb == "DELETE":
        jobs.cancel(job)
    return 200, _shown(job)


def _shown(job: Job) -> Json:
    words = {"working": "running", "completed": "succeeded", "cancelled": "canceled"}
    return {"id": job.id, "status": words[job.state]} | ({"result": _RESULT} if job.state == "completed" else {})


def aip_151(jobs: Jobs, verb: str, path: str, _headers: Mapping[str, str], body: Json) -> Said:
    """`POST /v1/reports:generate` with a `requestId`; operations are got, listed by it and cancelled."""
    parts = urlsplit(path)
    if (verb, parts.path) == ("POST", "/v1/reports:generate"):
        return 200, _operation(jobs.start(body["requestId"], _run(body)))
    if (verb, parts.path) == ("GET", "/v1/operations"):
        found = jobs.under(parse_qs(parts.query)["filter"][0].removeprefix("requestId="))
        return 200, {"operations": [] if found is None else [_operation(found)]}
    name, _, action = parts.path.removeprefix("/v1/operations/").partition(":")
    job = jobs.get(name)
    if job is None:
        return _NOT_FOUND
    if (verb, action) == ("POST", "cancel"):
        jobs.cancel(job)
        return 200, {}
    return 200, _operation(job)


def _operation(job: Job) -> Json:
    ends: dict[str, Json] = {
        "completed": {"response": {"@type": "example/Report", **_RESULT}},
        "cancelled": {"error": {"code": 1}},
    }
    return {"name": f"operations/{job.id}", "done": job.state in ends, **ends.get(job.state, {})}


# -- JSON-RPC ----------------------------------------------------------------------------------------------------------


def a2a(jobs: Jobs, asked: Json) -> Json:
    """The members of a response: `result`, or `error`."""
    params = asked["params"]
    match asked["method"]:
        case "SendMessage":
            message = params["message"]
            said = message["parts"][0].get("data")
            key = message.get("contextId") or message["messageId"]
            return {"result": {"task": _task_of_agent(jobs.start(key, _run(said)))}}
        case "ListTasks":
            found = jobs.under(params["contextId"])
            tasks = [] if found is None else [_task_of_agent(found)]
            return {"result": {"tasks": tasks, "nextPageToken": "", "pageSize": 100, "totalSize": len(tasks)}}
        case "GetTask" | "CancelTask" as method:
            job = jobs.get(params["id"])
            if job is None:
                return {"error": {"code": -32001, "message": "Task not found"}}
            if method == "CancelTask":
                jobs.cancel(job)
            return {"result": _task_of_agent(job)}
        case _:
            return _no_method()


def card(url: str) -> Json:
    """The agent's card."""
    return {
        "name": "Demo reports",
        "description": "Makes reports.",
        "version": "1.0.0",
        "supportedInterfaces": [{"url": url, "protocolBinding": BINDING, "protocolVersion": VERSION}],
        "capabilities": {},
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": [{"id": TOOL, "name": TOOL, "description": "A report of one month.", "tags": []}],
    }


def _task_of_agent(job: Job) -> Json:
    task: Json = {
        "id": job.id,
        "contextId": job.key,
        "status": {"state": f"TASK_STATE_{_A2A_STATES[job.state]}"},
    }
    artifact = {"artifactId": "report", "parts": [{"data": _RESULT}]}
    return task | ({"artifacts": [artifact]} if job.state == "completed" else {})


def mcp_2025(jobs: Jobs, asked: Json) -> Json:
    """As `a2a`. The tool takes calls as tasks; LOOKUP_TOOL finds them by key."""
    params = asked.get("params", {})
    match asked["method"]:
        case "initialize":
            tasks: Json = {"cancel": {}, "requests": {"tools": {"call": {}}}}
            info = {"name": "demo reports", "version": "1"}
            capabilities = {"tools": {}, "tasks": tasks}
            return {"result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}}
        case "tools/list":
            schema = {"type": "object"}
            taken = {"name": TOOL, "inputSchema": schema, "execution": {"taskSupport": "required"}}
            asking = {"name": LOOKUP_TOOL, "inputSchema": schema, "annotations": {"readOnlyHint": True}}
            return {"result": {"tools": [taken, asking]}}
        case "tools/call" if params["name"] == LOOKUP_TOOL:
            found = jobs.under(params["arguments"]["submission_key"])
            absent = {"found": False, "authoritative": True}
            return {"result": _tool_result(absent if found is None else {"found": True, **_task_of_mcp(found)})}
        case "tools/call":
            job = jobs.start(params["_meta"][SUBMISSION_KEY], _run(params["arguments"]))
            return {"result": {"task": _task_of_mcp(job)}}
        case "tasks/get" | "tasks/cancel" | "tasks/result" as method:
            known = jobs.get(params["taskId"])
            if known is None:
                return {"error": {"code": -32602, "message": "no such task"}}
            if method == "tasks/cancel":
                jobs.cancel(known)
            return {"result": _tool_result(_RESULT) if method == "tasks/result" else _task_of_mcp(known)}
        case _:
            return _no_method()


def _task_of_mcp(job: Job) -> Json:
    return {
        "taskId": job.id,
        "status": job.state,
        "createdAt": "2026-11-30T00:00:00Z",
        "lastUpdatedAt": "2026-11-30T00:00:00Z",
        "ttl": None,
        "pollInterval": 1000,
    }


def _tool_result(value: Json) -> Json:
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def _no_method() -> Json:
    return {"error": {"code": -32601, "message": "Method not found"}}


# -- the server --------------------------------------------------------------------------------------------------------


class ApisServer(ThreadingHTTPServer):
    """On a free loopback port, all four: `/mcp`, `/agent`, `/jobs`, `/v1/…`."""

    daemon_threads = True

    def __init__(self, log: IO[str], pace_s: float, *, loses: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        names = ("mcp-2025-11-25", "aip-151", "http-202", "a2a-1.0")
        self.jobs = {name: Jobs(name, log, pace_s, loses=loses) for name in names}
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def say(self, verb: str, path: str, headers: Mapping[str, str], body: Json) -> Said:
        """What is done and answered."""
        if path == "/mcp":
            if verb != "POST" or "id" not in body:
                return (200 if verb == "DELETE" else 202 if verb == "POST" else 405), None
            return self._rpc(body, mcp_2025(self.jobs["mcp-2025-11-25"], body))
        if path == "/agent" and verb == "POST":
            return self._rpc(body, a2a(self.jobs["a2a-1.0"], body))
        if path == WELL_KNOWN:
            return 200, card(f"{self.url}/agent")
        if path.startswith("/jobs"):
            return http_202(self.jobs["http-202"], verb, path, headers, body)
        if path.startswith("/v1/"):
            return aip_151(self.jobs["aip-151"], verb, path, headers, body)
        return _NOT_FOUND

    @staticmethod
    def _rpc(asked: Json, members: Json) -> Said:
        return 200, {"jsonrpc": "2.0", "id": asked["id"], **members}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ApisServer

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            with self.server.lock:
                status, said = self.server.say(self.command, self.path, headers, json.loads(body) if body else {})
        except AnswerLost:
            self.close_connection = True
            return
        content = b"" if said is None else json.dumps(said).encode()
        self.send_response(status)
        if said is not None:
            self.send_header("Content-Type", "application/json")
        if self.path == "/mcp":
            self.send_header("Mcp-Session-Id", "demo")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_DELETE = do_GET  # noqa: N815  the library's names

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  the library's name
        pass


def main() -> None:
    """Bind first, then say the port: nobody can take it in between."""
    with Path(sys.argv[1]).open("w", encoding="utf-8") as file:
        server = ApisServer(file, float(sys.argv[2]), loses=True)
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
