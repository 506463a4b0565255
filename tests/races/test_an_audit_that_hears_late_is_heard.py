"""After a won cancel the task is still looked at, for a bounded time. An audit's reading leaves before the window ends
and is brought after it, beside the timer that would end the audit.

What it hears counts whenever it is heard: the completion opens the effects case, the receipt stays. With the window
over nothing reads on: no wake row is left, and none comes back.
"""

import pytest

from counterfoil.ledger.events import CancelAcknowledged, CancelAsked, Ended, Progressed
from counterfoil.ledger.intents import Granted
from counterfoil.ledger.states import Lane
from counterfoil.ledger.store import Lease
from counterfoil.tests.ledger.world import POLICY, RESULT, World
from counterfoil.tests.races.meeting import OPERATION, in_both_orders, meet, said

AUDITED = POLICY.model_copy(update={"cancel_is_evidence": True, "audit_s": 300.0})


def audited(world: World) -> Lease:
    """Cancelled, and its first audit is out."""
    world.policy = AUDITED
    operation_id = world.working()
    world.freeze()
    said(world, operation_id, CancelAsked("stop"))
    lease = world.claim(Lane.CANCEL)[operation_id]
    assert isinstance(world.intend(lease, effect="cancel", generation=1), Granted)
    world.bring(operation_id, CancelAcknowledged(1, cancelled=True), lease=lease)
    assert world.client.wait("run/1", timeout_s=0).outcome == "cancelled"
    world.pass_time(295)
    return world.claim(Lane.AUDIT, lease_s=30)[operation_id]


@pytest.mark.parametrize("first", ["completed", "working"])
def test_a_completion_heard_after_the_window_opens_the_effects_case_and_nothing_reads_on(
    world: World, first: str
) -> None:
    lease = audited(world)
    operation_id = lease.operation_id
    world.pass_time(10)  # the window is over while both answers are on their way
    sides, _ = in_both_orders(
        first,
        ("completed", "working"),
        lambda: world.bring(operation_id, Ended(lease.read_seq, "completed", "completed", RESULT), lease=lease),
        lambda: world.bring(operation_id, Progressed(lease.read_seq + 1, "working"), lane=Lane.AUDIT),
    )
    meet(world, OPERATION, *sides)
    assert world.cases(operation_id) == [("EFFECT_RECONCILIATION_REQUIRED", "E_LATE_COMPLETION_AFTER_CANCEL", True)]
    assert world.client.wait("run/1", timeout_s=0).outcome == "cancelled"
    assert world.wakes(operation_id) == {}


def test_an_audit_that_dies_does_not_outlive_its_window(world: World) -> None:
    lease = audited(world)
    world.pass_time(40)  # its bearer is dead, its lease over, and so is the window
    again = world.claim(Lane.AUDIT)[lease.operation_id]
    world.bring(lease.operation_id, lease=again)
    assert world.wakes(lease.operation_id) == {}
