"""Intents: committed per operation in the last moment before the first byte (SPEC section 1.3).

One transaction for all hooks that wait at the same time; each gets its own answer. Order of locks: epoch, operation,
wake. A request whose intent is not among the granted ones sends nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import psycopg
from sqlalchemy import Connection, select

from .database import Database, execute
from .epochs import check_fence, refuse
from .errors import StaleEpoch
from .operation import Operation
from .policy import Policy
from .rows import PolicyOf, Row, read_rows
from .states import Lane, State
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
        except psycopg.IntegrityError:
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
            switches = self._switches(connection)
            answers: list[Granted | Denied] = []
            granted: list[IntentRequest] = []
            for request in requests:
                refusal = _judge(request, rows.get(request.operation_id), leases, switches)
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
        found = execute(connection, "lock_wakes", {"ids": [r.operation_id for r in requests]})
        return {(row[0], row[1], row[2]) for row in found if row[4] and row[3] == self._epoch}

    def _switches(self, connection: Connection) -> "_Switches":
        """What people switched off, read under the fence: a switch that was committed before the bump it came with is
        seen here (SPEC section 8)."""
        ((create_on, shut),) = execute(connection, "read_switches", {"fleet": self._fleet})
        return _Switches(create_on, frozenset(shut))

    def _write(self, connection: Connection, granted: Sequence[IntentRequest]) -> None:
        execute(
            connection,
            "open_intents",
            {
                "epoch": self._epoch,
                "ids": [r.operation_id for r in granted],
                "send_tokens": [r.send_token for r in granted],
                "effects": [r.effect for r in granted],
                "lanes": [str(r.lane) for r in granted],
                "attempts": [r.attempt for r in granted],
                "generations": [r.generation for r in granted],
                "protocols": [r.protocol for r in granted],
                "tool_versions": [r.tool_version for r in granted],
                "descriptors": [r.descriptor_digest for r in granted],
                "policies": [r.policy_digest for r in granted],
                "sessions": [r.session_id for r in granted],
                "budgets_s": [r.policy.wait_budget_s for r in granted],
                "send_by_s": [r.policy.send_by_s for r in granted],
                "answer_by_s": [r.policy.answer_by_s for r in granted],
            },
        )

    def was_committed(self, send_token: UUID) -> bool:
        """After a commit of unknown outcome: is this intent there?"""
        with self._database.begin() as connection:
            query = select(intent_table.c.send_token).where(intent_table.c.send_token == send_token)
            return connection.execute(query).first() is not None


@dataclass(frozen=True, slots=True)
class _Switches:
    create_on: bool
    shut: frozenset[str]
    """Protocol versions that take no new submits."""


KEY_MARGIN_S = 5.0
"""Clocks of server and ledger differ, and a byte takes its time: a key that nearly ran out has run out."""

_MAY_SEND = {
    "submit": frozenset({State.SUBMITTING}),
    "replay": frozenset({State.SUBMISSION_UNKNOWN}),
    "cancel": frozenset({State.CANCEL_REQUESTED}),
    "answer": frozenset({State.INPUT_REQUIRED}),
}


def _judge(
    request: IntentRequest, row: Row | None, leases: set[tuple[UUID, str, UUID]], switches: _Switches
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
    if request.effect in _JUDGES:
        refusal = _JUDGES[request.effect](request, op, switches)
        if refusal is not None:
            return refusal
    if row.pinned and op.policy.digest() != request.policy_digest:
        return "E_POLICY_PINNED", "another policy is pinned for this operation"
    return None


def _judge_submit(request: IntentRequest, op: Operation, switches: _Switches) -> tuple[str, str] | None:
    if op.attempt != request.attempt:
        return "E_STATE_MOVED", f"attempt {op.attempt} is due, not {request.attempt}"
    if op.parked:
        return "E_CASE_OPEN", "a person has to speak first"
    if op.cancel_generation > 0:
        return "E_STATE_MOVED", "a cancel was asked for: nothing is sent for it any more"
    if op.sent_attempt < op.attempt:  # a next leg of an attempt is no new submit
        if not switches.create_on:
            return "E_CREATE_OFF", "new operations are switched off"
        if request.protocol in switches.shut:
            return "E_ADAPTER_DRAINING", f"{request.protocol} takes no new submits"
    if op.attempt > 1 and op.policy.absence == "unique":
        return _judge_key(op)
    return None


def _judge_replay(_request: IntentRequest, op: Operation, _switches: _Switches) -> tuple[str, str] | None:
    return ("E_CASE_OPEN", "a person has to speak first") if op.parked else _judge_key(op)


def _judge_key(op: Operation) -> tuple[str, str] | None:
    """Judged here and not at the claim: a bucket may be closed for a minute in between, and a key that the server has
    forgotten makes a new operation (SPEC section 7)."""
    if op.key_left_s is None or op.key_left_s <= op.policy.send_by_s + KEY_MARGIN_S:
        return "E_KEY_EXPIRED", "the server may have forgotten the key"
    return None


def _judge_answer(request: IntentRequest, op: Operation, _switches: _Switches) -> tuple[str, str] | None:
    if not any(one.number == request.attempt and one.state == "replied" for one in op.rounds):
        return "E_STATE_MOVED", f"round {request.attempt} waits for no reply of ours"
    return None


_JUDGES = {"submit": _judge_submit, "replay": _judge_replay, "answer": _judge_answer}
"""What is asked of one effect beside what is asked of all."""
