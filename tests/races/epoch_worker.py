"""The process that races a bump: it prepares under its epoch, waits for the word, then writes once."""

from multiprocessing.connection import Connection
from typing import Any
from uuid import UUID

from counterfoil.ledger.accept import accept
from counterfoil.ledger.errors import StaleEpoch
from counterfoil.ledger.events import Progressed
from counterfoil.ledger.intents import Granted
from counterfoil.ledger.rows import read_rows
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import World


def claim(world: World, _id: UUID, _race: int) -> Any:
    return lambda: bool(world.claim(Lane.TIMER))


def renew(world: World, operation_id: UUID, _race: int) -> Any:
    lease = world.claim(Lane.TIMER)[operation_id]
    return lambda: bool(world.store.renew([(operation_id, Lane.TIMER, lease.token, 30.0)]))


def intend(world: World, operation_id: UUID, _race: int) -> Any:
    lease = world.claim(limit=1000)[operation_id]  # the losers of earlier races are due as well, and older
    return lambda: isinstance(world.intend(lease), Granted)


def transit(world: World, operation_id: UUID, race: int) -> Any:
    event = Progressed(10**6 + race, f"step {race}")
    return lambda: not world.bring(operation_id, event).failed


def settle(world: World, operation_id: UUID, _race: int) -> Any:
    with world.database.begin() as connection:
        rows = read_rows(connection, [operation_id], world.policy_of, lock=False)
    return lambda: (
        accept(world.database, "main", world.epoch, [(row, Lane.SUBMIT) for row in rows])[operation_id] == "accepted"
    )


KINDS = {"claim": claim, "renew": renew, "intend": intend, "transit": transit, "settle": settle}


def work(connection: Connection, url: str) -> None:
    """Answer each (kind, operation, race) with "ready", race on the word, then say whether it was written."""
    world = World(url)
    while (order := connection.recv()) is not None:
        kind, operation_id, race = order
        world.serve(world.epoch + (race > 0))
        act = KINDS[kind](world, operation_id, race)
        connection.send("ready")
        connection.recv()
        try:
            connection.send(act())
        except StaleEpoch:
            connection.send(False)
    world.close()
