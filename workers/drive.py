"""Runs the loop of one process: a thread with its event loop, the wire, and the database connections behind it.

Three lines to the outside, so that none waits for another: *urgent* (intents and evidence, on a connection of its
own; what waits at the same time shares a commit), *bulk* (claims, transitions, renewals, planning) and *tokens* (the
bucket).
"""

import asyncio
import logging
import math
import os
import random
import ssl
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import singledispatchmethod
from typing import Any, TypeVar

from ..adapters.contract import Answered, NoAnswer, Sent
from ..adapters.credentials import Credentials
from ..adapters.guard import Guard
from ..adapters.wire import IntentRefused, Transport
from ..adapters.wire_aiohttp import AiohttpTransport, default_tls
from ..ledger import epochs
from ..ledger.database import Database
from ..ledger.errors import StaleEpoch
from ..ledger.states import Lane
from ..ledger.store import Due
from . import actions as act
from .bucket import Bucket
from .engine import SERVED, Engine
from .jobs import Pace
from .performer import Performer, failed
from .targets import Targets
from .telemetry import Tracing, Untraced
from .ticks import Ticks
from .vault import Vault

log = logging.getLogger(__name__)

T = TypeVar("T")
GATHER_S = 0.025
"""What an effect's connection brings within this of the first shares a step: ten connections of one claim make one
intent. What a reading brings shares the step of the next slot, and what a line brings is gathered already. Nothing is
gathered where others wait for their places."""

TICK_KEPT_EVERY_S = 5.0
"""The ledger keeps the last tick to within this; beat ticks twice a second."""

STUCK_S = 60.0
"""One write to the ledger is bounded by its time limits, three tries included; at twice that its connection is one that
nobody answers on, and the process does not move any more."""


