"""Which release a fleet is: its generation, a label beside the epoch that configuration may carry.

Configuration goes back (`helm rollback` carries older values), the epoch never does. So a release names a generation,
and taking up another one, higher or lower, raises the epoch. A worker that names a generation joins only while the
ledger is in it: one of the other release that is started anew after the bump (containers are, again and again) does not
become a member of the new epoch.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from . import epochs, switches
from .database import Database
from .errors import StaleEpoch
from .tables import execution_epoch


@dataclass(frozen=True, slots=True)
class Adopted:
    """The epoch that the generation has, and whether this was what raised it."""

    epoch: int
    raised: bool


def join(database: Database, fleet: str, generation: int | None) -> int:
    """The epoch that a worker of this generation keeps for life. None: one that names none joins whatever there is.

    Raises StaleEpoch (E_GENERATION) when the ledger is in another generation, InputRefused for a fleet that has no
    epoch.
    """
    with database.begin() as connection:
        epoch = epochs.check_fence(connection, fleet, None)  # locked: both are of the same moment
        found = _generation(connection, fleet)
    if generation is not None and found != generation:
        raise StaleEpoch(
            f"this worker is of generation {generation}, the ledger is in {'none' if found is None else found}.",
            code="E_GENERATION",
            next_step=f"The release that is rolled out adopts its own: `counterfoil epoch adopt {generation}`.",
        )
    return epoch


def adopt(database: Database, fleet: str, generation: int, reason: str, *, create: bool | None = None) -> Adopted:
    """Be in this generation from now on: raises the epoch by one where the ledger is in another, and else does nothing,
    so that a release's hook may run at each upgrade, and again.

    `create`: the values' word for new operations. False switches them off first, which waits for nobody; True switches
    on, with the bump, only what was switched off this way: a person's switch is not undone by an upgrade. Raises as
    `epochs.bump`.
    """
    with database.begin() as connection:
        epoch = epochs.plain_epoch(connection, fleet)
        known = _generation(connection, fleet) == generation
        if known or create is False:
            _switch(connection, fleet, create, reason)
    if known:
        return Adopted(epoch, raised=False)
    adopted = epochs.exclusively(database, lambda connection: _adopt(connection, fleet, generation, reason, create))
    if adopted.raised:
        epochs.void_leases(database, fleet, adopted.epoch)
    return adopted


def _adopt(connection: Connection, fleet: str, generation: int, reason: str, create: bool | None) -> Adopted:  # noqa: FBT001
    _switch(connection, fleet, create, reason)
    if _generation(connection, fleet) == generation:  # another hook was here first
        return Adopted(epochs.plain_epoch(connection, fleet), raised=False)
    return Adopted(epochs.raise_epoch(connection, fleet, reason, generation=generation), raised=True)


def _switch(connection: Connection, fleet: str, create: bool | None, reason: str) -> None:  # noqa: FBT001
    if create is not None:
        switches.write_create_of_values(connection, fleet, on=create, reason=reason)


def _generation(connection: Connection, fleet: str) -> int | None:
    table = execution_epoch.c
    return connection.execute(select(table.generation).where(table.fleet == fleet)).scalar_one_or_none()
