"""What one run left in the tables, read with plain SQL: the auditor's one side. (The other is the server's own log.)"""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import psycopg

from .ledgerdb import fleet_of, namespace_of

Rows = list[dict[str, Any]]

OF_FLEET = ("operation", "wake", "evidence", "refused_write", "execution_epoch")
OF_NAMESPACE = ("call_node", "terminal_receipt", "ready_outbox")
OF_OPERATION = ("journal", "intent", "reconciliation_case", "operation_result", "input_round")

QUERY = (
    "SELECT jsonb_build_object("
    + ", ".join(
        f"'{table}', (SELECT coalesce(jsonb_agg(to_jsonb(t)), '[]') FROM counterfoil.{table} AS t WHERE {where})"
        for tables, where in (
            (OF_FLEET, "t.fleet = %(fleet)s"),
            (OF_NAMESPACE, "t.namespace = %(namespace)s"),
            (OF_OPERATION, "t.operation_id IN (SELECT o.id FROM counterfoil.operation AS o WHERE o.fleet = %(fleet)s)"),
        )
        for table in tables
    )
    + ", 'tool_policy', (SELECT coalesce(jsonb_agg(to_jsonb(p)), '[]') FROM counterfoil.tool_policy AS p"
    " WHERE p.digest IN (SELECT o.policy_digest FROM counterfoil.operation AS o WHERE o.fleet = %(fleet)s)))"
)


@dataclass(frozen=True)
class Facts:
    """Rows by table. Bytes are as PostgreSQL writes them in JSON: `\\x` and hex digits."""

    tables: dict[str, Rows]

    def __getitem__(self, table: str) -> Rows:
        return self.tables[table]

    def of(self, table: str, operation_id: str) -> Rows:
        return [row for row in self.tables[table] if row["operation_id"] == operation_id]


def read(connection: psycopg.Connection[Any], tag: str) -> Facts:
    """Everything of the run with this tag, in one statement and so at one instant."""
    # type: ignore[arg-type]
    row = connection.execute(QUERY, {"fleet": fleet_of(tag), "namespace": namespace_of(tag)}).fetchone()
    assert row is not None
    return Facts(row[0])


def fingerprint(left: Facts) -> bytes:
    """Of all that was decided: two runs of one seed have the same, in whatever database and under whatever names."""
    lines = [
        [row[name] for name in ("seq", "at", "epoch", "actor", "event", "source", "target", "lane", "code")]
        for row in left["journal"]
    ]
    ends = [[row[name] for name in ("call_node_id", "state", "outcome")] for row in left["terminal_receipt"]]
    cases = [
        [row[name] for name in ("kind", "code", "opened_at", "closed_at", "closed_by")]
        for row in left["reconciliation_case"]
    ]
    return sha256(json.dumps([sorted(lines, key=str), sorted(ends, key=str), sorted(cases, key=str)]).encode()).digest()


def raw(hexed: str | None) -> bytes | None:
    """The bytes behind PostgreSQL's text of them."""
    return None if hexed is None else bytes.fromhex(hexed.removeprefix("\\x"))
