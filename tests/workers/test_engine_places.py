"""Who may send when there are not places and tokens for all: ten effects a target, closed buckets, closed targets."""

from counterfoil.adapters.contract import Answered, NoAnswer, Sent
from counterfoil.ledger.states import Lane
from counterfoil.workers import actions as act
from counterfoil.workers.requests import TOKEN_PATIENCE_S

from .kit_world import World


def test_at_most_ten_effects_of_a_target_are_out_and_no_more_than_thirty_rows_are_held_for_them() -> None:
    world = World()
    world.submits(200)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    world.advance(0.5)
    assert len(world.effects()) == 10
    assert sum(wake.token is not None for wake in world.ledger.wakes.values()) <= 30
    world.held.clear()
    world.release(act.Go)
    world.advance(1.0)
    assert len(world.left) == 200


def test_a_slow_negotiation_does_not_gather_more_rows_than_can_be_sent() -> None:
    """Smallest input: 21 due submits and a `server/discover` that is not answered yet."""
    world = World()
    world.submits(200)
    world.held = {act.Send}
    world.kick(Lane.SUBMIT)
    world.advance(2.0)
    assert sum(wake.token is not None for wake in world.ledger.wakes.values()) == 20


def test_many_submits_of_one_tool_share_one_negotiation() -> None:
    world = World()
    world.submits(10)
    world.kick(Lane.SUBMIT)
    assert (world.server.count("server/discover"), world.server.count("tools/call")) == (1, 10)


def test_the_closed_bucket_of_one_target_does_not_hold_up_another() -> None:
    """Smallest input: a submit each, the bucket of `a` is closed for 3 s. The loop stopped at the first closed one."""
    world = World("a", "b")
    world.submits(1, "a")
    world.kick(Lane.SUBMIT, "a")  # negotiated
    world.bucket = lambda take: act.Tokens(take, 0, 3.0) if take.target == "a" else act.Tokens(take, take.count, 0.0)
    world.submits(1, "a")
    world.kick(Lane.SUBMIT, "a")  # its connection hangs up: closed is known now
    world.submits(1, "a")
    world.kick(Lane.SUBMIT, "a")  # stands in the line
    world.submits(1, "b")
    world.kick(Lane.SUBMIT, "b")
    world.advance(0.2)
    assert [send.target for send in world.left] == ["a", "b"]


def test_a_cancel_takes_the_next_place_before_submits_that_stood_in_the_line_earlier() -> None:
    world = World()
    (id_,) = world.polls(1, due_in_s=60.0)
    world.submits(12)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    world.cancel(id_)
    world.kick(Lane.CANCEL)
    assert len(world.effects()) == 10
    world.reply(world.effects()[0], NoAnswer(Sent.MAYBE, "lost"))
    *_, last = world.effects()
    assert last.request.effect == "cancel"


def test_a_cancel_is_connected_before_submits_and_is_not_held_up_by_their_closed_share() -> None:
    """Smallest input: a submit whose lane has no token for 2 s stands in the queue before a cancel."""
    world = World()
    (first,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.5)
    assert world.state(first) == "WORKING"  # negotiated
    closed = {Lane.SUBMIT: 2.0}
    world.bucket = lambda take: (
        act.Tokens(take, 0, closed[take.lane]) if take.lane in closed else act.Tokens(take, take.count, 0)
    )
    world.submits(2)
    world.kick(Lane.SUBMIT)
    world.advance(0.1)
    world.cancel(first)
    world.kick(Lane.CANCEL)
    world.advance(0.1)
    assert world.server.count("tasks/cancel") == 1
    assert world.server.count("tools/call") == 1


def test_a_closed_bucket_hangs_up_waiting_connections_and_their_rows_come_again_after_the_wait() -> None:
    world = World()
    world.submits(3)
    world.held = {act.Take}
    world.kick(Lane.SUBMIT)
    while not world.effects():
        ((take, _),) = world.waiting
        assert isinstance(take, act.Take)
        world.waiting.clear()
        world.settle(act.Tokens(take, take.count, 0.0))
    ((take, _),) = world.waiting
    assert isinstance(take, act.Take)
    world.waiting.clear()
    world.settle(act.Tokens(take, 1, 4.0))
    assert (len(world.of(act.Intend)), len(world.of(act.Abort))) == (1, 2)
    assert [delay_s for release in world.of(act.Release) for _, delay_s in release.rows] == [4.0, 4.0]
    assert world.brought() == []
    assert len(world.left) == 1


