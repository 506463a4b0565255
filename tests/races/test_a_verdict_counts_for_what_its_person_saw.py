"""A person settles a case while evidence for the same operation comes in (SPEC section 7).

Evidence that lies there when the verdict gets the row's lock is read first: it moves the operation, and the verdict is
refused (E_CASE_CHANGED), whoever of the two came first. Evidence that is stored after the verdict has looked doesn't
half-apply: the verdict wins whole, and what the evidence shows opens the effects case beside the receipt.
"""

from uuid import UUID

import pytest

from counterfoil.ledger.decision import Refusal
from counterfoil.ledger.events import VerdictGiven
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.meeting import OPERATION, bound, in_both_orders, meet, said, unknown
from counterfoil.tests.races.waiting import Thread, held, until_blocked


def give_up(world: World, operation_id: UUID) -> VerdictGiven:
    seen = world.one(operation_id, "journal_seq")
    return VerdictGiven("give_up", "ann", "looked everywhere", seen_seq=seen)


@pytest.mark.parametrize("first", ["evidence", "verdict"])
def test_evidence_that_is_there_refuses_the_verdict_whoever_is_first(world: World, first: str) -> None:
    operation_id = unknown(world)
    verdict = give_up(world, operation_id)
    world.keep(operation_id, bound(1, "t-1"))
    sides, sort = in_both_orders(
        first,
        ("evidence", "verdict"),
        lambda: world.bring(operation_id, lane=Lane.TIMER),
        lambda: said(world, operation_id, verdict),
    )
    _, answered = sort(meet(world, OPERATION, *sides))
    refusal = answered.answers[-1]
    assert isinstance(refusal, Refusal)
    assert refusal.code == "E_CASE_CHANGED"
    assert world.one(operation_id, "state, task_id") == ("WORKING", "t-1")
    assert world.cases(operation_id) == [("UNKNOWN", "E_SUBMISSION_UNKNOWN", False)]
    assert world.client.receipt("run/1") is None


def test_evidence_that_comes_after_the_verdict_has_looked_leaves_it_whole(world: World) -> None:
    """The wait-point: the verdict has read that there is no evidence, and waits to write its journal line."""
    operation_id = unknown(world)
    verdict = give_up(world, operation_id)
    with held(world, "LOCK TABLE counterfoil.journal IN SHARE MODE"):
        speaking = Thread(lambda: said(world, operation_id, verdict))
        until_blocked(world, 1)
        world.keep(operation_id, bound(1, "t-1"))  # fenced by nothing
        reading = Thread(lambda: world.bring(operation_id, lane=Lane.TIMER))
        until_blocked(world, 2)
    assert speaking.outcome().verdict in ("accepted", "same")  # whoever comes by accepts what is decided
    reading.outcome()
    receipt = world.client.wait("run/1", timeout_s=0)
    assert (receipt.outcome, receipt.error_code, receipt.effects_possible) == ("abandoned", "E_ABANDONED", True)
    assert world.cases(operation_id) == [
        ("UNKNOWN", "E_SUBMISSION_UNKNOWN", False),
        ("EFFECT_RECONCILIATION_REQUIRED", "E_LATE_ANSWER", True),
    ]
    assert world.sql("SELECT count(*) FROM counterfoil.evidence WHERE consumed_at IS NULL") == [(0,)]
