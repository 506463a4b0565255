"""The engine in a world of values: a clock that a test moves, a ledger, a server, a wire and a bucket.

Everything that the engine answers a step with lands in a list; what the world makes of it by itself can be held back,
lost or refused by the test. Nothing here has a thread or waits.
"""

import itertools
import math
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from counterfoil.adapters.contract import Answered, NoAnswer, Sent
from counterfoil.adapters.registry import adapter
from counterfoil.ledger import events
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.states import Lane
from counterfoil.ledger.work import Item
from counterfoil.workers import actions as act
from counterfoil.workers.catalog import Catalog
from counterfoil.workers.engine import SERVED, Engine
from counterfoil.workers.jobs import Pace
from counterfoil.workers.sessions import Sessions
from counterfoil.workers.target_entries import TargetEntry
from counterfoil.workers.targets import Target, Targets

from .kit_ledger import Ledger
from .kit_server import LOOKUP_TOOL, SessionServer, TaskServer, elicitation

PROTOCOL = "mcp-2026-07-28"
IN_SESSIONS = "mcp-2025-11-25"
UNIQUE = {"lookup": {"tool": LOOKUP_TOOL, "absence": "unique", "key_lifetime_s": 86_400.0}}
REPLAY = {"lookup": {"replay": True, "key_lifetime_s": 86_400.0}}
A4 = b'{"action":"accept","content":{"paper":"A4"}}'
"""What a person says."""
W = TypeVar("W")

_WORLDS = itertools.count(1)
"""Two worlds may share a ledger, so their send tokens differ."""


def targets(*names: str, url: str = "http://127.0.0.1:1/mcp", **entry: Any) -> Targets:
    """Targets with the default policy, polled at their server's pace, and what `entry` says."""
    made = TargetEntry.model_validate({"url": url, "protocol": PROTOCOL, "poll": {"min_s": 0.2}} | entry)
    return Targets({name: Target(name, adapter(made.protocol).profile, made) for name in names})


class NoSessions:
    """The keeper of sessions that nobody has to load."""

    def load(self, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, bytes]:
        return {}


