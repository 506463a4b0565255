"""`python bad_release.py EPOCH`: a worker that ignores every stop, for the drill in which one can't be relied on.

It never looks at the epoch, never drains and never ends: it claims, renews, intends, sends, reads and writes states
for ever as a member of the epoch that it was given, and waits with the bytes of a slow call until its intent is nearly
over. What no fence of ours could hold back it doesn't do either: without a granted intent no effect leaves, and nothing
at all without a lease. Prints "ready"; on SIGTERM what was refused to it, by what it tried, as JSON.
"""

import json
import os
import random
import signal
import sys
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, replace
from uuid import UUID

import httpx

from counterfoil.ledger.accept import accept
from counterfoil.ledger.database import Database
from counterfoil.ledger.errors import StaleEpoch
from counterfoil.ledger.events import Event, Progressed
from counterfoil.ledger.intents import Granted, IntentRequest, Intents
from counterfoil.ledger.rows import Row, with_operation
from counterfoil.ledger.states import Lane, Outcome, State
from counterfoil.ledger.store import Answer, Lease, Store
from counterfoil.ledger.transition import Transitions
from counterfoil.ledger.work import Item
from counterfoil.workers.catalog import Catalog
from counterfoil.workers.sessions import Sessions
from counterfoil.workers.settings import Settings
from counterfoil.workers.targets import load_targets

LEASE_S = 5.0
LANES = (Lane.SUBMIT, Lane.CANCEL, Lane.POLL, Lane.FETCH)
MARGIN_S = 1.0
"""How long before the end of its `send_by` a slow call's bytes leave; below it a busy machine would lose some."""

EFFECTS = (Lane.SUBMIT, Lane.CANCEL)
ROUND_S = 0.1
"""In each one intent of a slow call is asked for, and of a tenth of the rest something is read."""


@dataclass
class Held:
    """One row in its hands: `until_s` by its own clock, as any worker counts."""

    lease: Lease
    row: Row
    until_s: float
    out: bool = False

    @property
    def slow(self) -> bool:
        return b"answer_held" in (self.row.arguments or b"")


