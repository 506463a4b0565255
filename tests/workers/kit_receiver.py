"""A webhook's receiver on loopback: counts what comes, checks each signature by itself, answers what a test says."""

import base64
import hashlib
import hmac
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes, ok").decode()
WAIT_S = 20.0


@dataclass(frozen=True)
class Hook:
    """One delivery as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed

    def signed_with(self, secret: str) -> bool:
        """As Standard Webhooks tells a receiver to check it; our own signing code is not asked."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        wanted = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return wanted in self.headers["webhook-signature"].split(" ")


Rule = Callable[[Hook], tuple[int, dict[str, str], bytes]]


def taken(_: Hook) -> tuple[int, dict[str, str], bytes]:
    return 204, {}, b""


def saying(status: int, **headers: str) -> Rule:
    return lambda _: (status, {name.replace("_", "-"): value for name, value in headers.items()}, b"")


class Receiver:
    """`rules` maps a path to its answer; without one it is 204. `hooks` is everything that came."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.hooks: list[Hook] = []
        self.rules: dict[str, Rule] = {}
        self._changed = threading.Condition()

    def url(self, path: str = "/hooks") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def came(self, hook: Hook) -> tuple[int, dict[str, str], bytes]:
        with self._changed:
            self.hooks.append(hook)
            self._changed.notify_all()
        return self.rules.get(hook.path, taken)(hook)

    def at(self, path: str = "/hooks") -> list[Hook]:
        with self._changed:
            return [hook for hook in self.hooks if hook.path == path]

    def wait_for(self, count: int, path: str = "/hooks") -> list[Hook]:
        """Until that many deliveries came to a path."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: sum(hook.path == path for hook in self.hooks) >= count, WAIT_S)
        assert arrived, f"{len(self.at(path))} of {count} deliveries came"
        return self.at(path)

    def counts(self, path: str = "/hooks") -> Counter[str]:
        return Counter(hook.id for hook in self.at(path))


@contextmanager
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, said, answer = made.came(Hook(self.path, headers, body))
            self.send_response(status)
            for name, value in {**said, "Content-Length": str(len(answer))}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(answer)
            except OSError:
                self.close_connection = True  # whoever asked has hung up

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that hangs up is one of the tests."""

    with Server(("127.0.0.1", 0), Handler) as server:
        made = Receiver(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
