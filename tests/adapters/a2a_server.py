"""An A2A 1.0 agent by the protocol's text: requests in, exact bytes out, and its own count of what it ran.

It dedupes nothing, keeps the contextId that a client chose, and takes a message to a task that waits as its answer.
"""

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from counterfoil.adapters.contract import Answered, Request

AT = "2026-11-29T10:00:00.000Z"
PATH = "/agent"
LOST = 0
"""The status of an answer that never comes: the connection is closed instead."""
Json = dict[str, Any]
Rule = Callable[[Json], Answered | None]


def card(url: str, **members: Any) -> Json:
    """An agent card as people write them, with two skills."""
    return {
        "name": "Reports",
        "description": "Makes reports.",
        "version": "1.2.0",
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": False, "pushNotifications": True},
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": [{"id": name, "name": name, "description": name, "tags": []} for name in ("generate", "publish")],
    } | members


def question(text: str, message_id: str | None = "q-1") -> Json:
    named = {} if message_id is None else {"messageId": message_id}
    return {"role": "ROLE_AGENT", "parts": [{"text": text}], **named}


class Agent:
    """`rules` are what a test puts before the answer to a method; the card's own method is "card"."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.card = card(url)
        self.asked: list[str] = []
        self.bodies: list[Json] = []
        self.headers: list[Mapping[str, str]] = []
        self.tasks: dict[str, Json] = {}
        self.runs: list[str] = []
        """Contexts of the messages that started something: each is an effect."""
        self.rules: dict[str, Rule] = {}
        self.first_state = "WORKING"
        self._ids = itertools.count(1)

    # -- what a test does to it ----------------------------------------------------------------------------------------

    def set(self, task_id: str, state: str, message: Json | None = None) -> None:
        task = self.tasks[task_id]
        if task["status"].get("message"):
            task["history"].append(task["status"]["message"])
        task["status"] = {"state": f"TASK_STATE_{state}", "timestamp": AT} | ({"message": message} if message else {})

    def complete(self, task_id: str, data: Any = None) -> None:
        """Over, with one artifact, or without any."""
        self.set(task_id, "COMPLETED")
        if data is not None:
            self.tasks[task_id]["artifacts"] = [{"artifactId": "a-1", "name": "report", "parts": [{"data": data}]}]

    def count(self, method: str) -> int:
        return self.asked.count(method)

    # -- what it answers -----------------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Answered:
        if request.method == "GET":
            self.asked.append("card")
            rule = self.rules.get("card")
            found = rule({"url": request.url}) if rule is not None else None
            return found or self._card(request.url)
        asked: Json = json.loads(request.body)
        self.asked.append(asked["method"])
        self.bodies.append(asked)
        self.headers.append(dict(request.headers))
        rule = self.rules.get(asked["method"])
        return (rule(asked) if rule is not None else None) or self._rpc(asked)

    def _card(self, url: str) -> Answered:
        if urlsplit(url).path != "/.well-known/agent-card.json":
            return Answered(404, {"content-type": "text/html"}, b"<html>not here</html>")
        return Answered(200, {"content-type": "application/json"}, json.dumps(self.card).encode())

    def _rpc(self, asked: Json) -> Answered:
        params = asked["params"]
        match asked["method"]:
            case "SendMessage":
                return self._sent(asked, params)
            case "GetTask":
                return self._of_task(asked, lambda task: self._shown(task, params.get("historyLength")))
            case "CancelTask":
                return self._of_task(asked, self._cancelled)
            case "ListTasks":
                found = [one for one in self.tasks.values() if one["contextId"] == params["contextId"]]
                shown = [{k: v for k, v in self._shown(one, 0).items() if k != "artifacts"} for one in found]
                page = {"tasks": shown, "nextPageToken": "", "pageSize": 100, "totalSize": len(shown)}
                return result(asked, page)
            case _:
                return error(asked, -32601, "Method not found")

    def _sent(self, asked: Json, params: Json) -> Answered:
        message = params["message"]
        known = message.get("taskId")
        if known is not None:
            return self._of_task(asked, lambda _: {"task": self._replied(known, message)})
        task_id, context = f"task-{next(self._ids)}", message.get("contextId") or f"context-{len(self.tasks)}"
        self.runs.append(context)
        status = {"state": f"TASK_STATE_{self.first_state}", "timestamp": AT}
        self.tasks[task_id] = {"id": task_id, "contextId": context, "status": status, "history": [message]}
        return result(asked, {"task": self._shown(self.tasks[task_id], 0)})

    def _replied(self, task_id: str, message: Json) -> Json:
        self.set(task_id, "WORKING")
        self.tasks[task_id]["history"].append(message)
        return self._shown(self.tasks[task_id], 0)

    def _cancelled(self, task: Json) -> Json:
        self.set(task["id"], "CANCELED")
        return self._shown(task, 0)

    def _of_task(self, asked: Json, act: Callable[[Json], Json]) -> Answered:
        params = asked["params"]
        task = self.tasks.get(params.get("id") or params["message"].get("taskId"))
        return error(asked, -32001, "Task not found") if task is None else result(asked, act(task))

    @staticmethod
    def _shown(task: Json, history: int | None) -> Json:
        """ProtoJSON leaves empty lists out."""
        last = task["history"] if history is None else task["history"][-history:] if history else []
        rest = {name: value for name, value in task.items() if name != "history"}
        return rest | ({"history": last} if last else {})


def result(asked: Json, value: Any) -> Answered:
    return _response(asked, {"result": value})


def error(asked: Json, code: int, message: str = "no") -> Answered:
    """Errors come under HTTP 200, with a list of details."""
    return _response(asked, {"error": {"code": code, "message": message, "data": [{"reason": "WHY"}]}})


def _response(asked: Json, members: Json) -> Answered:
    body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], **members}).encode()
    return Answered(200, {"content-type": "application/json"}, body)


@contextmanager
def serving() -> Iterator[Agent]:
    """An agent on loopback, on a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._say(Request("GET", self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._say(Request("POST", self.path, tuple(self.headers.items()), body))

        def _say(self, request: Request) -> None:
            with lock:
                answer = agent.answer(request)
            if answer.status == LOST:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None: ...

    lock = threading.Lock()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        agent = Agent(f"http://127.0.0.1:{server.server_port}{PATH}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield agent
        finally:
            server.shutdown()
            thread.join()
