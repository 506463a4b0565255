"""Rows that somebody kicks while this process holds them: what it knows of them is old, and they are wanted now."""

from counterfoil.adapters.contract import Answered, NoAnswer, Sent
from counterfoil.ledger.states import Lane
from counterfoil.workers import actions as act

from .kit_world import World


def test_a_kicked_row_is_polled_now() -> None:
    world = World()
    world.server.interval_ms = 6000
    (id_,) = world.polls(1)
    world.kick(Lane.POLL)
    world.advance(2.0)
    world.forget()
    world.ledger.kick(id_, Lane.POLL, world.now_s)
    world.advance(1.1)
    assert world.server.count("tasks/get") == 1


def test_a_cancel_whose_answer_was_unclear_to_another_worker_is_sent_again() -> None:
    """W1 claims the poll row while the cancel is out; W2, which sent it, loses its answer. In W1's copy of the row the
    cancel was still on its way, so that every reading seemed to change nothing: no second cancel, for ever."""
    w1, w2 = World(), World()
    w2.ledger, w2.server = w1.ledger, w1.server
    (id_,) = w1.polls(1)
    w1.cancel(id_)
    w2.held = {act.Go}
    w2.kick(Lane.CANCEL)
    assert [intent.effect for intent in w1.ledger.rows[id_].operation.intents] == ["cancel"]
    w1.kick(Lane.POLL)  # W1's copy: the cancel is out
    w1.advance(2.0)
    w2.now_s = w1.now_s
    w2.reply(w2.effects()[0], NoAnswer(Sent.MAYBE, "the connection was lost"))
    w2.advance(0.3)
    assert w2.brought() == ["CancelUnclear"]
    w1.forget()
    w1.advance(3.0)
    w1.kick(Lane.CANCEL)
    w1.advance(0.3)
    assert w1.server.count("tasks/cancel") == 1


def test_a_kick_is_seen_though_a_poll_is_out_whenever_the_loop_looks_at_its_rows() -> None:
    """Smallest input: poll interval = tick. At each look a poll was out, so the kick waited for another, for ever."""
    world = World()
    (id_,) = world.polls(1)
    world.kick(Lane.POLL)
    world.advance(0.9)
    world.ledger.kick(id_, Lane.POLL, world.now_s)
    world.forget()
    world.advance(2.2)
    assert [claim.lane for claim in world.of(act.Claim)].count(Lane.POLL) >= 1
    assert world.ledger.wakes[id_, Lane.POLL].kick == 1
    assert [lease.kick for release in world.of(act.Release) for lease, _ in release.rows] == [0]


def test_a_row_that_is_kicked_keeps_its_count_of_troubles() -> None:
    """Smallest input: a server in trouble and somebody who hints. Each hint began the pauses anew."""
    world = World()
    (id_,) = world.polls(1)
    world.server.rules["tasks/get"] = lambda _: Answered(502, {}, b"")
    world.kick(Lane.POLL)
    world.advance(5.5)  # 0, 1, 3 s: the next one is due at 7 s
    world.ledger.kick(id_, Lane.POLL, world.now_s)
    world.advance(1.2)
    world.forget()
    world.advance(4.0)
    assert world.server.count("tasks/get") == 0  # the fourth trouble in a row waits 8 s


def test_a_kick_that_comes_while_a_poll_is_out_is_not_lost() -> None:
    """Smallest input: poll out, kick, renewal, answer: the renewal took the new count over, so the next poll was due
    after the whole interval although what it read was asked before the kick."""
    world = World()
    world.server.interval_ms = 6000
    (id_,) = world.polls(1)
    world.held = {act.Send}
    world.kick(Lane.POLL)
    world.ledger.kick(id_, Lane.POLL, world.now_s)
    world.advance(6.0)
    assert world.of(act.Renew)
    world.held.clear()
    world.release(act.Send)
    world.forget()
    world.advance(1.1)
    assert world.server.count("tasks/get") == 1


def test_a_kick_that_comes_while_the_outcome_is_being_applied_is_not_lost() -> None:
    """Smallest input: the transition leaves the row in our hands with another kick count than we brought."""
    world = World()
    world.server.interval_ms = 6000
    (id_,) = world.polls(1)
    world.held = {act.Apply}
    world.kick(Lane.POLL)  # the interval is news: something to write
    world.advance(0.5)
    world.ledger.kick(id_, Lane.POLL, world.now_s)
    world.forget()
    world.release(act.Apply)
    world.advance(0.2)
    assert world.server.count("tasks/get") == 1
