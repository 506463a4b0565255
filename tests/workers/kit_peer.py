"""The tools server of `kit_server` behind a real socket, whose answers a test can hold back, and a bucket likewise."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from counterfoil.adapters.contract import Request
from counterfoil.workers.bucket import Grant

from .kit_server import TaskServer

PATIENCE_S = 20.0
"""Until a wait-point is called missed."""


class Gate:
    """Open, or shut; counts who has come to it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = True
        self._come = 0

    def shut(self) -> None:
        with self._changed:
            self._open, self._come = False, 0

    def open(self) -> None:
        with self._changed:
            self._open = True
            self._changed.notify_all()

    def pass_through(self) -> None:
        with self._changed:
            self._come += 1
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._open, PATIENCE_S), "nobody opened the gate"

    def wait_for(self, count: int) -> None:
        """Until so many have come since it was shut."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._come >= count, PATIENCE_S), f"only {self._come} of {count} came"


class Peer:
    """`received` holds the bytes of each connection, in order of their arrival. `gate` stands before each answer to a
    `tools/call`, behind the server's doing."""

    def __init__(self) -> None:
        self.tasks = TaskServer()
        self.gate = Gate()
        self.received: list[int] = []
        self.url = ""
        self._lock = threading.Lock()

    def serve(self, reader: Any, writer: Any) -> None:
        with self._lock:
            place = len(self.received)
            self.received.append(0)
        while head := reader.readline():
            length = 0
            while line := reader.readline():
                head += line
                if line == b"\r\n":
                    break
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            body = reader.read(length)
            with self._lock:
                self.received[place] += len(head) + len(body)
                answer = self.tasks.answer(Request("POST", self.url, body=body))
            if json.loads(body)["method"] == "tools/call":
                self.gate.pass_through()
            fields = answer.headers | {"content-length": str(len(answer.body))}  # type: ignore[operator]
            lines = [f"HTTP/1.1 {answer.status} OK", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
            writer.write("\r\n".join(lines).encode() + answer.body)
            writer.flush()


@contextmanager
def serving() -> Iterator[Peer]:
    peer = Peer()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(ConnectionError):  # a worker that ends closes its connections
                peer.serve(self.rfile, self.wfile)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        peer.url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield peer
        finally:
            peer.gate.open()
            server.shutdown()
            thread.join()


class GatedBucket:
    """Grants everything, once its gate lets it."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.closed: dict[str, float] = {}

    def take(self, target: str, lane: str, n: int) -> Grant:
        self.gate.pass_through()
        return Grant(n, 0.0)

    def close(self, target: str, seconds: float) -> None:
        self.closed[target] = seconds
