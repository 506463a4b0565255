"""The last steps of a call: its end is read, decided, accepted; its bearer is killed after each. One receipt, one ready
row, whoever writes them."""

from counterfoil.ledger.states import Lane
from counterfoil.tests.crash.field import KILLS, Field, judged

POINTS = ("ended", "unaccepted", "accepted")


def test_one_receipt_whatever_point_of_the_acceptance_its_bearer_is_killed_at(field: Field) -> None:
    points = {point: field.hand_in(point, ("nothing",)) for point in POINTS}
    field.kill_at(points, lanes=(Lane.SUBMIT, Lane.POLL))
    assert {fact.node.split(".")[0] for fact in field.facts() if fact.receipts} == {"accepted"}
    field.start()
    field.until("each has a receipt", lambda: not field.unsettled())
    assert judged(field) == {point: {"nothing": (0, 0)} for point in POINTS}
    ready = [one.call_node_id for one in field.client.ready(limit=1000)]
    assert len(ready) == len(set(ready)) == KILLS * len(POINTS)
    assert {fact.outcome for fact in field.facts()} == {"succeeded"}
