"""What running costs: CPU of whole process trees, and what PostgreSQL and Valkey count of themselves."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psutil

from ..console.devservers import DATABASE
from .servers import Servers

STATISTICS_LAG_S = 1.2
"""A backend tells its counts at most once a second."""

_CONTROL = r"^\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET|SHOW|DEALLOCATE)\M"
"""Transaction control is no statement of ours: commits are counted apart."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Everything since some beginning; two of them make a difference."""

    at_s: float
    cpu_s: Mapping[str, float] = field(default_factory=dict)
    statements: int = 0
    commits: int = 0
    wal_bytes: int = 0
    redis_commands: int = 0

    def since(self, before: "Counts") -> "Counts":
        return Counts(
            self.at_s - before.at_s,
            {name: used_s - before.cpu_s.get(name, 0.0) for name, used_s in self.cpu_s.items()},
            self.statements - before.statements,
            self.commits - before.commits,
            self.wal_bytes - before.wal_bytes,
            self.redis_commands - before.redis_commands,
        )

    @property
    def total_cpu_s(self) -> float:
        return sum(self.cpu_s.values())


class Meter:
    """Reads the counts of the servers and of the processes that are named to it.

    `database`: whose statements and commits are counted.
    """

    def __init__(self, servers: Servers) -> None:
        self.database = DATABASE
        self._servers = servers
        self._connection = servers.connect()
        self._processes = {"postgres": servers.postgres_pid, "valkey": servers.valkey_pid}

    def watch(self, name: str, pid: int) -> None:
        """Count this process with all its descendants, from now on."""
        self._processes[name] = pid

    def forget(self, name: str) -> None:
        self._processes.pop(name, None)

    def pid(self, name: str) -> int:
        return self._processes[name]

    def close(self) -> None:
        self._connection.close()

    def start(self) -> Counts:
        """The counts at the beginning."""
        commits = self._commits()
        statements, wal_bytes, redis_commands = self._asked()
        # CPU last here and first at the end, so that reading counts for nobody.
        return Counts(time.time(), self._cpu_s(), statements, commits, wal_bytes, redis_commands)

    def stop(self) -> Counts:
        """The counts at the end."""
        cpu_s, at_s = self._cpu_s(), time.time()
        statements, wal_bytes, redis_commands = self._asked()
        return Counts(at_s, cpu_s, statements, self._commits(), wal_bytes, redis_commands)

    def _commits(self) -> int:
        time.sleep(STATISTICS_LAG_S)  # they come late, and nothing says when they are there
        return self._one("SELECT xact_commit FROM pg_stat_database WHERE datname = %s", self.database)

    def _asked(self) -> tuple[int, int, int]:
        """What is counted at once: statements, bytes of write-ahead log, Valkey's commands."""
        statements = self._one(
            "SELECT coalesce(sum(s.calls), 0)::bigint FROM pg_stat_statements AS s"
            " JOIN pg_database AS d ON d.oid = s.dbid WHERE d.datname = %s AND s.query !~* %s",
            self.database,
            _CONTROL,
        )
        wal_bytes = self._one("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
        with self._servers.broker() as broker:
            stats: Any = broker.info("stats")
        return statements, wal_bytes, int(stats["total_commands_processed"])

    def _one(self, query: LiteralString, *arguments: str) -> int:
        row = self._connection.execute(query, arguments).fetchone()
        assert row is not None
        return int(row[0])

    def _cpu_s(self) -> dict[str, float]:
        return {name: tree_cpu_s(pid) for name, pid in self._processes.items()}


def tree_cpu_s(pid: int) -> float:
    """User and system time of a process, its living descendants, and those that were collected (PostgreSQL's backends
    end with their connection). A process that has ended and is not yet collected counts too."""
    used_s = 0.0
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                used_s += times.user + times.system + times.children_user + times.children_system
    return used_s


def tree_rss_bytes(pid: int) -> list[int]:
    """Resident memory of a process and of each of its descendants."""
    sizes = []
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                sizes.append(process.memory_info().rss)
    return sizes
