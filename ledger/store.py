"""The worker's side of the ledger: claims, leases, evidence, planning. Short transactions, no wire in sight.

Everything here belongs to one fleet and one epoch, read once when the process started and kept for life.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert

from .database import Database, execute
from .errors import StaleEpoch
from .ids import uuid7
from .policy import Policy
from .rows import PolicyOf, Row, read_rows
from .states import Lane
from .tables import operation, target_state, tool_descriptor, tool_policy

EVIDENCE_GRACE_S = 2.0
"""A living bearer consumes its own evidence well within this; afterwards anybody does."""

MONTHS_AHEAD = 2
"""A fleet that stands still for so long finds its months missing, and writes into the rest partition."""

QUARANTINE_AFTER = 5
"""Claims in a row without an applied outcome."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One claimed wake row. `due_in_s` may be negative (overdue); the lease runs from the due moment."""

    operation_id: UUID
    lane: Lane
    token: UUID
    kick: int
    read_seq: int
    claim_count: int
    due_in_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said, to be kept: exact bytes with status and the headers that matter."""

    operation_id: UUID
    kind: str
    attempt: int
    generation: int
    send_token: UUID | None
    status: int
    headers: str
    body: bytes
    seq: int = 0
    """The sequence of the reading that brought it, where one did."""


@dataclass(frozen=True, slots=True)
class Due:
    """`count` rows are due; `later_s`: when the last one is that will be within the look-ahead, None where none is."""

    lane: Lane
    target: str
    count: int
    later_s: float | None = None


@dataclass(frozen=True, slots=True)
class Renewed:
    kick: int
    read_seq: int


class Store:
    """Wake rows and evidence for one worker process."""

    def __init__(self, database: Database, fleet: str, epoch: int, policy_of: PolicyOf) -> None:
        self.database = database
        self.fleet = fleet
        self.epoch = epoch
        self._policy_of = policy_of

    def plan(self, lanes: Sequence[Lane], *, ahead_s: float, limit: int) -> list[Due]:
        """Which (lane, target) has due work, or will have within `ahead_s`; at most `limit` rows are looked at for
        each."""
        with self.database.autocommit() as connection:
            found = execute(
                connection,
                "plan",
                {"fleet": self.fleet, "lanes": [str(lane) for lane in lanes], "ahead_s": ahead_s, "limit": limit},
            )
            return [Due(Lane(row.lane), row.target, row.n, row.later_s) for row in found]

    def make_partitions(self) -> None:
        """Prepare the months to come of journal and evidence. Does nothing where they are."""
        with self.database.autocommit() as connection:
            execute(connection, "make_partitions", {"ahead": MONTHS_AHEAD})

    def seen(self, name: str) -> None:
        """Keep that this part of the fleet was heard of just now, to within 5 s."""
        with self.database.autocommit() as connection:
            execute(connection, "seen", {"fleet": self.fleet, "name": name})

    def claim(self, lane: Lane, target: str, *, limit: int, ahead_s: float, lease_s: float) -> list[tuple[Lease, Row]]:
        """Lease due rows and read their operations. Empty when nothing is due or this epoch is over."""
        token = uuid7()
        arguments = {
            "fleet": self.fleet,
            "epoch": self.epoch,
            "lane": str(lane),
            "target": target,
            "ahead_s": ahead_s,
            "limit": limit,
            "token": token,
            "lease_s": lease_s,
        }
        with self.database.autocommit() as connection:
            claimed = execute(connection, "claim", arguments).fetchall()
            leases = {row[0]: Lease(row[0], lane, token, *row[1:]) for row in claimed}
            rows = read_rows(connection, leases, self._policy_of, lock=False) if leases else []
        return [(leases[row.id], row) for row in rows]

    def renew(self, held: Sequence[tuple[UUID, Lane, UUID, float]]) -> dict[tuple[UUID, Lane], Renewed]:
        """Prolong leases (operation, lane, token, seconds from now). What is not returned is not ours any more."""
        ids, lanes, tokens, until_s = zip(*held, strict=True)
        arguments = {
            "fleet": self.fleet,
            "epoch": self.epoch,
            "ids": list(ids),
            "lanes": [str(lane) for lane in lanes],
            "tokens": list(tokens),
            "until_s": list(until_s),
        }
        with self.database.autocommit() as connection:
            found = execute(connection, "renew", arguments).fetchall()
        return {(row[0], Lane(row[1])): Renewed(row[2], row[3]) for row in found}

    def reread(self, held: Sequence[tuple[UUID, Lane, UUID]]) -> dict[tuple[UUID, Lane], int]:
        """The kicks of rows that are still ours by token and epoch."""
        ids, lanes, tokens = zip(*held, strict=True)
        arguments = {
            "epoch": self.epoch,
            "ids": list(ids),
            "lanes": [str(lane) for lane in lanes],
            "tokens": list(tokens),
        }
        with self.database.autocommit() as connection:
            return {(row[0], Lane(row[1])): row[2] for row in execute(connection, "reread", arguments)}

    def release(self, rows: Sequence[tuple[Lease, float]], *, failed: bool = False) -> None:
        """Give rows back without an outcome, due again after the given seconds unless somebody kicked them."""
        arguments = {
            "fleet": self.fleet,
            "epoch": self.epoch,
            "ids": [lease.operation_id for lease, _ in rows],
            "lanes": [str(lease.lane) for lease, _ in rows],
            "tokens": [lease.token for lease, _ in rows],
            "kicks": [lease.kick for lease, _ in rows],
            "delays_s": [delay_s for _, delay_s in rows],
            "failed": [failed for _ in rows],
        }

        def work() -> None:
            with self.database.autocommit() as connection:
                execute(connection, "release", arguments)

        # It waits for rows that transitions hold, so it may be the one that has to begin again.
        self.database.again(work)

    def append_evidence(self, answers: Sequence[Answer]) -> None:
        """Keep what servers said, at once, fenced by nothing (SPEC section 1)."""
        arguments = {
            "fleet": self.fleet,
            "epoch": self.epoch,
            "ids": [uuid7() for _ in answers],
            "operations": [answer.operation_id for answer in answers],
            "kinds": [answer.kind for answer in answers],
            "attempts": [answer.attempt for answer in answers],
            "generations": [answer.generation for answer in answers],
            "send_tokens": [answer.send_token for answer in answers],
            "statuses": [answer.status for answer in answers],
            "headers": [answer.headers for answer in answers],
            "bodies": [answer.body for answer in answers],
            "seqs": [answer.seq for answer in answers],
        }
        with self.database.autocommit() as connection:
            execute(connection, "append_evidence", arguments)

    def overdue_evidence(self, targets: Iterable[str], limit: int) -> list[UUID]:
        """Operations of these targets with evidence that its bearer did not consume. Of others this process can't read
        it: a roll-out may have added a target that its file does not name."""
        with self.database.autocommit() as connection:
            found = execute(
                connection,
                "overdue_evidence",
                {"fleet": self.fleet, "targets": list(targets), "grace_s": EVIDENCE_GRACE_S, "limit": limit},
            )
            return [row[0] for row in found]

    def find_tasks(self, target: str, task_ids: Iterable[str]) -> list[tuple[UUID, str]]:
        """The operations (id, task id) of these tasks, over or not."""
        table = operation.c
        query = select(table.id, table.task_id).where(
            table.fleet == self.fleet, table.target == target, table.task_id.in_(list(task_ids))
        )
        with self.database.autocommit() as connection:
            return [(row[0], row[1]) for row in connection.execute(query)]

    def close_target(self, target: str, for_s: float) -> float:
        """Close a target for everybody (429/503 with Retry-After); returns how long it stays closed, in seconds."""
        with self.database.autocommit() as connection:
            row = execute(
                connection, "close_target", {"fleet": self.fleet, "target": target, "for_s": for_s}
            ).fetchone()
        return for_s if row is None else float(row.closed_s)

    def register_targets(self, targets: Iterable[tuple[str, str]]) -> None:
        """Make targets (name, protocol) known to the producers' door."""
        rows = [{"fleet": self.fleet, "target": name, "protocol": protocol} for name, protocol in targets]
        if not rows:
            return
        query = insert(target_state)
        query = query.on_conflict_do_update(
            index_elements=["fleet", "target"],
            set_={"protocol": query.excluded.protocol, "seen_at": text("counterfoil.ledger_now()")},
        )
        with self.database.begin() as connection:
            connection.execute(query, rows)

    def keep_descriptor(
        self, digest: bytes, *, target: str, tool: str, protocol: str, version: str | None, body: bytes
    ) -> None:
        """Commit what was negotiated, by digest, before any submit rests on it (SPEC section 1)."""
        values = {
            "digest": digest,
            "target": target,
            "tool": tool,
            "protocol": protocol,
            "tool_version": version,
            "body": body,
        }
        with self.database.begin() as connection:
            connection.execute(insert(tool_descriptor).values(**values).on_conflict_do_nothing())

    def descriptors(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        """Descriptors by digest, as they were negotiated."""
        table = tool_descriptor.c
        with self.database.autocommit() as connection:
            found = connection.execute(select(table.digest, table.body).where(table.digest.in_(list(digests))))
            return {bytes(digest): bytes(body) for digest, body in found}

    def check_epoch(self) -> None:
        """Has a bump made us old? A plain read: it ends a process early, no fence rests on it. Raises StaleEpoch."""
        with self.database.autocommit() as connection:
            row = execute(connection, "plain_epoch", {"fleet": self.fleet}).fetchone()
        found = None if row is None else row.epoch
        if found != self.epoch:
            raise StaleEpoch(f"worker epoch {self.epoch}, ledger epoch {found}.", next_step="Start a new process.")

    def keep_policy(self, policy: Policy) -> bytes:
        """Commit a policy by digest, so that an intent can pin it. Returns the digest."""
        digest = policy.digest()
        with self.database.begin() as connection:
            values = {"digest": digest, "body": policy.canonical()}
            connection.execute(insert(tool_policy).values(**values).on_conflict_do_nothing())
        return digest
