"""One claimed wake row on its way through the loop."""

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any
from uuid import UUID

from ..adapters.contract import Reply, Request
from ..ledger.events import Ended
from ..ledger.intents import Denied, IntentRequest
from ..ledger.rows import Row
from ..ledger.states import Lane
from ..ledger.store import Lease
from .actions import ContractKey, Key


class Phase(Enum):
    WAITING = auto()
    """Held, its moment has not come."""
    NEGOTIATING = auto()
    """A submit that waits for its tool's contract."""
    QUEUED = auto()
    """A submit or cancel that waits for a connection's place."""
    OUT = auto()
    """A request of it waits for a token, a connection or an answer."""
    KEEPING = auto()
    """Its answer is being stored as evidence."""
    APPLYING = auto()
    """Its outcome is on the way into the ledger."""


UNSTARTED = frozenset({Phase.WAITING, Phase.NEGOTIATING, Phase.QUEUED})
"""Phases in which nothing of the row's own is out yet."""


@dataclass(slots=True)
class Job:
    """`due_s` and `until_s` (the lease's end, from before the claim was issued) are on the loop's clock.

    `kicked`: somebody wants its row looked at, which was seen while a request of it was out.
    `asked_s` and `asked_seq`: when its last reading left, and under which sequence. A renewal that comes while a
    reading is out raises the lease's sequence; the answer must not count as younger than its question (SPEC section
    3).
    `has_place`: the poll that follows is counted already.
    `ended`: the end that a poll saw, while its result is fetched. Both are written at once.
    """

    row: Row
    lease: Lease
    due_s: float
    until_s: float
    jitter: float
    budget_until_s: float = math.inf
    phase: Phase = Phase.WAITING
    failures: int = 0
    exchange: Generator[Request, Reply, Any] | None = None
    asked_s: float = 0.0
    asked_seq: int = 0
    kicked: bool = False
    dropped: bool = False
    has_place: bool = False
    ended: Ended | None = None

    @property
    def key(self) -> Key:
        return (self.row.id, self.lease.lane)

    @property
    def lane(self) -> Lane:
        return self.lease.lane

    @property
    def replays(self) -> bool:
        """Its lost submit is asked for by the same bytes under the same key (SPEC section 7)."""
        return self.lane is Lane.LOOKUP and self.row.operation.policy.lookup == "replay"

    @property
    def submits(self) -> bool:
        """What it sends is the call itself, so it needs the tool's contract."""
        return self.lane in (Lane.SUBMIT, Lane.SYNC) or self.replays

    @property
    def token_lane(self) -> Lane:
        """Whose tokens its requests take: a replay is a submit."""
        return Lane.SUBMIT if self.replays else self.lane

    def alive(self, now_s: float) -> bool:
        """Its row is still ours, as far as can be known without asking."""
        return not self.dropped and self.until_s >= now_s


@dataclass(slots=True)
class Negotiation:
    """One negotiation for everybody who waits for the same (target, tool, credential)."""

    key: ContractKey
    exchange: Generator[Request, Reply, Any]
    waiting: list[Job] = field(default_factory=list)

    def alive(self, now_s: float) -> bool:
        """Somebody who still holds its row waits for it. A process that was stopped must not go on asking for nobody:
        one lease after a bump no byte leaves (SPEC section 6)."""
        return any(job.alive(now_s) for job in self.waiting)


@dataclass(frozen=True, slots=True)
class Contract:
    """What was negotiated, committed, and how long this process believes it."""

    protocol: str
    tool_version: str | None
    descriptor: dict[str, object]
    descriptor_digest: bytes
    input_schema: bytes | None
    policy_digest: bytes
    until_s: float
    session: bytes | None = None
    session_id: UUID | None = None


@dataclass(slots=True)
class Farewell:
    """Telling a server that a session is not needed any more. Whatever it answers is fine.

    It has no lease of its own, but as any request it leaves within the length of one, or not at all.
    """

    key: ContractKey
    exchange: Generator[Request, Reply, Any]
    until_s: float

    def alive(self, now_s: float) -> bool:
        return self.until_s >= now_s


@dataclass(slots=True)
class Reading:
    """One request without an effect, from the decision to send it to its reply."""

    owner: Job | Negotiation | Farewell
    target: str
    lane: Lane
    credential: str
    request: Request


@dataclass(slots=True)
class Sending:
    """One request with an effect, from the decision to send it until its evidence is stored.

    `asked_intent`: an intent of it may have been committed, so it can't just be forgotten.
    """

    job: Job
    intent: IntentRequest
    asked_intent: bool = False
    denied: Denied | None = None

    @property
    def target(self) -> str:
        return self.job.row.target

    @property
    def lane(self) -> Lane:
        """Whose tokens it takes."""
        return self.job.token_lane


@dataclass(frozen=True, slots=True)
class Pace:
    """How the loop runs; seconds. See `Settings` for what each was measured to do."""

    tick_s: float = 1.0
    self_tick_s: float = 5.0
    flush_s: float = 0.2
    slot_s: float = 0.05
    poll_lease_s: float = 8.0
    fetch_lease_s: float = 30.0
    in_flight: int = 2000
    claim_batch: int = 100
    claim_ahead_s: float = 1.0

    def slot(self, moment_s: float) -> float:
        """Moments are gathered into slots, later never sooner: one bucket call and one step serve a slot."""
        return math.ceil(moment_s / self.slot_s) * self.slot_s

    def lease_s(self, lane: Lane) -> float:
        return self.fetch_lease_s if lane is Lane.FETCH else self.poll_lease_s
