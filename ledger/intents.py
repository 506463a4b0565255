"""Intents: committed per operation in the last moment before the first byte (SPEC section 1.3).

One transaction for all hooks that wait at the same time; each gets its own answer. Order of locks: epoch, operation,
wake. A request whose intent is not among the granted ones sends nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from .database import Database, statement
from .epochs import check_fence, refuse
from .errors import StaleEpoch
from .operation import Operation
from .policy import Policy
from .rows import PolicyOf, Row, read_rows
from .states import Lane, State
from .tables import control
from .tables import intent as intent_table


@dataclass(frozen=True, slots=True)
class IntentRequest:
    """What a holder is about to send, and the lease it rests on."""

    operation_id: UUID
    effect: str
    lane: Lane
    token: UUID
    send_token: UUID
    attempt: int
    generation: int
    policy: Policy
    policy_digest: bytes
    protocol: str
    tool_version: str | None = None
    descriptor_digest: bytes | None = None
    session_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Granted:
    """The intent is committed: its bytes may leave for `send_by_s` seconds, counted from before the statement."""

    send_token: UUID
    send_by_s: float


@dataclass(frozen=True, slots=True)
class Denied:
    send_token: UUID
    code: str
    why: str


class Intents:
    """Opens intents for one fleet and epoch, on a connection of its own."""

    def __init__(self, database: Database, fleet: str, epoch: int, policy_of: PolicyOf) -> None:
        self._database = database
        self._fleet = fleet
        self._epoch = epoch
        self._policy_of = policy_of

    def open(self, requests: Sequence[IntentRequest]) -> list[Granted | Denied]:
        """Commit the intents that may be committed; one answer a request, in order.

        Raises StaleEpoch (nothing was committed). A driver error leaves the outcome unknown: ask `was_committed`.
        """
        try:
            return self._database.again(lambda: self._transaction(requests))
        except StaleEpoch:
            refuse(self._database, self._fleet, self._epoch, "intent", [request.operation_id for request in requests])
            raise
        except IntegrityError:
            # Somebody else's open intent slipped in between two of ours: one by one, so that only the guilty one is
            # denied.
            if len(requests) == 1:
                return [Denied(requests[0].send_token, "E_INTENT_OPEN", "an intent of this effect is open already")]
            return [answer for request in requests for answer in self.open([request])]

    def _transaction(self, requests: Sequence[IntentRequest]) -> list[Granted | Denied]:
        with self._database.begin() as connection:
            check_fence(connection, self._fleet, self._epoch)
            rows = {
                row.id: row
                for row in read_rows(connection, [r.operation_id for r in requests], self._policy_of, lock=True)
            }
            leases = self._leases(connection, requests)
            create_on = connection.execute(select(control.c.create_on).where(control.c.fleet == self._fleet)).scalar()
            answers: list[Granted | Denied] = []
            granted: list[IntentRequest] = []
            for request in requests:
                refusal = _judge(request, rows.get(request.operation_id), leases, create_on=create_on is not False)
                if refusal is None:
                    granted.append(request)
                    answers.append(Granted(request.send_token, request.policy.send_by_s))
                else:
                    answers.append(Denied(request.send_token, *refusal))
            if granted:
                self._write(connection, granted)
        return answers

    def _leases(self, connection: Connection, requests: Sequence[IntentRequest]) -> set[tuple[UUID, str, UUID]]:
        """(operation, lane, token) of leases that are alive and of this epoch, locked."""
        found = connection.execute(statement("lock_wakes"), {"ids": [r.operation_id for r in requests]})
        return {(row[0], row[1], row[2]) for row in found if row[4] and row[3] == self._epoch}

    def _write(self, connection: Connection, granted: Sequence[IntentRequest]) -> None:
        connection.execute(
            statement("open_intents"),
            {
                "epoch": self._epoch,
                "send_tokens": [r.send_token for r in granted],
                "ids": [r.operation_id for r in granted],
                "effects": [r.effect for r in granted],
                "attempts": [r.attempt for r in granted],
                "generations": [r.generation for r in granted],
                "send_by_s": [r.policy.send_by_s for r in granted],
                "answer_by_s": [r.policy.answer_by_s for r in granted],
            },
        )
        pinned = connection.execute(
            statement("pin_intents"),
            {
                "epoch": self._epoch,
                "ids": [r.operation_id for r in granted],
                "effects": [r.effect for r in granted],
                "protocols": [r.protocol for r in granted],
                "tool_versions": [r.tool_version for r in granted],
                "descriptors": [r.descriptor_digest for r in granted],
                "policies": [r.policy_digest for r in granted],
                "sessions": [r.session_id for r in granted],
                "budgets_s": [r.policy.wait_budget_s for r in granted],
                "send_by_s": [r.policy.send_by_s for r in granted],
            },
        ).all()
        seqs = {row[0]: row[1] for row in pinned}
        connection.execute(
            statement("write_journal"),
            {
                "epoch": self._epoch,
                "actor": "worker",
                "ids": [r.operation_id for r in granted],
                "seqs": [seqs[r.operation_id] for r in granted],
                "events": ["intent" for _ in granted],
                "sources": [None for _ in granted],
                "targets": [None for _ in granted],
                "lanes": [str(r.lane) for r in granted],
                "codes": [None for _ in granted],
                "whys": [f"{r.effect}, attempt {r.attempt}, generation {r.generation}" for r in granted],
            },
        )

    def was_committed(self, send_token: UUID) -> bool:
        """After a commit of unknown outcome: is this intent there?"""
        with self._database.begin() as connection:
            query = select(intent_table.c.send_token).where(intent_table.c.send_token == send_token)
            return connection.execute(query).first() is not None


_MAY_SEND = {
    "submit": frozenset({State.SUBMITTING}),
    "cancel": frozenset({State.CANCEL_REQUESTED}),
    "answer": frozenset({State.INPUT_REQUIRED}),
}


def _judge(
    request: IntentRequest, row: Row | None, leases: set[tuple[UUID, str, UUID]], *, create_on: bool
) -> tuple[str, str] | None:
    """Why this intent may not be opened, read from the locked rows; None when it may."""
    if row is None:
        return "E_NOT_FOUND", "the operation is gone"
    op: Operation = row.operation
    if op.settle_as is not None or op.state not in _MAY_SEND[request.effect]:
        return "E_STATE_MOVED", f"the operation is {op.settle_as or op.state} now"
    if (request.operation_id, str(request.lane), request.token) not in leases:
        return "E_LEASE_LOST", "the lease is over or somebody else's"
    if op.cancel_generation != request.generation:
        return "E_GENERATION_MOVED", "a cancel was asked for meanwhile"
    if op.intent(request.effect) is not None:
        return "E_INTENT_OPEN", "an intent of this effect is open already"
    if request.effect == "submit":
        if op.attempt != request.attempt:
            return "E_STATE_MOVED", f"attempt {op.attempt} is due, not {request.attempt}"
        if not create_on and op.sent_attempt < op.attempt:
            return "E_CREATE_OFF", "new operations are switched off"
        if op.parked:
            return "E_CASE_OPEN", "a person has to speak first"
    if row.pinned and op.policy.digest() != request.policy_digest:
        return "E_POLICY_PINNED", "another policy is pinned for this operation"
    return None