class Drive:
    """One process's loop with everything it runs on. Made after a fork, started once, stopped once.

    `ended` is called from the loop's thread when the loop ends without having been asked to: the epoch is over
    ("stale"), or a bug ("crashed"). A process without a loop is of no use and should end. `moved` is called with the
    loop's clock at each of its turns, at least once a second, while all three lines move.
    """

    def __init__(
        self,
        database_url: str,
        targets: Targets,
        bucket: Bucket,
        *,
        fleet: str = "main",
        pace: Pace | None = None,
        lanes: Sequence[Lane] = SERVED,
        ended: Callable[[str], None],
        moved: Callable[[float], None] = lambda _: None,
        vault: Vault | None = None,
        epoch: int | None = None,
        tracing: Tracing | None = None,
        ticks: Ticks | None = None,
    ) -> None:
        self._database = Database(database_url, fleet=fleet, pool_size=4)
        self.epoch = epochs.current_epoch(self._database, fleet)
        if epoch is not None and epoch != self.epoch:
            self._database.dispose()
            raise StaleEpoch(f"this worker was started in epoch {epoch}, the ledger is in {self.epoch}.")
        self._pace = pace or Pace()
        self._performer = Performer(
            self._database, targets, bucket, fleet=fleet, epoch=self.epoch, vault=vault, traced=tracing is not None
        )
        self._ended = ended
        self._moved = moved
        self._tracing = tracing
        self._ticks = ticks or Ticks()
        self._since_s: dict[ThreadPoolExecutor, float] = {}
        self._engine = Engine(self._performer.catalog, self._pace, lanes, rng=random.random, new_token=uuid.uuid4)
        self._bulk = ThreadPoolExecutor(1, "counterfoil-bulk")
        self._urgent = ThreadPoolExecutor(1, "counterfoil-urgent")
        self._taking = ThreadPoolExecutor(1, "counterfoil-tokens")
        self._arrivals: deque[act.Arrival] = deque()
        self._intending: deque[tuple[act.Intend, float]] = deque()
        self._keeping: deque[act.Keep] = deque()
        self._urgent_asked = False
        self._gates: dict[int, asyncio.Future[float]] = {}
        self._finishes: dict[int, asyncio.Future[None]] = {}
        self._transports: dict[str, Transport] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._wake = asyncio.Event()
        self._roused = False
        self._timer = self._loop.call_later(0.0, self._wake.set)
        self._tick_kept_s = -math.inf
        self._tls: ssl.SSLContext = default_tls()
        self._credentials = Credentials(time.monotonic)
        self._thread = threading.Thread(target=self._main, name="counterfoil-loop", daemon=True)

    # -- from other threads ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Announce the targets and begin. Raises LedgerUnavailable, SchemaOutdated, RecoverFirst."""
        self._performer.announce()
        self._thread.start()

    def serves(self, lane: Lane) -> bool:
        """Whether this process works on that lane."""
        return self._engine.serves(lane)

    def kick(self, lane: Lane, target: str, after_s: float = 0.0) -> None:
        """Wake the loop for a lane and target, from any thread."""
        self.post(act.Kick(lane, target, after_s))

    def plan(self) -> list[Due]:
        """Which (lane, target) has due work."""
        return self._performer.store.plan(SERVED, ahead_s=self._pace.claim_ahead_s, limit=2 * self._pace.claim_batch)

    def ticked(self) -> None:
        """A tick of beat's came through: the ledger remembers when the last one did, and where this process has room
        the others need not plan. Called from one thread."""
        now_s = time.monotonic()
        self._ticks.note(now_s, full=self._engine.full)
        if now_s - self._tick_kept_s >= TICK_KEPT_EVERY_S:
            self._performer.store.seen("beat")
            self._tick_kept_s = now_s

    @property
    def batch(self) -> int:
        """Rows that one claim takes."""
        return self._pace.claim_batch

    def post(self, arrival: act.Arrival) -> None:
        """Hand something to the loop, from any thread."""
        self._arrivals.append(arrival)
        self._rouse()

    def _rouse(self) -> None:
        """Let the loop take a step, from any thread. After its end there is nobody to rouse."""
        if not self._roused:
            self._roused = True
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake.set)

    def stop(self, grace_s: float) -> bool:
        """Take nothing new, bring home what is out, end. True when all came home within `grace_s`: the `answer_by` of
        each bounds it."""
        if self._thread.is_alive():
            self.post(act.Drain())
            self._thread.join(grace_s)
        return not self._thread.is_alive()

    # -- the thread --------------------------------------------------------------------------------------------------

    def _main(self) -> None:
        reason = "crashed"
        try:
            asyncio.set_event_loop(self._loop)
            reason = self._loop.run_until_complete(self._run())
        except Exception:
            log.exception("the loop broke; this process is of no use any more")
        finally:
            self._bulk.shutdown(wait=False, cancel_futures=True)
            self._taking.shutdown(wait=False, cancel_futures=True)
            self._urgent.shutdown()  # evidence that waits is written, even where a bug ended the loop
            self._loop.run_until_complete(self._close())
            self._loop.close()
            self._database.dispose()
            if self._tracing is not None:
                self._tracing.close()
        if reason != "drained":
            self._ended(reason)

    async def _run(self) -> str:
        while True:
            self._wake.clear()
            self._roused = False
            arrivals = _taken(self._arrivals)
            now_s = time.monotonic()
            answer = self._engine.step(now_s, arrivals, self._ticks.last_s)
            self._wake_at(now_s + min(answer.wait_s, 1.0))
            if all(now_s - since_s < STUCK_S for since_s in list(self._since_s.values())):
                self._moved(now_s)
            for wire in answer.wire:
                self._put(wire)
            for write in answer.writes:
                self._perform(write)
            if (self._intending or self._keeping) and not self._urgent_asked:
                # After the last of them: whoever was sent for the first came back with it alone.
                self._urgent_asked = True
                self._run_in(self._urgent, self._write_urgent, None)
            if (self._engine.draining or self._engine.stale) and self._engine.idle:
                break
            await self._wake.wait()
            self._timer.cancel()
        return "stale" if self._engine.stale else "drained"

    async def _close(self) -> None:
        """End what is still out (readings that nobody waits for any more) and every connection."""
        for finish in self._finishes.values():
            if not finish.done():
                finish.set_result(None)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for transport in self._transports.values():
            await transport.aclose()

    # -- the wire ----------------------------------------------------------------------------------------------------

    @singledispatchmethod
    def _put(self, wire: act.Wire) -> None:
        raise TypeError(f"the wire knows no {type(wire).__name__}")

    @_put.register
    def _(self, send: act.Send) -> None:
        exchange = self._effect(send) if send.request.effect is not None else self._read(send)
        self._spawn(exchange)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self, send: act.Send) -> None:
        self._here(act.Replied(send.send_id, await self._ask(send)))

    async def _effect(self, send: act.Send) -> None:
        """Connect, wait for Go or Abort, send, hold the slot until the evidence is stored."""
        gate: asyncio.Future[float] = self._loop.create_future()
        finish: asyncio.Future[None] = self._loop.create_future()
        self._gates[send.send_id], self._finishes[send.send_id] = gate, finish
        answered = False

        async def connected() -> float:
            self._here(act.Connected(send.send_id))
            return await gate

        async def on_answer(reply: Answered | NoAnswer) -> None:
            nonlocal answered
            answered = True
            self._here(act.Replied(send.send_id, reply))
            await finish

        try:
            reply = await self._ask(send, before_first_byte=connected, on_answer=on_answer)
            if not answered:
                self._here(act.Replied(send.send_id, reply))
        finally:
            gate.cancel()
            if gate.done() and not gate.cancelled():
                gate.exception()  # seen: an Abort that came before the connection was up
            del self._gates[send.send_id], self._finishes[send.send_id]

    async def _ask(self, send: act.Send, **hooks: Any) -> Answered | NoAnswer:
        transport = self._transports.get(send.target)
        if transport is None:
            guard = Guard(allow_private=self._performer.catalog.target(send.target).allow_private)
            transport = self._transports[send.target] = AiohttpTransport(guard, self._credentials, self._tls)
        try:
            with nullcontext(Untraced(send.request)) if self._tracing is None else self._tracing.span(send) as span:
                reply = await transport.send(span.request, credential=send.credential, **hooks)
                span.answered(reply)
                return reply
        except Exception as error:
            # A bug of the transport must not lose the row. Nobody knows whether bytes left.
            log.exception("the transport failed")
            return NoAnswer(Sent.MAYBE, f"the transport failed ({type(error).__name__})")

    @_put.register
    def _(self, go: act.Go) -> None:
        gate = self._gates.get(go.send_id)
        if gate is not None and not gate.done():
            gate.set_result(go.send_by_s)

    @_put.register
    def _(self, abort: act.Abort) -> None:
        gate = self._gates.get(abort.send_id)
        if gate is not None and not gate.done():
            gate.set_exception(IntentRefused(abort.why))

    @_put.register
    def _(self, finish: act.Finish) -> None:
        waiting = self._finishes.get(finish.send_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def _here(self, arrival: act.Arrival) -> None:
        """Something of the wire's, from the loop's own thread."""
        self._arrivals.append(arrival)
        now_s = self._loop.time()
        if self._engine.pressed:
            self._wake.set()
        elif isinstance(arrival, act.Replied) and arrival.send_id not in self._gates:
            self._wake_by(self._pace.slot(now_s))
        else:
            self._wake_by(now_s + GATHER_S)

    def _wake_by(self, moment_s: float) -> None:
        """Let the loop take a step at this moment of its clock, if it would not before."""
        if moment_s < self._timer.when():
            self._timer.cancel()
            self._wake_at(moment_s)

    def _wake_at(self, moment_s: float) -> None:
        self._timer = self._loop.call_at(moment_s, self._wake.set)

    # -- the ledger and the bucket -----------------------------------------------------------------------------------

    def _perform(self, write: act.Write) -> None:
        now_s = time.monotonic()
        if isinstance(write, act.Intend):
            self._intending.append((write, now_s))
        elif isinstance(write, act.Keep):
            self._keeping.append(write)
        elif isinstance(write, act.Take):
            self._run_in(self._taking, lambda: [self._performer.perform(write, now_s)], write)
        else:
            self._run_in(self._bulk, lambda: [self._performer.perform(write, now_s)], write)

    def _run_in(
        self, executor: ThreadPoolExecutor, work: Callable[[], list[act.Arrival]], write: act.Write | None
    ) -> None:
        def attempt() -> None:
            self._since_s[executor] = time.monotonic()
            try:
                arrivals = work()
            except Exception as error:  # noqa: BLE001  whatever it is, the loop has to know that this write did not succeed
                assert write is not None
                arrivals = [failed(write, error)]
            del self._since_s[executor]
            self._arrivals.extend(arrivals)
            self._rouse()

        executor.submit(attempt)

    def _write_urgent(self) -> list[act.Arrival]:
        self._urgent_asked = False  # first: what is put down from now on has somebody who comes for it
        keeping, intending = _taken(self._keeping), _taken(self._intending)
        return self._performer.perform_urgent(keeping, intending)


def _taken(items: deque[T]) -> list[T]:
    """Everything that is there now; another thread may add to it meanwhile."""
    return [items.popleft() for _ in range(len(items))]


def end_process(reason: str) -> None:
    """What a worker process does without its loop: end at once; its leases run out and others go on."""
    log.error("ending this process: its loop is %s", reason)
    os._exit(75 if reason == "stale" else 70)
