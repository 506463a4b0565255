"""The one door to the network: sends a `Request`, keeps the answer's exact bytes, knows whether a byte has left.

The loop knows the port `Transport`. What every transport keeps to stands here: deadlines, caps, pins, the hook before
the first byte, evidence before the return. What a client library has to do with it stands in `wire_httpx.py` and
`wire_aiohttp.py`; both are used without redirects, cookies, proxies, retries and log lines of their own.
"""

import asyncio
import contextlib
import socket
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import ClassVar, Protocol, TypeAlias, TypeVar

from .contract import MAX_REQUESTS_PER_EXCHANGE, Answered, Exchange, NoAnswer, Reply, Request, Sent
from .credentials import CredentialError, Credentials
from .guard import AddressRefused, Guard
from .sse import SseParser, is_stream

MAX_CONNECTIONS = 10
"""Of each kind (reads, effects), so that a slow server takes no more than its share of a process. httpcore walks all of
them at each request: 644 us with 10, 2,463 us with 50."""

START_S = 10.0
"""For an effect: slot, credential, name lookup, connection and handshake, before its hook is asked."""

CONNECT_S = 3.0
"""To one address while the name has others."""

IDLE_S = 4.0
"""uvicorn, httpx and fastmcp all close idle connections after 5 s: a read leaves them alone before that."""

STREAM_END_S = 0.05
"""How long a read waits for a stream to end once its answer is there, before it gives the connection up."""

WRITE_BYTES = 16 * 1024

BeforeFirstByte: TypeAlias = Callable[[], Awaitable[float]]
"""Commits the intent; returns `send_by` on the loop's clock (monotonic seconds), or raises IntentRefused."""

OnAnswer: TypeAlias = Callable[[Answered | NoAnswer], Coroutine[object, object, None]]
"""Stores the evidence. The connection's slot stays taken until it has returned."""

T = TypeVar("T")


class IntentRefused(Exception):
    """Raised by the hook: the intent was not committed, so not one byte may leave."""


class Transport(Protocol):
    """What the loop needs of a network: one target's connections, for one event loop."""

    async def send(
        self,
        request: Request,
        *,
        credential: str = "",
        before_first_byte: BeforeFirstByte | None = None,
        on_answer: OnAnswer | None = None,
    ) -> Answered | NoAnswer: ...

    async def aclose(self) -> None: ...


async def run(exchange: Exchange[T], send: Callable[[Request], Awaitable[Reply]]) -> T:
    """Drive an exchange to its outcome. Raises RuntimeError for an adapter that never comes to an end or acts twice."""
    effects = 0
    try:
        request = next(exchange)
        for _ in range(MAX_REQUESTS_PER_EXCHANGE):
            effects += request.effect is not None
            if effects > 1:
                raise RuntimeError("an exchange asked for a second effect: one intent covers one request")
            request = exchange.send(await send(request))
    except StopIteration as stop:
        outcome: T = stop.value
        return outcome
    finally:
        exchange.close()
    raise RuntimeError(f"an exchange asked for more than {MAX_REQUESTS_PER_EXCHANGE} requests")


