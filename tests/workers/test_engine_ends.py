"""How a loop ends: asked to, or because its epoch is over. What servers still say is kept in either case."""

import pytest

from counterfoil.adapters.contract import Answered, NoAnswer, Sent
from counterfoil.ledger.states import Lane
from counterfoil.workers import actions as act

from .kit_world import IN_SESSIONS, World


def go_stale(world: World) -> None:
    """The next renewal finds that a bump has committed."""
    world.stale = True
    world.settle(act.WriteFailed(act.Renew(()), "StaleEpoch", stale=True))
    world.engine._writing += 1  # that failure answered no write of ours
    world.forget()


def test_after_the_epoch_nothing_is_claimed_sent_or_applied_and_the_loop_is_idle() -> None:
    world = World()
    world.polls(5)
    world.submits(5)
    world.kick(Lane.POLL)
    world.held = {act.Apply}
    world.kick(Lane.SUBMIT)
    go_stale(world)
    world.release(act.Apply)
    world.forget()
    for lane in (Lane.POLL, Lane.SUBMIT, Lane.TIMER):
        world.kick(lane)
    world.advance(20.0)
    assert {type(action).__name__ for action in (*world.writes, *world.wire)} <= {"Keep"}
    assert world.engine.stale
    assert world.engine.idle


def test_rows_of_a_claim_that_comes_back_after_the_epoch_are_neither_held_nor_written() -> None:
    world = World()
    world.polls(3, due_in_s=0.5)
    world.held = {act.Claim}
    world.kick(Lane.POLL)
    go_stale(world)
    world.release(act.Claim)
    world.advance(1.0)
    assert (world.writes, world.wire, world.engine.idle) == ([], [], True)


def test_an_apply_that_meets_the_new_epoch_ends_the_loop_at_once() -> None:
    world = World()
    (id_,) = world.polls(1)
    world.server.status[world.task(id_)] = "completed"
    world.failing, world.stale = {act.Apply}, True
    world.kick(Lane.POLL)
    world.advance(0.5)
    assert (world.engine.stale, world.engine.idle, world.state(id_)) == (True, True, "WORKING")


@pytest.mark.parametrize("held", [act.Send, act.Take, act.Intend])
def test_effects_that_wait_are_aborted_when_the_epoch_is_over(held: type) -> None:
    world = World()
    world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    world.submits(1)
    world.held = {held}
    world.kick(Lane.SUBMIT)
    world.advance(0.1)
    asked = world.server.count("tools/call")
    world.stale = True
    world.settle(act.WriteFailed(act.Renew(()), "StaleEpoch", stale=True))
    world.engine._writing += 1
    world.release(held)
    world.advance(1.0)
    assert len(world.of(act.Abort)) >= 1
    assert world.server.count("tools/call") == asked
    assert world.engine.idle


def test_an_intent_that_was_granted_just_before_the_epoch_ended_lets_nothing_go() -> None:
    """Smallest input: Intend out, StaleEpoch from a renewal, Granted. The Go came after the Abort."""
    world = World()
    world.submits(1)
    world.held = {act.Intend, act.Abort}
    world.kick(Lane.SUBMIT)
    go_stale(world)
    world.release(act.Intend)
    world.release(act.Abort)
    assert (world.of(act.Go), world.left, world.engine.idle) == ([], [], True)


def test_a_token_that_comes_after_the_epoch_asks_for_no_intent() -> None:
    """Smallest input: Take out for a connected submit, StaleEpoch, Tokens."""
    world = World()
    world.submits(1)
    world.kick(Lane.SUBMIT)
    world.submits(1)
    world.held = {act.Take}
    world.kick(Lane.SUBMIT)
    go_stale(world)
    world.release(act.Take)
    assert (world.of(act.Intend), world.engine.idle) == ([], True)


def test_a_contract_that_is_committed_after_the_epoch_connects_nobody() -> None:
    """Smallest input: KeepContract out, StaleEpoch, ContractKept. The rows that had waited for it were connected."""
    world = World()
    world.submits(3)
    world.held = {act.KeepContract}
    world.kick(Lane.SUBMIT)
    go_stale(world)
    world.release(act.KeepContract)
    world.advance(1.0)
    assert (world.of(act.Send), world.engine.idle) == ([], True)


