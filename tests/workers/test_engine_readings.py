"""Polls: when they are due, what they write, and what becomes of rows that others kick, take or close."""

import json
from itertools import pairwise
from typing import Any

import pytest

from counterfoil.adapters.contract import Answered, NoAnswer, Sent
from counterfoil.ledger import events
from counterfoil.ledger.states import Lane, Outcome, State
from counterfoil.ledger.work import Item
from counterfoil.workers import actions as act
from counterfoil.workers.holdings import JITTER

from .kit_server import answered
from .kit_world import World


def polled_at(world: World, seconds: float) -> list[float]:
    """The moments, from now, at which polls leave while time passes in small steps."""
    began_s, moments = world.now_s, list[float]()
    seen = world.server.count("tasks/get")
    world.settle()
    while world.now_s < began_s + seconds:
        moments += [world.now_s - began_s] * (world.server.count("tasks/get") - seen)
        seen = world.server.count("tasks/get")
        world.advance(min(max(world.wait_s, 0.001), began_s + seconds - world.now_s))
    return moments


def kinds(writes: list[act.Write]) -> set[str]:
    return {type(write).__name__ for write in writes}


def test_an_unchanged_poll_writes_nothing_and_the_row_stays_resident() -> None:
    world = World()
    world.polls(1)
    world.kick(Lane.POLL)
    world.forget()
    world.advance(3.0)
    assert world.server.count("tasks/get") == 3
    assert kinds(world.writes) <= {"Take", "Reread", "Sweep"}  # no transaction; a look at the row once a tick


def test_the_next_poll_is_due_at_the_scheduled_moment_plus_the_interval_however_slow_the_answers_are() -> None:
    world = World()
    world.polls(1)
    world.kick(Lane.POLL)
    world.advance(0.05)
    first_s = world.now_s
    world.held = {act.Send}
    moments = []
    for _ in range(4):
        while not world.waiting:
            world.advance(0.01)
        moments.append(world.now_s - first_s)
        world.advance(0.3)  # the server takes its time
        world.release(act.Send)
        world.held = {act.Send}
    assert moments == pytest.approx([0.95, 1.95, 2.95, 3.95], abs=0.06)


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999])
def test_jitter_only_makes_polls_later(jitter: float) -> None:
    world = World(jitter=jitter)
    world.polls(1)
    world.kick(Lane.POLL)
    moments = polled_at(world, 5.0)
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert len(gaps) >= 3
    assert all(1.0 <= gap <= 1.0 + JITTER * jitter + 0.051 for gap in gaps)


def test_a_poll_that_is_due_beyond_one_lease_is_given_back_at_its_moment() -> None:
    world = World()
    world.server.interval_ms = 20_000
    (id_,) = world.polls(1)
    row = world.ledger.rows[id_]
    world.ledger.apply([Item(id_, Lane.POLL, (events.Progressed(0, "working", None, 3_600_000, 20_000),))], world.now_s)
    assert row.operation.task_id is not None
    world.kick(Lane.POLL)
    world.advance(0.1)
    world.forget()
    world.now_s += 21.0
    world.kick(Lane.POLL)
    world.advance(0.3)
    assert world.server.count("tasks/get") == 1
    (release,) = world.of(act.Release)
    ((_, delay_s),) = release.rows
    assert 18.8 < delay_s + world.pace.flush_s <= 20.0
    assert world.ledger.wakes[id_, Lane.POLL].token is None


def test_rows_that_were_overdue_for_long_are_not_polled_twice_in_a_row() -> None:
    """Smallest input: one row, overdue by a minute, poll interval 1 s. It was polled twice within a slot."""
    world = World()
    world.polls(1, due_in_s=-60.0)
    world.kick(Lane.POLL)
    assert world.server.count("tasks/get") == 1
    assert polled_at(world, 2.5) == pytest.approx([1.0, 2.0], abs=0.06)


def test_a_poll_that_waited_for_its_token_does_not_come_together_with_the_next_one() -> None:
    """Smallest input: interval 1 s, the token comes 3 s late: the next poll left at once."""
    world = World()
    world.polls(1)
    world.bucket = lambda take: act.Tokens(take, 0, 3.0)
    world.kick(Lane.POLL)
    world.bucket = lambda take: act.Tokens(take, take.count, 0.0)
    assert polled_at(world, 4.5) == pytest.approx([3.0, 4.0], abs=0.06)


def test_leases_are_renewed_when_half_of_them_is_gone() -> None:
    world = World()
    (id_,) = world.polls(1)
    world.kick(Lane.POLL)
    renewals = []
    for _ in range(20):
        world.forget()
        world.advance(1.0)
        renewals += world.of(act.Renew)
        assert world.ledger.wakes[id_, Lane.POLL].until_s > world.now_s
    assert 3 <= len(renewals) <= 6  # every 4 to 5 s of an 8 s lease


