"""Questions of tools and people's replies to them, before a task exists and after (SPEC section 4)."""

import json
from uuid import UUID

import pytest

from counterfoil.adapters.contract import NoAnswer, Sent
from counterfoil.ledger import events
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.states import Lane
from counterfoil.ledger.work import Item
from counterfoil.workers import actions as act

from .kit_server import elicitation
from .kit_world import A4, IN_SESSIONS, World

LOST = NoAnswer(Sent.MAYBE, "the connection was lost")


def send(world: World) -> None:
    """What people said is due at the next slot."""
    world.kick(Lane.ANSWER)
    world.advance(0.1)


# -- what is answered ------------------------------------------------------------------------------------------------


def test_a_reply_goes_through_connection_token_and_intent_and_its_acknowledgement_is_kept() -> None:
    world = World()
    id_ = world.asked()
    world.say(id_)
    send(world)
    assert [type(action) for action in world.wire] == [act.Send, act.Go, act.Finish]
    (intend,) = world.of(act.Intend)
    assert (intend.request.effect, intend.request.lane, intend.request.attempt) == ("answer", Lane.ANSWER, 1)
    assert [take.lane for take in world.of(act.Take)] == [Lane.ANSWER]
    (keep,) = world.of(act.Keep)
    assert (keep.answer.kind, keep.answer.attempt) == ("answer", 1)
    assert world.server.replies == [(world.task(id_), {"paper": json.loads(A4)})]
    world.advance(8.0)
    assert (world.state(id_), world.rounds(id_)) == ("WORKING", ["closed"])


def test_one_request_carries_one_reply_and_each_is_sent_once() -> None:
    world = World()
    id_ = world.asked("one", "two")
    world.say(id_, 1)
    world.kick(Lane.ANSWER)
    world.advance(0.3)
    world.say(id_, 2)
    world.kick(Lane.ANSWER)
    world.advance(8.0)
    assert [list(responses) for _, responses in world.server.replies] == [["one"], ["two"]]
    assert (world.state(id_), world.rounds(id_)) == ("WORKING", ["closed", "closed"])


def test_two_replies_that_wait_at_once_leave_one_after_the_other() -> None:
    world = World()
    id_ = world.asked("one", "two")
    world.say(id_, 1)
    world.say(id_, 2)
    world.kick(Lane.ANSWER)
    world.advance(8.0)
    assert [list(responses) for _, responses in world.server.replies] == [["one"], ["two"]]
    assert world.state(id_) == "WORKING"


def lose_a_reply(replay: str) -> tuple[World, UUID]:
    """A reply whose bytes left; the server never saw them, and its answer is lost."""
    world = World()
    id_ = world.asked(reply_replay=replay)
    assert world.ledger.rows[id_].operation.policy.reply_replay == replay
    world.say(id_)
    world.held = {act.Go}
    send(world)
    world.held.clear()
    world.reply(world.effects()[0], LOST)
    world.advance(0.3)
    assert world.brought() == ["ReplyUnclear"]
    return world, id_


def test_a_lost_reply_that_is_safe_to_repeat_is_sent_again_by_itself() -> None:
    world, id_ = lose_a_reply("safe")
    world.holds = lambda action: isinstance(action, act.Send) and b"tasks/get" in action.request.body
    world.advance(7.0)
    assert len(world.server.replies) == 1  # no reading was answered meanwhile
    world.holds = lambda _: False
    world.release(act.Send)
    world.advance(8.0)
    assert (world.state(id_), len(world.server.replies)) == ("WORKING", 1)


def test_a_reply_whose_answer_is_lost_every_time_is_sent_three_times_and_then_asks_a_person() -> None:
    world, id_ = lose_a_reply("safe")
    world.held = {act.Go}
    for _ in range(60):
        world.advance(1.0)
        for send in list(world.connecting.values()):
            world.reply(send, LOST)
    assert len(world.of(act.Go)) == 3
    assert [case.code for case in world.ledger.rows[id_].operation.cases] == ["E_INPUT_UNCLEAR"]


def test_a_lost_reply_is_sent_again_only_after_a_reading_that_still_waits_where_the_profile_says_so() -> None:
    world, id_ = lose_a_reply("read_first")
    world.advance(12.0)
    assert world.server.asked.index("tasks/get") < world.server.asked.index("tasks/update")
    assert (world.state(id_), len(world.server.replies)) == ("WORKING", 1)


def test_a_lost_reply_that_may_never_be_repeated_asks_a_person_when_the_task_still_waits() -> None:
    world, id_ = lose_a_reply("never")
    world.advance(30.0)
    assert world.server.replies == []
    assert [case.code for case in world.ledger.rows[id_].operation.cases] == ["E_INPUT_UNCLEAR"]


@pytest.mark.parametrize("replay", ["read_first", "never"])
def test_a_lost_reply_that_arrived_needs_nobody(replay: str) -> None:
    world, id_ = lose_a_reply(replay)
    world.server.status[world.task(id_)] = "working"
    world.advance(8.0)
    assert (world.state(id_), world.rounds(id_), world.ledger.rows[id_].operation.cases) == ("WORKING", ["closed"], ())


