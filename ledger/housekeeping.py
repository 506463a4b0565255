"""Housekeeping: what is over and old is archived and taken away. Never the register: call nodes, operations and
receipts stay for ever, so a repeat is known as one in ten years too.

Journal and evidence go by whole months (`partition`); everything else in batches of rows. Nothing that a living
operation, an audit or an open case may still be asked for is touched, however old it is.
"""

import gzip
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, cast

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from .database import driver_url, sqlstate, statement
from .errors import InputRefused, LedgerUnavailable

BATCH = 2000
"""Rows a transaction: some tens of milliseconds, so that nobody waits for it."""

DETACH_TRIES = 5
_LOCK_TIMEOUT = "55P03"

BY_MONTH = ("journal", "evidence")
KEPT_DAYS: Mapping[str, int | None] = MappingProxyType(
    {
        "journal": 400,
        "evidence": 90,
        "ready": 30,
        "notices": 30,
        "refused": 90,
        "letters": 90,
        "sessions": 7,
        "results": None,
        "rounds": None,
    }
)
"""Kind -> days that it is kept after its end; None: for ever, unless somebody says otherwise. A consumer may fetch a
result at any time, and what a person replied is the story's proof."""


@dataclass(frozen=True, slots=True)
class Month:
    """One partition of journal or evidence that may go. `attached`: it is still part of the table; one that isn't was
    left behind by a run that broke off."""

    kind: str
    name: str
    rows: int
    size_bytes: int
    attached: bool


def kept_days(given: Mapping[str, int]) -> dict[str, int]:
    """The retention of each kind that has one. Raises InputRefused (E_RETENTION) for a kind that there is none of."""
    for kind in given:
        if kind not in KEPT_DAYS:
            raise InputRefused(
                f"{kind[:32]!r} is nothing that is taken away; there are {', '.join(KEPT_DAYS)}.",
                code="E_RETENTION",
                next_step="The register (call nodes, operations, receipts) is kept for ever.",
            )
    return {kind: days for kind, days in (dict(KEPT_DAYS) | dict(given)).items() if days is not None}


