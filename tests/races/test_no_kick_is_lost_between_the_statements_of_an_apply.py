"""A door or a hint wants an operation looked at while the bearer of its poll row writes what it has: 2,000 times, in an
interleaving of the two transactions that a seed chooses, statement by statement.

With one wake row for all lanes, or a release that doesn't look at `kick`, a cancel waited for the next poll (300 s) or
for ever (review B4, X1). Here after each race the row that was kicked is due, or its holder sees by its `kick` that
somebody wants it; every operation has the rows that its state needs, and no other.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from counterfoil.ledger import events
from counterfoil.ledger.client import Call
from counterfoil.ledger.decision import Decision
from counterfoil.ledger.orphans import find_orphans
from counterfoil.ledger.rows import read_rows
from counterfoil.ledger.states import TERMINAL, Lane
from counterfoil.ledger.store import Lease, Store
from counterfoil.ledger.transition import Transitions
from counterfoil.ledger.wakes import wakes
from counterfoil.ledger.work import Item
from counterfoil.tests.ledger.world import RESULT, World, interpret
from counterfoil.tests.races.meeting import bound, questions
from counterfoil.tests.races.turns import Side, interleave

RACES = 2000
CHUNK = 200
REPLY = b'{"action":"accept","content":{"paper":"A4"}}'
WANTS = ("cancel", "hint", "reply", "verdict")
BRINGS = ("told", "held", "released", "renewed", "ended")


class Bearer:
    """Who holds the poll rows: what it may be about to write."""

    def __init__(self, world: World, side: Side) -> None:
        self.store = Store(side.database, "main", world.epoch, world.policy_of)
        self.transitions = Transitions(
            side.database, "main", world.epoch, interpret=interpret, policy_of=world.policy_of
        )

    def bring(self, lease: Lease, what: str) -> Callable[[], Any]:
        row = (lease.operation_id, lease.lane, lease.token)
        if what == "released":
            return lambda: self.store.release([(lease, 300.0)])
        if what == "renewed":
            return lambda: self.store.renew([(*row, 8.0)])
        said: events.Event = events.Progressed(lease.read_seq, "half way", None, None, 300_000)
        if what == "ended":
            said = events.Ended(lease.read_seq, "completed", "completed", RESULT)
        hold_s, lanes = (400.0, frozenset({Lane.POLL})) if what == "held" else (None, frozenset[Lane]())
        item = Item(lease.operation_id, Lane.POLL, (said,), lease.token, lease.kick, hold_s, lanes)
        return lambda: self.transitions.apply([item])


def wanted(want: str, name: str) -> events.Event:
    match want:
        case "cancel":
            return events.CancelAsked("stop")
        case "hint":
            return events.Hinted("working")
        case "reply":
            return events.ReplyGiven(1, REPLY, "ann")
        case _:
            return events.VerdictGiven("bind", "ann", "it is there", task_id=task_of(name))


def handed_in(world: World, names: list[str]) -> dict[str, Lease]:
    """Working operations with their poll rows leased, 200 at a time; those of a reply ask, those of a verdict wait for
    a person."""
    with world.database.begin() as connection:
        ids = world.client.submit_in(connection, [Call("reports", "generate", {}, name) for name in names])
    of = {id_: name for id_, name in zip(ids, names, strict=True) if id_ is not None}
    world.intend_all(world.claim(limit=CHUNK, lease_s=600).values())
    world.transitions.apply([Item(id_, Lane.POLL, (bound(1, task_of(name)),)) for id_, name in of.items()])
    world.sql(
        "UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now() WHERE operation_id = ANY(%(ids)s)",
        {"ids": list(of)},
    )
    leases = world.claim(Lane.POLL, limit=CHUNK, lease_s=600)
    asked = events.InputRequested(1, "input_required", questions())
    gone = events.TaskNotFound(1, "no such task")
    moves: dict[str, events.Event] = {"reply": asked, "verdict": gone}
    world.transitions.apply(
        Item(id_, Lane.DOOR, (moves[want],)) for id_, name in of.items() if (want := name.split("/")[0]) in moves
    )
    return {of[id_]: lease for id_, lease in leases.items()}


def task_of(name: str) -> str:
    return f"task of {name}"


@dataclass(frozen=True, slots=True)
class Race:
    """What was wanted of an operation whose row is held by `lease`, and whether the door said yes (`said`)."""

    want: str
    brings: str
    lease: Lease
    said: bool


def lost(world: World, races: Iterable[Race]) -> list[Race]:
    """Races after which the row that was kicked is not due, and whose holder doesn't see that it was either."""
    states = dict(world.sql("SELECT id, state FROM counterfoil.operation"))
    rows: dict[UUID, dict[str, tuple[bool, bool, int]]] = {}
    for id_, lane, *row in world.sql(
        "SELECT operation_id, lane, due_at <= counterfoil.ledger_now(), lease_token IS NOT NULL, kick"
        " FROM counterfoil.wake"
    ):
        rows.setdefault(id_, {})[lane] = (row[0], row[1], row[2])
    return [
        race for race in races if not kept(race, states[race.lease.operation_id], rows.get(race.lease.operation_id, {}))
    ]


