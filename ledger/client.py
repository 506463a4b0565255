"""The producer's side: hand in a call, wait for its receipt, take what is ready. Needs the ledger only, no broker."""

import asyncio
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from . import reads
from .database import NO_SCHEMA, Database, driver, execute, sqlstate, statement
from .decision import Refusal
from .digest import arguments_text, checked_name, request_digest, submission_key
from .errors import (
    CallNodeConflict,
    CounterfoilError,
    CreateStopped,
    InputRefused,
    LedgerUnavailable,
    NotSelected,
    StillRunning,
)
from .events import CancelAsked
from .ids import uuid7
from .location import default_database_url
from .notices import Notice, acknowledge_notices, take_notices
from .outbox import acknowledge, take_ready
from .policy import Policy
from .records import JournalLine, Ready, Receipt, ToolOperation
from .states import Lane, State
from .transition import Transitions
from .work import Item

if TYPE_CHECKING:
    from sqlalchemy.orm import Session  # a third of a producer's start otherwise

Transaction: TypeAlias = "Session | Connection | psycopg.Connection[Any]"
"""A producer's own transaction: SQLAlchemy's Session or Connection, or a psycopg connection."""

_NOT_YET: Mapping[str, Any] = {
    **dict.fromkeys(("tool_version", "descriptor_digest", "protocol", "task_id", "server_status", "remote_created_at")),
    **dict.fromkeys(("ttl_ms", "interval_ms", "wait_budget_ends_at", "outcome", "error_code", "result_digest")),
}
"""What an operation has only after it was opened."""

_FINE = frozenset({"opened", "same", "not_selected"})
_FIRST_LOOK_S = 0.05
_SLOWEST_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Call:
    """One call to hand in: what `submit_in` takes several of."""

    target: str
    tool: str
    arguments: Mapping[str, object]
    call_node_id: str


