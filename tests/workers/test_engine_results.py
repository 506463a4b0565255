"""The result of an end that a poll just saw, where the protocol keeps it apart: one exchange, one transition for both
(SPEC section 6)."""

from uuid import UUID

import pytest

from counterfoil.adapters.contract import Answered, NoAnswer, Sent
from counterfoil.ledger.states import Lane
from counterfoil.workers import actions as act

from .kit_world import IN_SESSIONS, World


def ended(**policy: float) -> tuple[World, UUID]:
    """A task that a session's server has done, in the hands of a loop whose next poll sees it."""
    world = World(protocol=IN_SESSIONS)
    (id_,) = world.submits(1, **policy)
    world.kick(Lane.SUBMIT)
    world.advance(0.5)
    assert world.state(id_) == "WORKING"
    world.server.status[world.task(id_)] = "completed"
    world.forget()
    return world, id_


def test_a_result_is_fetched_as_soon_as_its_end_is_seen_and_written_with_it() -> None:
    world, id_ = ended()
    world.advance(1.5)
    assert (world.server.asked, world.brought()) == (["tasks/get", "tasks/result"], ["Ended", "ResultFetched"])
    assert (world.state(id_), len(world.of(act.Apply))) == ("ACCEPTED", 1)


LOST = {
    "not answered": NoAnswer(Sent.MAYBE, "the deadline passed"),
    "busy": Answered(502, {}, b""),
    "asked to wait": Answered(429, {"retry-after": "1"}, b""),
}


@pytest.mark.parametrize("how", LOST)
def test_an_end_whose_result_was_not_to_be_had_is_written_and_the_fetch_lane_asks_again(how: str) -> None:
    world, id_ = ended()
    world.holds = lambda action: isinstance(action, act.Send) and b"tasks/result" in action.request.body
    world.advance(1.1)
    (fetch,) = [send for send in world.of(act.Send) if b"tasks/result" in send.request.body]
    world.reply(fetch, LOST[how])
    world.advance(0.3)
    assert (world.state(id_), world.brought()) == ("TERMINAL_OBSERVED", ["Ended"])
    assert (id_, Lane.FETCH) in world.ledger.wakes
    world.holds = lambda _: False
    world.release(act.Send)
    world.kick(Lane.FETCH)
    world.advance(3.0)
    assert world.state(id_) == "ACCEPTED"


def test_a_session_that_is_gone_when_the_result_is_asked_for_loses_neither_the_end_nor_the_result() -> None:
    world, id_ = ended()
    world.in_sessions.rules["tasks/get"] = lambda _: world.in_sessions.gone.update(world.in_sessions.sessions)
    world.advance(1.5)
    assert world.brought()[0] == "Ended"
    world.advance(3.0)
    assert (world.state(id_), len(world.in_sessions.sessions)) == ("ACCEPTED", 2)


def test_an_end_is_written_although_the_fetch_of_its_result_was_drained_away() -> None:
    world, id_ = ended()
    world.holds = lambda action: isinstance(action, act.Take) and world.server.count("tasks/get") > 0
    world.advance(1.1)
    world.settle(act.Drain())
    world.advance(0.3)
    assert (world.brought(), world.state(id_)) == (["Ended"], "TERMINAL_OBSERVED")


def test_an_end_is_written_at_once_where_tokens_are_short_since_a_share_is_kept_for_the_fetch_lane() -> None:
    world, id_ = ended()
    world.bucket = lambda take: act.Tokens(take, 1, 5.0 if take.lane is Lane.POLL else 0.0)
    world.advance(1.5)
    assert (world.brought(), world.server.asked) == (["Ended", "ResultFetched"], ["tasks/get", "tasks/result"])
    assert (len(world.of(act.Apply)), world.state(id_)) == (2, "ACCEPTED")


def test_an_end_is_written_at_once_where_the_wait_budget_might_end_while_its_result_is_fetched() -> None:
    """Whoever ends the budget knows of no end that is not written: a person was asked about a task that had ended."""
    world, id_ = ended(budget_left_s=6.0, budget_running=True)
    world.advance(1.5)
    assert (len(world.of(act.Apply)), world.state(id_)) == (2, "ACCEPTED")


def test_a_row_that_became_somebody_elses_while_its_result_was_fetched_is_his_to_end() -> None:
    world, id_ = ended()
    world.holds = lambda action: isinstance(action, act.Send) and b"tasks/result" in action.request.body
    world.advance(1.1)
    world.ledger.wakes[id_, Lane.POLL].token = world.ledger.new_id()
    world.ledger.wakes[id_, Lane.POLL].until_s = world.now_s + 1e6
    world.advance(2.5)
    world.holds = lambda _: False
    world.release(act.Send)
    world.advance(1.0)
    assert (world.brought(), world.state(id_)) == ([], "WORKING")
