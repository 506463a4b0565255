"""`recover` runs while producers hand calls in, and a worker of before goes on claiming and intending as if nothing had
happened (the database was promoted, it has not noticed).

Whatever that worker may have sent before the bump is looked up, none of its intents commits after it, and what a server
tells it is kept and binds. What a producer hands in meanwhile is nobody's loss: it is committed after the bump and is
sent as usual, or it was there before and counts as perhaps sent.
"""

import threading
from uuid import UUID

import pytest

from counterfoil.ledger import recovery
from counterfoil.ledger.errors import StaleEpoch
from counterfoil.ledger.intents import Granted
from counterfoil.ledger.states import Lane
from counterfoil.ledger.work import Item
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.meeting import UNIQUE, bound
from counterfoil.tests.races.waiting import PATIENCE_S, Thread, until

PRODUCERS, BEFORE, AFTER = 3, 30, 10
"""Calls of each producer: until the worker has sent some, and from the moment at which `recover` is through."""


class Fleet:
    """Producers, and the worker of before with what it was granted."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.recovered = threading.Event()
        self.sent: list[UUID] = []

    def produce(self, producer: int) -> None:
        for number in range(BEFORE + AFTER):
            if number == BEFORE:
                self.recovered.wait(PATIENCE_S)
            self.world.client.submit("reports", "generate", {}, call_node_id=f"{producer}/{number}")

    def send_as_before(self) -> None:
        """Until its own fence refuses it."""
        while True:
            leases = list(self.world.claim(limit=5).values())
            for lease, answer in zip(leases, self.world.intend_all(leases), strict=True):
                if isinstance(answer, Granted):
                    self.sent.append(lease.operation_id)


def test_what_may_have_been_sent_is_looked_up_and_what_is_new_is_sent(world: World) -> None:
    world.policy = UNIQUE
    world.store.register_targets([("reports", "mcp-2026-07-28")])
    fleet = Fleet(world)
    producers = [Thread(lambda number=number: fleet.produce(number)) for number in range(PRODUCERS)]  # type: ignore[misc]
    worker = Thread(fleet.send_as_before)
    until(lambda: len(fleet.sent) >= 20)
    told = recovery.recover(world.url, "main", reason="drill")
    fleet.recovered.set()
    with pytest.raises(StaleEpoch):
        worker.outcome()
    for one in producers:
        one.outcome()

    states: dict[UUID, str] = dict(world.sql("SELECT id, state FROM counterfoil.operation"))
    assert len(states) == PRODUCERS * (BEFORE + AFTER)
    assert sorted(world.sql("SELECT operation_id, epoch FROM counterfoil.intent")) == [
        (id_, 1) for id_ in sorted(fleet.sent)
    ]
    assert {states[id_] for id_ in fleet.sent} == {"SUBMISSION_UNKNOWN"}
    unsent = {id_ for id_, state in states.items() if state == "SUBMITTING"}
    assert len(unsent) == len(states) - told.moved >= PRODUCERS * AFTER

    for id_ in fleet.sent:
        world.keep(id_, bound(1, f"task of {id_}"))
    young = World(world.url, policy=UNIQUE)
    young.transitions.apply(Item(id_, Lane.TIMER) for id_ in fleet.sent)
    assert {young.one(id_, "state, execution_epoch") for id_ in fleet.sent} == {("WORKING", 2)}
    leases = young.claim(limit=1000)
    assert set(leases) == unsent
    assert all(isinstance(one, Granted) for one in young.intend_all(leases.values()))
    young.close()
