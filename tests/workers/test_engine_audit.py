"""Looking after an end: what the server still says is brought, in doubling pauses, and never in a hurry (SPEC section
5)."""

from typing import Any
from uuid import UUID

import pytest

from counterfoil.adapters.contract import Answered, NoAnswer, Sent
from counterfoil.ledger.states import CaseKind, Lane, Outcome, State
from counterfoil.workers import actions as act
from counterfoil.workers.jobs import Pace

from .kit_ledger import Wake
from .kit_server import answered
from .kit_world import IN_SESSIONS, UNIQUE, World

HOUR_S = 3600.0
EFFECTS = CaseKind.EFFECT_RECONCILIATION_REQUIRED
BEAT = Pace(tick_s=5.0, self_tick_s=4.0)
"""Nobody kicks here, so the loop plans by itself; seldom, since an hour has to pass."""


def cancelled(world: World, audit_s: float = HOUR_S) -> UUID:
    """A task whose cancel was won just now."""
    (id_,) = world.polls(1, audit_s=audit_s)
    world.cancel(id_)
    world.kick(Lane.CANCEL)
    world.kick(Lane.POLL)
    world.advance(8.0)
    assert world.state(id_) == "CANCELLED_ACCEPTED"
    world.forget()
    return id_


def codes(world: World, id_: UUID) -> list[tuple[str, str]]:
    return [(case.kind, case.code) for case in world.ledger.rows[id_].operation.cases]


def test_a_completion_that_an_audit_sees_after_a_won_cancel_opens_the_effects_case_and_ends_the_audit() -> None:
    world = World(pace=BEAT)
    id_ = cancelled(world)
    world.server.status[world.task(id_)] = "completed"
    world.advance(60.0)
    assert codes(world, id_) == [(EFFECTS, "E_LATE_COMPLETION_AFTER_CANCEL")]
    operation = world.ledger.rows[id_].operation
    assert (operation.state, operation.outcome) == (State.CANCELLED_ACCEPTED, Outcome.CANCELLED)
    world.forget()
    world.advance(200.0)
    assert (world.server.asked, world.ledger.wakes) == ([], {})


TALK: dict[str, Any] = {
    "working": None,
    "HTTP 502": lambda _: Answered(502, {}, b""),
    "HTTP 401": lambda _: Answered(401, {}, b""),
    "an unknown word": lambda asked: answered(
        asked, result={"taskId": asked["params"]["taskId"], "status": "resting", "ttlMs": 1}
    ),
    "another task": lambda asked: answered(asked, result={"taskId": "other", "status": "completed", "ttlMs": 1}),
    "nothing readable": lambda _: Answered(200, {}, b"<html>"),
}


@pytest.mark.parametrize("talk", TALK)
def test_an_hour_of_audits_asks_a_dozen_times_whatever_the_server_says(talk: str) -> None:
    """Pauses of 30, 30, 60, 120, … s: seven looks in an hour, and one at its end."""
    world = World(pace=BEAT)
    id_ = cancelled(world)
    world.server.status[world.task(id_)] = "working"
    if TALK[talk] is not None:
        world.server.rules["tasks/get"] = TALK[talk]
    world.advance(HOUR_S + 60.0)
    assert 6 <= world.server.count("tasks/get") <= 12
    assert len(world.of(act.Apply)) <= 12
    assert (world.ledger.wakes, world.state(id_)) == ({}, "CANCELLED_ACCEPTED")


