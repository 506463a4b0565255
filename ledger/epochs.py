"""The execution epoch: read under a shared lock by every fenced transaction, raised under an exclusive one (SPEC
section 6)."""

import logging
from collections.abc import Callable
from typing import NoReturn, TypeVar
from uuid import UUID

import psycopg
from sqlalchemy import Connection, select, text

from .database import Database, execute
from .errors import InputRefused, LedgerUnavailable, StaleEpoch
from .ids import uuid7
from .tables import execution_epoch

log = logging.getLogger(__name__)
T = TypeVar("T")

BUMP_TRIES = 4
MAX_REASON_CHARS = 200
_LOCK_TIMEOUT = "55P03"


def check_fence(connection: Connection, fleet: str, epoch: int | None) -> int:
    """Lock the epoch row for this transaction and compare. `epoch` None: a door, which takes the ledger's current one.

    Raises StaleEpoch when a bump has committed, InputRefused for a fleet that has no epoch.
    """
    row = execute(connection, "fence", {"fleet": fleet}).fetchone()
    if row is None:
        _unknown(fleet)
    found = int(row.epoch)
    if epoch is not None and found != epoch:
        raise StaleEpoch(
            f"write refused: worker epoch {epoch}, ledger epoch {found}.",
            next_step="This process serves an epoch that is over; start a new one.",
        )
    return found


def current_epoch(database: Database, fleet: str) -> int:
    """The epoch that a process keeps for life, read once when it starts."""
    with database.begin() as connection:
        return check_fence(connection, fleet, None)


def bump(database: Database, fleet: str, reason: str, *, to: int | None = None) -> int:
    """Raise the epoch, by one or to a number that is higher, and return it. After its commit no older worker claims,
    renews, intends, moves or accepts. `to` the number that it has already: nothing is done, so that a release's hook
    may run again.

    Raises InputRefused (E_FLEET_UNKNOWN, E_EPOCH_DOWN), and as `exclusively`.
    """
    raised = exclusively(database, lambda connection: raise_epoch(connection, fleet, reason, to))
    void_leases(database, fleet, raised)
    return raised


def exclusively(database: Database, work: Callable[[Connection], T], *, ends_blockers: bool = True) -> T:
    """Run `work` in a transaction beside which no door is open and no fenced transaction runs: whoever comes after its
    commit sees all that it wrote, whoever was before it has committed.

    Takes the table EXCLUSIVE with a lock timeout of 0.7 s; a client that holds the shared lock and doesn't move
    (stopped, or a producer in a long transaction) is ended from the second try on, where `ends_blockers`. Raises
    LedgerUnavailable (E_BUMP_BLOCKED) when even that did not help; nothing was changed then.
    """
    for attempt in range(1, BUMP_TRIES + 1):
        try:
            with database.begin() as connection:
                connection.execute(text("SET LOCAL lock_timeout = '700ms'"))
                connection.execute(text("LOCK TABLE counterfoil.execution_epoch IN EXCLUSIVE MODE"))
                return work(connection)
        except psycopg.Error as error:
            if error.sqlstate != _LOCK_TIMEOUT:
                raise
            log.warning("a switch waits: somebody holds the epoch (try %d)", attempt)
            if ends_blockers and attempt >= 2:
                _end_blockers(database)
    raise LedgerUnavailable(
        "the epoch is locked by somebody who does not let go; nothing was changed.",
        code="E_BUMP_BLOCKED",
        next_step="Look at pg_locks for counterfoil.execution_epoch, wait for that backend or end it, and try again.",
    )


def raise_epoch(
    connection: Connection,
    fleet: str,
    reason: str,
    to: int | None = None,
    *,
    generation: int | None = None,
    once: str | None = None,
) -> int:
    """The bump itself, under the lock of `exclusively`. `generation`: the release that the epoch is for from now on;
    None leaves it. `once`: what `raised_by` will say of it. Raises InputRefused (E_FLEET_UNKNOWN, E_EPOCH_DOWN)."""
    found = plain_epoch(connection, fleet)
    wanted = found + 1 if to is None else to
    if wanted < found:
        raise InputRefused(
            f"the epoch of fleet {fleet!r} is {found}; it never goes down to {wanted}.",
            code="E_EPOCH_DOWN",
            next_step="Epochs only grow: to go back to an older release, bump and start its workers in the new epoch.",
        )
    arguments = {"fleet": fleet, "reason": reason[:MAX_REASON_CHARS], "epoch": wanted}
    execute(connection, "bump", arguments | {"generation": generation, "once": once})
    return wanted


def raised_by(connection: Connection, fleet: str, once: str | None) -> bool:
    """Whether the last bump bore this key: then whoever asks for it again has had it."""
    table = execution_epoch.c
    found = connection.execute(select(table.bump_key).where(table.fleet == fleet)).scalar_one_or_none()
    return once is not None and found == once


def void_leases(database: Database, fleet: str, epoch: int) -> None:
    """After a bump: what older workers hold is due now. Latency only."""
    with database.autocommit() as connection:
        execute(connection, "void_leases", {"fleet": fleet, "epoch": epoch})


def plain_epoch(connection: Connection, fleet: str) -> int:
    """The epoch without its lock: for people, and under the lock of `exclusively`. Raises InputRefused
    (E_FLEET_UNKNOWN)."""
    row = execute(connection, "plain_epoch", {"fleet": fleet}).fetchone()
    return int(row.epoch) if row is not None else _unknown(fleet)


def _unknown(fleet: str) -> NoReturn:
    raise InputRefused(
        f"there is no fleet {fleet!r} in this ledger.", code="E_FLEET_UNKNOWN", next_step="The default is `main`."
    )


def _end_blockers(database: Database) -> None:
    """End backends that hold the epoch row while idle in a transaction: stopped clients, nothing of theirs is lost
    but a lease."""
    with database.autocommit() as connection:
        connection.execute(text("RESET ROLE"))
        try:
            execute(connection, "end_blockers", {})
        finally:
            connection.execute(text("SELECT set_config('role', 'counterfoil_app', false)"))


def refuse(database: Database, fleet: str, epoch: int, what: str, ids: list[UUID]) -> None:
    """Keep and count what an older epoch tried."""
    if ids:
        arguments = {"ids": [uuid7() for _ in ids], "operations": ids, "fleet": fleet, "epoch": epoch, "what": what}
        with database.autocommit() as connection:
            execute(connection, "refused_write", arguments)
