"""What metrics are made of: counts and ages that the ledger is asked for, in set-based statements of bounded cost.

Everything is read under the reader's role where the login is a member of it: counts and moments, no argument, no
result, no word of a server.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg

from .database import READER_ROLE, Database, execute
from .orphans import by_lane, find_orphans
from .states import QUEUES

log = logging.getLogger(__name__)

SETTLED_S = 10.0
"""What committed later than this after its own moment does not exist: a statement is ended after 5 s, an idle
transaction after 2."""

ORPHANS_COUNTED = 1000
BOUNDS_S = (1.0, 2.0, 5.0, 10.0, 30.0, 45.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 12 * 3600.0)
"""Of both histograms: SPEC section 9's minute for a cancel is a bound, and so are its hours for a call."""

Row = Mapping[str, Any]

GAUGES = ("operations", "due", "unknown", "cancels", "outbox", "targets", "adapters", "cases", "fleet", "partitions")
COUNTS = ("receipts", "refused", "dead_letters")


@dataclass(frozen=True, slots=True)
class Reading:
    """`rows`: statement -> what it found now. `counted`: statement -> what happened since the last reading. `failed`:
    statements that could not be run (too slow, no right to read), with their SQLSTATE."""

    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    counted: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


class Gauges:
    """One reader of one fleet. Counts begin with the moment of the first reading. Not thread-safe."""

    def __init__(self, database_url: str, fleet: str) -> None:
        """Connects to nothing yet."""
        self._database = Database(database_url, role=READER_ROLE, pool_size=1)
        self._fleet = fleet
        self._since: dict[str, datetime] = {}

    def read(self) -> Reading:
        """Ask everything once. Raises LedgerUnavailable, SchemaOutdated; what fails alone is left out and told."""
        rows: dict[str, Sequence[Row]] = {}
        counted: dict[str, Sequence[Row]] = {}
        failed: dict[str, str] = {}
        arguments = {"fleet": self._fleet, "lanes": [str(lane) for lane in QUEUES], "bounds": list(BOUNDS_S)}
        for name in (*GAUGES, "orphans", *COUNTS):
            try:
                if name == "orphans":
                    rows[name] = self._orphans()
                elif name in COUNTS:
                    counted[name] = self._count(name, arguments)
                else:
                    rows[name] = self._ask(f"metric_{name}", arguments)
            except psycopg.Error as error:
                failed[name] = error.sqlstate or "none"
                log.warning("metrics of %r can't be read (SQLSTATE %s)", name, failed[name])
        return Reading(rows, counted, failed)

    def close(self) -> None:
        """Close the connection."""
        self._database.dispose()

    def _ask(self, name: str, arguments: Mapping[str, object]) -> Sequence[Row]:
        with self._database.autocommit() as connection:
            return [row._asdict() for row in execute(connection, name, arguments)]

    def _count(self, name: str, arguments: Mapping[str, object]) -> Sequence[Row]:
        """What happened between the last time and the last moment that is certainly complete: nothing is counted
        twice, nothing that commits late is passed over."""
        with self._database.autocommit() as connection:
            ((until,),) = execute(connection, "metric_until", {"settled_s": SETTLED_S})
        since = self._since.get(name, until)
        found = self._ask(f"metric_{name}", {**arguments, "since": since, "until": until}) if since < until else ()
        self._since[name] = max(since, until)
        return found

    def _orphans(self) -> Sequence[Row]:
        with self._database.autocommit() as connection:
            found = by_lane(find_orphans(connection, self._fleet, limit=ORPHANS_COUNTED))
        return [{"lane": lane, "n": float(n), "oldest_s": oldest_s} for lane, (n, oldest_s) in found.items()]
