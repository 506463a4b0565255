"""Claims, ticks and sweeps: what the loop asks the ledger for, and when."""

from counterfoil.ledger.states import Lane
from counterfoil.workers import actions as act
from counterfoil.workers.engine import SERVED
from counterfoil.workers.jobs import Pace

from .kit_world import World


def test_double_kicks_fold_into_one_claim_in_flight_and_one_more_after_it() -> None:
    world = World()
    world.held = {act.Claim}
    for _ in range(5):
        world.kick(Lane.POLL)
    assert len(world.of(act.Claim)) == 1
    world.release(act.Claim)
    assert len(world.of(act.Claim)) == 2


def test_a_claim_is_per_lane_and_target() -> None:
    world = World("a", "b")
    world.held = {act.Claim}
    for lane, target in ((Lane.POLL, "a"), (Lane.POLL, "b"), (Lane.TIMER, "a")):
        world.kick(lane, target)
    assert [(claim.lane, claim.target) for claim in world.of(act.Claim)] == [
        (Lane.POLL, "a"),
        (Lane.POLL, "b"),
        (Lane.TIMER, "a"),
    ]


def test_only_polls_are_claimed_ahead() -> None:
    world = World()
    for lane in SERVED:
        world.kick(lane)
    ahead = {claim.lane: claim.ahead_s for claim in world.of(act.Claim)}
    assert ahead == {lane: (1.0 if lane is Lane.POLL else 0.0) for lane in SERVED}


def test_a_poll_that_was_claimed_ahead_leaves_at_its_moment() -> None:
    world = World()
    world.polls(1, due_in_s=0.8)
    world.kick(Lane.POLL)
    world.advance(0.7)
    assert world.server.count("tasks/get") == 0
    world.advance(0.2)
    assert world.server.count("tasks/get") == 1


def test_a_full_batch_claims_again() -> None:
    world = World(pace=Pace(claim_batch=10))
    world.polls(25, due_in_s=0.5)
    world.kick(Lane.POLL)
    assert [claim.limit for claim in world.of(act.Claim)] == [10, 10, 10]
    assert sum(wake.token is not None for wake in world.ledger.wakes.values()) == 25


def test_no_more_than_in_flight_rows_are_held_however_many_claims_are_out() -> None:
    """Smallest input: cap 15, batches of 10, two targets kicked at once. Each claim asked for 10: 20 were held. The
    first takes half of the places, the second half of what it left."""
    world = World("a", "b", pace=Pace(in_flight=15, claim_batch=10))
    world.server.interval_ms = 5000
    world.polls(50, "a", due_in_s=0.9)
    world.polls(50, "b", due_in_s=0.9)
    world.held = {act.Claim}
    world.kick(Lane.POLL, "a")
    world.kick(Lane.POLL, "b")
    assert [claim.limit for claim in world.of(act.Claim)] == [7, 4]
    world.release(act.Claim)
    world.advance(0.5)
    assert sum(wake.token is not None for wake in world.ledger.wakes.values()) == 7 + 4


def test_a_wake_up_that_found_no_place_is_remembered_until_there_is_one() -> None:
    world = World("a", pace=Pace(in_flight=5, claim_batch=5))
    (ids, others) = (world.polls(5), world.polls(5))
    world.held = {act.Send}
    world.kick(Lane.POLL)
    world.kick(Lane.POLL)
    assert [claim.limit for claim in world.of(act.Claim)] == [5]
    for id_ in (*ids, *others):
        world.server.status[world.task(id_)] = "completed"
    world.release(act.Send)
    world.advance(1.0)
    assert {world.state(id_) for id_ in (*ids, *others)} == {"ACCEPTED"}


def test_a_failed_claim_is_asked_again_by_the_next_wake_up() -> None:
    world = World()
    world.polls(1)
    world.failing = {act.Claim}
    world.kick(Lane.POLL)
    world.advance(0.3)
    world.failing.clear()
    world.kick(Lane.POLL)
    assert world.server.count("tasks/get") == 1


def test_a_forged_wake_up_does_nothing_and_does_not_pass_for_a_living_beat() -> None:
    """Smallest input: kicks for a target that is not configured. They kept the loop from planning by itself."""
    world = World(pace=Pace(self_tick_s=2.0))
    world.advance(0.1)
    world.forget()
    for _ in range(5):
        world.settle(act.Kick(Lane.POLL, "nobody"), act.Kick(Lane.DOOR, "a"))
        world.advance(1.0)
    assert world.of(act.Claim) == []
    assert world.of(act.Plan)


def test_the_loop_plans_by_itself_only_when_nobody_kicked_for_a_while() -> None:
    world = World(pace=Pace(self_tick_s=5.0))
    world.kick(Lane.TIMER)
    world.forget()
    for _ in range(10):
        world.kick(Lane.TIMER)
        world.advance(1.0)
    assert world.of(act.Plan) == []
    world.advance(4.0)
    assert world.of(act.Plan) == []
    world.advance(6.0)
    assert len(world.of(act.Plan)) in (4, 5, 6)  # every tick from the fifth second on


def test_a_planned_lane_and_target_is_claimed() -> None:
    world = World()
    world.polls(1)
    world.advance(0.2)
    assert world.server.count("tasks/get") == 1


