"""What people look at before they speak: open questions of tools, and cases with their evidence (SPEC sections 4, 7).

Reads only, on the primary, without a lock: a verdict or a reply is judged again in its own transaction.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, RowMapping, Select, func, select

from . import reads
from .errors import InputRefused
from .records import Case, Record, ToolOperation
from .rows import PolicyOf, read_rows
from .rules_people import offered
from .side_tables import input_round
from .tables import evidence, operation, reconciliation_case

TEXT_CHARS = 2000
"""Of a piece of evidence: enough to recognize it by."""


class InputView(Record):
    """One question that waits for a person. `message` and `request_schema` are a server's words: untrusted."""

    operation_id: UUID
    namespace: str
    call_node_id: str
    target: str
    tool: str
    principal: str
    task_id: str | None
    number: int
    method: str
    message: str | None
    request_schema: Any
    schema_digest: str
    state: str
    opened_at: datetime
    deadline_at: datetime | None


class EvidenceView(Record):
    """What a server said, as far as it can be shown. `status` 0: the answer was cut."""

    id: UUID
    kind: str
    attempt: int
    status: int
    received_at: datetime
    consumed: bool
    text: str


class CaseView(Record):
    """A case with what a person needs to settle it. `version` goes back with the verdict; `search`: what to look for on
    the server."""

    case: Case
    operation: ToolOperation
    version: int
    offered: tuple[str, ...]
    evidence: tuple[EvidenceView, ...]
    search: tuple[str, ...]


# -- questions -------------------------------------------------------------------------------------------------------

_INPUT = (
    select(
        input_round.c.operation_id,
        operation.c.namespace,
        operation.c.call_node_id,
        operation.c.target,
        operation.c.tool,
        operation.c.principal,
        operation.c.task_id,
        input_round.c.number,
        input_round.c.method,
        input_round.c.params,
        input_round.c.schema_digest,
        input_round.c.state,
        input_round.c.opened_at,
        operation.c.input_ends_at.label("deadline_at"),
    )
    .join(operation, operation.c.id == input_round.c.operation_id)
    .order_by(input_round.c.opened_at, input_round.c.operation_id, input_round.c.number)
)


def list_inputs(connection: Connection, fleet: str, *, namespace: str | None, limit: int) -> list[InputView]:
    """Questions that nobody has replied to, the oldest first."""
    query = _INPUT.where(
        operation.c.fleet == fleet, input_round.c.state == "open", operation.c.state == "INPUT_REQUIRED"
    ).limit(limit)
    if namespace is not None:
        query = query.where(operation.c.namespace == namespace)
    return [_input(row) for row in connection.execute(query).mappings()]


def get_input(connection: Connection, operation_id: UUID, number: int) -> InputView:
    """One round, whatever became of it. Raises InputRefused (E_NO_SUCH_ROUND)."""
    query = _INPUT.where(input_round.c.operation_id == operation_id, input_round.c.number == number)
    row = connection.execute(query).mappings().first()
    if row is None:
        raise InputRefused(
            f"operation {operation_id} has no round {number}.",
            code="E_NO_SUCH_ROUND",
            next_step="`counterfoil inputs list` shows what waits.",
        )
    return _input(row)


def _input(row: RowMapping) -> InputView:
    values = dict(row)
    params = json.loads(values.pop("params"))
    params = params if isinstance(params, dict) else {}
    message = params.get("message")
    return InputView(
        **values | {"schema_digest": bytes(values["schema_digest"]).hex()},
        message=message[:TEXT_CHARS] if isinstance(message, str) else None,
        request_schema=params.get("requestedSchema"),
    )


# -- cases -----------------------------------------------------------------------------------------------------------


