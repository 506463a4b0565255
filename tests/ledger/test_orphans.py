"""No orphan (SPEC section 7): what is not over is due in time, or asks a person; and the query says so."""

import itertools
import uuid
from collections.abc import Iterator
from random import Random
from typing import Any
from uuid import UUID

import pytest

from counterfoil.ledger import epochs
from counterfoil.ledger import orphans as ledger_orphans
from counterfoil.ledger.events import CancelAsked, SubmitUnclear, TaskBound
from counterfoil.ledger.operation import OpenCase, OpenIntent, Operation
from counterfoil.ledger.orphans import AHEAD_S, by_lane, find_orphans
from counterfoil.ledger.rounds import Round
from counterfoil.ledger.states import OPEN, TERMINAL, Lane, State
from counterfoil.ledger.wakes import wakes
from counterfoil.tests.ledger.world import POLICY, World


def orphans(world: World, **more: Any) -> list[tuple[UUID, str, str]]:
    with world.database.begin() as connection:
        found = find_orphans(connection, "main", **more)
    return [(orphan.operation_id, orphan.lane, orphan.why) for orphan in found]


def lanes(world: World, **more: Any) -> list[str]:
    return [lane for _, lane, _ in orphans(world, **more)]


# -- the query and wakes() say the same --------------------------------------------------------------------------------

CASES: tuple[tuple[OpenCase, ...], ...] = (
    (),
    (OpenCase("UNKNOWN", "E_SUBMISSION_UNKNOWN"),),
    (OpenCase("UNKNOWN", "E_CANCEL_UNCONFIRMED"),),
    (OpenCase("EFFECT_RECONCILIATION_REQUIRED", "E_EFFECTS_POSSIBLE"),),
    (OpenCase("UNKNOWN", "E_CANCEL_UNCONFIRMED"), OpenCase("UNKNOWN", "E_AUTH_EXPIRED")),
)
ROUNDS = ((), ("open",), ("replied",), ("sent",), ("unclear",), ("closed",), ("open", "replied"), ("closed", "sent"))
INTENTS = ((), ("submit",), ("replay",), ("answer",), ("cancel",))
SHAPES = 2_500


def shapes() -> Iterator[Operation]:
    """Operations of every state, with everything beside them that a wake row may hang on: a part of all combinations,
    drawn with a fixed seed, so that what must not matter is tried as well as what must."""
    both = (False, True)
    every = itertools.product(sorted(OPEN), both, CASES, ROUNDS, INTENTS, both, both, both, both, both)
    drawn = Random(7).sample(list(every), SHAPES)
    for number, (state, settles, cases, rounds, effects, bound, due, budget, asked, confirm) in enumerate(drawn):
        has_task = bound or state in (State.WORKING, State.CANCEL_REQUESTED)
        yield Operation(
            UUID(int=number + 1),
            POLICY,
            state,
            task_id=f"t-{number}" if has_task else None,
            settle_as=State.ACCEPTED if settles else None,
            cases=cases,
            rounds=tuple(Round(index, f"k{index}", word) for index, word in enumerate(rounds, 1)),
            intents=tuple(OpenIntent(UUID(int=number + 1), effect, 1, 0, 5.0, 60.0) for effect in effects),
            cancel_due=due,
            budget_left_s=50.0 if budget else None,
            budget_running=budget,
            input_left_s=70.0 if asked else None,
            confirm_left_s=30.0 if confirm else None,
        )


