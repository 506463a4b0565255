"""A process that claims until nothing is left."""

from multiprocessing.connection import Connection

from counterfoil.tests.ledger.world import World


def work(connection: Connection, url: str) -> None:
    """Say "ready", wait for the word, then answer with every id that was claimed, one entry a claim."""
    world = World(url)
    connection.send("ready")
    connection.recv()
    claimed: list[str] = []
    while got := world.claim(limit=20, lease_s=300):
        claimed += map(str, got)
    connection.send(claimed)
    world.close()
