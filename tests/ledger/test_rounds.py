"""Input rounds, kept results and verdicts as they stand in the tables (SPEC sections 4, 6 and 7)."""

import uuid
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from counterfoil.ledger import people
from counterfoil.ledger.digest import sha256
from counterfoil.ledger.events import (
    CancelAsked,
    Ended,
    Progressed,
    ReplyAcknowledged,
    ReplyGiven,
    ReplyUnclear,
    Result,
    ResultFetched,
    SubmitUnclear,
    TaskBound,
)
from counterfoil.ledger.intents import Denied, Granted
from counterfoil.ledger.states import Lane
from counterfoil.ledger.store import Answer, Lease
from counterfoil.ledger.work import Applied
from counterfoil.tests.ledger.machine import asks, asks_first, question, said
from counterfoil.tests.ledger.world import RESULT, World, dumped

BODY = b'{"action":"accept","content":{"name":"x"}}'
BROKEN_BODY = b'{"result":{"structuredContent":7}}'
BROKEN = Result(sha256(BROKEN_BODY), "/result/structuredContent", BROKEN_BODY, "E_RESULT_SCHEMA")


def reply(number: int = 1) -> ReplyGiven:
    return ReplyGiven(number, BODY, "ann")


def rows(world: World, columns: str = "number, key, state, how") -> list[tuple[Any, ...]]:
    return world.sql(f"SELECT {columns} FROM counterfoil.input_round ORDER BY number")


def asked(world: World, *keys: str) -> UUID:
    operation_id = world.working()
    world.bring(operation_id, asks(*(keys or ("a",)), seq=10))
    return operation_id


def reply_lease(world: World, operation_id: UUID) -> Lease:
    return world.claim(Lane.ANSWER)[operation_id]


# -- rounds ------------------------------------------------------------------------------------------------------------


def test_a_question_is_kept_with_the_identity_and_the_bytes_that_its_server_gave_it(world: World) -> None:
    world.freeze()
    asked(world)
    one = question("a")
    columns = "number, leg, key, method, params, schema_digest, reply_to, state, sends, reply"
    assert rows(world, columns) == [(1, 1, "a", one.method, one.params, one.schema_digest, "", "open", 0, None)]
    assert rows(world, "opened_at = counterfoil.ledger_now(), closed_at") == [(True, None)]


def test_a_question_that_its_bearer_kept_as_evidence_is_opened_by_whoever_comes_by(world: World) -> None:
    """A 2025 server delivers it once: the worker that read it died before its transition."""
    operation_id = world.working()
    kept = Answer(operation_id, "input", 1, 0, None, 200, "{}", dumped(asks("a", seq=10)), 10)
    world.store.append_evidence([kept])
    world.bring(operation_id)
    assert (world.state(operation_id), rows(world)) == ("INPUT_REQUIRED", [(1, "a", "open", None)])
    world.bring(operation_id, asks("a", seq=11))
    assert len(rows(world)) == 1


def test_a_reply_is_stored_once_with_its_person_and_moment(world: World) -> None:
    world.freeze()
    operation_id = asked(world)
    world.bring(operation_id, reply(), lane=Lane.DOOR)
    told = "state, reply, replied_by, replied_at = counterfoil.ledger_now()"
    assert rows(world, told) == [("replied", BODY, "ann", True)]
    other = replace(reply(), content=b"{}", actor="bob")
    assert world.bring(operation_id, other, lane=Lane.DOOR).answers[-1].code == "E_INPUT_ROUND_CLOSED"  # type: ignore[union-attr]  # a refusal, or this fails
    assert rows(world, told) == [("replied", BODY, "ann", True)]


