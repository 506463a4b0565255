"""Mid-life states: a run that begins where another one was left, in every respect but its names.

The first part is run once for each database, on the plain course, and kept: rows, the server's memory, what had left
and
what had been heard. Each run that begins there is a copy under its own tag.
"""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from counterfoil.ledger.digest import submission_key

from . import people
from .chance import Given
from .facts import raw
from .ledgerdb import LedgerDb, namespace_of
from .network import FAULTS
from .world import World

if TYPE_CHECKING:
    from .family import Family


LOST_ANSWER = FAULTS.index("answer lost") + 1


@dataclass(frozen=True)
class Start:
    """`steps`: run on until this move (its nth time) has been made, then do this. `crash`: the worker dies there;
    else it
    puts everything down."""

    name: str
    steps: tuple[tuple[str, int, Callable[[World], None] | None], ...]
    crash: bool = True
    choices: dict[str, int] = field(default_factory=dict)
    course: str = "completes"


@dataclass(frozen=True)
class Past:
    """What is copied. `memory` is a pickle of plain values."""

    tag: str
    rows: str
    memory: bytes
    operations: tuple[tuple[str, str, str], ...]
    """(id, call node, request digest)"""
    keys: tuple[str, ...]


class Pasts:
    """The pasts of one database, made when they are first asked for."""

    def __init__(self, db: LedgerDb, first: int) -> None:
        self._db = db
        self._first = first
        self._known: dict[tuple[str, str], Past] = {}

    def begin(self, world: World, family: "Family", start: Start) -> None:
        """Let a new run go on from there."""
        known = self._known.get((family.name, start.name))
        if known is None:
            known = self._known[family.name, start.name] = _live(
                self._db, family, start, self._first + len(self._known)
            )
        _copy(self._db, world, known)


def _live(db: LedgerDb, family: "Family", start: Start, number: int) -> Past:
    """The first part, with one worker and nothing going wrong."""
    tag = f"f{number:07x}"
    choices = dict(start.choices)
    if start.course in family.courses:
        choices["course 1"] = family.courses.index(start.course)
    world = World(db, family, tag, Given(choices))
    db.at(0.0)
    db.open_fleet(tag, next(iter(family.targets.names)), family.protocol)
    world.begin()
    world.start_worker()
    family.calls(world)
    for label, count, what in start.steps:
        assert world.run(until=_reached(label, count)), f"{start.name} of {family.name} never came to {label}"
        if what is not None:
            db.at(world.now_s)
            what(world)
    (worker,) = world.workers
    if start.crash:
        world.crash(worker)
        world.drop_later()
    else:
        world.drain(worker)
    found = db.owner.execute(
        "SELECT id::text, call_node_id, request_digest, submission_key::text FROM counterfoil.operation"
        " WHERE fleet = %s ORDER BY id",
        (f"fleet-{tag}",),
    ).fetchall()
    rows = db.dump(tag)
    assert "operation_result" not in rows, "a result's digest would not survive other names"
    operations = tuple((row[0], row[1], bytes(row[2]).hex()) for row in found)
    return Past(tag, rows, pickle.dumps(world.memory()), operations, tuple(row[3] for row in found))


def _reached(label: str, count: int) -> Callable[[str], bool]:
    left = [count]

    def reached(move: str) -> bool:
        left[0] -= move == label
        return left[0] == 0

    return reached


def _copy(db: LedgerDb, world: World, past: Past) -> None:
    rows, memory = past.rows, past.memory
    renames: list[tuple[str, str]] = [(past.tag, world.tag)]
    for (_, node, digest), key in zip(past.operations, past.keys, strict=True):
        made = submission_key(db.ledger_id, namespace_of(world.tag), node, raw(digest) or b"")
        renames.append((key, str(made)))
    for old, new in renames:
        rows = rows.replace(old, new).replace(old.encode().hex(), new.encode().hex())
        memory = memory.replace(old.encode(), new.encode())
    db.load(rows)
    remembered: dict[str, Any] = pickle.loads(memory)
    for id_, _, _ in past.operations:
        world.place(UUID(id_.replace(past.tag, world.tag)))
    world.remember(remembered)


def _cancel(world: World) -> None:
    people.cancel(world, 1)


STARTS = {
    start.name: start
    for start in (
        Start("intent open", (("w1 urgent Intend", 1, None),)),
        Start("sent", (("tools/call 1 arrives", 1, None),)),
        Start("answer kept", (("w1 urgent Keep", 1, None),)),
        Start("unknown", (("w1 bulk Apply", 1, None),), choices={"fault of tools/call 1": LOST_ANSWER}),
        Start("working", (("w1 bulk Apply", 1, None),), crash=False),
        Start("working, its worker dead", (("w1 bulk Apply", 1, None),)),
        Start("cancel asked", (("w1 bulk Apply", 1, _cancel),), crash=False),
        Start("cancel sent", (("w1 bulk Apply", 1, _cancel), ("tasks/cancel 1 arrives", 1, None))),
        Start("cancel answered", (("w1 bulk Apply", 1, _cancel), ("w1 urgent Keep", 1, None))),
        Start("over", (("w1 bulk Apply", 2, None),), choices={"fault of tasks/result 1": LOST_ANSWER}),
        Start("asked", (("w1 bulk Apply", 2, None),), course="asks for ever"),
    )
}