def write(world: World, operations: list[Operation]) -> None:
    """Put operations into the tables as they are, without one wake row."""
    later = "counterfoil.ledger_now() + make_interval(secs => %(s)s)"
    with world.owner() as owner, owner.cursor() as cursor, owner.transaction():
        cursor.execute("SET LOCAL ROLE counterfoil_owner")
        cursor.executemany(
            "INSERT INTO counterfoil.operation (id, fleet, namespace, call_node_id, request_digest, target, tool,"
            " principal, arguments, submission_key, state, settle_as, outcome, task_id, cancel_due, budget_ends_at,"
            " input_ends_at, confirm_ends_at, audit_ends_at, execution_epoch) VALUES (%(id)s, 'main', 'shapes',"
            " %(id)s::text, '', 'reports', 'generate', 'me', '', %(id)s, %(state)s, %(settle)s, %(outcome)s, %(task)s,"
            f" %(due)s, {later.replace('%(s)s', '%(budget)s')}, {later.replace('%(s)s', '%(input)s')},"
            f" {later.replace('%(s)s', '%(confirm)s')}, {later.replace('%(s)s', '%(audit)s')}, 1)",
            [
                {
                    "id": op.id,
                    "state": op.state,
                    "settle": op.settle_as,
                    "outcome": "failed" if op.over else None,
                    "task": op.task_id,
                    "due": op.cancel_due,
                    "budget": op.budget_left_s,
                    "input": op.input_left_s,
                    "confirm": op.confirm_left_s,
                    "audit": op.audit_left_s,
                }
                for op in operations
            ],
        )
        cursor.execute(
            "INSERT INTO counterfoil.call_node (namespace, call_node_id, request_digest, operation_id, outcome,"
            " receipt_id) SELECT namespace, call_node_id, '', id, v.said, CASE WHEN v.said IS NOT NULL THEN id END"
            " FROM counterfoil.operation,"
            " LATERAL (SELECT CASE WHEN state = ANY(%s) THEN outcome END AS said) AS v",
            [[str(state) for state in TERMINAL]],
        )
        cursor.executemany(
            "INSERT INTO counterfoil.reconciliation_case (id, operation_id, kind, code, why, opened_at)"
            " VALUES (gen_random_uuid(), %s, %s, %s, '', now())",
            [(op.id, str(case.kind), case.code) for op in operations for case in op.cases],
        )
        cursor.executemany(
            "INSERT INTO counterfoil.input_round (operation_id, number, leg, key, method, params, schema_digest,"
            " reply_to, state, opened_at, closed_at, how) VALUES (%s, %s, 1, %s, 'm', '', '', '', %s, now(), %s, %s)",
            [
                (op.id, one.number, one.key, one.state, *(("now", "over") if one.state == "closed" else (None, None)))
                for op in operations
                for one in op.rounds
            ],
        )
        cursor.executemany(
            "INSERT INTO counterfoil.intent (send_token, operation_id, effect, attempt, generation, epoch, send_by,"
            " answer_by, opened_at) VALUES (%s, %s, %s, 1, 0, 1, now(), now(), now())",
            [(intent.send_token, op.id, intent.effect) for op in operations for intent in op.intents],
        )


def test_what_the_query_needs_of_each_state_is_what_wakes_py_writes(world: World) -> None:
    operations = list(shapes())
    write(world, operations)
    missing: dict[UUID, set[str]] = {op.id: set() for op in operations}
    for operation_id, lane, _ in orphans(world, limit=100_000):
        missing[operation_id].add(lane)
    differ = {op: (needed(op), missing[op.id]) for op in operations if needed(op) != missing[op.id]}
    assert list(differ.items())[:3] == []
    assert {op.state for op in operations if missing[op.id]} == OPEN


def needed(op: Operation) -> set[str]:
    """The lanes of `wakes()` that must be there, whatever the policy: the watch beside an open question may be switched
    off. An intent starts the budget without its timer: what closes the intent writes that."""
    rows = set(wakes(op)) or ({Lane.TIMER} if not op.parked else set())
    if op.state is State.INPUT_REQUIRED and any(one.state == "open" for one in op.rounds):
        rows -= {Lane.POLL}
    if op.state is State.SUBMITTING and op.settle_as is None and op.intent("submit") is not None:
        rows -= {Lane.TIMER}
    return {str(lane) for lane in rows}


def test_an_end_that_is_still_looked_at_needs_its_audit_row(world: World) -> None:
    ends = [
        Operation(uuid.uuid4(), POLICY, state, audit_s=300.0, audit_left_s=left_s)
        for state in sorted(TERMINAL)
        for left_s in (50.0, 0.0, None)
    ]
    write(world, ends)
    wanted = {op.id for op in ends if wakes(op)}
    assert {(operation_id, lane) for operation_id, lane, _ in orphans(world)} == {(id_, "audit") for id_ in wanted}
    assert len(wanted) == len(TERMINAL)


# -- the ledger as it is written ---------------------------------------------------------------------------------------


