"""The background responses of the OpenAI API, scripted by its published reference: requests in, exact bytes out.

It dedupes nothing. A response stays where a test puts it.
"""

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Answer = tuple[int, Any]
Rule = Callable[[], Answer | None]
MODEL = "deep-research-1"
LOST = 0
"""The status of an answer that never comes: the connection is closed instead."""


def error(status: int, message: str, kind: str = "invalid_request_error") -> Answer:
    return status, {"error": {"message": message, "type": kind, "param": None, "code": None}}


class Responses:
    """`rules` are what a test puts before the answer to a `VERB /path`."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.bodies: list[Json] = []
        self.headers: list[Mapping[str, str]] = []
        self.responses: dict[str, Json] = {}
        self.rules: dict[str, Rule] = {}
        self._ids = itertools.count(1)

    def set(self, response_id: str, status: str, **members: Any) -> None:
        self.responses[response_id] |= {"status": status} | members

    def complete(self, response_id: str, text: str) -> None:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        self.set(response_id, "completed", output=[{"type": "message", "role": "assistant", "content": content}])

    def count(self, asked: str) -> int:
        return sum(one.startswith(asked) for one in self.asked)

    def answer(self, verb: str, path: str, body: Json) -> Answer:
        asked = f"{verb} {path}"
        self.asked.append(asked)
        self.bodies.append(body)
        rule = self.rules.get(asked)
        return (rule() if rule is not None else None) or self.served(verb, path, body)

    def served(self, verb: str, path: str, body: Json) -> Answer:
        match [verb, *path.strip("/").split("/")]:
            case ["GET", "v1", "models", model]:
                found = {"id": model, "object": "model", "created": 1, "owned_by": "openai"}
                return (200, found) if model == MODEL else error(404, f"The model '{model}' does not exist")
            case ["POST", "v1", "responses"]:
                return self._created(body)
            case ["GET", "v1", "responses", response_id]:
                return self._known(response_id)
            case ["POST", "v1", "responses", response_id, "cancel"]:
                if response_id in self.responses and self.responses[response_id]["status"] in ("queued", "in_progress"):
                    self.set(response_id, "cancelled")
                return self._known(response_id)
            case _:
                return error(404, "Unknown request URL")

    def _created(self, body: Json) -> Answer:
        response_id = f"resp_{next(self._ids)}"
        self.responses[response_id] = {
            "id": response_id,
            "object": "response",
            "created_at": 1741386163,
            "status": "queued",
            "background": body["background"],
            "error": None,
            "incomplete_details": None,
            "metadata": body["metadata"],
            "model": body["model"],
            "output": [],
        }
        return 200, self.responses[response_id]

    def _known(self, response_id: str) -> Answer:
        found = self.responses.get(response_id)
        return (200, found) if found else error(404, f"Response with id '{response_id}' not found.")


@contextmanager
def serving() -> Iterator[Responses]:
    """On loopback, on a thread of its own."""
    api, lock = Responses(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._say("GET", {})

        def do_POST(self) -> None:
            self._say("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _say(self, verb: str, asked: Json) -> None:
            with lock:
                api.headers.append(dict(self.headers))
                status, answer = api.answer(verb, self.path, asked)
            if status == LOST:
                self.close_connection = True
                return
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        api.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
