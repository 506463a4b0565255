"""One audited run: the facts of the tables beside the record of what happened."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .facts import Facts
from .record import Record, SentFact

Check = Callable[["Case"], Iterator[str]]


TICK_S = 1e-4
"""The ledger's clock has whole microseconds."""

SEND_BY_S = 4.0
LEASE_S = 10.0
SWEEP_S = 30.0
CANCEL_SENDS = 3


@dataclass(frozen=True)
class Case:
    """What there is to judge."""

    facts: Facts
    record: Record

    def at_s(self, moment: str) -> float:
        """A moment of the ledger in seconds since the run's begin."""
        return (datetime.fromisoformat(moment) - self.record.base).total_seconds()

    @property
    def sent(self) -> list[SentFact]:
        """What left since this database is the one (nothing that failed over knows what was lost)."""
        return [sent for sent in self.record.sent if sent.at_s >= self.record.failed_over_s]

    def receipt_of(self, operation: dict[str, Any]) -> dict[str, Any] | None:
        return next((row for row in self.facts["terminal_receipt"] if row["operation_id"] == operation["id"]), None)

    def number(self, operation: dict[str, Any]) -> str:
        return str(operation["call_node_id"])
