"""What a worker knows about targets: adapter, endpoint, policy, credential, and the schemas of tools that were
negotiated.

Targets and policies come from the targets file and don't change in a process's life; output schemas are learned (by
descriptor digest, so they can't be wrong) and read by the loop and by the database thread.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from threading import Lock
from typing import TypeAlias

from ..adapters import strict_json
from ..adapters.contract import Adapter, Answered, Call, Endpoint, InputReply, NoAnswer, RemoteTask, Search, Sent
from ..adapters.jsonrpc import random_id
from ..adapters.registry import adapter
from ..ledger import events
from ..ledger.policy import Policy
from ..ledger.rows import Evidence, Row
from . import interpret
from .actions import ContractKey
from .sessions import Sessions
from .targets import Target, Targets
from .traces import traceparent

MAX_SCHEMAS = 4096

TTL_FACTOR = 2.0
"""Of the wait budget: a task that outlives its keeper's memory is a case, so more is asked for than is needed."""

LoadDescriptors: TypeAlias = Callable[[Iterable[bytes]], Mapping[bytes, bytes]]


class Catalog:
    """Targets of one worker. `load_descriptors` reads descriptors by digest from the ledger; `new_id` makes request
    ids of readings. `traced`: calls carry a trace context."""

    def __init__(
        self,
        targets: Targets,
        load_descriptors: LoadDescriptors,
        sessions: Sessions,
        new_id: Callable[[], str] = random_id,
        *,
        traced: bool = False,
    ) -> None:
        self._targets = targets
        self._traced = traced
        self.sessions = sessions
        self.load_descriptors = load_descriptors
        self._adapters: dict[str, Adapter] = {
            protocol: adapter(protocol, new_id) for protocol in {targets[name].protocol for name in targets.names}
        }
        self._endpoints: Mapping[str, Endpoint] = {name: targets[name].endpoint() for name in targets.names}
        self._schemas: OrderedDict[bytes, bytes | None] = OrderedDict()
        self._lock = Lock()

    @property
    def names(self) -> Iterable[str]:
        return self._targets.names

    def __contains__(self, target: str) -> bool:
        return target in self._endpoints

    def target(self, name: str) -> Target:
        return self._targets[name]

    def adapter(self, target: str) -> Adapter:
        return self._adapters[self._targets[target].protocol]

    def shares_session(self, target: str) -> bool:
        """Whether calls of this target share one session; a blocking call has a session of its own."""
        profile = self.adapter(target).profile
        return profile.sessions and not profile.sync

    def endpoint(self, target: str, policy: Policy | None = None) -> Endpoint:
        """Where a target is, with what this policy declares of a tool's own API."""
        endpoint = self._endpoints[target]
        return replace(endpoint, api=policy.api) if policy is not None and policy.api else endpoint

    def credential(self, target: str, principal: str) -> str:
        """The reference of the credential to send with, "" for none."""
        return self._targets[target].credential_for(principal) or ""

    def credential_of(self, row: Row) -> str:
        """The reference to speak for this row with: the one that its first intent pinned, whatever the file says now.
        Another may see other tasks, and other keys (SPEC section 1)."""
        return row.operation.policy.credential if row.pinned else self.credential(row.target, row.principal)

    def contract_key(self, row: Row) -> ContractKey:
        return (row.target, row.tool, self.credential_of(row))

    def moved(self, row: Row) -> bool:
        """Whether the target has another URL than this row was first sent to. Its task may be read there, as the
        operator says; that a key is unknown there proves nothing."""
        return row.pinned and row.operation.policy.url != self._endpoints[row.target].url

    def policy(self, target: str, tool: str) -> Policy:
        """The policy for an operation that has none pinned. A target that left the file keeps the defaults: nothing
        is sent to it."""
        if target not in self._endpoints:
            return Policy(protocol="unknown")
        return self._targets[target].policy(tool)

    def policy_for(self, row: Row) -> Policy:
        """The policy that this row's next intent pins: the pinned one, or today's with the scope it will be sent in."""
        if row.pinned:
            return row.operation.policy
        scope = {"url": self._endpoints[row.target].url, "credential": self.credential(row.target, row.principal)}
        return row.operation.policy.model_copy(update=scope)

    def missing_schemas(self, digests: Iterable[bytes | None]) -> set[bytes]:
        """Descriptor digests whose output schema has not been learned yet."""
        with self._lock:
            return {digest for digest in digests if digest is not None and digest not in self._schemas}

    def learn_descriptor(self, digest: bytes, descriptor: bytes) -> None:
        """Keep the output schema of a negotiated tool."""
        try:
            tool = strict_json.loads(descriptor)
        except strict_json.BadJson:
            tool = {}
        schema = tool.get("outputSchema") if isinstance(tool, dict) else None
        with self._lock:
            self._schemas[digest] = strict_json.dumps(schema) if isinstance(schema, dict) else None
            while len(self._schemas) > MAX_SCHEMAS:
                self._schemas.popitem(last=False)

    def output_schema(self, row: Row) -> bytes | None:
        """The operator's schema for this tool's result, else the tool's own (loaded by digest where it was not
        learned yet)."""
        if row.target in self._endpoints:
            own = self._targets[row.target].output_schema(row.tool)
            if own is not None:
                return own
        digest = row.descriptor_digest
        if digest is None:
            return None
        for missing in self.missing_schemas([digest]):
            for found, body in self.load_descriptors([missing]).items():
                self.learn_descriptor(found, body)
        with self._lock:
            return self._schemas.get(digest)

    def call(
        self,
        row: Row,
        policy: Policy,
        request_id: str,
        *,
        descriptor: Mapping[str, object] | None = None,
        session: bytes | None = None,
    ) -> Call:
        """The submit of this row. `request_id` is the send token, so that kept evidence can be matched to its
        request. The server is asked to keep the task well beyond the wait budget."""
        assert row.arguments is not None, "arguments are read as long as a submit may be made"
        return Call(
            tool=row.tool,
            arguments=row.arguments,
            submission_key=str(row.submission_key),
            answer_by_s=policy.answer_by_s,
            descriptor=descriptor,
            attempt=row.operation.attempt,
            request_id=request_id,
            session=session,
            ttl_ms=math.ceil(policy.wait_budget_s * TTL_FACTOR * 1000),
            replies=tuple(InputReply(one.key, one.method, one.content, one.reply_to) for one in row.replies),
            state=row.operation.request_state,
            lookup_tool=policy.lookup_tool,
            traceparent=traceparent(row.id, row.operation.attempt) if self._traced else "",
            made_at_s=(row.id.int >> 80) / 1000,  # its id is a UUIDv7, whose first 48 bits are these milliseconds
        )

    def search(self, row: Row) -> Search:
        """The question by key for a submit of this row, in the session that submitted it."""
        return Search(
            tool=row.tool,
            submission_key=str(row.submission_key),
            attempt=row.operation.attempt,
            lookup_tool=row.operation.policy.lookup_tool,
            session=self.sessions.get(row.operation.session_id),
        )

    def task(self, row: Row, request_id: str = "") -> RemoteTask:
        assert row.operation.task_id is not None, "a task is read only once it is known"
        return RemoteTask(
            task_id=row.operation.task_id,
            submission_key=str(row.submission_key),
            created_at=row.operation.remote_created_at,
            request_id=request_id,
            session=self.sessions.get(row.operation.session_id),
            terminal=row.operation.terminal_status,
            # What is open and not replied to is known already; a question may be delivered once only.
            reads_question=not any(one.state in ("open", "replied") for one in row.operation.rounds),
        )

    def read_evidence(self, row: Row, piece: Evidence) -> events.Event:
        """What a kept answer says, read from its exact bytes under the lock of its operation."""
        target, policy = row.target, row.operation.policy
        reply = (
            Answered(piece.status, piece.headers, piece.body)
            if piece.status
            else NoAnswer(Sent.MAYBE, "the answer was cut", piece.body)
        )
        request_id = "" if piece.send_token is None else str(piece.send_token)
        if piece.kind in ("cancel", "answer", "input"):
            return self._read_about_task(row, piece, self.task(row, request_id), reply)
        call = self.call(replace(row, arguments=row.arguments or b"{}"), policy, request_id)
        call = replace(call, attempt=piece.attempt)
        heard = self.adapter(target).read_submit(self.endpoint(target, policy), call, reply)
        schema = self.output_schema(row)
        if piece.kind == "replay":
            return interpret.replay(heard, send_token=piece.send_token, policy=policy, output_schema=schema)
        return interpret.submit(heard, attempt=piece.attempt, policy=policy, output_schema=schema)

    def _read_about_task(self, row: Row, piece: Evidence, task: RemoteTask, reply: Answered | NoAnswer) -> events.Event:
        adapter, endpoint = self.adapter(row.target), self.endpoint(row.target, row.operation.policy)
        if piece.kind == "cancel":
            outcome = adapter.read_cancel(endpoint, task, reply)
            return interpret.cancel(outcome, generation=piece.generation, send_token=piece.send_token)
        if piece.kind == "answer":
            heard = adapter.read_reply(endpoint, task, reply)
            return interpret.reply(heard, number=piece.attempt, send_token=piece.send_token)
        asked = adapter.read_input(endpoint, task, piece.body)
        return interpret.observation(
            asked, seq=piece.seq, failures=0, policy=row.operation.policy, output_schema=self.output_schema(row)
        )
