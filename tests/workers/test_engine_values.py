"""The loop is total over what can come in and go out, and its small parts keep their own promises."""

from typing import get_args
from uuid import UUID

import pytest

from counterfoil.ledger.states import Lane
from counterfoil.ledger.work import Item
from counterfoil.workers import actions as act
from counterfoil.workers.claims import Claims
from counterfoil.workers.drive import Drive
from counterfoil.workers.jobs import Pace
from counterfoil.workers.outcomes import BATCH, RETRY_S, Outcomes
from counterfoil.workers.performer import Performer
from counterfoil.workers.tokens import HOLD_S, Tokens

from .kit_world import World


def test_every_arrival_has_one_taker() -> None:
    engine = World().engine
    assert engine._from_outside.keys() | engine._of_a_write.keys() == set(get_args(act.Arrival))
    assert not engine._from_outside.keys() & engine._of_a_write.keys()


def test_every_write_and_wire_action_is_performed() -> None:
    urgent = {act.Intend, act.Keep}  # a line of their own
    writes = {kind for kind in Performer.__dict__["perform"].dispatcher.registry if kind is not object}
    assert writes | urgent == set(get_args(act.Write))
    assert {kind for kind in Drive.__dict__["_put"].dispatcher.registry if kind is not object} == set(
        get_args(act.Wire)
    )


def test_every_write_that_fails_is_taken_and_counted() -> None:
    world = World()
    world.submits(1)
    world.polls(1)
    seen = set()
    world.held = set(get_args(act.Write))
    for turn in range(30):
        if turn < 10:
            world.kick(Lane.SUBMIT)
            world.kick(Lane.POLL)
        world.advance(0.6)
        for action, _ in world.waiting:
            seen.add(type(action))
            world.inbox.append(act.WriteFailed(action, "OperationalError"))  # type: ignore[arg-type]
        world.waiting.clear()
    assert {act.Claim, act.Plan, act.Sweep} <= seen
    world.held.clear()
    world.settle(act.Drain())
    assert world.engine.idle


def test_time_that_goes_back_is_taken_for_standing_still() -> None:
    world = World()
    world.advance(5.0)
    world.now_s -= 3.0
    assert world.step().wait_s <= world.pace.tick_s


def none() -> dict[tuple[str, Lane], int]:
    return {}


def five() -> dict[tuple[str, Lane], int]:
    return {("a", Lane.POLL): 5}


def test_tokens_for_what_comes_soon_are_taken_along_and_used_without_asking() -> None:
    tokens = Tokens()
    tokens.wait("a", Lane.POLL, 1)
    assert tokens.wanted(0.0, five) == [("a", Lane.POLL, 6)]
    assert tokens.grant("a", Lane.POLL, 6, 0.0, 0.0) == [1]
    for send_id in range(2, 8):
        tokens.wait("a", Lane.POLL, send_id)
    assert tokens.in_hand(0.1) == [2, 3, 4, 5, 6]
    assert tokens.wanted(0.1, none) == [("a", Lane.POLL, 1)]


def test_a_token_in_hand_is_void_after_its_time_or_when_the_target_asks_for_quiet() -> None:
    def with_five() -> Tokens:
        tokens = Tokens()
        tokens.wait("a", Lane.POLL, 1)
        tokens.wanted(0.0, five)
        tokens.grant("a", Lane.POLL, 6, 0.0, 0.0)
        return tokens

    late, quiet, stopped = with_five(), with_five(), with_five()
    quiet.drop("a")
    stopped.clear()
    for tokens, now_s in ((late, HOLD_S + 0.001), (quiet, 0.1), (stopped, 0.1)):
        tokens.wait("a", Lane.POLL, 2)
        assert tokens.in_hand(now_s) == []


def test_a_bucket_that_refused_is_asked_for_no_more_than_is_needed() -> None:
    """It keeps a place for all that it was asked for."""
    tokens = Tokens()
    tokens.wait("a", Lane.POLL, 1)
    tokens.wanted(0.0, five)
    tokens.grant("a", Lane.POLL, 0, 0.5, 0.0)
    assert tokens.wanted(0.5, five) == [("a", Lane.POLL, 1)]
    tokens.grant("a", Lane.POLL, 1, 0.0, 0.5)
    tokens.wait("a", Lane.POLL, 2)
    assert tokens.wanted(0.6, five) == [("a", Lane.POLL, 6)]


