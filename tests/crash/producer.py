"""A producer that dies while it hands calls in: its COMMIT was sent, and nobody knows whether it was done."""

import threading
from multiprocessing.connection import Connection

import psycopg

from counterfoil.ledger.client import Call, Client
from counterfoil.tests.crash.halting import stand_still


def work(word: Connection, database_url: str, target: str, nodes: list[str], committed: bool) -> None:
    """Hand each call in in a transaction of its own, come to the end of it, tell, and wait to be killed."""
    telling = threading.Lock()

    def hand_in(node: str) -> None:
        client = Client(database_url)
        connection = psycopg.connect(database_url.replace("postgresql+psycopg://", "postgresql://"))
        (made,) = client.submit_in(connection, [Call(target, "work", {"secs": 0.2, "node": node}, node)])
        if committed:
            connection.commit()
        with telling:
            word.send((node, made))
        stand_still()

    for node in nodes:
        threading.Thread(target=hand_in, args=(node,), daemon=True).start()
    stand_still()