class WireTransport(ABC):
    """What transports have in common. Deadlines, caps and pins as SPEC sections 1 and 3 ask."""

    errors: ClassVar[tuple[type[Exception], ...]]
    """What the client raises for what a server or the network did."""

    def __init__(self, guard: Guard, credentials: Credentials) -> None:
        self._guard = guard
        self._credentials = credentials
        self._read_slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._effect_slots = asyncio.Semaphore(MAX_CONNECTIONS)

    async def send(
        self,
        request: Request,
        *,
        credential: str = "",
        before_first_byte: BeforeFirstByte | None = None,
        on_answer: OnAnswer | None = None,
    ) -> Answered | NoAnswer:
        """One request, one reply; never raises for what a server or the network did.

        `credential` is a reference. An effect needs `before_first_byte`, awaited once the connection is up. `on_answer`
        is awaited with whatever a server said (not with `NoAnswer(sent=NO)`), beyond the reach of deadlines and of the
        cancellation of this task. Cancelling this task closes the connection. Other exceptions of the hook pass
        through; nothing has left then either.
        """
        if (request.effect is None) != (before_first_byte is None):
            raise ValueError("an effect needs a hook that commits its intent; a read has none")
        slots = self._read_slots if request.effect is None else self._effect_slots
        journey = Journey(request, before_first_byte)
        if not await journey.take(slots):
            return journey.no_answer("no connection was free in time")
        try:
            reply = await self._travel(journey, credential)
            if credential and isinstance(reply, Answered) and reply.status == 401:
                self._credentials.refused(credential)
            if on_answer is not None and not (isinstance(reply, NoAnswer) and reply.sent is Sent.NO):
                await _undisturbed(on_answer(reply))
            return reply
        finally:
            slots.release()

    async def _travel(self, journey: "Journey", credential: str) -> Answered | NoAnswer:
        try:
            async with asyncio.timeout_at(journey.until_s) as journey.timer:
                headers = journey.request.headers
                if credential:
                    headers = (*headers, ("Authorization", await self._credentials.authorization(credential)))
                journey.addresses = await self._addresses(journey.request.url)
                await self._ask(journey, headers)
        except TimeoutError:
            if journey.timer is None or not journey.timer.expired():
                raise  # the hook's own
            return journey.cut(_TOO_LATE if journey.writing else "the deadline passed")
        except (IntentRefused, AddressRefused, CredentialError, SendByPassed, Unresolved, BadBody) as error:
            return journey.cut(str(error))
        except self.errors as error:
            return journey.cut(_TOO_LATE if journey.too_late else str(error) or type(error).__name__)
        return journey.answered()

    async def _addresses(self, url: str) -> tuple[str, ...]:
        try:
            return await self._guard.addresses(url)
        except OSError as error:
            raise Unresolved(f"the host's name can't be resolved: {error.strerror}") from None

    @abstractmethod
    async def _ask(self, journey: "Journey", headers: tuple[tuple[str, str], ...]) -> None:
        """One request to one of the journey's addresses, and of a read a second one, on a fresh connection, where the
        server closed the idle connection as we reached for it. Raises `errors`, and what the hook raises."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close every connection. What is in flight fails."""


_TOO_LATE = "send_by passed while the request was being written"


class SendByPassed(Exception):
    """No byte may leave any more."""


class Unresolved(Exception):
    """The name server did not answer, or knows no such name."""


class BadBody(Exception):
    """The body is over the cap, or packed in a way that was not asked for."""


