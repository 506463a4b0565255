"""Reads for people and producers: operations, receipts, cases, journals. On the primary, no lock, no fence."""

from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, RowMapping, Select, select

from .errors import NoSuchOperation
from .records import Case, JournalLine, Receipt, ToolOperation
from .tables import journal, operation, operation_result, reconciliation_case, terminal_receipt

_HEX = frozenset({"request_digest", "descriptor_digest", "result_digest", "digest"})


def plain(row: RowMapping) -> dict[str, Any]:
    """Digests as hex, moments in UTC."""
    values = dict(row)
    for name in _HEX & values.keys():
        if values[name] is not None:
            values[name] = bytes(values[name]).hex()
    return {
        name: value.astimezone(UTC) if hasattr(value, "astimezone") and value is not None else value
        for name, value in values.items()
    }


_OPERATION = (
    *(
        operation.c[name]
        for name in ToolOperation.model_fields
        if name not in ("format", "cases", "wait_budget_ends_at")
    ),
    operation.c.budget_ends_at.label("wait_budget_ends_at"),
)


def _operations(connection: Connection, query: Select[Any]) -> list[ToolOperation]:
    rows = connection.execute(query).mappings().all()
    cases: dict[UUID, list[Case]] = {}
    table = reconciliation_case
    if rows:
        asked = (
            select(table)
            .where(table.c.operation_id.in_([row["id"] for row in rows]))
            .order_by(table.c.opened_at, table.c.id)
        )
        for case in connection.execute(asked).mappings():
            values = plain(case)
            cases.setdefault(values.pop("operation_id"), []).append(Case(**values))
    return [ToolOperation(**plain(row), cases=tuple(cases.get(row["id"], ()))) for row in rows]


def get_operation(connection: Connection, namespace: str, call_node_id: str) -> ToolOperation:
    """Raises NoSuchOperation."""
    query = select(*_OPERATION).where(operation.c.namespace == namespace, operation.c.call_node_id == call_node_id)
    found = _operations(connection, query)
    if not found:
        raise NoSuchOperation(
            f"there is no operation for call node {call_node_id!r} in namespace {namespace!r}.",
            next_step="`counterfoil list` shows what there is.",
        )
    return found[0]


def get_operation_by_id(connection: Connection, operation_id: UUID) -> ToolOperation:
    """Raises NoSuchOperation."""
    found = _operations(connection, select(*_OPERATION).where(operation.c.id == operation_id))
    if not found:
        raise NoSuchOperation(
            f"there is no operation {operation_id}.", next_step="`counterfoil list` shows what there is."
        )
    return found[0]


def get_operations_by_id(connection: Connection, ids: Iterable[UUID]) -> list[ToolOperation]:
    """Those of them that there are."""
    return _operations(connection, select(*_OPERATION).where(operation.c.id.in_(list(ids))))


def find_operations(
    connection: Connection, *, submission_key: UUID | None, task_id: str | None, target: str | None
) -> list[ToolOperation]:
    """By submission key, by the server's task id, or both; newest first, at most 100."""
    query = select(*_OPERATION).order_by(operation.c.created_at.desc(), operation.c.id.desc()).limit(100)
    for column, wanted in (
        (operation.c.submission_key, submission_key),
        (operation.c.task_id, task_id),
        (operation.c.target, target),
    ):
        if wanted is not None:
            query = query.where(column == wanted)
    return _operations(connection, query)


def list_operations(
    connection: Connection, *, namespace: str | None, states: Sequence[str], target: str | None, limit: int
) -> list[ToolOperation]:
    """Newest first."""
    query = select(*_OPERATION).order_by(operation.c.created_at.desc(), operation.c.id.desc()).limit(limit)
    if namespace is not None:
        query = query.where(operation.c.namespace == namespace)
    if states:
        query = query.where(operation.c.state.in_(states))
    if target is not None:
        query = query.where(operation.c.target == target)
    return _operations(connection, query)


_RECEIPT = select(terminal_receipt, operation_result.c.body.label("result_body")).join_from(
    terminal_receipt,
    operation_result,
    (operation_result.c.operation_id == terminal_receipt.c.operation_id)
    & terminal_receipt.c.result_digest.is_not(None),
    isouter=True,
)


def find_receipts(connection: Connection, namespace: str, call_node_ids: Sequence[str]) -> list[Receipt]:
    """The receipts that exist for these call nodes."""
    query = _RECEIPT.where(
        terminal_receipt.c.namespace == namespace, terminal_receipt.c.call_node_id.in_(call_node_ids)
    )
    return [Receipt(**plain(row)) for row in connection.execute(query).mappings()]


def find_receipt(connection: Connection, receipt_id: UUID) -> Receipt | None:
    row = connection.execute(_RECEIPT.where(terminal_receipt.c.id == receipt_id)).mappings().first()
    return None if row is None else Receipt(**plain(row))


def read_journal(connection: Connection, operation_id: UUID) -> list[JournalLine]:
    """The story of one operation, oldest line first."""
    query = select(journal).where(journal.c.operation_id == operation_id).order_by(journal.c.seq)
    lines = [plain(row) for row in connection.execute(query).mappings()]
    return [JournalLine(**{name: value for name, value in line.items() if name != "operation_id"}) for line in lines]
