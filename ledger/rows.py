"""Rows as they come from the database: the cold identity of an operation, and the `Operation` that `decide()` looks
at."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select

from .database import execute
from .operation import OpenCase, OpenIntent, Operation
from .policy import Policy
from .rounds import Round
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
    replies: "tuple[Reply, ...]" = ()
    """What people said and this row's next request carries: one reply to a task, or all of the leg before."""

    @property
    def id(self) -> UUID:
        return self.operation.id


@dataclass(frozen=True, slots=True)
class Reply:
    """A person's word on one round, to be sent."""

    operation_id: UUID
    number: int
    key: str
    method: str
    reply_to: str
    content: bytes


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
    seq: int


_MADE = frozenset(
    ["id", "policy", "state", "outcome", "settle_as", "settle_left_s", "key_left_s", "intents", "cases", "rounds"]
)
"""Fields of an Operation that are more than a column."""

_PLAIN = tuple(one.name for one in fields(Operation) if one.name not in _MADE)
_COLD = tuple(one.name for one in fields(Row) if one.name not in ("operation", "pinned", "replies"))
_plain, _cold = attrgetter(*_PLAIN), attrgetter(*_COLD)


def read_rows(connection: Connection, ids: Iterable[UUID], policy_of: PolicyOf, *, lock: bool) -> list[Row]:
    """Operations with what is open beside them. `lock`: the second statement of a transition, after the epoch's."""
    wanted = sorted(set(ids))
    found = execute(connection, "lock_operations" if lock else "read_operations", {"ids": wanted}).fetchall()
    if not found:
        return []
    children = _children(connection, wanted)
    policies = pinned_policies(connection, {row.policy_digest for row in found if row.policy_digest is not None})
    rows = []
    for row in found:
        pinned = policies.get(row.policy_digest)
        policy = pinned if pinned is not None else policy_of(row.target, row.tool)
        operation = _operation(row, policy, children.get(row.id, _Children()))
        rows.append(_row(row, operation, pinned=pinned is not None))
    return rows if lock else _with_replies(connection, rows)


def _with_replies(connection: Connection, rows: list[Row]) -> list[Row]:
    """Claimers need what people said to send it; for most rows nobody said anything."""
    replied = [row.id for row in rows if row.operation.rounds and not row.operation.over]
    if not replied:
        return rows
    found: dict[UUID, tuple[Reply, ...]] = {}
    for line in execute(connection, "read_replies", {"ids": replied}):
        found[line.operation_id] = (*found.get(line.operation_id, ()), Reply(*line))
    return [replace(row, replies=found.get(row.id, ())) for row in rows]


@dataclass(slots=True)
class _Children:
    intents: list[OpenIntent] = field(default_factory=list)
    cases: list[OpenCase] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)


def _operation(row: Any, policy: Policy, children: _Children) -> Operation:
    since_s, used_s = row.since_send_by_s, row.since_first_intent_s
    return Operation(
        id=row.id,
        policy=policy,
        state=State(row.state),
        outcome=Outcome(row.outcome) if row.outcome else None,
        settle_as=State(row.settle_as) if row.settle_as else None,
        settle_left_s=0.0 if since_s is None else policy.settle_s - since_s,
        key_left_s=None if used_s is None else policy.key_lifetime_s - used_s,
        intents=tuple(children.intents),
        cases=tuple(children.cases),
        rounds=tuple(sorted(children.rounds, key=lambda one: one.number)),
        **dict(zip(_PLAIN, _plain(row), strict=True)),
    )


def _row(row: Any, operation: Operation, *, pinned: bool) -> Row:
    return Row(operation=operation, pinned=pinned, **dict(zip(_COLD, _cold(row), strict=True)))


def _children(connection: Connection, ids: list[UUID]) -> dict[UUID, _Children]:
    found: dict[UUID, _Children] = {}
    for child in execute(connection, "open_children", {"ids": ids}):
        mine = found.setdefault(child.operation_id, _Children())
        if child.sort == "case":
            mine.cases.append(OpenCase(child.kind, child.code, child.send_left_s))
        elif child.sort == "round":
            mine.rounds.append(Round(child.attempt, child.kind, child.code, child.generation, int(child.answer_left_s)))
        else:
            mine.intents.append(
                OpenIntent(
                    child.send_token,
                    child.kind,
                    child.attempt,
                    child.generation,
                    child.send_left_s,
                    child.answer_left_s,
                )
            )
    return found


_KNOWN_POLICIES: dict[bytes, Policy] = {}
"""Pinned policies by digest. Content-addressed, so it can't be wrong; bounded by the number of policies a fleet ever
pins."""


def pinned_policies(connection: Connection, digests: set[bytes]) -> dict[bytes | None, Policy]:
    """Policies by digest, as they were pinned."""
    missing = [digest for digest in digests if digest not in _KNOWN_POLICIES]
    if missing:
        query = select(tool_policy.c.digest, tool_policy.c.body).where(tool_policy.c.digest.in_(missing))
        for digest, body in connection.execute(query):
            _KNOWN_POLICIES[bytes(digest)] = Policy.model_validate_json(body)
    return {digest: _KNOWN_POLICIES[digest] for digest in digests}


def read_evidence(connection: Connection, ids: Iterable[UUID]) -> dict[UUID, list[Evidence]]:
    """Unconsumed evidence by operation, oldest first. Under the operations' locks."""
    found: dict[UUID, list[Evidence]] = {}
    for row in execute(connection, "unconsumed_evidence", {"ids": sorted(set(ids))}):
        found.setdefault(row.operation_id, []).append(Evidence(*row))
    return found


def with_operation(row: Row, operation: Operation) -> Row:
    return replace(row, operation=operation)
