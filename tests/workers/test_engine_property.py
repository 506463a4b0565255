"""Two workers on one ledger and one server, and whatever may go wrong between them, in any order.

Hypothesis picks what happens next: a step of either worker, an answer, a lost reply, a failing write, a kick, a cancel,
time, a drain, the end of one worker's epoch. A worker that is not stepped for long is a stopped one.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.adapters.contract import NoAnswer, Sent
from counterfoil.ledger.intents import Granted
from counterfoil.ledger.states import TERMINAL, Lane
from counterfoil.workers import actions as act
from counterfoil.workers.engine import SERVED

from .kit_world import World

Choice = tuple[str, int, str, int]
KINDS = ("round",) * 30 + (
    "step",
    "answer",
    "time",
    "time",
    "time",
    "kick",
    "kick",
    "add",
    "cancel",
    "over",
    "drain",
    "bump",
)
FATES = ("well",) * 20 + ("late", "refused", "lost", "cut")
CHOICES = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 9), st.sampled_from(FATES), st.integers(0, 9)), max_size=150
)
UNFENCED = (act.Keep, act.Take)


@dataclass
class Worker:
    """One engine whose actions wait until something becomes of them."""

    world: World
    pending: list[act.Write | act.Send] = field(default_factory=list)
    asked_s: dict[int, float] = field(default_factory=dict)
    flying: list[tuple[act.Send, float]] = field(default_factory=list)
    granted: set[UUID] = field(default_factory=set)
    intends: dict[int, UUID] = field(default_factory=dict)
    ended: Counter[int] = field(default_factory=Counter)
    over: bool = False

    def step(self, *arrivals: act.Arrival) -> None:
        taken = [*self.world.inbox, *arrivals]
        self.world.inbox.clear()
        for arrival in taken:
            if isinstance(arrival, act.Intended) and isinstance(arrival.answer, Granted):
                self.granted.add(arrival.answer.send_token)
        actions = self.world.engine.step(self.world.now_s, taken)
        for wire in actions.wire:
            self._wire(wire)
        for write in actions.writes:
            if isinstance(write, act.Intend):
                self.intends[write.send_id] = write.request.send_token
            self.asked_s[id(write)] = self.world.now_s
            self.pending.append(write)
        owners = [(sending.job.row.id, sending.lane) for sending in self.world.engine._requests.sendings]
        assert len(owners) == len(set(owners)), "two requests with an effect are out for one row"

    def _wire(self, wire: act.Wire) -> None:
        world = self.world
        match wire:
            case act.Send():
                self.pending.append(wire)
            case act.Go():
                assert self.intends[wire.send_id] in self.granted, "bytes leave without a granted intent"
                assert wire.send_id in world.connecting, "bytes leave twice, or after an Abort"
                self.flying.append((world.connecting.pop(wire.send_id), wire.send_by_s))
            case act.Abort():
                if world.connecting.pop(wire.send_id, None) is not None:
                    world.inbox.append(act.Replied(wire.send_id, NoAnswer(Sent.NO, wire.why)))
            case act.Finish():
                self.ended[wire.send_id] += 1
                assert self.ended[wire.send_id] == 1, "a connection's slot is given away twice"

    def round(self, place: int, fate: str) -> None:
        """A step, and everything that is out is answered as it should be, but one."""
        self.step()
        flying, self.flying = self.flying, []
        for index, flight in enumerate(flying):
            self._land(*flight, fate if index == place % len(flying) else "well")
        pending, self.pending = self.pending, []
        for index, action in enumerate(pending):
            self._answer(action, fate if index == place % len(pending) else "well")

    def answer(self, place: int, fate: str) -> None:
        """Something becomes of one thing that is out."""
        if self.flying and place % 2:
            self._land(*self.flying.pop(place % len(self.flying)), fate)
        elif self.pending:
            self._answer(self.pending.pop(place % len(self.pending)), fate)

    def _answer(self, action: act.Write | act.Send, fate: str) -> None:
        if fate == "late":
            self.pending.append(action)
        elif isinstance(action, act.Send):
            self._reply(action, fate)
        elif self.over and not isinstance(action, UNFENCED):
            self.world.inbox.append(act.WriteFailed(action, "StaleEpoch", stale=True))
        else:
            self._write(action, fate)

    def _reply(self, send: act.Send, fate: str) -> None:
        if fate == "refused":
            self.world.inbox.append(act.Replied(send.send_id, NoAnswer(Sent.NO, "connection refused")))
        elif fate != "well" and send.request.effect is None:
            self.world.inbox.append(act.Replied(send.send_id, NoAnswer(Sent.MAYBE, fate)))
        else:
            self.world._do(send, self.world.now_s)

    def _land(self, send: act.Send, send_by_s: float, fate: str) -> None:
        """Bytes leave, or send_by is over."""
        world = self.world
        if fate == "late":
            self.flying.append((send, send_by_s))
            return
        if world.now_s >= send_by_s:
            reply: Any = NoAnswer(Sent.NO, "send_by passed")
        else:
            reply = world.server.answer(send.request)
            if fate != "well":
                reply = NoAnswer(Sent.MAYBE, fate, reply.body[:20] if fate == "cut" else b"")
        world.inbox.append(act.Replied(send.send_id, reply))

    def _write(self, write: act.Write, fate: str) -> None:
        """Done; not done; done, and nobody knows."""
        asked_s = self.asked_s.pop(id(write))
        arrival = None if fate == "refused" else self.world.answer(write, asked_s)
        if fate in ("lost", "cut") or arrival is None:
            arrival = act.WriteFailed(write, "OperationalError")
        self.world.inbox.append(arrival)

    def bring_home(self) -> None:
        """Everything that is out is answered, and the loop comes to rest."""
        self.step(act.Drain())
        for _ in range(600):
            while self.flying or self.pending or self.world.inbox:
                self.round(0, "well")
            if self.world.engine.idle:
                return
            self.world.now_s += 0.1
            self.step()
        raise AssertionError("it does not become idle")


class Fleet:
    def __init__(self) -> None:
        self.workers = [Worker(World()), Worker(World())]
        first, second = (worker.world for worker in self.workers)
        second.ledger, second.server = first.ledger, first.server
        self.ledger, self.server = first.ledger, first.server

    def happen(self, kind: str, which: int, fate: str, more: int) -> None:
        """`which` names a worker and a place in its lists; `more` how much."""
        worker, place = self.workers[which % 2], which // 2
        match kind:
            case "round":
                worker.round(place, fate)
            case "step":
                worker.step()
            case "answer":
                worker.answer(place, fate)
            case "kick":
                worker.step(act.Kick(SERVED[more % len(SERVED)], "a"))
            case "drain" if more == 9:
                worker.step(act.Drain())
            case "bump" if more == 9:
                worker.over = True
            case _:
                self._outside(kind, which, more)

    def _outside(self, kind: str, which: int, more: int) -> None:
        """What producers, people, the server and the clock do."""
        world = self.workers[0].world
        match kind:
            case "time":
                self.time((0.05, 0.2, 0.06, 0.3, 1.0, 0.05, 0.5, 2.0, 5.0, 12.0)[more])
            case "add":
                (world.submits if more % 3 else world.polls)(1 + more // 4)
            case "cancel":
                for id_ in list(self.ledger.rows)[which : which + 1]:
                    world.cancel(id_)
            case "over":
                for task in list(self.server.status)[which : which + 1]:
                    self.server.status[task] = "completed"

    def time(self, seconds: float) -> None:
        for worker in self.workers:
            worker.world.now_s += seconds

    def check(self) -> None:
        assert max(Counter(self.server.keys).values(), default=0) <= 1, "two tasks for one submission key"
        for id_, row in self.ledger.rows.items():
            effects = [intent.effect for intent in row.operation.intents]
            assert len(effects) == len(set(effects)), "two open intents of one effect"
            evidence = any(answer.operation_id == id_ for _, answer in self.ledger.evidence)
            woken = any(key[0] == id_ for key in self.ledger.wakes)
            over = row.operation.state in TERMINAL
            assert over or woken or row.operation.cases or evidence, f"an orphan: {row.operation}"


@settings(max_examples=200)
@given(CHOICES)
def test_whatever_goes_wrong_nothing_is_sent_twice_or_without_an_intent_and_every_loop_comes_home(
    choices: list[Choice],
) -> None:
    fleet = Fleet()
    fleet.workers[0].world.submits(3)
    for worker in fleet.workers:
        worker.step(act.Kick(Lane.SUBMIT, "a"))
    for choice in choices:
        fleet.happen(*choice)
        fleet.check()
    for worker in fleet.workers:
        worker.bring_home()
        fleet.check()
    fleet.server.first_status = "completed"
    for task in fleet.server.status:
        fleet.server.status[task] = "completed"
    world = World()
    world.ledger, world.server = fleet.ledger, fleet.server
    world.now_s = max(worker.world.now_s for worker in fleet.workers) + 30.0  # every lease is over
    world.advance(200.0)
    fleet.check()
    unsettled = [
        row.operation
        for row in fleet.ledger.rows.values()
        if row.operation.state not in TERMINAL and not row.operation.cases
    ]
    assert unsettled == []
    assert fleet.ledger.evidence == []
