"""Two workers on one ledger and one server, and whatever may go wrong between them, in any order.

Chance picks what happens next: a step of either worker, an answer, a lost reply, a failing write, a kick, a cancel,
a question, a person's word, a hint, time, a drain, the end of one worker's epoch. A worker that is not stepped for long
is a stopped one. On four kinds of server: one that dedupes nothing and can't be asked, one with a lookup and one with
a replay whose keys are unique, and one with sessions that tells each question once.
"""

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.adapters.contract import Answered, NoAnswer, Sent
from counterfoil.ledger import events
from counterfoil.ledger.intents import Granted
from counterfoil.ledger.rounds import REPLY_SENDS
from counterfoil.ledger.states import TERMINAL, Lane, State
from counterfoil.ledger.work import Item
from counterfoil.workers import actions as act
from counterfoil.workers.engine import SERVED

from .kit_server import elicitation, streamed
from .kit_world import A4, IN_SESSIONS, REPLAY, UNIQUE, World

Choice = tuple[str, int, str, int]
KINDS = ("round",) * 30 + (
    "step",
    "answer",
    "time",
    "time",
    "time",
    *("kick",) * 5,
    "lose",
    "lose",
    "add",
    "cancel",
    "over",
    "ask",
    "ask",
    "say",
    "say",
    "hint",
    "drain",
    "bump",
)
FATES = ("well",) * 20 + ("late", "refused", "lost", "cut")
STEPS = 250


def chosen(seed: int) -> list[Choice]:
    """What happens, in order. Drawn evenly: left to itself Hypothesis prefers few and equal steps, with which 67 of 70
    runs never sent anything."""
    rng = random.Random(seed)
    return [(rng.choice(KINDS), rng.randrange(10), rng.choice(FATES), rng.randrange(10)) for _ in range(STEPS)]


