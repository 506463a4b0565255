"""A server that hands out one task id twice: two transitions, each with its own operation's row lock, bind it at once.

Neither sees the other's uncommitted row, so both would find the id free. Whoever is second has to wait for the first
one's commit before it looks (E_TASK_ID_REUSED is a case; a unique index would abort the whole batch instead)."""

import threading

from counterfoil.ledger.events import Event, TaskBound
from counterfoil.ledger.rows import Evidence, Row
from counterfoil.ledger.states import Lane
from counterfoil.ledger.store import Answer
from counterfoil.ledger.transition import Transitions
from counterfoil.ledger.work import Item
from counterfoil.tests.ledger.world import World, dumped, interpret
from counterfoil.tests.races.waiting import Thread


def test_the_second_of_two_binds_of_one_id_is_a_case(world: World) -> None:
    both_hold_their_rows = threading.Barrier(2)

    def meet(row: Row, piece: Evidence) -> Event:
        """The wait-point: evidence is read under the row lock, so here both locks are held."""
        both_hold_their_rows.wait(10)
        return interpret(row, piece)

    sent = [world.sent(node)[0] for node in ("run/1", "run/2")]
    for operation_id in sent:
        said = dumped(TaskBound(1, "t-1", "working", "2026-11-29T10:00:00Z", None, 1000))
        world.store.append_evidence([Answer(operation_id, "submit", 1, 0, None, 200, "{}", said)])
    transitions = Transitions(world.database, "main", world.epoch, interpret=meet, policy_of=world.policy_of)
    sides = [
        Thread(lambda operation_id=operation_id: transitions.apply([Item(operation_id, Lane.TIMER)]))  # type: ignore[misc]
        for operation_id in sent
    ]
    for side in sides:
        side.outcome()
    assert sorted(world.state(operation_id) for operation_id in sent) == ["SUBMISSION_UNKNOWN", "WORKING"]
    (loser,) = [operation_id for operation_id in sent if world.state(operation_id) == "SUBMISSION_UNKNOWN"]
    assert [code for _, code, _ in world.cases(loser)] == ["E_TASK_ID_REUSED"]
