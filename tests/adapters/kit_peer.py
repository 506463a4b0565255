"""Drives adapters over the wire against a server in another process, as the loop does."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

from counterfoil.adapters.contract import (
    Adapter,
    Call,
    Endpoint,
    Exchange,
    RemoteTask,
    Reply,
    Request,
)
from counterfoil.adapters.credentials import Credentials
from counterfoil.adapters.guard import Guard
from counterfoil.adapters.outcomes import Hint, Observation, TaskStarted
from counterfoil.adapters.wire import run
from counterfoil.adapters.wire_aiohttp import AiohttpTransport

from .kit import free_port

T = TypeVar("T")
STARTUP_S = 30.0


@contextlib.contextmanager
def running(script: Path) -> Iterator[Endpoint]:
    """A server program that is started as `script PORT` and listens on loopback at /mcp."""
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, str(script), str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until_s = time.monotonic() + STARTUP_S
        while True:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert server.poll() is None, "the server ended while it started"
            assert time.monotonic() < until_s, "the server does not listen"
            time.sleep(0.05)  # another process starts: nothing else tells when it listens
        yield Endpoint("peer", f"http://127.0.0.1:{port}/mcp")
    finally:
        server.kill()
        server.wait()


class Peer:
    """One worker that talks to a server: one transport, and an intent for each effect."""

    def __init__(self, adapter: Adapter, endpoint: Endpoint, transport: AiohttpTransport) -> None:
        self.adapter = adapter
        self.endpoint = endpoint
        self.intents = 0
        self.hints: list[Hint] = []
        self._transport = transport

    async def _commit_intent(self) -> float:
        self.intents += 1
        return asyncio.get_running_loop().time() + 10

    async def _send(self, request: Request) -> Reply:
        hook = None if request.effect is None else self._commit_intent
        reply = await self._transport.send(request, before_first_byte=hook)
        self.hints += self.adapter.hints(reply)
        return reply

    def run(self, exchange: Exchange[T]) -> Awaitable[T]:
        return run(exchange, self._send)

    async def submit(self, tool: str, arguments: bytes = b"{}", session: bytes | None = None) -> object:
        call = Call(tool, arguments, str(uuid.uuid4()), 20.0, request_id=str(uuid.uuid4()), session=session)
        return await self.run(self.adapter.submit(self.endpoint, call))

    async def task(self, tool: str, arguments: bytes = b"{}", session: bytes | None = None) -> RemoteTask:
        started = await self.submit(tool, arguments, session)
        assert isinstance(started, TaskStarted)
        assert started.interval_ms
        assert started.created_at
        return RemoteTask(started.task_id, session=session)

    async def poll_past(self, task: RemoteTask, *words: str) -> Observation:
        """Read until the status is none of these."""
        async with asyncio.timeout(20):
            while True:
                observed = await self.run(self.adapter.poll(self.endpoint, task))
                if getattr(observed, "status", None) not in words:
                    return observed
                await asyncio.sleep(0.05)  # another process works: the protocol has only polls


def talk(adapter: Adapter, endpoint: Endpoint, conversation: Callable[[Peer], Awaitable[None]]) -> None:
    """One worker's life: a loop, a transport, a conversation."""

    async def main() -> None:
        async with worker(adapter, endpoint) as peer:
            await conversation(peer)

    asyncio.run(main())


@contextlib.asynccontextmanager
async def worker(adapter: Adapter, endpoint: Endpoint) -> AsyncIterator[Peer]:
    transport = AiohttpTransport(Guard(), Credentials(time.monotonic))
    try:
        yield Peer(adapter, endpoint, transport)
    finally:
        await transport.aclose()
