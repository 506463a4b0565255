"""A request that is made once more, by a worker that had claimed before and does not know that it is late."""

import uuid

from ..ledger.rows import read_rows
from ..ledger.states import Lane
from ..ledger.store import Lease, Renewed
from ..workers import actions as act
from .conform_worker import Surroundings, Worker


class LateWorker(Worker):
    """Its claim finds one row, under a sequence older than the present holder's; whenever it asks, it believes to hold
    it still. It makes one request, applies what it hears, and is gone. What it may write is the ledger's to say."""

    def __init__(self, around: Surroundings, epoch: int, operation_id: uuid.UUID, lane: Lane, read_seq: int) -> None:
        super().__init__(around, epoch)
        with around.ledger.database.autocommit() as connection:
            (self._row,) = read_rows(connection, [operation_id], self.catalog.policy, lock=False)
        self._lease = Lease(operation_id, lane, uuid.uuid4(), 0, max(read_seq - 1, 0), 0, 0.0)
        self._has_asked = False
        self.inbox.append(act.Kick(lane, self._row.target))

    def _answer(self, write: act.Write, now_s: float) -> act.Arrival:
        match write:
            case act.Claim() if write.lane is self._lease.lane:
                self.catalog.sessions.preload([self._row.operation.session_id])
                return act.Claimed(write, now_s, [(self._lease, self._row)])
            case act.Reread():
                return act.RereadBatch(write.held, {(id_, lane): self._lease.kick for id_, lane, _ in write.held})
            case act.Renew():
                renewed = Renewed(self._lease.kick, self._lease.read_seq)
                return act.RenewedBatch(now_s, write.held, {(id_, lane): renewed for id_, lane, *_ in write.held})
            case _:
                return super()._answer(write, now_s)

    def _leave(self, send: act.Send) -> None:
        if self._has_asked:
            self.die()
        else:
            self._has_asked = True
            super()._leave(send)
