"""From 0002 to 0003 with a ledger that is at work: nothing is lost, and what was in flight goes on."""

from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest
from alembic import command
from sqlalchemy import text

from counterfoil.ledger import migrate
from counterfoil.ledger.events import Ended, ReplyGiven, TaskBound
from counterfoil.ledger.intents import Granted
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.machine import asks, said
from counterfoil.tests.ledger.world import POLICY, RESULT, World

WORKING, ASKED, LOST, DUE, DONE = (UUID(int=number) for number in range(1, 6))

_IDS = ", ".join(f"'{one}'" for one in (WORKING, ASKED, LOST, DUE, DONE))
OLD_ROWS = f"""
SET ROLE counterfoil_owner;
INSERT INTO counterfoil.target_state (fleet, target, protocol) VALUES ('main', 'reports', 'mcp-2026-07-28');
SELECT counterfoil.open_operation(id, 'main', 'default', 'run/' || number, 'd', 'reports', 'generate', 'default',
    '{{}}', gen_random_uuid())
FROM unnest(ARRAY[{_IDS}]::uuid[]) WITH ORDINALITY AS v(id, number);

UPDATE counterfoil.operation SET sent_attempt = 1, first_intent_at = now(), last_send_by = now(),
    protocol = 'mcp-2026-07-28', budget_ends_at = now() + interval '1 hour'
WHERE id <> '{DUE}';
UPDATE counterfoil.operation SET state = 'WORKING', task_id = 't-1' WHERE id = '{WORKING}';
UPDATE counterfoil.operation SET state = 'INPUT_REQUIRED', task_id = 't-2', input_round = 1, input_digest = 'q',
    input_ends_at = now() + interval '1 hour', budget_s = 60, budget_ends_at = NULL
WHERE id = '{ASKED}';
UPDATE counterfoil.operation SET state = 'SUBMISSION_UNKNOWN' WHERE id = '{LOST}';
UPDATE counterfoil.operation SET state = 'FETCHING_RESULT', task_id = 't-5', terminal_status = 'completed',
    settle_as = 'ACCEPTED', outcome = 'failed', error_code = 'E_TOOL_ERROR', budget_s = 60, budget_ends_at = NULL
WHERE id = '{DONE}';

UPDATE counterfoil.wake SET lane = 'poll' WHERE operation_id IN ('{WORKING}', '{ASKED}');
UPDATE counterfoil.wake SET lane = 'fetch' WHERE operation_id = '{DONE}';
DELETE FROM counterfoil.wake WHERE operation_id = '{LOST}';
INSERT INTO counterfoil.reconciliation_case (id, operation_id, kind, code, why, opened_at)
VALUES (gen_random_uuid(), '{LOST}', 'UNKNOWN', 'E_SUBMISSION_UNKNOWN', 'cut', now());
INSERT INTO counterfoil.intent (send_token, operation_id, effect, attempt, generation, epoch, send_by, answer_by,
    opened_at, closed_at, how)
VALUES (gen_random_uuid(), '{LOST}', 'submit', 1, 0, 1, now(), now(), now(), now(), 'lost');
INSERT INTO counterfoil.evidence (id, fleet, operation_id, kind, attempt, generation, epoch, status, headers, body,
    consumed_at)
VALUES (gen_random_uuid(), 'main', '{WORKING}', 'submit', 1, 0, 1, 200, '{{}}', '{{}}', now());
"""


@pytest.fixture
def upgraded(empty_database: str) -> Iterator[World]:
    """A ledger of version 0002 with five calls in it, brought up to this version."""
    with migrate._connected(empty_database) as connection:
        connection.exec_driver_sql(migrate.roles_sql(), execution_options={"no_parameters": True})
        connection.execute(text("CREATE SCHEMA counterfoil AUTHORIZATION counterfoil_owner"))
        connection.execute(text("SET LOCAL ROLE counterfoil_owner"))
        command.upgrade(migrate._config(connection), "0002")
        connection.commit()
    plain = empty_database.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(plain) as connection:
        connection.execute(OLD_ROWS.encode())
    assert migrate.upgrade(empty_database) == migrate.head()
    assert migrate.check(empty_database) == []
    world = World(empty_database)
    yield world
    world.close()


def test_what_was_in_flight_goes_on(upgraded: World) -> None:
    lease = upgraded.claim()[DUE]
    assert isinstance(upgraded.intend(lease), Granted)
    upgraded.bring(DUE, TaskBound(1, "t-4", "working"), lease=lease)
    assert upgraded.ended(WORKING).verdict == "accepted"
    assert upgraded.ended(DUE).verdict == "accepted"
    receipt = upgraded.client.receipt("run/1")
    assert receipt is not None
    assert (receipt.outcome, receipt.problems()) == ("succeeded", [])
    assert upgraded.sql("SELECT seq FROM counterfoil.evidence") == [(0,)]


def test_a_question_of_before_is_read_again_and_gets_its_round(upgraded: World) -> None:
    """0002 kept a digest of it and nothing to answer."""
    upgraded.bring(ASKED, asks(seq=10))
    assert upgraded.state(ASKED) == "INPUT_REQUIRED"
    upgraded.bring(ASKED, asks("a", seq=11), ReplyGiven(1, b"{}", "ann"))
    assert upgraded.sql("SELECT number, key, state FROM counterfoil.input_round") == [(1, "a", "replied")]
    assert set(upgraded.wakes(ASKED)) == {"answer", "poll", "timer"}


def test_a_question_that_was_never_read_and_goes_by_counts_as_unanswered(upgraded: World) -> None:
    upgraded.bring(ASKED, Ended(10, "completed", "completed", RESULT))
    assert upgraded.one(ASKED, "state, unanswered_rounds") == ("ACCEPTED", 1)


def test_an_open_case_of_before_is_settled_by_a_person(upgraded: World) -> None:
    upgraded.bring(LOST, said("give_up"), lane=Lane.DOOR)
    assert upgraded.sql("SELECT closed_by, verdict FROM counterfoil.reconciliation_case") == [("ann", "give_up")]


def test_an_end_that_was_decided_before_is_accepted_after(upgraded: World) -> None:
    assert upgraded.bring(DONE, lane=Lane.FETCH).verdict == "accepted"
    assert upgraded.wakes(DONE) == {}
    assert POLICY.protocol == upgraded.one(DONE, "protocol")
