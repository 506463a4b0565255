"""Two sides that meet at one row, and operations on their way to be met."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from counterfoil.ledger.digest import canonical_json, sha256
from counterfoil.ledger.events import Event, InputRequested, IntentOverdue, LookupAbsent, Resubmit, TaskBound
from counterfoil.ledger.rounds import Question
from counterfoil.ledger.states import Lane
from counterfoil.ledger.store import Lease
from counterfoil.ledger.work import Applied, Item
from counterfoil.tests.ledger.world import POLICY, World
from counterfoil.tests.races.waiting import Thread, held, until_blocked

OPERATION = "SELECT 1 FROM counterfoil.operation FOR UPDATE"
UNIQUE = POLICY.model_copy(
    update={"lookup": "by_key", "lookup_tool": "lookup", "absence": "unique", "key_lifetime_s": 86_400.0}
)
Side = Callable[[], Any]


def meet(world: World, lock: str, *sides: Side) -> list[Any]:
    """Start the sides one after the other, each when the one before it waits, then let them go; their results, in this
    order."""
    threads = []
    with held(world, lock):
        for count, side in enumerate(sides, 1):
            threads.append(Thread(side))
            until_blocked(world, count)
    return [thread.outcome() for thread in threads]


def in_both_orders(first: str, names: tuple[str, str], *sides: Side) -> tuple[list[Side], Callable[[list[Any]], Any]]:
    """The sides in the order that begins with `first`, and how to sort their results back."""
    if first == names[0]:
        return list(sides), lambda results: results
    return list(reversed(sides)), lambda results: list(reversed(results))


def said(world: World, operation_id: UUID, event: Event) -> Applied:
    """A door's word, in the ledger's current epoch."""
    return world.door.apply([Item(operation_id, Lane.DOOR, (event,))])[0]


def bound(attempt: int, task_id: str) -> TaskBound:
    return TaskBound(attempt, task_id, "working", "2026-11-29T10:00:00Z", None, 1000)


def unknown(world: World, node: str = "run/1") -> UUID:
    """Its submit was sent, and its bearer died: nobody knows. The ledger's clock is frozen, past the settle window."""
    operation_id, lease, _ = world.sent(node)
    world.freeze()
    world.pass_time(world.policy.send_by_s + world.policy.settle_s + 1)
    world.bring(operation_id, IntentOverdue(), lease=lease)
    assert world.state(operation_id) == "SUBMISSION_UNKNOWN"
    return operation_id


def never_created(world: World, node: str = "run/1") -> UUID:
    """The server holds nothing under its key: it may be sent again."""
    operation_id = unknown(world, node)
    world.bring(operation_id, LookupAbsent(authoritative=True), lane=Lane.LOOKUP)
    assert world.state(operation_id) == "NOT_FOUND_SAFE"
    return operation_id


def second_attempt(world: World, node: str = "run/1") -> tuple[UUID, Lease]:
    """Due again, and leased to whoever is about to send it."""
    operation_id = never_created(world, node)
    world.bring(operation_id, Resubmit(), lane=Lane.SUBMIT)
    assert world.state(operation_id) == "SUBMITTING"
    return operation_id, world.claim(lease_s=300)[operation_id]


def questions() -> tuple[Question, ...]:
    """What a task asks a person: one form."""
    schema = {"type": "object", "properties": {"paper": {"type": "string"}}}
    params = canonical_json({"message": "Which paper?", "requestedSchema": schema})
    return (Question("paper", "elicitation/create", params, sha256(canonical_json(schema))),)


def asked(world: World, node: str = "run/1") -> UUID:
    """Its task waits for a person: one round, number 1."""
    operation_id = world.working(node)
    world.bring(operation_id, InputRequested(1, "input_required", questions()))
    assert world.state(operation_id) == "INPUT_REQUIRED"
    return operation_id
