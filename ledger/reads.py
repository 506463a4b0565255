"""Reads for people and producers: operations, receipts, cases, journals. On the primary, no lock, no fence."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, RowMapping, Select, select

from .database import execute
from .errors import NoSuchOperation
from .records import Case, JournalLine, Receipt, ToolOperation
from .tables import journal, operation, operation_result, terminal_receipt

_HEX = frozenset({"request_digest", "descriptor_digest", "result_digest", "digest"})


def plain(row: Mapping[str, Any] | RowMapping) -> dict[str, Any]:
    """Digests as hex, moments in UTC."""
    values = dict(row)
    for name in _HEX & values.keys():
        if values[name] is not None:
            values[name] = bytes(values[name]).hex()
    return {
        name: value.astimezone(UTC) if hasattr(value, "astimezone") and value is not None else value
        for name, value in values.items()
    }


def get_operations_by_id(connection: Connection, ids: Iterable[UUID]) -> list[ToolOperation]:
    """Those of them that there are, in the order given."""
    found = [plain(row._asdict()) for row in execute(connection, "show_operations", {"ids": list(ids)})]
    asked = [values["id"] for values in found if values.pop("asked")]
    cases: dict[UUID, list[Case]] = {}
    if asked:
        for row in execute(connection, "show_cases", {"ids": asked}):
            values = plain(row._asdict())
            cases.setdefault(values.pop("operation_id"), []).append(Case(**values))
    return [ToolOperation(**values, cases=tuple(cases.get(values["id"], ()))) for values in found]


def get_operation(connection: Connection, namespace: str, call_node_id: str) -> ToolOperation:
    """Raises NoSuchOperation."""
    found = _found(connection, _IDS.where(operation.c.namespace == namespace, operation.c.call_node_id == call_node_id))
    if not found:
        raise NoSuchOperation(
            f"there is no operation for call node {call_node_id!r} in namespace {namespace!r}.",
            next_step="`counterfoil list` shows what there is.",
        )
    return found[0]


def get_operation_by_id(connection: Connection, operation_id: UUID) -> ToolOperation:
    """Raises NoSuchOperation."""
    found = get_operations_by_id(connection, [operation_id])
    if not found:
        raise NoSuchOperation(
            f"there is no operation {operation_id}.", next_step="`counterfoil list` shows what there is."
        )
    return found[0]


def find_operations(
    connection: Connection, *, submission_key: UUID | None, task_id: str | None, target: str | None
) -> list[ToolOperation]:
    """By submission key, by the server's task id, or both; newest first, at most 100."""
    query = _NEWEST.limit(100)
    for column, wanted in (
        (operation.c.submission_key, submission_key),
        (operation.c.task_id, task_id),
        (operation.c.target, target),
    ):
        if wanted is not None:
            query = query.where(column == wanted)
    return _found(connection, query)


def list_operations(
    connection: Connection, *, namespace: str | None, states: Sequence[str], target: str | None, limit: int
) -> list[ToolOperation]:
    """Newest first."""
    query = _NEWEST.limit(limit)
    if namespace is not None:
        query = query.where(operation.c.namespace == namespace)
    if states:
        query = query.where(operation.c.state.in_(states))
    if target is not None:
        query = query.where(operation.c.target == target)
    return _found(connection, query)


_IDS = select(operation.c.id)
_NEWEST = _IDS.order_by(operation.c.created_at.desc(), operation.c.id.desc())


def _found(connection: Connection, query: Select[Any]) -> list[ToolOperation]:
    return get_operations_by_id(connection, [row.id for row in connection.execute(query)])


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
