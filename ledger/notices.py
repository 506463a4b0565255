"""Notices: what a call node's owner should know before there is a receipt. Pulled and acknowledged like ready rows.

`input_required`: the call waits for a person's answer. `attention`: it has a case, a question that only a person can
settle (SPEC sections 4 and 7). Both mean *still waiting*: a notice never ends anything. At least once, deduped by id.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from sqlalchemy import Connection

from .database import execute
from .ids import uuid7
from .reads import plain
from .records import Record
from .states import State
from .work import Work


class Notice(Record):
    """One notice. `code` and `why` are the case's, None where a person's answer is wanted."""

    id: UUID
    namespace: str
    call_node_id: str
    operation_id: UUID
    kind: Literal["input_required", "attention"]
    code: str | None
    why: str | None
    deliveries: int
    created_at: datetime


Draft: TypeAlias = tuple[UUID, str, str, UUID, str, str | None, str | None]
"""(id, namespace, call node, operation, kind, code, why)"""

DRAFT_ARRAYS = ("ids", "namespaces", "call_nodes", "operations", "kinds", "codes", "whys")


def drafts(works: Iterable[Work]) -> list[Draft]:
    """What a transition gives notice of: each case that it leaves open, each input round that it leaves open.

    Written in the transition's own transaction, so a notice exists exactly when its case or its round does.
    """
    found: list[Draft] = []
    for work in works:
        row = work.row
        about = (row.namespace, row.call_node_id, row.id)
        now, before = row.operation, work.before.operation
        if now.state is State.INPUT_REQUIRED and now.input_round > before.input_round:
            found.append((uuid7(), *about, "input_required", None, None))
        found += [
            (uuid7(), *about, "attention", case.code, case.why[:500])
            for case in work.cases_to_open()
            if not case.closed
        ]
    return found


def take_notices(connection: Connection, namespace: str, *, limit: int, lease_s: float) -> list[Notice]:
    """Lease up to `limit` notices, oldest first. What is not acknowledged within `lease_s` is handed out again."""
    rows = execute(connection, "take_notices", {"namespace": namespace, "limit": limit, "lease_s": lease_s})
    return sorted((Notice(**plain(row._asdict())) for row in rows), key=lambda notice: (notice.created_at, notice.id))


def acknowledge_notices(connection: Connection, namespace: str, ids: Sequence[UUID]) -> int:
    """Say that these were read. Returns how many were open; a repeat is harmless and counts zero."""
    done = execute(connection, "ack_notices", {"namespace": namespace, "ids": list(ids)})
    return len(done.fetchall())
