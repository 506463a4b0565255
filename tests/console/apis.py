"""The demo's own servers, on loopback and on a thread: `aip-151`, `http-202`, A2A, MCP 2025-11-25 with tasks."""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from counterfoil.console.demo_apis import ApisServer


@contextmanager
def serving() -> Iterator[tuple[ApisServer, io.StringIO]]:
    """The server, and what it started."""
    book = io.StringIO()
    with ApisServer(book, 0.0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server, book
        finally:
            server.shutdown()
            thread.join()