class Client:
    """Calls of one namespace, on behalf of one principal.

    A good `call_node_id` is what your runtime computes again after a crash: run + step (`"run-42/step-3"`). Never an
    attempt number, a timestamp or a random id: those would make a second call out of a repeat. The same call node
    with the same request is the same operation; with another request it is refused (E_CALL_NODE_CONFLICT).

    `database_url` defaults to COUNTERFOIL_DATABASE_URL, then to the development stack of this folder. Safe to share
    between threads, not over a fork. A client lives through epoch bumps: it always takes the ledger's current epoch.
    """

    def __init__(
        self,
        database_url: str | None = None,
        *,
        namespace: str = "default",
        principal: str = "default",
        fleet: str = "main",
    ) -> None:
        self.namespace = checked_name("namespace", namespace)
        self.principal = checked_name("principal", principal)
        self.fleet = checked_name("fleet", fleet)
        self._database = Database(database_url or default_database_url(), fleet=fleet)
        self._ledger_id: UUID | None = None

    # -- handing in --------------------------------------------------------------------------------------------------

    def submit(self, target: str, tool: str, arguments: Mapping[str, object], *, call_node_id: str) -> ToolOperation:
        """Hand a call in and return its operation. A repeat returns the operation that is there already.

        Raises InputRefused (with its code), CallNodeConflict, CreateStopped, NotSelected, LedgerUnavailable. On any
        error nothing is half-written; NotSelected is a recorded answer.
        """
        with self._database.autocommit() as connection:
            # One statement is its own transaction: handed in and committed in one round trip.
            plain = driver(connection)
            if self._ledger_id is None:
                self._know_ledger(plain)
            asked = self._door_arguments(Call(target, tool, arguments, call_node_id))
            (answer,) = self._open(plain, [asked])
            if answer.verdict == "opened":
                return self._as_opened(asked, answer)
            if answer.operation_id is not None:
                return reads.get_operation_by_id(connection, answer.operation_id)
        raise NotSelected(
            f"call node {call_node_id!r} is not selected for this fleet.",
            next_step="Run it on the path that ran it before; this answer stays the same for this call node.",
        )

    def submit_in(self, transaction: Transaction, calls: Iterable[Call]) -> list[UUID | None]:
        """Hand calls in inside the producer's own transaction: it only inserts, and lives or dies with that
        transaction.

        Returns the operations' ids in the order given; None for a call node that is not selected (canary, shadow),
        which you may act on once your transaction has committed. Rows are opened in the order of their call nodes, so
        that two producers can't deadlock. Raises as `submit`; a serialization failure (40001, only in REPEATABLE READ
        or above) is E_SERIALIZATION: run your transaction again.
        """
        wanted = list(calls)
        if not wanted:
            return []
        if self._ledger_id is None:
            with _savepoint(transaction):  # where there is no ledger, the producer's transaction goes on
                self._know_ledger(transaction)
        # Before the savepoint: with 2,000 calls to prepare after it, a transaction stood still for its whole 2 s.
        asked = [self._door_arguments(call) for call in wanted]
        with _savepoint(transaction):
            return [answer.operation_id for answer in self._open(transaction, asked)]

    def _know_ledger(self, transaction: Transaction) -> None:
        self._ledger_id = _all(transaction, "ledger_id", {})[0][0]

    def _open(self, transaction: Transaction, asked: Sequence[dict[str, Any]]) -> list[Any]:
        """The statement: its row for each call, in the order given. A refusal raises; it is the caller's to undo what
        else the statement did."""
        wanted = sorted(enumerate(asked), key=lambda numbered: numbered[1]["node"])
        arrays = {f"{name}s": [arguments[name] for _, arguments in wanted] for name in asked[0]}
        shared = {"fleet": self.fleet, "namespace": self.namespace, "principal": self.principal}
        opened = _all(transaction, "open_operations", arrays | shared)
        refused = next((row for row in opened if row.verdict not in _FINE), None)
        if refused is not None:
            raise self._refused(transaction, refused.verdict, wanted[refused.place - 1][1])
        answers = {wanted[row.place - 1][0]: row for row in opened}
        return [answers[index] for index in range(len(wanted))]

    def _as_opened(self, asked: Mapping[str, Any], answer: Any) -> ToolOperation:
        """The operation as this call has just made it: what nobody has negotiated, sent or heard yet is not there."""
        at = answer.opened_at.astimezone(UTC)
        return ToolOperation(
            id=asked["id"],
            namespace=self.namespace,
            call_node_id=asked["node"],
            request_digest=asked["digest"].hex(),
            target=asked["target"],
            tool=asked["tool"],
            principal=self.principal,
            submission_key=asked["key"],
            state=State.SUBMITTING.value,
            attempt=1,
            input_round=0,
            cancel_generation=0,
            execution_epoch=answer.execution_epoch,
            created_at=at,
            updated_at=at,
            **_NOT_YET,
        )

    def _door_arguments(self, call: Call) -> dict[str, Any]:
        """Everything is checked before the first statement, so a refused input leaves the transaction untouched."""
        node = checked_name("call node", call.call_node_id)
        target, tool = checked_name("target", call.target), checked_name("tool", call.tool)
        body = arguments_text(call.arguments)
        digest = request_digest(target, tool, body, self.principal)
        assert self._ledger_id is not None
        return {
            "id": uuid7(),
            "node": node,
            "digest": digest,
            "target": target,
            "tool": tool,
            "body": body,
            "key": submission_key(self._ledger_id, self.namespace, node, digest),
        }

    def _refused(self, transaction: Transaction, verdict: str, asked: Mapping[str, Any]) -> CounterfoilError:
        if verdict == "conflict":
            return CallNodeConflict(
                f"call node {asked['node']!r} already stands for another request.",
                next_step="A call node means one request for ever; use the id of this step, not of its neighbour.",
            )
        if verdict == "create_off":
            return CreateStopped(
                "new operations are switched off.", next_step="What is in flight goes on; ask whoever runs the fleet."
            )
        if verdict == "draining":
            return CreateStopped(
                f"the protocol of target {asked['target']!r} takes no new calls.",
                code="E_ADAPTER_DRAINING",
                next_step="What is in flight goes on; `counterfoil adapters list` tells why.",
            )
        if verdict == "no_target":
            found = _all(transaction, "known_targets", {"fleet": self.fleet})
            known = sorted(row[0] for row in found)
            near = get_close_matches(asked["target"], known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known[:10]) or 'none'}."
            return InputRefused(
                f"no worker has announced a target {asked['target']!r}.",
                code="E_TARGET_UNKNOWN",
                next_step=f"{hint} Targets come from the workers' targets file; start one with `counterfoil worker`.",
            )
        if verdict == "other_fleet":
            return InputRefused(
                f"namespace {self.namespace!r} belongs to another fleet.",
                code="E_NAMESPACE_TAKEN",
                next_step="Use that fleet's client.",
            )
        return InputRefused(
            f"there is no fleet {self.fleet!r}.", code="E_FLEET_UNKNOWN", next_step="The default is `main`."
        )

    # -- waiting -----------------------------------------------------------------------------------------------------

    def get(self, call_node_id: str) -> ToolOperation:
        """The operation of a call node as it stands, with its cases. Raises NoSuchOperation."""
        with self._database.autocommit() as connection:
            return reads.get_operation(connection, self.namespace, call_node_id)

    def receipt(self, call_node_id: str) -> Receipt | None:
        """The receipt of a call node, None while there is none."""
        with self._database.autocommit() as connection:
            return next(iter(reads.find_receipts(connection, self.namespace, [call_node_id])), None)

    def wait(self, call_node_id: str, timeout_s: float | None = None) -> Receipt:
        """Wait for the receipt. Raises StillRunning after `timeout_s`: nothing is changed by that, wait again
        whenever you like."""
        return self._wait(call_node_id, timeout_s, threading.Event())

    def _wait(self, call_node_id: str, timeout_s: float | None, given_up: threading.Event) -> Receipt:
        # A caller's patience is local time: nothing in the ledger hangs on it.
        end_s = None if timeout_s is None else time.monotonic() + timeout_s  # noqa: TID251
        look_s = _FIRST_LOOK_S
        while True:
            if (receipt := self.receipt(call_node_id)) is not None:
                return receipt
            left_s = look_s if end_s is None else end_s - time.monotonic()  # noqa: TID251
            if left_s <= 0 or given_up.wait(min(look_s, left_s)):
                operation = self.get(call_node_id)
                raise StillRunning(
                    f"call node {call_node_id!r} is {operation.state}; it goes on.",
                    next_step="Wait again with the same call node; nothing was changed.",
                )
            look_s = min(look_s * 1.5, _SLOWEST_LOOK_S)

    def call(
        self,
        target: str,
        tool: str,
        arguments: Mapping[str, object],
        *,
        call_node_id: str,
        timeout_s: float | None = None,
    ) -> Receipt:
        """`submit` and `wait`. After StillRunning (or a crash) call again with the same call node: it finds the same
        operation."""
        self.submit(target, tool, arguments, call_node_id=call_node_id)
        return self.wait(call_node_id, timeout_s)

    async def acall(
        self,
        target: str,
        tool: str,
        arguments: Mapping[str, object],
        *,
        call_node_id: str,
        timeout_s: float | None = None,
    ) -> Receipt:
        """`call` on a thread. Cancelling the awaiting task stops the waiting and changes nothing else."""
        given_up = threading.Event()

        def work() -> Receipt:
            self.submit(target, tool, arguments, call_node_id=call_node_id)
            return self._wait(call_node_id, timeout_s, given_up)

        try:
            return await asyncio.to_thread(work)
        finally:
            given_up.set()

    # -- cancelling --------------------------------------------------------------------------------------------------

    def cancel(self, call_node_id: str, reason: str = "") -> ToolOperation:
        """Ask for a cancel and return the operation as it then stands. It is a request: only the receipt says who won
        (SPEC section 5). A repeat is the same cancel.

        Raises NoSuchOperation, and CounterfoilError with E_ALREADY_OVER or E_CANNOT_CANCEL; nothing is changed then.
        """
        operation = self.get(call_node_id)
        doors = Transitions(
            self._database, self.fleet, None, interpret=None, policy_of=_no_policy, actor=self.principal
        )
        event = CancelAsked(reason[:200] or f"asked for by {self.principal}")
        (applied,) = doors.apply([Item(operation.id, Lane.DOOR, (event,))])
        refusal = next((answer for answer in applied.answers if isinstance(answer, Refusal)), None)
        if refusal is not None:
            raise CounterfoilError(
                f"{refusal.why}.",
                code=refusal.code,
                next_step="`counterfoil get` shows how it stands; nothing was changed by this.",
            )
        return self.get(call_node_id)

    # -- taking what is ready ----------------------------------------------------------------------------------------

    def ready(self, limit: int = 100, lease_s: float = 60.0) -> list[Ready]:
        """Receipts that nobody has acknowledged, leased to you for `lease_s`. At least once: dedupe by `Ready.id`."""
        with self._database.begin() as connection:
            return take_ready(connection, self.namespace, limit=limit, lease_s=lease_s)

    def ack(self, ids: Sequence[UUID]) -> int:
        """Acknowledge ready rows by id; returns how many were open."""
        with self._database.begin() as connection:
            return acknowledge(connection, self.namespace, ids)

    def ack_in(self, transaction: Transaction, ids: Sequence[UUID]) -> int:
        """Acknowledge inside your own transaction, so that your progress and the acknowledgement are one fact."""
        return len(_all(transaction, "ack_ready", {"namespace": self.namespace, "ids": list(ids)}))

    def notices(self, limit: int = 100, lease_s: float = 60.0) -> list[Notice]:
        """What calls that are still waiting want you to know: a person must answer, or settle a case. A notice ends
        nothing. At least once: dedupe by `Notice.id`."""
        with self._database.begin() as connection:
            return take_notices(connection, self.namespace, limit=limit, lease_s=lease_s)

    def ack_notices(self, ids: Sequence[UUID]) -> int:
        """Acknowledge notices by id; returns how many were open."""
        with self._database.begin() as connection:
            return acknowledge_notices(connection, self.namespace, ids)

    # -- looking -----------------------------------------------------------------------------------------------------

    def operations(
        self, *, states: Sequence[str] = (), target: str | None = None, limit: int = 50, all_namespaces: bool = False
    ) -> list[ToolOperation]:
        """Operations, newest first."""
        with self._database.autocommit() as connection:
            return reads.list_operations(
                connection,
                namespace=None if all_namespaces else self.namespace,
                states=states,
                target=target,
                limit=limit,
            )

    def find(
        self, *, submission_key: UUID | None = None, task_id: str | None = None, target: str | None = None
    ) -> list[ToolOperation]:
        """Operations of any namespace by submission key or by the server's task id (SPEC section 7)."""
        with self._database.autocommit() as connection:
            return reads.find_operations(connection, submission_key=submission_key, task_id=task_id, target=target)

    def journal(self, call_node_id: str) -> list[JournalLine]:
        """The story of a call node's operation. Raises NoSuchOperation."""
        with self._database.autocommit() as connection:
            return reads.read_journal(connection, reads.get_operation(connection, self.namespace, call_node_id).id)

    def close(self) -> None:
        """Close the connections. The client can be used again."""
        self._database.dispose()


