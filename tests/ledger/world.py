"""One ledger and one worker's way through it, in the fewest words: hand in, claim, intend, bring events.

Imported as `counterfoil.tests.ledger.world`, so that the processes of the races find it as well.
"""

import dataclasses
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg

from counterfoil.ledger import epochs, events
from counterfoil.ledger.client import Client
from counterfoil.ledger.database import Database
from counterfoil.ledger.decision import Decision
from counterfoil.ledger.digest import sha256
from counterfoil.ledger.events import Event, Result
from counterfoil.ledger.intents import Denied, Granted, IntentRequest, Intents
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.rounds import Question
from counterfoil.ledger.rows import Evidence, Row
from counterfoil.ledger.states import Lane
from counterfoil.ledger.store import Answer, Lease, Store
from counterfoil.ledger.transition import Transitions
from counterfoil.ledger.work import Applied, Held, Item

POLICY = Policy(protocol="mcp-2026-07-28", key_lifetime_s=86400.0)
BODY = b'{"result":{"structuredContent":{"rows":3}}}'
RESULT = Result(sha256(BODY), "/result/structuredContent", BODY)


def dumped(event: Event) -> bytes:
    """An event as the body of evidence, for `interpret` to read again."""
    told = {"kind": type(event).__name__, **dataclasses.asdict(event)}
    return json.dumps(told, default=lambda value: value.hex() if isinstance(value, bytes) else str(value)).encode()


def interpret(_row: Row, evidence: Evidence) -> Event:
    told = json.loads(evidence.body)
    if "questions" in told:
        told["questions"] = tuple(
            Question(**one | {name: bytes.fromhex(one[name]) for name in ("params", "schema_digest")})
            for one in told["questions"]
        )
    made: Event = getattr(events, told.pop("kind"))(**told)
    return made


