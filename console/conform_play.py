"""One case, from the hand-in to where nothing is due any more, on a virtual clock.

Time moves by an answer's delay, by an actor, and else to the next due moment once nothing can run: no real time
passes. What the broker does in a fleet (wake a worker for a lane that has work) is done here at each moment.
"""

import heapq
import itertools
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from ..adapters.contract import NoAnswer, Sent
from ..ledger import epochs
from ..ledger.client import Client
from ..ledger.errors import CounterfoilError, InputRefused
from ..ledger.records import ToolOperation
from ..ledger.states import Lane
from ..workers import actions as act
from ..workers.bucket import LocalBucket
from ..workers.desk import Desk
from ..workers.engine import SERVED
from ..workers.vault import Vault
from . import conform_actors
from .conform_compare import RECEIPTS, FoundCase, Observed
from .conform_ledger import ConformLedger
from .conform_redelivery import LateWorker
from .conform_server import CaseBroken, Entry, Taken, TranscriptServer
from .conform_target import dialect_of, targets_of
from .conform_transcript import ActorStep, Transcript, When
from .conform_worker import PACE, Surroundings, Worker

MAX_TURNS = 50_000
"""Turns of one case; an hour of waiting for a person with a row in hand takes 7,200."""

NUDGE_US = 250_000
"""How soon a due row that nobody could take is offered again."""

CALL_NODE = "transcript"
PLAN_LIMIT = 2 * PACE.claim_batch

_PROTOCOL_WORDS = ("completed", "failed", "cancelled")


@dataclass(order=True, slots=True)
class Delivery:
    """An answer on its way back. `group`: the actors that wait for it."""

    due_us: int
    serial: int
    worker: Worker = field(compare=False)
    arrival: act.Replied = field(compare=False)
    entry: Entry = field(compare=False)
    group: "Group" = field(compare=False)


@dataclass(frozen=True, slots=True)
class Group:
    """Actors with the same trigger. They act in order with nothing between; `worker` had made the request."""

    actors: tuple[ActorStep, ...]
    worker: Worker | None

    @property
    def crash(self) -> str | None:
        """How far the worker comes with its answer before it is gone; None: nobody crashes."""
        return next((actor.facts["point"] for actor in self.actors if actor.do == "worker_crash"), None)


