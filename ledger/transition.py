"""Transitions: evidence and events become states, under the fence and the row lock (SPEC sections 1 and 6).

One transaction for a batch: epoch, operations in order of id, their unconsumed evidence, `decide()`, then set-based
writes by key. Nothing is compared with what a claimer read: a cancel that was committed meanwhile is seen here. A
write that fails is repeated row by row, so that one hostile row costs the others nothing; the guilty one is parked.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias
from uuid import UUID

import psycopg
from sqlalchemy import Connection

from .accept import Settled, accept
from .database import Database, execute
from .epochs import check_fence, refuse
from .errors import LedgerUnavailable, StaleEpoch
from .events import CancelAsked, Event, InputRequested, LookupFound, Progressed, TaskBound, VerdictGiven
from .rows import Evidence, PolicyOf, Row, pinned_policies, read_evidence, read_rows, with_operation
from .rules import LIVE
from .states import State
from .work import Applied, Item, Work
from .writes import write

log = logging.getLogger(__name__)

Interpret = Callable[[Row, Evidence], Event]
"""Reads evidence again from its exact bytes; never trusts what an older epoch made of it. A producer's door has none:
what it can't read it leaves to the workers."""

PARK_S = 5.0
"""How long a row waits whose write failed, before it is claimed again."""


class Transitions:
    """The one writer of states. `interpret` reads evidence, `policy_of` is asked for operations with nothing pinned."""

    def __init__(
        self,
        database: Database,
        fleet: str,
        epoch: int | None,
        *,
        interpret: Interpret | None,
        policy_of: PolicyOf,
        actor: str = "worker",
    ) -> None:
        self._database = database
        self._fleet = fleet
        self._epoch = epoch
        self._interpret = interpret
        self._policy_of = policy_of
        self._actor = actor

    def apply(self, items: Iterable[Item]) -> list[Applied]:
        """Apply a batch; answers in no particular order, one for each operation.

        Raises StaleEpoch when a bump has committed (nothing was written then).
        """
        grouped: dict[UUID, list[Item]] = {}
        for item in items:
            grouped.setdefault(item.operation_id, []).append(item)
        if not grouped:
            return []
        try:
            applied, settled, epoch = self._database.again(lambda: self._transaction(grouped))
        except StaleEpoch:
            refuse(self._database, self._fleet, self._epoch or 0, "transition", list(grouped))
            raise
        except LedgerUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  the guilty row alone is parked, whatever it did
            if len(grouped) == 1:
                return [self._park(alone, error) for alone in grouped.values()]
            log.warning("a batch of %d could not be written (%s); going row by row", len(grouped), type(error).__name__)
            return [applied for alone in grouped.values() for applied in self.apply(alone)]
        return self._settle(applied, settled, epoch)

    def _transaction(self, grouped: Mapping[UUID, list[Item]]) -> tuple[list[Applied], list[Settled], int]:
        with self._database.begin() as connection:
            epoch = check_fence(connection, self._fleet, self._epoch)
            rows = read_rows(connection, grouped, self._policy_of, lock=True)
            works = [Work(row, grouped[row.id]) for row in rows]
            leases = _leases(connection, grouped)
            self._decide(connection, works, read_evidence(connection, grouped), leases)
            held = write(connection, works, set(leases), fleet=self._fleet, epoch=epoch, actor=self._actor)
        applied = [Applied(work.row.id, work.row, tuple(work.answers), held.get(work.row.id, ())) for work in works]
        gone = [Applied(missing, None) for missing in grouped.keys() - {row.id for row in rows}]
        settled = [(work.row, work.settled_by) for work in works if work.row.operation.settle_as is not None]
        return [*applied, *gone], settled, epoch

    def _settle(self, applied: list[Applied], settled: list[Settled], epoch: int) -> list[Applied]:
        """Accept what is decided. The transition is committed, so whatever fails here must not run it again: the fetch
        lane comes by and accepts what is left."""
        if not settled:
            return applied
        try:
            verdicts = accept(self._database, self._fleet, epoch, settled)
        except (psycopg.Error, LedgerUnavailable) as error:
            log.warning("%d decided ends are not accepted yet: %s", len(settled), type(error).__name__)
            return applied
        return [_accepted(one, verdicts.get(one.operation_id)) for one in applied]

    def _decide(
        self,
        connection: Connection,
        works: list[Work],
        evidence: Mapping[UUID, list[Evidence]],
        leases: Mapping[tuple[UUID, str], UUID | None],
    ) -> None:
        """Evidence first, whatever else is brought (SPEC section 1), then what the bearers say."""
        events: list[tuple[Work, Event]] = []
        for work in works:
            pieces, interpret = evidence.get(work.row.id, ()), self._interpret
            if interpret is not None:
                work.consumed += [piece.id for piece in pieces]
                events += [(work, interpret(work.row, piece)) for piece in pieces]
            waits = bool(pieces) and interpret is None
            events += [
                (work, _beside(event, evidence_waits=waits))
                for item in work.items
                for event in item.events
                if not _overtaken(work, item, event, leases)
            ]
        holders = _holders(connection, self._fleet, events)
        for work, event in events:
            if isinstance(event, TaskBound | LookupFound | VerdictGiven) and event.task_id:
                scope = (work.row.target, work.row.operation.policy.credential, event.task_id)
                holder = holders.setdefault(scope, work.row.id)
                work.take(replace(event, elsewhere=holder != work.row.id))
            else:
                work.take(event)

    def _park(self, items: list[Item], error: Exception) -> Applied:
        """The guilty row alone waits; its claim counts as one without an outcome, five quarantine it."""
        log.error("operation %s can't be written: %s", items[0].operation_id, type(error).__name__)
        leased = [item for item in items if item.token is not None]
        if leased:
            with self._database.autocommit() as connection:
                execute(
                    connection,
                    "release",
                    {
                        "fleet": self._fleet,
                        "epoch": self._epoch,
                        "ids": [item.operation_id for item in leased],
                        "lanes": [str(item.lane) for item in leased],
                        "tokens": [item.token for item in leased],
                        "kicks": [item.kick for item in leased],
                        "delays_s": [PARK_S for _ in leased],
                        "failed": [True for _ in leased],
                    },
                )
        return Applied(items[0].operation_id, None, failed=True)


