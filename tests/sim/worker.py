"""A worker process under the scheduler: the real loop and the real database side of it, without its threads.

`drive.py` gives the loop a thread, an event loop and three lines to the outside. Here each of them is an actor: the
loop
takes a step when the scheduler says so, and the head of a line is performed when it is that line's turn. What a write
does is the product's own `Performer`, unchanged.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from counterfoil.ledger.states import Lane
from counterfoil.workers import actions as act
from counterfoil.workers.engine import SERVED, Engine
from counterfoil.workers.jobs import Pace
from counterfoil.workers.performer import Performer, failed

from .ledgerdb import fleet_of

if TYPE_CHECKING:
    from .world import World

PACE = Pace(
    tick_s=3.0,
    self_tick_s=1e9,  # the beat is an actor of its own
    flush_s=0.2,
    slot_s=0.05,
    poll_lease_s=8.0,
    fetch_lease_s=10.0,
    in_flight=40,
    claim_batch=10,
    claim_ahead_s=1.0,
)
OBSTINATE_S = 25.0
"""How long a bad release goes on before somebody ends it."""

WRITTEN = (act.Intend, act.Keep)


class OpenVault:
    """Keys are not what is tried here."""

    def seal(self, data: bytes) -> bytes:
        return data

    def open(self, sealed: bytes) -> bytes:
        return sealed


class Worker:
    """`offset_s`: what its monotonic clock is ahead of the ledger's. `obstinate`: a bad release, which goes on although
    its epoch is over."""

    def __init__(self, world: "World", name: str, offset_s: float, epoch: int, *, obstinate: bool = False) -> None:
        self.world = world
        self.name = name
        self.offset_s = offset_s
        self.obstinate = obstinate
        self.epoch = epoch
        self.performer = Performer(
            world.db.database,
            world.edited if world.edited is not None and int(name[1:]) % 2 == 0 else world.targets,
            world.bucket,
            fleet=fleet_of(world.tag),
            epoch=epoch,
            vault=world.vault,
            new_id=world.ids.text,
        )
        self.intending: list[tuple[act.Intend, float]] = []
        self.keeping: list[act.Keep] = []
        rng = random.Random(name)
        self.engine = Engine(
            self.performer.catalog, PACE, SERVED, rng=lambda: rng.choice((0.0, 0.5)), new_token=world.ids.token
        )
        self.inbox: deque[tuple[int, act.Arrival]] = deque()
        self.bulk: deque[tuple[int, act.Write, float]] = deque()
        self.tokens: deque[tuple[int, act.Take]] = deque()
        self.send_tokens: dict[int, str] = {}
        """The intent that each effect was to rest on."""
        self.urgent_since = 0
        self.timer_s = 0.0
        self.alive = True
        self.crashed = False
        self.frozen_until_s = 0.0
        self.hanging_until_s = {"bulk": 0.0, "urgent": 0.0}
        self.ready_at_s = {"bulk": 0.0, "urgent": 0.0}
        self.late: deque[tuple[float, act.Arrival]] = deque()
        """Answers of the database that are done but not yet noticed."""
        self.working: set[str] = set()
        """Lines that are in the middle of their transaction (tier B)."""
        self.told_off = False
        self.lost: dict[str, str] = {}
        """Line -> what its next commit's answer is to be: lost "before" it or "after" it."""

    # -- time --------------------------------------------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        return self.world.now_s + self.offset_s

    @property
    def running(self) -> bool:
        return self.alive and self.world.now_s >= self.frozen_until_s

    @property
    def was_held_up(self) -> bool:
        """Whether it, or its way to the database, ever stood still."""
        return max(self.frozen_until_s, *self.hanging_until_s.values(), *self.ready_at_s.values()) > 0.0

    @property
    def asleep(self) -> bool:
        """Nothing of it wants to be woken."""
        return self.engine.idle and not self.inbox

    # -- moves -------------------------------------------------------------------------------------------------------

    def take(self, arrival: act.Arrival) -> None:
        """Something arrives at the loop."""
        self.inbox.append((self.world.serial(), arrival))

    def step(self) -> None:
        """The loop takes in everything that has arrived."""
        arrivals = [arrival for _, arrival in self.inbox]
        self.inbox.clear()
        answer = self.engine.step(self.now_s, arrivals)
        self.timer_s = self.world.now_s + answer.wait_s
        for wire in answer.wire:
            self.world.network.put(self, wire)
        for write in answer.writes:
            self._queue(write)
        if (self.engine.draining or self.engine.stale) and self.engine.idle:
            self.world.ended(self)

    def _queue(self, write: act.Write) -> None:
        if isinstance(write, act.Take):
            self.tokens.append((self.world.serial(), write))
        elif isinstance(write, WRITTEN):
            if not (self.intending or self.keeping):
                self.urgent_since = self.world.serial()
            if isinstance(write, act.Intend):
                self.send_tokens[write.send_id] = str(write.request.send_token)
                self.intending.append((write, self.now_s))
            else:
                self.keeping.append(write)
        else:
            self.bulk.append((self.world.serial(), write, self.now_s))

    @property
    def has_urgent(self) -> bool:
        return bool(self.intending or self.keeping)

    def take_tokens(self) -> None:
        _, take = self.tokens.popleft()
        self.take(self.performer.perform(take, self.now_s))

    def write_bulk(self) -> None:
        """Perform the head of the bulk line."""
        _, write, asked_s = self.bulk.popleft()
        if isinstance(write, act.Sweep) and self.world.nothing_to_sweep:
            self.take(act.Swept(()))
            return
        self._perform("bulk", [write], lambda: [_in_order(self.performer.perform(write, asked_s), self.world)])

    def write_urgent(self) -> None:
        """Perform everything urgent that waits, as `Drive` does."""
        keeping, self.keeping = self.keeping, []
        intending, self.intending = self.intending, []
        writes = [*keeping, *(intend for intend, _ in intending)]
        self._perform("urgent", writes, lambda: self.performer.perform_urgent(keeping, intending))

    def _perform(self, line: str, writes: Sequence[act.Write], work: Callable[[], list[act.Arrival]]) -> None:
        lost = self.lost.pop(line, None)
        if lost == "before":
            self._performed(line, writes, [act.WriteFailed(write, "OperationalError") for write in writes])
        else:
            self.working.add(line)
            self.world.execute(f"{self.name} {line}", work, lambda done: self._came_back(line, writes, done, lost))

    def _came_back(
        self, line: str, writes: Sequence[act.Write], done: list[act.Arrival] | Exception, lost: str | None
    ) -> None:
        self.working.discard(line)
        if lost == "after":
            arrivals: list[act.Arrival] = [act.WriteFailed(write, "OperationalError") for write in writes]
        elif isinstance(done, Exception):  # as the loop's own executor does
            arrivals = [failed(write, done) for write in writes]
        else:
            arrivals = done
        self._performed(line, writes, arrivals)

    def _performed(self, line: str, writes: Sequence[act.Write], arrivals: list[act.Arrival]) -> None:
        self.world.wrote(self, writes, arrivals)
        if not self.alive:
            return
        for arrival in arrivals:
            if isinstance(arrival, act.WriteFailed) and arrival.stale:
                self.world.sometimes("a worker found its epoch over")
                if self.obstinate:
                    if not self.told_off:
                        self.told_off = True
                        self.world.later(OBSTINATE_S, f"{self.name} is ended", lambda: self.world.crash(self))
                    arrival = replace(arrival, stale=False)  # noqa: PLW2901
            if self.ready_at_s[line] > self.world.now_s:
                self.late.append((self.ready_at_s[line], arrival))
            else:
                self.take(arrival)

    def notice(self) -> None:
        """An answer of the database that came late is there now."""
        self.take(self.late.popleft()[1])


