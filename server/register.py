"""The register of keys: runs a request once, answers it again, and says what became of it."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

import anyio
from anyio import to_thread

from .calls import Call
from .errors import store_down, tasks_undeclared
from .leases import Leases
from .records import Answer, Kind, Record, Take, Wait, judge
from .store import Entry, Store, StoreError

_LOG = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")

_PAUSES_S = (0.05, 1.0)  # between two looks at a request that runs elsewhere: first, and doubled up to
_KEEP_PAUSES_S = (0.2, 1.0, 3.0, 0.0)  # an outcome is worth three more tries at a store that is down
_THREADS = 8


class Codec(Protocol[ResultT]):
    """How an SDK's results and exceptions are kept and told again."""

    def read(self, result: ResultT) -> Answer:
        """Return what the result looks like on the wire."""

    def read_error(self, error: Exception) -> Answer:
        """Return what the exception looks like on the wire: a result with `isError`, or a JSON-RPC error."""

    def write(self, answer: Answer) -> ResultT:
        """Return the result that looks like this on the wire, or raise the exception that does."""


class Register:
    """Keys over a store. Blocking stores are called in threads of their own: tools may fill the SDK's."""

    def __init__(self, store: Store, *, lifetime_s: float) -> None:
        self._store = store
        self._lifetime_s = lifetime_s
        self._leases = Leases(store, lifetime_s=lifetime_s)
        self._threads = anyio.CapacityLimiter(_THREADS)

    @property
    def durable(self) -> bool:
        """Whether a key that isn't found was never used (within the lifetime)."""
        return self._store.durable

    async def once(self, call: Call, run: Callable[[], Awaitable[ResultT]], codec: Codec[ResultT]) -> ResultT:
        """Run a request if it is the first with its key; else wait for the first one's answer and give that.

        A request that runs is shielded: when its caller goes away (2026-07-28 cancels a request whose connection is
        lost) it runs on to its end, for the caller comes back with the key. Only a stop of the server ends it.

        Raises:
            MCPError: E_KEY_REUSED_DIFFERENT_REQUEST, E_KEY_UNSURE, E_KEY_STORE, or -32021 where the first became a
                task and this client declares none. Besides what `run` raises, now or the first time.
        """
        pause_s, pause_s_max = _PAUSES_S
        while True:
            with anyio.CancelScope(shield=True):
                verdict = await self._look(call)
                if isinstance(verdict, Take) and await self._take(call.name, verdict):
                    return await self._settle(call.name, verdict, run, codec)
            if isinstance(verdict, Answer):
                if verdict.kind is Kind.TASK and not call.takes_tasks:
                    raise tasks_undeclared()
                return codec.write(verdict)
            await anyio.sleep(pause_s)
            pause_s = min(pause_s * 2, pause_s_max)

    async def find(self, name: str) -> Entry | None:
        """Return what is remembered of a key.

        Raises:
            MCPError: E_KEY_STORE.
        """
        try:
            return await self._call(partial(self._store.get, name))
        except StoreError as error:
            _LOG.exception("submission keys: nothing can be looked up")
            raise store_down() from error

    async def _look(self, call: Call) -> Take | Wait | Answer:
        entry = await self.find(call.name)
        try:
            return judge(call, entry)
        except StoreError as error:
            _LOG.exception("submission keys: a keyed call was refused")
            raise store_down() from error

    async def _take(self, name: str, take: Take) -> bool:
        try:
            return await self._put(name, take.record, take.version)
        except StoreError as error:
            _LOG.exception("submission keys: a keyed call was refused")
            raise store_down() from error

    async def _settle(
        self, name: str, take: Take, run: Callable[[], Awaitable[ResultT]], codec: Codec[ResultT]
    ) -> ResultT:
        self._leases.hold(name, take.version)
        try:
            try:
                result = await run()
            except Exception as error:
                await self._keep(name, take, partial(codec.read_error, error))
                raise
            await self._keep(name, take, partial(codec.read, result))
            return result
        finally:
            self._leases.drop(name)

    async def _keep(self, name: str, take: Take, read: Callable[[], Answer]) -> None:
        """Store the outcome. It can't be left to an exception: the tool has run, and its caller gets the answer."""
        try:
            record = take.record.answered(read())
        except (TypeError, ValueError, RecursionError):  # a result that pydantic can't write
            record = take.record.answered(Answer(Kind.NOT_KEPT, {}))
        for pause_s in _KEEP_PAUSES_S:
            try:
                if not await self._put(name, record, take.version + 1):
                    _LOG.error("submission keys: the outcome of %s was not kept: its record is not ours", record.tool)
            except StoreError:
                _LOG.exception("submission keys: the outcome of %s could not be kept", record.tool)
                await anyio.sleep(pause_s)
            else:
                return

    async def _put(self, name: str, record: Record, version: int) -> bool:
        value = record.encode()
        if await self._call(partial(self._store.put, name, value, version=version, lifetime_s=self._lifetime_s)):
            return True
        # A client that repeats a write whose answer was lost is refused by its own first one.
        entry = await self._call(partial(self._store.get, name))
        return entry is not None and entry.value == value

    async def _call(self, do: Callable[[], ResultT]) -> ResultT:
        return await to_thread.run_sync(do, limiter=self._threads)
