"""Worker processes that die at one point of an effect's way: the real `Drive` whose last step is left out.

A loop's step answers with writes and wires, and hears of them by arrivals. To die *before* a step is never to perform
it, to die *after* it is never to hear of it: for everybody else (ledger, server, successor) that is the same as a
process that was killed in between, and the kill itself comes from the parent, as SIGKILL, once every operation of the
process has been told to be there. Two points lie inside a transaction: there the thread stands still with the
transaction open.

`stops`: instead the process gathers its operations at the point, stops itself (SIGSTOP) and goes on when it is told to
by SIGCONT.
"""

import asyncio
import os
import re
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any, Never
from unittest.mock import patch
from uuid import UUID

from counterfoil.adapters import wire
from counterfoil.adapters.contract import Answered, NoAnswer, Sent
from counterfoil.adapters.registry import adapter
from counterfoil.adapters.wire import IntentRefused
from counterfoil.ledger import events
from counterfoil.ledger.intents import Granted, Intents
from counterfoil.ledger.states import Lane
from counterfoil.ledger.transition import Transitions
from counterfoil.ledger.work import Item
from counterfoil.workers import actions as act
from counterfoil.workers.bucket import LocalBucket
from counterfoil.workers.drive import Drive
from counterfoil.workers.engine import SERVED
from counterfoil.workers.jobs import Pace
from counterfoil.workers.target_entries import TargetEntry
from counterfoil.workers.targets import Target, Targets

PACE = Pace(
    tick_s=0.2, self_tick_s=0.2, flush_s=0.05, slot_s=0.05, poll_lease_s=3.0, fetch_lease_s=3.0, claim_ahead_s=0.2
)
NODE = re.compile(rb'"node":"([^"]+)"')
NOBODY_LISTENS = "http://127.0.0.1:9/"


@dataclass(frozen=True, slots=True)
class Order:
    """Which targets (name -> entry of a targets file) a process works on, and at which point of `lane` it ends.

    `count`: how many operations it is to bring there. No point: it works.
    """

    database_url: str
    targets: Mapping[str, Mapping[str, Any]]
    lanes: tuple[Lane, ...] = SERVED
    lane: Lane = Lane.SUBMIT
    point: str = ""
    count: int = 0
    stops: bool = False


@dataclass(slots=True)
class Teller:
    """Tells the parent what has come so far: ("at", names), and after a stop ("on", names with what became of them)."""

    word: Connection
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, kind: str, names: Iterable[str]) -> None:
        with self._lock:
            self.word.send((kind, list(names)))


def targets_of(entries: Mapping[str, Mapping[str, Any]]) -> Targets:
    """Targets without a file."""
    read = {name: TargetEntry.model_validate(told) for name, told in entries.items()}
    return Targets({name: Target(name, adapter(entry.protocol).profile, entry) for name, entry in read.items()})


def work(word: Connection, order: Order) -> None:
    """The process: until it is killed, or its parent is gone."""
    targets = targets_of(order.targets)
    bucket = LocalBucket(targets.limits, time.monotonic)
    teller = Teller(word)
    settings: dict[str, Any] = {"pace": PACE, "lanes": order.lanes, "ended": lambda reason: teller("ended", [reason])}
    if not order.point:
        drive = Drive(order.database_url, targets, bucket, **settings)
    else:
        drive = Halting(order, teller, order.database_url, targets, bucket, **settings)
    drive.start()
    try:
        word.recv()
    except EOFError:
        os._exit(0)


def _says_an_end(item: Item) -> bool:
    return any(isinstance(event, events.Ended) for event in item.events)


def _left(reply: Answered | NoAnswer) -> bool:
    return isinstance(reply, Answered) or reply.sent is Sent.MAYBE


def _release(waiting: list[asyncio.Future[None]]) -> None:
    for one in waiting:
        one.set_result(None)


def stand_still() -> Never:
    while True:
        threading.Event().wait()


def stop_here() -> None:
    """Every thread stops, this one before it does anything more."""
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


