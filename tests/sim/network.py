"""What is between a worker and its server: connections, requests and answers on their way, and all that can happen to
them. Every message is an actor."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from counterfoil.adapters.contract import Answered, NoAnswer, Request, Sent
from counterfoil.workers import actions as act

from . import dialects
from .spoken import BROKEN, REFUSALS, Told

if TYPE_CHECKING:
    from .worker import Worker
    from .world import World

LATENCY_S = 0.04

ON_THE_WAY = ("request lost", "answer lost", "request late", "answer late", "answer cut", "request doubled")
BY_THE_SERVER = (*REFUSALS, *BROKEN)
OF_A_SUBMIT = ("internal error", "reused id", "connect refused", "method gone")
OF_A_CANCEL = ("not found", "connect refused")
OF_A_READING = ("not found", "other task", "other birth", "older status", "hostile text")
FAULTS = (
    *ON_THE_WAY,
    *BY_THE_SERVER,
    "internal error",
    "reused id",
    "connect refused",
    *OF_A_READING,
    "method gone",
)
"""A fault's number in a recorded run is its place here plus one: only ever append."""

LATE_S = (3.0, 11.0, 30.0)


class Phase(Enum):
    CONNECTING = auto()
    GATE = auto()
    LEAVING = auto()
    OUT = auto()
    BACK = auto()
    OVER = auto()


@dataclass
class Flight:
    """One request and its answer. `worker` waits for it until `given_up`."""

    worker: "Worker"
    send: act.Send
    name: str
    since: int
    phase: Phase
    at_s: float
    decided_s: float
    send_by_s: float = math.inf
    deadline_s: float = math.inf
    fault: str = ""
    reply: Answered | NoAnswer | None = None
    given_up: bool = False
    told: Told | None = None
    """What its answer says of a task."""
    ghost: bool = False
    """Nobody waits: the second of a doubled request."""


@dataclass(frozen=True)
class Sending:
    """A request with an effect whose first byte left, as the wire knows it."""

    at_s: float
    worker: str
    epoch: int
    effect: str
    token: str
    key: str | None
    task: str | None
    name: str
    arguments: str
    leg: str
    """What it answered, where the call had been answered with a question."""


