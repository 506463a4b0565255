"""The desk on a real ledger: what people may say, once, on what they saw, and all of it or nothing (SPEC sections 4,
7)."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest

from counterfoil.ledger import epochs, events
from counterfoil.ledger.digest import canonical_json, sha256
from counterfoil.ledger.errors import CounterfoilError
from counterfoil.ledger.events import Result
from counterfoil.ledger.rounds import Question
from counterfoil.ledger.states import Lane
from counterfoil.ledger.store import Answer
from counterfoil.tests.ledger.world import POLICY, World
from counterfoil.workers.desk import MAX_REPLY_BYTES, Desk

from .kit_server import question
from .kit_world import targets

MadeDesk = tuple[World, Desk]
Make = Callable[..., MadeDesk]
A4 = {"paper": "A4"}
WHY = {"actor": "ann", "reason": "searched the server's log"}


@pytest.fixture
def make(database: str) -> Iterator[Make]:
    """A ledger and a desk on it, under a policy."""
    made: list[MadeDesk] = []

    def build(**policy: Any) -> MadeDesk:
        world = World(database, policy=POLICY.model_copy(update=policy))
        made.append((world, Desk(database, targets("reports"))))
        return made[-1]

    yield build
    for world, desk in made:
        desk.close()
        world.close()


def asks(world: World, node: str = "run/1", *, keys: tuple[str, ...] = ("paper",), schema: bool = True) -> UUID:
    """A task that waits for a person."""
    id_ = world.working(node, f"task of {node}")
    params = question() if schema else {"mode": "url", "message": "Look there"}
    digest = sha256(canonical_json(params["requestedSchema"] if schema else {}))
    questions = tuple(Question(key, "elicitation/create", canonical_json(params), digest) for key in keys)
    world.bring(id_, events.InputRequested(10**9, "input_required", questions))
    assert world.state(id_) == "INPUT_REQUIRED"
    return id_


def lost(world: World, node: str = "run/1") -> tuple[UUID, UUID]:
    """A submit whose answer is lost: a person is asked. Returns the operation, and the send token of its submit."""
    id_, lease, granted = world.sent(node)
    world.bring(id_, events.SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "the connection was lost"), lease=lease)
    assert world.cases(id_) == [("UNKNOWN", "E_SUBMISSION_UNKNOWN", True)]
    return id_, granted.send_token


def refusal(speak: Callable[[], object]) -> str:
    with pytest.raises(CounterfoilError) as raised:
        speak()
    assert raised.value.next_step
    return raised.value.code


def stands(world: World, id_: UUID) -> tuple[Any, ...]:
    """Everything about an operation that a person's word could change."""
    rounds = world.sql(
        "SELECT number, state, reply, replied_by FROM counterfoil.input_round WHERE operation_id = %(id)s"
        " ORDER BY number",
        {"id": id_},
    )
    return (world.state(id_), rounds, world.cases(id_), world.sql("SELECT count(*) FROM counterfoil.terminal_receipt"))


@contextmanager
def failing(world: World, table: str) -> Iterator[None]:
    """Nothing can be written into a table meanwhile."""
    world.sql(
        "CREATE FUNCTION counterfoil.break_it() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END $$"
    )
    world.sql(
        f"CREATE TRIGGER break_it BEFORE INSERT OR UPDATE ON counterfoil.{table}"
        " FOR EACH ROW EXECUTE FUNCTION counterfoil.break_it()"
    )
    yield
    world.sql(f"DROP TRIGGER break_it ON counterfoil.{table}")
    world.sql("DROP FUNCTION counterfoil.break_it()")


# -- answers ---------------------------------------------------------------------------------------------------------