def test_rows_that_a_transition_leaves_to_us_after_the_epoch_are_not_held() -> None:
    """Smallest input: Apply out, StaleEpoch from another write, AppliedBatch with a held poll 1 s from now. The process
    waited for its moment before it ended."""
    world = World()
    world.submits(1)
    world.held = {act.Apply}
    world.kick(Lane.SUBMIT)
    go_stale(world)
    world.release(act.Apply)
    assert world.engine.idle


@pytest.mark.parametrize("how", ["stale", "draining"])
def test_the_answer_to_an_effect_whose_bytes_left_is_kept_and_tried_for_ever(how: str) -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Go, act.Abort}  # its bytes have left, so the wire does not hear an Abort any more
    world.kick(Lane.SUBMIT)
    if how == "stale":
        go_stale(world)
    else:
        world.settle(act.Drain())
    assert not world.engine.idle
    (send,) = world.connecting.values()
    world.failing, world.stale = {act.Keep}, False
    world.reply(send, world.server.answer(send.request))
    world.advance(10.0)
    assert len(world.of(act.Keep)) > 10
    assert not world.engine.idle
    world.failing.clear()
    world.advance(1.0)
    assert world.engine.idle
    assert [answer.operation_id for _, answer in world.ledger.evidence] == ([id_] if how == "stale" else [])


def test_draining_releases_what_waits() -> None:
    world = World()
    ids = world.polls(10, due_in_s=0.9)
    world.kick(Lane.POLL)
    world.settle(act.Drain())
    assert world.engine.idle
    assert all(world.ledger.wakes[id_, Lane.POLL].token is None for id_ in ids)
    assert all(0.8 < world.ledger.wakes[id_, Lane.POLL].due_s - world.now_s <= 0.9 for id_ in ids)
    world.forget()
    world.kick(Lane.POLL)
    assert world.writes == []


def test_draining_ends_reads_in_flight_and_gives_their_rows_back() -> None:
    world = World()
    (id_,) = world.polls(1)
    world.held = {act.Send}
    world.kick(Lane.POLL)
    world.settle(act.Drain())
    assert not world.engine.idle
    world.release(act.Send)
    assert (world.engine.idle, world.ledger.wakes[id_, Lane.POLL].token) == (True, None)


def test_draining_waits_for_a_submit_that_is_out_and_brings_it_home() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    world.settle(act.Drain())
    world.advance(5.0)
    assert not world.engine.idle
    world.release(act.Go)
    world.advance(0.1)
    assert (world.state(id_), world.engine.idle) == ("WORKING", True)
    assert world.ledger.wakes[id_, Lane.POLL].token is None  # somebody else may poll it at once


def test_a_claim_that_comes_back_during_the_drain_is_given_back_unsent() -> None:
    """Smallest input: Claim out, Drain, Claimed with one due poll. It was polled."""
    world = World()
    (id_,) = world.polls(1)
    world.held = {act.Claim}
    world.kick(Lane.POLL)
    world.settle(act.Drain())
    world.release(act.Claim)
    assert (world.of(act.Send), world.engine.idle) == ([], True)
    assert world.ledger.wakes[id_, Lane.POLL].token is None


@pytest.mark.parametrize("lane", [Lane.POLL, Lane.SUBMIT])
def test_draining_does_not_wait_for_tokens_of_a_closed_target(lane: Lane) -> None:
    """Smallest input: a request that waits for its token, 5 s away; Drain. It waited, with a target closed for an hour
    until it was killed."""
    world = World()
    world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    (world.submits if lane is Lane.SUBMIT else world.polls)(1)
    world.bucket = lambda take: act.Tokens(take, 0, 0.9)
    world.kick(lane)
    world.advance(0.1)
    assert [take.lane for take in world.of(act.Take)][-1] is lane
    world.settle(act.Drain())
    assert world.engine.idle