def test_an_audit_of_a_server_that_does_not_answer_asks_as_seldom() -> None:
    world = World(pace=BEAT)
    id_ = cancelled(world)
    world.holds = lambda action: isinstance(action, act.Send)
    asked = 0
    for _ in range(int(HOUR_S // 5)):
        world.advance(5.0)
        for send in [action for action, _ in world.waiting if isinstance(action, act.Send)]:
            asked += 1
            world.reply(send, NoAnswer(Sent.MAYBE, "the deadline passed"))
    assert 6 <= asked <= 12
    assert world.state(id_) == "CANCELLED_ACCEPTED"


def test_an_audit_whose_session_is_gone_and_can_not_be_begun_anew_is_in_no_hurry() -> None:
    """Smallest input: 404 to the audit's reading, 503 to `initialize`. Its row came again at the pace of a poll, with
    two requests a second for as long as the audit was to last."""
    world = World(pace=BEAT, protocol=IN_SESSIONS, audit_s=HOUR_S)
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.5)
    world.cancel(id_)
    world.kick(Lane.CANCEL)
    world.advance(6.0)
    assert world.state(id_) == "CANCELLED_ACCEPTED"
    world.forget()
    world.in_sessions.gone.add("session-1")
    world.server.rules["initialize"] = lambda _: Answered(502, {}, b"")
    world.advance(HOUR_S)
    assert 6 <= world.server.count("tasks/get") <= 12
    assert len(world.server.asked) <= 24


def test_an_audit_goes_on_in_a_new_session_where_the_old_one_is_gone() -> None:
    world = World(pace=BEAT, protocol=IN_SESSIONS, audit_s=HOUR_S)
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.5)
    world.cancel(id_)
    world.kick(Lane.CANCEL)
    world.advance(6.0)
    world.in_sessions.gone.add("session-1")
    world.server.status[world.task(id_)] = "completed"
    world.advance(200.0)
    assert (EFFECTS, "E_LATE_COMPLETION_AFTER_CANCEL") in codes(world, id_)


def unsure_end(world: World) -> UUID:
    """Refused after a first attempt of which nobody can prove that it did not run: looked up by key until the key's
    lifetime is over."""
    end: dict[str, Any] = {"state": State.REFUSED, "outcome": Outcome.REFUSED, "error_code": "E_NOT_RESUBMITTED"}
    row = world.ledger.lost(
        world.now_s, world.policy(), sent_s=world.now_s - 20.0, audit_s=HOUR_S, audit_left_s=HOUR_S, **end
    )
    world.ledger.wakes.clear()
    world.ledger.wakes[row.id, Lane.AUDIT] = Wake(world.now_s + 30.0, "a")
    return row.id


def test_an_end_without_a_task_is_looked_up_by_key_and_what_ran_after_all_asks_a_person() -> None:
    world = World(pace=BEAT, **UNIQUE)
    id_ = unsure_end(world)
    world.server.by_key[str(world.ledger.rows[id_].submission_key)] = "task-late"
    world.server.status["task-late"] = "working"
    world.advance(60.0)
    assert (world.server.asked, world.brought()) == (["lookup"], ["LookupFound"])
    assert codes(world, id_) == [(EFFECTS, "E_LATE_ANSWER")]
    assert (world.state(id_), world.ledger.wakes) == ("REFUSED", {})


def test_an_audit_by_key_that_is_not_answered_asks_in_doubling_pauses() -> None:
    world = World(pace=BEAT, **UNIQUE)
    unsure_end(world)
    world.server.rules["lookup"] = lambda _: Answered(502, {}, b"")
    world.advance(HOUR_S + 60.0)
    assert 6 <= world.server.count("lookup") <= 12


def test_an_audit_by_key_that_finds_nothing_goes_on_in_doubling_pauses_until_the_keys_lifetime_is_over() -> None:
    """A first request may still be on its way somewhere: that nothing is there yet proves nothing."""
    world = World(pace=BEAT, **UNIQUE)
    id_ = unsure_end(world)
    world.advance(HOUR_S / 2)
    assert world.server.count("lookup") >= 5
    world.server.by_key[str(world.ledger.rows[id_].submission_key)] = "task-late"
    world.server.status["task-late"] = "working"
    world.advance(HOUR_S)
    assert codes(world, id_) == [(EFFECTS, "E_LATE_ANSWER")]
    assert world.server.count("lookup") <= 12


def test_a_closed_target_is_left_alone_by_audits() -> None:
    world = World(pace=BEAT)
    cancelled(world)
    world.bucket = lambda take: act.Tokens(take, 0, 600.0)
    world.advance(300.0)
    assert world.server.asked == []
    assert len(world.of(act.Take)) <= 2
