"""An intent is judged under the locks of epoch, operation and lease; what is not granted sends nothing (SPEC section
1.3)."""

import uuid
from collections.abc import Callable
from dataclasses import replace

import pytest

from counterfoil.ledger import epochs
from counterfoil.ledger.errors import StaleEpoch
from counterfoil.ledger.events import (
    CancelAsked,
    CancelNotSent,
    IntentOverdue,
    LookupAbsent,
    LookupUnsure,
    Progressed,
    Quarantined,
    ReplyGiven,
    Resubmit,
    SubmitNotProcessed,
    SubmitNotSent,
    SubmitRejected,
    SubmitUnclear,
    TaskBound,
)
from counterfoil.ledger.intents import Denied, Granted
from counterfoil.ledger.states import Lane
from counterfoil.ledger.store import Lease
from counterfoil.tests.ledger.machine import asks, asks_first
from counterfoil.tests.ledger.world import POLICY, World

UNIQUE = POLICY.model_copy(update={"lookup": "by_key", "absence": "unique", "settle_s": 5.0})


def code(answer: Granted | Denied) -> str:
    return "granted" if isinstance(answer, Granted) else answer.code


def test_a_granted_intent_pins_what_it_rests_on_and_starts_the_budget(world: World) -> None:
    world.freeze()
    operation_id, _, granted = world.sent()
    assert granted.send_by_s == POLICY.send_by_s
    pinned = world.one(operation_id, "attempt, sent_attempt, protocol, tool_version, descriptor_digest, policy_digest")
    assert pinned == (1, 1, "mcp-2026-07-28", "1", b"d" * 32, POLICY.digest())
    budget_s = world.one(operation_id, "extract(epoch FROM budget_ends_at - first_intent_at)::float8")
    assert budget_s == pytest.approx(POLICY.wait_budget_s)
    assert world.intents.was_committed(granted.send_token)
    assert not world.intents.was_committed(uuid.uuid4())


def test_a_policy_that_was_edited_later_reaches_no_operation_that_is_pinned(world: World) -> None:
    """Review B6: a lookup declared after the submit would call absent what never carried a key."""
    operation_id, lease, granted = world.sent()
    world.bring(operation_id, SubmitNotSent(1, "refused", send_token=granted.send_token), lease=lease)
    world.policy = UNIQUE
    world.sql("UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now()")
    ((lease, row),) = world.store.claim(Lane.SUBMIT, "reports", limit=1, ahead_s=0.0, lease_s=20.0)
    assert (row.id, row.pinned, row.operation.policy) == (operation_id, True, POLICY)
    assert code(world.intend(lease)) == "E_POLICY_PINNED"


def _over(world: World, lease: Lease) -> None:
    world.pass_time(20.1)


def _create_off(world: World, lease: Lease) -> None:
    world.sql("UPDATE counterfoil.control SET create_on = false")


def _quarantined(world: World, lease: Lease) -> None:
    world.bring(lease.operation_id, Quarantined("submit"))


def _cancelled(world: World, lease: Lease) -> None:
    world.bring(lease.operation_id, CancelAsked("stop"))


def _bumped(world: World, lease: Lease) -> None:
    world.sql("UPDATE counterfoil.wake SET lease_epoch = 0")


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        (_over, "E_LEASE_LOST"),
        (_bumped, "E_LEASE_LOST"),
        (_create_off, "E_CREATE_OFF"),
        (_quarantined, "E_LEASE_LOST"),
        (_cancelled, "E_STATE_MOVED"),
    ],
)
def test_what_happens_between_claim_and_intent_denies_it(
    world: World, happens: Callable[[World, Lease], None], expected: str
) -> None:
    world.freeze()
    lease = world.claimed()
    happens(world, lease)
    assert code(world.intend(lease)) == expected
    assert world.sql("SELECT * FROM counterfoil.intent") == []


def test_an_intent_rests_on_its_own_lease_alone(world: World) -> None:
    lease = world.claimed()
    foreign = (
        replace(lease, token=uuid.uuid4()),
        replace(lease, lane=Lane.POLL),
        replace(lease, operation_id=uuid.uuid4()),
    )
    assert [code(world.intend(other)) for other in foreign] == ["E_LEASE_LOST", "E_LEASE_LOST", "E_NOT_FOUND"]


