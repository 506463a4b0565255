"""The callbacks' door as a process: an HTTP server around `workers.hooks`, without TLS and behind a proxy."""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from ..adapters.credentials import Credentials
from ..workers.hooks import HooksApp, HooksError, Waker, load_hooks
from ..workers.settings import Settings
from ..workers.targets import load_targets
from .exits import Exit
from .output import say
from .preflight import check_ledger

MAX_CONNECTIONS = 64
MAX_HEAD_BYTES = 16 * 1024
KEEP_ALIVE_S = 5
GRACE_S = 10
"""How long a stop waits for callbacks that are being taken; their senders come again."""


def run_hooks(settings: Settings, hooks_file: Path, host: str, port: int) -> Exit:
    """Listen until SIGTERM or SIGINT.

    Raises SettingsError, LedgerUnavailable, SchemaOutdated, RecoverFirst, InputRefused (no such fleet), TargetsError,
    HooksError (the file, or an address that can't be listened on).
    """
    check_ledger(settings)
    targets = load_targets(settings.targets_file)
    hooks = load_hooks(hooks_file, targets)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # what it says once a start is no news
    listening = _listen(host, port)
    waker = Waker(settings.require_database_url(), targets, fleet=settings.fleet)
    app = HooksApp(hooks, targets, waker.wake, Credentials(time.monotonic), time.monotonic)
    address, bound, *_ = listening.getsockname()
    where = f"[{address}]:{bound}" if listening.family is socket.AF_INET6 else f"{address}:{bound}"
    say(f"hooks ready: http://{where}/hooks/TARGET, fleet {settings.fleet}, targets {', '.join(hooks)}.")
    try:
        asyncio.run(_serve(app, listening))
    finally:
        waker.close()
    return Exit.OK


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise HooksError(
            f"{host}:{port} can't be listened on: {error.strerror or error}.",
            next_step="Name another address: --host ADDRESS --port N.",
        ) from None


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


async def _serve(app: HooksApp, listening: socket.socket) -> None:
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
    await _Server(config).serve(sockets=[listening])