class BadRelease:
    """Everything that a worker does, and nothing that ends it."""

    def __init__(self, epoch: int) -> None:
        settings = Settings.load()
        self._database = Database(settings.require_database_url(), fleet="main", pool_size=20)
        self._catalog = Catalog(load_targets(settings.targets_file), lambda _digests: {}, Sessions(self))
        self._store = Store(self._database, "main", epoch, self._catalog.policy)
        self._intents = Intents(self._database, "main", epoch, self._catalog.policy)
        self._transitions = Transitions(
            self._database, "main", epoch, interpret=self._catalog.read_evidence, policy_of=self._catalog.policy
        )
        self._epoch = epoch
        self._held: dict[tuple[UUID, Lane], Held] = {}
        self._http = httpx.Client(timeout=60, trust_env=False, limits=httpx.Limits(max_connections=100))
        self._ended = threading.Event()
        self._stale = False
        self._sending: list[threading.Thread] = []
        self.refused: Counter[str] = Counter()

    def load(self, _ids: object) -> dict[UUID, bytes]:
        """Sessions, of which its target has none."""
        return {}

    def end(self, *_: object) -> None:
        self._ended.set()

    def run(self) -> None:
        while not self._ended.wait(ROUND_S):
            self._claim()
            self._renew()
            waiting = [one for one in self._held.values() if one.lease.lane in EFFECTS and not one.out]
            slow = [one for one in waiting if one.slow]
            for held in (*(one for one in waiting if not one.slow), *slow[:1]):
                self._intend(held)
            for held in list(self._held.values()):
                if held.lease.lane is Lane.POLL and random.random() < ROUND_S:
                    self._read(held)
            self._accept()
        for thread in self._sending:
            thread.join()

    # -- leases --------------------------------------------------------------------------------------------------------

    def _claim(self) -> None:
        for lane in LANES:
            before_s = time.monotonic()
            for lease, row in self._store.claim(lane, "tools", limit=20, ahead_s=0.0, lease_s=LEASE_S):
                self._held[row.id, lane] = Held(lease, row, before_s + max(lease.due_in_s, 0.0) + LEASE_S)

    def _renew(self) -> None:
        now_s = time.monotonic()
        held = [one for one in self._held.values() if one.until_s - now_s < LEASE_S / 2]
        if held:
            asked = [(one.row.id, one.lease.lane, one.lease.token, LEASE_S) for one in held]
            renewed = self._store.renew(asked)
            for one in held:
                if (one.row.id, one.lease.lane) in renewed:
                    one.until_s = now_s + LEASE_S
        for key, one in list(self._held.items()):
            if now_s > one.until_s and not self._stale:
                del self._held[key]  # once it is stale it keeps them: it goes on trying to write

    # -- effects -------------------------------------------------------------------------------------------------------

    def _intend(self, held: Held) -> None:
        """Asks for an intent, again and again, also on leases that are none any more."""
        row, policy, send_token = held.row, self._catalog.policy_for(held.row), uuid.uuid4()
        effect = "submit" if held.lease.lane is Lane.SUBMIT else "cancel"
        asked_s = time.monotonic()
        digest = policy.digest() if self._stale else self._store.keep_policy(policy)
        request = IntentRequest(
            *(row.id, effect, held.lease.lane, held.lease.token, send_token),
            *(row.operation.attempt, row.operation.cancel_generation, policy, digest, policy.protocol),
        )
        try:
            (answer,) = self._intents.open([request])
        except StaleEpoch:
            self._stale = True
            self.refused["intent"] += 1
            return
        if isinstance(answer, Granted):
            held.out = True
            send = threading.Thread(target=self._send, args=(held, request, asked_s + answer.send_by_s))
            self._sending.append(send)
            send.start()
        else:
            self._held.pop((row.id, held.lease.lane), None)

    def _send(self, held: Held, intent: IntentRequest, send_by_s: float) -> None:
        row = held.row
        given = json.loads(row.arguments or b"{}")
        if held.slow:  # as late as the intent allows, and well after a bump that comes meanwhile
            time.sleep(max(send_by_s - time.monotonic() - MARGIN_S, 0.0))
        if time.monotonic() > send_by_s:
            return
        if intent.effect == "submit":
            key = {"dev.counterfoil/submission-key": str(row.submission_key)}
            body = self._post("tools/call", intent.send_token, {"name": row.tool, "arguments": given, "_meta": key})
        else:
            body = self._post("tasks/cancel", intent.send_token, {"taskId": row.operation.task_id})
        generation = intent.generation
        self._store.append_evidence(
            [Answer(row.id, intent.effect, intent.attempt, generation, intent.send_token, 200, "{}", body)]
        )
        while not self._bring(held) and not self._ended.wait(1.0):
            pass

    def _post(self, method: str, request_id: object, params: dict[str, object]) -> bytes:
        request = {"jsonrpc": "2.0", "id": str(request_id), "method": method, "params": params}
        headers = {"authorization": f"Bearer {os.environ['WHO']}"}
        return self._http.post(self._catalog.endpoint("tools").url, json=request, headers=headers).content

    # -- readings, states, ends ----------------------------------------------------------------------------------------

    def _read(self, held: Held) -> None:
        """Reads while it has the lease; says something of the row as long as it lives."""
        if time.monotonic() < held.until_s - ROUND_S:
            body = self._post("tasks/get", uuid.uuid4(), {"taskId": held.row.operation.task_id})
            if b"input_required" in body:
                seq = held.lease.read_seq
                self._store.append_evidence([Answer(held.row.id, "input", 1, 0, None, 200, "{}", body, seq)])
                self._bring(held)
                return
        self._bring(held, Progressed(held.lease.read_seq, "working"))

    def _bring(self, held: Held, *brought: Event) -> bool:
        item = Item(held.row.id, held.lease.lane, brought, held.lease.token, held.lease.kick)
        try:
            self._transitions.apply([item])
        except StaleEpoch:
            self._stale = True
            self.refused["transition"] += 1
            return False
        self._held.pop((held.row.id, held.lease.lane), None)
        return True

    def _accept(self) -> None:
        """Past all rules: a receipt for a row that it holds."""
        if not self._stale or not self._held:
            return
        row = next(iter(self._held.values())).row
        ended = replace(row.operation, settle_as=State.ACCEPTED, outcome=Outcome.SUCCEEDED)
        verdicts = accept(self._database, "main", self._epoch, [(with_operation(row, ended), Lane.POLL)])
        assert verdicts == {row.id: "stale_epoch"}, verdicts
        self.refused["accept_terminal"] += 1


if __name__ == "__main__":
    release = BadRelease(int(sys.argv[1]))
    signal.signal(signal.SIGTERM, release.end)
    print("ready", flush=True)
    release.run()
    print(json.dumps(release.refused), flush=True)