def test_one_plan_is_asked_for_at_a_time() -> None:
    world = World()
    world.held = {act.Plan}
    world.advance(10.0)
    assert len(world.of(act.Plan)) == 1
    (write, _) = world.waiting.pop()
    assert isinstance(write, act.Plan)
    world.held.clear()
    world.settle(act.WriteFailed(write, "OperationalError"))
    world.advance(1.1)
    assert len(world.of(act.Plan)) == 2


def test_a_sweep_brings_evidence_that_its_bearer_did_not_consume() -> None:
    world, dead = World(), World()
    dead.ledger = world.ledger
    (id_,) = dead.submits(1)
    dead.held = {act.Apply}
    dead.kick(Lane.SUBMIT)  # it dies between evidence and transition
    assert [answer.operation_id for _, answer in world.ledger.evidence] == [id_]
    world.now_s = dead.now_s + 2.1
    world.advance(0.5)
    (apply,) = world.of(act.Apply)
    assert [(item.operation_id, item.token, item.events) for item in apply.items] == [(id_, None, ())]
    assert (world.state(id_), world.ledger.evidence) == ("WORKING", [])


def test_lanes_that_are_not_served_are_never_claimed() -> None:
    world = World(lanes=(Lane.POLL,))
    world.submits(1)
    for lane in Lane:
        world.kick(lane)
    assert {claim.lane for claim in world.of(act.Claim)} == {Lane.POLL}
    world.polls(1)
    world.kick(Lane.POLL)
    assert world.server.count("tasks/get") == 1


def test_a_worker_that_does_not_poll_leaves_the_new_row_to_others() -> None:
    world = World(lanes=(Lane.SUBMIT,))
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.5)
    assert world.state(id_) == "WORKING"
    assert world.ledger.wakes[id_, Lane.POLL].token is None


def test_a_submit_goes_on_as_a_resident_poll_without_a_claim() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    world.forget()
    world.advance(3.0)
    assert (world.server.count("tasks/get"), [c for c in world.of(act.Claim) if c.lane is Lane.POLL]) == (3, [])
    assert world.ledger.wakes[id_, Lane.POLL].token is not None


def test_a_row_whose_last_job_still_waits_for_an_answer_is_given_back() -> None:
    """A worker was stopped past its lease with a request out, and claims the row again before the answer comes. It kept
    the new lease without doing anything: nobody else could, until that was over too."""
    world = World()
    (id_,) = world.polls(1)
    world.held = {act.Send}
    world.kick(Lane.POLL)
    wake = world.ledger.wakes[id_, Lane.POLL]
    wake.token, wake.due_s = None, 0.0
    world.kick(Lane.POLL)
    assert [row[0].operation_id for release in world.of(act.Release) for row in release.rows] == [id_]
    assert world.ledger.wakes[id_, Lane.POLL].token is None


def test_the_loop_plans_two_seconds_after_the_last_process_with_ticks_and_room() -> None:
    world = World(pace=Pace(tick_s=0.5, self_tick_s=0.5))
    world.others_plan = True
    world.advance(10.0)
    assert world.of(act.Plan) == []
    world.others_plan = False
    world.advance(3.1)
    assert 1 <= len(world.of(act.Plan)) <= 3


def test_a_loop_is_full_while_more_is_due_than_it_has_room_for() -> None:
    """Its ticks would keep the others from planning: the work would wait for it alone."""
    world = World()
    world.submits(200)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    world.advance(0.5)
    assert world.engine.full
    world.held.clear()
    world.release(act.Go)
    world.advance(1.0)
    assert not world.engine.full


def test_submits_are_claimed_half_a_room_at_a_time_while_they_end_one_by_one() -> None:
    """Smallest input: 60 due submits that end one after the other. Each end made room for a claim of one row."""
    world = World()
    world.submits(60)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    while len(world.left) < 60:
        world.advance(0.05)
        action, asked_s = world.waiting.pop(0)
        world._do(action, asked_s)
    limits = [claim.limit for claim in world.of(act.Claim) if claim.lane is Lane.SUBMIT]
    assert (min(limits), len(limits) <= 8) == (10, True)


def test_what_is_due_between_two_ticks_is_claimed_at_its_moment() -> None:
    """Smallest input: a lookup that is due 0.35 s after a tick. It was made at the next one, half a second later."""
    world = World(pace=Pace(tick_s=0.5, self_tick_s=0.0))
    world.ledger.lost(world.now_s, world.policy(), sent_s=world.now_s - 14.65, due_in_s=0.35)
    world.advance(0.3)
    assert world.of(act.Claim) == []
    world.advance(0.1)
    assert [claim.lane for claim in world.of(act.Claim)] == [Lane.LOOKUP]


def test_a_moment_that_is_known_is_not_put_off_by_the_next_tick() -> None:
    world = World()
    world.settle(act.Kick(Lane.TIMER, "a", 0.4))
    for _ in range(4):
        world.advance(0.1)
        world.settle(act.Kick(Lane.TIMER, "a", 0.4))
    assert [claim.lane for claim in world.of(act.Claim)] == [Lane.TIMER]