class World:
    """A worker of one epoch (for life), a door, a client; and the owner's eyes on every table."""

    def __init__(self, url: str, *, policy: Policy = POLICY, epoch: int | None = None) -> None:
        self.url = url
        self.policy = policy
        self.database = Database(url, fleet="main", pool_size=8)
        self.serve(epoch if epoch is not None else epochs.current_epoch(self.database, "main"))
        self.door = self._transitions(None)
        self._clients: list[Client] = []
        self._eyes: psycopg.Connection[Any] | None = None
        self.client = self.client_of()

    def serve(self, epoch: int) -> None:
        """Be a worker of this epoch, as one that starts now."""
        self.epoch = epoch
        self.store = Store(self.database, "main", epoch, self.policy_of)
        self.intents = Intents(self.database, "main", epoch, self.policy_of)
        self.transitions = self._transitions(epoch)

    def _transitions(self, epoch: int | None) -> Transitions:
        return Transitions(self.database, "main", epoch, interpret=interpret, policy_of=self.policy_of)

    def policy_of(self, _target: str, _tool: str) -> Policy:
        return self.policy

    def client_of(self, **arguments: str) -> Client:
        """Another producer's client, closed with this world."""
        self._clients.append(Client(self.url, **arguments))
        return self._clients[-1]

    def close(self) -> None:
        for open_one in (*self._clients, self._eyes):
            if open_one is not None:
                open_one.close()
        self.database.dispose()

    # -- a call's life -------------------------------------------------------------------------------------------------

    def opened(self, node: str = "run/1") -> UUID:
        """A call is handed in."""
        self.store.register_targets([("reports", "mcp-2026-07-28")])
        return self.client.submit("reports", "generate", {"month": "2026-10"}, call_node_id=node).id

    def claim(
        self, lane: Lane = Lane.SUBMIT, *, limit: int = 100, lease_s: float = 20.0, ahead_s: float = 0.0
    ) -> dict[UUID, Lease]:
        claimed = self.store.claim(lane, "reports", limit=limit, ahead_s=ahead_s, lease_s=lease_s)
        return {row.id: lease for lease, row in claimed}

    def claimed(self, node: str = "run/1") -> Lease:
        """Handed in, and its submit row leased."""
        operation_id = self.opened(node)
        return self.claim()[operation_id]

    def intend(
        self, lease: Lease, *, effect: str = "submit", attempt: int = 1, generation: int = 0
    ) -> Granted | Denied:
        """Ask for an intent on a lease."""
        return self.intend_all([lease], effect=effect, attempt=attempt, generation=generation)[0]

    def intend_all(
        self, leases: Iterable[Lease], *, effect: str = "submit", attempt: int = 1, generation: int = 0
    ) -> list[Granted | Denied]:
        digest = self.store.keep_policy(self.policy)
        return self.intents.open(
            [
                IntentRequest(
                    lease.operation_id,
                    effect,
                    lease.lane,
                    lease.token,
                    uuid.uuid4(),
                    attempt,
                    generation,
                    self.policy,
                    digest,
                    "mcp-2026-07-28",
                    "1",
                    b"d" * 32,
                )
                for lease in leases
            ]
        )

    def bring(
        self,
        operation_id: UUID,
        *brought: Event,
        lease: Lease | Held | None = None,
        lane: Lane | None = None,
        **more: Any,
    ) -> Applied:
        """Bring events for one operation, on a lease or without one."""
        token, kick = (None, 0) if lease is None else (lease.token, lease.kick)
        lane = lane or (lease.lane if lease is not None else Lane.POLL)
        return self.transitions.apply([Item(operation_id, lane, brought, token, kick, **more)])[0]

    def sent(self, node: str = "run/1") -> tuple[UUID, Lease, Granted]:
        """Handed in, claimed, and its submit intended: bytes may be on their way."""
        operation_id = self.opened(node)
        lease = self.claim()[operation_id]
        granted = self.intend(lease)
        assert isinstance(granted, Granted), granted
        return operation_id, lease, granted

    def working(self, node: str = "run/1", task_id: str = "t-1", *, interval_ms: int | None = 1000) -> UUID:
        """The server named the task. Nobody holds the poll row."""
        operation_id, lease, _ = self.sent(node)
        bound = events.TaskBound(1, task_id, "working", "2026-11-29T10:00:00Z", None, interval_ms)
        self.bring(operation_id, bound, lease=lease)
        return operation_id

    def ended(self, operation_id: UUID, result: Result | None = RESULT, **more: Any) -> Applied:
        return self.bring(operation_id, events.Ended(10**9, "completed", "completed", result), **more)

    def keep(
        self, operation_id: UUID, event: Event, *, kind: str = "submit", attempt: int = 1, generation: int = 0
    ) -> None:
        """What a server said, as evidence."""
        self.store.append_evidence([Answer(operation_id, kind, attempt, generation, None, 200, "{}", dumped(event))])

    # -- looking, as the owner
    # ---------------------------------------------------------------------------------------------

    def owner(self) -> psycopg.Connection[Any]:
        """A connection of the user who owns the database, outside of the app role."""
        plain = self.url.replace("postgresql+psycopg://", "postgresql://")
        return psycopg.connect(plain, autocommit=True)

    def sql(self, query: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """A statement as the owner of the schema."""
        if self._eyes is None:
            self._eyes = self.owner()
            self._eyes.execute("SET ROLE counterfoil_owner")
        cursor = self._eyes.execute(query, parameters)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []

    def one(self, operation_id: UUID, columns: str) -> Any:
        (row,) = self.sql(f"SELECT {columns} FROM counterfoil.operation WHERE id = %(id)s", {"id": operation_id})
        return row[0] if len(row) == 1 else row

    def state(self, operation_id: UUID) -> str:
        return str(self.one(operation_id, "state"))

    def wakes(self, operation_id: UUID) -> dict[str, dict[str, Any]]:
        """Wake rows by lane; `due_in_s` by the ledger's clock."""
        columns = ("lane", "kick", "lease_token", "lease_epoch", "claim_count", "read_seq", "due_in_s", "lease_left_s")
        query = (
            "SELECT lane, kick, lease_token, lease_epoch, claim_count, read_seq,"
            " extract(epoch FROM due_at - counterfoil.ledger_now())::float8,"
            " extract(epoch FROM lease_until - counterfoil.ledger_now())::float8"
            " FROM counterfoil.wake WHERE operation_id = %(id)s"
        )
        return {row[0]: dict(zip(columns, row, strict=True)) for row in self.sql(query, {"id": operation_id})}

    def cases(self, operation_id: UUID) -> list[tuple[str, str, bool]]:
        """(kind, code, open) of each case, closed ones first."""
        query = (
            "SELECT kind, code, closed_at IS NULL FROM counterfoil.reconciliation_case"
            " WHERE operation_id = %(id)s ORDER BY closed_at, id"
        )
        return [(row[0], row[1], row[2]) for row in self.sql(query, {"id": operation_id})]

    @contextmanager
    def acceptance_failing(self, sqlstate: str = "40P01") -> Iterator[None]:
        """Every receipt's insert fails meanwhile, as if the acceptance always were a deadlock's victim."""
        self.sql(
            "CREATE FUNCTION counterfoil.fail() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION 'in the way' USING ERRCODE = '{sqlstate}'; END $$"
        )
        self.sql(
            "CREATE TRIGGER fail BEFORE INSERT ON counterfoil.terminal_receipt"
            " FOR EACH ROW EXECUTE FUNCTION counterfoil.fail()"
        )
        yield
        self.sql("DROP TRIGGER fail ON counterfoil.terminal_receipt")
        self.sql("DROP FUNCTION counterfoil.fail()")

    def freeze(self) -> None:
        """Stop the ledger's clock; it goes on only by `pass_time`."""
        self.sql("INSERT INTO counterfoil.ledger_clock (frozen_at) VALUES (clock_timestamp())")

    def pass_time(self, seconds: float) -> None:
        self.sql(
            "UPDATE counterfoil.ledger_clock SET frozen_at = frozen_at + make_interval(secs => %(s)s)", {"s": seconds}
        )


def steps(applied: Applied) -> list[str]:
    """The states that an application went through."""
    return [step.target for answer in applied.answers if isinstance(answer, Decision) for step in answer.steps]
