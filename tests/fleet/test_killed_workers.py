"""Workers ended by SIGKILL in the middle of their work, by the server's own count."""

import time

from .conftest import Fleet, Server

OPERATIONS = 300


def test_300_operations_survive_a_worker_killed_while_polling_within_20_s(fleet: Fleet, server: Server) -> None:
    """One worker holds 300 working operations resident and is killed; another starts a second later.

    The leases of the dead one (8 s) are the detection tail. Every operation gets its receipt, nothing is submitted
    twice.
    """
    fleet.announce()
    nodes = fleet.submit(OPERATIONS, secs=14)
    first = fleet.start()
    fleet.until("all are working", lambda: fleet.states() == {"WORKING": OPERATIONS}, 40)
    first.kill()
    killed = time.monotonic()
    fleet.until("a second has passed", lambda: time.monotonic() - killed > 1, 5)
    fleet.start()
    fleet.until("all have receipts", lambda: len(fleet.receipts(nodes)) == OPERATIONS, 40)
    took_s = time.monotonic() - killed
    print(f"300 of 300 receipts {took_s:.1f} s after the kill")
    assert {receipt.outcome for receipt in fleet.receipts(nodes)} == {"succeeded"}
    assert server.second_submits() == 0
    assert len(server.created()) == OPERATIONS
    assert took_s < 20


def test_a_worker_killed_while_submitting_leaves_no_more_unknown_than_it_had_connections(
    fleet: Fleet, server: Server
) -> None:
    """The server answers each call after 0.4 s, so at the kill up to ten submits are out and the rest has not left.

    What was out is unknown and asks a person; what was only claimed is sent by the next worker; nothing is sent twice.
    """
    fleet.announce()
    nodes = fleet.submit(OPERATIONS, secs=1, answer_after_s=0.4)
    first = fleet.start()
    fleet.until("a good part is submitted", lambda: len(server.created()) >= 60, 30)
    first.kill()
    fleet.start()

    def settled() -> bool:
        states = fleet.states()
        return states.get("ACCEPTED", 0) + states.get("SUBMISSION_UNKNOWN", 0) == OPERATIONS

    fleet.until("every one is settled or unknown", settled, 60)
    states = fleet.states()
    print(f"killed while submitting: {states}, second submits {server.second_submits()}")
    assert states.get("SUBMISSION_UNKNOWN", 0) <= 10
    assert server.second_submits() == 0
    assert len(fleet.receipts(nodes)) == states["ACCEPTED"]
    for operation in fleet.client.operations(states=["SUBMISSION_UNKNOWN"], limit=50):
        assert [case.code for case in operation.cases] == ["E_SUBMISSION_UNKNOWN"]
