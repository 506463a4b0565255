"""Four processes claim 500 due rows at once: SKIP LOCKED gives each row to one of them, and nobody waits for anybody.

A claim that wrote the operation as well deadlocked 58 times in 3,779.
"""

from contextlib import ExitStack

from counterfoil.tests.ledger.world import World
from counterfoil.tests.races import claimer
from counterfoil.tests.races.waiting import process, told

ROWS = 500


def test_every_due_row_is_claimed_once(world: World) -> None:
    world.store.register_targets([("reports", "mcp-2026-07-28")])
    world.sql(
        "INSERT INTO counterfoil.wake (operation_id, lane, fleet, target, due_at)"
        " SELECT gen_random_uuid(), 'submit', 'main', 'reports', now() FROM generate_series(1, %(n)s)",
        {"n": ROWS},
    )
    world.sql(
        "INSERT INTO counterfoil.operation (id, fleet, namespace, call_node_id, request_digest, target, tool,"
        " principal, arguments, submission_key, state, execution_epoch)"
        " SELECT operation_id, 'main', 'default', operation_id::text, '', 'reports', 'generate', 'me', '{}',"
        " operation_id, 'SUBMITTING', 1 FROM counterfoil.wake"
    )
    with ExitStack() as stack:
        words = [stack.enter_context(process(claimer.work, world.url))[1] for _ in range(4)]
        assert [told(word) for word in words] == ["ready"] * 4
        for word in words:
            word.send("go")
        shares = [told(word) for word in words]
    everything = sorted(id_ for share in shares for id_ in share)
    assert everything == sorted(str(row[0]) for row in world.sql("SELECT operation_id FROM counterfoil.wake"))
    assert sum(1 for share in shares if share) > 1, "one process took everything: that was no race"
    assert world.sql("SELECT count(*) FROM counterfoil.wake WHERE claim_count <> 0 OR lease_token IS NULL") == [(0,)]
    assert world.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == [(0,)]
