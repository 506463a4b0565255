"""What a world notices of its workers, for the auditor."""

from collections.abc import Sequence
from uuid import UUID

from counterfoil.adapters.contract import Answered, NoAnswer
from counterfoil.ledger.errors import CounterfoilError
from counterfoil.workers import actions as act

from .ledgerdb import fleet_of
from .moves import Held, Snapshot
from .network import Flight
from .record import BumpFact, StopFact
from .telling import _let, _told, _told_reply
from .worker import Worker


class Witness:
    """The part of a World that takes down what happened."""

    def wrote(self, worker: Worker, writes: Sequence[act.Write], arrivals: Sequence[act.Arrival]) -> None:
        """Told after each write."""
        if self.loom is None:
            self.leased.wrote(worker, writes, arrivals, self.now_s)
        if worker.epoch < max(self._epoch_then.get(f"{worker.name} {line}", 0) for line in ("bulk", "urgent")):
            self.stale_leases += [
                f"{worker.name} of epoch {worker.epoch} was let: {type(arrival).__name__}"
                for arrival in arrivals
                if _let(arrival)
            ]
        if self.bumps and worker.epoch < self.bumps[-1].epoch:
            epoch = self.bumps[-1].epoch
            fresh = {lease for lease in self.leases() if int(lease[4]) < epoch} - self._old_leases
            self.stale_leases += [f"{worker.name} of epoch {worker.epoch} leased {lease}" for lease in fresh]
        self.acceptances += [
            (str(one.operation_id), one.verdict)
            for arrival in arrivals
            if isinstance(arrival, act.AppliedBatch)
            for one in arrival.applied
            if one.verdict is not None
        ]
        if self.story is not None:
            for arrival in arrivals:
                self.tell(f"    {_told(arrival, self)}")

    def heard(self, flight: Flight, reply: Answered | NoAnswer) -> None:
        """A worker hears an answer. What it has of an effect's answer must not be lost while it lives."""
        self.tell(f"    {_told_reply(reply)}")
        if flight.send.request.effect is not None and reply.body:
            token = flight.worker.send_tokens.get(flight.send.send_id, "")
            self.answers_held.append(Held(flight.worker.name, token, reply.body, self.now_s))
        elif flight.told is not None and isinstance(reply, Answered):
            self.told.append((flight.worker.name, self.now_s, flight.told))

    def opened(self, number: int, done: UUID | Exception | None) -> None:
        """A producer's transaction is over: this is what he was told."""
        if isinstance(done, Exception) and not isinstance(done, CounterfoilError):
            raise done
        told = done.code if isinstance(done, CounterfoilError) else str(done)
        self.tell(f"    call {number}: {told}")
        self.answers_to_producers.append((number, told))
        if isinstance(done, UUID):
            self.place(done)

    def consumed(self, done: list[tuple[str, str]] | Exception) -> None:
        """A consumer has acted upon these receipts."""
        if isinstance(done, Exception):
            raise done
        self.acted_upon += done
        if done:
            self.sometimes("a consumer acted upon a receipt")

    def bumped(self, epoch: int | Exception) -> None:
        """A bump has committed: what an older epoch writes from here on is a lie."""
        if isinstance(epoch, Exception):
            raise epoch
        self.tell(f"    epoch {epoch}")
        self.leased.forget()
        before, self._before_bump = self._before_bump or self._snapshot(), None
        journal, intents, leases, at_s = before
        self._old_leases = frozenset(lease for lease in leases if int(lease[4]) < epoch)
        self.bumps.append(BumpFact(epoch, at_s, journal, intents))

    def stopped(self, what: str, done: object) -> None:
        """From now on nothing new may be sent (tier A: the order of commits is known)."""
        if not isinstance(done, Exception) and self.loom is None:
            self._stopped.setdefault(what, self._snapshot()[1])

    def going_on(self) -> None:
        """It may again, or this is the end."""
        for what, since in self._stopped.items():
            self.stopped_between.append(StopFact(what, since, self._snapshot()[1]))
        self._stopped.clear()

    def _snapshot(self) -> Snapshot:
        """What there is at a bump's commit. Nothing of an older epoch may be added to it: the bump has the lock."""
        ask, fleet = self.db.owner.execute, (fleet_of(self.tag),)
        journal = ask(
            "SELECT o.id::text, max(j.seq) FROM counterfoil.operation AS o JOIN counterfoil.journal AS j"
            " ON j.operation_id = o.id WHERE o.fleet = %s GROUP BY 1",
            fleet,
        ).fetchall()
        intents = ask(
            "SELECT i.send_token::text FROM counterfoil.intent AS i JOIN counterfoil.operation AS o"
            " ON o.id = i.operation_id WHERE o.fleet = %s",
            fleet,
        ).fetchall()
        return dict(journal), frozenset(row[0] for row in intents), self.leases(), self.now_s

    def leases(self) -> frozenset[tuple[str, ...]]:
        """Every lease there is: operation, lane, token, end, epoch."""
        found = self.db.owner.execute(
            "SELECT operation_id::text, lane, lease_token::text, lease_until::text, lease_epoch::text"
            " FROM counterfoil.wake WHERE fleet = %s AND lease_epoch IS NOT NULL",
            (fleet_of(self.tag),),
        ).fetchall()
        return frozenset(found)

    # -- the database ------------------------------------------------------------------------------------------------