def test_an_answer_that_fits_is_stored_with_its_round_once_and_is_due_at_once(make: Make) -> None:
    world, desk = make()
    id_ = asks(world)
    (view,) = desk.inputs()
    assert (view.operation_id, view.number, view.message, view.state) == (id_, 1, "Which paper?", "open")
    assert desk.answer(id_, 1, "accept", A4, actor="ann").state == "replied"
    (round_,) = world.sql("SELECT reply, replied_by FROM counterfoil.input_round")
    assert (json.loads(bytes(round_[0])), round_[1]) == ({"action": "accept", "content": A4}, "ann")
    assert world.wakes(id_)["answer"]["due_in_s"] <= 0
    assert desk.inputs() == []
    ((lease, row),) = world.store.claim(Lane.ANSWER, "reports", limit=5, ahead_s=0.0, lease_s=10.0)
    assert (lease.operation_id, [one.key for one in row.replies]) == (id_, ["paper"])


def test_a_second_answer_to_the_same_round_is_refused_and_the_first_stands(make: Make) -> None:
    world, desk = make()
    id_ = asks(world)
    desk.answer(id_, 1, "decline", actor="ann")
    before = stands(world, id_)
    assert refusal(lambda: desk.answer(id_, 1, "accept", A4, actor="ben")) == "E_INPUT_ROUND_CLOSED"
    assert stands(world, id_) == before


def test_an_answer_that_breaks_the_questions_schema_changes_nothing(make: Make) -> None:
    world, desk = make()
    id_ = asks(world)
    before, journal = stands(world, id_), world.one(id_, "journal_seq")
    for content in ({"paper": 4}, {}, None):
        assert refusal(lambda said=content: desk.answer(id_, 1, "accept", said, actor="ann")) == "E_INPUT_SCHEMA"
    long = {"paper": "x" * MAX_REPLY_BYTES}
    assert refusal(lambda: desk.answer(id_, 1, "accept", long, actor="ann")) == "E_INPUT_TOO_LARGE"
    assert (stands(world, id_), world.one(id_, "journal_seq")) == (before, journal)


def test_to_decline_or_to_cancel_needs_no_content_and_carries_none(make: Make) -> None:
    world, desk = make()
    id_ = asks(world, keys=("one", "two"))
    desk.answer(id_, 1, "decline", A4, actor="ann")
    desk.answer(id_, 2, "cancel", actor="ann")
    replies = world.sql("SELECT reply FROM counterfoil.input_round ORDER BY number")
    assert [json.loads(bytes(reply)) for (reply,) in replies] == [{"action": "decline"}, {"action": "cancel"}]


def test_a_question_without_a_schema_takes_any_content(make: Make) -> None:
    world, desk = make()
    id_ = asks(world, schema=False)
    assert desk.answer(id_, 1, "accept", {"any": ["thing"]}, actor="ann").state == "replied"


def test_a_round_that_the_task_was_seen_past_takes_no_answer_any_more(make: Make) -> None:
    world, desk = make()
    id_ = asks(world)
    world.bring(id_, events.Progressed(10**9 + 1, "working"))
    before = stands(world, id_)
    assert refusal(lambda: desk.answer(id_, 1, "accept", A4, actor="ann")) == "E_INPUT_ROUND_CLOSED"
    assert stands(world, id_) == before
    assert refusal(lambda: desk.answer(id_, 7, "accept", A4, actor="ann")) == "E_NO_SUCH_ROUND"
    assert refusal(lambda: desk.answer(UUID(int=7), 1, "accept", A4, actor="ann")) == "E_NO_SUCH_ROUND"


def test_an_answer_after_the_deadline_is_late_whether_or_not_the_timer_came_by(make: Make) -> None:
    world, desk = make(input_deadline_s=60.0)
    world.freeze()
    id_ = asks(world)
    world.pass_time(60.1)
    assert refusal(lambda: desk.answer(id_, 1, "accept", A4, actor="ann")) == "E_INPUT_ROUND_CLOSED"
    assert world.sql("SELECT state FROM counterfoil.input_round") == [("open",)]