def _in_order(arrival: act.Arrival, world: "World") -> act.Arrival:
    """The same order of rows in every run: PostgreSQL promises none."""
    match arrival:
        case act.Claimed():
            return replace(arrival, rows=sorted(arrival.rows, key=lambda pair: world.place(pair[1].id)))
        case act.AppliedBatch():
            return replace(arrival, applied=sorted(arrival.applied, key=lambda one: world.place(one.operation_id)))
        case act.Swept():
            return replace(arrival, operations=sorted(arrival.operations, key=world.place))
        case act.Planned():
            return replace(arrival, due=sorted(arrival.due, key=lambda due: (due.lane, due.target)))
        case _:
            return arrival


class Ids:
    """Ids of one run: a counter behind the run's tag, so that a run can be copied under another tag."""

    def __init__(self, tag: str) -> None:
        self._tag = bytes.fromhex(tag)
        self._count = 0

    def source(self) -> tuple[int, bytes]:
        """For `ledger.ids`."""
        self._count += 1
        return self._count, b"\0\0\0\0" + self._tag + self._count.to_bytes(2, "big")

    def token(self) -> UUID:
        self._count += 1
        return UUID(bytes=b"\x51\x30\0\0\0\0\x40\0\x80\0" + self._tag + self._count.to_bytes(2, "big"))

    def text(self) -> str:
        return str(self.token())

    def resume(self, count: int) -> None:
        """Go on behind the ids of a copied run."""
        self._count = max(self._count, count)

    @property
    def count(self) -> int:
        return self._count


ALL_LANES = tuple(Lane)
