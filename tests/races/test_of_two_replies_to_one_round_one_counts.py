"""Two people reply to the same question at the same moment. One reply is stored and sent, the other is refused
(E_INPUT_ROUND_CLOSED): a round takes one reply, used once (SPEC section 4)."""

import pytest

from counterfoil.ledger.decision import Decision, Refusal
from counterfoil.ledger.events import ReplyGiven
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.meeting import OPERATION, asked, meet, said

WORDS = {name: f'{{"action":"accept","content":{{"paper":"of {name}"}}}}'.encode() for name in ("ann", "bob")}


@pytest.mark.parametrize("first", ["ann", "bob"])
def test_the_first_one_is_sent_and_the_second_one_told(world: World, first: str) -> None:
    operation_id = asked(world)
    names = sorted(WORDS, key=lambda name: name != first)
    sides = [lambda name=name: said(world, operation_id, ReplyGiven(1, WORDS[name], name)) for name in names]
    won, lost = meet(world, OPERATION, *sides)
    assert isinstance(won.answers[-1], Decision)
    assert isinstance(lost.answers[-1], Refusal)
    assert lost.answers[-1].code == "E_INPUT_ROUND_CLOSED"
    claimed = world.store.claim(Lane.ANSWER, "reports", limit=10, ahead_s=0, lease_s=20)
    assert [[reply.content for reply in row.replies] for _, row in claimed] == [[WORDS[first]]]
