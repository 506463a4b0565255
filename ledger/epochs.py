"""The execution epoch: read under a shared lock by every fenced transaction, raised under an exclusive one (SPEC
section 6)."""

import logging
from uuid import UUID

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from .database import Database, sqlstate, statement
from .errors import InputRefused, LedgerUnavailable, StaleEpoch
from .ids import uuid7

log = logging.getLogger(__name__)

BUMP_TRIES = 4
_LOCK_TIMEOUT = "55P03"


def check_fence(connection: Connection, fleet: str, epoch: int | None) -> int:
    """Lock the epoch row for this transaction and compare. `epoch` None: a door, which takes the ledger's current one.

    Raises StaleEpoch when a bump has committed, InputRefused for a fleet that has no epoch.
    """
    found = connection.execute(statement("fence"), {"fleet": fleet}).scalar_one_or_none()
    if found is None:
        raise InputRefused(
            f"there is no fleet {fleet!r} in this ledger.", code="E_FLEET_UNKNOWN", next_step="The default is `main`."
        )
    if epoch is not None and found != epoch:
        raise StaleEpoch(
            f"write refused: worker epoch {epoch}, ledger epoch {found}.",
            next_step="This process serves an epoch that is over; start a new one.",
        )
    return int(found)


def current_epoch(database: Database, fleet: str) -> int:
    """The epoch that a process keeps for life, read once when it starts."""
    with database.begin() as connection:
        return check_fence(connection, fleet, None)


def bump(database: Database, fleet: str, reason: str) -> int:
    """Raise the epoch by one and return it. After its commit no older worker claims, renews, intends, moves or accepts.

    Takes the table EXCLUSIVE with a one-second lock timeout; a client that holds the shared lock and doesn't move
    (stopped) is ended at the third try. Raises LedgerUnavailable when even that did not help.
    """
    for attempt in range(1, BUMP_TRIES + 1):
        try:
            with database.begin() as connection:
                connection.execute(text("SET LOCAL lock_timeout = '700ms'"))
                connection.execute(text("LOCK TABLE counterfoil.execution_epoch IN EXCLUSIVE MODE"))
                raised = connection.execute(
                    statement("bump"), {"fleet": fleet, "reason": reason[:200]}
                ).scalar_one_or_none()
        except DBAPIError as error:
            if sqlstate(error) != _LOCK_TIMEOUT:
                raise
            log.warning("bump waits: somebody holds the epoch (try %d)", attempt)
            if attempt >= 2:
                _end_blockers(database)
            continue
        if raised is None:
            raise InputRefused(f"there is no fleet {fleet!r} in this ledger.", code="E_FLEET_UNKNOWN")
        with database.autocommit() as connection:
            connection.execute(statement("void_leases"), {"fleet": fleet, "epoch": raised})
        return int(raised)
    raise LedgerUnavailable(
        "the epoch is locked by somebody who does not let go.",
        code="E_BUMP_BLOCKED",
        next_step="Look at pg_locks for counterfoil.execution_epoch, end that backend and bump again.",
    )


def _end_blockers(database: Database) -> None:
    """End backends that hold the epoch row while idle in a transaction: stopped clients, nothing of theirs is lost
    but a lease."""
    with database.autocommit() as connection:
        connection.execute(text("RESET ROLE"))
        try:
            connection.execute(statement("end_blockers"))
        finally:
            connection.execute(text("SELECT set_config('role', 'counterfoil_app', false)"))


def refuse(database: Database, fleet: str, epoch: int, what: str, ids: list[UUID]) -> None:
    """Keep and count what an older epoch tried."""
    rows = [{"id": uuid7(), "operation_id": id_, "fleet": fleet, "epoch": epoch, "what": what} for id_ in ids]
    if rows:
        with database.begin() as connection:
            connection.execute(statement("refused_write"), rows)
