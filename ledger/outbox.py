"""Ready rows: receipts that wait for their call node. Pull, act, acknowledge; at least once, deduped by id (SPEC
section 6)."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection

from .database import execute
from .reads import plain
from .records import Ready


def take_ready(connection: Connection, namespace: str, *, limit: int, lease_s: float) -> list[Ready]:
    """Lease up to `limit` ready rows, oldest first. What is not acknowledged within `lease_s` is handed out again."""
    rows = execute(connection, "take_ready", {"namespace": namespace, "limit": limit, "lease_s": lease_s})
    return sorted((Ready(**plain(row._asdict())) for row in rows), key=lambda ready: (ready.created_at, ready.id))


def acknowledge(connection: Connection, namespace: str, ids: Sequence[UUID]) -> int:
    """Say that these were acted upon. Returns how many were open; a repeat is harmless and counts zero."""
    done = execute(connection, "ack_ready", {"namespace": namespace, "ids": list(ids)})
    return len(done.fetchall())
