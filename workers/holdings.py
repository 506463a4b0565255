"""What this process holds: claimed rows, the moments at which they are due, leases that have to be renewed, and the
ways in which a row leaves our hands."""

import heapq
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from uuid import UUID

from ..ledger.events import Event
from ..ledger.rows import Row
from ..ledger.states import Lane
from ..ledger.store import Lease
from ..ledger.wakes import wakes
from ..ledger.work import Held, Item
from .actions import AppliedBatch, Key, Release, RenewedBatch, RereadBatch, Write
from .jobs import UNSTARTED, Job, Pace, Phase
from .outcomes import Outcomes

POLL_LANES = frozenset({Lane.POLL, Lane.AUDIT})
"""Lanes whose rows may stay as long as the remote work lasts."""

JITTER = 0.1
"""Of the interval, upward only: operations handed in together must not be read together for ever."""

MAX_FAILURES = 10_000
"""Rows whose troubles are remembered while others may hold them."""

HeldRow = tuple[UUID, Lane, UUID]
"""(operation, lane, token)."""


class Holdings:
    """Jobs by (operation, lane), and a heap of due moments in which outdated entries are passed over.

    `draining`: nothing more is taken on. `stale`: the epoch is over, and nothing may be written either.
    """

    def __init__(
        self,
        pace: Pace,
        outcomes: Outcomes,
        write: Callable[[Write], None],
        rng: Callable[[], float],
        *,
        resident: bool,
        alone: bool,
    ) -> None:
        self._pace = pace
        self._alone = alone
        self._outcomes = outcomes
        self._write = write
        self._rng = rng
        self._resident = resident
        self._jobs: dict[Key, Job] = {}
        self._held: Counter[tuple[Lane, str]] = Counter()
        """Of `_jobs`, by lane and target. Who finds no place asks again at each step: with 2,000 rows and 50 targets
        counting them anew would be all that this process does."""
        self._due: list[tuple[float, int, Key]] = []
        self._serial = 0
        self._failures: dict[Key, int] = {}
        self._kicked: list[Job] = []
        self._crowded: set[str] = set()
        self._returning: list[tuple[Lease, float]] = []
        self._return_at_s = math.inf
        self.draining = False
        self.stale = False

    def __len__(self) -> int:
        """Rows that are held, or on their way back."""
        return len(self._jobs) + len(self._returning)

    def unstarted(self, target: str, lanes: Collection[Lane]) -> int:
        """How many rows of a target wait in these lanes without being out."""
        return sum(
            job.phase in UNSTARTED and job.lane in lanes and job.row.target == target for job in self._jobs.values()
        )

    def count(self, lanes: Collection[Lane], target: str | None = None) -> int:
        """How many rows are held in these lanes, of one target or of all."""
        if target is not None:
            return sum(self._held[lane, target] for lane in lanes)
        return sum(count for (lane, _), count in self._held.items() if lane in lanes)

    def crowd(self, target: str, *, crowded: bool) -> None:
        """Whether more rows of a target are due than it has places. Then none stays resident: the ledger hands out the
        most overdue first, and a row that stayed would be read twice before another is read once."""
        (self._crowded.add if crowded else self._crowded.discard)(target)

    def share(self, target: str, coming: int = 0) -> int:
        """How many polls of this target may be held beside those of others and `coming` more of theirs. Whoever comes
        next finds as many places free: a target that answers nothing keeps its own."""
        others = self.count(POLL_LANES) - self.count(POLL_LANES, target) + coming
        free = self._pace.in_flight - others
        return free if self._alone else free // 2

    def _take_place(self, job: Job) -> bool:
        """Whether what follows may be held. A poll goes on in its own place; what a submit began takes one, from now
        on: with those uncounted a target that hung with three times as many as there are places kept the others unread
        for 81 s."""
        target = job.row.target
        if job.lane in POLL_LANES or job.has_place:
            return True
        if self._jobs.get(job.key) is not job or self.count(POLL_LANES, target) >= self.share(target):
            return False
        job.has_place = True
        self._held[Lane.POLL, target] += 1
        return True

    def may_stay(self, target: str) -> bool:
        """Whether a row of this target may be held until its next moment."""
        return not self.draining and target not in self._crowded

    # -- taking on ---------------------------------------------------------------------------------------------------

    def take_on(self, row: Row, lease: Lease, due_s: float, until_s: float, now_s: float) -> None:
        """Hold a row that is due at `due_s` and leased to us until `until_s`."""
        op = row.operation
        left_s = op.budget_left_s if op.budget_running and op.budget_left_s is not None else math.inf
        job = Job(row, lease, due_s, until_s, self._rng(), now_s + left_s)
        if self.draining or self.stale:
            self.give_back(job, lease.due_in_s)
        elif job.key not in self._jobs:
            job.failures = self._failures.pop(job.key, 0)
            self._jobs[job.key] = job
            self._held[job.lane, row.target] += 1
            self.schedule(job, job.due_s)
        else:
            # What was sent for its last lease is still waited for, so somebody else does it. Kept, it would be nobody's
            # until the lease ends.
            self._write(Release(((lease, max(lease.due_in_s, self._pace.tick_s)),)))

    def schedule(self, job: Job, due_s: float) -> None:
        """Let the job wait for its moment."""
        job.phase = Phase.WAITING
        job.due_s = due_s
        self._serial += 1
        heapq.heappush(self._due, (due_s, self._serial, job.key))

    def go_on(self, job: Job, due_s: float) -> None:
        """What it asked changed nothing: let it wait again, unless somebody kicked its row meanwhile."""
        if job.kicked:
            self._kicked.append(job)
            self.let_go(job)
        else:
            self.schedule(job, due_s)

    # -- moments -----------------------------------------------------------------------------------------------------

    def next_s(self) -> float:
        return min(self._pace.slot(self._due[0][0]) if self._due else math.inf, self._return_at_s)

    def soon(self, until_s: float) -> Counter[tuple[str, Lane]]:
        """How many polls of each target are due until then. Only of polls is known when they come."""
        return Counter(
            (job.row.target, Lane.POLL)
            for due_s, _, (id_, lane) in self._due
            if due_s <= until_s
            and lane is Lane.POLL
            and (job := self._jobs.get((id_, lane))) is not None
            and job.phase is Phase.WAITING
            and job.due_s == due_s
        )

    def pop_due(self, now_s: float) -> Iterator[Job]:
        """Jobs whose moment has come and whose lease is not over."""
        while self._due and self._pace.slot(self._due[0][0]) <= now_s:
            due_s, _, key = heapq.heappop(self._due)
            job = self._jobs.get(key)
            if job is None or job.phase is not Phase.WAITING or job.due_s != due_s:
                continue
            if self.over(job, now_s):
                self.let_go(job)
            else:
                yield job

    def over(self, job: Job, now_s: float) -> bool:
        """The lease is (nearly) over: this row is not ours to send for."""
        return now_s > job.until_s - self._pace.slot_s

    # -- letting go --------------------------------------------------------------------------------------------------

    def let_go(self, job: Job) -> None:
        """Forget a row: its lease runs out, or was given back, or is somebody else's."""
        job.dropped = True
        if self._jobs.get(job.key) is job:
            del self._jobs[job.key]
            self._held[job.lane, job.row.target] -= 1
            self._held[Lane.POLL, job.row.target] -= job.has_place

    def release_kicked(self) -> set[tuple[Lane, str]]:
        """Give back the rows that somebody kicked; returns where to claim them anew, as they are now."""
        kicked, self._kicked = self._kicked, []
        if not kicked or self.stale:
            return set()
        for job in kicked:
            self._remember(job)
        self._write(Release(tuple((job.lease, 0.0) for job in kicked)))
        return {(job.lane, job.row.target) for job in kicked}

    def _remember(self, job: Job) -> None:
        """Its troubles in a row, for when the row comes back to us."""
        if job.failures and len(self._failures) < MAX_FAILURES:
            self._failures[job.key] = job.failures

    def give_back(self, job: Job, delay_s: float) -> None:
        """Without an outcome, due again after `delay_s`."""
        if not self.stale:
            self._remember(job)
            self._write(Release(((job.lease, max(delay_s, 0.0)),)))
        self.let_go(job)

    def return_later(self, job: Job, due_s: float, now_s: float) -> None:
        """As `give_back`, of a row that is not due soon: those of the next moments share a statement."""
        if due_s - now_s <= self._pace.flush_s or self.draining:
            self.give_back(job, due_s - now_s)
            return
        if not self.stale:
            self._remember(job)
            self._returning.append((job.lease, due_s))
            self._return_at_s = min(self._return_at_s, now_s + self._pace.flush_s)
        self.let_go(job)

    def returns(self, now_s: float) -> Release | None:
        """What was gathered to be given back, once its moment has come."""
        if now_s < self._return_at_s and not self.draining:
            return None
        rows, self._returning, self._return_at_s = self._returning, [], math.inf
        if not rows or self.stale:
            return None
        return Release(tuple((lease, max(due_s - now_s, 0.0)) for lease, due_s in rows))

    def bring(self, job: Job, now_s: float, *brought: Event, urgent: bool = False) -> None:
        """Put a job's outcome on the way into the ledger. Evidence is consumed there, whatever else is brought."""
        if self.stale:
            self.let_go(job)
            return
        job.phase = Phase.APPLYING
        resident = self._resident and self.may_stay(job.row.target) and self._take_place(job)
        item = Item(
            operation_id=job.row.id,
            lane=job.lane,
            events=brought,
            token=job.lease.token,
            kick=job.lease.kick,
            hold_s=self._pace.poll_lease_s if resident else None,
            hold_lanes=frozenset({Lane.POLL, Lane.FETCH}) if resident else frozenset(),
            jitter=JITTER * job.jitter,
        )
        self._outcomes.add([item], now_s, urgent=urgent)

    def applied(self, batch: AppliedBatch, now_s: float) -> None:
        """Outcomes are in the ledger. Go on with the rows that their transitions left in our hands: same lane, or the
        next one (submit -> poll)."""
        applied = {one.operation_id: one for one in batch.applied}
        for item in batch.items:
            job = self._jobs.get((item.operation_id, item.lane))
            if job is not None and job.phase is Phase.APPLYING:
                self.let_go(job)
            one = applied.get(item.operation_id)
            if one is not None and one.row is not None:
                self._let_go_reading(one.row)
                for held in one.held:
                    if held.token == item.token:
                        self._resume(one.row, item, held, batch.asked_s, now_s)

    def _let_go_reading(self, row: Row) -> None:
        """What another lane brought may have ended what is read here: its row is gone, and a look at it may be two
        seconds away. A reading meanwhile would be one for nothing."""
        job = self._jobs.get((row.id, Lane.POLL))
        if job is not None and job.phase in UNSTARTED and Lane.POLL not in wakes(row.operation):
            self.let_go(job)

    def _resume(self, row: Row, item: Item, held: Held, asked_s: float, now_s: float) -> None:
        # Kicked while its answer was on the way: whoever did it wants it looked at now.
        due_in_s = 0.0 if held.lane is item.lane and held.kick != item.kick else held.due_in_s
        lease = Lease(row.id, held.lane, held.token, held.kick, held.read_seq, 0, due_in_s)
        # What asks to be asked again in a second counts from its answer, which was here before the write was asked for.
        due_s = max(asked_s + due_in_s, now_s)
        self.take_on(row, lease, due_s, asked_s + held.due_in_s + self._pace.poll_lease_s, now_s)

    def drain(self, now_s: float) -> None:
        """Take nothing more on; what has not begun goes back."""
        self.draining = True
        for job in list(self._jobs.values()):
            if job.phase in UNSTARTED:
                self.give_back(job, job.due_s - now_s)

    def end(self, out: Iterable[Job]) -> None:
        """The epoch is over: forget everything but the jobs whose effects are out."""
        self.stale = True
        kept = {job.key for job in out}
        for job in list(self._jobs.values()):
            if job.key not in kept:
                self.let_go(job)

    # -- leases ------------------------------------------------------------------------------------------------------

    def leases(self, now_s: float, asked_until_s: float) -> tuple[list[tuple[UUID, Lane, UUID, float]], list[HeldRow]]:
        """What to renew, and what only to look at again: polls that asked nothing after `asked_until_s`.

        A lease is renewed when half of it is gone, counted from the next due moment. All others go along: their
        renewals would be more statements, and no fewer rows.
        """
        renewals: list[tuple[UUID, Lane, UUID, float]] = []
        rereads: list[HeldRow] = []
        left = [(job, self._lease_left(job, now_s)) for job in self._jobs.values()]
        renewed_below = 1.0 if any(part < 0.5 for _, part in left) else 0.0
        for job, part in left:
            if part < renewed_below:
                wait_s = max(job.due_s - now_s, 0.0) if job.phase is Phase.WAITING else 0.0
                renewals.append((job.row.id, job.lane, job.lease.token, wait_s + self._pace.lease_s(job.lane)))
            elif job.lane is Lane.POLL and job.phase is not Phase.APPLYING and job.asked_s <= asked_until_s:
                rereads.append((job.row.id, job.lane, job.lease.token))
        return renewals, rereads

    def _lease_left(self, job: Job, now_s: float) -> float:
        """The part of its lease that is left at its next due moment."""
        next_s = max(now_s, job.due_s) if job.phase is Phase.WAITING else now_s
        return (job.until_s - next_s) / self._pace.lease_s(job.lane)

    def renewed(self, batch: RenewedBatch, now_s: float) -> list[HeldRow]:
        """Take in a renewal. Returns rows that were not prolonged: they are gone, or a transition held them just then
        (a renewal waits for nobody), so they have to be looked at."""
        unsure = []
        for id_, lane, token, lease_s in batch.asked:
            job = self._ours(id_, lane, token)
            if job is None:
                continue
            found = batch.found.get((id_, lane))
            if found is None:
                unsure.append((id_, lane, token))
            else:
                job.until_s = batch.asked_s + lease_s
                self._look_at(job, found.kick, found.read_seq, now_s)
        return unsure

    def reread(self, batch: RereadBatch, now_s: float) -> list[Job]:
        """Take in a second look; returns the jobs that turned out to be somebody else's."""
        lost = []
        for id_, lane, token in batch.asked:
            job = self._ours(id_, lane, token)
            if job is None:
                continue
            kick = batch.kicks.get((id_, lane))
            if kick is None:
                lost.append(job)
            else:
                self._look_at(job, kick, job.lease.read_seq, now_s)
        return lost

    def _ours(self, id_: UUID, lane: Lane, token: UUID) -> Job | None:
        job = self._jobs.get((id_, lane))
        return None if job is None or job.lease.token != token or job.phase is Phase.APPLYING else job

    def _look_at(self, job: Job, kick: int, read_seq: int, now_s: float) -> None:
        """A row that somebody kicked is given back, to be claimed anew: our copy of it is older than the kick, and a
        decision on an old copy may see nothing to do, for ever (a cancel whose answer was unclear to another worker was
        never sent again). One that is out keeps the old count, and is given back when its answer is here: that was
        asked before the kick."""
        kicked, old = kick != job.lease.kick, job.lease
        job.lease = Lease(old.operation_id, old.lane, old.token, old.kick, read_seq, old.claim_count, old.due_in_s)
        if kicked and job.phase is Phase.WAITING:
            self._kicked.append(job)
            self.let_go(job)
        elif kicked:
            job.kicked = True