def test_only_one_intent_of_an_effect_is_open_at_a_time_also_within_one_batch(world: World) -> None:
    lease = world.claimed()
    assert sorted(map(code, world.intend_all([lease, lease]))) == ["E_INTENT_OPEN", "granted"]
    assert code(world.intend(lease)) == "E_INTENT_OPEN"


def test_hooks_that_wait_together_share_a_commit_and_each_gets_its_own_answer(world: World) -> None:
    for number in range(3):
        world.opened(f"run/{number}")
    leases = list(world.claim().values())
    leases[1] = replace(leases[1], token=uuid.uuid4())
    assert [code(answer) for answer in world.intend_all(leases)] == ["granted", "E_LEASE_LOST", "granted"]
    assert world.sql("SELECT count(DISTINCT xmin::text) FROM counterfoil.intent") == [(1,)]


def test_a_cancel_between_claim_and_intent_denies_the_intent(world: World) -> None:
    """A call that is not out ends at the door; what its door may not end, since a server's word waits that it can't
    read, is stopped by the generation."""
    world.policy = UNIQUE
    operation_id = second_attempt(world)
    lease = world.claim()[operation_id]
    world.keep(operation_id, SubmitRejected(2, "E_REJECTED", "bad"), attempt=2)
    world.client.cancel("run/1")
    assert world.one(operation_id, "state, cancel_generation") == ("SUBMITTING", 1)
    assert code(world.intend(lease, attempt=2)) == "E_GENERATION_MOVED"


def test_a_second_attempt_that_is_cancelled_before_its_intent_never_leaves(world: World) -> None:
    world.policy = UNIQUE
    operation_id = second_attempt(world)
    lease = world.claim()[operation_id]
    world.client.cancel("run/1")
    assert world.state(operation_id) == "CANCELLED_ACCEPTED"
    assert code(world.intend(lease, attempt=2)) == "E_STATE_MOVED"