def test_a_healthy_ledger_has_no_orphan(world: World) -> None:
    world.freeze()
    asked, _, _ = world.sent("run/1")
    world.bring(asked, SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut"))
    world.ended(world.working("run/2", "t-2"))
    world.bring(world.working("run/3", "t-3"), CancelAsked("stop"), lane=Lane.DOOR)
    world.opened("run/4")
    world.claim()
    world.pass_time(10)
    assert orphans(world) == []


def test_a_case_beside_which_reading_goes_on_excuses_no_missing_row(world: World) -> None:
    operation_id = world.working()
    world.sql(
        "INSERT INTO counterfoil.reconciliation_case (id, operation_id, kind, code, why, opened_at)"
        " VALUES (gen_random_uuid(), %(id)s, 'UNKNOWN', 'E_CANCEL_UNCONFIRMED', '', now())",
        {"id": operation_id},
    )
    world.sql("DELETE FROM counterfoil.wake WHERE lane = 'poll'")
    assert orphans(world) == [(operation_id, "poll", "no wake row of this lane, and no case that waits for a person")]


def test_a_row_of_another_lane_is_no_excuse_for_the_one_that_is_missing(world: World) -> None:
    """Lost wake-up: a cancel is committed, and only the poll row is there (review X1a)."""
    operation_id = world.working()
    world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
    world.sql("DELETE FROM counterfoil.wake WHERE lane = 'cancel'")
    assert [orphan[:2] for orphan in orphans(world)] == [(operation_id, "cancel")]


def test_the_blocking_lane_does_for_the_submit_lane(world: World) -> None:
    world.opened()
    world.sql("UPDATE counterfoil.wake SET lane = 'sync'")
    assert orphans(world) == []


def test_a_row_that_is_long_overdue_is_an_orphan_also_when_its_holder_died(world: World) -> None:
    world.freeze()
    operation_id = world.opened()
    world.claim(lease_s=20)
    world.pass_time(20 + 59)
    assert orphans(world) == []
    world.pass_time(2)
    assert orphans(world) == [(operation_id, "submit", "overdue")]


def test_a_target_that_asked_for_quiet_makes_no_orphans_but_of_what_needs_no_wire(world: World) -> None:
    world.freeze()
    world.opened()
    world.store.close_target("reports", 600)
    world.pass_time(600)
    assert orphans(world) == []
    world.sql("UPDATE counterfoil.wake SET lane = 'timer'")
    assert lanes(world) == ["submit", "timer"]
    world.sql("UPDATE counterfoil.wake SET lane = 'submit'")
    world.pass_time(61)
    assert lanes(world) == ["submit"]


def test_a_row_that_is_due_too_late_for_any_pace_is_an_orphan(world: World) -> None:
    world.freeze()
    world.working()
    due = "counterfoil.ledger_now() + make_interval(secs => %(s)s)"
    late = f"UPDATE counterfoil.wake SET due_at = {due} WHERE lane = 'poll'"
    world.sql(late, {"s": AHEAD_S - 1})
    assert orphans(world) == []
    world.sql(late, {"s": AHEAD_S + 1})
    assert [orphan[1:] for orphan in orphans(world)] == [
        ("poll", "due too late: beyond the slowest pace of its policy")
    ]


def test_a_policy_that_polls_once_a_day_may_do_so(database: str) -> None:
    world = World(database, policy=POLICY.model_copy(update={"poll_max_s": 86_400.0}))
    try:
        world.working()
        world.sql("UPDATE counterfoil.wake SET due_at = due_at + interval '20 h' WHERE lane = 'poll'")
        assert orphans(world) == []
    finally:
        world.close()


def test_a_lease_of_an_epoch_that_is_over_is_none(world: World) -> None:
    world.freeze()
    world.claimed()
    world.sql(
        "UPDATE counterfoil.wake SET lease_until = lease_until + interval '1 h', due_at = due_at + interval '1 h'"
    )
    with world.owner() as elsewhere, elsewhere.transaction():
        # Whoever holds the row while the epoch is bumped keeps it from being given back.
        elsewhere.execute("SELECT 1 FROM counterfoil.wake FOR UPDATE")
        epochs.bump(world.database, "main", "roll-back")
    world.pass_time(59)
    assert orphans(world) == []
    world.pass_time(2)
    assert [orphan[1:] for orphan in orphans(world)] == [("submit", "leased by epoch 1, which is over")]


def test_evidence_that_nobody_consumed_for_30_s_is_an_orphan_whatever_the_state(world: World) -> None:
    world.freeze()
    operation_id, _, _ = world.sent()
    world.keep(operation_id, TaskBound(1, "t-1", "working"))
    world.pass_time(29)
    assert orphans(world) == []
    world.pass_time(2)
    assert orphans(world) == [(operation_id, "submit", "evidence unconsumed for 30 s")]
    world.bring(operation_id)
    assert orphans(world) == []


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_the_oldest_come_first_and_are_counted_by_lane(
    world: World, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_orphans, "AT_ONCE", at_once)
    world.freeze()
    world.working("run/3", "t-3")
    world.opened("run/1")
    world.pass_time(50)
    world.opened("run/2")
    world.pass_time(200)
    with world.database.begin() as connection:
        found = find_orphans(connection, "main")
        assert [orphan.call_node_id for orphan in find_orphans(connection, "main", limit=1)] == ["run/1"]
        assert find_orphans(connection, "another") == []
    assert [orphan.call_node_id for orphan in found] == ["run/1", "run/3", "run/2"]
    (submit, poll) = by_lane(found).items()
    assert (submit[0], submit[1][0], round(submit[1][1])) == ("submit", 2, 250)
    assert (poll[0], poll[1][0]) == ("poll", 1)
