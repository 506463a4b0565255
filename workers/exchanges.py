"""Due rows and what is sent for them: which lane wants what, and effects from their place to their evidence.

The answer to an effect is kept as evidence before anybody looks at what it means. What only asks is in `readings.py`.
"""

from collections.abc import Callable
from uuid import UUID

from ..adapters.answers import trouble
from ..adapters.contract import Answered, InputReply, NoAnswer
from ..ledger import events
from ..ledger.states import Lane, State
from ..ledger.store import QUARANTINE_AFTER
from . import actions as act
from .catalog import Catalog
from .effects import Effects, evidence, intent_request, refused_intent, without_answer
from .holdings import Holdings
from .jobs import Job, Pace, Phase, Reading, Sending
from .negotiate import Contracts
from .readings import Readings
from .requests import Requests

_MAYBE_OF_SESSION = frozenset({400, 404})
"""HTTP statuses under which a server may have spoken of the session, and not of the request in it."""


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
        self.readings = Readings(catalog, pace, jobs, requests, self._contracts, write=write, ready=self._effects.queue)

    # -- starting what is due ----------------------------------------------------------------------------------------

    def start(self, job: Job, now_s: float) -> None:
        """The moment of a row has come."""
        if job.lease.claim_count >= QUARANTINE_AFTER:
            self._jobs.bring(job, now_s, events.Quarantined(f"lane {job.lane}"))
        elif job.row.operation.settle_as is not None:
            self._jobs.bring(job, now_s)  # decided already: only the acceptance is missing
        elif job.lane is Lane.TIMER or (job.lane is Lane.POLL and now_s > job.budget_until_s):
            # No reading leaves after the wait budget, also where its timer is due at the same moment.
            self._jobs.bring(job, now_s, events.DeadlineReached())
        elif job.lane in (Lane.SUBMIT, Lane.SYNC):
            self._start_submit(job, now_s)
        elif job.lane is Lane.CANCEL:
            self._start_cancel(job, now_s)
        elif job.lane is Lane.ANSWER:
            self._start_answer(job, now_s)
        elif job.lane is Lane.LOOKUP:
            self._start_lookup(job, now_s)
        else:
            self.readings.start(job, now_s)

    def _start_submit(self, job: Job, now_s: float) -> None:
        op = job.row.operation
        if op.intent("submit") is not None:
            self._jobs.bring(job, now_s, events.IntentOverdue())
        elif op.state is State.NOT_FOUND_SAFE or (op.state is State.SUBMITTING and op.cancel_generation > 0):
            self._jobs.bring(job, now_s, events.Resubmit())
        elif op.state is not State.SUBMITTING or op.policy.sync is not (job.lane is Lane.SYNC):
            self._jobs.bring(job, now_s)
        elif op.sent_attempt > 0 and self._catalog.moved(job.row):
            why = "the target's URL was changed: what was sent before went to another server"
            self._jobs.bring(job, now_s, events.RefusedBeforeSubmit("E_NOT_RESUBMITTED", why))
        else:
            self.readings.negotiate(job, now_s)

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

    def _start_answer(self, job: Job, now_s: float) -> None:
        op = job.row.operation
        intent = op.intent("answer")
        if intent is not None and intent.send_left_s > 0:
            self._jobs.give_back(job, intent.send_left_s)
        elif intent is not None:
            why = "the worker that sent the reply left no answer"
            self._jobs.bring(job, now_s, events.ReplyUnclear(intent.attempt, "E_INPUT_UNCLEAR", why))
        elif op.state is not State.INPUT_REQUIRED or op.task_id is None or not job.row.replies:
            self._jobs.bring(job, now_s)
        elif op.policy.reply_replay != "safe" and op.policy.input_watch_s > 0:
            # Such a server takes any reply: after it has gone on by itself ours would pass for the answer it used. So
            # the watch's next reading is made now.
            self.readings.start(job, now_s)
        else:
            self._effects.queue(job)

    def _start_lookup(self, job: Job, now_s: float) -> None:
        """Not before the settle window is over, by the ledger's clock (SPEC section 7)."""
        op = job.row.operation
        intent = op.intent("replay")
        if intent is not None and intent.send_left_s > 0:
            self._jobs.give_back(job, intent.send_left_s)
        elif intent is not None:
            self._unsure(job, now_s, "the worker that sent the replay left no answer")
        elif op.state is not State.SUBMISSION_UNKNOWN:
            self._jobs.bring(job, now_s)
        elif op.settle_left_s > 0:
            self._jobs.give_back(job, op.settle_left_s)
        elif self._catalog.moved(job.row):
            self._unsure(job, now_s, "the target's URL was changed: it was sent to another server", final=True)
        elif job.replays:
            self._effects.queue(job)
        elif op.policy.asks_by_key:
            self.readings.start(job, now_s)
        else:
            self._unsure(job, now_s, "the answer is lost, and nothing can be looked up", final=True)

    def _unsure(self, job: Job, now_s: float, why: str, *, final: bool = False) -> None:
        self._jobs.bring(job, now_s, events.LookupUnsure("E_SUBMISSION_UNKNOWN", why, final=final))

    @property
    def pressed(self) -> bool:
        """Effects wait for those that are out."""
        return self._effects.waiting

    # -- effects -----------------------------------------------------------------------------------------------------

    def start_effects(self, now_s: float) -> None:
        """Connect those that have a place now; a closed bucket holds new connections back."""
        for job in self._effects.next_jobs():
            closed_s = self._requests.closed_s(job.row.target, job.token_lane, now_s)
            if self._jobs.over(job, now_s) or closed_s >= self._pace.poll_lease_s:
                self._jobs.give_back(job, closed_s)
            elif closed_s > 0:
                self._effects.hold_back(job)
            elif job.submits and self._contracts.of(job.row) is None:
                self.readings.negotiate(job, now_s)  # it has run out, or its session was for one call and is taken
            else:
                self._connect(job)

    def _connect(self, job: Job) -> None:
        row, send_token = job.row, self._new_token()
        policy, contract = self._catalog.policy_for(row), self._contracts.of(row)
        endpoint, adapter = self._catalog.endpoint(row.target, policy), self._catalog.adapter(row.target)
        if job.lane is Lane.CANCEL:
            job.exchange = adapter.cancel(endpoint, self._catalog.task(row, str(send_token)))
        elif job.lane is Lane.ANSWER:
            said = row.replies[0]
            reply = InputReply(said.key, said.method, said.content, said.reply_to)
            job.exchange = adapter.reply(endpoint, self._catalog.task(row, str(send_token)), reply)
        else:
            descriptor, session = (contract.descriptor, contract.session) if contract else (None, None)
            call = self._catalog.call(row, policy, str(send_token), descriptor=descriptor, session=session)
            job.exchange = adapter.submit(endpoint, call)
        job.phase = Phase.OUT
        if contract is not None and job.lane is Lane.SYNC:
            # A blocking call has a session of its own, so that many can be in flight.
            self._contracts.forget(self._catalog.contract_key(row), contract.session_id)
        self._effects.started(job)
        self._requests.effect(job, next(job.exchange), intent_request(job, send_token, policy, contract))
        job.exchange.close()  # what the answer means is read from the kept bytes, under the row lock

    def replied(self, replied: act.Replied, now_s: float) -> None:
        """An answer, or its absence, to whatever was asked."""
        out = self._requests.answered(replied.send_id)
        if out is None:
            return
        self.readings.hear(out, replied.reply)
        if isinstance(out, Reading):
            self.readings.replied(out, replied.reply, now_s)
        else:
            self._effect_replied(replied.send_id, out, replied.reply, now_s)

    def _effect_replied(self, send_id: int, sending: Sending, reply: Answered | NoAnswer, now_s: float) -> None:
        self.readings.close(sending.target, trouble(reply))
        job = sending.job
        session_id = sending.intent.session_id
        if session_id is not None and isinstance(reply, Answered) and reply.status in _MAYBE_OF_SESSION:
            # Every further call in a session that is gone would be a lost one; another session costs a handshake.
            self._contracts.forget(self._catalog.contract_key(job.row), session_id)
        if isinstance(reply, Answered) or reply.body:
            # Evidence first: until it is committed the connection's slot stays taken.
            job.phase = Phase.KEEPING
            self._write(act.Keep(send_id, evidence(sending.intent, reply)))
            return
        self._finish(send_id)
        refused = None if sending.denied is None else refused_intent(sending.intent, sending.denied)
        if job.dropped and not sending.asked_intent:
            self._jobs.give_back(job, job.due_s - now_s)
        elif refused is not None:
            self._jobs.bring(job, now_s, refused)
        else:
            self._jobs.bring(job, now_s, without_answer(sending.intent, reply), urgent=True)

    def kept(self, kept: act.Kept, now_s: float) -> None:
        """The evidence is stored, so the transition that follows carries no interpretation of its own."""
        job = self._finish(kept.send_id)
        if job is None:
            self.readings.question_kept(kept.send_id, now_s)
        else:
            self._jobs.bring(job, now_s, urgent=True)

    def _finish(self, send_id: int) -> Job | None:
        sending = self._requests.finish(send_id)
        if sending is None:
            return None
        self._effects.ended(sending.job)
        return sending.job

    # -- the end -----------------------------------------------------------------------------------------------------

    def drain(self, now_s: float) -> None:
        """Nothing more begins; what is out is waited for."""
        self.readings.not_asked(self._requests.stop(now_s), now_s)

    def end(self) -> list[Job]:
        """The epoch is over. Returns the jobs whose effects are out: their answers are still kept."""
        self._effects.clear()
        self._requests.end("the epoch is over")
        return [sending.job for sending in self._requests.sendings]
