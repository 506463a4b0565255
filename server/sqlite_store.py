"""Keys in an SQLite file: any number of processes of one host."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from .store import Entry, StoreError

IN_MEMORY = ":memory:"

_PAGE_BYTES = 4096
_BUSY_S = 5.0
# SQLite's own clock, with fractions also before 3.42 (no `unixepoch('subsec')` there).
_NOW = "((julianday('now') - 2440587.5) * 86400.0)"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS submission_key (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL,
    version INTEGER NOT NULL,
    written_at_s REAL NOT NULL,
    expires_at_s REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS submission_key_expires_at_s ON submission_key (expires_at_s);
"""
_GET = f"SELECT value, version, {_NOW} - written_at_s FROM submission_key WHERE name = ? AND expires_at_s > {_NOW}"  # noqa: S608
_PURGE = f"DELETE FROM submission_key WHERE expires_at_s <= {_NOW}"  # noqa: S608
_FIRST = f"INSERT INTO submission_key VALUES (?, ?, 1, {_NOW}, {_NOW} + ?) ON CONFLICT (name) DO NOTHING"  # noqa: S608
_NEXT = (
    f"UPDATE submission_key SET value = ?, version = version + 1, written_at_s = {_NOW}, expires_at_s = {_NOW} + ?"  # noqa: S608
    " WHERE name = ? AND version = ?"
)
_RENEW = f"UPDATE submission_key SET written_at_s = {_NOW}, expires_at_s = {_NOW} + ? WHERE name = ? AND version = ?"  # noqa: S608


class SqliteStore:
    """An SQLite file, on a disk of this host (its write-ahead log doesn't work over a network file system).

    `path` is made where it isn't there, readable by its owner alone, since it holds results; ":memory:" forgets
    everything with the process and is never authoritative. Over `max_bytes` new keys are refused. Each write is
    synced to the disk before it counts.

    Raises:
        StoreError: the file can't be opened, or is no SQLite database.
    """

    def __init__(self, path: str | Path, *, max_bytes: int = 1024**3) -> None:
        self._path = str(path)
        self._max_pages = max(1, max_bytes // _PAGE_BYTES)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        if self.durable:
            # Only tried out here: a server that forks afterwards must not carry an open database into its children.
            with self._translated(), closing(self._open()):
                pass

    @property
    def durable(self) -> bool:
        """A file is; memory isn't."""
        return self._path != IN_MEMORY

    def get(self, name: str) -> Entry | None:
        """Return the entry, or None; see `Store`."""
        with self._connected() as connection:
            row = connection.execute(_GET, (name,)).fetchone()
        return None if row is None else Entry(bytes(row[0]), int(row[1]), float(row[2]))

    def put(self, name: str, value: bytes, *, version: int, lifetime_s: float) -> bool:
        """Write the version after the one that is held; see `Store`."""
        with self._transaction() as connection:
            if version > 1:
                return connection.execute(_NEXT, (value, lifetime_s, name, version - 1)).rowcount == 1
            connection.execute(_PURGE)
            return connection.execute(_FIRST, (name, value, lifetime_s)).rowcount == 1

    def renew(self, name: str, *, version: int, lifetime_s: float) -> bool:
        """Set the age to 0 where this version is held; see `Store`."""
        with self._transaction() as connection:
            return connection.execute(_RENEW, (lifetime_s, name, version)).rowcount == 1

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._translated():
            if self._connection is None:
                self._connection = self._open()
            yield self._connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        # IMMEDIATE: a transaction that turns from reading to writing can't wait for the other process's lock.
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                yield connection

    def _open(self) -> sqlite3.Connection:
        if self.durable:
            Path(self._path).touch(mode=0o600, exist_ok=True)
        connection = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            connection.execute("PRAGMA journal_mode = WAL")
            # WAL's default NORMAL may lose the last commits with the power: a lost key would run twice.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA max_page_count = {self._max_pages}")
            connection.executescript(_SCHEMA)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"the keys in {self._path} can't be used: {error}") from error
