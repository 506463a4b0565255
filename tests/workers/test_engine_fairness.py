"""Who is read when there is more to read than places: nobody is forgotten, nobody takes the places of all."""

from counterfoil.adapters.contract import Effect
from counterfoil.workers import actions as act
from counterfoil.workers.jobs import Pace

from .kit_world import World

PACE = Pace(tick_s=0.5, self_tick_s=0.5, in_flight=40)


def is_poll(send: act.Send) -> bool:
    return dict(send.request.headers).get("Mcp-Method") == "tasks/get"


def readings(world: World, target: str) -> list[act.Send]:
    return [send for send in world.of(act.Send) if send.target == target and send.request.effect is None]


def test_a_target_that_answers_nothing_leaves_places_to_the_others() -> None:
    """Smallest input: as many due polls of a dead target as there are places, one of another."""
    world = World("dead", "good", pace=PACE)
    world.polls(3 * PACE.in_flight, "dead")
    world.holds = lambda action: isinstance(action, act.Send) and action.target == "dead"
    world.advance(5.0)
    world.polls(1, "good")
    world.advance(1.5)
    assert len(readings(world, "good")) >= 1


def test_what_a_target_was_given_while_it_answered_leaves_places_to_the_others_when_it_hangs() -> None:
    """Smallest input: three times as many submits of one target as there are places, then a poll of another."""
    world = World("dead", "good", pace=PACE)
    world.submits(3 * PACE.in_flight, "dead")
    world.holds = lambda action: isinstance(action, act.Send) and action.target == "dead" and is_poll(action)
    world.advance(10.0)
    world.polls(1, "good")
    world.advance(1.5)
    assert len(world.left) == 3 * PACE.in_flight
    assert len(readings(world, "good")) >= 1


def test_more_working_operations_than_places_are_all_read() -> None:
    """Smallest input: one resident row for each place, one more that is due: it waited until one of them was over."""
    world = World("a", pace=PACE)
    ids = world.polls(PACE.in_flight + 10)
    world.advance(10.0)
    read = {send.request.headers for send in readings(world, "a")}
    assert len(ids) == len(read)


def test_a_cancel_leaves_within_a_second_although_polls_take_every_place() -> None:
    world = World("a", pace=PACE)
    (id_,) = world.polls(1, due_in_s=60.0)
    world.polls(2 * PACE.in_flight)
    world.advance(5.0)
    world.cancel(id_)
    world.advance(1.0)
    assert [send.request.effect for send in world.left] == [Effect.CANCEL]