UNFENCED = (act.Keep, act.Take)
SOON = {"send_by_s": 2.0, "answer_by_s": 10.0, "settle_s": 0.5}
"""So that a lost submit is looked up while things still happen."""
SERVERS: dict[str, dict[str, Any]] = {
    "nothing": SOON,
    "lookup": SOON | UNIQUE,
    "replay": SOON | REPLAY,
    "sessions": SOON | {"protocol": IN_SESSIONS},
}


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
    heard: set[str] = field(default_factory=set)
    """Tasks whose question came in on a stream."""
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
            self._note(self.world.inbox[-1])

    def _note(self, arrival: act.Arrival) -> None:
        if (
            isinstance(arrival, act.Replied)
            and b"related-task" in arrival.reply.body
            and b"elicit" in arrival.reply.body
        ):
            (line,) = [line for line in arrival.reply.body.splitlines() if line.startswith(b"data: ")]
            named = json.loads(line.removeprefix(b"data: "))["params"]["_meta"]
            self.heard.add(named["io.modelcontextprotocol/related-task"]["taskId"])

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
    def __init__(self, server: str, legs: int) -> None:
        entry = SERVERS[server]
        self.workers = [Worker(World(**entry)), Worker(World(**entry))]
        first, second = (worker.world for worker in self.workers)
        second.ledger, second.server = first.ledger, first.server
        self.ledger, self.server = first.ledger, first.server
        self.server.unique = server in ("lookup", "replay")
        if server != "sessions":
            self.server.legs = [{"inputRequests": {"first": elicitation()}}, {}][:legs]
        self.attempts = 2 if self.server.unique else 1
        self.replays = server == "replay"

    def happen(self, kind: str, which: int, fate: str, more: int) -> None:
        """`which` names a worker and a place in its lists; `more` how much."""
        worker, place = self.workers[which % 2], which // 2
        match kind:
            case "round":
                self.time(0.02)
                worker.round(place, fate)
            case "step":
                worker.step()
            case "answer":
                worker.answer(place, fate)
            case "lose":
                for flight in [worker.flying.pop() for _ in range(len(worker.flying))]:
                    worker._land(*flight, "lost")
            case "kick":
                planned = self.ledger.plan(SERVED, 1.0, worker.world.now_s) if more else ()
                worker.step(act.Kick(SERVED[which % len(SERVED)], "a"), *(act.Kick(due.lane, "a") for due in planned))
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
            case "ask":
                for task in list(self.server.status)[which : which + 1]:
                    if self.server.status[task] == "working":
                        self.server.ask(task, **{f"q-{more}-{len(self.server.asked)}": elicitation()})
            case "say":
                self.say(world)
            case "hint":
                hints = [
                    {"jsonrpc": "2.0", "method": "notifications/tasks", "params": {"taskId": task}}
                    for task in list(self.server.status)[which:]
                ]
                self.server.rules["tools/list"] = lambda asked: self._beside(asked, hints)

    def _beside(self, asked: dict[str, Any], hints: list[dict[str, Any]]) -> Answered:
        result = self.server._result("tools/list", asked)
        return streamed(*hints, {"jsonrpc": "2.0", "id": asked["id"], "result": result})

    def say(self, world: World) -> None:
        """Somebody replies to everything that is open."""
        for row in list(self.ledger.rows.values()):
            for one in row.operation.rounds:
                if one.state == "open":
                    event = events.ReplyGiven(one.number, A4, "ann")
                    self.ledger.apply([Item(row.id, Lane.DOOR, (event,))], world.now_s)

    def time(self, seconds: float) -> None:
        for worker in self.workers:
            worker.world.now_s += seconds

    def check(self) -> None:
        sent = Counter(
            (body["params"]["_meta"]["dev.counterfoil/submission-key"], body["params"].get("requestState"))
            for body in self.server.bodies
            if body["method"] == "tools/call" and body["params"]["name"] == "work"
        )
        if not self.replays:
            assert max(sent.values(), default=0) <= self.attempts, "a call was sent too often"
        made = [task for task in self.server.status if task.startswith("task-")]
        assert len(made) == len({*self.server.keys}), "two tasks for one submission key"
        replied = Counter((task, key) for task, said in self.server.replies for key in said)
        assert max(replied.values(), default=0) <= REPLY_SENDS, "a reply was sent too often"
        for id_, row in self.ledger.rows.items():
            effects = [intent.effect for intent in row.operation.intents]
            assert len(effects) == len(set(effects)), "two open intents of one effect"
            evidence = any(answer.operation_id == id_ for _, answer in self.ledger.evidence)
            woken = any(key[0] == id_ for key in self.ledger.wakes)
            over = row.operation.state in TERMINAL
            assert over or woken or row.operation.cases or evidence, f"an orphan: {row.operation}"

    def check_questions(self) -> None:
        """What was told once, and arrived, is in the ledger, unless the task was known to be past it."""
        kept = {
            answer.operation_id
            for answer in (*self.ledger.heard, *(one for _, one in self.ledger.evidence))
            if answer.kind == "input"
        }
        for task in set[str]().union(*(worker.heard for worker in self.workers)):
            for id_, _ in self.ledger.find_tasks("a", [task]):
                past = self.ledger.rows[id_].operation.state not in (State.WORKING, State.INPUT_REQUIRED)
                assert id_ in kept or past, f"the question of {task} is lost"


@pytest.mark.parametrize("server", SERVERS)
@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(0, 2))
def test_whatever_goes_wrong_nothing_is_sent_twice_or_without_an_intent_and_every_loop_comes_home(
    server: str, seed: int, legs: int
) -> None:
    fleet = Fleet(server, legs)
    fleet.workers[0].world.submits(3)
    for worker in fleet.workers:
        worker.step(act.Kick(Lane.SUBMIT, "a"))
    for choice in chosen(seed):
        fleet.happen(*choice)
        fleet.check()
    for worker in fleet.workers:
        worker.bring_home()
        fleet.check()
    fleet.server.first_status = "completed"
    for task in fleet.server.status:
        fleet.server.status[task] = "completed"
    fleet.check_questions()
    world = World(**SERVERS[server])
    world.ledger, world.server = fleet.ledger, fleet.server
    world.now_s = max(worker.world.now_s for worker in fleet.workers) + 30.0  # every lease is over
    for _ in range(5):
        fleet.say(world)
        world.advance(60.0)
    fleet.check()
    unsettled = [
        row.operation
        for row in fleet.ledger.rows.values()
        if row.operation.state not in TERMINAL and not row.operation.cases
    ]
    assert unsettled == []
    assert fleet.ledger.evidence == []
