"""What people switch: new operations on and off, protocol versions open, draining or off, and the roll-back that is two
of these at once (SPEC section 8).

Doors and intents read the switches in their own transaction, so one that is turned needs no lock to be safe: what a
door let in a moment before meets it again at the intent. Two do: a roll-back, and `off`, which rests on nothing being
open.
"""

from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Literal, TypeAlias

from sqlalchemy import Connection, func, select, text
from sqlalchemy.dialects.postgresql import insert

from . import epochs, reads
from .database import Database, execute
from .errors import CounterfoilError, InputRefused
from .records import Record
from .side_tables import adapter_mode
from .tables import control, execution_epoch, refused_write, target_state

Mode: TypeAlias = Literal["open", "drain", "off"]

_NOW = text("counterfoil.ledger_now()")


class EpochNow(Record):
    """The epoch with what stands beside it. `refused`: writes of older epochs that were refused and kept."""

    fleet: str
    epoch: int
    generation: int | None
    reason: str
    bumped_at: datetime
    create_on: bool
    create_reason: str | None
    refused: int
    last_refused_at: datetime | None


class AdapterNow(Record):
    """One protocol version: its mode, the targets that speak it, and what of it is not over."""

    protocol: str
    mode: Mode
    reason: str | None
    changed_at: datetime | None
    targets: tuple[str, ...]
    operations: int
    audits: int


@dataclass(frozen=True, slots=True)
class _Open:
    operations: int
    audits: int


# -- new operations ----------------------------------------------------------------------------------------------------


def set_create(database: Database, fleet: str, *, on: bool, reason: str) -> None:
    """Switch new operations on or off. What is in flight goes on; what was never sent waits within its budget.

    Takes no lock: in an emergency it must not wait for a producer's long transaction. Raises InputRefused
    (E_FLEET_UNKNOWN).
    """
    with database.begin() as connection:
        _write_create(connection, fleet, on=on, reason=reason)


def rollback(
    database: Database, fleet: str, reason: str, *, generation: int | None = None, once: str | None = None
) -> int:
    """Stop new operations and bump the epoch in one transaction, since a door between the two would open an operation
    in the new epoch; returns the epoch. What is in flight is taken over by workers of the new epoch.

    `generation`: the release that takes over, where releases name theirs. `once`: a key of this roll-back; with that of
    the last bump nothing is done, so that a hook which broke off after its commit may run again. Raises InputRefused
    (E_FLEET_UNKNOWN), and as `epochs.exclusively`.
    """

    def both(connection: Connection) -> int:
        if epochs.raised_by(connection, fleet, once):
            return epochs.plain_epoch(connection, fleet)
        _write_create(connection, fleet, on=False, reason=reason)
        return epochs.raise_epoch(connection, fleet, f"roll-back: {reason}", generation=generation, once=once)

    raised = epochs.exclusively(database, both)
    epochs.void_leases(database, fleet, raised)
    return raised


def write_create_of_values(connection: Connection, fleet: str, *, on: bool, reason: str) -> None:
    """The values' word for new operations. On: only where the values, and no person, switched them off."""
    if not on:
        _write_create(connection, fleet, on=False, reason=reason, by_values=True)
    elif connection.execute(select(control.c.by_values).where(control.c.fleet == fleet)).scalar_one_or_none():
        _write_create(connection, fleet, on=True, reason=reason)


def _write_create(connection: Connection, fleet: str, *, on: bool, reason: str, by_values: bool = False) -> None:
    epochs.plain_epoch(connection, fleet)
    values = {"create_on": on, "reason": reason[: epochs.MAX_REASON_CHARS], "changed_at": _NOW, "by_values": by_values}
    query = insert(control).values(fleet=fleet, **values)
    connection.execute(query.on_conflict_do_update(index_elements=["fleet"], set_=values))


def epoch_now(connection: Connection, fleet: str) -> EpochNow:
    """The epoch, the create switch, and how often an older epoch was refused. Raises InputRefused (E_FLEET_UNKNOWN)."""
    epochs.plain_epoch(connection, fleet)
    table = execution_epoch.c
    refused = (
        select(func.count().label("refused"), func.max(refused_write.c.at).label("last_refused_at"))
        .where(refused_write.c.fleet == fleet)
        .subquery()
    )
    query = (
        select(
            *(table.fleet, table.epoch, table.generation, table.reason, table.bumped_at),
            func.coalesce(control.c.create_on, text("true")).label("create_on"),
            control.c.reason.label("create_reason"),
            *(refused.c.refused, refused.c.last_refused_at),
        )
        .select_from(execution_epoch.outerjoin(control, control.c.fleet == table.fleet).join(refused, text("true")))
        .where(table.fleet == fleet)
    )
    return EpochNow(**reads.plain(connection.execute(query).mappings().one()))