def kept(race: Race, state: str, rows: dict[str, tuple[bool, bool, int]]) -> bool:
    if state in TERMINAL:
        return rows == {}
    if not race.said:
        return True
    lane = {"cancel": "cancel", "reply": "answer"}.get(race.want, "poll")
    if race.want == "reply" and state == "WORKING":
        return "answer" not in rows  # the task went on without it
    due, leased, kick = rows[lane]
    return kick != race.lease.kick if leased else due


def rows_that_are_missing(world: World, ids: Iterable[UUID]) -> list[tuple[UUID, set[str], set[str]]]:
    with world.database.begin() as connection:
        rows = read_rows(connection, ids, world.policy_of, lock=False)
        assert find_orphans(connection, "main") == []
    there: dict[UUID, set[str]] = {}
    for id_, lane in world.sql("SELECT operation_id, lane FROM counterfoil.wake"):
        there.setdefault(id_, set()).add(lane)
    needed = {row.id: {str(lane) for lane in wakes(row.operation)} for row in rows}
    return [(id_, lanes, there.get(id_, set())) for id_, lanes in needed.items() if lanes != there.get(id_, set())]


def test_2000_random_interleavings_lose_no_kick(world: World) -> None:
    noise = random.Random(20261130)
    world.policy = world.policy.model_copy(update={"not_found_asks": 1, "poll_max_s": 600.0})
    world.store.register_targets([("reports", "mcp-2026-07-28")])
    world.freeze()
    sides = (Side(world.url), Side(world.url))
    bearer = Bearer(world, sides[0])
    door = Transitions(sides[1].database, "main", None, interpret=interpret, policy_of=world.policy_of)
    races: list[Race] = []
    with world.owner() as eyes:
        for begin in range(0, RACES, CHUNK):
            names = [f"{noise.choice(WANTS)}/{number}" for number in range(begin, begin + CHUNK)]
            for name, lease in handed_in(world, names).items():
                want, brings = name.split("/")[0], noise.choice(BRINGS)
                item = Item(lease.operation_id, Lane.DOOR, (wanted(want, name),))
                works = (bearer.bring(lease, brings), lambda item=item: door.apply([item]))
                _, (answered,) = interleave(noise, eyes, sides, *works)
                races.append(Race(want, brings, lease, isinstance(answered.answers[-1], Decision)))
            assert lost(world, races[begin:]) == []
            world.sql("UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now() + interval '1 min'")
    for side in sides:
        side.close()
    assert len(races) == RACES
    assert rows_that_are_missing(world, [race.lease.operation_id for race in races]) == []
    refused = Counter(race.brings for race in races if race.want == "cancel" and not race.said)
    assert set(refused) == {"ended"}, "a cancel is refused only where the end was first"
    assert any(race.said for race in races if (race.want, race.brings) == ("cancel", "ended"))