class World:
    """`held` types of writes and wires are not answered until `release`, nor what `holds` picks; `failing` ones fail.
    `entry` is what the targets file says beside the defaults."""

    def __init__(
        self,
        *names: str,
        pace: Pace | None = None,
        jitter: float = 0.0,
        lanes: Sequence[Lane] = SERVED,
        **entry: Any,
    ) -> None:
        self.now_s = 1000.0
        ids = itertools.count(next(_WORLDS) << 32)
        self.catalog = Catalog(
            targets(*(names or ("a",)), **entry),
            lambda _digests: {},
            Sessions(self),
            new_id=lambda: str(uuid.UUID(int=next(ids))),
        )
        self.ledger = Ledger(self.catalog.read_evidence)
        self.server = SessionServer() if entry.get("protocol") == IN_SESSIONS else TaskServer()
        self.pace = pace or Pace()
        self.engine = Engine(
            self.catalog,
            self.pace,
            lanes,
            rng=lambda: jitter,
            new_token=lambda: uuid.UUID(int=2**100 + next(ids)),
        )
        self.bucket: Callable[[act.Take], act.Tokens] = lambda take: act.Tokens(take, take.count, 0.0)
        self.writes: list[act.Write] = []
        self.wire: list[act.Wire] = []
        self.held: set[type] = set()
        self.holds: Callable[[act.Write | act.Wire], bool] = lambda _: False
        self.failing: set[type] = set()
        self.stale = False
        self.waiting: list[tuple[act.Write | act.Wire, float]] = []
        self.connecting: dict[int, act.Send] = {}
        self.left: list[act.Send] = []
        """Effects whose bytes left."""
        self.inbox: deque[act.Arrival] = deque()
        self.wait_s = 0.0
        self.others_plan = False
        """Another process of this worker has the ticks, and room for what is due."""
        self.planned_s = -math.inf

    # -- setting up --------------------------------------------------------------------------------------------------

    def policy(self, target: str = "a", **changes: Any) -> Policy:
        return self.catalog.policy(target, "work").model_copy(update=changes)

    @property
    def in_sessions(self) -> SessionServer:
        assert isinstance(self.server, SessionServer)
        return self.server

    def submits(self, count: int, target: str = "a", **fields: Any) -> list[uuid.UUID]:
        return [self.ledger.add(self.now_s, self.policy(target), target, **fields).id for _ in range(count)]

    def polls(self, count: int, target: str = "a", due_in_s: float = 0.0, **policy: Any) -> list[uuid.UUID]:
        """Operations whose tasks the server works on."""
        ids = []
        for _ in range(count):
            task = f"known-{len(self.server.status)}"
            self.server.status[task] = "working"
            row = self.ledger.working(self.now_s, self.policy(target, **policy), task, target, due_in_s)
            ids.append(row.id)
        return ids

    def cancel(self, id_: uuid.UUID) -> None:
        """Somebody asks for a cancel, at the door."""
        self.ledger.apply([Item(id_, Lane.DOOR, (events.CancelAsked("asked"),))], self.now_s)

    def asked(self, *keys: str, **policy: Any) -> uuid.UUID:
        """An operation whose task asks these; "paper" alone where none is named."""
        (id_,) = self.polls(1, **policy)
        self.server.ask(self.task(id_), **{key: elicitation(key) for key in keys or ("paper",)})
        self.kick(Lane.POLL)
        self.advance(0.3)
        assert self.state(id_) == "INPUT_REQUIRED"
        self.forget()
        return id_

    def say(self, id_: uuid.UUID, number: int = 1, content: bytes = A4) -> None:
        """A person replies, at the door."""
        self.ledger.apply([Item(id_, Lane.DOOR, (events.ReplyGiven(number, content, "ann"),))], self.now_s)

    def rounds(self, id_: uuid.UUID) -> list[str]:
        return [one.state for one in self.ledger.rows[id_].operation.rounds]

    def task(self, id_: uuid.UUID) -> str:
        task = self.ledger.rows[id_].operation.task_id
        assert task is not None
        return task

    # -- running -----------------------------------------------------------------------------------------------------

    def step(self, *arrivals: act.Arrival) -> act.Actions:
        """One step with what has arrived by now and `arrivals`; its answers arrive with the next one."""
        taken = [*self.inbox, *arrivals]
        self.inbox.clear()
        if self.others_plan:
            self.planned_s = self.now_s
        actions = self.engine.step(self.now_s, taken, self.planned_s)
        self.writes += actions.writes
        self.wire += actions.wire
        for action in (*actions.wire, *actions.writes):
            if type(action) in self.held or self.holds(action):
                self.waiting.append((action, self.now_s))
            else:
                self._do(action, self.now_s)
        self.wait_s = actions.wait_s
        return actions

    def settle(self, *arrivals: act.Arrival) -> None:
        """Step at this moment until nothing arrives any more."""
        self.step(*arrivals)
        for _ in range(1000):
            if not self.inbox:
                return
            self.step()
        raise AssertionError("it does not come to rest")

    def advance(self, seconds: float) -> None:
        """Let time pass, stepping whenever the engine asked to be woken."""
        until_s = self.now_s + seconds
        self.settle()
        for _ in range(100_000):
            if self.now_s >= until_s:
                return
            self.now_s = min(self.now_s + max(self.wait_s, 0.001), until_s)
            self.settle()
        raise AssertionError("it asks to be woken all the time")

    def release(self, *kinds: type) -> None:
        """Answer what was held of these kinds, and hold it no more."""
        self.held -= set(kinds)
        due = [(action, asked_s) for action, asked_s in self.waiting if type(action) in kinds]
        self.waiting = [(action, asked_s) for action, asked_s in self.waiting if type(action) not in kinds]
        for action, asked_s in due:
            self._do(action, asked_s)
        self.settle()

    def kick(self, lane: Lane, target: str = "a") -> None:
        self.settle(act.Kick(lane, target))

    # -- looking -----------------------------------------------------------------------------------------------------

    def of(self, kind: type[W]) -> list[W]:
        """Everything of one kind that the engine has answered so far, in order."""
        return [action for action in (*self.writes, *self.wire) if isinstance(action, kind)]

    def effects(self) -> list[act.Send]:
        """Requests with an effect that were handed to the wire, each to be connected first."""
        return [send for send in self.of(act.Send) if send.request.effect is not None]

    def forget(self) -> None:
        self.writes.clear()
        self.wire.clear()
        self.server.asked.clear()

    def brought(self) -> list[str]:
        """The kinds of events in every Apply so far."""
        return [type(event).__name__ for apply in self.of(act.Apply) for item in apply.items for event in item.events]

    def state(self, id_: uuid.UUID) -> str:
        return str(self.ledger.rows[id_].operation.state)

    # -- what the world does by itself -------------------------------------------------------------------------------

    def _do(self, action: act.Write | act.Wire, asked_s: float) -> None:
        if type(action) in self.failing:
            assert not isinstance(action, act.Send | act.Go | act.Abort | act.Finish)
            self.inbox.append(act.WriteFailed(action, "OperationalError", stale=self.stale))
            return
        arrival = self.answer(action, asked_s)
        if arrival is not None:
            self.inbox.append(arrival)

    def answer(self, action: act.Write | act.Wire, asked_s: float) -> act.Arrival | None:
        """What comes back for this action, now."""
        match action:
            case act.Send() if action.request.effect is None:
                return act.Replied(action.send_id, self.server.answer(action.request))
            case act.Send():
                self.connecting[action.send_id] = action
                return act.Connected(action.send_id)
            case act.Go():
                return self._leave(action)
            case act.Abort():
                sent = self.connecting.pop(action.send_id, None)
                return sent and act.Replied(action.send_id, NoAnswer(Sent.NO, action.why))
            case act.Finish():
                return None
            case act.Take():
                return self.bucket(action)
            case act.KeepContract():
                return act.ContractKept(action.key, action.policy.digest(), self._session(action.session))
            case act.CloseTarget():
                return act.Released(0)
            case _:
                return self._of_the_ledger(action, asked_s)

    def _of_the_ledger(self, write: act.Write, asked_s: float) -> act.Arrival:
        ledger, now_s = self.ledger, self.now_s
        match write:
            case act.Plan():
                return act.Planned(ledger.plan(write.lanes, write.ahead_s, now_s))
            case act.Sweep():
                return act.Swept(ledger.overdue(now_s))
            case act.Claim():
                return act.Claimed(write, asked_s, ledger.claim(write, now_s))
            case act.Intend():
                return act.Intended(write.send_id, asked_s, ledger.intend(write.request, now_s))
            case act.Keep():
                ledger.keep(write.answer, now_s)
                return act.Kept(write.send_id)
            case act.Apply():
                return act.AppliedBatch(write.items, asked_s, ledger.apply(write.items, now_s))
            case act.Renew():
                return act.RenewedBatch(asked_s, write.held, ledger.renew(write.held, now_s))
            case act.Reread():
                return act.RereadBatch(write.held, ledger.reread(write.held))
            case act.FindTasks():
                words = dict(write.hints)
                return act.TasksFound([(id_, words[task]) for id_, task in ledger.find_tasks(write.target, words)])
            case act.Release():
                ledger.release(write.rows, now_s)
                return act.Released(len(write.rows))
            case _:
                raise AssertionError(f"nobody answers a {type(write).__name__}")

    def _session(self, session: bytes | None) -> uuid.UUID | None:
        """A session as the ledger keeps it: under an id of its own, the same for all workers."""
        if session is None:
            return None
        id_ = uuid.uuid5(uuid.NAMESPACE_URL, session.decode())
        self.ledger.sessions[id_] = session
        return id_

    def load(self, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, bytes]:
        """The keeper of sessions."""
        return {id_: self.ledger.sessions[id_] for id_ in ids}

    def _leave(self, go: act.Go) -> act.Arrival | None:
        send = self.connecting.pop(go.send_id, None)
        if send is None:
            return None  # aborted before: the wire does not listen any more
        if self.now_s >= go.send_by_s:
            return act.Replied(go.send_id, NoAnswer(Sent.NO, "send_by passed"))
        self.left.append(send)
        return act.Replied(go.send_id, self.server.answer(send.request))

    def reply(self, send: act.Send, reply: Answered | NoAnswer) -> None:
        """The wire's word on a request whose own answer is held."""
        self.connecting.pop(send.send_id, None)
        self.waiting = [
            (action, at_s) for action, at_s in self.waiting if getattr(action, "send_id", 0) != send.send_id
        ]
        self.settle(act.Replied(send.send_id, reply))
