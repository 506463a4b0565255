"""A worker stands still inside a transition (stopped, or starved by its neighbours) until PostgreSQL ends the
transaction, so that it can't hold a bump (`idle_in_transaction_session_timeout`, 2 s).

Nothing was written, and nothing of the operation is at fault: the transition is run again later. Counted as a failed
claim five of them would hand the row to a person (E_QUARANTINED).
"""

from typing import Any

import psycopg
import pytest

from counterfoil.ledger.errors import LedgerUnavailable
from counterfoil.ledger.events import Progressed
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.waiting import before_each_statement, until


def test_its_row_is_neither_parked_nor_counted(world: World) -> None:
    operation_id = world.working()
    world.sql("UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now()")
    lease = world.claim(Lane.POLL)[operation_id]
    before = world.wakes(operation_id)["poll"]

    stands = True

    def stand_still(cursor: psycopg.Cursor[Any], query: str) -> None:
        if "Move existing wake rows" in query and stands:
            cursor.execute("SELECT pg_backend_pid(), set_config('idle_in_transaction_session_timeout', '20ms', true)")
            (pid, _) = cursor.fetchone() or ()
            until(lambda: not world.sql("SELECT 1 FROM pg_stat_activity WHERE pid = %(pid)s", {"pid": pid}))
            cursor.connection.pgconn.consume_input()  # PostgreSQL's last word; else a reset may overtake it

    before_each_statement(world.database, stand_still)
    with pytest.raises(LedgerUnavailable):
        world.bring(operation_id, Progressed(lease.read_seq, "half way"), lease=lease)
    stands = False

    after = world.wakes(operation_id)["poll"]
    assert (after["claim_count"], after["lease_token"]) == (before["claim_count"], lease.token)
    world.bring(operation_id, Progressed(lease.read_seq, "half way"), lease=lease)
    assert world.one(operation_id, "server_status") == "half way"