def test_how_each_round_ended_is_told(world: World) -> None:
    """Answered, replied to when nobody knows whether it arrived, and never replied to."""
    operation_id = asked(world, "a", "b", "c")
    for number in (1, 2):
        world.bring(operation_id, reply(number), lane=Lane.DOOR)
    lease = reply_lease(world, operation_id)
    assert isinstance(world.intend(lease, effect="answer", attempt=1), Granted)
    world.bring(operation_id, ReplyAcknowledged(1), lease=lease)
    lease = reply_lease(world, operation_id)
    assert isinstance(world.intend(lease, effect="answer", attempt=2), Granted)
    world.bring(operation_id, ReplyUnclear(2, "E_INPUT_UNCLEAR", "cut"), lease=lease)
    assert rows(world, "state, sends") == [("sent", 1), ("unclear", 1), ("open", 0)]
    world.bring(operation_id, Progressed(20, "working"))
    hows = [how for *_, how in rows(world)]
    assert hows == ["answered", "perhaps answered", "superseded"]
    assert rows(world, "closed_at IS NOT NULL") == [(True,)] * 3
    world.ended(operation_id)
    receipt = world.client.receipt("run/1")
    assert receipt is not None
    assert receipt.unanswered_rounds == 1


def test_an_end_closes_the_rounds_that_are_open(world: World) -> None:
    operation_id = asked(world)
    world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
    assert world.intend(world.claim(Lane.CANCEL)[operation_id], effect="cancel", generation=1).send_token
    world.bring(operation_id, Ended(20, "cancelled", "cancelled"))
    assert (world.state(operation_id), rows(world)) == ("CANCELLED_ACCEPTED", [(1, "a", "closed", "over")])


def test_a_round_that_opens_and_closes_in_one_transition_leaves_its_trace(world: World) -> None:
    operation_id = world.working()
    world.bring(operation_id, asks("a", seq=10), Progressed(11, "working"))
    assert rows(world) == [(1, "a", "closed", "superseded")]


def test_the_table_refuses_a_key_twice_within_a_leg_and_half_a_reply(world: World) -> None:
    asked(world)
    columns = "operation_id, number, leg, key, method, params, schema_digest, reply_to, opened_at"
    again = f"SELECT {columns.replace('number', '2')} FROM counterfoil.input_round"
    with pytest.raises(psycopg.errors.UniqueViolation, match="input_round_key"):
        world.sql(f"INSERT INTO counterfoil.input_round ({columns}) {again}")
    with pytest.raises(psycopg.errors.CheckViolation, match="input_round_reply_whole"):
        world.sql("UPDATE counterfoil.input_round SET reply = 'x'")
    with pytest.raises(psycopg.errors.CheckViolation, match="input_round_closed_whole"):
        world.sql("UPDATE counterfoil.input_round SET state = 'closed'")


# -- replies on their way ----------------------------------------------------------------------------------------------


def test_a_claimer_is_handed_what_people_said_and_only_that(world: World) -> None:
    operation_id = asked(world, "a", "b")
    world.bring(operation_id, reply(2), lane=Lane.DOOR)
    ((_, row),) = world.store.claim(Lane.ANSWER, "reports", limit=1, ahead_s=0.0, lease_s=20.0)
    assert [(one.number, one.key, one.content) for one in row.replies] == [(2, "b", BODY)]


def test_a_next_leg_is_handed_all_replies_of_the_leg_before(world: World) -> None:
    operation_id, lease, _ = world.sent()
    world.bring(operation_id, asks_first("a", "b"), lease=lease)
    assert world.one(operation_id, "state, leg, request_state") == ("INPUT_REQUIRED", 1, "s")
    for number in (2, 1):
        world.bring(operation_id, reply(number), lane=Lane.DOOR)
    assert world.one(operation_id, "state, leg, attempt, sent_attempt") == ("SUBMITTING", 2, 1, 1)
    assert rows(world) == [(1, "a", "closed", "answered"), (2, "b", "closed", "answered")]
    ((_, row),) = world.store.claim(Lane.SUBMIT, "reports", limit=1, ahead_s=0.0, lease_s=20.0)
    assert [(one.key, one.content) for one in row.replies] == [("a", BODY), ("b", BODY)]