def list_cases(
    connection: Connection,
    fleet: str,
    *,
    namespace: str | None = None,
    target: str | None = None,
    code: str | None = None,
    limit: int,
    policy_of: PolicyOf,
) -> list[CaseView]:
    """Open cases, the oldest first."""
    query = _cases().where(operation.c.fleet == fleet, reconciliation_case.c.closed_at.is_(None)).limit(limit)
    for column, wanted in (
        (operation.c.namespace, namespace),
        (operation.c.target, target),
        (reconciliation_case.c.code, code),
    ):
        if wanted is not None:
            query = query.where(column == wanted)
    return _views(connection, list(connection.execute(query).mappings()), policy_of)


def get_case(connection: Connection, case_id: UUID, *, policy_of: PolicyOf) -> CaseView:
    """One case, open or closed. Raises InputRefused (E_NO_SUCH_CASE)."""
    row = connection.execute(_cases().where(reconciliation_case.c.id == case_id)).mappings().first()
    if row is None:
        raise InputRefused(
            f"there is no case {case_id}.",
            code="E_NO_SUCH_CASE",
            next_step="`counterfoil cases list` shows what waits.",
        )
    return _views(connection, [row], policy_of)[0]


def _cases() -> Select[Any]:
    return (
        select(reconciliation_case, operation.c.journal_seq)
        .join(operation, operation.c.id == reconciliation_case.c.operation_id)
        .order_by(reconciliation_case.c.opened_at, reconciliation_case.c.id)
    )


def _views(connection: Connection, cases: Sequence[RowMapping], policy_of: PolicyOf) -> list[CaseView]:
    ids = {case["operation_id"] for case in cases}
    operations = {one.id: one for one in reads.get_operations_by_id(connection, ids)}
    rows = {row.id: row for row in read_rows(connection, ids, policy_of, lock=False)}
    said = _evidence(connection, ids)
    views = []
    for case in cases:
        values = reads.plain(case)
        id_, version = values.pop("operation_id"), values.pop("journal_seq")
        pieces = said.get(id_, ())
        kept = any(piece.kind == "result" for piece in pieces)
        view = CaseView(
            case=Case(**values),
            operation=operations[id_],
            version=version,
            offered=offered(rows[id_].operation, kept=kept) if case["closed_at"] is None else (),
            evidence=tuple(pieces),
            search=_search(operations[id_]),
        )
        views.append(view)
    return views


def _search(one: ToolOperation) -> tuple[str, ...]:
    words = (one.task_id, str(one.submission_key), one.call_node_id)
    return (*(word for word in words if word), f"{one.tool} from {one.created_at:%Y-%m-%d %H:%M:%S} UTC on")


def _evidence(connection: Connection, ids: Iterable[UUID]) -> dict[UUID, list[EvidenceView]]:
    table = evidence.c
    query = (
        select(
            table.id,
            table.operation_id,
            table.kind,
            table.attempt,
            table.status,
            table.received_at,
            table.consumed_at.is_not(None).label("consumed"),
            func.substring(table.body, 1, 4 * TEXT_CHARS).label("body"),
        )
        .where(table.operation_id.in_(list(ids)))
        .order_by(table.received_at, table.id)
    )
    found: dict[UUID, list[EvidenceView]] = {}
    for row in connection.execute(query).mappings():
        values = dict(row)
        id_, body = values.pop("operation_id"), values.pop("body")
        text = bytes(body).decode("utf-8", "replace")[:TEXT_CHARS]
        safe = "".join(character if character.isprintable() or character in "\n\t" else "\ufffd" for character in text)
        found.setdefault(id_, []).append(EvidenceView(**values, text=safe))
    return found


def kept_result(connection: Connection, operation_id: UUID) -> tuple[bytes, str] | None:
    """The newest result that could not be accepted by itself: exact bytes and the payload's pointer."""
    table = evidence.c
    query = (
        select(table.body, table.headers)
        .where(table.operation_id == operation_id, table.kind == "result")
        .order_by(table.received_at.desc(), table.id.desc())
        .limit(1)
    )
    found = connection.execute(query).first()
    return None if found is None else (bytes(found[0]), found[1]["pointer"])
