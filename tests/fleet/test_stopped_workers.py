"""A worker that is stopped past its lease and goes on later."""

import signal

from .conftest import Fleet, Server


def test_the_answer_of_a_worker_stopped_past_its_lease_is_kept_and_used(fleet: Fleet, server: Server) -> None:
    """The race: A has sent the submit, the server made the task, A is stopped before it hears so.

    Lease (8 s) and `send_by` (10 s) run out, so B calls the submit unknown and opens a case; it sends nothing. A
    goes on: its answer is evidence, fenced by nothing, and settles the case by itself. One task, one receipt, nobody
    had to be asked.
    """
    fleet.announce()
    (node,) = fleet.submit(1, secs=1, answer_after_s=1.5)
    first = fleet.start(solo=True)
    fleet.until("the server has the call", lambda: len(server.created()) == 1, 20)
    first.signal(signal.SIGSTOP)
    fleet.start(solo=True)
    fleet.until("the other worker calls it unknown", lambda: fleet.states() == {"SUBMISSION_UNKNOWN": 1}, 30)
    (case,) = fleet.client.get(node).cases
    assert (case.kind, case.code, case.closed_at) == ("UNKNOWN", "E_SUBMISSION_UNKNOWN", None)
    first.signal(signal.SIGCONT)
    fleet.until("the receipt is there", lambda: len(fleet.receipts([node])) == 1, 30)
    (receipt,) = fleet.receipts([node])
    assert (receipt.outcome, receipt.result, receipt.problems()) == ("succeeded", {"node": node}, [])
    assert [(case.closed_by, case.closed_at is not None) for case in fleet.client.get(node).cases] == [
        ("evidence", True)
    ]
    moves = [(line.source, line.target) for line in fleet.client.journal(node) if line.event in ("moved", "accepted")]
    assert moves == [
        ("SUBMITTING", "SUBMISSION_UNKNOWN"),
        ("SUBMISSION_UNKNOWN", "WORKING"),
        ("WORKING", "TERMINAL_OBSERVED"),
        ("TERMINAL_OBSERVED", "FETCHING_RESULT"),
        ("FETCHING_RESULT", "ACCEPTED"),
    ]
    assert server.second_submits() == 0
