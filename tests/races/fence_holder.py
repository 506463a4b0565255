"""A process that holds the epoch inside a transaction, as an accepting worker does, and can be stopped there."""

from multiprocessing.connection import Connection

from counterfoil.ledger import epochs
from counterfoil.ledger.errors import LedgerUnavailable
from counterfoil.tests.ledger.world import World


def work(connection: Connection, url: str) -> None:
    """Say "held", wait for the word, then try to go on writing; say what became of it."""
    world = World(url)
    try:
        with world.database.begin() as transaction:
            epochs.check_fence(transaction, "main", world.epoch)
            connection.send("held")
            connection.recv()
            transaction.exec_driver_sql(
                "INSERT INTO counterfoil.refused_write VALUES (gen_random_uuid(), NULL, 'main', 'E', 1, 'late')"
            )
        connection.send("written")
    except LedgerUnavailable:
        connection.send("ended")
    world.close()
