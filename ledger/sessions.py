"""Sessions of servers, sealed by the caller: the ledger stores them, hands them back, and knows when the last
operation is over."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from .database import Database, execute
from .ids import uuid7
from .side_tables import remote_session


@dataclass(frozen=True, slots=True)
class Sealed:
    """A session as it is stored. `sealed` can only be opened with the fleet's keys."""

    id: UUID
    target: str
    credential: str
    sealed: bytes


def keep_session(database: Database, fleet: str, target: str, credential: str, sealed: bytes) -> UUID:
    """Store a session before anything rests on it. Returns its id."""
    session_id = uuid7()
    values = {"id": session_id, "fleet": fleet, "target": target, "credential": credential, "sealed": sealed}
    with database.begin() as connection:
        connection.execute(insert(remote_session).values(**values))
    return session_id


def read_sessions(database: Database, ids: Iterable[UUID]) -> list[Sealed]:
    """Sessions by id, ended ones too: a reading that is late must still find its own."""
    table = remote_session.c
    query = select(table.id, table.target, table.credential, table.sealed).where(table.id.in_(list(ids)))
    with database.autocommit() as connection:
        return [Sealed(row[0], row[1], row[2], bytes(row[3])) for row in connection.execute(query)]


def take_ended_sessions(database: Database, fleet: str, *, idle_s: float, limit: int) -> list[Sealed]:
    """Sessions older than `idle_s` whose last operation is over, marked as ended: the caller tells the server.

    Ending one early would take every task of it out of reach (measured: the work ran on, its result was lost), so
    the row is marked first and the server told afterwards; a worker that dies in between leaves a session that the
    server ends by itself.
    """
    with database.autocommit() as connection:
        found = execute(connection, "take_ended_sessions", {"fleet": fleet, "idle_s": idle_s, "limit": limit})
        return [Sealed(row[0], row[1], row[2], bytes(row[3])) for row in found]