def test_whoever_asked_for_the_call_may_not_answer_where_the_policy_wants_four_eyes(make: Make) -> None:
    world, desk = make(four_eyes=True)
    id_ = asks(world)
    before, principal = stands(world, id_), world.one(id_, "principal")
    assert refusal(lambda: desk.answer(id_, 1, "accept", A4, actor=principal)) == "E_FOUR_EYES"
    assert stands(world, id_) == before
    assert desk.answer(id_, 1, "accept", A4, actor="ann").state == "replied"


def test_without_four_eyes_the_requester_may_answer(make: Make) -> None:
    world, desk = make()
    id_ = asks(world)
    assert desk.answer(id_, 1, "accept", A4, actor=world.one(id_, "principal")).state == "replied"


def test_an_answer_that_can_not_be_written_is_refused_and_leaves_nothing_behind(make: Make) -> None:
    world, desk = make()
    id_ = asks(world)
    before = (stands(world, id_), world.wakes(id_))
    with failing(world, "journal"):  # the last write of the transaction
        assert refusal(lambda: desk.answer(id_, 1, "accept", A4, actor="ann")) == "E_NOT_WRITTEN"
    after = (stands(world, id_), world.wakes(id_))
    assert (after[0], after[1].keys()) == (before[0], before[1].keys())
    assert desk.answer(id_, 1, "accept", A4, actor="ann").state == "replied"


def test_the_last_answer_before_a_task_exists_sends_the_next_leg(make: Make) -> None:
    world, desk = make()
    id_, lease, _ = world.sent()
    digest = sha256(canonical_json(question()["requestedSchema"]))
    asked = tuple(Question(key, "elicitation/create", canonical_json(question()), digest) for key in ("one", "two"))
    world.bring(id_, events.InputAsked(1, asked, "state-1"), lease=lease)
    desk.answer(id_, 1, "accept", A4, actor="ann")
    assert world.state(id_) == "INPUT_REQUIRED"
    desk.answer(id_, 2, "decline", actor="ann")
    assert world.state(id_) == "SUBMITTING"
    ((_, row),) = world.store.claim(Lane.SUBMIT, "reports", limit=5, ahead_s=0.0, lease_s=10.0)
    assert [(one.key, json.loads(one.content)["action"]) for one in row.replies] == [
        ("one", "accept"),
        ("two", "decline"),
    ]
    assert (row.operation.leg, row.operation.request_state, row.arguments) == (2, "state-1", b'{"month":"2026-10"}')


# -- verdicts --------------------------------------------------------------------------------------------------------


def case_of(desk: Desk) -> Any:
    (view,) = desk.cases()
    return view


def settle(desk: Desk, verdict: Any, **said: Any) -> Any:
    view = case_of(desk)
    return desk.settle(view.case.id, verdict, **({"version": view.version} | WHY | said))


def test_never_created_ends_as_failed_and_nothing_is_sent_again(make: Make) -> None:
    world, desk = make()
    id_, _ = lost(world)
    settled = settle(desk, "never_created")
    assert (settled.state, settled.outcome, settled.error_code) == ("ACCEPTED", "failed", "E_NOT_SENT_BY_VERDICT")
    assert (desk.cases(), "submit" in world.wakes(id_)) == ([], False)
    receipt = world.client.receipt("run/1")
    assert receipt is not None
    assert receipt.effects_possible


def test_give_up_ends_as_abandoned(make: Make) -> None:
    world, desk = make()
    lost(world)
    settled = settle(desk, "give_up", second="ben")
    assert (settled.state, settled.outcome, settled.error_code) == ("ACCEPTED", "abandoned", "E_ABANDONED")
    row = world.sql("SELECT verdict, closed_by, reason, second_actor FROM counterfoil.reconciliation_case")
    assert row == [("give_up", "ann", "searched the server's log", "ben")]


def test_bind_reads_the_named_task_on(make: Make) -> None:
    world, desk = make()
    id_, _ = lost(world)
    assert refusal(lambda: settle(desk, "bind")) == "E_VERDICT_INCOMPLETE"
    settled = settle(desk, "bind", task_id="t-found")
    assert (settled.state, settled.task_id) == ("WORKING", "t-found")
    assert "poll" in world.wakes(id_)


