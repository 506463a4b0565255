"""After a promotion or a restore: what may have been sent by a database that is gone (SPEC section 8).

Until this has run every connection of the fleet is refused (E_RECOVER_FIRST), since the epoch row names the database
that it was written for. So the order is: bump, move what may have been sent, and only then take this database for
ours. A run that breaks off leaves the fleet refused, and can be run again.
"""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select

from . import epochs
from .database import Database, execute
from .events import Recovered as RecoveredEvent
from .policy import Policy
from .states import Lane, State
from .tables import operation
from .transition import Transitions
from .work import Item

BATCH = 200
MOVED = (State.SUBMITTING, State.NOT_FOUND_SAFE, State.INPUT_REQUIRED)


@dataclass(frozen=True, slots=True)
class Recovered:
    """`moved`: operations that may have been sent and are looked up now; `asked`: those of them for which a person is
    asked, since nothing can be looked up."""

    epoch: int
    moved: int
    asked: int


def recover(database_url: str, fleet: str, *, reason: str, no_loss: bool = False) -> Recovered:
    """Take over a promoted or restored database.

    `no_loss`: a synchronous standby, which lacks nothing: the epoch is bumped and no operation is touched. Raises
    InputRefused (E_FLEET_UNKNOWN), LedgerUnavailable, SchemaOutdated.
    """
    database = Database(database_url)
    try:
        epoch = epochs.bump(database, fleet, f"recover: {reason}")
        if not no_loss:
            with database.begin() as connection:
                execute(connection, "perhaps_sent", {"fleet": fleet})
        moved, asked = (0, 0) if no_loss else _move(database, fleet)
        with database.begin() as connection:
            if not no_loss:
                execute(connection, "perhaps_delivered", {"fleet": fleet})
            execute(connection, "take_identity", {"fleet": fleet})
        return Recovered(epoch, moved, asked)
    finally:
        database.dispose()


def _move(database: Database, fleet: str) -> tuple[int, int]:
    """Through the machine, in batches in order of id, so that a run that broke off goes on where it was."""
    doors = Transitions(database, fleet, None, interpret=None, policy_of=_unpinned, actor="recover")
    moved = asked = 0
    last = UUID(int=0)
    while True:
        with database.autocommit() as connection:
            table = operation.c
            query = (
                select(table.id)
                .where(table.fleet == fleet, table.state.in_([str(state) for state in MOVED]), table.id > last)
                .order_by(table.id)
                .limit(BATCH)
            )
            ids = list(connection.execute(query).scalars())
        if not ids:
            return moved, asked
        last = ids[-1]
        for applied in doors.apply([Item(id_, Lane.DOOR, (RecoveredEvent(),)) for id_ in ids]):
            if applied.row is not None:
                moved += applied.row.operation.state is State.SUBMISSION_UNKNOWN
                asked += applied.row.operation.parked


def _unpinned(_target: str, _tool: str) -> Policy:
    """Nothing is pinned: nobody knows with which policy it may have been sent, so nothing can be looked up."""
    return Policy(protocol="unknown")
