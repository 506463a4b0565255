"""The loop, without a socket, a database or a clock: `step(moment_s, arrivals) -> Actions`.

plan -> claim -> intend -> exchange -> apply -> settle, over whatever is due. `drive.py` runs it on the wire and its
database connections, the simulator on its own clock.

A row that was claimed stays *resident* over submit -> poll -> poll: its lease is kept and an unchanged poll writes
nothing. The remaining lease is looked at before every send, renewed when half of it is gone, and rows that somebody
kicked or took are found by looking at them again once a tick. What an answer means for the ledger is decided under the
row lock; in here `decide` only tells whether anything has to be written at all.

What the loop has in its hands: rows (`holdings.py`), what is sent for them (`exchanges.py`) and what only asks
(`readings.py`), requests between decision and reply (`requests.py`), claims (`claims.py`) and outcomes on their way
(`outcomes.py`).
"""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from ..ledger import events
from ..ledger.states import QUEUES, Lane
from ..ledger.work import Item
from . import actions as act
from .catalog import Catalog
from .claims import Claims, LaneOf
from .effects import EFFECT_LANES
from .exchanges import Exchanges
from .holdings import JITTER, POLL_LANES, Holdings
from .jobs import UNSTARTED, Job, Pace
from .outcomes import RETRY_S, Outcomes
from .requests import Requests
from .tokens import HOLD_S

SERVED = QUEUES
"""Lanes that this release works on: all of them."""

WIRELESS = frozenset({Lane.FETCH, Lane.TIMER})
"""Lanes whose rows may need no wire, so that they are claimed although their target asked for quiet."""

ROOM = 20
"""Effects of one target that are held without being out: two rounds of places. What would wait longer is better sent by
another process."""

LOOK_EVERY_S = 1.0
"""How often leases are renewed and resident rows looked at: a statement of each process, whatever it holds."""

TICKS_LAST = 4
"""Ticks after which a process plans for itself again. Whoever is full passes none on: then they all share the work."""

SWEEP_EVERY_S = 2.5
SWEEP_LIMIT = 200


