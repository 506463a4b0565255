"""A loopback server that speaks raw bytes: it plays one script a connection and counts what it was sent."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import pytest


@dataclass(eq=False)
class Connection:
    """One accepted connection: what came, and the means to answer."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    received: bytearray = field(default_factory=bytearray)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    reset: bool = False

    async def head(self) -> bytes:
        """The next request's head; empty when the client hung up."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            self.received += error.partial
            return b""
        self.received += head
        return head

    async def request(self) -> bytes:
        """The next whole request: head and body."""
        head = await self.head()
        length = 0
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = await self.reader.readexactly(length)
        self.received += body
        return head + body

    async def rest(self) -> None:
        """Everything that still comes until the client hangs up or resets."""
        try:
            while chunk := await self.reader.read(65536):
                self.received += chunk
        except ConnectionError:
            self.reset = True

    async def answer(self, body: bytes = b"{}", status: str = "200 OK", headers: str = "") -> None:
        await self.say(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body)

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


Script = Callable[[Connection], Awaitable[None]]


@dataclass(eq=False)
class Served:
    url: str
    port: int
    connections: list[Connection]

    @property
    def received(self) -> bytes:
        return b"".join(bytes(connection.received) for connection in self.connections)


class ServeRaw(Protocol):
    def __call__(self, script: Script, tls: ssl.SSLContext | None = None) -> AbstractAsyncContextManager[Served]: ...


@pytest.fixture
def serve_raw() -> ServeRaw:
    @asynccontextmanager
    async def serve(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[Served]:
        served = Served("", 0, [])
        tasks: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = Connection(reader, writer)
            served.connections.append(connection)
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                    await script(connection)
            finally:
                connection.ended.set()
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
        served.port = server.sockets[0].getsockname()[1]
        served.url = f"http://127.0.0.1:{served.port}/mcp"
        async with server:
            yield served
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return serve


@pytest.fixture(params=["aiohttp", "httpx"])
def transport(request: pytest.FixtureRequest) -> object:
    """Opens transports of one kind: whatever is claimed of the wire holds of each."""
    from . import kit

    return kit.opens(kit.AiohttpTransport if request.param == "aiohttp" else kit.HttpxTransport)
