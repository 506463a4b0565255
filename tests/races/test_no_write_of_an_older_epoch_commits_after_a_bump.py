"""Epoch race: a worker of epoch e writes while an operator bumps to e + 1, in two processes, 400 times.

Whether a write came "after" is judged by PostgreSQL's own order and not by clocks. Every write that bears an epoch
(claims and renewals in `wake`, intents, journal lines of transitions, receipts) leaves the number of its transaction in
a log, and the bump notes, inside its own transaction and before it commits, which transactions had ended by then. A
write of the old epoch whose transaction is not among those committed after the bump: with a plain read in the place of
the locked one 309 of 900 did.
"""

import random

from counterfoil.ledger import epochs
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races import epoch_worker
from counterfoil.tests.races.waiting import process, told

RACES = 400
KINDS = tuple(epoch_worker.KINDS)

LOG = """
CREATE TABLE counterfoil.race_write (epoch bigint, kind text, transaction xid8);
CREATE TABLE counterfoil.race_bump (epoch bigint, ended pg_snapshot);
CREATE FUNCTION counterfoil.race_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO counterfoil.race_write
    VALUES ((to_jsonb(NEW) ->> TG_ARGV[0])::bigint, TG_TABLE_NAME, pg_current_xact_id());
    RETURN NULL;
END $$;
CREATE FUNCTION counterfoil.race_bump() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO counterfoil.race_bump VALUES (NEW.epoch, pg_current_snapshot());
    RETURN NULL;
END $$;
CREATE TRIGGER race AFTER INSERT OR UPDATE ON counterfoil.wake
    FOR EACH ROW WHEN (NEW.lease_epoch IS NOT NULL) EXECUTE FUNCTION counterfoil.race_write('lease_epoch');
CREATE TRIGGER race AFTER INSERT ON counterfoil.intent FOR EACH ROW EXECUTE FUNCTION counterfoil.race_write('epoch');
CREATE TRIGGER race AFTER INSERT ON counterfoil.journal FOR EACH ROW EXECUTE FUNCTION counterfoil.race_write('epoch');
CREATE TRIGGER race AFTER INSERT ON counterfoil.terminal_receipt
    FOR EACH ROW EXECUTE FUNCTION counterfoil.race_write('execution_epoch');
CREATE TRIGGER race AFTER UPDATE ON counterfoil.execution_epoch FOR EACH ROW EXECUTE FUNCTION counterfoil.race_bump();
"""

LATE = """
SELECT w.kind, count(*) FROM counterfoil.race_write AS w JOIN counterfoil.race_bump AS b ON b.epoch = w.epoch + 1
WHERE NOT pg_visible_in_snapshot(w.transaction, b.ended) GROUP BY w.kind
"""


def test_no_write_of_an_older_epoch_commits_after_a_bump(world: World) -> None:
    noise = random.Random(20261129)
    polled = world.working("polled", "t-polled")
    of_kind = {
        kind: [world.opened(f"{kind}/{race}") for race in range(RACES // len(KINDS))] for kind in ("intend", "settle")
    }
    of_kind |= {kind: [polled] * (RACES // len(KINDS)) for kind in ("claim", "renew", "transit")}
    world.sql(
        "UPDATE counterfoil.operation SET settle_as = 'REFUSED', outcome = 'refused'"
        " WHERE starts_with(call_node_id, 'settle/')"
    )
    world.sql("UPDATE counterfoil.wake SET due_at = 'infinity'")
    world.sql(LOG)
    written = dict.fromkeys(KINDS, 0)
    with process(epoch_worker.work, world.url) as (_, child):
        for race in range(RACES):
            kind = KINDS[race % len(KINDS)]
            operation_id = of_kind[kind].pop()
            world.sql(
                "UPDATE counterfoil.wake SET due_at = now(), lease_token = NULL, lease_until = NULL, lease_epoch = NULL"
                " WHERE operation_id = %(id)s",
                {"id": operation_id},
            )
            child.send((kind, operation_id, race))
            assert told(child) == "ready"
            # An eighth of the races is decided before it begins, in each direction, so that both sides win on any
            # machine; the others are run for real, the bump now earlier, now later.
            turn = race // len(KINDS) % 8
            if turn == 0:
                epochs.bump(world.database, "main", f"race {race}")
            child.send("go")
            won = told(child) if turn == 1 else None
            if turn != 0:
                for _ in range(0 if turn == 1 else noise.randrange(8)):
                    world.sql("SELECT 1")
                epochs.bump(world.database, "main", f"race {race}")
            written[kind] += told(child) if won is None else won
        child.send(None)
    assert world.sql(LATE) == []
    assert world.sql("SELECT count(*) FROM counterfoil.race_bump") == [(RACES,)]
    total = RACES // len(KINDS)
    assert all(0 < count < total for count in written.values()), (
        f"a race that one side always wins proves nothing: {written}"
    )
    assert world.sql("SELECT count(*) FROM counterfoil.intent") == [(written["intend"] + 1,)]
    assert world.sql("SELECT count(*) FROM counterfoil.terminal_receipt") == [(written["settle"],)]
