"""One run: workers, people, a network and a server around the real ledger, moved one step at a time.

Time stands still while anybody can move; it goes on to the next moment at which something happens by itself. So what
time can do to us (a late message, a stopped process, a slow database) is a choice of its own, the rest is order.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

from counterfoil.ledger import epochs
from counterfoil.ledger import ids as ledger_ids
from counterfoil.workers import actions as act
from counterfoil.workers.bucket import LocalBucket

from .chance import HORIZON, Choices
from .leases import Leases
from .ledgerdb import LedgerDb, fleet_of
from .moves import (
    ABSENT,
    ANCHORS,
    FOR_EVER_S,
    MAX_MOVES,
    RESTART_S,
    STATEMENTS,
    TIMES,
    Anchored,
    Held,
    Move,
    Snapshot,
    Stuck,
    Wipeable,
    _Reached,
)
from .network import Network
from .record import BumpFact, StopFact
from .remote import Server
from .shocks import Shocks
from .spoken import Told
from .strands import Strands as TierB
from .telling import _kind
from .timing import Timing
from .witness import Witness
from .worker import Ids, OpenVault, Worker

if TYPE_CHECKING:
    from counterfoil.workers.vault import Vault

    from .family import Family
    from .statements import Loom, Strand


class World(Witness, Shocks, Timing, TierB):
    """`told` is asked for a line of the story at each move; None: nobody listens."""

    def __init__(
        self,
        db: LedgerDb,
        family: "Family",
        tag: str,
        choices: Choices,
        *,
        loom: "Loom | None" = None,
        story: bool = False,
    ) -> None:
        self.db = db
        self.loom = loom
        if loom is not None:
            loom.now_s = lambda: self.now_s
        self._running: list[tuple[Strand, int, Callable[[Any], None]]] = []
        self.family = family
        self.tag = tag
        self.choices = choices
        self.protocol = family.protocol
        self.targets = family.targets
        self.edited = family.edited_targets
        self.now_s = 0.0
        self.ids = Ids(tag)
        self.server = Server(
            family.server, tag, self._course_of, blocks=self.protocol == "mcp-sync", remembers_s=family.remembers_s
        )
        self.network = Network(self)
        self.bucket = Wipeable(lambda: LocalBucket(self.targets.limits, lambda: self.now_s))
        self.workers: list[Worker] = []
        self.operations: list[UUID] = []
        self.forced: dict[str, str] = {}
        """What goes wrong with messages for certain, by their names."""
        self.answers_held: list[Held] = []
        self.told: list[tuple[str, float, Told]] = []
        self.reached: set[str] = set()
        self.pairs: set[tuple[str, str]] = set()
        self.moves = 0
        self.story: list[str] | None = [] if story else None
        self._serial = 0
        self._trace = sha256(f"{family.protocol} {family.server}".encode())
        self._last = ""
        self._agenda: list[tuple[int, str, Callable[[], None]]] = []
        self._anchored: list[Anchored] = []
        self._later: list[tuple[float, str, Callable[[], None]]] = []
        self._beat_at_s = 0.0
        self._swept_at_s = 0.0
        self._evidence_from_s = -math.inf
        """Evidence that lies about has come then or later."""
        self.answers_to_producers: list[tuple[int, str]] = []
        self.acted_upon: list[tuple[str, str]] = []
        self.standby: Callable[[], LedgerDb] | None = None
        self.failed_over_s = -math.inf
        self._behind: str | None = None
        self.stopped_between: list[StopFact] = []
        self._stopped: dict[str, frozenset[str]] = {}
        self._epoch_then: dict[str, int] = {}
        self._born = 0
        self._peeked: tuple[float, int, float] | None = None
        self._kicks = 0
        self._until: Callable[[str], bool] | None = None
        self.crashed_before: set[str] = set()
        self._started = 0
        self._old_leases: frozenset[tuple[str, ...]] = frozenset()
        self._before_bump: Snapshot | None = None
        self.bumps: list[BumpFact] = []
        self.stale_leases: list[str] = []
        self.leased = Leases(self.place)
        self.verdicts: list[tuple[str, int, str]] = []
        self.replied: list[tuple[str, int, str]] = []
        self.acceptances: list[tuple[str, str]] = []
        self.finished = False

    @property
    def vault(self) -> "Vault | None":
        """Keys, where sessions have to be kept."""
        kept = any(self.targets[name].profile.sessions for name in self.targets.names)
        return OpenVault() if kept else None  # type: ignore[return-value]

    def wipe_bucket(self) -> None:
        """The bucket forgets what was taken."""
        self.bucket.wipe()

    # -- the ports ---------------------------------------------------------------------------------------------------

    def serial(self) -> int:
        """Who waits longest."""
        self._serial += 1
        return self._serial

    def place(self, operation_id: UUID) -> int:
        """An operation's number in this run."""
        if operation_id not in self.operations:
            self.operations.append(operation_id)
        return self.operations.index(operation_id)

    def sometimes(self, what: str) -> None:
        """A rare state was reached. Those that a campaign never reaches fail it."""
        self.reached.add(what)

    def tell(self, line: str) -> None:
        if self.story is not None:
            self.story.append(f"{self.now_s:8.2f}  {line}")

    # -- what happens to workers -------------------------------------------------------------------------------------

    def start_worker(self, *, obstinate: bool = False) -> None:
        """A process begins: it reads the epoch that it keeps for life."""
        self._started += 1
        name = f"w{self._started}"
        offset_s = (1000.0, 1300.0, 700.0, 1e6)[self.choices.pick(f"clock of {name}", 4)]

        def begin(epoch: int | Exception) -> None:
            if isinstance(epoch, Exception):
                raise epoch
            self.workers.append(Worker(self, name, offset_s, epoch, obstinate=obstinate))
            self.workers.sort(key=lambda worker: int(worker.name[1:]))

        self.execute(f"start {name}", lambda: epochs.current_epoch(self.db.database, fleet_of(self.tag)), begin)

    def ended(self, worker: Worker) -> None:
        """It ended by itself; whoever runs the fleet starts another."""
        worker.alive = False
        self.later(RESTART_S, "another worker starts", self._restart)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the workers that a run begins with."""
        return tuple(f"w{number}" for number in range(self._started - self.family.workers + 1, self._started + 1))

    def crash(self, worker: Worker) -> None:
        """Dead at once: nothing of it runs any more."""
        if not worker.alive:
            return
        worker.alive = False
        worker.crashed = True
        for one in [one for one in self._running if one[0].name.startswith(f"{worker.name} ")]:
            self._running.remove(one)
            one[0].kill()
        if self.loom is not None:
            self._done()
        self.network.crashed(worker)
        self.later(RESTART_S, "another worker starts", self._restart)

    def _restart(self) -> None:
        if sum(worker.alive for worker in self.workers) < self.family.workers:
            self.start_worker()

    def fall_behind(self) -> None:
        """From here on nothing reaches the asynchronous standby."""
        self._behind = self.db.dump(self.tag)

    def fail_over(self, recover: Callable[[], None]) -> None:
        """The primary is gone with all that the standby does not have; `recover` is run on it before anything."""
        if self._behind is None or self.standby is None or self.loom is not None:
            return
        for worker in self.workers:
            if worker.alive:
                self.crash(worker)
        self.leased.forget()
        standby = self.standby()
        standby.take_over(self._behind, self.db)
        self.db, self._behind, self._peeked = standby, None, None
        self.db.at(self.now_s)
        self.bumps.clear()
        self.answers_held.clear()
        self.failed_over_s = self.now_s
        self.sometimes("the database failed over")
        recover()

    # -- what is planned ---------------------------------------------------------------------------------------------

    def plan(
        self, label: str, what: Callable[[], None], chance: float = 0.5, *, worker: str = "", anchored: float = 0.5
    ) -> None:
        """Something that somebody does once: before the k-th move, or (`anchored`: how likely that is) right before a
        move
        of some kind. When is a choice, 0 for never."""
        at = self.choices.pick(f"when {label}", HORIZON + 1, chance)
        if not at:
            return
        anchors = ANCHORS if self.loom is None else (*ANCHORS, *STATEMENTS)
        place = self.choices.among(f"when {label}: right before", self._anchors, TIMES * len(anchors) + 1, anchored)
        if place:
            number, times = divmod(place - 1, TIMES)
            self._anchored.append(Anchored(anchors[number], times + 1, worker, label, what))
        else:
            self._agenda.append((at, label, what))

    @property
    def _anchors(self) -> list[int]:
        """Those that this protocol and tier can come to."""
        absent = ABSENT[self.protocol] + (() if self.family.entry.get("lookup") else ("lookup ",))
        anchors = [*ANCHORS, *(STATEMENTS if self.loom is not None else ())]
        return [
            TIMES * number + times + 1
            for number, anchor in enumerate(anchors)
            for times in range(TIMES)
            if not anchor.startswith(absent)
        ]

    def plan_for(
        self,
        name: str,
        label: str,
        what: Callable[[Worker], None],
        chance: float,
        *,
        at: int | None = None,
        anchored: float = 0.5,
    ) -> None:
        """Something that happens to a worker, if it is there and alive then."""

        happen = partial(self.for_worker, name, what)
        if at is None:
            self.plan(f"{name} {label}", happen, chance, worker=name, anchored=anchored)
        else:
            self._agenda.append((at, f"{name} {label}", happen))

    def for_worker(self, name: str, what: Callable[[Worker], None]) -> None:
        """To the worker of this name, if it is there and alive."""
        for worker in self.workers:
            if worker.name == name and worker.alive:
                what(worker)

    def _before(self, move: Move) -> bool:
        """Whether something was to happen right before this move, and did."""
        if not self._anchored:
            return False
        kind, happened = _kind(move.line), False
        for one in list(self._anchored):
            if one.kind == kind and one.worker in ("", move.worker):
                one.left -= 1
                if one.left == 0:
                    self._anchored.remove(one)
                    self._do(Move(0, "agenda", one.label, one.what))
                    happened = True
        return happened

    def right_before(self, kind: str, label: str, what: Callable[[], None], *, worker: str = "", time: int = 1) -> None:
        """Something that happens for certain, right before the n-th move of a kind."""
        self._anchored.append(Anchored(kind, time, worker, label, what))

    def sometime(self, label: str, what: Callable[[], None], at_s: Sequence[float], chance: float) -> None:
        """Something that somebody does once, after a while; 0 for never."""
        drawn = self.choices.pick(f"when {label}", len(at_s) + 1, chance)
        if drawn:
            self.later(at_s[drawn - 1], label, what)

    def later(self, in_s: float, label: str, what: Callable[[], None]) -> None:
        self._later.append((self.now_s + in_s, label, what))

    # -- where it begins ---------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Take over the ports that are global."""
        ledger_ids.source = self.ids.source

    def drain(self, worker: Worker) -> None:
        """It puts everything down in order; nobody takes its place."""
        worker.take(act.Drain())
        self.run(until=lambda _: not worker.alive)
        self.drop_later()

    def drop_later(self) -> None:
        """Forget who would have come."""
        self._later.clear()

    def run(self, until: Callable[[str], bool] | None = None) -> bool:
        """Until everything has come to rest, or a move was made that `until` says yes to. Returns whether it was.
        Raises Stuck."""
        self._agenda.sort(key=lambda planned: (planned[0], planned[1]))
        self._until = until
        try:
            self._run()
        except _Reached:
            return True
        return False

    def _run(self) -> None:
        while self.now_s < FOR_EVER_S:
            if self.moves > MAX_MOVES:
                raise Stuck(f"{self.moves} moves and no end")
            if self._agenda and self._agenda[0][0] <= self.moves + 1:
                _, label, what = self._agenda.pop(0)
                self._do(Move(0, "agenda", label, what))
                continue
            moves = sorted(self._possible(), key=lambda move: move.since)
            if moves:
                chosen = self.choices.next(self.moves, [move.actor for move in moves])
                if not self._before(moves[chosen]):
                    self._do(moves[chosen])
            elif not self._pass_time():
                if not self._agenda:
                    self.finished = self.now_s < FOR_EVER_S
                    return
                _, label, what = self._agenda.pop(0)
                self._do(Move(0, "agenda", label, what))

    def _do(self, move: Move) -> None:
        self.moves += 1
        line = move.line
        self.tell(line)
        self._trace.update(f"{line}\n".encode())
        kind = _kind(line)
        self.pairs.add((self._last, kind))
        self._last = kind
        self.db.at(self.now_s)
        move.act()
        if self._until is not None and self._until(line):
            raise _Reached

    def goes_wrong(self, what: str) -> None:
        """With a message that is on its way."""
        self.tell(f"    ! {what}")
        self._trace.update(f"! {what}\n".encode())

    def trace(self) -> bytes:
        """Two runs are the same ordering if this is the same: on the same kind of server, the same moves, and the same
        went wrong with messages."""
        return self._trace.digest()

    def _possible(self) -> Iterable[Move]:
        now_s = self.now_s
        for worker in self.workers:
            if not worker.running:
                continue
            name = worker.name
            if worker.inbox:
                yield Move(worker.inbox[0][0], f"{name} loop", "steps", worker.step, name)
            elif worker.timer_s <= now_s and not worker.asleep:
                yield Move(self._serial, f"{name} loop", "ticks", worker.step, name)
            if worker.bulk and worker.hanging_until_s["bulk"] <= now_s and "bulk" not in worker.working:
                since, write, _ = worker.bulk[0]
                yield Move(since, f"{name} bulk", type(write).__name__, worker.write_bulk, name)
            if worker.has_urgent and worker.hanging_until_s["urgent"] <= now_s and "urgent" not in worker.working:
                label = "+".join(["Intend"] * bool(worker.intending) + ["Keep"] * bool(worker.keeping))
                yield Move(worker.urgent_since, f"{name} urgent", label, worker.write_urgent, name)
            if worker.tokens:
                yield Move(worker.tokens[0][0], f"{name} tokens", "Take", worker.take_tokens, name)
            if worker.late and worker.late[0][0] <= now_s:
                yield Move(self._serial, f"{name} bulk", "is noticed", worker.notice, name)
        yield from self._statements()
        for since, actor, label, flight in self.network.moves():
            act_now = partial(self.network.happen, flight, label)
            yield Move(since, actor, label, act_now, flight.worker.name)
        for at_s, label, what in self._later:
            if at_s <= now_s:
                yield Move(self._serial, "time", label, partial(self._now_due, (at_s, label, what)))

    # -- transactions ------------------------------------------------------------------------------------------------

    def _now_due(self, one: tuple[float, str, Callable[[], None]]) -> None:
        self._later.remove(one)
        one[2]()
