"""The exporter as a process: GET /metrics for Prometheus, GET /healthz for whoever restarts it."""

import asyncio
import time

from prometheus_client.exposition import choose_encoder

from ..ledger.gauges import Gauges
from ..workers.hooks import Receive, Scope, Send
from ..workers.metrics import LedgerCollector
from ..workers.settings import Settings
from .exits import Exit
from .logs import log_to_stderr
from .output import say
from .serving import listen, serve


def run_exporter(settings: Settings, host: str, port: int) -> Exit:
    """Listen until SIGTERM or SIGINT. Starts without a ledger too: that it is away is what a metric says.

    Raises SettingsError, ListenError.
    """
    gauges = Gauges(settings.require_database_url(), settings.fleet)
    log_to_stderr(settings)
    listening, url = listen(host, port)
    say(f"exporter ready: {url}/metrics, fleet {settings.fleet}.")
    try:
        serve(MetricsApp(LedgerCollector(gauges, time.monotonic)), listening)
    finally:
        gauges.close()
    return Exit.OK


class MetricsApp:
    """The metrics over HTTP. The ledger is read in a thread, one reading at a time: who asks meanwhile waits for it and
    gets the same; /healthz is answered by the loop and asks nobody."""

    def __init__(self, collector: LedgerCollector) -> None:
        self._collector = collector
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"metrics are asked for over HTTP, not over {scope['type']}")
        status, kind, body = 404, "text/plain; charset=utf-8", b""
        if scope["path"] == "/healthz":
            status = 200
        elif scope["path"] == "/metrics":
            accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
            encode, kind = choose_encoder(accept.decode("latin-1"))
            async with self._one_at_a_time:
                status, body = 200, await asyncio.to_thread(encode, self._collector)
        headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