def test_a_task_that_another_open_operation_holds_is_not_bound(make: Make) -> None:
    world, desk = make()
    world.working("run/other", "t-held")
    id_, _ = lost(world)
    before = stands(world, id_)
    assert refusal(lambda: settle(desk, "bind", task_id="t-held")) == "E_TASK_ID_REUSED"
    assert stands(world, id_) == before


def test_accept_takes_a_result_that_breaks_its_schema_as_it_is_under_the_cases_code(make: Make) -> None:
    world, desk = make()
    id_ = world.working()
    body = b'{"result":{"structuredContent":{"rows":"three"}}}'
    broken = Result(sha256(body), "/result/structuredContent", body, "E_RESULT_SCHEMA")
    world.ended(id_, broken)
    assert case_of(desk).offered == ("bind", "accept", "give_up")
    settled = settle(desk, "accept")
    assert (settled.state, settled.outcome, settled.error_code) == ("ACCEPTED", "succeeded", "E_RESULT_SCHEMA")
    receipt = world.client.receipt("run/1")
    assert receipt is not None
    assert receipt.result == {"rows": "three"}


def test_accept_on_effects_says_that_somebody_looked_after_them_and_the_receipt_stands(make: Make) -> None:
    world, desk = make(cancel_is_evidence=True, effect_case="always", effects=True)
    id_ = world.working()
    world.bring(id_, events.CancelAsked("asked"))
    (lease,) = world.claim(Lane.CANCEL).values()
    world.intend(lease, effect="cancel", generation=1)
    world.bring(id_, events.CancelAcknowledged(1, cancelled=True), lease=lease)
    assert world.state(id_) == "CANCELLED_ACCEPTED"
    digest = world.sql("SELECT digest FROM counterfoil.terminal_receipt")
    assert case_of(desk).offered == ("accept",)
    settled = settle(desk, "accept")
    assert (settled.state, settled.outcome, desk.cases()) == ("CANCELLED_ACCEPTED", "cancelled", [])
    assert world.sql("SELECT digest FROM counterfoil.terminal_receipt") == digest


def test_a_verdict_that_the_case_does_not_offer_changes_nothing(make: Make) -> None:
    world, desk = make()
    id_, _ = lost(world)
    before = stands(world, id_)
    assert case_of(desk).offered == ("bind", "never_created", "give_up")
    assert refusal(lambda: settle(desk, "accept")) == "E_VERDICT_NOT_OFFERED"
    assert stands(world, id_) == before


def test_a_verdict_needs_a_reason_and_a_second_person_that_is_another_one(make: Make) -> None:
    world, desk = make()
    id_, _ = lost(world)
    before = stands(world, id_)
    assert refusal(lambda: settle(desk, "give_up", reason=" \n")) == "E_REASON"
    assert refusal(lambda: settle(desk, "give_up", second="ann")) == "E_FOUR_EYES"
    assert refusal(lambda: settle(desk, "give_up", actor="")) == "E_ACTOR_INVALID"
    assert refusal(lambda: desk.case(UUID(int=7))) == "E_NO_SUCH_CASE"
    assert stands(world, id_) == before


def test_a_verdict_on_a_case_that_is_settled_is_refused(make: Make) -> None:
    world, desk = make()
    lost(world)
    view = case_of(desk)
    settle(desk, "give_up")
    again = refusal(lambda: desk.settle(view.case.id, "never_created", version=view.version, **WHY))
    assert again == "E_CASE_CLOSED"