class Halting(Drive):
    """A worker that comes to one point and no further. The names of the points are those of its branches."""

    def __init__(self, order: Order, tell: Teller, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._order = order
        self._point = order.point
        self._tell = tell
        self._gathered: list[Any] = []
        self._went_on = False
        performer = self._performer
        ledger = (self._database, performer.store.fleet, self.epoch)
        reads: dict[str, Any] = {"interpret": performer.catalog.read_evidence, "policy_of": performer.catalog.policy}
        if self._point == "intent-uncommitted":
            performer.intents = OpenIntents(*ledger, performer.catalog.policy, tell=tell)
        elif self._point == "apply-uncommitted":
            performer.transitions = OpenTransitions(*ledger, **reads, tell=tell)
        elif self._point == "unaccepted":
            performer.transitions = Unaccepting(*ledger, **reads)
        elif self._point == "part":
            whole = wire.Journey.content
            patch.object(
                wire.Journey,
                "content",
                lambda one: whole(one) if one.request.effect is None else self._first_part(one),
            ).start()

    def _at(self, *names: object) -> None:
        self._tell("at", map(str, names))

    def _operation(self, send_id: int) -> UUID:
        return self._engine._requests._sendings[send_id].job.row.id

    # -- before a write ------------------------------------------------------------------------------------------------

    def _perform(self, write: act.Write) -> None:
        match self._point, write:
            case "unclaimed", act.Claim(lane=lane) if lane is self._order.lane:
                self._at(*(f"{write.target}/{number}" for number in range(write.limit)))
            case "applied" | "unaccepted" | "accepted", act.Claim(lane=Lane.POLL):
                pass  # what was applied may be claimed: by a successor
            case "intent-asked", act.Intend() if not self._order.stops:
                self._at(write.request.operation_id)
            case "intent-asked" | "intent-uncommitted", act.Intend():
                self._gather((write, time.monotonic()), write.request.operation_id, self._intend)
            case "apply-uncommitted", act.Keep():
                self._gather(write, write.answer.operation_id, self._keep)
            case "refused" | "unwithdrawn", act.Apply(items=items) if any(
                item.lane is self._order.lane for item in items
            ):
                pass
            case "ended", act.Apply(items=items) if any(map(_says_an_end, items)):
                self._at(*(item.operation_id for item in items if _says_an_end(item)))
                self._here(act.AppliedBatch(items, time.monotonic(), ()))
            case _:
                super()._perform(write)

    def _gather(self, one: Any, operation_id: UUID | None, go_on: Callable[[list[Any]], None]) -> None:
        """Wait until everybody is here: then all go on together, after a stop where one was asked for."""
        if self._went_on:
            go_on([one])
            return
        self._gathered.append((one, operation_id))
        if len(self._gathered) == self._order.count:
            self._went_on = True
            if self._order.stops:
                self._at(*(id_ for _, id_ in self._gathered))
                stop_here()
            go_on([one for one, _ in self._gathered])

    def _intend(self, intends: list[tuple[act.Intend, float]]) -> None:
        self._intending += intends
        self._run_in(self._urgent, self._write_urgent, None)

    def _keep(self, keeps: list[act.Keep]) -> None:
        self._keeping += keeps
        self._run_in(self._urgent, self._write_urgent, None)

    # -- after a write -------------------------------------------------------------------------------------------------

    def _run_in(self, executor: Any, work: Callable[[], list[act.Arrival]], write: act.Write | None) -> None:
        super()._run_in(executor, lambda: [heard for one in work() if (heard := self._heard(one)) is not None], write)

    def _heard(self, arrival: act.Arrival) -> act.Arrival | None:
        match self._point, arrival:
            case "claimed", act.Claimed(claim=claim, rows=rows) if claim.lane is self._order.lane and rows:
                self._at(*(row.id for _, row in rows))
                # On a busy machine the first claim comes before all rows are due: the others are claimed by the next.
                return replace(arrival, rows=())
            case "intent-asked", act.Intended(answer=answer) if self._order.stops:
                self._tell("on", ["granted" if isinstance(answer, Granted) else answer.code])
                return arrival
            case "intent-committed", act.Intended(answer=Granted()):
                self._at(self._operation(arrival.send_id))
            case "kept" | "cut", act.Kept():
                self._at(self._operation(arrival.send_id))
            case "answered", act.Kept() if self._order.stops:
                self._tell("on", ["kept"])
                return arrival
            case "applied", act.AppliedBatch(items=items):
                self._at(*(item.operation_id for item in items if item.lane is self._order.lane))
                return replace(arrival, applied=())
            case "unaccepted" | "accepted", act.AppliedBatch(applied=applied):
                over = [one for one in applied if one.row is not None and one.row.operation.over]
                self._at(*(one.operation_id for one in over))
                return replace(arrival, applied=[one for one in applied if one not in over])
            case _:
                return arrival
        return None

    # -- the wire ------------------------------------------------------------------------------------------------------

    async def _read(self, send: act.Send) -> None:
        if self._point == "negotiating":
            waiting = self._engine._readings._contracts._running.values()
            self._at(*(job.row.id for one in waiting if one.key[0] == send.target for job in one.waiting))
            await asyncio.Future()
        await super()._read(send)

    async def _ask(self, send: act.Send, **hooks: Any) -> Answered | NoAnswer:
        asks = hooks.get("before_first_byte")
        if asks is not None and self._point == "refused":
            send = replace(send, request=replace(send.request, url=NOBODY_LISTENS))
        elif asks is not None and self._point in ("first-byte", "unwithdrawn"):

            async def before_first_byte() -> float:
                send_by_s: float = await asks()
                await self._before_first_byte(send.send_id)
                return send_by_s

            hooks["before_first_byte"] = before_first_byte
        return await super()._ask(send, **hooks)

    async def _before_first_byte(self, send_id: int) -> None:
        if self._point == "unwithdrawn":
            raise IntentRefused("the token of this intent was lost")
        go: asyncio.Future[None] = self._loop.create_future()
        if not self._order.stops:
            self._at(self._operation(send_id))
        else:
            self._gather(go, self._operation(send_id), _release)
        await go

    async def _first_part(self, journey: Any) -> AsyncIterator[bytes]:
        yield journey.request.body[: wire.WRITE_BYTES]
        node = NODE.search(journey.request.body)
        assert node is not None
        self._at(node[1].decode())
        await asyncio.Future()

    def _here(self, arrival: act.Arrival) -> None:
        effect = isinstance(arrival, act.Connected | act.Replied) and arrival.send_id in self._gates
        # On a starved machine an intent may come back late and its send be taken back: it comes again.
        left = effect and isinstance(arrival, act.Replied) and _left(arrival.reply)
        match self._point, arrival:
            case "connected", act.Connected() if self._order.stops:
                self._gather(arrival, self._operation(arrival.send_id), self._all_here)
                return
            case "connected", act.Connected():
                self._at(self._operation(arrival.send_id))
                return
            case "answered", act.Replied() if left and self._order.stops:
                self._gather(arrival, self._operation(arrival.send_id), self._all_here)
                return
            case "answered", act.Replied() if left:
                self._at(self._operation(arrival.send_id))
                return
            case "part", act.Replied() if left:
                return
            case "refused" | "unwithdrawn", act.Replied() if effect:
                self._at(self._operation(arrival.send_id))
            case "connected" | "first-byte", act.Replied() if effect and self._order.stops and self._went_on:
                self._tell("on", ["bytes left" if left else "nothing left"])
            case _:
                pass
        super()._here(arrival)

    def _all_here(self, arrivals: list[act.Arrival]) -> None:
        for arrival in arrivals:
            super()._here(arrival)


class OpenIntents(Intents):
    """The intents are written, the transaction stays open."""

    def __init__(self, *arguments: Any, tell: Teller) -> None:
        super().__init__(*arguments)
        self._tell = tell

    def _write(self, connection: Any, granted: Any) -> None:
        super()._write(connection, granted)
        self._tell("at", [str(one.operation_id) for one in granted])
        stand_still()


class OpenTransitions(Transitions):
    """The evidence is read and decided upon, the transaction stays open."""

    def __init__(self, *arguments: Any, tell: Teller, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._tell = tell

    def _decide(self, connection: Any, works: Any, evidence: Any, leases: Any) -> None:
        super()._decide(connection, works, evidence, leases)
        if evidence:
            self._tell("at", [str(one.row.id) for one in works])
            stand_still()


class Unaccepting(Transitions):
    """The end is decided, and nobody accepts it."""

    def _settle(self, applied: Any, settled: Any, epoch: int) -> Any:
        return applied