def intend_reply(world: World, operation_id: UUID, number: int) -> Granted | Denied:
    return world.intend(reply_lease(world, operation_id), effect="answer", attempt=number)


def test_a_reply_is_intended_only_for_a_round_that_was_replied_to_and_waits(world: World) -> None:
    operation_id = asked(world, "a", "b")
    world.bring(operation_id, reply(1), lane=Lane.DOOR)
    lease = reply_lease(world, operation_id)
    denied = world.intend(lease, effect="answer", attempt=2)
    assert isinstance(denied, Denied)
    assert denied.code == "E_STATE_MOVED"
    assert isinstance(world.intend(lease, effect="answer", attempt=1), Granted)
    denied = world.intend(lease, effect="answer", attempt=1)
    assert isinstance(denied, Denied)
    assert denied.code == "E_INTENT_OPEN"


@pytest.mark.parametrize("happens", [Progressed(20, "working"), CancelAsked("stop"), asks("b", seq=20)], ids=repr)
def test_a_round_that_closes_between_claim_and_intent_takes_no_reply(world: World, happens: Any) -> None:
    operation_id = asked(world)
    world.bring(operation_id, reply(), lane=Lane.DOOR)
    lease = reply_lease(world, operation_id)
    world.bring(operation_id, happens, lane=Lane.DOOR)
    denied = world.intend(lease, effect="answer", attempt=1)
    assert isinstance(denied, Denied)
    assert denied.code in ("E_STATE_MOVED", "E_LEASE_LOST")
    assert world.sql("SELECT count(*) FROM counterfoil.intent WHERE effect = 'answer'") == [(0,)]


# -- results that can't be accepted by themselves ----------------------------------------------------------------------


def unacceptable(world: World) -> UUID:
    operation_id = world.working()
    world.bring(operation_id, Ended(10, "completed", "completed"))
    world.bring(operation_id, ResultFetched(BROKEN), lane=Lane.FETCH)
    return operation_id


def test_a_result_that_breaks_its_schema_is_kept_for_the_person_who_may_accept_it(world: World) -> None:
    operation_id = unacceptable(world)
    assert world.sql("SELECT kind, body, consumed_at IS NOT NULL FROM counterfoil.evidence") == [
        ("result", BROKEN_BODY, True)
    ]
    assert world.cases(operation_id) == [("UNKNOWN", "E_RESULT_SCHEMA", True)]
    with world.database.autocommit() as connection:
        assert people.kept_result(connection, operation_id) == (BROKEN_BODY, BROKEN.pointer)
    applied = world.bring(operation_id, said("accept", result=BROKEN), lane=Lane.DOOR)
    assert applied.verdict == "accepted"
    receipt = world.client.receipt("run/1")
    assert receipt is not None
    assert (receipt.outcome, receipt.error_code, receipt.result) == ("succeeded", "E_RESULT_SCHEMA", 7)
    assert receipt.problems() == []


def test_a_result_that_is_contested_is_kept_and_ends_nothing(world: World) -> None:
    """The fetch was out when two terminal words met."""
    operation_id = world.working()
    world.bring(operation_id, Ended(10, "completed", "completed"), Ended(11, "failed", "failed"))
    applied = world.bring(operation_id, ResultFetched(RESULT), lane=Lane.FETCH)
    assert (applied.verdict, world.cases(operation_id)) == (None, [("UNKNOWN", "E_STATUS_REGRESSED", True)])
    with world.database.autocommit() as connection:
        assert people.kept_result(connection, operation_id) == (RESULT.body, RESULT.pointer)


# -- verdicts ----------------------------------------------------------------------------------------------------------


