"""Who holds which row until when, as the ledger told each worker: one holder at a time, and no intent without a
lease."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

from counterfoil.ledger.intents import Granted
from counterfoil.workers import actions as act

if TYPE_CHECKING:
    from .worker import Worker

Row: TypeAlias = tuple[UUID, str]
"""(operation, lane)."""

SLACK_S = 0.001

READ = frozenset({"poll", "fetch", "answer", "lookup", "audit"})
"""Lanes that read."""


class Leases:
    """What is known for certain; what a lost commit left unclear is forgotten."""

    def __init__(self, place: Callable[[UUID], int]) -> None:
        self._place = place
        self._held: dict[Row, tuple[UUID, float]] = {}
        self._drawn: dict[UUID, int] = {}
        """The last sequence that a reading of an operation was to be ordered by."""
        self.violations: list[str] = []

    def forget(self) -> None:
        """An epoch ended: its leases are none."""
        self._held.clear()
        self._drawn.clear()

    def wrote(
        self, worker: "Worker", writes: Sequence[act.Write], arrivals: Sequence[act.Arrival], now_s: float
    ) -> None:
        """Tier A: one write after the other, so what is known now was so at its commit."""
        if any(isinstance(arrival, act.WriteFailed) for arrival in arrivals):
            self._held.clear()
            return
        for write in writes:
            if isinstance(write, act.Release):
                for lease, _ in write.rows:
                    if self._held.get((lease.operation_id, lease.lane), (None, 0.0))[0] == lease.token:
                        del self._held[lease.operation_id, lease.lane]
        for arrival in arrivals:
            self.violations += self._told(worker, writes, arrival, now_s)

    def _told(self, worker: "Worker", writes: Sequence[act.Write], arrival: act.Arrival, now_s: float) -> Iterator[str]:
        match arrival:
            case act.Claimed():
                for lease, row in arrival.rows:
                    _, until_s = self._held.get((row.id, lease.lane), (None, 0.0))
                    if until_s > now_s + SLACK_S:
                        name = self._name((row.id, lease.lane))
                        yield f"{worker.name} claimed {name}, which was held until {until_s:.2f}"
                    due_s = now_s + max(lease.due_in_s, 0.0)
                    self._held[row.id, lease.lane] = (lease.token, due_s + arrival.claim.lease_s)
                    yield from self._drew(row.id, lease.lane, lease.read_seq)
            case act.RenewedBatch():
                for id_, lane, token, lease_s in arrival.asked:
                    if (id_, lane) in arrival.found:
                        self._held[id_, lane] = (token, now_s + lease_s)
                        yield from self._drew(id_, lane, arrival.found[id_, lane].read_seq)
            case act.AppliedBatch():
                for item in arrival.items:
                    self._held = {row: held for row, held in self._held.items() if row[0] != item.operation_id}
            case act.Intended() if isinstance(arrival.answer, Granted):
                yield from self._intended(worker, writes, arrival, now_s)
            case _:
                pass

    def _drew(self, id_: UUID, lane: str, read_seq: int) -> Iterator[str]:
        """Claims and renewals of any lane that reads draw from one sequence."""
        if lane in READ:
            if read_seq <= self._drawn.get(id_, -1):
                yield f"{self._name((id_, lane))} is read under {read_seq}, after {self._drawn[id_]}"
            self._drawn[id_] = read_seq

    def _intended(
        self, worker: "Worker", writes: Sequence[act.Write], arrival: act.Intended, now_s: float
    ) -> Iterator[str]:
        for write in writes:
            if isinstance(write, act.Intend) and write.send_id == arrival.send_id:
                row = (write.request.operation_id, write.request.lane)
                token, until_s = self._held.get(row, (write.request.token, now_s))
                if token != write.request.token:
                    yield f"{worker.name} intended {self._name(row)}, which somebody else holds"
                elif until_s < now_s - SLACK_S:
                    yield f"{worker.name} intended {self._name(row)}, whose lease was over at {until_s:.2f}"

    def _name(self, row: Row) -> str:
        return f"op{self._place(row[0]) + 1}/{row[1]}"