def test_a_connection_keeps_waiting_where_its_token_is_near() -> None:
    world = World()
    world.submits(1)
    world.kick(Lane.SUBMIT)
    world.forget()
    world.submits(1)
    asks = iter([0.5, 0.0])
    world.bucket = lambda take: (
        act.Tokens(take, 0, wait_s) if (wait_s := next(asks)) else act.Tokens(take, take.count, 0.0)
    )
    world.kick(Lane.SUBMIT)
    assert (world.of(act.Abort), world.server.count("tools/call")) == ([], 0)
    world.advance(0.6)
    assert (world.of(act.Abort), world.server.count("tools/call")) == ([], 1)


def test_connections_do_not_wait_for_a_bucket_that_can_not_be_asked() -> None:
    """Smallest input: one submit is connected and its Take fails. It waited with a silent connection, for ever."""
    world = World()
    world.submits(1)
    world.kick(Lane.SUBMIT)
    world.forget()
    world.submits(1)
    world.failing = {act.Take}
    world.kick(Lane.SUBMIT)
    assert (len(world.of(act.Abort)), world.of(act.Intend)) == (1, [])
    assert [delay_s for release in world.of(act.Release) for _, delay_s in release.rows] == [TOKEN_PATIENCE_S]


def test_a_closed_bucket_holds_new_connections_back() -> None:
    world = World()
    world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.2)
    world.submits(1)
    world.bucket = lambda take: act.Tokens(take, 0, 3.0)
    world.kick(Lane.SUBMIT)
    world.forget()
    world.submits(2)
    world.kick(Lane.SUBMIT)
    world.advance(2.5)
    assert world.effects() == []


def test_a_server_that_asks_everyone_to_wait_in_its_answer_to_a_submit_closes_the_target() -> None:
    """Smallest input: `tools/call` is answered 503 with Retry-After. Only readings closed the target."""
    world = World()
    world.submits(1)
    world.server.rules["tools/call"] = lambda _: Answered(503, {"retry-after": "30"}, b"busy")
    world.kick(Lane.SUBMIT)
    assert world.of(act.CloseTarget) == [act.CloseTarget("a", 30.0)]
    assert len(world.of(act.Keep)) == 1


def test_a_server_that_asks_everyone_to_wait_during_negotiation_closes_the_target() -> None:
    """Smallest input: `server/discover` is answered 429 with Retry-After."""
    world = World()
    world.submits(1)
    world.server.rules["server/discover"] = lambda _: Answered(429, {"retry-after": "20"}, b"")
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    assert (world.of(act.CloseTarget), world.brought()) == ([act.CloseTarget("a", 20.0)], ["SubmitNotSent"])


def test_arguments_that_break_the_tools_schema_are_refused_before_anything_is_sent() -> None:
    world = World()
    (id_,) = world.submits(1, arguments=b'{"secs":"long"}')
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    assert (world.state(id_), world.effects()) == ("REFUSED", [])
    assert world.ledger.rows[id_].operation.error_code == "E_ARGUMENTS_INVALID"


def test_an_unknown_tool_is_refused_and_the_refusal_answers_others_for_a_while() -> None:
    world = World()
    world.server.rules["tools/list"] = lambda asked: Answered(
        200,
        {"content-type": "application/json"},
        b'{"jsonrpc":"2.0","id":"' + asked["id"].encode() + b'","result":{"resultType":"complete","tools":[]}}',
    )
    ids = world.submits(2)
    world.kick(Lane.SUBMIT)
    ids += world.submits(1)
    world.advance(0.5)
    world.kick(Lane.SUBMIT)
    world.advance(0.5)
    assert {world.state(id_) for id_ in ids} == {"REFUSED"}
    assert world.server.count("tools/list") == 1