def unknown(world: World, node: str = "run/1") -> UUID:
    operation_id, lease, _ = world.sent(node)
    world.bring(operation_id, SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut"), lease=lease)
    return operation_id


def closed(world: World) -> list[tuple[Any, ...]]:
    return world.sql(
        "SELECT closed_by, verdict, reason, second_actor, version FROM counterfoil.reconciliation_case"
        " WHERE closed_at IS NOT NULL"
    )


def seen(world: World, node: str = "run/1") -> int:
    return world.client.journal(node)[-1].seq


def speak(world: World, operation_id: UUID, verdict: Any) -> Applied:
    return world.bring(operation_id, verdict, lane=Lane.DOOR)


def test_a_verdict_closes_its_case_with_person_reason_and_second(world: World) -> None:
    operation_id = unknown(world)
    speak(world, operation_id, said("give_up", second_actor="bob", seen_seq=seen(world)))
    assert closed(world) == [("ann", "give_up", "looked at the server", "bob", 2)]
    assert world.one(operation_id, "state, outcome, error_code") == ("ACCEPTED", "abandoned", "E_ABANDONED")


def test_a_verdict_with_a_remembered_cancel_keeps_its_name_on_the_case(world: World) -> None:
    operation_id = unknown(world)
    world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
    speak(world, operation_id, said("bind", task_id="t-9"))
    assert closed(world) == [("ann", "bind", "looked at the server", None, 2)]
    assert world.one(operation_id, "state, task_id, cancel_due") == ("CANCEL_REQUESTED", "t-9", True)


def test_a_verdict_counts_for_what_its_person_saw_or_not_at_all(world: World) -> None:
    operation_id = unknown(world)
    version = seen(world)
    world.bring(operation_id, SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "something more"))
    refused = speak(world, operation_id, said("give_up", seen_seq=version)).answers[-1]
    assert refused.code == "E_CASE_CHANGED"  # type: ignore[union-attr]  # a refusal, or this fails
    assert (closed(world), world.state(operation_id)) == ([], "SUBMISSION_UNKNOWN")


def test_evidence_that_waits_is_read_before_a_verdict_and_outdates_it(world: World) -> None:
    """The answer came while the person was thinking: giving up would hide a task that runs."""
    operation_id = unknown(world)
    version = seen(world)
    world.keep(operation_id, TaskBound(1, "t-1", "working"))
    refused = speak(world, operation_id, said("give_up", seen_seq=version)).answers[-1]
    assert refused.code == "E_CASE_CHANGED"  # type: ignore[union-attr]  # a refusal, or this fails
    assert world.one(operation_id, "state, task_id") == ("WORKING", "t-1")
    assert closed(world) == [("evidence", None, None, None, 2)]


def test_a_person_may_not_bind_a_task_that_another_open_operation_holds(world: World) -> None:
    world.working("run/1", "t-1")
    lost = unknown(world, "run/2")
    refused = speak(world, lost, said("bind", task_id="t-1")).answers[-1]
    assert refused.code == "E_TASK_ID_REUSED"  # type: ignore[union-attr]  # a refusal, or this fails
    assert (world.state(lost), closed(world)) == ("SUBMISSION_UNKNOWN", [])


def test_having_looked_after_the_effects_is_a_verdict_after_the_end_too(world: World) -> None:
    operation_id = world.opened()
    world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
    world.bring(operation_id, TaskBound(1, "t-1", "working"))
    assert world.cases(operation_id) == [("EFFECT_RECONCILIATION_REQUIRED", "E_LATE_COMPLETION_AFTER_CANCEL", True)]
    before = world.client.receipt("run/1")
    speak(world, operation_id, said("accept", seen_seq=seen(world)))
    assert closed(world) == [("ann", "accept", "looked at the server", None, 2)]
    assert (world.client.receipt("run/1"), world.state(operation_id)) == (before, "CANCELLED_ACCEPTED")


def test_a_verdict_for_nobody_is_none(world: World) -> None:
    assert world.bring(uuid.uuid4(), said("give_up"), lane=Lane.DOOR).row is None
