"""Notifications about tasks on the streams of other answers: hints, which wake a reading and prove nothing (SPEC
section 5)."""

from typing import Any
from uuid import UUID

from counterfoil.adapters.contract import Answered
from counterfoil.ledger.states import CaseKind, Lane
from counterfoil.workers import actions as act
from counterfoil.workers.bucket import Limit, LocalBucket

from .kit_server import TaskServer, streamed
from .kit_world import World


def told(task: str, status: str = "completed") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/tasks", "params": {"taskId": task, "status": status}}


def beside(server: TaskServer, method: str, *hints: dict[str, Any]) -> None:
    """Answers to this method come on a stream, behind these notifications."""

    def rule(asked: dict[str, Any]) -> Answered:
        result = server._result(method, asked)
        return streamed(*hints, {"jsonrpc": "2.0", "id": asked["id"], "result": result})

    server.rules[method] = rule


def slow(world: World, count: int = 1) -> list[UUID]:
    """Tasks that are read once a minute; the next time in a minute."""
    world.server.interval_ms = 60_000
    ids = world.polls(count)
    world.kick(Lane.POLL)
    world.advance(0.5)
    world.forget()
    return ids


def read(world: World) -> list[str]:
    return [body["params"]["taskId"] for body in world.server.bodies if body["method"] == "tasks/get"]


def test_a_notification_on_the_stream_of_a_submit_wakes_the_reading_of_another_task() -> None:
    world = World()
    (id_,) = slow(world)
    world.server.status[world.task(id_)] = "completed"
    beside(world.server, "tools/call", told(world.task(id_)))
    world.submits(1)
    world.kick(Lane.SUBMIT)
    assert world.of(act.FindTasks) == [act.FindTasks("a", ((world.task(id_), "completed"),))]
    world.kick(Lane.POLL)
    world.advance(1.0)
    assert world.state(id_) == "ACCEPTED"


def test_a_notification_on_the_stream_of_a_reading_or_a_cancel_wakes_another_task_as_well() -> None:
    for method in ("tasks/get", "tasks/cancel"):
        world = World()
        first, second = slow(world, 2)
        world.server.status[world.task(second)] = "completed"
        beside(world.server, method, told(world.task(second)))
        if method == "tasks/cancel":
            world.cancel(first)
            world.kick(Lane.CANCEL)
        else:
            world.ledger.kick(first, Lane.POLL, world.now_s)
            world.kick(Lane.POLL)
        world.advance(0.2)
        world.kick(Lane.POLL)
        world.advance(1.0)
        assert world.state(second) == "ACCEPTED", method


def test_a_resident_row_that_a_hint_names_is_read_within_a_tick() -> None:
    world = World()
    world.server.interval_ms = 6000
    (id_,) = world.polls(1)
    world.kick(Lane.POLL)
    world.advance(1.0)
    assert world.ledger.wakes[id_, Lane.POLL].token is not None
    world.server.status[world.task(id_)] = "completed"
    beside(world.server, "tools/call", told(world.task(id_)))
    world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(1.5)
    assert world.state(id_) == "ACCEPTED"


def test_what_a_stream_says_of_the_task_that_was_asked_for_wakes_nobody() -> None:
    world = World()
    (id_,) = world.polls(1)
    beside(world.server, "tasks/get", told(world.task(id_), "working"))
    world.kick(Lane.POLL)
    world.advance(5.0)
    assert world.of(act.FindTasks) == []
    assert world.server.count("tasks/get") == 6


def test_a_hint_is_no_evidence_the_reading_decides() -> None:
    world = World()
    (id_,) = slow(world)
    beside(world.server, "tools/call", told(world.task(id_), "completed"))
    world.submits(1)
    world.kick(Lane.SUBMIT)
    world.kick(Lane.POLL)
    world.advance(1.0)
    assert (world.state(id_), world.ledger.rows[id_].operation.server_status) == ("WORKING", "working")


def test_a_hint_at_a_task_of_another_target_or_of_nobody_wakes_nobody() -> None:
    world = World("a", "b")
    world.server.interval_ms = 60_000
    (other,) = world.polls(1, "b")
    world.kick(Lane.POLL, "b")
    world.advance(0.5)
    world.forget()
    beside(world.server, "tools/call", told(world.task(other)), told("nobody's"))
    world.submits(1)
    world.kick(Lane.SUBMIT)
    world.kick(Lane.POLL, "b")
    world.advance(1.0)
    assert read(world).count(world.task(other)) == 1  # before the hint
    assert "Hinted" not in world.brought()


def test_a_hint_after_a_won_cancel_opens_the_effects_case_and_changes_nothing_else() -> None:
    world = World()
    (id_,) = world.polls(1)
    world.cancel(id_)
    world.kick(Lane.CANCEL)
    world.kick(Lane.POLL)
    world.advance(8.0)
    assert world.state(id_) == "CANCELLED_ACCEPTED"
    beside(world.server, "tools/call", told(world.task(id_)))
    world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.5)
    operation = world.ledger.rows[id_].operation
    assert [case.kind for case in operation.cases] == [CaseKind.EFFECT_RECONCILIATION_REQUIRED]
    assert (operation.state, operation.outcome) == ("CANCELLED_ACCEPTED", "cancelled")


def test_a_flood_of_hints_costs_no_more_than_the_bucket() -> None:
    """Twenty tasks whose every answer hints at all of them, read once a minute by their own word."""
    world = World()
    bucket = LocalBucket({"a": Limit(qps=2, burst=2)}, lambda: world.now_s)

    def take(take: act.Take) -> act.Tokens:
        grant = bucket.take(take.target, take.lane, take.count)
        return act.Tokens(take, grant.granted, grant.wait_s)

    world.bucket = take
    world.server.interval_ms = 60_000
    ids = world.polls(20)
    beside(world.server, "tasks/get", *(told(world.task(id_), "working") for id_ in ids))
    world.kick(Lane.POLL)
    world.advance(60.0)
    assert world.server.count("tasks/get") <= 2 * 60 + 2
    assert max(len(find.hints) for find in world.of(act.FindTasks)) == 19
    world.cancel(ids[0])
    world.kick(Lane.CANCEL)
    world.advance(1.0)
    assert world.server.count("tasks/cancel") == 1  # its share is kept for it


def test_hints_that_come_after_the_epoch_ask_the_ledger_nothing() -> None:
    world = World()
    (id_,) = slow(world)
    world.submits(1)
    world.held = {act.Go, act.Abort}
    world.kick(Lane.SUBMIT)
    (send,) = world.connecting.values()
    world.settle(act.WriteFailed(act.Renew(()), "StaleEpoch", stale=True))
    world.engine._writing += 1  # that failure answered no write of ours
    world.forget()
    beside(world.server, "tools/call", told(world.task(id_)))
    world.reply(send, world.server.answer(send.request))
    assert [type(write) for write in world.writes] == [act.Keep]
    assert b"notifications/tasks" in world.ledger.evidence[0][1].body
