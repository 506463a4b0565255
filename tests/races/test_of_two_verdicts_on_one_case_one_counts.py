"""Two people settle the same case at the same moment, with different verdicts, both on the version that they saw. One
receipt; whoever is second is told so."""

import pytest

from counterfoil.ledger.decision import Refusal
from counterfoil.ledger.events import VerdictGiven
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.meeting import OPERATION, meet, said, unknown

OUTCOMES = {"give_up": ("abandoned", "E_ABANDONED"), "never_created": ("failed", "E_NOT_SENT_BY_VERDICT")}


@pytest.mark.parametrize("first", OUTCOMES)
def test_the_first_one_writes_the_receipt_and_the_second_one_is_told(world: World, first: str) -> None:
    operation_id = unknown(world)
    seen = world.one(operation_id, "journal_seq")
    verdicts = sorted(OUTCOMES, key=lambda verdict: verdict != first)
    sides = [
        lambda verdict=verdict: said(world, operation_id, VerdictGiven(verdict, "ann", "looked", seen_seq=seen))
        for verdict in verdicts
    ]
    won, lost = meet(world, OPERATION, *sides)
    assert won.verdict in ("accepted", "same")  # the loser, too, accepts what it finds decided
    assert isinstance(lost.answers[-1], Refusal)
    # Between the decision and its acceptance the row has no newer journal line yet.
    assert lost.answers[-1].code in ("E_CASE_CHANGED", "E_ALREADY_OVER")
    receipt = world.client.wait("run/1", timeout_s=0)
    assert (receipt.outcome, receipt.error_code) == OUTCOMES[first]
    assert world.sql("SELECT verdict FROM counterfoil.reconciliation_case") == [(first,)]
    assert world.sql("SELECT count(*) FROM counterfoil.terminal_receipt") == [(1,)]