# -- protocol versions -------------------------------------------------------------------------------------------------


def set_adapter(
    database: Database, fleet: str, protocol: str, mode: Mode, *, reason: str, known: tuple[str, ...]
) -> None:
    """Open, drain or switch off a protocol version. `known`: the versions that this release speaks; one that only the
    ledger still names (an adapter that is gone) can be switched as well.

    `drain`: no new submits, everything else goes on. `off` is refused while one operation or audit of it is open; it
    takes the bump's lock, so that no door stands in between, and ends nobody who holds it.
    Raises InputRefused (E_PROTOCOL_UNKNOWN, E_FLEET_UNKNOWN), CounterfoilError (E_ADAPTER_IN_USE), and as
    `epochs.exclusively`.
    """

    def turn(connection: Connection) -> None:
        epochs.plain_epoch(connection, fleet)
        _require_known(protocol, {*known, *_named(connection, fleet)})
        if mode == "off":
            _require_unused(connection, fleet, protocol)
        values = {"mode": mode, "reason": reason[: epochs.MAX_REASON_CHARS], "changed_at": _NOW}
        query = insert(adapter_mode).values(fleet=fleet, protocol=protocol, **values)
        connection.execute(query.on_conflict_do_update(index_elements=["fleet", "protocol"], set_=values))

    if mode == "off":
        epochs.exclusively(database, turn, ends_blockers=False)
    else:
        with database.begin() as connection:
            turn(connection)


def adapters_now(connection: Connection, fleet: str, known: tuple[str, ...]) -> list[AdapterNow]:
    """Every protocol version that this release speaks or the ledger names, in order of name."""
    rows = connection.execute(select(adapter_mode).where(adapter_mode.c.fleet == fleet)).mappings()
    modes = {row["protocol"]: reads.plain(row) for row in rows}
    found = []
    for protocol in sorted({*known, *_named(connection, fleet)}):
        said, uses = modes.get(protocol), _uses(connection, fleet, protocol)
        speaks = select(target_state.c.target).where(target_state.c.fleet == fleet, target_state.c.protocol == protocol)
        found.append(
            AdapterNow(
                protocol=protocol,
                mode="open" if said is None else said["mode"],
                reason=None if said is None else said["reason"],
                changed_at=None if said is None else said["changed_at"],
                targets=tuple(sorted(connection.execute(speaks).scalars())),
                operations=uses.operations,
                audits=uses.audits,
            )
        )
    return found


def _named(connection: Connection, fleet: str) -> set[str]:
    """Protocol versions that the ledger knows of: spoken by a target, or switched before."""
    return {
        name
        for table in (target_state, adapter_mode)
        for name in connection.execute(select(table.c.protocol).where(table.c.fleet == fleet)).scalars()
    }


def _uses(connection: Connection, fleet: str, protocol: str) -> _Open:
    return _Open(*execute(connection, "adapter_uses", {"fleet": fleet, "protocol": protocol}).fetchall()[0])


def _require_known(protocol: str, names: set[str]) -> None:
    if protocol in names:
        return
    near = get_close_matches(protocol, sorted(names), n=1, cutoff=0.3)
    raise InputRefused(
        f"there is no protocol version {protocol[:64]!r}." + (f" Did you mean {near[0]}?" if near else ""),
        code="E_PROTOCOL_UNKNOWN",
        next_step=f"There is: {', '.join(sorted(names))}.",
    )


def _require_unused(connection: Connection, fleet: str, protocol: str) -> None:
    uses = _uses(connection, fleet, protocol)
    if uses.operations or uses.audits:
        raise CounterfoilError(
            f"{protocol} is in use: {uses.operations} operations and {uses.audits} audits of it are not over.",
            code="E_ADAPTER_IN_USE",
            next_step=f"`counterfoil adapters drain {protocol}` takes no new calls; switch it off after the last.",
        )
