"""A worker of epoch 1 lives on over two bumps. It must not write a thing but what servers told it, and that must not be
lost: the answer to its submit is the only handle on the remote task. The client beside it is a door and just goes on.
"""

import pytest

from counterfoil.ledger import epochs
from counterfoil.ledger.accept import accept
from counterfoil.ledger.errors import StaleEpoch
from counterfoil.ledger.events import Progressed, TaskBound
from counterfoil.ledger.rows import read_rows
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import World

TABLES = (
    "operation",
    "wake",
    "intent",
    "journal",
    "terminal_receipt",
    "ready_outbox",
    "reconciliation_case",
    "operation_result",
)


def all_rows(world: World) -> list[list[tuple[object, ...]]]:
    return [world.sql(f"SELECT * FROM counterfoil.{table} ORDER BY 1, 2") for table in TABLES]


def test_an_older_epoch_may_append_evidence_and_nothing_else(world: World) -> None:
    sent, _, _ = world.sent("run/sent")
    polled = world.working("run/polled", "t-polled")
    world.sql("UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now()")
    poller = world.claim(Lane.POLL)[polled]
    decided = world.working("run/decided", "t-decided")
    with world.acceptance_failing():
        world.ended(decided)
    world.opened("run/due")
    due = world.claim(lease_s=300)
    submitter = next(iter(due.values()))
    with world.database.begin() as connection:
        (row,) = read_rows(connection, [decided], world.policy_of, lock=False)

    for reason in ("a bad release", "another"):
        epochs.bump(world.database, "main", reason)
    world.opened("run/after")  # the client goes on
    before = all_rows(world)

    world.sql("UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now() WHERE false")
    assert [world.claim(lane) for lane in Lane] == [{}] * len(Lane)
    assert world.store.renew([(polled, Lane.POLL, poller.token, 9.0)]) == {}
    assert world.store.reread([(polled, Lane.POLL, poller.token)]) == {}
    world.store.release([(poller, 300.0)], failed=True)
    with pytest.raises(StaleEpoch):
        world.intend(submitter)
    with pytest.raises(StaleEpoch):
        world.bring(polled, Progressed(10**6, "half way"), lease=poller)
    assert accept(world.database, "main", world.epoch, [(row, Lane.POLL)]) == {decided: "stale_epoch"}
    assert all_rows(world) == before
    counted = dict(world.sql("SELECT what, count(*) FROM counterfoil.refused_write WHERE epoch = 1 GROUP BY what"))
    assert counted == {"intent": 1, "transition": 1, "accept_terminal": 1}

    world.keep(sent, TaskBound(1, "t-sent", "working"))
    young = World(world.url)
    young.bring(sent)
    assert young.one(sent, "state, task_id, execution_epoch") == ("WORKING", "t-sent", 3)
    assert young.bring(decided, lane=Lane.FETCH).verdict == "accepted"
    assert world.client.wait("run/decided", timeout_s=0).execution_epoch == 3
    young.close()