def test_a_row_that_is_not_ours_any_more_is_let_go_and_nothing_more_is_sent_for_it() -> None:
    """Smallest input: a poll that is out at every tick (interval = tick). Such a row was never looked at again."""
    world = World()
    (id_,) = world.polls(1)
    world.kick(Lane.POLL)
    world.advance(0.5)
    world.ledger.wakes[id_, Lane.POLL].token = world.ledger.new_id()
    world.ledger.wakes[id_, Lane.POLL].until_s = world.now_s + 1e6
    world.advance(1.2)
    world.forget()
    world.advance(20.0)
    assert world.server.count("tasks/get") == 0


def test_a_row_that_was_locked_when_its_lease_was_to_be_renewed_is_not_taken_for_lost() -> None:
    """Smallest input: a renewal that finds its row locked by a transition. It waits for nobody, so the row is missing
    from its answer. It was let go, and nobody polled it until its lease had run out."""
    world = World()
    (id_,) = world.polls(1)
    world.kick(Lane.POLL)
    world.held = {act.Renew}
    while not world.waiting:
        world.advance(0.5)
    ((renew, asked_s),) = world.waiting
    assert isinstance(renew, act.Renew)
    world.waiting.clear()
    world.held.clear()
    world.forget()
    world.settle(act.RenewedBatch(asked_s, renew.held, {}))
    assert world.of(act.Reread) == [act.Reread(((id_, Lane.POLL, renew.held[0][2]),))]
    world.advance(3.0)
    assert (world.server.count("tasks/get"), world.of(act.Claim)) == (3, [])


def test_nothing_is_sent_once_a_lease_is_over() -> None:
    world = World()
    world.polls(1)
    world.kick(Lane.POLL)
    world.advance(0.5)
    world.held = {act.Renew, act.Claim, act.Reread}
    world.forget()
    world.advance(30.0)
    assert 7 <= world.server.count("tasks/get") <= 9  # one 8 s lease, counted from before the claim was issued


def test_a_loop_that_was_stopped_past_its_leases_asks_for_nothing_with_them() -> None:
    world = World()
    world.polls(3, due_in_s=0.9)
    world.kick(Lane.POLL)
    world.now_s += 20.0
    world.held = {act.Claim, act.Plan}
    world.forget()
    world.settle()
    assert (world.of(act.Take), world.of(act.Apply)) == ([], [])
    assert len(world.engine._jobs) == 0


def test_a_reading_whose_lease_ends_while_it_waits_for_its_token_does_not_leave() -> None:
    world = World()
    world.polls(1)
    world.held = {act.Take, act.Renew}
    world.kick(Lane.POLL)
    world.now_s += 8.1
    world.held.add(act.Claim)
    world.release(act.Take)
    assert world.server.count("tasks/get") == 0


def test_an_answer_counts_under_the_sequence_that_its_question_left_with() -> None:
    """Smallest input: poll out, renewal (a new sequence), answer. It was taken for as young as the renewal."""
    world = World()
    (id_,) = world.polls(1)
    world.held = {act.Send}
    world.kick(Lane.POLL)
    first = world.ledger.wakes[id_, Lane.POLL].seq
    world.advance(6.0)
    assert world.ledger.wakes[id_, Lane.POLL].seq > first
    world.server.status[world.task(id_)] = "completed"
    world.release(act.Send)
    world.advance(0.5)
    (event,) = [event for apply in world.of(act.Apply) for item in apply.items for event in item.events]
    assert isinstance(event, events.Ended)
    assert event.seq == first


def failing(world: World) -> list[float]:
    world.server.rules["tasks/get"] = lambda _: Answered(502, {}, b"")
    return polled_at(world, 40.0)


def test_transient_errors_write_nothing_and_back_off_exponentially_over_leases_that_are_given_back() -> None:
    """1, 2, 4, 8, 16 s. The count was lost with the row that 8 s and more give back."""
    world = World()
    world.polls(1)
    world.kick(Lane.POLL)
    world.advance(0.01)
    moments = failing(world)
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert gaps == pytest.approx([1.0, 2.0, 4.0, 8.0, 16.0], abs=1.1)
    assert world.of(act.Apply) == []


def test_after_a_success_the_count_of_troubles_starts_again() -> None:
    world = World()
    world.polls(1)
    answers = iter([True, True, False, True])
    world.server.rules["tasks/get"] = lambda _: Answered(502, {}, b"") if next(answers, False) else None
    world.kick(Lane.POLL)
    moments = polled_at(world, 8.0)
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert [moments[0], *gaps[:3]] == pytest.approx([1.0, 2.0, 1.0, 1.0], abs=0.06)


def test_a_lost_poll_is_only_a_transient_error() -> None:
    world = World()
    (id_,) = world.polls(1)
    world.held = {act.Send}
    world.kick(Lane.POLL)
    (send,) = world.of(act.Send)
    world.held.clear()
    world.reply(send, NoAnswer(Sent.MAYBE, "the deadline passed"))
    world.advance(1.2)
    assert (world.of(act.Apply), world.state(id_), world.server.count("tasks/get")) == ([], "WORKING", 1)


