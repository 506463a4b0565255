"""How time goes on in a world: to the next moment at which something happens by itself."""

import math

from .ledgerdb import fleet_of
from .moves import BEAT_S, FOR_EVER_S, GRACE_S, PATIENCE_S, SETTLED_SQL, Move

ROUNDING_S = 0.001
"""The ledger's moments are whole microseconds."""


class Timing:
    """The part of a World that lets time pass."""

    def _pass_time(self) -> bool:
        """On to the next moment at which something happens by itself. False: nothing will any more."""
        moments = [self.network.next_s(), *(at_s for at_s, _, _ in self._later)]
        for worker in self.workers:
            if worker.alive and worker.frozen_until_s > self.now_s:
                moments.append(worker.frozen_until_s)
            elif worker.alive:
                moments += [] if worker.asleep else [worker.timer_s]
                moments += [until_s for until_s in worker.hanging_until_s.values() if until_s > self.now_s]
                moments += [at_s for at_s, _ in worker.late]
        soonest_s = max(min(moments), self.now_s)
        beat_s, sweep_s = math.inf, math.inf
        if not self._before_the_ledger(soonest_s):
            due_s, waiting, evidence_s = self._peek()
            if self.now_s > PATIENCE_S and not waiting and not self._later and evidence_s == math.inf:
                return False
            beat_s = max(due_s, self._beat_at_s)
            sweep_s = max(evidence_s + GRACE_S, self._swept_at_s)
        next_s = max(min(soonest_s, beat_s, sweep_s), self.now_s)
        if next_s == math.inf or next_s > FOR_EVER_S:
            return False
        if self._running and self._end_idle_transactions(next_s):
            return True
        self.now_s = next_s
        if beat_s <= next_s:
            self._beat_at_s = next_s + BEAT_S
            self._do(Move(0, "beat", "plans", self._beat))
        if sweep_s <= next_s:
            self._swept_at_s = next_s + BEAT_S
            for worker in self.workers:
                if worker.running:
                    self._do(Move(0, f"{worker.name} loop", "ticks", worker.step))
        return True

    def _before_the_ledger(self, next_s: float) -> bool:
        """Whether it is then too early for anything that is due in the ledger, so that it need not be asked: no beat
        yet, and evidence that came since it was last seen has not lain about for long enough."""
        return (
            next_s < self._beat_at_s
            and next_s < max(self._evidence_from_s + GRACE_S, self._swept_at_s) - ROUNDING_S
            and self.now_s <= PATIENCE_S
        )

    def _peek(self) -> tuple[float, int, float]:
        """Until when nothing is due in the ledger, how many operations are neither over nor with a person, and since
        when evidence lies about. (Known until something is written.)"""
        if self._peeked is None:
            row = self.db.owner.execute(SETTLED_SQL, self.family.peek | {"fleet": fleet_of(self.tag)}).fetchone()
            assert row is not None
            due_s, waiting, evidence_s = row
            self._peeked = (
                math.inf if due_s is None else max(due_s, 0.0),
                waiting,
                math.inf if evidence_s is None else evidence_s,
            )
            self._evidence_from_s = min(self._peeked[2], self.now_s)
        return self._peeked

    @property
    def nothing_to_sweep(self) -> bool:
        """No evidence lies about and no epoch has ended: a sweep would find nothing."""
        return not self.bumps and self._peek()[2] == math.inf
