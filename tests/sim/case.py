"""One audited run: the facts of the tables beside the record of what happened."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .facts import Facts, raw
from .record import Record, SentFact

Check = Callable[["Case"], Iterator[str]]


TICK_S = 1e-4
"""The ledger's clock has whole microseconds."""

SEND_BY_S = 4.0
LEASE_S = 10.0
SWEEP_S = 30.0
INPUT_DEADLINE_S = 30.0
AUDIT_FIRST_S = 30.0
PATIENCE_S = 140.0
"""What is due later than this may not be waited for."""
CANCEL_SENDS = 3
UNHEARD = 4
"""Readings that say the same, and nobody acts upon them."""


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

    def open_cases(self, operation: dict[str, Any]) -> bool:
        """Whether a person is asked."""
        return any(row["closed_at"] is None for row in self.facts.of("reconciliation_case", operation["id"]))

    def policy_of(self, operation: dict[str, Any]) -> dict[str, Any] | None:
        """What was pinned at its first intent, None before."""
        policies = self.facts["tool_policy"]
        found = next((row for row in policies if row["digest"] == operation["policy_digest"]), None)
        return None if found is None else json.loads(raw(found["body"]) or b"{}")

    def state_at(self, operation: dict[str, Any], at_s: float) -> str | None:
        """What its journal says that it was then, None before it was opened."""
        moves = [
            row for row in self.facts.of("journal", operation["id"]) if row["event"] in ("opened", "moved", "accepted")
        ]
        before = [row for row in moves if self.at_s(row["at"]) <= at_s + TICK_S]
        return max(before, key=lambda row: row["seq"])["target"] if before else None