def test_retry_after_closes_the_target_and_delays_the_row() -> None:
    world = World()
    (id_,) = world.polls(1)
    world.server.rules["tasks/get"] = lambda _: Answered(429, {"retry-after": "30"}, b"")
    world.kick(Lane.POLL)
    assert world.of(act.CloseTarget) == [act.CloseTarget("a", 30.0)]
    world.advance(world.pace.flush_s)
    (release,) = world.of(act.Release)
    ((_, delay_s),) = release.rows
    assert delay_s == pytest.approx(30.0 - world.pace.flush_s, abs=0.01)
    assert world.of(act.Apply) == []
    assert world.ledger.wakes[id_, Lane.POLL].token is None


def test_a_closed_target_does_not_keep_the_places_of_the_others() -> None:
    """Smallest input: in_flight rows of a target that is closed for ten minutes, and one row of another. They were
    held, and their leases renewed, until the target opened again."""
    world = World("a", "b")
    world.polls(1000, "a")
    world.polls(1, "b")
    world.bucket = lambda take: act.Tokens(take, 0, 600.0) if take.target == "a" else act.Tokens(take, take.count, 0.0)
    world.kick(Lane.POLL, "a")
    world.kick(Lane.POLL, "a")
    world.kick(Lane.POLL, "b")
    world.advance(1.0)
    assert (world.server.count("tasks/get"), world.of(act.Renew)) == (2, [])
    given_back = [delay_s for release in world.of(act.Release) for _, delay_s in release.rows]
    assert len(given_back) == 200  # two batches: the second was asked for before the bucket had answered
    assert min(given_back) > 590.0
    world.forget()
    world.kick(Lane.POLL, "a")
    assert world.of(act.Claim) == []  # its rows could only be given back


def test_a_terminal_answer_is_brought_and_the_row_is_settled() -> None:
    world = World()
    (id_,) = world.polls(1)
    world.server.status[world.task(id_)] = "completed"
    world.kick(Lane.POLL)
    world.advance(0.5)
    operation = world.ledger.rows[id_].operation
    assert (world.state(id_), operation.outcome, world.brought()) == ("ACCEPTED", "succeeded", ["Ended"])


def test_outcomes_that_come_within_the_flush_share_a_transaction() -> None:
    world = World()
    ids = world.polls(50)
    for id_ in ids:
        world.server.status[world.task(id_)] = "completed"
    world.kick(Lane.POLL)
    world.advance(0.5)
    assert [len(apply.items) for apply in world.of(act.Apply)] == [50]
    assert {world.state(id_) for id_ in ids} == {"ACCEPTED"}


def test_a_failed_apply_is_written_again_with_what_came_meanwhile() -> None:
    world = World()
    (first,) = world.polls(1)
    (second,) = world.polls(1, due_in_s=1.0)
    for id_ in (first, second):
        world.server.status[world.task(id_)] = "completed"
    world.failing = {act.Apply}
    world.kick(Lane.POLL)
    world.advance(1.5)
    assert {world.state(first), world.state(second)} == {"WORKING"}
    world.failing.clear()
    world.advance(1.0)
    assert {world.state(first), world.state(second)} == {"ACCEPTED"}
    assert len(world.of(act.Apply)[-1].items) == 2


def test_a_row_that_five_bearers_left_without_an_outcome_is_quarantined_unread() -> None:
    world = World()
    (id_,) = world.polls(1)
    world.ledger.wakes[id_, Lane.POLL].claims = 5
    world.kick(Lane.POLL)
    world.advance(0.5)
    assert (world.server.count("tasks/get"), world.brought()) == (0, ["Quarantined"])
    assert [case.code for case in world.ledger.rows[id_].operation.cases] == ["E_QUARANTINED"]


def test_a_decided_end_needs_no_wire() -> None:
    world = World()
    settled: dict[str, Any] = {"settle_as": State.ACCEPTED, "outcome": Outcome.SUCCEEDED, "task_id": "t"}
    id_ = world.ledger.add(world.now_s, world.policy(), lane=Lane.FETCH, state=State.FETCHING_RESULT, **settled).id
    world.kick(Lane.FETCH)
    world.advance(0.5)
    assert (world.state(id_), world.of(act.Send)) == ("ACCEPTED", [])


def test_an_answer_about_another_task_is_brought_as_refused_and_reading_goes_on() -> None:
    world = World()
    (id_,) = world.polls(1)

    def another(asked: dict[str, Any]) -> Answered:
        return answered(asked, result={"resultType": "complete", "taskId": "other", "status": "completed"})

    world.server.rules["tasks/get"] = another
    world.kick(Lane.POLL)
    world.advance(2.5)
    assert world.brought() == ["AnswerRefused"]  # once; the row says so already afterwards
    assert (world.state(id_), world.server.count("tasks/get")) == ("WORKING", 3)
    assert json.loads(world.of(act.Send)[0].request.body)["params"]["taskId"] == world.task(id_)
