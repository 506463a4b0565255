"""An HTTP server around an application of ours: without TLS, behind a proxy or inside a cluster, until it is told to
stop."""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from ..ledger.errors import CounterfoilError

MAX_CONNECTIONS = 64
MAX_HEAD_BYTES = 16 * 1024
KEEP_ALIVE_S = 5
GRACE_S = 10
"""How long a stop waits for requests that are being answered; their senders come again."""


class ListenError(CounterfoilError):
    """The address can't be listened on."""

    code = "E_LISTEN"


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """A listening socket and its URL without a path; port 0 takes any that is free. Raises ListenError."""
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ListenError(
            f"{host}:{port} can't be listened on: {error.strerror or error}.",
            next_step="Name another address: --host ADDRESS --port N.",
        ) from None
    address, bound, *_ = listening.getsockname()
    where = f"[{address}]" if listening.family is socket.AF_INET6 else address
    return listening, f"http://{where}:{bound}"


def serve(app: Callable[[Any, Any, Any], Awaitable[None]], listening: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT; a second one doesn't wait for what is being answered."""
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    asyncio.run(_Server(config).serve(sockets=[listening]))


class _Server(uvicorn.Server):
    """Told to stop by us. The stock one raises the signal once more after it has stopped, which would end this process
    with the signal's code instead of 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        yield

    def _stop(self) -> None:
        self.force_exit = self.should_exit  # the second one doesn't wait
        self.should_exit = True