def test_tokens_are_asked_once_at_a_time_and_granted_in_order() -> None:
    tokens = Tokens()
    for send_id in (1, 2, 3):
        tokens.wait("a", Lane.POLL, send_id)
    assert tokens.wanted(0.0, none) == [("a", Lane.POLL, 3)]
    assert tokens.wanted(0.0, none) == []
    assert tokens.grant("a", Lane.POLL, 2, 0.5, 0.0) == [1, 2]
    assert (tokens.wanted(0.4, none), tokens.next_s(0.4), tokens.closed_s("a", Lane.POLL, 0.4)) == (
        [],
        0.5,
        pytest.approx(0.1),
    )
    assert tokens.wanted(0.5, none) == [("a", Lane.POLL, 1)]


def test_more_tokens_than_asked_for_are_no_trouble() -> None:
    tokens = Tokens()
    tokens.wait("a", Lane.POLL, 1)
    tokens.wanted(0.0, none)
    tokens.forget("a", Lane.POLL, 1)
    assert tokens.grant("a", Lane.POLL, 1, 0.0, 0.0) == []


def item(number: int) -> Item:
    return Item(UUID(int=number), Lane.POLL)


def test_outcomes_wait_for_the_flush_but_not_for_urgent_ones() -> None:
    outcomes = Outcomes(Pace(flush_s=0.2))
    outcomes.add([item(1)], 10.0)
    assert (outcomes.batch(10.1), outcomes.next_s()) == (None, 10.2)
    outcomes.add([item(2)], 10.1, urgent=True)
    assert outcomes.batch(10.1) == act.Apply((item(1), item(2)))


def test_while_much_happens_urgent_outcomes_share_the_next_flush() -> None:
    outcomes = Outcomes(Pace(flush_s=0.2))
    outcomes.add([item(1)], 10.0, urgent=True)
    assert outcomes.batch(10.0) == act.Apply((item(1),))
    outcomes.written()
    outcomes.add([item(2)], 10.05, urgent=True)
    outcomes.add([item(3)], 10.1, urgent=True)
    assert (outcomes.batch(10.1), outcomes.next_s()) == (None, 10.2)
    assert outcomes.batch(10.2) == act.Apply((item(2), item(3)))


def test_a_later_outcome_does_not_put_the_flush_off() -> None:
    outcomes = Outcomes(Pace(flush_s=0.2))
    for tenth in range(5):
        outcomes.add([item(tenth)], 10.0 + tenth / 10)
    assert outcomes.next_s() == 10.2


def test_one_batch_is_written_at_a_time_and_a_large_one_is_cut() -> None:
    outcomes = Outcomes(Pace())
    outcomes.add([item(number) for number in range(BATCH + 5)], 0.0, urgent=True)
    first = outcomes.batch(0.0)
    assert first is not None
    assert len(first.items) == BATCH
    assert outcomes.batch(1.0) is None
    outcomes.written()
    rest = outcomes.batch(1.0)
    assert rest is not None
    assert len(rest.items) == 5


def test_a_batch_that_failed_goes_first_again_after_a_pause() -> None:
    outcomes = Outcomes(Pace())
    outcomes.add([item(1)], 0.0, urgent=True)
    batch = outcomes.batch(0.0)
    assert batch is not None
    outcomes.add([item(2)], 0.1, urgent=True)
    outcomes.failed(batch, 0.2)
    assert outcomes.batch(0.2 + RETRY_S / 2) is None
    assert outcomes.batch(0.2 + RETRY_S) == act.Apply((item(1), item(2)))


def test_a_claim_takes_a_batch_or_what_there_is_room_for() -> None:
    claims = Claims(Pace(claim_batch=8))
    first = claims.ask((Lane.POLL, "a"), 100)
    assert first is not None
    assert first.limit == 8
    second = claims.ask((Lane.POLL, "b"), 1)
    assert second is not None
    assert second.limit == 1
    assert claims.ask((Lane.POLL, "c"), 0) is None
    assert (claims.coming({Lane.POLL}), claims.coming({Lane.POLL}, "b"), claims.coming({Lane.FETCH})) == (9, 1, 0)
    claims.back(first, 3)
    assert claims.wanted() == [(Lane.POLL, "c")]
    claims.back(second, 1)
    assert set(claims.wanted()) == {(Lane.POLL, "b"), (Lane.POLL, "c")}
