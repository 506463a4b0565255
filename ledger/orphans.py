"""No orphan: what is not over is due, or asks a person (SPEC section 7). One query, which must find nothing."""

import heapq
from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import Connection

from .database import execute
from .operation import NOT_PARKING
from .records import Record
from .rules import RETRY_AFTER_MAX_S

BOUND_S = 60.0
"""How long a due row may wait: a tick, or a dead worker's lease (30 s at most) and the tick after it."""

AHEAD_S = 2 * RETRY_AFTER_MAX_S
"""A row that needs the wire is never due later than this, unless its policy polls more slowly: a server may close
itself for an hour, and jitter makes that no more than two."""


AT_ONCE = 10_000
"""Open operations that one statement looks at, in 0.05 s. A million at once took longer than a statement may: each
minute each process looked for five seconds, did nothing else meanwhile, and found out nothing."""

FIRST, LAST = UUID(int=0), UUID(int=2**128 - 1)


class Orphan(Record):
    """One row that nobody will come by for. `lane`: the lane that is missing or late, or what kind of evidence lies
    unread; `age_s`: for how long, in seconds."""

    operation_id: UUID
    namespace: str | None
    call_node_id: str | None
    target: str | None
    state: str | None
    lane: str
    why: str
    age_s: float


def find_orphans(connection: Connection, fleet: str, *, limit: int = 100, bound_s: float = BOUND_S) -> list[Orphan]:
    """The oldest orphans of a fleet, `limit` at most; empty when all is well."""
    found: list[Orphan] = []
    after: UUID | None = FIRST
    while after is not None:
        more, after = look_for_orphans(connection, fleet, after, limit=limit, bound_s=bound_s)
        found += more
    return heapq.nsmallest(limit, found, key=lambda one: (-one.age_s, one.operation_id, one.lane))


def look_for_orphans(
    connection: Connection, fleet: str, after: UUID, *, limit: int = 100, bound_s: float = BOUND_S
) -> tuple[list[Orphan], UUID | None]:
    """The oldest orphans among the next operations after this id, and where to go on; None after the last."""
    row = execute(connection, "orphans_until", {"after": after, "count": AT_ONCE}).fetchone()
    until = None if row is None else row.operation_id
    arguments = {
        "after": after,
        "until": LAST if until is None else until,
        "fleet": fleet,
        "limit": limit,
        "bound_s": bound_s,
        "ahead_s": AHEAD_S,
        "not_parking": sorted(NOT_PARKING),
    }
    return [Orphan(**row._asdict()) for row in execute(connection, "orphans", arguments)], until


def by_lane(orphans: Iterable[Orphan]) -> dict[str, tuple[int, float]]:
    """Lane -> how many, and the age of the oldest in seconds."""
    found: dict[str, tuple[int, float]] = {}
    for orphan in orphans:
        count, oldest_s = found.get(orphan.lane, (0, 0.0))
        found[orphan.lane] = (count + 1, max(oldest_s, orphan.age_s))
    return found