class Journey:
    """Where one request is on its way. `left`: a byte of it may have left; the transport says when."""

    __slots__ = (
        "_before_first_byte",
        "_now_s",
        "_send_by_s",
        "_socket",
        "addresses",
        "body",
        "fresh",
        "headers",
        "left",
        "request",
        "status",
        "timer",
        "too_late",
        "until_s",
        "writing",
    )

    def __init__(self, request: Request, before_first_byte: BeforeFirstByte | None) -> None:
        self.request = request
        self.addresses: tuple[str, ...] = ()
        self.fresh = False
        """The connection was made for this request."""
        self.left = False
        self.writing = False
        self.too_late = False
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self.body = bytearray()
        self.timer: asyncio.Timeout | None = None
        self._before_first_byte = before_first_byte
        self._socket: socket.socket | None = None
        self._send_by_s = float("inf")
        self._now_s = asyncio.get_running_loop().time
        self.until_s = self._now_s() + (request.deadline_s if before_first_byte is None else START_S)

    async def take(self, slots: asyncio.Semaphore) -> bool:
        if not slots.locked():
            return await slots.acquire()
        try:
            async with asyncio.timeout_at(self.until_s):
                return await slots.acquire()
        except TimeoutError:
            return False

    def no_answer(self, why: str) -> NoAnswer:
        return NoAnswer(Sent.MAYBE if self.left else Sent.NO, why, bytes(self.body))

    def answered(self) -> Answered:
        assert self.status is not None
        return Answered(self.status, self.headers, bytes(self.body))

    def cut(self, why: str) -> Answered | NoAnswer:
        """What stands when the exchange broke off. A status other than 2xx says what it says without its body."""
        return self.answered() if self.status is not None and not 200 <= self.status < 300 else self.no_answer(why)

    async def leave(self, connected: socket.socket | None) -> None:
        """The connection is up, handshake included, and the first byte is next. An effect commits its intent here; what
        is raised leaves nothing at the server."""
        if self._before_first_byte is not None:
            await self._commit_intent(connected, self._before_first_byte)
        self.left = True

    async def _commit_intent(self, connected: socket.socket | None, before_first_byte: BeforeFirstByte) -> None:
        assert self.timer is not None
        if not self.fresh:
            raise IntentRefused("the pool offered a connection that was idle")
        if self.left:
            raise IntentRefused("an effect is sent once")
        self.timer.reschedule(None)  # the hook bounds itself: a commit cut short here would have an unknown outcome
        self._send_by_s = await before_first_byte()
        left_s = self._send_by_s - self._now_s()
        if left_s <= 0:
            raise SendByPassed("send_by passed before the first byte")
        self.writing = True
        self.until_s = self._now_s() + self.request.deadline_s
        self.timer.reschedule(min(self._send_by_s, self.until_s))
        self._socket = connected
        if connected is not None:
            # The kernel gives up, too: bytes in its buffer don't leave after send_by. Until the last byte is written a
            # close throws away what is left instead of sending it.
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, max(1, int(left_s * 1000)))
            self._linger(on=True)

    def written(self) -> None:
        """The last byte is with the kernel."""
        if self.writing and self.timer is not None:
            self.writing = False
            self._linger(on=False)
            self.timer.reschedule(self.until_s)

    def _linger(self, *, on: bool) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # the peer may have reset it already
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", int(on), 0))

    async def content(self) -> AsyncIterator[bytes]:
        """The body in pieces, each looked at before it goes out."""
        body = self.request.body
        for start in range(0, len(body), WRITE_BYTES):
            if self._now_s() >= self._send_by_s:
                self.too_late = True
                raise SendByPassed(_TOO_LATE)
            yield body[start : start + WRITE_BYTES]

    async def read(self, status: int, headers: Mapping[str, str], chunks: AsyncIterator[bytes]) -> None:
        """Take the body; an event stream until the request has what it came for. `headers`: lower-case names."""
        self.status, self.headers = status, headers
        unpack = _unpacker(headers.get("content-encoding", ""))
        has_all = _last_event(self.request, headers)
        async for chunk in chunks:
            taken, fits = self._take(chunk, unpack)
            if has_all(taken):
                await self._let_end(chunks, unpack)
                return
            if not fits:
                raise BadBody(f"the answer is larger than {self.request.max_bytes} bytes")
        if unpack is not None and not unpack.eof:
            raise BadBody("the packed body was cut")

    def _take(self, chunk: bytes, unpack: "zlib._Decompress | None") -> tuple[bytes, bool]:
        """Add what there is room for after decoding (a packed body may be 1,000 times its size); whether all fitted."""
        room = self.request.max_bytes - len(self.body)
        plain = chunk if unpack is None else _unpack(unpack, chunk, room + 1)
        self.body += plain[:room]
        return plain[:room], len(plain) <= room

    async def _let_end(self, chunks: AsyncIterator[bytes], unpack: "zlib._Decompress | None") -> None:
        """Most servers end the stream right after their answer: then the connection can be used again. What still
        comes is kept: a second question that was sent with the first is never sent again."""
        if self.request.effect is None:
            with contextlib.suppress(Exception):  # what we came for is here
                async with asyncio.timeout(STREAM_END_S):
                    async for chunk in chunks:
                        self._take(chunk, unpack)


def wire_headers(request: Request, host: str, headers: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """What leaves before the body, in this order: no client adds anything."""
    return [
        ("Host", host),
        ("Accept-Encoding", "identity"),
        ("User-Agent", "counterfoil"),
        ("Content-Length", str(len(request.body))),
        ("Connection", "keep-alive" if request.effect is None else "close"),
        *headers,
    ]


def _last_event(request: Request, headers: Mapping[str, str]) -> Callable[[bytes], bool]:
    """Whether the body's next bytes bring the event that the request waits for; never for any other body."""
    until = request.until
    if until is None or not is_stream(headers):
        return lambda _: False
    parser = SseParser(request.max_bytes)  # what is fed to it is capped to the same: it can't overflow
    return lambda chunk: any(until(data) for data in parser.feed(chunk))


def _unpacker(encoding: str) -> "zlib._Decompress | None":
    """For a server that packs although identity was asked for."""
    if encoding.strip().lower() in ("", "identity"):
        return None
    if encoding.strip().lower() in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    raise BadBody("the server packed its answer although it was asked not to")


def _unpack(unpacker: "zlib._Decompress", chunk: bytes, max_bytes: int) -> bytes:
    try:
        return unpacker.decompress(chunk, max_bytes)
    except zlib.error:
        raise BadBody("the packed body can't be read") from None


async def _undisturbed(storing: Coroutine[object, object, None]) -> None:
    """Finish storing evidence even if this task is cancelled: what a server said is not lost with its bearer."""
    task = asyncio.ensure_future(storing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        raise
