"""What a fleet does when its broker is emptied, when beat is there or not, when its epoch is over, and when it is
asked to end."""

import redis

from counterfoil.ledger import epochs
from counterfoil.ledger.database import Database

from .conftest import Fleet, Server


def test_an_emptied_broker_loses_nothing(fleet: Fleet, server: Server, broker: str) -> None:
    """FLUSHALL while calls are being submitted and again while they are polled: messages, buckets, bindings, all gone.

    The ledger is the only truth; wake-ups come from beat again, or from the worker's own tick.
    """
    fleet.announce()
    nodes = fleet.submit(60, secs=3)
    fleet.beat()
    fleet.start()
    with redis.Redis.from_url(broker) as client:
        fleet.until("some are submitted", lambda: len(server.created()) > 10, 30)
        client.flushall()
        fleet.until("all are submitted", lambda: len(server.created()) == 60, 30)
        client.flushall()
    fleet.until("all have receipts", lambda: len(fleet.receipts(nodes)) == 60, 40)
    assert {receipt.outcome for receipt in fleet.receipts(nodes)} == {"succeeded"}
    assert server.second_submits() == 0


def test_a_bump_ends_the_old_worker_and_a_new_one_settles_what_was_in_flight(fleet: Fleet, server: Server) -> None:
    """The resident worker of epoch 1 can't renew, so it ends, as a whole: a child that Celery starts anew must not
    become a member of epoch 2 with the old release's code. A worker that is started after the bump goes on."""
    fleet.announce()
    nodes = fleet.submit(20, secs=6)
    old = fleet.start()
    fleet.until("all are working", lambda: fleet.states() == {"WORKING": 20}, 30)
    database = Database(fleet.database_url)
    assert epochs.bump(database, "main", "drill") == 2
    database.dispose()
    assert old.process.wait(30) == 75
    assert fleet.states() == {"WORKING": 20}
    fleet.start()
    fleet.until("all have receipts", lambda: len(fleet.receipts(nodes)) == 20, 40)
    assert {(receipt.outcome, receipt.execution_epoch) for receipt in fleet.receipts(nodes)} == {("succeeded", 2)}
    assert server.second_submits() == 0


def test_a_worker_that_is_asked_to_end_brings_its_submits_home(fleet: Fleet, server: Server) -> None:
    """SIGTERM while submits are out, each answered after 2 s: their answers are waited for, so nobody has to be
    asked."""
    fleet.announce()
    fleet.submit(10, secs=1, answer_after_s=2)
    worker = fleet.start(solo=True)
    fleet.until("the server has the calls", lambda: len(server.created()) == 10, 20)
    assert worker.stop() == 0
    states = fleet.states()
    assert states.get("SUBMISSION_UNKNOWN", 0) == 0
    assert sum(states.get(state, 0) for state in ("WORKING", "ACCEPTED")) == 10
    fleet.start(solo=True)
    fleet.until("all have receipts", lambda: fleet.states() == {"ACCEPTED": 10}, 30)
    assert server.second_submits() == 0


def test_hostile_status_and_ttl_values_stop_nobody(fleet: Fleet, server: Server) -> None:
    """One task whose status word holds a NUL and one with a ttl of 1e30 among a hundred: every one is settled."""
    fleet.announce()
    from counterfoil.ledger.client import Call

    calls = [Call("tools", "work", {"node": f"n{index}", "secs": 1}, f"n{index}") for index in range(98)]
    calls.append(Call("tools", "work", {"node": "nul", "secs": 4, "status": "wor\u0000king"}, "nul"))
    calls.append(Call("tools", "work", {"node": "ttl", "secs": 1, "ttl": 1e30}, "ttl"))
    with fleet.client._database.begin() as connection:
        fleet.client.submit_in(connection, calls)
    fleet.start(solo=True)
    fleet.until("all have receipts", lambda: fleet.states() == {"ACCEPTED": 100}, 40)
    assert "E_STATUS_UNKNOWN" in {line.code for line in fleet.client.journal("nul")}
    assert fleet.client.get("ttl").ttl_ms == 2**53 - 1  # clamped to what JSON can say
