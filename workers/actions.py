"""What goes into a step of the loop and what comes out of it. Values only, so that a simulator can hold, reorder or
lose them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from ..adapters.contract import Answered, NoAnswer, Request
from ..ledger.intents import Denied, Granted, IntentRequest
from ..ledger.policy import Policy
from ..ledger.rows import Row
from ..ledger.states import Lane
from ..ledger.store import Answer, Due, Lease, Renewed
from ..ledger.work import Applied, Item

Key: TypeAlias = tuple[UUID, Lane]
"""(operation, lane): a wake row."""

ContractKey: TypeAlias = tuple[str, str, str]
"""(target, tool, credential reference): what a negotiation is good for."""


# -- towards the wire ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class About:
    """Whose request it is, for telemetry alone."""

    operation_id: UUID
    lane: Lane
    tool: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send this request. An effect is connected first and then waits for Go or Abort before its first byte."""

    send_id: int
    target: str
    credential: str
    request: Request
    about: About | None = None
    """None: a question of the process's own, as a negotiation."""


@dataclass(frozen=True, slots=True)
class Go:
    """The intent is committed: bytes may leave until `send_by_s` on the loop's clock."""

    send_id: int
    send_by_s: float


@dataclass(frozen=True, slots=True)
class Abort:
    """Not one byte may leave."""

    send_id: int
    why: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The evidence is stored: the connection's slot may be given to another."""

    send_id: int


# -- towards the ledger and the bucket -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    lanes: tuple[Lane, ...]
    ahead_s: float
    limit: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """Look for evidence that its bearer did not consume."""

    limit: int


@dataclass(frozen=True, slots=True)
class Claim:
    lane: Lane
    target: str
    limit: int
    ahead_s: float
    lease_s: float


@dataclass(frozen=True, slots=True)
class Intend:
    send_id: int
    request: IntentRequest


@dataclass(frozen=True, slots=True)
class Keep:
    """Store what a server said, at once."""

    send_id: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Apply:
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Renew:
    held: tuple[tuple[UUID, Lane, UUID, float], ...]


@dataclass(frozen=True, slots=True)
class Reread:
    held: tuple[tuple[UUID, Lane, UUID], ...]


@dataclass(frozen=True, slots=True)
class Release:
    rows: tuple[tuple[Lease, float], ...]


@dataclass(frozen=True, slots=True)
class KeepContract:
    """Commit what was negotiated before any submit rests on it."""

    key: ContractKey
    protocol: str
    tool_version: str | None
    descriptor: bytes
    descriptor_digest: bytes
    policy: Policy
    session: bytes | None = None


@dataclass(frozen=True, slots=True)
class CloseTarget:
    target: str
    for_s: float


@dataclass(frozen=True, slots=True)
class FindTasks:
    """Which operations notifications spoke of. `hints`: (task id, the server's word)."""

    target: str
    hints: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Take:
    target: str
    lane: Lane
    count: int


Write: TypeAlias = (
    Plan
    | Sweep
    | Claim
    | Intend
    | Keep
    | Apply
    | Renew
    | Reread
    | Release
    | KeepContract
    | CloseTarget
    | FindTasks
    | Take
)
Wire: TypeAlias = Send | Go | Abort | Finish


# -- what comes back -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kick:
    """A wake-up: look at this lane and target, now or in a while. Losing, doubling or forging one changes latency,
    nothing else."""

    lane: Lane
    target: str
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Connected:
    """An effect's connection is up; its hook waits."""

    send_id: int


@dataclass(frozen=True, slots=True)
class Replied:
    send_id: int
    reply: Answered | NoAnswer


@dataclass(frozen=True, slots=True)
class Planned:
    due: Sequence[Due]


@dataclass(frozen=True, slots=True)
class Swept:
    """`ended`: sessions that no operation needs any more, with the target and credential they were begun with."""

    operations: Sequence[UUID]
    ended: Sequence[tuple[str, str, bytes]] = ()


@dataclass(frozen=True, slots=True)
class Claimed:
    claim: Claim
    asked_s: float
    rows: Sequence[tuple[Lease, Row]]


@dataclass(frozen=True, slots=True)
class Intended:
    send_id: int
    asked_s: float
    answer: Granted | Denied


@dataclass(frozen=True, slots=True)
class Kept:
    send_id: int


@dataclass(frozen=True, slots=True)
class AppliedBatch:
    items: Sequence[Item]
    asked_s: float
    applied: Sequence[Applied]


@dataclass(frozen=True, slots=True)
class RenewedBatch:
    asked_s: float
    asked: Sequence[tuple[UUID, Lane, UUID, float]]
    found: Mapping[Key, Renewed]


@dataclass(frozen=True, slots=True)
class RereadBatch:
    asked: Sequence[tuple[UUID, Lane, UUID]]
    kicks: Mapping[Key, int]


@dataclass(frozen=True, slots=True)
class Released:
    """A write whose answer says nothing more came through."""

    count: int


@dataclass(frozen=True, slots=True)
class ContractKept:
    key: ContractKey
    policy_digest: bytes
    session_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class TasksFound:
    """Operations that a notification spoke of, with its word."""

    hinted: Sequence[tuple[UUID, str | None]]


@dataclass(frozen=True, slots=True)
class Tokens:
    take: Take
    granted: int
    wait_s: float


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """A write did not succeed; for an intent its outcome is unknown. `stale`: the epoch is over."""

    write: Write
    why: str
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Drain:
    """Take nothing new, bring home what is out."""


Arrival: TypeAlias = (
    Kick
    | Connected
    | Replied
    | Planned
    | Swept
    | Claimed
    | Intended
    | Kept
    | AppliedBatch
    | RenewedBatch
    | RereadBatch
    | Released
    | ContractKept
    | TasksFound
    | Tokens
    | WriteFailed
    | Drain
)


@dataclass(frozen=True, slots=True)
class Actions:
    """The answer of a step: what to put on the wire, what to write, and when to come back at the latest (seconds)."""

    wire: tuple[Wire, ...]
    writes: tuple[Write, ...]
    wait_s: float
