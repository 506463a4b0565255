"""The ledger's side of a loop: performs the writes that a step answers with, and says what came of each.

Synchronous and without a thread, so that the same code runs behind `Drive`'s lines, under a transcript's virtual clock
and under a simulator's scheduler.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import singledispatchmethod
from uuid import UUID

from ..adapters.jsonrpc import random_id
from ..ledger import sessions
from ..ledger.database import Database
from ..ledger.errors import CounterfoilError, StaleEpoch
from ..ledger.intents import Intents
from ..ledger.orphans import FIRST, by_lane, look_for_orphans
from ..ledger.store import Store
from ..ledger.transition import Transitions
from . import actions as act
from .bucket import Bucket
from .catalog import Catalog
from .negotiate import BELIEVED_S
from .sessions import Sessions
from .targets import Targets
from .vault import Vault, VaultError

log = logging.getLogger(__name__)

ORPHANS_EVERY = 24
"""Sweeps: about once a minute."""

PARTITIONS_EVERY = 720
"""Sweeps: about twice an hour, for months that are made two months ahead."""


class Performer:
    """What one process writes and reads in the ledger, in one fleet and one epoch."""

    def __init__(
        self,
        database: Database,
        targets: Targets,
        bucket: Bucket,
        *,
        fleet: str,
        epoch: int,
        vault: Vault | None,
        new_id: Callable[[], str] = random_id,
        traced: bool = False,
    ) -> None:
        self._database = database
        self._bucket = bucket
        self._vault = vault
        self.catalog = Catalog(targets, self._load_descriptors, Sessions(self), new_id=new_id, traced=traced)
        policy_of = self.catalog.policy
        self.store = Store(database, fleet, epoch, policy_of)
        self.intents = Intents(database, fleet, epoch, policy_of)
        self.transitions = Transitions(
            database, fleet, epoch, interpret=self.catalog.read_evidence, policy_of=policy_of
        )
        self._sweeps = 0
        self._looked_until = FIRST

    def announce(self) -> None:
        """Make the targets known to the producers' door. Raises LedgerUnavailable, SchemaOutdated, RecoverFirst."""
        names = self.catalog.names
        self.store.register_targets([(name, self.catalog.target(name).protocol) for name in names])

    def load(self, ids: Iterable[UUID]) -> dict[UUID, bytes]:
        """Open sessions by id, for `Sessions`. Raises VaultError where no key opens one."""
        found = sessions.read_sessions(self._database, ids)
        return {one.id: self._keys().open(one.sealed) for one in found}

    def _keys(self) -> Vault:
        if self._vault is None:
            raise VaultError(
                "a session has to be opened, and this process has no keys.",
                next_step="Set COUNTERFOIL_KEYS and start again.",
            )
        return self._vault

    def _load_descriptors(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        return self.store.descriptors(digests)

    # -- what can't wait ---------------------------------------------------------------------------------------------

    def perform_urgent(
        self, keeping: Sequence[act.Keep], intending: Sequence[tuple[act.Intend, float]]
    ) -> list[act.Arrival]:
        """Everything urgent that waits right now: one insert for the evidence, one commit for the intents, each with
        the moment at which it was asked for."""
        arrivals: list[act.Arrival] = []
        if keeping:
            try:
                self.store.append_evidence([keep.answer for keep in keeping])
                arrivals += [act.Kept(keep.send_id) for keep in keeping]
            except Exception as error:  # noqa: BLE001
                arrivals += [failed(keep, error) for keep in keeping]
        if intending:
            try:
                answers = self.intents.open([intend.request for intend, _ in intending])
                arrivals += [
                    act.Intended(intend.send_id, asked_s, answer)
                    for (intend, asked_s), answer in zip(intending, answers, strict=True)
                ]
            except Exception as error:  # noqa: BLE001
                arrivals += [failed(intend, error) for intend, _ in intending]
        return arrivals

    # -- what can ----------------------------------------------------------------------------------------------------

    @singledispatchmethod
    def perform(self, write: act.Write, asked_s: float) -> act.Arrival:
        """One write, now. `asked_s`: when the loop asked for it, on its own clock. Raises what the ledger raises."""
        raise TypeError(f"nobody writes a {type(write).__name__}")

    @perform.register
    def _(self, plan: act.Plan, _asked_s: float) -> act.Arrival:
        return act.Planned(self.store.plan(plan.lanes, ahead_s=plan.ahead_s, limit=plan.limit))

    @perform.register
    def _(self, sweep: act.Sweep, _asked_s: float) -> act.Arrival:
        self.store.check_epoch()
        self._sweeps += 1
        if self._sweeps % ORPHANS_EVERY == 0:
            self._look_for_orphans()
        if self._sweeps % PARTITIONS_EVERY == 0:
            self.store.make_partitions()
        operations = self.store.overdue_evidence(self.catalog.names, sweep.limit)
        if self._vault is None:
            return act.Swept(operations)
        over = sessions.take_ended_sessions(self._database, self.store.fleet, idle_s=2 * BELIEVED_S, limit=sweep.limit)
        return act.Swept(operations, [(one.target, one.credential, self._vault.open(one.sealed)) for one in over])

    @perform.register
    def _(self, claim: act.Claim, asked_s: float) -> act.Arrival:
        rows = self.store.claim(
            claim.lane, claim.target, limit=claim.limit, ahead_s=claim.ahead_s, lease_s=claim.lease_s
        )
        missing = self.catalog.missing_schemas(row.descriptor_digest for _, row in rows)
        self.catalog.sessions.preload(row.operation.session_id for _, row in rows)
        if missing:
            for digest, body in self.store.descriptors(missing).items():
                self.catalog.learn_descriptor(digest, body)
        return act.Claimed(claim, asked_s, rows)

    @perform.register
    def _(self, apply: act.Apply, asked_s: float) -> act.Arrival:
        return act.AppliedBatch(apply.items, asked_s, self.transitions.apply(apply.items))

    @perform.register
    def _(self, renew: act.Renew, asked_s: float) -> act.Arrival:
        return act.RenewedBatch(asked_s, renew.held, self.store.renew(renew.held))

    @perform.register
    def _(self, reread: act.Reread, _asked_s: float) -> act.Arrival:
        return act.RereadBatch(reread.held, self.store.reread(reread.held))

    @perform.register
    def _(self, release: act.Release, _asked_s: float) -> act.Arrival:
        self.store.release(release.rows)
        return act.Released(len(release.rows))

    @perform.register
    def _(self, keep: act.KeepContract, _asked_s: float) -> act.Arrival:
        target, tool, _ = keep.key
        self.store.keep_descriptor(
            keep.descriptor_digest,
            target=target,
            tool=tool,
            protocol=keep.protocol,
            version=keep.tool_version,
            body=keep.descriptor,
        )
        policy_digest = self.store.keep_policy(keep.policy)
        if keep.session is None:
            return act.ContractKept(keep.key, policy_digest)
        sealed = self._keys().seal(keep.session)
        session_id = sessions.keep_session(self._database, self.store.fleet, target, keep.key[2], sealed)
        self.catalog.sessions.learn(session_id, keep.session)
        return act.ContractKept(keep.key, policy_digest, session_id)

    @perform.register
    def _(self, find: act.FindTasks, _asked_s: float) -> act.Arrival:
        words = dict(find.hints)
        found = self.store.find_tasks(find.target, words)
        return act.TasksFound([(operation_id, words[task_id]) for operation_id, task_id in found])

    @perform.register
    def _(self, close: act.CloseTarget, _asked_s: float) -> act.Arrival:
        """Kept in the ledger first: a lost Redis must not reopen it."""
        closed_s = self.store.close_target(close.target, close.for_s)
        self._bucket.close(close.target, closed_s)
        return act.Released(0)

    @perform.register
    def _(self, take: act.Take, _asked_s: float) -> act.Arrival:
        grant = self._bucket.take(take.target, take.lane, take.count)
        return act.Tokens(take, grant.granted, grant.wait_s)

    def _look_for_orphans(self) -> None:
        """Nothing may be forgotten (SPEC section 7): said aloud, by lane, by whoever finds it. A part of a large ledger
        each time: a look at all of it would hold up everything that this process writes."""
        with self._database.autocommit() as connection:
            found, after = look_for_orphans(connection, self.store.fleet, self._looked_until)
        self._looked_until = FIRST if after is None else after
        if found:
            lanes = ", ".join(f"{lane} {count} ({age_s:.0f} s)" for lane, (count, age_s) in by_lane(found).items())
            log.warning("E_ORPHANS: nobody will come by for: %s. `counterfoil orphans` shows them.", lanes)


def failed(write: act.Write, error: Exception) -> act.WriteFailed:
    """What the loop is told of a write that did not succeed."""
    if isinstance(error, CounterfoilError):
        log.warning("%s: %s", type(write).__name__, error)
    else:
        log.warning("%s failed: %s", type(write).__name__, type(error).__name__, exc_info=error)
    return act.WriteFailed(write, f"{type(error).__name__}", stale=isinstance(error, StaleEpoch))