def second_attempt(world: World) -> uuid.UUID:
    world.freeze()
    operation_id, lease, _ = world.sent()
    world.bring(operation_id, SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut"), lease=lease)
    world.pass_time(16)
    world.bring(operation_id, LookupAbsent(authoritative=True), lane=Lane.LOOKUP)
    world.bring(operation_id, Resubmit(), lane=Lane.SUBMIT)
    return operation_id


def test_create_off_stops_the_second_attempt_as_well(world: World) -> None:
    """NOT_FOUND_SAFE -> REFUSED on create off (SPEC section 2): a resubmit is a new send."""
    world.policy = UNIQUE
    operation_id = second_attempt(world)
    lease = world.claim()[operation_id]
    world.sql("UPDATE counterfoil.control SET create_on = false")
    assert code(world.intend(lease, attempt=2)) == "E_CREATE_OFF"
    world.sql("UPDATE counterfoil.control SET create_on = true")
    assert code(world.intend(lease, attempt=1)) == "E_STATE_MOVED"
    assert code(world.intend(lease, attempt=2)) == "granted"
    assert world.one(operation_id, "attempt, sent_attempt") == (2, 2)


def _shut(world: World, mode: str = "drain") -> None:
    world.sql(
        "INSERT INTO counterfoil.adapter_mode (fleet, protocol, mode, reason)"
        " VALUES ('main', 'mcp-2026-07-28', %(mode)s, 'it is dead')",
        {"mode": mode},
    )


@pytest.mark.parametrize("mode", ["drain", "off"])
def test_a_draining_protocol_takes_no_new_submit_and_no_second_one(world: World, mode: str) -> None:
    world.policy = UNIQUE
    operation_id = second_attempt(world)
    lease = world.claim()[operation_id]
    first = world.claimed("run/2")
    _shut(world, mode)
    answers = [world.intend(lease, attempt=2), world.intend(first)]
    assert [code(answer) for answer in answers] == ["E_ADAPTER_DRAINING"] * 2


def test_what_is_in_flight_goes_on_while_its_protocol_drains(world: World) -> None:
    """Query, cancel, answer, replay, and the next leg of a call that was asked something before its task."""
    cancels, waits = world.working("run/2", "t-2"), world.working("run/3", "t-3")
    world.bring(cancels, CancelAsked("stop"), lane=Lane.DOOR)
    world.bring(waits, asks("a", seq=10), ReplyGiven(1, b"{}", "ann"), lane=Lane.DOOR)
    leg, lease, _ = world.sent("run/1")
    world.bring(leg, asks_first("a"), lease=lease)
    world.bring(leg, ReplyGiven(1, b"{}", "ann"), lane=Lane.DOOR)
    _shut(world)
    world.sql("UPDATE counterfoil.control SET create_on = false")
    assert code(world.intend(world.claim()[leg])) == "granted"
    assert code(world.intend(world.claim(Lane.CANCEL)[cancels], effect="cancel", generation=1)) == "granted"
    assert code(world.intend(world.claim(Lane.ANSWER)[waits], effect="answer")) == "granted"


def test_a_second_submit_under_a_key_that_the_server_may_have_forgotten_is_denied_at_the_intent(world: World) -> None:
    """Review M17: the row was claimed in time; its bucket was closed for a while, and the key ran out."""
    world.policy = UNIQUE.model_copy(update={"key_lifetime_s": 120.0})
    operation_id = second_attempt(world)
    lease = world.claim(lease_s=600)[operation_id]
    world.pass_time(120 - 16 - 15)
    assert code(world.intend(lease, attempt=2)) == "E_KEY_EXPIRED"
    assert world.sql("SELECT count(*) FROM counterfoil.intent WHERE closed_at IS NULL") == [(0,)]


def test_where_a_lookup_closed_the_key_its_lifetime_denies_no_second_submit(world: World) -> None:
    world.policy = UNIQUE.model_copy(update={"absence": "closes", "key_lifetime_s": 120.0})
    operation_id = second_attempt(world)
    lease = world.claim(lease_s=600)[operation_id]
    world.pass_time(200)
    assert code(world.intend(lease, attempt=2)) == "granted"


@pytest.mark.parametrize(("waited_s", "expected"), [(104.0, "granted"), (105.1, "E_KEY_EXPIRED")])
def test_a_replay_leaves_only_while_the_key_is_remembered_for_its_whole_send(
    world: World, waited_s: float, expected: str
) -> None:
    """120 s of lifetime, 10 s of `send_by`, 5 s of margin: judged by the ledger's clock in the intent's own commit."""
    world.policy = POLICY.model_copy(update={"lookup": "replay", "key_lifetime_s": 120.0})
    world.freeze()
    operation_id, lease, _ = world.sent()
    world.bring(operation_id, SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut"), lease=lease)
    world.pass_time(20)
    lease = world.claim(Lane.LOOKUP, lease_s=600)[operation_id]
    world.pass_time(waited_s - 20)
    assert code(world.intend(lease, effect="replay")) == expected


def test_a_replay_begins_the_settle_window_anew(world: World) -> None:
    world.policy = POLICY.model_copy(update={"lookup": "replay"})
    world.freeze()
    operation_id, lease, _ = world.sent()
    world.bring(operation_id, SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut"), lease=lease)
    world.pass_time(100)
    lease = world.claim(Lane.LOOKUP)[operation_id]
    assert code(world.intend(lease, effect="replay")) == "granted"
    world.bring(operation_id, LookupUnsure("E_SUBMISSION_UNKNOWN", "cut"), lease=lease)
    ((_, row),) = world.store.claim(Lane.LOOKUP, "reports", limit=1, ahead_s=60.0, lease_s=5.0)
    assert row.operation.settle_left_s == pytest.approx(POLICY.send_by_s + POLICY.settle_s)


def test_only_its_holder_may_withdraw_an_intent(world: World) -> None:
    """W1 connects slowly and loses its lease; W2 sends; W1 reports "not sent". Taking W2's intent back would send
    twice."""
    world.freeze()
    operation_id = world.opened()
    slow = world.claim(lease_s=5)[operation_id]
    world.pass_time(6)
    quick = world.claim()[operation_id]
    granted = world.intend(quick)
    assert isinstance(granted, Granted)
    world.bring(operation_id, SubmitNotSent(1, "connect failed"), lease=slow)
    assert world.sql("SELECT how FROM counterfoil.intent") == [(None,)]
    assert world.one(operation_id, "sent_attempt") == 1
    world.bring(operation_id, SubmitNotSent(1, "late", send_token=granted.send_token), lease=quick)
    assert world.sql("SELECT how FROM counterfoil.intent") == [("withdrawn",)]
    assert world.one(operation_id, "state, sent_attempt, attempt") == ("SUBMITTING", 0, 1)


def test_a_withdrawal_that_is_brought_twice_takes_back_one_send(world: World) -> None:
    """The commit's answer was lost, so the holder brings it again; meanwhile somebody else sends."""
    world.freeze()
    operation_id, lease, granted = world.sent()
    withdrawal = SubmitNotSent(1, "refused", send_token=granted.send_token)
    world.bring(operation_id, withdrawal, lease=lease)
    world.pass_time(2)
    assert code(world.intend(world.claim()[operation_id])) == "granted"
    world.bring(operation_id, withdrawal, lease=lease)
    assert world.one(operation_id, "sent_attempt") == 1
    assert world.sql("SELECT count(*) FROM counterfoil.intent WHERE closed_at IS NULL") == [(1,)]


def test_a_cancel_that_was_not_sent_is_taken_back_by_its_holder_alone(world: World) -> None:
    operation_id = world.working()
    world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
    lease = world.claim(Lane.CANCEL)[operation_id]
    granted = world.intend(lease, effect="cancel", generation=1)
    assert isinstance(granted, Granted)
    world.bring(operation_id, CancelNotSent(1, "connect failed"), lane=Lane.CANCEL)
    assert world.one(operation_id, "cancel_sends, cancel_due") == (1, False)
    world.bring(operation_id, CancelNotSent(1, "late", send_token=granted.send_token), lease=lease)
    assert world.one(operation_id, "cancel_sends, cancel_due") == (0, True)


def test_a_cancel_whose_bearer_died_after_its_intent_is_found_in_its_lane(world: World) -> None:
    """A poll's transition between intent and answer must not drop the cancel row: nobody would send it again."""
    world.freeze()
    operation_id = world.working()
    world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
    lease = world.claim(Lane.CANCEL, lease_s=5)[operation_id]
    assert code(world.intend(lease, effect="cancel", generation=1)) == "granted"
    world.bring(operation_id, Progressed(10**6, "working", None, None, 2000))
    world.pass_time(5.1)
    found, row = world.store.claim(Lane.CANCEL, "reports", limit=1, ahead_s=0.0, lease_s=5.0)[0]
    intent = row.operation.intent("cancel")
    assert found.operation_id == operation_id
    assert intent is not None
    assert intent.send_left_s == pytest.approx(4.9)


def test_a_withdrawn_or_unprocessed_send_does_not_use_up_the_attempt(world: World) -> None:
    world.freeze()
    operation_id, lease, _ = world.sent()
    world.bring(operation_id, SubmitNotProcessed(1, "E_BUSY", retry_after_s=30.0), lease=lease)
    assert world.one(operation_id, "state, attempt, sent_attempt") == ("SUBMITTING", 1, 0)
    assert world.wakes(operation_id)["submit"]["due_in_s"] == pytest.approx(30.0)
    world.pass_time(30)
    assert code(world.intend(world.claim()[operation_id])) == "granted"


def test_an_open_intent_without_its_bearer_is_unknown_only_after_send_by(world: World) -> None:
    world.freeze()
    operation_id, _, _ = world.sent()
    world.bring(operation_id, IntentOverdue(), lane=Lane.SUBMIT)
    assert world.state(operation_id) == "SUBMITTING"
    world.pass_time(POLICY.send_by_s)
    world.bring(operation_id, IntentOverdue(), lane=Lane.SUBMIT)
    assert world.state(operation_id) == "SUBMISSION_UNKNOWN"
    assert world.sql("SELECT how FROM counterfoil.intent") == [("lost",)]
    assert world.cases(operation_id) == [("UNKNOWN", "E_SUBMISSION_UNKNOWN", True)]


def test_an_intent_of_an_older_epoch_is_refused_whole_and_counted(world: World) -> None:
    operation_id = world.opened()
    lease = world.claim()[operation_id]
    world.bring(operation_id, lane=Lane.SUBMIT)
    epochs.bump(world.database, "main", "test")
    with pytest.raises(StaleEpoch, match="worker epoch 1, ledger epoch 2"):
        world.intend(lease)
    assert world.sql("SELECT * FROM counterfoil.intent") == []
    assert world.sql("SELECT what, epoch, operation_id FROM counterfoil.refused_write") == [("intent", 1, operation_id)]


def test_an_intent_adopts_the_row_for_its_epoch(world: World) -> None:
    operation_id = world.opened()
    epochs.bump(world.database, "main", "test")
    young = World(world.url)
    assert code(young.intend(young.claim()[operation_id])) == "granted"
    assert young.one(operation_id, "execution_epoch") == 2
    young.bring(operation_id, TaskBound(1, "t-1", "working"))
    assert young.state(operation_id) == "WORKING"
    young.close()