class Network:
    def __init__(self, world: "World") -> None:
        self._world = world
        self._flights: list[Flight] = []
        self._counts: dict[str, int] = {}
        self.sent: list[Sending] = []
        self.not_processed: set[str] = set()
        """Send tokens of effects that the server refused with their credential."""
        self.requests: list[tuple[float, int, str]] = []
        """(when it was decided, epoch of its worker, name) of each request that left."""
        self.departures: list[float] = []

    def memory(self) -> Any:
        """What a run that goes on from here has to know."""
        return self._counts, self.sent, self.requests, self.departures

    def remember(self, memory: Any) -> None:
        self._counts, self.sent, self.requests, self.departures = memory

    # -- from a worker -----------------------------------------------------------------------------------------------

    def put(self, worker: "Worker", wire: act.Wire) -> None:
        match wire:
            case act.Send():
                effect = wire.request.effect is not None
                phase = Phase.CONNECTING if effect else Phase.LEAVING
                name = self._name(wire.request)
                now_s = self._world.now_s
                self._flights.append(Flight(worker, wire, name, self._world.serial(), phase, now_s, now_s))
            case act.Go():
                flight = self._of(worker, wire.send_id)
                if flight is not None and flight.phase is Phase.GATE:
                    flight.phase, flight.since = Phase.LEAVING, self._world.serial()
                    flight.send_by_s = wire.send_by_s - worker.offset_s
            case act.Abort():
                flight = self._of(worker, wire.send_id)
                if flight is not None and flight.phase in (Phase.CONNECTING, Phase.GATE):
                    self._end(flight, NoAnswer(Sent.NO, wire.why))
            case act.Finish():
                pass

    def _name(self, request: Request) -> str:
        method = dialects.read(self._world.protocol, request).method
        self._counts[method] = self._counts.get(method, 0) + 1
        return f"{method} {self._counts[method]}"

    def _of(self, worker: "Worker", send_id: int) -> Flight | None:
        return next(
            (
                flight
                for flight in self._flights
                if flight.worker is worker and flight.send.send_id == send_id and not flight.ghost
            ),
            None,
        )

    def crashed(self, worker: "Worker") -> None:
        """Nobody waits any more; what has left is on its way."""
        for flight in self._flights:
            if flight.worker is worker:
                flight.given_up = True
        self._flights = [flight for flight in self._flights if not flight.given_up or flight.phase is Phase.OUT]

    # -- moves -------------------------------------------------------------------------------------------------------

    def moves(self) -> Iterator[tuple[int, str, str, "Flight"]]:
        """(since, actor, label, flight) of everything that can happen now."""
        now_s = self._world.now_s
        for flight in self._flights:
            if flight.phase is Phase.OUT and flight.at_s <= now_s:
                yield flight.since, flight.name, "arrives", flight
            if flight.given_up or not flight.worker.running or flight.ghost:
                continue
            if flight.phase is Phase.BACK and flight.at_s <= now_s:
                yield flight.since, flight.name, "is answered", flight
            elif flight.phase is Phase.CONNECTING:
                yield flight.since, flight.name, "connects", flight
            elif flight.phase is Phase.LEAVING:
                yield flight.since, flight.name, "leaves", flight
            if flight.deadline_s <= now_s:
                yield flight.since, flight.name, "times out", flight

    def next_s(self) -> float:
        """When something happens by itself."""
        moments = [math.inf]
        for flight in self._flights:
            if flight.phase in (Phase.OUT, Phase.BACK):
                moments.append(flight.at_s)
            if not flight.given_up and flight.deadline_s < math.inf:
                moments.append(flight.deadline_s)
        return min((moment for moment in moments if moment > self._world.now_s), default=math.inf)

    def __len__(self) -> int:
        return len(self._flights)

    def happen(self, flight: Flight, label: str) -> None:
        match label:
            case "connects":
                self._connect(flight)
            case "leaves":
                self._leave(flight)
            case "arrives":
                self._arrive(flight)
            case "is answered":
                assert flight.reply is not None
                self._end(flight, flight.reply)
            case "times out":
                self._world.sometimes("a request timed out")
                self._end(flight, NoAnswer(Sent.MAYBE, "no answer in time"), gone=flight.phase is not Phase.OUT)

    def _end(self, flight: Flight, reply: Answered | NoAnswer, *, gone: bool = True) -> None:
        """The worker hears of it."""
        flight.given_up = True
        flight.deadline_s = math.inf
        if gone:
            flight.phase = Phase.OVER
            self._flights.remove(flight)
        self._world.heard(flight, reply)
        flight.worker.take(act.Replied(flight.send.send_id, reply))

    def _connect(self, flight: Flight) -> None:
        flight.fault = self._fault(flight)
        if flight.fault == "connect refused":
            self._end(flight, NoAnswer(Sent.NO, "connection refused"))
            return
        flight.phase = Phase.GATE
        flight.worker.take(act.Connected(flight.send.send_id))

    def _leave(self, flight: Flight) -> None:
        request, now_s = flight.send.request, self._world.now_s
        if request.effect is None:
            flight.fault = self._fault(flight)
        elif now_s >= flight.send_by_s:
            self._world.sometimes("send_by had passed at the first byte")
            self._end(flight, NoAnswer(Sent.NO, "send_by passed"))
            return
        else:
            self._note_sending(flight)
        self.departures.append(now_s)
        self.requests.append((flight.decided_s, flight.worker.epoch, flight.name))
        flight.phase, flight.since = Phase.OUT, self._world.serial()
        flight.deadline_s = now_s + request.deadline_s
        flight.at_s = now_s + LATENCY_S
        if flight.fault == "request lost":
            flight.at_s = math.inf
        elif flight.fault == "request late":
            flight.at_s += self._world.late_s(f"{flight.name}: how late")
        elif flight.fault == "request doubled":
            late_s = self._world.late_s(f"{flight.name}: how late")
            again, since = f"{flight.name} again", self._world.serial()
            ghost = Flight(flight.worker, flight.send, again, since, Phase.OUT, now_s + late_s, now_s)
            ghost.ghost = ghost.given_up = True
            self._flights.append(ghost)

    def _note_sending(self, flight: Flight) -> None:
        request = flight.send.request
        assert request.effect is not None
        asked = dialects.read(self._world.protocol, request)
        self.sent.append(
            Sending(
                self._world.now_s,
                flight.worker.name,
                flight.worker.epoch,
                str(request.effect),
                flight.worker.send_tokens.get(flight.send.send_id, ""),
                asked.key,
                asked.task,
                flight.name,
                asked.arguments,
                asked.leg,
            )
        )

    def _arrive(self, flight: Flight) -> None:
        now_s = self._world.now_s
        fault = flight.fault if flight.fault not in ON_THE_WAY else ""
        if fault == "credential refused":
            self.not_processed.add(flight.worker.send_tokens.get(flight.send.send_id, ""))
        said = dialects.hear(
            self._world.server,
            self._world.protocol,
            now_s,
            dialects.read(self._world.protocol, flight.send.request),
            fault,
        )
        if flight.given_up:
            if not flight.ghost:
                self._world.sometimes("a request arrived after its sender had given up")
            self._flights.remove(flight)
            return
        flight.phase, flight.since = Phase.BACK, self._world.serial()
        flight.reply, flight.at_s, flight.told = said.reply, now_s + said.takes_s + LATENCY_S, said.told
        if flight.fault == "answer lost":
            flight.at_s = math.inf
        elif flight.fault == "answer late":
            flight.at_s += self._world.late_s(f"{flight.name}: how late")
        elif flight.fault == "answer cut":
            flight.reply = NoAnswer(Sent.MAYBE, "the connection broke", said.reply.body[: len(said.reply.body) // 2])

    def _fault(self, flight: Flight) -> str:
        effect = flight.send.request.effect
        method = flight.name.partition(" ")[0]
        if effect is not None:
            of_this = OF_A_SUBMIT if effect == "submit" else OF_A_CANCEL if effect == "cancel" else ("connect refused",)
        elif method in ("tasks/get", "tasks/result"):
            of_this = OF_A_READING
        else:
            of_this = ()
        if method in {"notifications/initialized", "DELETE"}:
            return ""
        return self._world.fault(flight.name, (*ON_THE_WAY, *BY_THE_SERVER, *of_this))
