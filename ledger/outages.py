"""Open cases as people look at them first: one line for one outage, however many calls it caught (SPEC section 3)."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from . import reads
from .database import execute
from .records import Record


class CaseGroup(Record):
    """The open cases of one target and code. Case id, call node and why are those of the oldest."""

    target: str
    code: str
    kind: str
    count: int
    opened_at: datetime
    case_id: UUID
    namespace: str
    call_node_id: str
    why: str


def list_outages(
    connection: Connection,
    fleet: str,
    *,
    namespace: str | None = None,
    target: str | None = None,
    code: str | None = None,
    each: bool = False,
    limit: int = 100,
) -> list[CaseGroup]:
    """Open cases by target and code, the oldest first. `each`: one line a case."""
    arguments = {
        "fleet": fleet,
        "namespace": namespace,
        "target": target,
        "code": code,
        "each": each,
        "limit": limit,
    }
    return [CaseGroup(**reads.plain(row._asdict())) for row in execute(connection, "case_groups", arguments)]