Scope: TypeAlias = tuple[str, str, str]
"""(target, credential, task id): two tenants of a server may each have a task of one name (SPEC section 3)."""


def _holders(connection: Connection, fleet: str, events: list[tuple[Work, Event]]) -> dict[Scope, UUID]:
    """Which open operations already hold the ids that are about to be bound: looked up before the bind, under the
    row locks (SPEC section 3), one query for the batch. A second bind inside the batch meets the first one here
    as well; one in another transaction waits for this one's end before it looks."""
    binds = (TaskBound, LookupFound, VerdictGiven)
    named = [(w.row.target, event.task_id) for w, event in events if isinstance(event, binds) and event.task_id]
    if not named:
        return {}
    targets, task_ids = zip(*named, strict=True)
    tasks = {"targets": list(targets), "task_ids": list(task_ids)}
    execute(connection, "lock_task_ids", tasks)
    found = execute(connection, "find_holders", tasks | {"fleet": fleet}).fetchall()
    policies = pinned_policies(connection, {row.policy_digest for row in found if row.policy_digest is not None})
    return {
        (target, policies[digest].credential if digest else "", task_id): holder
        for target, task_id, holder, digest in found
    }


def _leases(connection: Connection, ids: Iterable[UUID]) -> dict[tuple[UUID, str], UUID | None]:
    """(operation, lane) -> token, from wake rows locked after their operations: third statement of a transition."""
    found = execute(connection, "lock_wakes", {"ids": sorted(ids)})
    return {(row[0], row[1]): row[2] for row in found}


def _overtaken(work: Work, item: Item, event: Event, leases: Mapping[tuple[UUID, str], UUID | None]) -> bool:
    """A reading that was asked before its bearer lost the row: whoever has it now reads younger, and an unchanged
    answer of his leaves no sequence that this one could be compared with (SPEC section 3). An end counts from
    anybody, and after an end nothing is moved by it: there it is noted."""
    operation = work.before.operation
    return (
        operation.state in LIVE
        and not operation.over
        and isinstance(event, Progressed | InputRequested)
        and item.token is not None
        and leases.get((item.operation_id, str(item.lane))) != item.token
    )


def _beside(event: Event, *, evidence_waits: bool) -> Event:
    """A cancel must not end what a server may have said something of."""
    return replace(event, evidence_waits=True) if evidence_waits and isinstance(event, CancelAsked) else event


def _accepted(applied: Applied, verdict: str | None) -> Applied:
    if applied.row is None or verdict is None:
        return applied
    op = applied.row.operation
    if verdict not in ("accepted", "same"):
        return replace(applied, verdict=verdict)
    over = replace(op, state=State(op.settle_as or op.state), settle_as=None)
    return replace(applied, row=with_operation(applied.row, over), held=(), verdict=verdict)
