"""A person replies to a question at the door while the poll lane reads that the task went on by itself.

The reply that is first is stored and then closed as superseded, with a line in the journal: it is never sent. The
reading that is first closes the round, and the reply is refused. In both orders the receipt tells of a question that
nobody answered.
"""

import pytest

from counterfoil.ledger.decision import Refusal
from counterfoil.ledger.events import Progressed, ReplyGiven
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.meeting import OPERATION, asked, in_both_orders, meet, said

REPLY = ReplyGiven(1, b'{"action":"accept","content":{"paper":"A4"}}', "ann")


@pytest.mark.parametrize("first", ["reply", "poll"])
def test_a_reply_beside_a_task_that_went_on_is_never_sent(world: World, first: str) -> None:
    operation_id = asked(world)
    sides, sort = in_both_orders(
        first,
        ("reply", "poll"),
        lambda: said(world, operation_id, REPLY),
        lambda: world.bring(operation_id, Progressed(2, "working")),
    )
    replied, _ = sort(meet(world, OPERATION, *sides))
    refused = isinstance(replied.answers[-1], Refusal)
    assert refused is (first == "poll")
    if refused:
        assert replied.answers[-1].code == "E_INPUT_ROUND_CLOSED"
    assert world.one(operation_id, "state, unanswered_rounds") == ("WORKING", 1)
    assert world.sql("SELECT how FROM counterfoil.input_round") == [("superseded",)]
    assert "answer" not in world.wakes(operation_id)
    world.ended(operation_id)
    assert world.client.wait("run/1", timeout_s=0).unanswered_rounds == 1
    assert world.claim(Lane.ANSWER) == {}