class Play:
    """The world of one case, whose fleet, namespace and target have one name. What actors may use has no underscore."""

    def __init__(self, transcript: Transcript, ledger: ConformLedger, fleet: str, vault: Vault) -> None:
        self.transcript = transcript
        self.ledger = ledger
        self.fleet = fleet
        self.now_us = 0
        self.workers: list[Worker] = []
        self._serials = itertools.count()
        self._deliveries: list[Delivery] = []
        self._groups: list[Group] = []
        self._kicked: object = None
        self._happened_us = 0
        ledger.set_clock(0)
        ledger.add_fleet(fleet)
        targets = targets_of(transcript, fleet)
        bucket = LocalBucket(targets.limits, lambda: self.now_us / 1e6)
        rng = Random(transcript.id)  # noqa: S311  jitter, the same in every run
        self._around = Surroundings(ledger, fleet, targets, bucket, vault, rng, self._serve)
        self.client = Client(ledger.url, namespace=fleet, fleet=fleet)
        self._desk = Desk(ledger.url, targets, fleet=fleet, vault=vault)
        self.add_worker().performer.announce()
        self.dialect = dialect_of(transcript)
        operation = self.hand_in()
        self.operation_id: uuid.UUID = operation.id
        self.server = TranscriptServer(transcript, self.dialect, str(operation.submission_key))

    # -- what actors use -----------------------------------------------------------------------------------------------

    def hand_in(self) -> ToolOperation:
        """The producer's call, for the first time or again."""
        return self.client.submit(self.fleet, self.transcript.tool["name"], {}, call_node_id=CALL_NODE)

    def add_worker(self) -> Worker:
        """Another worker, of the ledger's present epoch."""
        self.workers.append(Worker(self._around, self._epoch()))
        return self.workers[-1]

    def redeliver(self, lane: Lane) -> None:
        """Let another worker make this lane's request once more, as if it had claimed before."""
        read_seq = self.ledger.read_seq(self.operation_id)
        self.workers.append(LateWorker(self._around, self._epoch(), self.operation_id, lane, read_seq))

    def _epoch(self) -> int:
        return epochs.current_epoch(self.ledger.database, self.fleet)

    def cancel(self) -> None:
        """The producer asks for a cancel. What the door refuses is an answer like any other."""
        with suppress(CounterfoilError):
            self.client.cancel(CALL_NODE, "transcript")

    def is_asked(self, number: int) -> bool:
        """Whether the question of this round has been put to a person."""
        return self.client.get(CALL_NODE).input_round >= number

    def answer(self, number: int, reply: Mapping[str, Any]) -> None:
        """A person answers a question. What the desk refuses is an answer like any other."""
        with suppress(InputRefused):
            self._desk.answer(self.operation_id, number, reply["action"], reply.get("content"), actor="transcript")

    def push(self, message: Mapping[str, Any]) -> None:
        """A notification or a callback of the server reaches a worker."""
        self._serving().hear(self.fleet, self.dialect.hints(message))

    def wake(self, lane: Lane) -> None:
        """A wake-up for a lane, as the broker delivers it."""
        self._serving().inbox.append(act.Kick(lane, self.fleet))

    def move_to(self, now_us: int) -> None:
        """Let time pass in one go."""
        if now_us > self.now_us:
            self.now_us = now_us
            self.ledger.set_clock(now_us)

    # -- running -------------------------------------------------------------------------------------------------------

    def run(self) -> Observed:
        """Play until nothing is due any more. Raises CaseBroken, and whatever a fault of ours raises."""
        try:
            self._add_group(Group(tuple(actor for actor in self.transcript.actors if actor.when is None), None))
            for _ in range(MAX_TURNS):
                if not (self._step() or self._act() or self._wake() or self._pass_time()):
                    return self._observe()
            raise CaseBroken(f"no end after {MAX_TURNS} turns")
        finally:
            self.client.close()
            self._desk.close()

    def _step(self) -> bool:
        """Let every worker run that has something to run for."""
        stepped = False
        while self._deliveries and self._deliveries[0].due_us <= self.now_us:
            self._deliver(heapq.heappop(self._deliveries))
        for worker in self.workers:
            if worker.alive and (worker.inbox or worker.wake_us <= self.now_us):
                worker.step(self.now_us)
                stepped = True
        return stepped

    def _act(self) -> bool:
        """Let the actors of one trigger act, once everybody is at rest. A person speaks when asked: who is to answer a
        question that has not come yet waits for it, and what follows waits as well."""
        group = next((group for group in self._groups if conform_actors.can_act(self, group.actors[0])), None)
        if group is None:
            return False
        self._groups.remove(group)
        for index, actor in enumerate(group.actors):
            if not conform_actors.can_act(self, actor):
                self._groups.append(replace(group, actors=group.actors[index:]))
                break
            conform_actors.act(self, actor, group.worker)
            self._happened_us = self.now_us
        return True

    def _wake(self) -> bool:
        """Kick a worker for every lane that has work, once a moment for the same work."""
        worker = self._serving()
        planned = worker.store.plan(SERVED, ahead_s=PACE.claim_ahead_s, limit=PLAN_LIMIT)
        due = [one for one in planned if one.count]
        if not due or (self.now_us, due, worker.claimed) == self._kicked:
            return False
        self._kicked = (self.now_us, due, worker.claimed)
        worker.inbox += [act.Kick(one.lane, one.target) for one in due]
        return True

    def _serving(self) -> Worker:
        """The worker that the broker would wake."""
        epoch = max(worker.epoch for worker in self.workers)
        return next(worker for worker in self.workers if worker.alive and worker.epoch == epoch)

    def _pass_time(self) -> bool:
        """Move to the next moment at which something is due; False where none is, within the case's patience."""
        moments = [delivery.due_us for delivery in self._deliveries[:1]]
        due_us = self.ledger.next_due_us(self.fleet, SERVED)
        if due_us is not None:
            moments.append(due_us if due_us > self.now_us else self.now_us + NUDGE_US)
        late = due_us is not None and due_us <= self.now_us
        moments += [worker.wake_us for worker in self.workers if worker.busy or (late and worker.alive)]
        next_us = min((moment for moment in moments if moment > self.now_us), default=None)
        if next_us is None or next_us > self._happened_us + self._patience_us:
            return False
        self.move_to(next_us)
        return True

    @property
    def _patience_us(self) -> int:
        """How long nothing new may happen: as long as all that the case itself waits for, and the 15 minutes of an
        UNKNOWN (SPEC section 7)."""
        policy = self.transcript.policy
        waits = ("totalWaitMs", "cancelConfirmMs", "inputDeadlineMs")
        waits_ms: list[int] = [policy.get(name, 0) for name in waits]
        return (sum(waits_ms) + 900_000) * 1000

    # -- the wire ------------------------------------------------------------------------------------------------------

    def _serve(self, worker: Worker, send: act.Send) -> None:
        """A request has arrived at the server; its answer is on the way, or isn't."""
        taken, entry = self.server.take(send.request, self.now_us)
        step = taken.step
        for actor in self._triggered(taken, at_start=True):
            conform_actors.act(self, actor, worker)
        delay_us = 0 if step is None else step.delay_ms * 1000
        if step is not None and step.times is not None:
            self._happened_us = self.now_us
        reply = self.server.answer(taken, send.request)
        deadline_us = int(send.request.deadline_s * 1e6)
        if delay_us > deadline_us:
            delay_us, reply = deadline_us, NoAnswer(Sent.MAYBE, "the deadline passed")
        delivery = Delivery(
            self.now_us + delay_us,
            next(self._serials),
            worker,
            act.Replied(send.send_id, reply),
            entry,
            Group(self._triggered(taken, at_start=False), worker),
        )
        heapq.heappush(self._deliveries, delivery)

    def _triggered(self, taken: Taken, *, at_start: bool) -> tuple[ActorStep, ...]:
        if taken.step is None:
            return ()
        trigger = When(taken.step.id, taken.count, at_start)
        return tuple(actor for actor in self.transcript.actors if actor.when == trigger)

    def _deliver(self, delivery: Delivery) -> None:
        """An answer has left the server. A worker that is about to crash takes it in as far as its point says."""
        delivery.entry.answered_us = self.now_us
        worker, crash = delivery.worker, delivery.group.crash
        if crash in ("after_send", "after_answer"):
            worker.die()
        elif worker.alive:
            worker.may_commit = crash != "before_commit"
            worker.inbox.append(delivery.arrival)
        self._add_group(delivery.group)

    def _add_group(self, group: Group) -> None:
        if group.actors:
            self._groups.append(group)

    # -- looking -------------------------------------------------------------------------------------------------------

    def _observe(self) -> Observed:
        operation, receipt = self.client.get(CALL_NODE), self.client.receipt(CALL_NODE)
        journal, trail = self.client.journal(CALL_NODE), self.ledger.trail(self.operation_id)
        codes = [line.code for line in journal] + [code for _, code, _ in trail.cases] + list(trail.refused)
        if receipt is not None:
            codes.append(receipt.error_code)
        word = "none" if receipt is None else RECEIPTS.get(receipt.outcome, receipt.outcome)
        status = None if receipt is None else receipt.terminal_status
        return Observed(
            state=operation.state,
            terminal=status if status in _PROTOCOL_WORDS else None,
            receipt=word,
            receipt_code=None if receipt is None else receipt.error_code,
            effects=self.server.effects,
            keys=len(self.server.keys),
            counts=dict(self.server.counts()) | {"ask": operation.input_round},
            cases=[FoundCase(kind, is_open) for kind, _, is_open in trail.cases],
            outbox=trail.outbox,
            path=[line.target for line in journal if line.event in ("opened", "moved", "accepted") and line.target],
            codes=frozenset(code for code in codes if code is not None),
            gaps_ms=self.server.gaps_ms(),
            result=None if receipt is None else self.dialect.payload(receipt.result),
        )

    def story(self) -> Sequence[Entry]:
        """The server's log so far."""
        return self.server.log