def test_evidence_that_waits_is_read_first_and_the_verdict_on_what_was_seen_before_is_refused(make: Make) -> None:
    """The late answer of the submit lies there unread while a person decides that it never was."""
    world, desk = make()
    id_, token = lost(world)
    task = {"resultType": "task", "taskId": "t-late", "status": "working"}
    body = json.dumps({"jsonrpc": "2.0", "id": str(token), "result": task}).encode()
    headers = '{"content-type": "application/json"}'
    view = case_of(desk)
    world.store.append_evidence([Answer(id_, "submit", 1, 0, token, 200, headers, body)])
    assert refusal(lambda: settle(desk, "never_created", version=view.version)) == "E_CASE_CHANGED"
    assert (world.state(id_), world.one(id_, "task_id")) == ("WORKING", "t-late")
    assert desk.cases() == []


def test_something_that_was_written_since_the_case_was_seen_refuses_the_verdict(make: Make) -> None:
    world, desk = make()
    id_, _ = lost(world)
    view = case_of(desk)
    world.bring(id_, events.SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "once more"))
    before = stands(world, id_)
    assert refusal(lambda: settle(desk, "give_up", version=view.version)) == "E_CASE_CHANGED"
    assert stands(world, id_) == before
    assert settle(desk, "give_up").outcome == "abandoned"  # on what it shows now


def test_a_verdict_that_can_not_be_written_is_refused_and_leaves_nothing_behind(make: Make) -> None:
    world, desk = make()
    id_, _ = lost(world)
    before = stands(world, id_)
    with failing(world, "reconciliation_case"):
        assert refusal(lambda: settle(desk, "give_up")) == "E_NOT_WRITTEN"
    assert stands(world, id_) == before
    assert settle(desk, "give_up").outcome == "abandoned"


def test_a_verdict_whose_acceptance_fails_is_decided_and_anybody_may_finish_it(make: Make) -> None:
    world, desk = make()
    id_, _ = lost(world)
    with world.acceptance_failing():
        settle(desk, "give_up")
        assert (world.state(id_), world.one(id_, "settle_as")) == ("SUBMISSION_UNKNOWN", "ACCEPTED")
        assert "fetch" in world.wakes(id_)
    world.bring(id_, lane=Lane.FETCH)
    receipt = world.client.receipt("run/1")
    assert receipt is not None
    assert receipt.outcome == "abandoned"


def test_a_bulk_verdict_settles_one_by_one_and_tells_what_it_could_not(make: Make) -> None:
    world, desk = make()
    nodes = [f"run/{number}" for number in range(4)]
    held = [lost(world, node) for node in nodes]
    changed, token = held[0]
    task = {"resultType": "task", "taskId": "t-late", "status": "working"}
    body = json.dumps({"jsonrpc": "2.0", "id": str(token), "result": task}).encode()
    world.store.append_evidence([Answer(changed, "submit", 1, 0, token, 200, "{}", body)])
    bulk = desk.settle_all("reports", "E_SUBMISSION_UNKNOWN", "never_created", **WHY)
    assert (bulk.settled, [code for _, code in bulk.refused]) == (3, ["E_CASE_CHANGED"])
    assert [world.state(id_) for id_, _ in held] == ["WORKING", "ACCEPTED", "ACCEPTED", "ACCEPTED"]
    assert desk.settle_all("reports", "E_AUTH_EXPIRED", "give_up", **WHY).settled == 0
    lost(world, "run/9")
    for said, code in (
        ({"actor": "ann", "reason": ""}, "E_REASON"),
        ({"actor": "", "reason": "x"}, "E_ACTOR_INVALID"),
        ({"actor": "ann", "reason": "x", "second": "ann"}, "E_FOUR_EYES"),
    ):
        assert refusal(lambda s=said: desk.settle_all("reports", "E_SUBMISSION_UNKNOWN", "give_up", **s)) == code


def test_a_desk_speaks_in_the_ledgers_current_epoch(make: Make) -> None:
    world, desk = make()
    id_ = asks(world)
    lost(world, "run/2")
    epochs.bump(world.database, "main", "drill")
    assert desk.answer(id_, 1, "accept", A4, actor="ann").state == "replied"
    assert settle(desk, "give_up").outcome == "abandoned"
    assert world.one(id_, "execution_epoch") == 2
