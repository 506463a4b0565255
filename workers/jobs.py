"""One claimed wake row on its way through the loop."""

from collections.abc import Generator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any
from uuid import UUID

from ..adapters.contract import Reply, Request
from ..ledger.intents import IntentRequest
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

    `asked_s` and `asked_seq`: when its last reading left, and under which sequence. A renewal that comes while a
    reading is out raises the lease's sequence; the answer must not count as younger than its question (SPEC section
    3).
    """

    row: Row
    lease: Lease
    due_s: float
    until_s: float
    jitter: float
    phase: Phase = Phase.WAITING
    failures: int = 0
    exchange: Generator[Request, Reply, Any] | None = None
    asked_s: float = 0.0
    asked_seq: int = 0
    dropped: bool = False

    @property
    def key(self) -> Key:
        return (self.row.id, self.lease.lane)

    @property
    def lane(self) -> Lane:
        return self.lease.lane


@dataclass(slots=True)
class Negotiation:
    """One negotiation for everybody who waits for the same (target, tool, credential)."""

    key: ContractKey
    exchange: Generator[Request, Reply, Any]
    waiting: list[Job] = field(default_factory=list)


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
    """Telling a server that a session is not needed any more. Whatever it answers is fine."""

    key: ContractKey
    exchange: Generator[Request, Reply, Any]


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

    @property
    def target(self) -> str:
        return self.job.row.target

    @property
    def lane(self) -> Lane:
        return self.job.lane


@dataclass(frozen=True, slots=True)
class Pace:
    """How the loop runs; seconds. See `Settings` for what each was measured to do."""

    tick_s: float = 1.0
    self_tick_s: float = 5.0
    flush_s: float = 0.2
    slot_s: float = 0.05
    poll_lease_s: float = 8.0
    fetch_lease_s: float = 30.0
    in_flight: int = 400
    claim_batch: int = 100
    claim_ahead_s: float = 1.0

    def lease_s(self, lane: Lane) -> float:
        return self.fetch_lease_s if lane is Lane.FETCH else self.poll_lease_s
