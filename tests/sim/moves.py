"""What a scheduler may choose, and the numbers that it goes by."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from counterfoil.workers.bucket import Grant, LocalBucket

if TYPE_CHECKING:
    pass


SETTLED_SQL = """
SELECT
    (SELECT extract(epoch FROM min(w.due_at) - %(base)s::timestamptz)::float8
     FROM counterfoil.wake AS w WHERE w.fleet = %(fleet)s AND w.lane = ANY(%(lanes)s)),
    (SELECT count(*) FROM counterfoil.operation AS o
     WHERE o.fleet = %(fleet)s AND o.state NOT IN ('ACCEPTED', 'CANCELLED_ACCEPTED', 'REFUSED') AND NOT EXISTS (
        SELECT 1 FROM counterfoil.reconciliation_case AS c WHERE c.operation_id = o.id AND c.closed_at IS NULL)),
    (SELECT extract(epoch FROM min(e.received_at) - %(base)s::timestamptz)::float8
     FROM counterfoil.evidence AS e WHERE e.fleet = %(fleet)s AND e.consumed_at IS NULL)
"""

SERVER_MEMORY = ("tasks", "log", "said", "refused", "asking", "answered", "replies", "not_found", "sessions")
KEY_MARGIN_S = 5.0
"""So long before its end a key counts as forgotten."""
BEAT_S = 1.0
IDLE_S = 2.0
GRACE_S = 2.05
RESTART_S = 2.0
PATIENCE_S = 150.0
"""After this it is enough that every operation is over or with a person; others have until the end."""

FOR_EVER_S = 1000.0
"""An UNKNOWN has 15 minutes."""

MAX_MOVES = 1500


Snapshot: TypeAlias = tuple[dict[str, int], frozenset[str], frozenset[tuple[str, ...]], float]


ANCHORS = (
    "w urgent Intend",
    "w urgent Keep",
    "w bulk Claim",
    "w bulk Apply",
    "w bulk Renew",
    "w bulk Release",
    "tools/call  leaves",
    "tools/call  arrives",
    "tools/call  is answered",
    "tasks/cancel  leaves",
    "tasks/cancel  arrives",
    "tasks/cancel  is answered",
    "tasks/get  leaves",
    "tasks/get  is answered",
    "tasks/result  is answered",
    "lookup  leaves",
    "lookup  is answered",
    "tasks/update  leaves",
    "tasks/update  is answered",
    "reply  leaves",
    "reply  is answered",
)
"""Moves right before which somebody may crash, stop, cancel or bump. Only ever append: recorded runs name their
places."""

ABSENT = {
    "mcp-2026-07-28": ("tasks/result", "reply"),
    "mcp-2025-11-25": ("tasks/update",),
    "mcp-sync": ("tasks/", "reply"),
    "aip-151": ("tasks/result", "tasks/update", "reply"),
    "http-202": ("tasks/update", "reply"),
    "a2a-1.0": ("tasks/result", "reply"),
}

STATEMENTS = (
    "w urgent lock_wakes",
    "w urgent open_intents",
    "w urgent COMMIT",
    "w bulk lock_operations",
    "w bulk unconsumed_evidence",
    "w bulk write_operations",
    "w bulk COMMIT",
    "w bulk accept",
    "w bulk claim",
    "w bulk renew",
    "w bulk release",
)
"""The same, of tier B."""

TIMES = 2


@dataclass(frozen=True)
class Move:
    """`worker`: whose move it is, where it is one's."""

    since: int
    actor: str
    label: str
    act: Callable[[], None]
    worker: str = ""

    @property
    def line(self) -> str:
        return f"{self.actor} {self.label}"


@dataclass
class Anchored:
    """Something that happens right before the n-th move of a kind (of one worker)."""

    kind: str
    left: int
    worker: str
    label: str
    what: Callable[[], None]


@dataclass(frozen=True)
class Held:
    """An answer that a worker had in its hands."""

    worker: str
    token: str
    body: bytes
    at_s: float


class Wipeable:
    """The fleet's bucket, which may lose its memory."""

    def __init__(self, make: Callable[[], LocalBucket]) -> None:
        self._make = make
        self._bucket = make()

    def wipe(self) -> None:
        self._bucket = self._make()

    def take(self, target: str, lane: str, n: int) -> Grant:
        return self._bucket.take(target, lane, n)

    def close(self, target: str, seconds: float) -> None:
        self._bucket.close(target, seconds)


class _Reached(Exception):
    """The move that a run was to go on until."""


class Stuck(AssertionError):
    """It does not come to rest."""
