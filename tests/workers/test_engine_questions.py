"""Questions of tools are kept before they are anything else: a server may tell one only once (SPEC sections 1, 4)."""

from uuid import UUID

from counterfoil.adapters.contract import Answered, NoAnswer, Sent
from counterfoil.ledger.states import Lane
from counterfoil.workers import actions as act

from .kit_server import elicitation
from .kit_world import IN_SESSIONS, World

LOST = NoAnswer(Sent.MAYBE, "the connection was lost")


# -- what is asked ---------------------------------------------------------------------------------------------------


def test_a_question_is_kept_as_evidence_before_it_is_anything_else() -> None:
    world = World()
    (id_,) = world.polls(1)
    world.server.ask(world.task(id_), paper=elicitation())
    world.held = {act.Keep}
    world.kick(Lane.POLL)
    world.advance(2.0)
    (keep,) = world.of(act.Keep)
    assert (keep.answer.kind, keep.answer.seq) == ("input", world.ledger.wakes[id_, Lane.POLL].seq)
    assert b"requestedSchema" in keep.answer.body
    assert (world.of(act.Apply), world.state(id_)) == ([], "WORKING")
    world.release(act.Keep)
    world.advance(0.1)
    (apply,) = world.of(act.Apply)
    assert [item.events for item in apply.items] == [()]  # what was kept is read under the lock
    assert (world.state(id_), world.rounds(id_)) == ("INPUT_REQUIRED", ["open"])


def test_a_question_that_is_known_is_not_kept_again() -> None:
    world = World()
    world.asked(input_watch_s=2.0)
    world.advance(10.0)
    assert world.server.count("tasks/get") >= 4
    assert (world.of(act.Keep), world.of(act.Apply)) == ([], [])


def test_a_question_beside_a_cancel_that_was_asked_for_is_nobodys_business_any_more() -> None:
    """Smallest input: the server takes the cancel and goes on asking. Each reading stored the question once more."""
    world = World()
    (id_,) = world.polls(1)
    world.server.rules["tasks/cancel"] = lambda _: Answered(200, {}, b"")
    world.server.ask(world.task(id_), paper=elicitation())
    world.cancel(id_)
    world.kick(Lane.CANCEL)
    world.kick(Lane.POLL)
    world.advance(50.0)
    assert world.server.count("tasks/get") > 20
    assert [keep.answer.kind for keep in world.of(act.Keep)] == ["cancel"] * world.server.count("tasks/cancel")


def test_while_a_round_is_open_the_task_is_read_at_its_watch_and_at_no_other_time() -> None:
    world = World()
    world.asked()
    world.advance(59.0)
    assert world.server.count("tasks/get") == 0
    world.advance(8.0)
    assert world.server.count("tasks/get") == 1


# -- the end of the loop ---------------------------------------------------------------------------------------------


def waiting_stream() -> tuple[World, UUID, act.Send]:
    """The stream of `tasks/result` is being read, and has not brought its question yet."""
    world = World(protocol=IN_SESSIONS)
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    world.server.status[world.task(id_)] = "input_required"
    world.holds = lambda action: isinstance(action, act.Send) and b"tasks/result" in action.request.body
    world.advance(1.5)
    (send,) = [action for action, _ in world.waiting if isinstance(action, act.Send)]
    world.forget()
    return world, id_, send


def test_a_question_that_is_on_its_stream_when_the_epoch_ends_is_kept_and_nothing_else_is_written() -> None:
    """A server sends it once: what is not kept here nobody will ever be asked."""
    world, id_, send = waiting_stream()
    world.stale = True
    world.settle(act.WriteFailed(act.Renew(()), "StaleEpoch", stale=True))
    world.engine._writing += 1  # that failure answered no write of ours
    world.forget()
    assert not world.engine.idle
    world.reply(send, world.server.answer(send.request))
    assert [type(write) for write in world.writes] == [act.Keep]
    assert [(answer.kind, answer.operation_id) for _, answer in world.ledger.evidence] == [("input", id_)]
    assert (world.wire, world.engine.idle, world.state(id_)) == ([], True, "WORKING")


def test_a_stream_that_brings_no_question_after_the_epoch_writes_nothing() -> None:
    world, _, send = waiting_stream()
    world.settle(act.WriteFailed(act.Renew(()), "StaleEpoch", stale=True))
    world.engine._writing += 1
    world.forget()
    world.reply(send, LOST)
    assert (world.writes, world.wire, world.engine.idle) == ([], [], True)


def test_a_status_that_comes_after_the_epoch_asks_for_no_question() -> None:
    """Smallest input: `tasks/get` of a session is out, StaleEpoch, and it says `input_required`."""
    world = World(protocol=IN_SESSIONS)
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    world.server.status[world.task(id_)] = "input_required"
    world.held = {act.Send}
    while not world.waiting:
        world.advance(0.2)
    ((send, _),) = world.waiting
    assert isinstance(send, act.Send)
    world.settle(act.WriteFailed(act.Renew(()), "StaleEpoch", stale=True))
    world.engine._writing += 1
    world.forget()
    world.reply(send, world.server.answer(send.request))
    assert (world.writes, world.wire, world.engine.idle) == ([], [], True)


def test_a_keep_that_fails_at_the_end_of_the_epoch_is_tried_until_it_is_written() -> None:
    world, _, send = waiting_stream()
    world.settle(act.WriteFailed(act.Renew(()), "StaleEpoch", stale=True))
    world.engine._writing += 1
    world.failing = {act.Keep}
    world.reply(send, world.server.answer(send.request))
    world.advance(5.0)
    assert not world.engine.idle
    world.failing.clear()
    world.advance(1.0)
    assert (len(world.ledger.evidence), world.engine.idle) == (1, True)


def test_a_question_that_is_on_its_stream_when_the_drain_begins_is_kept_and_brought_home() -> None:
    world, id_, send = waiting_stream()
    world.settle(act.Drain())
    assert not world.engine.idle
    world.reply(send, world.server.answer(send.request))
    world.advance(0.3)
    assert (world.state(id_), world.engine.idle) == ("INPUT_REQUIRED", True)
    assert [answer.kind for answer in world.ledger.heard] == ["submit", "input"]


def test_a_status_that_comes_during_the_drain_leaves_the_question_to_others() -> None:
    world = World(protocol=IN_SESSIONS)
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    world.server.status[world.task(id_)] = "input_required"
    world.held = {act.Send}
    while not world.waiting:
        world.advance(0.2)
    ((send, _),) = world.waiting
    assert isinstance(send, act.Send)
    world.settle(act.Drain())
    world.forget()
    world.reply(send, world.server.answer(send.request))
    assert (world.of(act.Send), world.engine.idle) == ([], True)
    assert world.ledger.wakes[id_, Lane.POLL].token is None


def test_a_question_that_comes_on_a_stream_whose_row_was_lost_is_kept_and_swept() -> None:
    """Smallest input: the lease is somebody else's by the time the stream brings the question. It was thrown away, and
    its new holder found a stream without one."""
    world, id_, send = waiting_stream()
    wake = world.ledger.wakes[id_, Lane.POLL]
    wake.token, wake.until_s = world.ledger.new_id(), world.now_s + 1e6
    world.advance(1.2)  # a look at its rows tells that this one is gone
    world.reply(send, world.server.answer(send.request))
    assert [answer.kind for _, answer in world.ledger.evidence] == ["input"]
    world.advance(6.0)
    assert (world.state(id_), world.rounds(id_)) == ("INPUT_REQUIRED", ["open"])
