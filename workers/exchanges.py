"""What a due row has to ask of its server, and what is brought into the ledger for it.

Readings go through `decide` in memory, to see whether anything has to be written at all. The answer to an effect is
kept as evidence before anybody looks at what it means.
"""

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from ..adapters.answers import trouble
from ..adapters.contract import Answered, Busy, NoAnswer, Reply, SessionGone
from ..ledger import events
from ..ledger.decision import Unchanged
from ..ledger.machine import decide
from ..ledger.states import Lane, State
from ..ledger.store import QUARANTINE_AFTER
from . import actions as act
from . import interpret
from .catalog import Catalog
from .effects import Effects, evidence, intent_request, without_answer
from .holdings import JITTER, Holdings
from .jobs import Contract, Farewell, Job, Negotiation, Pace, Phase, Sending
from .negotiate import Contracts
from .requests import Requests, Unasked


class Exchanges:
    """Between the rows that are held and the requests that are out."""

    def __init__(
        self,
        catalog: Catalog,
        pace: Pace,
        jobs: Holdings,
        requests: Requests,
        *,
        write: Callable[[act.Write], None],
        new_token: Callable[[], UUID],
    ) -> None:
        self._catalog = catalog
        self._pace = pace
        self._jobs = jobs
        self._requests = requests
        self._write = write
        self._new_token = new_token
        self._contracts = Contracts(catalog)
        self._effects = Effects(catalog.shares_session)

    # -- starting what is due ----------------------------------------------------------------------------------------

    def start(self, job: Job, now_s: float) -> None:
        """The moment of a row has come."""
        if job.lease.claim_count >= QUARANTINE_AFTER:
            self._jobs.bring(job, now_s, events.Quarantined(f"lane {job.lane}"))
        elif job.row.operation.settle_as is not None:
            self._jobs.bring(job, now_s)  # decided already: only the acceptance is missing
        elif job.lane is Lane.TIMER:
            self._jobs.bring(job, now_s, events.DeadlineReached())
        elif job.lane in (Lane.SUBMIT, Lane.SYNC):
            self._start_submit(job, now_s)
        elif job.lane is Lane.CANCEL:
            self._start_cancel(job, now_s)
        else:
            self._start_reading(job, now_s)

    def _start_reading(self, job: Job, now_s: float) -> None:
        row, closed_s = job.row, self._requests.closed_s(job.row.target, job.lane, now_s)
        if row.operation.task_id is None:
            self._jobs.bring(job, now_s)
        elif closed_s >= self._pace.poll_lease_s:
            self._jobs.give_back(job, closed_s)
        else:
            endpoint, adapter, task = (
                self._catalog.endpoint(row.target),
                self._catalog.adapter(row.target),
                self._catalog.task(row),
            )
            job.exchange = adapter.fetch(endpoint, task) if job.lane is Lane.FETCH else adapter.poll(endpoint, task)
            job.phase = Phase.OUT
            self._advance(job, None, now_s)

    def _start_submit(self, job: Job, now_s: float) -> None:
        op = job.row.operation
        if op.intent("submit") is not None:
            self._jobs.bring(job, now_s, events.IntentOverdue())
        elif op.state is State.NOT_FOUND_SAFE:
            self._jobs.bring(job, now_s, events.Resubmit())
        elif op.state is State.SUBMITTING and op.policy.sync is (job.lane is Lane.SYNC):
            self._negotiate(job, now_s)
        else:
            self._jobs.bring(job, now_s)

    def _start_cancel(self, job: Job, now_s: float) -> None:
        op = job.row.operation
        intent = op.intent("cancel")
        if intent is not None and intent.send_left_s > 0:
            self._jobs.give_back(job, intent.send_left_s)
        elif intent is not None:
            why = "the worker that sent the cancel left no answer"
            self._jobs.bring(job, now_s, events.CancelUnclear(intent.generation, "E_CANCEL_UNCLEAR", why))
        elif op.state is State.CANCEL_REQUESTED and op.cancel_due:
            self._effects.queue(job)
        else:
            self._jobs.bring(job, now_s)

    # -- negotiation -------------------------------------------------------------------------------------------------

    def _negotiate(self, job: Job, now_s: float) -> None:
        """Negotiate first; what the tool can't take is refused before anything is sent (SPEC section 1)."""
        key = (job.row.target, job.row.tool, self._catalog.credential(job.row.target, job.row.principal))
        answer = self._contracts.ask(key, now_s)
        if answer is None:
            job.phase = Phase.NEGOTIATING
            started = self._contracts.wait(key, job)
            if started is not None:
                self._advance(started, None, now_s)
            return
        misfit = answer if isinstance(answer, events.RefusedBeforeSubmit) else self._contracts.misfit(answer, job.row)
        if misfit is None:
            self._effects.queue(job)
        else:
            self._jobs.bring(job, now_s, misfit)

    def _negotiated(self, negotiation: Negotiation, outcome: Any, now_s: float) -> None:
        self._close(negotiation.key[0], outcome)
        write, brought = self._contracts.heard(negotiation, outcome, now_s)
        if write is not None:
            self._write(write)
        for job, event in brought:
            self._tell(job, event, now_s)

    def _tell(self, job: Job, event: events.Event, now_s: float) -> None:
        """Bring what was found out for a row, if it is still ours: its next holder may have sent it meanwhile."""
        if self._jobs.over(job, now_s):
            self._jobs.let_go(job)
        elif not job.dropped and job.lane in (Lane.SUBMIT, Lane.SYNC):
            self._jobs.bring(job, now_s, event)
        elif not job.dropped:
            # A reading that wanted a new session: it comes again, and the session is asked for again then.
            self._jobs.give_back(job, job.row.operation.policy.clamp_poll_s(job.row.operation.interval_ms))

    def contract_kept(self, kept: act.ContractKept, now_s: float) -> None:
        """What was negotiated is committed: those who waited may go on."""
        contract, waiting = self._contracts.kept(kept.key, kept.policy_digest, kept.session_id)
        for job in waiting:
            if job.dropped:
                continue
            if job.lane in (Lane.SUBMIT, Lane.SYNC):
                self._negotiate(job, now_s)
            elif contract.session_id is not None:
                self._jobs.bring(job, now_s, events.SessionRenewed(contract.session_id))
            else:
                self._jobs.give_back(job, 0.0)

    def contract_lost(self, write: act.KeepContract, why: str, now_s: float) -> None:
        """It could not be committed, so nothing may rest on it."""
        for job in self._contracts.lost(write.key):
            self._tell(job, events.SubmitNotSent(job.row.operation.attempt, why), now_s)

    # -- effects -----------------------------------------------------------------------------------------------------

    def start_effects(self, now_s: float) -> None:
        """Connect those that have a place now; a closed bucket holds new connections back."""
        for job in self._effects.next_jobs():
            closed_s = self._requests.closed_s(job.row.target, job.lane, now_s)
            if self._jobs.over(job, now_s) or closed_s >= self._pace.poll_lease_s:
                self._jobs.give_back(job, closed_s)
            elif closed_s > 0:
                self._effects.hold_back(job)
            else:
                self._connect(job, now_s)

    def _connect(self, job: Job, now_s: float) -> None:
        row, send_token = job.row, self._new_token()
        endpoint, adapter = self._catalog.endpoint(row.target), self._catalog.adapter(row.target)
        policy, contract = self._catalog.policy_for(row), self._contracts.of(row)
        if contract is None and job.lane is not Lane.CANCEL:
            self._negotiate(job, now_s)  # it has run out, or its session was for one call and is taken
            return
        if job.lane is Lane.CANCEL:
            job.exchange = adapter.cancel(endpoint, self._catalog.task(row, str(send_token)))
        else:
            descriptor, session = (contract.descriptor, contract.session) if contract else (None, None)
            call = self._catalog.call(row, policy, str(send_token), descriptor=descriptor, session=session)
            job.exchange = adapter.submit(endpoint, call)
        job.phase = Phase.OUT
        if contract is not None and job.lane is Lane.SYNC and contract.session_id is not None:
            # A blocking call has a session of its own, so that many can be in flight.
            key = (row.target, row.tool, self._catalog.credential(row.target, row.principal))
            self._contracts.forget(key, contract.session_id)
        self._effects.started(row.target)
        self._requests.effect(job, next(job.exchange), intent_request(job, send_token, policy, contract))
        job.exchange.close()  # what the answer means is read from the kept bytes, under the row lock

    def _effect_replied(self, send_id: int, sending: Sending, reply: Answered | NoAnswer, now_s: float) -> None:
        self._close(sending.target, trouble(reply))
        job = sending.job
        if isinstance(reply, Answered) or reply.body:
            # Evidence first: until it is committed the connection's slot stays taken.
            job.phase = Phase.KEEPING
            self._write(act.Keep(send_id, evidence(sending.intent, reply)))
            return
        self._finish(send_id)
        if job.dropped and not sending.asked_intent:
            self._jobs.give_back(job, job.due_s - now_s)
        else:
            self._jobs.bring(job, now_s, without_answer(sending.intent, reply), urgent=True)

    def kept(self, kept: act.Kept, now_s: float) -> None:
        """The evidence is stored, so the transition that follows carries no interpretation of its own."""
        job = self._finish(kept.send_id)
        if job is not None:
            self._jobs.bring(job, now_s, urgent=True)

    def _finish(self, send_id: int) -> Job | None:
        sending = self._requests.finish(send_id)
        if sending is None:
            return None
        self._effects.ended(sending.target)
        return sending.job

    # -- readings ----------------------------------------------------------------------------------------------------

    def _advance(self, owner: Job | Negotiation | Farewell, reply: Reply | None, now_s: float) -> None:
        """One more leg of an exchange of readings: the next request waits for its token, or the outcome is here."""
        assert owner.exchange is not None
        try:
            request = next(owner.exchange) if reply is None else owner.exchange.send(reply)
        except StopIteration as stop:
            if isinstance(owner, Job):
                self._observed(owner, stop.value, now_s)
            elif isinstance(owner, Negotiation):
                self._negotiated(owner, stop.value, now_s)
        else:
            self._requests.read(owner, request)

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
                self._jobs.give_back(one.owner, one.wait_s)

    def replied(self, replied: act.Replied, now_s: float) -> None:
        out = self._requests.answered(replied.send_id)
        if isinstance(out, Sending):
            self._effect_replied(replied.send_id, out, replied.reply, now_s)
        elif out is None:
            return
        elif isinstance(out.owner, Job) and out.owner.dropped:
            self._jobs.let_go(out.owner)
        elif isinstance(out.owner, Negotiation) and self._jobs.draining:
            out.owner.exchange.close()  # everybody who waited for it was given back
        else:
            self._advance(out.owner, replied.reply, now_s)

    def _close(self, target: str, outcome: object) -> None:
        """A server that asks everyone to wait is left alone by everyone, whatever was asked (SPEC section 3)."""
        if isinstance(outcome, Busy) and outcome.closes_target and outcome.retry_after_s is not None:
            self._write(act.CloseTarget(target, outcome.retry_after_s))

    def _observed(self, job: Job, outcome: Any, now_s: float) -> None:
        """Decide in memory whether anything must be written; what is written is decided again under the row lock."""
        self._close(job.row.target, outcome)
        if isinstance(outcome, SessionGone):
            self._renew_session(job, now_s)
            return
        event = interpret.observation(
            outcome,
            seq=job.asked_seq,
            failures=job.failures,
            policy=job.row.operation.policy,
            output_schema=self._catalog.output_schema(job.row),
            fetched=job.lane is Lane.FETCH,
        )
        job.failures = job.failures + 1 if isinstance(event, events.ReadFailed) else 0
        answer = decide(job.row.operation, event)
        if not isinstance(answer, Unchanged):
            self._jobs.bring(job, now_s, event)
            return
        due_s = _next_due_s(job, (answer.next_poll_in_s or 0.0) * (1.0 + JITTER * job.jitter), now_s)
        if self._jobs.draining or due_s > now_s + self._pace.poll_lease_s or job.lane is not Lane.POLL:
            self._jobs.give_back(job, due_s - now_s)
        else:
            self._jobs.schedule(job, due_s)

    def _renew_session(self, job: Job, now_s: float) -> None:
        """A lost session is no lost task: begin a new one and ask again (SPEC section 7)."""
        key = (job.row.target, job.row.tool, self._catalog.credential(job.row.target, job.row.principal))
        self._contracts.forget(key, job.row.operation.session_id)
        known = self._contracts.ask(key, now_s)
        if isinstance(known, Contract) and known.session_id is not None:
            self._jobs.bring(job, now_s, events.SessionRenewed(known.session_id))
            return
        job.phase = Phase.NEGOTIATING
        started = self._contracts.wait(key, job)
        if started is not None:
            self._advance(started, None, now_s)

    def say_farewell(self, target: str, credential: str, session: bytes, now_s: float) -> None:
        """End a session whose last operation is over."""
        exchange = self._catalog.adapter(target).end_session(self._catalog.endpoint(target), session)
        self._advance(Farewell((target, "", credential), exchange), None, now_s)

    # -- the end -----------------------------------------------------------------------------------------------------

    def drain(self, now_s: float) -> None:
        """Nothing more begins; what is out is waited for."""
        self.not_asked(self._requests.stop(now_s), now_s)

    def end(self) -> list[Job]:
        """The epoch is over. Returns the jobs whose effects are out: their answers are still kept."""
        self._effects.clear()
        self._requests.end("the epoch is over")
        return [sending.job for sending in self._requests.sendings]


def _next_due_s(job: Job, interval_s: float, now_s: float) -> float:
    """The scheduled moment plus the interval, not the answer's arrival plus the interval (p50 91 -> 13 ms).

    From now after a failure. From when the request left, where it left so late (a backlog, a closed bucket) that two
    requests would come together, which no server suggests.
    """
    if job.failures:
        return now_s + interval_s
    since_s = job.due_s if job.asked_s - job.due_s < interval_s / 2 else job.asked_s
    return max(since_s + interval_s, now_s)
