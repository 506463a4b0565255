"""Requests that change something at a server: how many may be on their way, what their intent says, what their
silence means."""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator
from uuid import UUID

from ..adapters.contract import Answered, NoAnswer, Sent
from ..ledger import events
from ..ledger.intents import IntentRequest
from ..ledger.policy import Policy
from ..ledger.states import Lane
from ..ledger.store import Answer
from .jobs import Contract, Job, Phase

EFFECT_LANES = frozenset({Lane.SUBMIT, Lane.SYNC, Lane.CANCEL})

OUT_MAX = 10
"""Effect requests of one target at a time: each has a connection of its own, and a worker killed now leaves no more
unknown."""

KEPT_HEADERS = ("content-type", "date", "retry-after", "www-authenticate")
KEPT_CHARS = 1000


class Effects:
    """Jobs that wait for one of the places of their target: cancels before submits, else first come first served.

    `shares_session`: the target's calls share a session, in which only one submit may be in flight (answers of two
    workers' requests were seen crossed on shared sessions).
    """

    def __init__(self, shares_session: Callable[[str], bool]) -> None:
        self._shares_session = shares_session
        self._queued: dict[tuple[str, Lane], deque[Job]] = {}
        self._out: Counter[str] = Counter()

    def queue(self, job: Job) -> None:
        job.phase = Phase.QUEUED
        self._queued.setdefault((job.row.target, job.lane), deque()).append(job)

    def next_jobs(self) -> Iterator[Job]:
        """Jobs that have a place now. The caller starts each, gives it up or holds it back before it asks for the
        next."""
        for target, lane in sorted(self._queued, key=lambda key: key[1] is Lane.SUBMIT):
            queue = self._queued[target, lane]
            for _ in range(len(queue)):
                if self._out[target] >= (1 if self._shares_session(target) else OUT_MAX):
                    break
                job = queue.popleft()
                if not job.dropped:
                    yield job

    def hold_back(self, job: Job) -> None:
        """Its bucket is closed just now: it waits without a connection."""
        self._queued[job.row.target, job.lane].append(job)

    def started(self, target: str) -> None:
        self._out[target] += 1

    def ended(self, target: str) -> None:
        self._out[target] -= 1

    def clear(self) -> None:
        self._queued.clear()


def intent_request(job: Job, send_token: UUID, policy: Policy, contract: Contract | None) -> IntentRequest:
    """The intent that this job's request needs. The first one pins policy, descriptor and protocol (SPEC section 1)."""
    row = job.row
    pinned = row.pinned or contract is None
    return IntentRequest(
        operation_id=row.id,
        effect="cancel" if job.lane is Lane.CANCEL else "submit",
        lane=job.lane,
        token=job.lease.token,
        send_token=send_token,
        attempt=row.operation.attempt,
        generation=row.operation.cancel_generation,
        policy=policy,
        policy_digest=policy.digest() if pinned or contract is None else contract.policy_digest,
        protocol=policy.protocol,
        tool_version=contract.tool_version if contract else row.tool_version,
        descriptor_digest=contract.descriptor_digest if contract else row.descriptor_digest,
        # A cancel goes into the session that the task was made in, whatever was negotiated since.
        session_id=contract.session_id if contract and job.lane is not Lane.CANCEL else row.operation.session_id,
    )


def evidence(intent: IntentRequest, reply: Answered | NoAnswer) -> Answer:
    """What to keep of an answer. Status 0 marks one that was cut: its bytes are a hint for a person, never a bind."""
    status, headers = (reply.status, reply.headers) if isinstance(reply, Answered) else (0, {})
    kept = {name: headers[name][:KEPT_CHARS].replace("\0", "") for name in KEPT_HEADERS if name in headers}
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
    if intent.effect == "cancel":
        if unsent:
            return events.CancelNotSent(intent.generation, reply.why, send_token=intent.send_token)
        return events.CancelUnclear(intent.generation, "E_CANCEL_UNCLEAR", reply.why)
    if unsent:
        return events.SubmitNotSent(intent.attempt, reply.why, send_token=intent.send_token)
    return events.SubmitUnclear(intent.attempt, "E_SUBMISSION_UNKNOWN", reply.why)
