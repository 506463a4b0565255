"""Rows as they come from the database: the cold identity of an operation, and the `Operation` that `decide()` looks
at."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, RowMapping, select

from .database import statement
from .operation import OpenCase, OpenIntent, Operation
from .policy import Policy
from .states import Outcome, State
from .tables import tool_policy

PolicyOf = Callable[[str, str], Policy]
"""(target, tool) -> the policy for operations that have none pinned yet (from the targets file)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One operation with its identity. `arguments` is None once a task is known (nobody may send them again)."""

    operation: Operation
    namespace: str
    call_node_id: str
    request_digest: bytes
    target: str
    tool: str
    principal: str
    submission_key: UUID
    arguments: bytes | None
    protocol: str | None
    tool_version: str | None
    descriptor_digest: bytes | None
    pinned: bool
    execution_epoch: int
    journal_seq: int

    @property
    def id(self) -> UUID:
        return self.operation.id


@dataclass(frozen=True, slots=True)
class Evidence:
    """One unconsumed answer, exact bytes, as its bearer stored it."""

    id: UUID
    operation_id: UUID
    kind: str
    attempt: int
    generation: int
    send_token: UUID | None
    epoch: int
    status: int
    headers: dict[str, str]
    body: bytes


_PLAIN = tuple(
    field.name
    for field in fields(Operation)
    if field.name not in ("id", "policy", "state", "outcome", "settle_as", "settle_left_s", "intents", "cases")
)


def read_rows(connection: Connection, ids: Iterable[UUID], policy_of: PolicyOf, *, lock: bool) -> list[Row]:
    """Operations with what is open beside them. `lock`: the second statement of a transition, after the epoch's."""
    wanted = sorted(set(ids))
    found = (
        connection.execute(statement("lock_operations" if lock else "read_operations"), {"ids": wanted})
        .mappings()
        .all()
    )
    if not found:
        return []
    intents, cases = _children(connection, wanted)
    policies = _policies(connection, {row["policy_digest"] for row in found if row["policy_digest"] is not None})
    rows = []
    for row in found:
        pinned = policies.get(row["policy_digest"])
        policy = pinned if pinned is not None else policy_of(row["target"], row["tool"])
        operation = _operation(row, policy, intents.get(row["id"], ()), cases.get(row["id"], ()))
        rows.append(_row(row, operation, pinned=pinned is not None))
    return rows


def _operation(row: RowMapping, policy: Policy, intents: Sequence[OpenIntent], cases: Sequence[OpenCase]) -> Operation:
    since_s = row["since_send_by_s"]
    return Operation(
        id=row["id"],
        policy=policy,
        state=State(row["state"]),
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        settle_as=State(row["settle_as"]) if row["settle_as"] else None,
        settle_left_s=0.0 if since_s is None else policy.settle_s - since_s,
        intents=tuple(intents),
        cases=tuple(cases),
        **{name: row[name] for name in _PLAIN},
    )


def _row(row: RowMapping, operation: Operation, *, pinned: bool) -> Row:
    return Row(
        operation=operation,
        pinned=pinned,
        **{
            name: row[name]
            for name in (
                "namespace",
                "call_node_id",
                "request_digest",
                "target",
                "tool",
                "principal",
                "submission_key",
                "arguments",
                "protocol",
                "tool_version",
                "descriptor_digest",
                "execution_epoch",
                "journal_seq",
            )
        },
    )


def _children(
    connection: Connection, ids: list[UUID]
) -> tuple[dict[UUID, tuple[OpenIntent, ...]], dict[UUID, tuple[OpenCase, ...]]]:
    intents: dict[UUID, tuple[OpenIntent, ...]] = {}
    cases: dict[UUID, tuple[OpenCase, ...]] = {}
    for child in connection.execute(statement("open_children"), {"ids": ids}).mappings():
        owner: Any = child["operation_id"]
        if child["sort"] == "case":
            cases[owner] = (*cases.get(owner, ()), OpenCase(child["kind"], child["code"], child["send_left_s"]))
        else:
            intent = OpenIntent(
                child["send_token"],
                child["kind"],
                child["attempt"],
                child["generation"],
                child["send_left_s"],
                child["answer_left_s"],
            )
            intents[owner] = (*intents.get(owner, ()), intent)
    return intents, cases


_KNOWN_POLICIES: dict[bytes, Policy] = {}
"""Pinned policies by digest. Content-addressed, so it can't be wrong; bounded by the number of policies a fleet ever
pins."""


def _policies(connection: Connection, digests: set[bytes]) -> dict[bytes | None, Policy]:
    missing = [digest for digest in digests if digest not in _KNOWN_POLICIES]
    if missing:
        query = select(tool_policy.c.digest, tool_policy.c.body).where(tool_policy.c.digest.in_(missing))
        for digest, body in connection.execute(query):
            _KNOWN_POLICIES[bytes(digest)] = Policy.model_validate_json(body)
    return {digest: _KNOWN_POLICIES[digest] for digest in digests}


def read_evidence(connection: Connection, ids: Iterable[UUID]) -> dict[UUID, list[Evidence]]:
    """Unconsumed evidence by operation, oldest first. Under the operations' locks."""
    found: dict[UUID, list[Evidence]] = {}
    for row in connection.execute(statement("unconsumed_evidence"), {"ids": sorted(set(ids))}).mappings():
        found.setdefault(row["operation_id"], []).append(Evidence(**row))
    return found


def with_operation(row: Row, operation: Operation) -> Row:
    return replace(row, operation=operation)