class Engine:
    """One process's loop. Not thread-safe: `step` is called from one place."""

    def __init__(
        self,
        catalog: Catalog,
        pace: Pace,
        lanes: Sequence[Lane],
        *,
        rng: Callable[[], float],
        new_token: Callable[[], UUID],
    ) -> None:
        self._catalog = catalog
        self._pace = pace
        self._lanes = tuple(lane for lane in SERVED if lane in lanes)
        self._rng = rng
        self._now_s = 0.0
        self._wire: list[act.Wire] = []
        self._writes: list[act.Write] = []
        self._claims = Claims(pace)
        self._outcomes = Outcomes(pace)
        alone, resident = len(list(catalog.names)) == 1, Lane.POLL in lanes
        self._jobs = Holdings(pace, self._outcomes, self._write, rng, resident=resident, alone=alone)
        self._requests = Requests(catalog, pace, self._wire.append, self._write)
        self._exchanges = Exchanges(catalog, pace, self._jobs, self._requests, write=self._write, new_token=new_token)
        self._readings = self._exchanges.readings
        self._keeps_again: deque[tuple[float, act.Keep]] = deque()
        self._writing = 0
        self.full = False
        """More is due than it has room for. May be asked from any thread."""
        self._later: dict[LaneOf, float] = {}
        self._kicked_s = -math.inf
        self._planned_s = -math.inf
        self._planning = False
        self._tick_at_s = 0.0
        self._look_at_s = 0.0
        self._looks = 0
        self._sweep_at_s = 0.0
        self._from_outside: Mapping[type, Callable[[Any], None]] = {
            act.Kick: self._kick,
            act.Connected: lambda arrival: self._requests.connected(arrival.send_id, self._now_s),
            act.Replied: lambda arrival: self._exchanges.replied(arrival, self._now_s),
            act.Drain: self._drain,
        }
        self._of_a_write: Mapping[type, Callable[[Any], None]] = {
            act.Planned: self._planned,
            act.Swept: self._swept,
            act.Claimed: self._claimed,
            act.Intended: lambda arrival: self._requests.intended(arrival, self._now_s),
            act.Kept: lambda arrival: self._exchanges.kept(arrival, self._now_s),
            act.AppliedBatch: self._applied,
            act.RenewedBatch: self._renewed,
            act.RereadBatch: self._reread,
            act.Released: lambda _: None,
            act.TasksFound: self._hinted,
            act.ContractKept: lambda arrival: self._readings.contract_kept(arrival, self._now_s),
            act.Tokens: lambda arrival: self._readings.not_asked(
                self._requests.granted(arrival, self._now_s), self._now_s
            ),
            act.WriteFailed: self._failed,
        }

    # -- the step ----------------------------------------------------------------------------------------------------

    def step(self, moment_s: float, arrivals: Sequence[act.Arrival], planned_s: float = -math.inf) -> act.Actions:
        """Take in what arrived and answer with what to do. `moment_s` only grows. `planned_s`: when a process beside
        this one last had a tick, and room."""
        self._now_s = max(moment_s, self._now_s)
        self._planned_s = planned_s
        self._wire.clear()
        self._writes.clear()
        for arrival in arrivals:
            if type(arrival) in self._of_a_write:
                self._writing -= 1
                self._of_a_write[type(arrival)](arrival)
            else:
                self._from_outside[type(arrival)](arrival)
        while self._keeps_again and self._keeps_again[0][0] <= self._now_s:
            self._write(self._keeps_again.popleft()[1])
        for job in self._jobs.pop_due(self._now_s):
            self._exchanges.start(job, self._now_s)
        self._exchanges.start_effects(self._now_s)
        unasked = self._requests.ask_tokens(self._now_s, partial(self._jobs.soon, self._now_s + HOLD_S))
        self._readings.not_asked(unasked, self._now_s)
        self._tick()
        for key in [key for key, at_s in self._later.items() if at_s <= self._now_s]:
            del self._later[key]
            self._claim(*key)
        for key in (*self._jobs.release_kicked(), *self._claims.wanted()):
            self._claim(*key)
        self.full = bool(self._claims.wanted())
        returns = self._jobs.returns(self._now_s)
        if returns is not None:
            self._write(returns)
        batch = self._outcomes.batch(self._now_s)
        if batch is not None:
            self._write(batch)
        return act.Actions(tuple(self._wire), tuple(self._writes), self._wait_s())

    @property
    def draining(self) -> bool:
        """Asked to end: nothing new is taken on."""
        return self._jobs.draining

    @property
    def stale(self) -> bool:
        """The epoch is over: nothing more is sent or written, but for what servers still say."""
        return self._jobs.stale

    @property
    def pressed(self) -> bool:
        """More is to be sent than has a place: the sooner an answer is taken in, the sooner the next one leaves."""
        return self._exchanges.pressed

    @property
    def idle(self) -> bool:
        """Nothing is held, out, or on its way into the ledger."""
        return not (len(self._jobs) or len(self._requests) or len(self._outcomes) or self._writing or self._keeps_again)

    def _wait_s(self) -> float:
        moments = [self._tick_at_s, self._requests.next_s(self._now_s), self._jobs.next_s(), self._outcomes.next_s()]
        moments += self._later.values()
        if self._keeps_again:
            moments.append(self._keeps_again[0][0])
        return max(min(moments) - self._now_s, 0.0)

    def _write(self, write: act.Write) -> None:
        self._writing += 1
        self._writes.append(write)

    def serves(self, lane: Lane) -> bool:
        """Whether this process works on that lane. May be asked from any thread: it never changes."""
        return lane in self._lanes

    # -- claims ------------------------------------------------------------------------------------------------------

    def _kick(self, kick: act.Kick) -> None:
        if self.serves(kick.lane) and kick.target in self._catalog:
            self._kicked_s = self._now_s
            self._wake(kick.lane, kick.target, kick.after_s)

    def _planned(self, planned: act.Planned) -> None:
        self._planning = False
        for due in planned.due:
            if due.count:
                self._wake(due.lane, due.target)
            if due.later_s is not None:
                self._wake(due.lane, due.target, due.later_s)

    def _wake(self, lane: Lane, target: str, after_s: float = 0.0) -> None:
        """Ask for rows now, or at the moment at which they will be due: a tick later they would be late by half of one.
        A moment that is known is kept, since each tick sees others further on."""
        if after_s > 0:
            self._later.setdefault((lane, target), self._pace.slot(self._now_s + after_s))
        else:
            self._claim(lane, target)

    def _claim(self, lane: Lane, target: str) -> None:
        """Ask for due rows. Double wake-ups fold into the claim that is out."""
        if self.draining or self.stale or not self.serves(lane) or target not in self._catalog:
            return
        if lane not in WIRELESS and self._requests.closed_s(target, lane, self._now_s) >= self._pace.poll_lease_s:
            return  # its rows could only be given back
        claim = self._claims.ask((lane, target), self._room(lane, target))
        if claim is not None:
            self._write(claim)

    def _room(self, lane: Lane, target: str) -> int:
        """How many rows of a lane and target may be taken on. Polls can fill their places for as long as their work
        lasts, so only polls are counted against them: a cancel, a result or a deadline never waits for a place."""
        if lane in EFFECT_LANES:
            room = ROOM - self._jobs.unstarted(target, EFFECT_LANES)
            # As below: in a burst 2,000 submits came in 370 claims of 6 ms each.
            return room if lane is not Lane.SUBMIT or room >= ROOM // 2 else 0
        if lane not in POLL_LANES:
            return self._pace.claim_batch - self._jobs.count({lane}, target)
        coming = self._claims.coming(POLL_LANES, target)
        mine = self._jobs.count(POLL_LANES, target) + coming
        share = self._jobs.share(target, self._claims.coming(POLL_LANES) - coming)
        # A claim of one row costs the ledger as much as one of twenty: places are gathered first.
        room = share - mine if share - mine >= min(self._pace.claim_batch // 4, mine) else 0
        self._jobs.crowd(target, crowded=room <= 0)
        return room

    def _claimed(self, claimed: act.Claimed) -> None:
        self._claims.back(claimed.claim, len(claimed.rows))
        for lease, row in claimed.rows:
            # The lease counts from the due moment, and from before the claim was issued: never longer than the
            # ledger's.
            until_s = claimed.asked_s + max(lease.due_in_s, 0.0) + claimed.claim.lease_s
            self._jobs.take_on(row, lease, self._now_s + lease.due_in_s, until_s, self._now_s)

    # -- outcomes ----------------------------------------------------------------------------------------------------

    def _applied(self, batch: act.AppliedBatch) -> None:
        self._outcomes.written()
        self._jobs.applied(batch, self._now_s)

    def _hinted(self, found: act.TasksFound) -> None:
        if not self.stale:
            items = [Item(id_, Lane.POLL, (events.Hinted(status),)) for id_, status in found.hinted]
            self._outcomes.add(items, self._now_s, urgent=True)

    def _swept(self, swept: act.Swept) -> None:
        """Evidence that its bearer did not consume is due work, whatever the operation's state."""
        if not self.stale:
            self._outcomes.add([Item(operation_id, Lane.TIMER) for operation_id in swept.operations], self._now_s)
        if not self.stale and not self.draining:
            for target, credential, session in swept.ended:
                if target in self._catalog:
                    self._readings.say_farewell(target, credential, session, self._now_s)

    # -- time --------------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Renew leases, look again at resident rows, plan when nobody else does, sweep evidence."""
        if self._now_s < self._tick_at_s:
            return
        self._tick_at_s = self._now_s + self._pace.tick_s
        if self.stale:
            return
        if self._now_s >= self._look_at_s:
            self._look_at_s = self._now_s + max(LOOK_EVERY_S, self._pace.tick_s)
            self._look()
        if self.draining:
            return
        kicked = self._now_s - self._kicked_s <= self._pace.self_tick_s
        if not (kicked or self._planning or self._now_s - self._planned_s <= TICKS_LAST * self._pace.tick_s):
            self._planning = True
            self._write(act.Plan(self._lanes, self._pace.claim_ahead_s, 2 * self._pace.claim_batch))
        if self._now_s >= self._sweep_at_s:
            self._sweep_at_s = self._now_s + SWEEP_EVERY_S * (0.8 + 0.4 * self._rng())
            self._write(act.Sweep(SWEEP_LIMIT))

    def _look(self) -> None:
        self._looks += 1
        # What is read every second anyway is looked at every other time: a kick asks for hardly more than that.
        asked_until_s = self._now_s - (self._looks % 2) * LOOK_EVERY_S * (1 + 2 * JITTER)
        renewals, rereads = self._jobs.leases(self._now_s, asked_until_s)
        if renewals:
            self._write(act.Renew(tuple(renewals)))
        if rereads and not self.draining:
            self._write(act.Reread(tuple(rereads)))

    def _renewed(self, batch: act.RenewedBatch) -> None:
        unsure = self._jobs.renewed(batch, self._now_s)
        if unsure:
            self._write(act.Reread(tuple(unsure)))

    def _reread(self, batch: act.RereadBatch) -> None:
        for job in self._jobs.reread(batch, self._now_s):
            self._lost(job)

    def _lost(self, job: Job) -> None:
        """Somebody else's row now. What is out for an effect is still waited for: its answer is evidence."""
        if job.phase in UNSTARTED:
            self._jobs.let_go(job)
        elif job.lane not in EFFECT_LANES:
            job.dropped = True

    # -- trouble and the end -----------------------------------------------------------------------------------------

    def _failed(self, failed: act.WriteFailed) -> None:
        """What a write that did not succeed leaves behind. For those not named: nothing, the next tick or the lease's
        end mends it."""
        if failed.stale and not self.stale:
            self._outcomes.clear()
            self._jobs.end(self._exchanges.end())
        match failed.write:
            case act.Claim():
                self._claims.failed(failed.write)
            case act.Plan():
                self._planning = False
            case act.Keep():
                # Never given up: it is the only handle on the remote task.
                self._keeps_again.append((self._now_s + RETRY_S, failed.write))
            case act.Intend():
                self._requests.not_intended(failed.write.send_id, failed.why)
            case act.Take():
                self._readings.not_asked(self._requests.no_tokens(failed.write, self._now_s), self._now_s)
            case act.KeepContract():
                self._readings.contract_lost(failed.write, failed.why, self._now_s)
            case act.Apply() if self.stale:
                self._outcomes.written()
            case act.Apply():
                self._outcomes.failed(failed.write, self._now_s)
            case _:
                pass

    def _drain(self, _drain: act.Drain) -> None:
        self._jobs.drain(self._now_s)
        self._exchanges.drain(self._now_s)