def test_a_submit_that_is_being_connected_when_the_drain_begins_is_not_sent() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    (id_,) = world.submits(1)
    world.held = {act.Send}
    world.kick(Lane.SUBMIT)
    asked = world.server.count("tools/call")
    world.settle(act.Drain())
    world.release(act.Send)
    assert (world.server.count("tools/call"), world.engine.idle) == (asked, True)
    assert world.ledger.wakes[id_, Lane.SUBMIT].token is None


def test_a_negotiation_that_is_out_when_the_drain_begins_goes_no_further() -> None:
    world = World()
    world.submits(3)
    world.held = {act.Send}
    world.kick(Lane.SUBMIT)
    world.settle(act.Drain())
    world.release(act.Send)
    assert (world.server.asked, world.engine.idle) == (["server/discover"], True)


def test_a_drain_in_the_middle_of_a_stale_epoch_is_no_trouble() -> None:
    world = World()
    world.submits(1)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    go_stale(world)
    world.settle(act.Drain())
    world.advance(1.0)
    assert world.engine.idle


def test_silence_of_an_effect_after_the_epoch_writes_nothing() -> None:
    world = World()
    world.submits(1)
    world.held = {act.Go, act.Abort}
    world.kick(Lane.SUBMIT)
    (send,) = [send for send in world.of(act.Send) if send.request.effect is not None]
    go_stale(world)
    world.reply(send, NoAnswer(Sent.MAYBE, "lost"))
    assert (world.writes, world.engine.idle) == ([], True)


def test_a_late_answer_after_the_epoch_closes_nobody_out() -> None:
    world = World()
    world.submits(1)
    world.held = {act.Go, act.Abort}
    world.kick(Lane.SUBMIT)
    (send,) = [send for send in world.of(act.Send) if send.request.effect is not None]
    go_stale(world)
    world.reply(send, Answered(503, {"retry-after": "5"}, b"x"))
    world.advance(1.0)
    assert ([type(write) for write in world.writes], len(world.ledger.evidence)) == ([act.Keep], 1)
    assert world.engine.idle


def test_a_plain_reading_that_is_out_when_the_epoch_ends_is_not_waited_for() -> None:
    """Whatever it says is said again to whoever asks next."""
    world = World()
    world.polls(1)
    world.held = {act.Send}
    world.kick(Lane.POLL)
    go_stale(world)
    assert world.engine.idle


def test_a_negotiation_that_nobody_with_a_lease_waits_for_goes_no_further() -> None:
    """Smallest input: the loop is stopped for 10 s while its `server/discover` is out; the epoch is bumped meanwhile.
    `tools/list` left 10 s after the bump; one lease is 8 s."""
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Send, act.Renew, act.Claim, act.Plan, act.Sweep}
    world.kick(Lane.SUBMIT)
    world.release(act.Claim)
    world.held.add(act.Claim)
    (discover,) = [action for action, _ in world.waiting if isinstance(action, act.Send)]
    world.now_s += 10.0
    world.held.discard(act.Send)
    world.reply(discover, world.server.answer(discover.request))
    world.advance(1.0)
    assert world.server.asked == ["server/discover"]
    assert (world.brought(), world.state(id_)) == ([], "SUBMITTING")


def test_a_negotiation_that_was_given_up_can_be_begun_again() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Send, act.Renew}
    world.kick(Lane.SUBMIT)
    (discover,) = [action for action, _ in world.waiting if isinstance(action, act.Send)]
    world.now_s += 10.0
    world.held.clear()
    world.reply(discover, world.server.answer(discover.request))
    world.advance(16.0)  # its last renewal was on the way: one more lease
    assert world.state(id_) == "WORKING"


def test_a_farewell_leaves_within_one_lease_or_not_at_all() -> None:
    world = World(protocol=IN_SESSIONS)
    world.submits(1)
    world.kick(Lane.SUBMIT)
    (session,) = world.ledger.sessions.values()
    for late_s, said in ((0.0, 1), (8.5, 0)):
        world.in_sessions.spoke_in.clear()
        world.held = {act.Take}
        world.engine._writing += 1
        world.settle(act.Swept((), [("a", "", session)]))
        world.now_s += late_s
        world.release(act.Take)
        assert [method for method, _ in world.in_sessions.spoke_in].count("DELETE") == said
