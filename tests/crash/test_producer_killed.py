"""A producer is killed with its COMMIT on the way. It comes back and hands the same call in again, since it knows no
better: the same operation, or the first one."""

import multiprocessing
from uuid import UUID

import pytest

from counterfoil.ledger.errors import NoSuchOperation
from counterfoil.tests.crash import producer
from counterfoil.tests.crash.field import KILLS, PATIENCE_S, Field, judged


@pytest.mark.parametrize("committed", [False, True], ids=["the commit is lost", "its answer is lost"])
def test_a_producer_that_comes_back_after_its_commit_got_lost_has_one_operation(field: Field, committed: bool) -> None:
    (target, *_) = field.hand_in("other", ("nothing",))
    nodes = [f"back.nothing.0/{number}" for number in range(KILLS)]
    context = multiprocessing.get_context("forkserver")
    here, there = context.Pipe()
    process = context.Process(target=producer.work, args=(there, field.database_url, target, nodes, committed))
    process.start()
    made: dict[str, UUID] = {}
    while len(made) < KILLS:
        assert here.poll(PATIENCE_S), "the producer does not come to its point"
        node, id_ = here.recv()
        made[node] = id_
    process.kill()
    process.join(PATIENCE_S)
    here.close()

    for node in nodes:
        if committed:
            assert field.client.get(node).id == made[node]
        else:
            with pytest.raises(NoSuchOperation):
                field.client.get(node)
        again = field.client.submit(target, "work", {"secs": 0.2, "node": node}, call_node_id=node)
        assert (again.id == made[node]) is committed
    field.start()
    field.until("each has a receipt", lambda: not field.unsettled())
    judged(field)
    assert {len(tasks) for tasks in field.log_of_calls().tasks.values()} == {1}