def _no_policy(_target: str, _tool: str) -> Policy:
    """A producer has no targets file: what was never pinned was never sent, and nothing of its policy matters here."""
    return Policy(protocol="unknown")


def _all(transaction: Transaction, name: str, arguments: Mapping[str, Any]) -> list[Any]:
    """Run `sql/<name>.sql` in whatever transaction the producer has; errors keep their cause."""
    try:
        if isinstance(transaction, psycopg.Connection):
            return execute(transaction, name, arguments).fetchall()
        return list(transaction.execute(statement(name), dict(arguments)).all())
    except (DBAPIError, psycopg.Error) as error:
        if sqlstate(error) == "40001":
            raise CounterfoilError(
                "your transaction can't be serialized with another one.",
                code="E_SERIALIZATION",
                next_step="Roll back and run your transaction again; the same call nodes give the same operations.",
            ) from error
        if sqlstate(error) in NO_SCHEMA:
            raise LedgerUnavailable(
                "this database has no ledger, or one of an older release.",
                code="E_SCHEMA",
                next_step="Run `counterfoil db upgrade`.",
            ) from error
        raise


def _savepoint(transaction: Transaction) -> AbstractContextManager[object]:
    """What is refused inside leaves nothing behind in the producer's transaction."""
    if not isinstance(transaction, psycopg.Connection):
        return transaction.begin_nested()
    if not transaction.autocommit and transaction.info.transaction_status is TransactionStatus.IDLE:
        # psycopg's block commits where it finds no transaction open: the producer's must be there first.
        transaction.execute("SELECT")
    return transaction.transaction()
