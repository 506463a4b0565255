"""What a run is of: a protocol, a server, how its tasks go, where it begins, and who makes trouble."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from counterfoil.adapters.registry import adapter
from counterfoil.workers.engine import SERVED
from counterfoil.workers.target_entries import TargetEntry
from counterfoil.workers.targets import Target, Targets

from . import people, plans
from .dialect_a2a import ENTRY as AGENT_ENTRY
from .dialect_a2a import LISTED
from .dialect_http import AIP_ENTRY, AIP_LOOKUP, AIP_ROUTES, JOBS_ENTRY, JOBS_LOOKUP, JOBS_ROUTES
from .dialect_mcp import LOOKUP
from .ledgerdb import BASE
from .network import LATE_S
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
    "aip-151": AIP_ENTRY | {"answer_by_s": 12.0},
    "http-202": JOBS_ENTRY | {"answer_by_s": 12.0},
    "a2a-1.0": AGENT_ENTRY | {"answer_by_s": 12.0},
}
BY_KEY: dict[str, Any] = {"lookup": {"tool": LOOKUP, "absence": "unique", "key_lifetime_s": 600.0}}
FINDS: dict[str, Any] = {"lookup": {"tool": LOOKUP, "key_lifetime_s": 600.0}}
BOUNDED: dict[str, Any] = {"lookup": {"tool": LOOKUP, "absence": "bounded", "key_lifetime_s": 600.0}}
AIP_BY_KEY: dict[str, Any] = {
    "routes": AIP_ROUTES | AIP_LOOKUP,
    "lookup": {"absence": "unique", "key_lifetime_s": 600.0},
}
JOBS_BY_KEY: dict[str, Any] = {
    "routes": JOBS_ROUTES | JOBS_LOOKUP,
    "lookup": {"absence": "unique", "key_lifetime_s": 600.0},
}
JOBS_FINDS: dict[str, Any] = {"routes": JOBS_ROUTES | JOBS_LOOKUP, "lookup": {"key_lifetime_s": 600.0}}
JOBS_BOUNDED: dict[str, Any] = {
    "routes": JOBS_ROUTES | JOBS_LOOKUP,
    "lookup": {"absence": "bounded", "key_lifetime_s": 600.0},
}
LISTS: dict[str, Any] = {"lookup": {"tool": LISTED, "key_lifetime_s": 600.0}}
REPLAY: dict[str, Any] = {"lookup": {"replay": True, "key_lifetime_s": 40.0}}

USUAL = tuple(name for name in COURSES if name != "asks before it begins")
ANSWERING = tuple(name for name in USUAL if math.isinf(COURSES[name].asks_s))
"""Of protocols that ask nobody anything."""
ASKING = ("asks for ever", "asks twice", "asks before it begins", "asks and goes on by itself", "completes")
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
AGENTS = ("asks for ever", "asks twice", "asks and goes on by itself", "completes")
REJECTING = ("completes", "is refused", "runs behind an internal error", "runs behind invalid params")
ENDING = (
    "fails",
    "has a tool error",
    "has no result",
    "breaks its schema",
    "is cancelled by its server",
    "is forgotten",
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
    faults_of: str | tuple[str, ...] = ""
    """Only with messages whose names begin like this."""
    late_s: Sequence[float] = LATE_S
    """How late what is late may be."""
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

    def arguments(self, number: int) -> dict[str, object]:
        """Of its nth call."""
        return {"data": {"n": number}} if self.protocol == "a2a-1.0" else {"n": number}

    def reply(self, *, go: bool) -> dict[str, object]:
        """What a person says to a question."""
        return {"data": {"go": go}} if self.protocol == "a2a-1.0" else {"go": go}

    def calls(self, world: World) -> None:
        """Producers hand in its calls."""
        for number in range(1, self.operations + 1):
            people.submit(world, number)

    def begin(self, world: World) -> None:
        """What a run that begins with an empty ledger begins with."""
        if self.plan not in (plans.doors, plans.canary):
            self.calls(world)


M26, M25, SYNC = "mcp-2026-07-28", "mcp-2025-11-25", "mcp-sync"
AIP, JOBS, A2A = "aip-151", "http-202", "a2a-1.0"
QUIET = tuple(start for start in LATER if start != "asked")
"""Mid-life states of protocols that ask nobody anything."""
