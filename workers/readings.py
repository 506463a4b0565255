"""What is asked of servers without changing anything there: contracts, polls, results, lost submits by their key.

Readings of a task go through `decide` in memory, to see whether anything has to be written at all; what is written is
decided again under the row lock.
"""

from collections.abc import Callable, Iterable
from typing import Any

from ..adapters.contract import Exchange, Reply
from ..adapters.outcomes import (
    Busy,
    LookupOutcome,
    NeedsInput,
    SessionGone,
)
from ..ledger import events
from ..ledger.decision import Decision, Unchanged
from ..ledger.machine import decide
from ..ledger.rows import with_operation
from ..ledger.states import Lane, State
from ..ledger.store import Answer
from . import actions as act
from . import interpret
from .catalog import Catalog
from .holdings import JITTER, Holdings
from .jobs import Contract, Farewell, Job, Negotiation, Pace, Phase, Reading, Sending
from .negotiate import Contracts
from .requests import Requests, Unasked

_BY_KEY = frozenset({Lane.LOOKUP, Lane.AUDIT})
_ASKS = frozenset({State.WORKING, State.INPUT_REQUIRED})
"""States in which a question of the task still finds somebody."""


class Readings:
    """Between rows that want to know something and the requests that ask. `ready` takes a job whose tool's contract is
    there: it may be sent."""

    def __init__(
        self,
        catalog: Catalog,
        pace: Pace,
        jobs: Holdings,
        requests: Requests,
        contracts: Contracts,
        *,
        write: Callable[[act.Write], None],
        ready: Callable[[Job], None],
    ) -> None:
        self._catalog = catalog
        self._pace = pace
        self._jobs = jobs
        self._requests = requests
        self._contracts = contracts
        self._write = write
        self._ready = ready
        self._keeping: dict[int, Job] = {}
        """Jobs whose question to a person is being stored."""

    # -- asking ------------------------------------------------------------------------------------------------------

    def start(self, job: Job, now_s: float) -> None:
        """The moment of a reading has come."""
        exchange = self._exchange(job)
        closed_s = self._requests.closed_s(job.row.target, job.lane, now_s)
        if exchange is None:
            self._jobs.bring(job, now_s)
        elif closed_s >= self._pace.poll_lease_s:
            self._jobs.give_back(job, closed_s)
        else:
            job.exchange = exchange
            job.phase = Phase.OUT
            self._advance(job, None, now_s)

    def _exchange(self, job: Job) -> Exchange[Any] | None:
        """What this row wants to know; None: nothing that could be asked."""
        row, adapter = job.row, self._catalog.adapter(job.row.target)
        endpoint = self._catalog.endpoint(row.target, row.operation.policy)
        if row.operation.task_id is not None:
            task = self._catalog.task(row)
            return adapter.fetch(endpoint, task) if job.lane is Lane.FETCH else adapter.poll(endpoint, task)
        if job.lane in _BY_KEY and row.operation.policy.asks_by_key and not self._catalog.moved(row):
            return adapter.lookup(endpoint, self._catalog.search(row))
        return None

    def say_farewell(self, target: str, credential: str, session: bytes, now_s: float) -> None:
        """End a session whose last operation is over."""
        exchange = self._catalog.adapter(target).end_session(self._catalog.endpoint(target), session)
        self._advance(Farewell((target, "", credential), exchange, now_s + self._pace.poll_lease_s), None, now_s)

    def _advance(self, owner: Job | Negotiation | Farewell, reply: Reply | None, now_s: float) -> None:
        """One more leg of an exchange: the next request waits for its token, or the outcome is here."""
        assert owner.exchange is not None
        try:
            request = next(owner.exchange) if reply is None else owner.exchange.send(reply)
        except StopIteration as stop:
            if isinstance(owner, Job):
                self._observed(owner, stop.value, now_s)
            elif isinstance(owner, Negotiation):
                self._negotiated(owner, stop.value, now_s)
            return
        if not self._jobs.draining:
            self._requests.read(owner, request)
        elif isinstance(owner, Job):
            self._put_off(owner, owner.due_s - now_s, now_s)
        # Everybody who waited for a contract was given back when the drain began.

    def not_asked(self, unasked: Iterable[Unasked], now_s: float) -> None:
        """Readings that won't leave."""
        for one in unasked:
            if isinstance(one.owner, Negotiation):
                self._negotiated(one.owner, Busy("E_TARGET_CLOSED", one.wait_s), now_s)
            elif isinstance(one.owner, Farewell):
                one.owner.exchange.close()
            elif one.owner.dropped:
                self._jobs.let_go(one.owner)
            else:
                self._put_off(one.owner, one.wait_s, now_s)

    def _put_off(self, job: Job, wait_s: float, now_s: float) -> None:
        """What it wants to know is not asked now. What it knows already is written."""
        if job.ended is None:
            self._jobs.give_back(job, wait_s)
        else:
            self._jobs.bring(job, now_s, job.ended)

    def replied(self, reading: Reading, reply: Reply, now_s: float) -> None:
        if isinstance(reading.owner, Job) and reading.owner.dropped:
            self._overhear(reading.owner, reply)
        else:
            self._advance(reading.owner, reply, now_s)

    def _overhear(self, job: Job, reply: Reply) -> None:
        """Its row is somebody else's by now, or the epoch is over: nothing may be decided or asked any more. What is
        told once is kept all the same (SPEC section 1)."""
        assert job.exchange is not None
        try:
            job.exchange.send(reply)
        except StopIteration as stop:
            if isinstance(stop.value, NeedsInput) and self._asks_anew(job, stop.value):
                self._write(act.Keep(self._requests.new_serial(), _question(job, stop.value)))
        else:
            job.exchange.close()
        self._jobs.let_go(job)

    # -- contracts ---------------------------------------------------------------------------------------------------

    def negotiate(self, job: Job, now_s: float) -> None:
        """Negotiate first; what the tool can't take is refused before anything is sent (SPEC section 1)."""
        op = job.row.operation
        if op.shadow and op.policy.effects:
            why = "a shadow runs only tools without effects (`effects: false`)"
            self._jobs.bring(job, now_s, events.RefusedBeforeSubmit("E_SHADOW_EFFECTS", why))
            return
        answer = self._contracts.ask(self._catalog.contract_key(job.row), now_s)
        if answer is None:
            self._wait_for_contract(job, now_s)
            return
        misfit = answer if isinstance(answer, events.RefusedBeforeSubmit) else self._contracts.misfit(answer, job.row)
        if misfit is None:
            self._ready(job)
        else:
            self._tell(job, misfit, now_s)

    def _wait_for_contract(self, job: Job, now_s: float) -> None:
        job.phase = Phase.NEGOTIATING
        started = self._contracts.wait(self._catalog.contract_key(job.row), job)
        if started is not None:
            self._advance(started, None, now_s)

    def _negotiated(self, negotiation: Negotiation, outcome: Any, now_s: float) -> None:
        self.close(negotiation.key[0], outcome)
        write, brought = self._contracts.heard(negotiation, outcome, now_s)
        if write is not None:
            self._write(write)
        for job, event in brought:
            self._tell(job, event, now_s)

    def contract_kept(self, kept: act.ContractKept, now_s: float) -> None:
        """What was negotiated is committed: those who waited may go on."""
        contract, waiting = self._contracts.kept(kept.key, kept.policy_digest, kept.session_id)
        for job in waiting:
            if job.dropped:
                continue
            if job.submits:
                self.negotiate(job, now_s)
            elif contract.session_id is not None:
                self._jobs.bring(job, now_s, events.SessionRenewed(contract.session_id))
            else:
                self._jobs.give_back(job, 0.0)

    def contract_lost(self, write: act.KeepContract, why: str, now_s: float) -> None:
        """It could not be committed, so nothing may rest on it."""
        for job in self._contracts.lost(write.key):
            self._tell(job, events.SubmitNotSent(job.row.operation.attempt, why), now_s)

    def _tell(self, job: Job, event: interpret.Unsent, now_s: float) -> None:
        """Bring what was found out for a row, if it is still ours: its next holder may have sent it meanwhile."""
        if self._jobs.over(job, now_s):
            self._jobs.let_go(job)
        elif job.dropped:
            return
        elif job.submits:
            self._jobs.bring(job, now_s, interpret.unsent_replay(event) if job.replays else event)
        elif job.lane is Lane.AUDIT:
            self._jobs.bring(job, now_s)  # its pause doubles, whatever came of it
        else:
            # A reading that wanted a new session: it comes again, and the session is asked for again then.
            self._jobs.give_back(job, job.row.operation.policy.clamp_poll_s(job.row.operation.interval_ms))

    def _renew_session(self, job: Job, now_s: float) -> None:
        """A lost session is no lost task: begin a new one and ask again (SPEC section 7)."""
        key = self._catalog.contract_key(job.row)
        self._contracts.forget(key, job.row.operation.session_id)
        known = self._contracts.ask(key, now_s)
        if isinstance(known, Contract) and known.session_id is not None:
            self._jobs.bring(job, now_s, events.SessionRenewed(known.session_id))
        else:
            self._wait_for_contract(job, now_s)

    # -- hearing -----------------------------------------------------------------------------------------------------

    def hear(self, out: Reading | Sending, reply: Reply) -> None:
        """What a stream said of other tasks wakes them. Of the task that was asked for the answer itself speaks."""
        owner = out.owner if isinstance(out, Reading) else out.job
        asked = owner.row.operation.task_id if isinstance(owner, Job) else None
        hints = {hint.task_id: hint.status for hint in self._catalog.adapter(out.target).hints(reply)}
        hints.pop(asked or "", None)
        if hints and not self._jobs.stale:
            self._write(act.FindTasks(out.target, tuple(hints.items())))

    def close(self, target: str, outcome: object) -> None:
        """A server that asks everyone to wait is left alone by everyone, whatever was asked (SPEC section 3)."""
        if isinstance(outcome, Busy) and outcome.closes_target and not self._jobs.stale:
            self._requests.drop_tokens(target)
            self._write(act.CloseTarget(target, outcome.retry_after_s or 0.0))

    def _observed(self, job: Job, outcome: Any, now_s: float) -> None:
        self.close(job.row.target, outcome)
        if job.ended is not None:
            self._fetched(job, job.ended, outcome, now_s)
        elif isinstance(outcome, SessionGone):
            self._renew_session(job, now_s)
        elif job.row.operation.task_id is None:
            self._looked_up(job, outcome, now_s)
        elif isinstance(outcome, NeedsInput) and self._asks_anew(job, outcome):
            self._keep_question(job, outcome)
        elif isinstance(outcome, NeedsInput) and job.lane is Lane.ANSWER:
            self._ready(job)  # it waits still: the reply may leave
        else:
            self._read(job, outcome, now_s)

    def _looked_up(self, job: Job, outcome: LookupOutcome, now_s: float) -> None:
        op, schema = job.row.operation, self._catalog.output_schema(job.row)
        heard = interpret.lookup(outcome, attempt=op.attempt, policy=op.policy, output_schema=schema)
        # Its caller has waited out the settle window; a flush more would be a part of what is left of his patience.
        self._jobs.bring(job, now_s, heard, urgent=True)

    def _read(self, job: Job, outcome: Any, now_s: float) -> None:
        """Decide in memory whether anything must be written."""
        event = self._event(job, outcome, fetched=job.lane is Lane.FETCH)
        job.failures = job.failures + 1 if isinstance(event, events.ReadFailed) else 0
        answer = None if job.lane is Lane.AUDIT else decide(job.row.operation, event)
        if isinstance(answer, Decision) and isinstance(event, events.Ended) and self._may_fetch(job, answer, now_s):
            self._fetch(job, event, answer, now_s)
            return
        if not isinstance(answer, Unchanged):
            self._jobs.bring(job, now_s, event)
            return
        due_s = _next_due_s(job, (answer.next_poll_in_s or 0.0) * (1.0 + JITTER * job.jitter), now_s)
        near = due_s <= now_s + self._pace.poll_lease_s
        if not near or job.lane is not Lane.POLL or not self._jobs.may_stay(job.row.target):
            self._jobs.return_later(job, due_s, now_s)
        else:
            self._jobs.go_on(job, due_s)

    def _event(self, job: Job, outcome: Any, *, fetched: bool) -> events.Event:
        return interpret.observation(
            outcome,
            seq=job.asked_seq,
            failures=job.failures,
            policy=job.row.operation.policy,
            output_schema=self._catalog.output_schema(job.row),
            fetched=fetched,
        )

    # -- the result of an end that was just seen -----------------------------------------------------------------------

    def _may_fetch(self, job: Job, seen: Decision, now_s: float) -> bool:
        """Whether its result is asked for before the end is written: then one transition does for both.

        Not where the wait budget might end meanwhile (nobody who judges that knows of the end), nor where tokens are
        short: a share of them is kept for the fetch lane.
        """
        if job.lane is not Lane.POLL or Lane.FETCH not in seen.wake or self._jobs.draining:
            return False
        in_time = job.budget_until_s - now_s > self._pace.poll_lease_s
        return in_time and self._requests.closed_s(job.row.target, Lane.POLL, now_s) <= 0

    def _fetch(self, job: Job, ended: events.Ended, seen: Decision, now_s: float) -> None:
        job.ended = ended
        task = self._catalog.task(with_operation(job.row, seen.operation))
        endpoint = self._catalog.endpoint(job.row.target, job.row.operation.policy)
        job.exchange = self._catalog.adapter(job.row.target).fetch(endpoint, task)
        self._advance(job, None, now_s)

    def _fetched(self, job: Job, ended: events.Ended, outcome: Any, now_s: float) -> None:
        """Whatever came of it, the end is written. A fetch that did not succeed is the fetch lane's to make again."""
        event = self._event(job, outcome, fetched=True)
        passing = isinstance(event, events.ReadFailed)
        self._jobs.bring(job, now_s, *((ended,) if passing else (ended, event)))

    # -- questions ---------------------------------------------------------------------------------------------------

    def _asks_anew(self, job: Job, outcome: NeedsInput) -> bool:
        op = job.row.operation
        if not outcome.body or job.lane is not Lane.POLL or op.state not in _ASKS:
            return False
        known = {one.key for one in op.rounds if one.leg == op.leg}
        return any(key.key not in known for key in outcome.keys)

    def _keep_question(self, job: Job, outcome: NeedsInput) -> None:
        """A question may be delivered once only: it is evidence before it is anything else (SPEC section 1)."""
        serial = self._requests.new_serial()
        job.phase = Phase.KEEPING
        self._keeping[serial] = job
        self._write(act.Keep(serial, _question(job, outcome)))

    def question_kept(self, serial: int, now_s: float) -> None:
        """It is stored: whoever holds the row's lock reads it, now rather than at the next sweep."""
        job = self._keeping.pop(serial, None)
        if job is not None:
            self._jobs.bring(job, now_s, urgent=True)


def _question(job: Job, outcome: NeedsInput) -> Answer:
    op = job.row.operation
    return Answer(
        operation_id=job.row.id,
        kind="input",
        attempt=op.attempt,
        generation=op.cancel_generation,
        send_token=None,
        status=200,
        headers="{}",
        body=outcome.body,
        seq=job.asked_seq,
    )


def _next_due_s(job: Job, interval_s: float, now_s: float) -> float:
    """The scheduled moment plus the interval, not the answer's arrival plus the interval (p50 91 -> 13 ms).

    From now after a failure. From when the request left, where it left so late (a backlog, a closed bucket) that two
    requests would come together, which no server suggests.
    """
    if job.failures:
        return now_s + interval_s
    since_s = job.due_s if job.asked_s - job.due_s < interval_s / 2 else job.asked_s
    return max(since_s + interval_s, now_s)
