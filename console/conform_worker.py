"""One worker of a case: the real loop on the real ledger, where the wire ends at the transcript's server.

What `Drive` does on threads is done here at once and in order, so that a case runs the same way every time.
"""

import math
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import singledispatchmethod
from random import Random

from ..adapters.contract import NoAnswer, Sent
from ..adapters.outcomes import Hint
from ..ledger import events
from ..ledger.errors import CounterfoilError, StaleEpoch
from ..ledger.states import Lane
from ..ledger.work import Item
from ..workers import actions as act
from ..workers.bucket import Bucket
from ..workers.engine import SERVED, Engine
from ..workers.jobs import Pace
from ..workers.performer import Performer
from ..workers.targets import Targets
from ..workers.vault import Vault
from .conform_ledger import ConformLedger

PACE = Pace(flush_s=0.0)
"""What was decided is written at once: nothing else waits for a shared commit."""

LEAST_STEP_US = 1_000
"""Time that passes at the least until a step without arrivals is followed by the next."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the workers of a case share. `serve` takes every request that leaves: (worker, request)."""

    ledger: ConformLedger
    fleet: str
    targets: Targets
    bucket: Bucket
    vault: Vault
    rng: Random
    serve: "Callable[[Worker, act.Send], None]"


class Worker:
    """The reply to what was served comes back into `inbox` whenever the server says so."""

    def __init__(self, around: Surroundings, epoch: int) -> None:
        self._around = around
        self.epoch = epoch
        self.performer = Performer(
            around.ledger.database,
            around.targets,
            around.bucket,
            fleet=around.fleet,
            epoch=epoch,
            vault=around.vault,
        )
        self.catalog, self.store = self.performer.catalog, self.performer.store
        self.transitions = self.performer.transitions
        self._engine = Engine(self.catalog, PACE, SERVED, rng=around.rng.random, new_token=uuid.uuid4)
        self._connecting: dict[int, act.Send] = {}
        self._now_us = 0
        self.inbox: deque[act.Arrival] = deque()
        self.wake_us = 0
        self.claimed = 0
        self.dead = False
        self.may_commit = True

    # -- running -------------------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        return not self.dead

    @property
    def busy(self) -> bool:
        """Whether it wants to be woken by the clock."""
        return self.alive and not self._engine.idle

    def step(self, now_us: int) -> None:
        """One step with what has arrived, and everything that it asks for; the answers arrive with the next one."""
        self._now_us = now_us
        arrivals = tuple(self.inbox)
        self.inbox.clear()
        actions = self._engine.step(now_us / 1e6, arrivals)
        self.wake_us = now_us + max(math.ceil(actions.wait_s * 1e6), LEAST_STEP_US)
        for action in (*actions.wire, *actions.writes):
            if self.dead:
                return
            arrival = self._put(action) if isinstance(action, act.Wire) else self._write(action)
            if arrival is not None:
                self.inbox.append(arrival)
        if self._engine.stale and self._engine.idle:
            self.die()

    def hear(self, target: str, hints: Iterable[Hint]) -> None:
        """What a push or a callback of this target said of tasks: hints, and nothing more."""
        words = {hint.task_id: hint.status for hint in hints}
        found = self.store.find_tasks(target, words) if words else []
        self.transitions.apply([Item(id_, Lane.POLL, (events.Hinted(words[task_id]),)) for id_, task_id in found])

    def die(self) -> None:
        """Gone, with everything that it had in memory. Its leases run out."""
        self.dead = True
        self.inbox.clear()

    # -- the wire ------------------------------------------------------------------------------------------------------

    @singledispatchmethod
    def _put(self, wire: act.Wire) -> act.Arrival | None:
        raise TypeError(f"the transcript's wire knows no {type(wire).__name__}")

    @_put.register
    def _(self, send: act.Send) -> act.Arrival | None:
        if send.request.effect is None:
            self._leave(send)
            return None
        self._connecting[send.send_id] = send
        return act.Connected(send.send_id)

    @_put.register
    def _(self, go: act.Go) -> act.Arrival | None:
        send = self._connecting.pop(go.send_id, None)
        if send is None:
            return None
        if self._now_us / 1e6 >= go.send_by_s:
            return act.Replied(go.send_id, NoAnswer(Sent.NO, "send_by passed before the first byte"))
        self._leave(send)
        return None

    def _leave(self, send: act.Send) -> None:
        self._around.serve(self, send)

    @_put.register
    def _(self, abort: act.Abort) -> act.Arrival | None:
        send = self._connecting.pop(abort.send_id, None)
        return None if send is None else act.Replied(abort.send_id, NoAnswer(Sent.NO, abort.why))

    @_put.register
    def _(self, _finish: act.Finish) -> act.Arrival | None:
        return None

    # -- the ledger and the bucket -------------------------------------------------------------------------------------

    def _write(self, write: act.Write) -> act.Arrival | None:
        """A refusal of the ledger is the loop's business; anything else that fails is a fault and ends the case."""
        if isinstance(write, act.Apply) and not self.may_commit:
            self.die()
            return None
        try:
            arrival = self._answer(write, self._now_us / 1e6)
        except CounterfoilError as error:
            return act.WriteFailed(write, type(error).__name__, stale=isinstance(error, StaleEpoch))
        if isinstance(arrival, act.Claimed):
            self.claimed += len(arrival.rows)
        return arrival

    def _answer(self, write: act.Write, now_s: float) -> act.Arrival:
        if isinstance(write, act.Keep):
            (arrival,) = self.performer.perform_urgent([write], [])
        elif isinstance(write, act.Intend):
            (arrival,) = self.performer.perform_urgent([], [(write, now_s)])
        else:
            arrival = self.performer.perform(write, now_s)
        return arrival
