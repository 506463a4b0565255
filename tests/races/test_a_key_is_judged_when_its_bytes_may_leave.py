"""A replay is claimed while the server still remembers the key, and its bytes would leave after it has forgotten: a
closed bucket, or a lock, lies in between (review M17).

Judged at the claim it would make a new operation. Judged in the intent's transaction it doesn't leave; and the wait for
the row's lock itself (4 s at most, then the transaction begins anew) is inside the margin.
"""

import pytest

from counterfoil.ledger.database import Database
from counterfoil.ledger.intents import KEY_MARGIN_S, Denied, Granted
from counterfoil.ledger.states import Lane
from counterfoil.ledger.store import Lease
from counterfoil.tests.ledger.world import POLICY, World
from counterfoil.tests.races.meeting import OPERATION, unknown
from counterfoil.tests.races.waiting import Thread, held, until_blocked

LIFETIME_S = 100.0
REPLAY = POLICY.model_copy(update={"lookup": "replay", "key_lifetime_s": LIFETIME_S})
LOCK_WAIT_S = 4.0


def left_s(world: World) -> float:
    query = "SELECT extract(epoch FROM first_intent_at - counterfoil.ledger_now())::float8 FROM counterfoil.operation"
    return float(world.sql(query)[0][0]) + LIFETIME_S


def replayable(world: World) -> Lease:
    world.policy = REPLAY
    operation_id = unknown(world)
    return world.claim(Lane.LOOKUP, lease_s=600)[operation_id]


def test_a_replay_that_was_claimed_in_time_is_refused_once_its_key_may_be_forgotten(world: World) -> None:
    lease = replayable(world)
    world.pass_time(left_s(world) - REPLAY.send_by_s - KEY_MARGIN_S)  # its bucket was closed meanwhile
    answer = world.intend(lease, effect="replay")
    assert isinstance(answer, Denied)
    assert answer.code == "E_KEY_EXPIRED"
    assert world.sql("SELECT count(*) FROM counterfoil.intent WHERE effect = 'replay'") == [(0,)]


@pytest.mark.parametrize("waits_s", [0.0, LOCK_WAIT_S])
def test_whatever_it_waits_for_the_rows_lock_its_last_byte_leaves_before_the_key_is_forgotten(
    world: World, waits_s: float
) -> None:
    lease = replayable(world)
    world.pass_time(left_s(world) - REPLAY.send_by_s - KEY_MARGIN_S - 0.1)
    with held(world, OPERATION):
        intending = Thread(lambda: world.intend(lease, effect="replay"))
        until_blocked(world, 1)
        world.pass_time(waits_s)
    answer = intending.outcome()
    if isinstance(answer, Granted):
        ends = "SELECT extract(epoch FROM send_by - counterfoil.ledger_now())::float8 FROM counterfoil.intent"
        (send_by_s,) = world.sql(f"{ends} WHERE effect = 'replay'")[0]
        assert send_by_s < left_s(world)
    else:
        assert (waits_s, answer.code) == (LOCK_WAIT_S, "E_KEY_EXPIRED")


def test_no_transaction_waits_longer_for_a_lock_than_the_margin_allows(database: str) -> None:
    made = Database(database)
    with made.begin() as connection:
        (told,) = connection.exec_driver_sql("SHOW lock_timeout").one()
    made.dispose()
    assert told == f"{LOCK_WAIT_S:g}s"
    assert LOCK_WAIT_S < KEY_MARGIN_S
