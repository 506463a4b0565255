"""Requests that change something at a server: how many may be on their way, what their intent says, what their
silence means."""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator
from uuid import UUID

from ..adapters.contract import KEPT_HEADERS, MAX_HEADER_CHARS, Answered, NoAnswer, Sent
from ..ledger import events
from ..ledger.intents import Denied, IntentRequest
from ..ledger.policy import Policy
from ..ledger.states import Lane
from ..ledger.store import Answer
from .jobs import Contract, Job, Phase

EFFECT_LANES = frozenset({Lane.SUBMIT, Lane.SYNC, Lane.CANCEL, Lane.ANSWER})
"""Lanes whose rows all have an effect. A lookup has one only where asking is replaying."""

EFFECT_OF = {
    Lane.SUBMIT: "submit",
    Lane.SYNC: "submit",
    Lane.CANCEL: "cancel",
    Lane.ANSWER: "answer",
    Lane.LOOKUP: "replay",
}

SUBMITTING = frozenset({Lane.SUBMIT, Lane.LOOKUP})
"""Lanes whose effects make an operation at the server, in a session that others use too."""

OUT_MAX = 10
"""Effect requests of one target at a time: each has a connection of its own, and a worker killed now leaves no more
unknown."""


class Effects:
    """Jobs that wait for one of the places of their target: submits last, else first come first served.

    `shares_session`: the target's calls share a session, in which only one submit may be in flight (answers of two
    workers' requests were seen crossed on shared sessions). A cancel doesn't wait for it: a submit may hang for its
    whole `answer_by`.
    """

    def __init__(self, shares_session: Callable[[str], bool]) -> None:
        self._shares_session = shares_session
        self._queued: dict[tuple[str, Lane], deque[Job]] = {}
        self._out: Counter[str] = Counter()
        self._submitting: Counter[str] = Counter()

    def queue(self, job: Job) -> None:
        job.phase = Phase.QUEUED
        self._queued.setdefault((job.row.target, job.lane), deque()).append(job)

    @property
    def waiting(self) -> bool:
        """Somebody waits for a place."""
        return any(self._queued.values())

    def next_jobs(self) -> Iterator[Job]:
        """Jobs that have a place now. The caller starts each, gives it up or holds it back before it asks for the
        next."""
        for target, lane in sorted(self._queued, key=lambda key: key[1] is Lane.SUBMIT):
            queue = self._queued[target, lane]
            for _ in range(len(queue)):
                if self._full(target, lane):
                    break
                job = queue.popleft()
                if not job.dropped:
                    yield job

    def _full(self, target: str, lane: Lane) -> bool:
        alone = lane in SUBMITTING and self._shares_session(target)
        return self._out[target] >= OUT_MAX or (alone and self._submitting[target] > 0)

    def hold_back(self, job: Job) -> None:
        """Its bucket is closed just now: it waits without a connection."""
        self._queued[job.row.target, job.lane].append(job)

    def started(self, job: Job) -> None:
        self._out[job.row.target] += 1
        self._submitting[job.row.target] += job.lane in SUBMITTING

    def ended(self, job: Job) -> None:
        self._out[job.row.target] -= 1
        self._submitting[job.row.target] -= job.lane in SUBMITTING

    def clear(self) -> None:
        self._queued.clear()


def intent_request(job: Job, send_token: UUID, policy: Policy, contract: Contract | None) -> IntentRequest:
    """The intent that this job's request needs. The first one pins policy, descriptor and protocol (SPEC section 1)."""
    row = job.row
    pinned = row.pinned or contract is None
    return IntentRequest(
        operation_id=row.id,
        effect=EFFECT_OF[job.lane],
        lane=job.lane,
        token=job.lease.token,
        send_token=send_token,
        attempt=row.replies[0].number if job.lane is Lane.ANSWER else row.operation.attempt,
        generation=row.operation.cancel_generation,
        policy=policy,
        policy_digest=policy.digest() if pinned or contract is None else contract.policy_digest,
        protocol=policy.protocol,
        tool_version=contract.tool_version if contract else row.tool_version,
        descriptor_digest=contract.descriptor_digest if contract else row.descriptor_digest,
        # What is said to a task goes into the session that it was made in, whatever was negotiated since.
        session_id=contract.session_id if contract and row.operation.task_id is None else row.operation.session_id,
    )


def evidence(intent: IntentRequest, reply: Answered | NoAnswer) -> Answer:
    """What to keep of an answer. Status 0 marks one that was cut: its bytes are a hint for a person, never a bind."""
    status, headers = (reply.status, reply.headers) if isinstance(reply, Answered) else (0, {})
    # One that is too long is left out: a URL that was cut names another thing.
    kept = {
        name: headers[name].replace("\0", "")
        for name in KEPT_HEADERS
        if name in headers and len(headers[name]) <= MAX_HEADER_CHARS
    }
    return Answer(
        operation_id=intent.operation_id,
        kind=intent.effect,
        attempt=intent.attempt,
        generation=intent.generation,
        send_token=intent.send_token,
        status=status,
        headers=json.dumps(kept),
        body=reply.body,
    )


def without_answer(intent: IntentRequest, reply: NoAnswer) -> events.Event:
    """Nothing was said. Whether bytes left is all that is known.

    An unsent one names its send token: only its own intent may be withdrawn with it, since a bearer whose lease ran out
    while it connected may have a successor whose bytes are on their way.
    """
    unsent = reply.sent is Sent.NO
    if intent.effect == "answer":
        if unsent:
            return events.ReplyNotSent(intent.attempt, reply.why, send_token=intent.send_token)
        return events.ReplyUnclear(intent.attempt, "E_INPUT_UNCLEAR", reply.why)
    if intent.effect == "replay":
        if unsent:
            return events.ReplayNotSent(reply.why, send_token=intent.send_token)
        return events.LookupUnsure("E_SUBMISSION_UNKNOWN", f"the answer to the replay is lost: {reply.why}")
    if intent.effect == "cancel":
        if unsent:
            return events.CancelNotSent(intent.generation, reply.why, send_token=intent.send_token)
        return events.CancelUnclear(intent.generation, "E_CANCEL_UNCLEAR", reply.why)
    if unsent:
        return events.SubmitNotSent(intent.attempt, reply.why, send_token=intent.send_token)
    return events.SubmitUnclear(intent.attempt, "E_SUBMISSION_UNKNOWN", reply.why)


def refused_intent(intent: IntentRequest, denied: Denied) -> events.Event | None:
    """What a refused intent means for its row beside "not sent now": a switch or a key that ran out won't come back."""
    if denied.code == "E_KEY_EXPIRED" and intent.effect == "replay":
        return events.LookupUnsure("E_SUBMISSION_UNKNOWN", denied.why, final=True)
    over = denied.code in ("E_KEY_EXPIRED", "E_ADAPTER_DRAINING") or (
        denied.code == "E_CREATE_OFF" and intent.attempt > 1
    )
    return events.RefusedBeforeSubmit(denied.code, denied.why) if over and intent.effect == "submit" else None