def test_a_reply_that_did_not_leave_withdraws_its_own_intent_and_comes_again() -> None:
    world = World()
    id_ = world.asked()
    world.say(id_)
    world.held = {act.Go}
    send(world)
    assert [intent.effect for intent in world.ledger.rows[id_].operation.intents] == ["answer"]
    world.held.clear()
    world.reply(world.effects()[0], NoAnswer(Sent.NO, "connection refused"))
    world.advance(0.3)
    assert (world.brought(), world.ledger.rows[id_].operation.intents) == (["ReplyNotSent"], ())
    world.advance(7.0)
    assert len(world.server.replies) == 1


def test_a_reply_whose_sender_left_no_answer_is_judged_when_its_send_by_is_over() -> None:
    dead, world = World(), World()
    world.ledger, world.server = dead.ledger, dead.server
    id_ = dead.asked(reply_replay="read_first")
    dead.say(id_)
    dead.held = {act.Go}
    send(dead)
    world.now_s = dead.now_s + 9.0  # its lease is over, its send_by is not
    send(world)
    world.advance(0.3)
    assert (world.of(act.Apply), world.effects()) == ([], [])
    world.now_s += 2.0
    send(world)
    world.advance(0.3)
    assert world.brought()[0] == "ReplyUnclear"
    assert world.ledger.rows[id_].operation.intents == ()


def test_a_reply_to_a_round_that_closed_before_it_left_is_not_sent() -> None:
    world = World()
    id_ = world.asked()
    world.say(id_)
    world.held = {act.Take}
    send(world)
    world.server.status[world.task(id_)] = "working"
    seen = events.Progressed(10**6, "working")
    world.ledger.apply([Item(id_, Lane.POLL, (seen,))], world.now_s)
    world.release(act.Take)
    world.advance(1.0)
    assert (world.left, world.server.replies, world.state(id_)) == ([], [], "WORKING")


def test_a_reply_in_a_session_is_posted_to_the_session_that_asked() -> None:
    world = World(protocol=IN_SESSIONS)
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    world.server.status[world.task(id_)] = "input_required"
    world.advance(1.5)
    assert world.state(id_) == "INPUT_REQUIRED"
    world.say(id_)
    send(world)
    world.advance(8.0)
    assert [session for method, session in world.in_sessions.spoke_in if method == "response"] == ["session-1"]
    ((_, response),) = world.server.replies
    assert (response["id"], response["result"]["action"]) == (0, "accept")
    assert world.state(id_) == "WORKING"


def test_a_submit_that_hangs_does_not_hold_up_the_cancel_or_the_reply_of_another_call_in_its_session() -> None:
    """Smallest input: one submit without an answer and one cancel. Only one submit may be out in a session; everything
    else of the target stood behind it for the whole `answer_by`, a minute."""
    world = World(protocol=IN_SESSIONS)
    (first,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    world.submits(2)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    world.advance(0.1)
    world.cancel(first)
    world.kick(Lane.CANCEL)
    world.advance(0.1)
    effects = [send.request.effect for send in world.effects()]
    assert effects == ["submit", "submit", "cancel"]  # the third submit waits for the second


# -- before a task exists --------------------------------------------------------------------------------------------


def test_the_next_leg_of_a_call_carries_the_same_key_and_arguments_with_the_replies_and_the_state() -> None:
    world = World()
    world.server.legs = [{"inputRequests": {"one": elicitation("1"), "two": elicitation("2")}}]
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    assert (world.state(id_), world.rounds(id_)) == ("INPUT_REQUIRED", ["open", "open"])
    world.say(id_, 1)
    world.kick(Lane.SUBMIT)
    assert world.server.count("tools/call") == 1  # not before all of them are answered
    world.say(id_, 2, b'{"action":"decline"}')
    world.kick(Lane.SUBMIT)
    world.advance(1.0)
    first, second = (body["params"] for body in world.server.bodies if body["method"] == "tools/call")
    assert second["inputResponses"] == {"one": json.loads(A4), "two": {"action": "decline"}}
    assert second["requestState"] == "x"
    assert (second["arguments"], second["_meta"]) == (first["arguments"], first["_meta"])
    assert (world.state(id_), world.ledger.rows[id_].operation.attempt) == ("WORKING", 1)
    assert [intend.request.effect for intend in world.of(act.Intend)] == ["submit", "submit"]


def test_a_state_without_a_question_goes_on_by_itself() -> None:
    world = World()
    world.server.legs = [{}, {}]
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(25.0)
    sent = [body["params"].get("requestState") for body in world.server.bodies if body["method"] == "tools/call"]
    assert sent == [None, "x", "xx"]
    assert (world.state(id_), world.rounds(id_)) == ("WORKING", [])


def test_no_leg_is_sent_after_people_switched_new_calls_off_but_those_of_calls_that_were_begun() -> None:
    world = World()
    world.server.legs = [{"inputRequests": {"one": elicitation()}}]
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    world.ledger.create_on, world.ledger.shut = False, frozenset({"mcp-2026-07-28"})
    world.say(id_)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    assert world.state(id_) == "WORKING"


def test_the_policy_of_the_world_is_the_one_that_the_targets_file_makes() -> None:
    """(What these tests change of it by hand, `reply_replay`, is a promise of the protocol.)"""
    assert isinstance(World().policy(), Policy)
    assert World().policy().reply_replay == "safe"
    assert World(protocol=IN_SESSIONS).policy().reply_replay == "read_first"
