"""Requests on their way. The order connection, token, intent, first byte (SPEC section 1) is kept here and nowhere
else.

A reading takes its token and leaves. An effect is connected first; with the connection up it takes its token, with the
token in hand its intent is committed, and only a granted one that is not late lets the first byte go.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..adapters.contract import Request
from ..ledger.intents import Denied, IntentRequest
from ..ledger.states import Lane
from . import actions as act
from .catalog import Catalog
from .jobs import Farewell, Job, Negotiation, Pace, Reading, Sending
from .tokens import Expected, Tokens

TOKEN_PATIENCE_S = 1.0
"""How long a fresh connection may wait for its token; servers give up on silent ones after 5 s and more."""


_SWITCHES = frozenset({"E_CREATE_OFF", "E_ADAPTER_DRAINING", "E_KEY_EXPIRED"})
"""Refusals of an intent that say something about the row, and not that it is somebody else's by now."""


@dataclass(frozen=True, slots=True)
class Unasked:
    """A reading that did not leave: its lease is over, or no token is to be had for `wait_s`."""

    owner: Job | Negotiation | Farewell
    wait_s: float


class Requests:
    """Every request between the decision to send it and its end. `put` and `write` take what a step answers with."""

    def __init__(
        self,
        catalog: Catalog,
        pace: Pace,
        put: Callable[[act.Wire], None],
        write: Callable[[act.Write], None],
    ) -> None:
        self._catalog = catalog
        self._pace = pace
        self._put = put
        self._write = write
        self._readings: dict[int, Reading] = {}
        self._sendings: dict[int, Sending] = {}
        self._serial = 0
        self._tokens = Tokens()
        self._stopped = False
        self._over = False

    def __len__(self) -> int:
        return len(self._readings) + len(self._sendings)

    @property
    def sendings(self) -> Iterator[Sending]:
        """Effects that are not through yet."""
        return iter(self._sendings.values())

    # -- beginning ---------------------------------------------------------------------------------------------------

    def new_serial(self) -> int:
        """A number that no request has."""
        self._serial += 1
        return self._serial

    def read(self, owner: Job | Negotiation | Farewell, request: Request) -> None:
        """A reading: it leaves once it has its token."""
        if isinstance(owner, Job):
            target, lane, credential = owner.row.target, owner.lane, self._catalog.credential_of(owner.row)
        else:
            target, lane, credential = owner.key[0], Lane.SUBMIT, owner.key[2]
        serial = self.new_serial()
        self._readings[serial] = Reading(owner, target, lane, credential, request)
        self._tokens.wait(target, lane, serial)

    def effect(self, job: Job, request: Request, intent: IntentRequest) -> None:
        """An effect: to be connected now; `connected`, `granted` and `intended` take it further, in this order."""
        serial = self.new_serial()
        self._sendings[serial] = Sending(job, intent)
        self._put(act.Send(serial, job.row.target, self._catalog.credential_of(job.row), request, _about(job)))

    # -- connection, token, intent, first byte -----------------------------------------------------------------------

    def connected(self, send_id: int, now_s: float) -> None:
        sending = self._sendings.get(send_id)
        if sending is None:
            self._put(act.Abort(send_id, "nobody waits for it"))
        elif self._stopped:
            self._give_up(send_id, "this process is ending", now_s)
        elif sending.job.until_s < now_s:
            self._give_up(send_id, "the lease is over", now_s)
        else:
            self._tokens.wait(sending.target, sending.lane, send_id)

    def closed_s(self, target: str, lane: Lane, now_s: float) -> float:
        """For how long the bucket has no token for this lane, as it said last."""
        return self._tokens.closed_s(target, lane, now_s)

    def ask_tokens(self, now_s: float, expected: Expected) -> list[Unasked]:
        """Let go what a token is in hand for, and ask for the others'. Returns readings that won't leave."""
        unasked = self._let_go(self._tokens.in_hand(now_s), now_s)
        for target, lane, count in self._tokens.wanted(now_s, expected):
            self._write(act.Take(target, lane, count))
        return unasked

    def drop_tokens(self, target: str) -> None:
        """The target asked for quiet: what was taken ahead for it is void."""
        self._tokens.drop(target)

    def next_s(self, now_s: float) -> float:
        """When to ask for tokens again."""
        return self._tokens.next_s(now_s)

    def granted(self, tokens: act.Tokens, now_s: float) -> list[Unasked]:
        """Let go what has its token; an effect's next step is its intent. Returns readings that won't leave."""
        take = tokens.take
        ready = self._tokens.grant(take.target, take.lane, tokens.granted, tokens.wait_s, now_s)
        return self._let_go(ready, now_s) + self._hang_up(take.target, take.lane, tokens.wait_s, now_s)

    def _let_go(self, send_ids: list[int], now_s: float) -> list[Unasked]:
        unasked = []
        for send_id in send_ids:
            if send_id in self._sendings:
                self._sendings[send_id].asked_intent = True
                self._write(act.Intend(send_id, self._sendings[send_id].intent))
            elif not self._send(send_id, now_s):
                unasked.append(Unasked(self._readings.pop(send_id).owner, 0.0))
        return unasked

    def no_tokens(self, take: act.Take, now_s: float) -> list[Unasked]:
        """The bucket could not be asked."""
        return self.granted(act.Tokens(take, 0, TOKEN_PATIENCE_S), now_s)

    def _send(self, send_id: int, now_s: float) -> bool:
        """A reading leaves, unless nobody who waits for it holds its row any more."""
        reading = self._readings[send_id]
        if not reading.owner.alive(now_s):
            return False
        about = None
        if isinstance(reading.owner, Job):
            reading.owner.asked_s, reading.owner.asked_seq = now_s, reading.owner.lease.read_seq
            about = _about(reading.owner)
        self._put(act.Send(send_id, reading.target, reading.credential, reading.request, about))
        return True

    def _hang_up(self, target: str, lane: Lane, wait_s: float, now_s: float) -> list[Unasked]:
        """No token soon. A connection must not wait until its server thinks it idle, and a closed target must not keep
        the places of the others: these rows come again later."""
        unasked = []
        for send_id in self._tokens.waiting(target, lane):
            if send_id in self._sendings and wait_s >= TOKEN_PATIENCE_S:
                self._give_up(send_id, "the bucket is closed", now_s + wait_s)
            elif send_id in self._readings and wait_s >= self._pace.poll_lease_s:
                self._tokens.forget(target, lane, send_id)
                unasked.append(Unasked(self._readings.pop(send_id).owner, wait_s))
        return unasked

    def _give_up(self, send_id: int, why: str, due_s: float) -> None:
        """An effect without an intent: nothing leaves, its row comes again at `due_s`."""
        sending = self._sendings[send_id]
        self._tokens.forget(sending.target, sending.lane, send_id)
        sending.asked_intent = False
        sending.job.dropped, sending.job.due_s = True, due_s
        self._put(act.Abort(send_id, why))

    def intended(self, intended: act.Intended, now_s: float) -> None:
        answer = intended.answer
        if intended.send_id not in self._sendings or self._over:
            return
        if isinstance(answer, Denied) and answer.code not in _SWITCHES:
            self._give_up(intended.send_id, answer.why, now_s + self._pace.tick_s)
        elif isinstance(answer, Denied):
            # Nothing was opened, and the row is ours: what it means is written into the ledger.
            self._sendings[intended.send_id].denied = answer
            self._put(act.Abort(intended.send_id, answer.why))
        elif now_s > intended.asked_s + answer.send_by_s / 2:
            self._put(act.Abort(intended.send_id, "the intent's commit came back late"))
        else:
            self._put(act.Go(intended.send_id, intended.asked_s + answer.send_by_s))

    def not_intended(self, send_id: int, why: str) -> None:
        """Whether the intent was committed is not known. Nothing leaves; its withdrawal closes it in any case."""
        if send_id in self._sendings and not self._over:
            self._put(act.Abort(send_id, why))

    # -- the end -----------------------------------------------------------------------------------------------------

    def answered(self, send_id: int) -> Reading | Sending | None:
        """What a reply belongs to. A reading is through with it; an effect only when its evidence is stored."""
        return self._readings.pop(send_id, None) or self._sendings.get(send_id)

    def finish(self, send_id: int) -> Sending | None:
        """The evidence of an effect is stored, or there is none: its connection may be given to another."""
        sending = self._sendings.pop(send_id, None)
        if sending is not None:
            self._tokens.forget(sending.target, sending.lane, send_id)
            self._put(act.Finish(send_id))
        return sending

    def stop(self, now_s: float) -> list[Unasked]:
        """Nothing more begins: readings without a token are returned, effects without an intent are given up, now or
        when their connection is up."""
        self._stopped = True
        unasked = []
        for send_id in self._tokens.clear():
            if send_id in self._sendings:
                self._give_up(send_id, "this process is ending", now_s)
            else:
                unasked.append(Unasked(self._readings.pop(send_id).owner, 0.0))
        return unasked

    def end(self, why: str) -> None:
        """The epoch is over: no effect may leave, and no reading counts any more. An effect whose bytes have left does
        not notice its Abort; its answer is still waited for, and so is a reading that may bring what is told once."""
        self._stopped = self._over = True
        unsent = set(self._tokens.clear())
        self._readings = {
            send_id: reading
            for send_id, reading in self._readings.items()
            if send_id not in unsent and self._told_once(reading)
        }
        for send_id in self._sendings:
            self._put(act.Abort(send_id, why))

    def _told_once(self, reading: Reading) -> bool:
        """A question of a task in a session goes out on one stream, once; elsewhere it is told as often as it is asked
        for."""
        return reading.lane is Lane.POLL and self._catalog.shares_session(reading.target)


def _about(job: Job) -> act.About:
    return act.About(job.row.id, job.lane, job.row.tool, job.row.operation.attempt)
