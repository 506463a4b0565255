"""What is run: a protocol, a server, how its tasks go, where a run begins, and who makes trouble."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from counterfoil.adapters.registry import adapter
from counterfoil.workers.engine import SERVED
from counterfoil.workers.target_entries import TargetEntry
from counterfoil.workers.targets import Target, Targets

from . import people, trouble
from .dialects import LOOKUP
from .ledgerdb import BASE
from .people import TARGET
from .remote import COURSES, Course
from .world import World

ENTRY: dict[str, Any] = {
    "url": "http://127.0.0.1:9/mcp",
    "poll": {"min_s": 0.5, "default_s": 1.0},
    "send_by_s": 4.0,
    "deadline_s": 6.0,
    "wait_budget_s": 60.0,
    "cancel_confirm_s": 20.0,
    "input_deadline_s": 30.0,
    "input_watch_s": 5.0,
    "settle_s": 2.0,
    "audit_s": 0.0,
    "qps": 200.0,
    "burst": 50,
}
OF_PROTOCOL: Mapping[str, dict[str, Any]] = {
    "mcp-2026-07-28": {"answer_by_s": 12.0},
    "mcp-2025-11-25": {"answer_by_s": 12.0},
    "mcp-sync": {"sync_bound_s": 12.0},
}
BY_KEY: dict[str, Any] = {"lookup": {"tool": LOOKUP, "absence": "unique", "key_lifetime_s": 600.0}}
FINDS: dict[str, Any] = {"lookup": {"tool": LOOKUP, "key_lifetime_s": 600.0}}
BOUNDED: dict[str, Any] = {"lookup": {"tool": LOOKUP, "absence": "bounded", "key_lifetime_s": 600.0}}
REPLAY: dict[str, Any] = {"lookup": {"replay": True, "key_lifetime_s": 40.0}}

USUAL = tuple(name for name in COURSES if name != "asks before it begins")
ASKING = ("asks for ever", "asks before it begins", "asks and goes on by itself", "completes")
BLOCKING = (
    "completes",
    "completes slowly",
    "is over at once",
    "has a tool error",
    "never ends",
    "has no result",
    "breaks its schema",
    "is refused",
    "runs behind an internal error",
    "runs behind invalid params",
)
EARLY = ("intent open", "sent", "answer kept")
LATER = ("working", "working, its worker dead", "cancel asked", "cancel sent", "cancel answered", "asked")
LOST = ("intent open", "sent", "unknown")


@dataclass(frozen=True)
class Family:
    """`plan` says who makes trouble in a run; `starts` are mid-life states that it may begin in, beside an empty
    ledger; `entry` is what its targets file says beside the usual."""

    name: str
    protocol: str
    server: str
    plan: Callable[[World], None]
    courses: Sequence[str] = USUAL
    operations: int = 1
    workers: int = 2
    starts: Sequence[str] = ()
    entry: Mapping[str, Any] = field(default_factory=dict)
    edited: Mapping[str, Any] | None = None
    """What every second process has read in its place: the file was edited."""
    faults: Sequence[str] = ()
    """Where these are given nothing else goes wrong with messages, and these do often."""
    fault_chance: float = 0.3
    faults_of: str = ""
    """Only with messages whose names begin like this."""
    remembers_s: float = math.inf
    """How long its server remembers a key."""
    tier: str = "A"

    @cached_property
    def targets(self) -> Targets:
        return self._targets(self.entry)

    @cached_property
    def edited_targets(self) -> Targets | None:
        return None if self.edited is None else self._targets(self.edited)

    def _targets(self, own: Mapping[str, Any]) -> Targets:
        entry = ENTRY | OF_PROTOCOL[self.protocol] | dict(own) | {"protocol": self.protocol}
        made = TargetEntry.model_validate(entry)
        return Targets({TARGET: Target(TARGET, adapter(self.protocol).profile, made)})

    @cached_property
    def peek(self) -> dict[str, Any]:
        return {"base": BASE, "lanes": [str(lane) for lane in SERVED]}

    def expected(self, course: Course) -> str | None:
        """The outcome of a call on this course where nothing goes wrong."""
        if self.protocol == "mcp-sync" and course.runs_s > 10.0:
            return None
        return course.expected

    def calls(self, world: World) -> None:
        """Producers hand in its calls."""
        for number in range(1, self.operations + 1):
            people.submit(world, number)

    def begin(self, world: World) -> None:
        """What a run that begins with an empty ledger begins with."""
        if self.plan not in (_doors, _canary):
            self.calls(world)


def _everybody(world: World) -> None:
    trouble.of_producers(world)
    trouble.of_cancellers(world, 0.35)
    trouble.of_roll_back(world, 0.25)
    trouble.of_workers(world, 0.15)


def _calmly(world: World) -> None:
    trouble.of_cancellers(world, 0.1)
    trouble.of_workers(world, 0.05)


def _cancelled(world: World) -> None:
    trouble.of_cancellers(world, 1.0)
    trouble.of_workers(world, 0.15)
    trouble.of_roll_back(world, 0.1)


def _at_every_point(what: str) -> Callable[[World], None]:
    def plan(world: World) -> None:
        trouble.at_every_point(world, what)
        trouble.of_cancellers(world, 0.3)
        trouble.of_roll_back(world, 0.15)

    return plan


def _lookups(world: World) -> None:
    trouble.of_producers(world)
    trouble.of_cancellers(world, 0.25)
    trouble.of_roll_back(world, 0.2)
    trouble.of_workers(world, 0.3)


def _questions(world: World) -> None:
    trouble.of_answers(world)
    trouble.of_cancellers(world, 0.15)
    trouble.of_roll_back(world, 0.15)
    trouble.of_workers(world, 0.15)


def _verdicts(world: World) -> None:
    trouble.of_verdicts(world)
    trouble.of_answers(world, 0.2)
    trouble.of_cancellers(world, 0.2)
    trouble.of_workers(world, 0.2)


def _switches(world: World) -> None:
    trouble.of_switches(world)
    trouble.of_producers(world, 0.5)
    trouble.of_roll_back(world, 0.2)
    trouble.of_workers(world, 0.15)


def _canary(world: World) -> None:
    people.ramp(world, 0.0)
    people.submit(world, 1)
    trouble.of_canary(world)
    trouble.of_workers(world, 0.1)


def _failover(world: World) -> None:
    trouble.of_the_database(world)
    trouble.of_producers(world, 0.3)
    trouble.of_cancellers(world, 0.2)
    trouble.of_workers(world, 0.1)


def _bounded(world: World) -> None:
    trouble.at_every_point(world, "crashes")
    trouble.of_cancellers(world, 0.2)


def _killed_early(world: World) -> None:
    for name in ("w1", "w2"):
        world.sometime(f"{name} is killed", partial(world.for_worker, name, world.crash), (0.5, 2.0, 3.5), 0.9)


def _desk(world: World) -> None:
    """Two people and a canceller come at the same time, and a case waits for them."""
    for who in ("dee", "eve"):
        world.sometime(f"{who} settles", partial(people.settle, world, who), (12.0,), 0.9)
    world.sometime("op1 is cancelled", partial(people.cancel, world, 1), (12.0,), 0.8)


def _slowly(world: World) -> None:
    for time in ("", " again"):
        world.plan(f"the bucket is wiped{time}", partial(trouble.wipe, world), 0.7)
    trouble.of_cancellers(world, 0.2)
    trouble.of_workers(world, 0.1)


def _bumps(world: World) -> None:
    trouble.of_roll_back(world, 1.0)
    trouble.of_slow_acceptance(world)
    trouble.of_cancellers(world, 0.4)
    trouble.of_workers(world, 0.1)


def _doors_against_workers(world: World) -> None:
    trouble.of_cancellers(world, 0.9)
    trouble.of_answers(world, 0.5)
    trouble.of_verdicts(world, 0.3)
    trouble.of_workers(world, 0.05)


def _doors_against_submits(world: World) -> None:
    trouble.of_cancellers(world, 1.0)
    world.plan("op1 is cancelled twice", lambda: people.cancel(world, 1), 0.5)


def _leases(world: World) -> None:
    for name in ("w1", "w2"):
        world.plan_for(name, "stops", trouble.stop, 0.7)
    world.plan("a forged wake-up", lambda: trouble.forge(world), 0.7)
    trouble.of_cancellers(world, 0.3)


def _doors(world: World) -> None:
    people.submit(world, 1)
    people.submit(world, 1)
    world.plan("op1 is handed in once more", lambda: people.submit(world, 1), 0.7)
    trouble.of_cancellers(world, 0.3)
    trouble.of_roll_back(world, 0.3)


M26, M25, SYNC = "mcp-2026-07-28", "mcp-2025-11-25", "mcp-sync"

FAMILIES = {
    family.name: family
    for family in (
        Family("2026 unique", M26, "unique", _everybody, starts=(*EARLY, *LATER), entry=BY_KEY),
        Family("2026 blind", M26, "blind", _everybody, starts=(*EARLY, *LATER), entry={"audit_s": 40.0}),
        Family("2025 unique", M25, "unique", _everybody, starts=(*EARLY, *LATER, "over"), entry=BY_KEY),
        Family("2025 blind", M25, "blind", _everybody, starts=(*EARLY, *LATER, "over")),
        Family("sync unique", SYNC, "unique", _lookups, BLOCKING, starts=LOST, entry=BY_KEY),
        Family("sync blind", SYNC, "blind", _everybody, BLOCKING, starts=EARLY),
        Family("crashes 2026", M26, "blind", _at_every_point("crashes"), starts=(*EARLY, *LATER)),
        Family(
            "crashes 2025", M25, "unique", _at_every_point("crashes"), starts=(*EARLY, *LATER, "over"), entry=BY_KEY
        ),
        Family("stops 2026", M26, "blind", _at_every_point("stops"), starts=LATER),
        Family("stops 2025", M25, "unique", _at_every_point("stops"), starts=(*LATER, "over"), entry=BY_KEY),
        Family("lost commits 2026", M26, "blind", _at_every_point("loses a commit"), starts=LATER),
        Family("lost commits 2025", M25, "unique", _at_every_point("loses a commit"), starts=LATER, entry=BY_KEY),
        Family("lost unique", M26, "unique", _lookups, starts=LOST, entry=BY_KEY),
        Family("lost finds", M26, "finds", _lookups, starts=LOST, entry=FINDS),
        Family("lost replay", M26, "unique", _lookups, starts=LOST, entry=REPLAY),
        Family("2026 questions", M26, "unique", _questions, ASKING, starts=("asked",), entry=BY_KEY),
        Family("2025 questions", M25, "unique", _questions, ASKING, starts=("asked",), entry=BY_KEY),
        Family("verdicts", M26, "finds", _verdicts, starts=(*LOST, "working"), entry=FINDS),
        Family("switches", M26, "unique", _switches, starts=("intent open", "unknown"), entry=BY_KEY),
        Family("canary", M26, "blind", _canary),
        Family("failover unique", M26, "unique", _failover, starts=("intent open", "working"), entry=BY_KEY),
        Family("failover blind", M26, "blind", _failover, starts=("intent open", "working")),
        Family(
            "lost bounded",
            M26,
            "bounded",
            _bounded,
            starts=LOST,
            entry=BOUNDED,
            faults=(
                "request lost",
                "answer lost",
                "request late",
                "unavailable",
                "asked to wait",
                "credential refused",
            ),
        ),
        Family(
            "lost late",
            M26,
            "unique",
            _lookups,
            ("completes",),
            starts=("intent open",),
            entry=BY_KEY,
            faults=("request late", "method gone"),
            fault_chance=0.6,
            faults_of="tools/call",
        ),
        Family(
            "lost too early",
            M26,
            "bounded",
            _killed_early,
            ("completes",),
            entry=BOUNDED | {"settle_s": 10.0},
            faults=("request late",),
            fault_chance=0.8,
            faults_of="tools/call",
        ),
        Family("late intents", M26, "blind", trouble.of_late_intents, ("completes", "completes slowly")),
        Family("late intents alone", M26, "blind", trouble.of_late_intents, ("completes",), workers=1),
        Family(
            "lost keys",
            M26,
            "unique",
            trouble.of_long_stops,
            ("completes",),
            starts=LOST,
            entry=REPLAY,
            remembers_s=40.0,
        ),
        Family(
            "withdrawals",
            M26,
            "blind",
            trouble.of_late_withdrawals,
            ("completes", "completes slowly"),
            faults=("answer late", "answer lost"),
            fault_chance=0.6,
            faults_of="tools/call",
        ),
        Family("desk", M26, "blind", _desk, ("completes", "completes slowly"), starts=("intent open", "sent")),
        Family(
            "lost refused", M26, "unique", _lookups, starts=LOST, entry=REPLAY, faults=("answer lost", "method gone")
        ),
        Family(
            "reused ids",
            M26,
            "blind",
            _calmly,
            ("completes", "fails", "completes slowly"),
            operations=3,
            faults=("reused id",),
        ),
        Family(
            "other tasks",
            M26,
            "blind",
            _calmly,
            ("completes", "completes slowly"),
            faults=("other task", "older status"),
        ),
        Family(
            "no answers", M26, "unique", _calmly, faults=("not found", "credential refused"), entry=BY_KEY, starts=LATER
        ),
        Family(
            "cancels 2026",
            M26,
            "blind",
            _cancelled,
            ("completes whatever we ask", "never ends", "completes slowly", "asks for ever"),
            starts=("working", "cancel asked", "cancel sent"),
            entry={"audit_s": 60.0},
            faults=("request lost", "answer lost", "not found", "connect refused"),
        ),
        Family(
            "cancels 2025",
            M25,
            "blind",
            _cancelled,
            ("completes whatever we ask", "never ends", "completes slowly", "asks for ever"),
            starts=("working", "cancel asked", "cancel sent"),
            entry={"audit_s": 60.0},
            faults=("request lost", "answer lost", "not found", "connect refused"),
        ),
        Family(
            "cancels lost",
            M26,
            "blind",
            _cancelled,
            ("never ends", "completes slowly"),
            starts=("cancel asked",),
            faults=("request lost", "answer lost", "not found"),
            fault_chance=0.9,
            faults_of="tasks/cancel",
        ),
        Family(
            "stops 2025 questions", M25, "unique", _at_every_point("stops"), ASKING, starts=("asked",), entry=BY_KEY
        ),
        Family(
            "stops 2026 questions", M26, "unique", _at_every_point("stops"), ASKING, starts=("asked",), entry=BY_KEY
        ),
        Family("hangs 2026", M26, "blind", _at_every_point("hangs"), starts=LATER),
        Family("lost edited", M26, "unique", _lookups, starts=LOST, edited=BY_KEY),
        Family("hostile", M26, "unique", _everybody, ("speaks in tongues", "completes"), operations=2, entry=BY_KEY),
        Family("three at once", M26, "unique", _everybody, operations=3, entry=BY_KEY),
        Family("three slowly", M26, "unique", _slowly, operations=3, entry=BY_KEY | {"qps": 2.0, "burst": 2}),
        Family(
            "bump against everything", M25, "unique", _bumps, starts=(*EARLY, *LATER, "over"), entry=BY_KEY, tier="B"
        ),
        Family("doors against workers", M26, "unique", _doors_against_workers, starts=LATER, entry=BY_KEY, tier="B"),
        Family("doors against submits", M26, "blind", _doors_against_submits, ("completes",), tier="B"),
        Family("leases against intents", M26, "blind", _leases, starts=("cancel asked",), tier="B"),
        Family("two at one desk", M26, "blind", _desk, ("completes",), starts=("intent open", "sent"), tier="B"),
        Family("two doors", M26, "blind", _doors, tier="B"),
    )
}

EXHAUSTED = ("2026 blind", "lost unique")
"""Small families of which every run is played that differs from the plain one in one choice."""
