"""A worker is stopped (SIGSTOP) on its way through a submit, past its lease and past `send_by`; another takes its rows
over; then it goes on (SIGCONT) as if nothing had happened.

What it has not sent it must not send any more, what it heard must not be lost. 20 operations a point and kind of
server.
"""

import signal
from collections import Counter

from counterfoil.ledger.states import Lane
from counterfoil.tests.crash.field import KILLS, Field, Worker, judged

WENT_ON = {
    "connected": {"nothing left"},
    "intent-asked": {"E_STATE_MOVED"},
    "first-byte": {"nothing left"},
    "answered": {"kept"},
}
"""What became of the sends of a stopped worker: no byte, no intent, no byte, evidence."""


def stopped(field: Field, point: str, names: list[str]) -> Worker:
    return field.start(names, point=point, stops=True, count=10 * len(names), lanes=(Lane.SUBMIT,))


def test_a_worker_stopped_past_its_lease_and_send_by_sends_nothing_and_loses_nothing(field: Field) -> None:
    targets = {point: field.hand_in(point) for point in WENT_ON}
    hidden = field.hand_in("answered-hidden", ("looks", "unique"), hidden=True)
    workers = {point: stopped(field, point, names) for point, names in targets.items()}
    workers["answered-hidden"] = stopped(field, "answered", hidden)
    field.until("all are stopped at their points", lambda: all(worker.there for worker in workers.values()))

    for _ in range(2):
        field.start()
    field.until("the others have a receipt or an open case for each", lambda: not field.unsettled())
    asked = {fact.node for fact in field.facts() if fact.open}
    again = {fact.node for fact in field.facts() if fact.attempt == 2}
    for worker in workers.values():
        worker.signal(signal.SIGCONT)
    field.until("all went on", lambda: all(len(worker.went_on) == worker.order.count for worker in workers.values()))
    assert {point: set(workers[point].went_on) for point in WENT_ON} == WENT_ON
    field.until("evidence is read", lambda: not field.unread_evidence())
    field.until("each has a receipt or an open case again", lambda: not field.unsettled())

    found = judged(field)
    people = {"looks": (KILLS, KILLS), "nothing": (KILLS, KILLS), "unique": (0, 0)}
    assert found == {
        "connected": {"looks": (0, 0), "nothing": (0, 0), "unique": (0, 0)},
        "intent-asked": {"looks": (0, 0), "nothing": (0, 0), "unique": (0, 0)},
        "first-byte": people,  # its bearer knows that nothing left, but came too late to take it back
        "answered": {"looks": (0, 0), "nothing": (KILLS, 0), "unique": (0, 0)},
        "answered-hidden": {"looks": (KILLS, KILLS), "unique": (0, 0)},
    }
    assert points(again) == {"first-byte": {"unique": KILLS}, "answered-hidden": {"unique": KILLS}}
    settled_late = {fact.node for fact in field.facts() if fact.node in asked and fact.receipts}
    assert points(settled_late) == {"answered": {"nothing": KILLS}, "answered-hidden": {"looks": KILLS}}
    assert {fact.outcome for fact in field.facts()} == {"succeeded", None}


def points(nodes: set[str]) -> dict[str, dict[str, int]]:
    """Point -> kind -> how many."""
    found: dict[str, dict[str, int]] = {}
    for (point, kind), count in sorted(Counter(tuple(node.split(".")[:2]) for node in nodes).items()):
        found.setdefault(point, {})[kind] = count
    return found
