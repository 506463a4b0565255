"""The wire over aiohttp.

Where the first byte is: a connector's `connect` returns after the connection and its TLS handshake are up, and the
client writes after it has returned. Raising there left 0 bytes at the server (tested in tests/adapters).

What the client would do by itself and must not: ask idempotent methods again on a connection that died (a DELETE that
is a cancel would be sent twice), follow redirects, keep cookies, unpack bodies, read proxies from the environment.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import aiohttp
import certifi
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

from .credentials import Credentials
from .guard import Guard, origin
from .wire import IDLE_S, MAX_CONNECTIONS, Journey, WireTransport, wire_headers

MAX_HEAD_BYTES = 64 * 1024
"""Of one line of an answer's head."""

LOOK_S = 0.01
"""How often it is looked whether the kernel has taken a piece of a large body (asyncio tells the client alone). What is
small is taken at once."""

_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)


class AiohttpTransport(WireTransport):
    """One target's connections, for one event loop. Made inside it."""

    # ValueError: what can't be written as HTTP, such as a line break in a header.
    errors = (aiohttp.ClientError, OSError, ValueError)

    def __init__(self, guard: Guard, credentials: Credentials, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(guard, credentials)
        tls = tls or default_tls()
        self._reads = _session(_Connector(tls, keepalive_timeout=IDLE_S))
        # An effect never goes over a connection that was idle: 69 of 360 POSTs near the server's idle limit were lost
        # "maybe sent". Here nothing stays idle.
        self._fresh = _session(_Connector(tls, force_close=True))

    async def aclose(self) -> None:
        """Close every connection. What is in flight fails."""
        await self._reads.close()
        await self._fresh.close()

    async def _ask(self, journey: Journey, headers: tuple[tuple[str, str], ...]) -> None:
        if journey.request.effect is not None:
            await _once(self._fresh, journey, headers)
            return
        try:
            await _once(self._reads, journey, headers)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if journey.fresh or not journey.left or journey.status is not None:
                raise
            await _once(self._fresh, journey, headers)


class _Leaving:
    """A request on its way into the client: whom its connection is for, and what came of it."""

    def __init__(self, journey: Journey) -> None:
        self.journey = journey
        self.transport: asyncio.Transport | None = None
        self.refusal: BaseException | None = None

    async def content(self) -> AsyncIterator[bytes]:
        """The body, one piece at a time: the next is looked at when the kernel has the one before."""
        async for piece in self.journey.content():
            yield piece
            while self.transport is not None and self.transport.get_write_buffer_size():  # noqa: ASYNC110  see LOOK_S
                await asyncio.sleep(LOOK_S)
        self.journey.written()


_leaving: ContextVar[_Leaving] = ContextVar("leaving")
"""Of this task: the client hands nothing of ours to its connector."""


async def _once(session: aiohttp.ClientSession, journey: Journey, headers: tuple[tuple[str, str], ...]) -> None:
    """One request; the answer's head and body end up in the journey."""
    request = journey.request
    leaving = _Leaving(journey)
    _leaving.set(leaving)
    whole = False
    try:
        async with session.request(
            request.method,
            request.url,
            headers=wire_headers(request, origin(request.url).netloc, headers),
            data=leaving.content() if request.effect is not None else request.body or None,
            allow_redirects=False,
        ) as response:
            journey.written()
            await journey.read(response.status, _lower(response), aiter(response.content.iter_any()))
            whole = True
    except Exception:
        if leaving.refusal is not None:
            raise leaving.refusal from None  # as it was raised, not as the client tells it
        raise
    finally:
        if not whole and request.effect is not None and leaving.transport is not None:
            leaving.transport.abort()  # a close would first write what is in the buffer


def _lower(response: aiohttp.ClientResponse) -> dict[str, str]:
    told: dict[str, str] = {}
    for raw_name, raw_value in response.raw_headers:
        name, value = raw_name.decode("latin-1").lower(), _text(raw_value)
        told[name] = f"{told[name]}, {value}" if name in told else value
    return told


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


class _Connector(aiohttp.TCPConnector):
    """Connects to the addresses that the guard has judged, and asks before the first byte."""

    def __init__(self, tls: ssl.SSLContext, **more: Any) -> None:
        super().__init__(ssl=tls, limit=MAX_CONNECTIONS, use_dns_cache=False, resolver=_Pinned(), **more)

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  as the client calls it
    ) -> Connection:
        """A connection that may be written on."""
        leaving = _leaving.get()
        journey = leaving.journey
        if leaving.transport is not None:
            raise aiohttp.ServerDisconnectedError("the server closed the connection")  # no second try of the client's
        while True:
            connection = await super().connect(req, traces, timeout)
            transport = connection.transport
            if transport is None:  # a handshake and an end in one packet
                connection.close()
                raise aiohttp.ServerDisconnectedError("the server closed the connection")
            # The client keeps idle ones by name: polled once a second, one would never end, and would go on to where
            # the name pointed once.
            if journey.fresh or transport.get_extra_info("peername")[0] in journey.addresses:
                break
            connection.close()
        leaving.transport = transport
        try:
            await journey.leave(transport.get_extra_info("socket"))
        except BaseException as refusal:
            leaving.refusal = refusal
            connection.close()
            raise
        return connection

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  as the client calls it
    ) -> ResponseHandler:
        """A connection made for this request; `connect` asks for one where none is idle."""
        _leaving.get().journey.fresh = True
        return await super()._create_connection(req, traces, timeout)


class _Pinned(AbstractResolver):
    """Answers with what was judged: a second lookup could say something else."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in _leaving.get().journey.addresses
        ]

    async def close(self) -> None:
        """It holds nothing."""


def _session(connector: _Connector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        auto_decompress=False,
        timeout=_NO_TIMEOUT,
        trust_env=False,
        max_line_size=MAX_HEAD_BYTES,
        max_field_size=MAX_HEAD_BYTES,
    )


def default_tls() -> ssl.SSLContext:
    """Certificates are verified against Mozilla's list, whatever the environment says."""
    return ssl.create_default_context(cafile=certifi.where())
