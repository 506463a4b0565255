"""Makes transports and requests for the tests of the wire."""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol

from counterfoil.adapters.contract import (
    Effect,
    Request,
)
from counterfoil.adapters.credentials import Credentials
from counterfoil.adapters.guard import Guard
from counterfoil.adapters.wire import WireTransport
from counterfoil.adapters.wire_aiohttp import AiohttpTransport
from counterfoil.adapters.wire_httpx import HttpxTransport

from .conftest import Connection


class OpenTransport(Protocol):
    """What the fixture `transport` is."""

    def __call__(
        self, guard: Guard | None = None, environ: dict[str, str] | None = None, tls: ssl.SSLContext | None = None
    ) -> AbstractAsyncContextManager[WireTransport]: ...


def opens(kind: type[AiohttpTransport] | type[HttpxTransport]) -> OpenTransport:
    @asynccontextmanager
    async def transport(
        guard: Guard | None = None, environ: dict[str, str] | None = None, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[WireTransport]:
        made = kind(guard or Guard(), Credentials(time.monotonic, environ or {}), tls)
        try:
            yield made
        finally:
            await made.aclose()

    return transport


def post(url: str, body: bytes = b"hello", **changes: Any) -> Request:
    return replace(Request("POST", url, (("X-Mine", "1"),), body, deadline_s=5.0), **changes)


def effect(url: str, body: bytes = b"hello", **changes: Any) -> Request:
    return post(url, body, effect=Effect.SUBMIT, **changes)


def send_by(seconds: float) -> Callable[[], Awaitable[float]]:
    async def hook() -> float:
        return asyncio.get_running_loop().time() + seconds

    return hook


async def ok(connection: Connection) -> None:
    """Answer every request of a connection, as a server with keep-alive does."""
    while await connection.request():
        await connection.answer(b'{"ok":1}', headers="Content-Type: application/json\r\n")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
