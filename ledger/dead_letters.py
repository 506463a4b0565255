"""Messages that could not become an operation: kept with the reason, for people. Never a silent drop."""

from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Connection, select

from .database import execute
from .digest import sha256
from .ids import uuid7
from .side_tables import dead_letter

MAX_BODY_BYTES = 64 * 1024
"""Of one letter; the digest is over the whole."""

MAX_LETTERS_AN_HOUR = 10_000
"""Rows of one fleet; what comes on top is only logged."""

MAX_BYTES_AN_HOUR = 64 * 1024 * 1024
"""Bodies of one fleet; beyond it the rows go on without them."""

MAX_WHY_CHARS = 2000
MAX_KEY_CHARS = 128


class DeadLetter(BaseModel):
    """One message that could not become an operation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["deadLetter.v1"] = "deadLetter.v1"
    id: UUID
    code: str
    why: str
    key_id: str | None
    body_digest: str
    """SHA-256 of the whole body, hex."""
    body: str
    """Its first 64 KiB as text; bytes that are not UTF-8 are replaced."""
    whole: bool
    """Whether `body` is all of it."""
    received_at: datetime


def write_dead_letter(
    connection: Connection, fleet: str, *, code: str, why: str, key_id: str | None, body: bytes
) -> bool:
    """Keep a message with the reason. False when the fleet's cap of this hour is reached: then nothing was written.

    `why` and `key_id` must be storable (no NUL, no lone surrogate); both are cut to their caps.
    """
    arguments = {
        "id": uuid7(),
        "fleet": fleet,
        "code": code,
        "why": why[:MAX_WHY_CHARS],
        "key_id": None if key_id is None else key_id[:MAX_KEY_CHARS],
        "body_digest": sha256(body),
        "body": body[:MAX_BODY_BYTES],
        "max_letters": MAX_LETTERS_AN_HOUR,
        "max_bytes": MAX_BYTES_AN_HOUR,
    }
    return execute(connection, "write_dead_letter", arguments).fetchone() is not None


def list_dead_letters(connection: Connection, fleet: str, limit: int) -> list[DeadLetter]:
    """The newest first."""
    table = dead_letter
    newest = table.c.received_at.desc(), table.c.id.desc()
    query = select(table).where(table.c.fleet == fleet).order_by(*newest).limit(limit)
    return [
        DeadLetter(
            id=row["id"],
            code=row["code"],
            why=row["why"],
            key_id=row["key_id"],
            body_digest=bytes(row["body_digest"]).hex(),
            body=bytes(row["body"]).decode("utf-8", "replace"),
            whole=sha256(bytes(row["body"])) == bytes(row["body_digest"]),
            received_at=row["received_at"].astimezone(UTC),
        )
        for row in connection.execute(query).mappings()
    ]
