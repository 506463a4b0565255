"""The wire over httpx, used below its client.

Where the first byte is: httpcore calls the trace `http11.send_request_headers.started` after the connection and its TLS
handshake are up and before the first byte is written. Raising there left 0 bytes at the server (measured, and tested in
tests/adapters).
"""

import contextlib
import ssl

import httpx

from .credentials import Credentials
from .guard import Guard
from .wire import CONNECT_S, IDLE_S, MAX_CONNECTIONS, Journey, WireTransport, wire_headers


class HttpxTransport(WireTransport):
    """One target's connections, for one event loop."""

    errors = (httpx.HTTPError, httpx.InvalidURL)

    def __init__(self, guard: Guard, credentials: Credentials, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(guard, credentials)
        tls = tls or httpx.create_ssl_context(trust_env=False)
        self._reads = _pool(tls, keep_alive=MAX_CONNECTIONS)
        # An effect never goes over a connection that was idle: 69 of 360 POSTs near the server's idle limit were lost
        # "maybe sent". Here nothing stays idle.
        self._fresh = _pool(tls, keep_alive=0)

    async def aclose(self) -> None:
        """Close every connection. What is in flight fails."""
        await self._reads.aclose()
        await self._fresh.aclose()

    async def _ask(self, journey: Journey, headers: tuple[tuple[str, str], ...]) -> None:
        if journey.request.effect is not None:
            await _dial(self._fresh, journey, headers)
            return
        try:
            await _dial(self._reads, journey, headers)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            if journey.fresh or journey.status is not None:
                raise
            await _dial(self._fresh, journey, headers)


async def _dial(pool: httpx.AsyncHTTPTransport, journey: Journey, headers: tuple[tuple[str, str], ...]) -> None:
    """Ask the first address that takes the connection. Nothing has left before one did, so this repeats no request."""
    *others, last = journey.addresses
    for address in others:
        with contextlib.suppress(httpx.ConnectError, httpx.ConnectTimeout):
            await _once(pool, journey, address, headers, connect_s=CONNECT_S)
            return
    await _once(pool, journey, last, headers, connect_s=None)


async def _once(
    pool: httpx.AsyncHTTPTransport,
    journey: Journey,
    address: str,
    headers: tuple[tuple[str, str], ...],
    connect_s: float | None,
) -> None:
    """One request to one address; the answer's head and body end up in the journey."""
    url = httpx.URL(journey.request.url)
    trace = _Trace(journey)
    request = httpx.Request(
        journey.request.method,
        url.copy_with(host=address),
        headers=wire_headers(journey.request, url.netloc.decode("ascii"), headers),
        content=journey.content(),
        extensions={
            "trace": trace.__call__,
            "sni_hostname": url.raw_host.decode("ascii"),
            "timeout": {"connect": connect_s},
        },
    )
    response = await pool.handle_async_request(request)
    try:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        told = {name.lower(): value for name, value in response.headers.items()}
        await journey.read(response.status_code, told, aiter(response.stream))
    finally:
        await response.aclose()


class _Trace:
    """httpcore's progress report; what is raised here ends the request."""

    def __init__(self, journey: Journey) -> None:
        self._journey = journey
        self._stream: object = None

    async def __call__(self, event: str, info: dict[str, object]) -> None:
        if event == "connection.connect_tcp.complete":
            self._journey.fresh = True
            self._stream = info["return_value"]
        elif event == "http11.send_request_headers.started":
            stream = self._stream
            await self._journey.leave(
                None if stream is None else stream.get_extra_info("socket")  # type: ignore[attr-defined]  # untyped
            )
        elif event == "http11.receive_response_headers.started":
            self._journey.written()


def _pool(tls: ssl.SSLContext, keep_alive: int) -> httpx.AsyncHTTPTransport:
    limits = httpx.Limits(
        max_connections=MAX_CONNECTIONS, max_keepalive_connections=keep_alive, keepalive_expiry=IDLE_S
    )
    return httpx.AsyncHTTPTransport(verify=tls, trust_env=False, http1=True, http2=False, limits=limits, retries=0)