class Housekeeping:
    """Works under the owner's role: its login is the one that migrates. Not for workers."""

    def __init__(self, database_url: str) -> None:
        self._engine = create_engine(driver_url(database_url), poolclass=NullPool, connect_args={"connect_timeout": 5})

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        """One short transaction of the owner's. It never waits long for a lock that the fleet needs."""
        try:
            with self._engine.begin() as connection:
                connection.execute(text("SET LOCAL ROLE counterfoil_owner"))
                connection.execute(text("SET LOCAL lock_timeout = '700ms'"))
                yield connection
        except OperationalError as error:
            if sqlstate(error) is not None:
                raise
            raise LedgerUnavailable(
                f"the database can't be used: {str(error.orig).strip().splitlines()[0]}",
                next_step="Set COUNTERFOIL_DATABASE_URL to the login that runs `db upgrade`.",
            ) from error

    # -- looking -------------------------------------------------------------------------------------------------------

    def months(self, kind: str, days: int) -> list[Month]:
        """The partitions of a kind that ended over `days` ago and that nothing living needs, oldest first."""
        with self._begin() as connection:
            found = connection.execute(statement("old_partitions"), {"parent": kind, "days": days}).mappings()
            names = [dict(row) for row in found]
            free = [row for row in names if not row["attached"] or not _needed(connection, kind, row["name"])]
        return [Month(kind=kind, **row) for row in free]

    def count(self, kind: str, days: int) -> int:
        """How many rows of a kind may go."""
        with self._begin() as connection:
            query = f"SELECT count(*) FROM ({_old(kind)}) AS old"  # noqa: S608  a statement of ours
            return int(connection.execute(text(query), {"days": days, "batch": None}).scalar_one())

    # -- doing ---------------------------------------------------------------------------------------------------------

    def take_rows(self, kind: str, days: int, progress: Callable[[int], None]) -> int:
        """Delete the rows of a kind, batch by batch; `progress` hears how many are gone. Returns their number."""
        table, key = _TABLES[kind]
        columns = ", ".join(key)
        delete = text(f"DELETE FROM counterfoil.{table} WHERE ({columns}) IN ({_old(kind)})")  # noqa: S608
        gone = 0
        while True:
            with self._begin() as connection:
                count = connection.execute(delete, {"days": days, "batch": BATCH}).rowcount
            gone += count
            if count:
                progress(gone)
            if count < BATCH:
                return gone

    def take_month(self, month: Month, archive: Path | None) -> bool:
        """Detach a partition, write it into `archive` (a folder) as JSON lines, drop it. False: something that lives
        has come to need it since it was looked at, and it was left.

        Each step may be the last of a run that breaks off: the next one finds the detached table and goes on. The file
        bears its name only when it is whole and on disk, and nothing is dropped before. Raises LedgerUnavailable
        (E_BUSY) where the table could not be detached because somebody reads it for long.
        """
        if month.attached and not self._detach(month):
            return False
        if archive is not None:
            self._export(month, archive)
        with self._begin() as connection:
            connection.execute(text(f'DROP TABLE counterfoil."{month.name}"'))
        return True

    def _detach(self, month: Month) -> bool:
        detach = text(f'ALTER TABLE counterfoil.{month.kind} DETACH PARTITION counterfoil."{month.name}"')
        for _ in range(DETACH_TRIES):
            try:
                with self._begin() as connection:
                    connection.execute(text("SAVEPOINT before"))
                    connection.execute(detach)
                    # Asked again with everybody locked out: an answer may have come in since the first look.
                    free = not _needed(connection, month.kind, month.name)
                    if not free:
                        connection.execute(text("ROLLBACK TO SAVEPOINT before"))
            except OperationalError as error:
                if sqlstate(error) != _LOCK_TIMEOUT:
                    raise
            else:
                return free
        raise LedgerUnavailable(
            f"{month.name} is in use by a long transaction; it was left as it is.",
            code="E_BUSY",
            next_step="`counterfoil doctor` names the transaction. Run it again later.",
        )

    def _export(self, month: Month, archive: Path) -> None:
        archive.mkdir(parents=True, exist_ok=True)
        file = archive / f"{month.name}.jsonl.gz"
        unfinished = file.with_suffix(".partial")
        digest = hashlib.sha256()
        with unfinished.open("wb") as raw:
            with gzip.GzipFile(fileobj=cast("BinaryIO", raw), mode="wb", filename="", mtime=0) as lines:
                for line in self._lines(month.name):
                    lines.write(line)
                    digest.update(line)
            raw.flush()
            os.fsync(raw.fileno())
        unfinished.replace(file)
        file.with_suffix(".sha256").write_text(f"{digest.hexdigest()}  {month.name}.jsonl\n")

    def _lines(self, name: str) -> Iterator[bytes]:
        with self._begin() as connection:
            rows = connection.execution_options(yield_per=500).execute(
                text(f'SELECT row_to_json(t)::text FROM counterfoil."{name}" AS t')  # noqa: S608  a table's own name
            )
            for (row,) in rows:
                yield row.encode() + b"\n"


def _old(kind: str) -> str:
    """The keys of what may go, `batch` at most."""
    return statement(f"old_{kind}").text


def _needed(connection: Connection, kind: str, name: str) -> bool:
    """Whether a living operation, an audit or an open case has something in this partition."""
    query = statement("partition_needed").text.replace("__partition__", f'counterfoil."{name}"')
    if kind == "evidence":
        query = query.replace("__unread__", "p.consumed_at IS NULL")
    return bool(connection.execute(text(query.replace("__unread__", "false"))).scalar_one())


_TABLES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "ready": ("ready_outbox", ("id",)),
    "notices": ("notice", ("id",)),
    "refused": ("refused_write", ("id",)),
    "letters": ("dead_letter", ("id",)),
    "sessions": ("remote_session", ("id",)),
    "results": ("operation_result", ("operation_id",)),
    "rounds": ("input_round", ("operation_id", "number")),
}
