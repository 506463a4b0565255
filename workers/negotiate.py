"""Contracts: what was negotiated with a target for a tool, kept per process for a while, committed before any submit
rests on it."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

from ..adapters import strict_json
from ..adapters.outcomes import (
    Busy,
    Negotiated,
    NoAccess,
    NotOffered,
)
from ..ledger import events
from ..ledger.digest import sha256
from ..ledger.rows import Row
from . import schemas
from .actions import ContractKey, KeepContract
from .catalog import Catalog
from .interpret import Unsent
from .jobs import Contract, Job, Negotiation

BELIEVED_S = 300.0
"""How long a descriptor is taken as it was read. A changed tool shows as a rejection, which is handled as one."""

REFUSED_S = 5.0
"""How long a refusal answers everybody else without asking again."""


class Contracts:
    """One negotiation at a time for each (target, tool, credential)."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[ContractKey, Contract] = {}
        self._refused: dict[ContractKey, tuple[float, events.RefusedBeforeSubmit]] = {}
        self._running: dict[ContractKey, Negotiation] = {}
        self._pending: dict[ContractKey, Contract] = {}

    def ask(self, key: ContractKey, now_s: float) -> Contract | events.RefusedBeforeSubmit | None:
        """What is known; None: somebody has to negotiate first. What the targets file itself forbids needs nobody."""
        target, tool, _ = key
        objection = self._catalog.target(target).objection(tool)
        if objection is not None:
            return events.RefusedBeforeSubmit("E_CAPABILITY_UNSUPPORTED", objection)
        contract = self._known.get(key)
        if contract is not None and contract.until_s > now_s:
            return contract
        until_s, refusal = self._refused.get(key, (0.0, None))
        return refusal if until_s > now_s else None

    def of(self, row: Row) -> Contract | None:
        """The contract that a submit of this row rests on."""
        return self._known.get(self._catalog.contract_key(row))

    def wait(self, key: ContractKey, job: Job) -> Negotiation | None:
        """Line a job up. Returns a negotiation to start when there is none running."""
        running = self._running.get(key)
        if running is not None:
            running.waiting.append(job)
            return None
        target, tool, _ = key
        endpoint = self._catalog.endpoint(target, self._catalog.policy(target, tool))
        exchange = self._catalog.adapter(target).negotiate(endpoint, tool)
        self._running[key] = Negotiation(key, exchange, [job])
        return self._running[key]

    def heard(
        self, negotiation: Negotiation, outcome: Any, now_s: float
    ) -> tuple[KeepContract | None, list[tuple[Job, Unsent]]]:
        """The outcome: something to commit first, or what the waiting jobs are told."""
        key, jobs = negotiation.key, negotiation.waiting
        if isinstance(outcome, Negotiated):
            return self._agree(key, outcome, now_s), []
        del self._running[key]
        if isinstance(outcome, NotOffered):
            refusal = events.RefusedBeforeSubmit(outcome.code, outcome.why)
            self._refused[key] = (now_s + REFUSED_S, refusal)
            return None, [(job, refusal) for job in jobs]
        return None, [(job, _not_yet(job, outcome)) for job in jobs]

    def _agree(self, key: ContractKey, agreed: Negotiated, now_s: float) -> KeepContract:
        target, tool, credential = key
        digest = sha256(agreed.descriptor)
        descriptor = json.loads(agreed.descriptor)
        scope = {"url": self._catalog.endpoint(target).url, "credential": credential}
        policy = self._catalog.policy(target, tool).model_copy(update=scope)
        self._catalog.learn_descriptor(digest, agreed.descriptor)
        self._pending[key] = Contract(
            agreed.protocol,
            agreed.tool_version,
            descriptor,
            digest,
            agreed.input_schema,
            policy.digest(),
            now_s + BELIEVED_S,
            agreed.session,
        )
        return KeepContract(
            key, agreed.protocol, agreed.tool_version, agreed.descriptor, digest, policy, agreed.session
        )

    def kept(
        self, key: ContractKey, policy_digest: bytes, session_id: UUID | None = None
    ) -> tuple[Contract, list[Job]]:
        """It is committed: these jobs may go on."""
        contract = replace(self._pending.pop(key), session_id=session_id)
        assert contract.policy_digest == policy_digest
        self._known[key] = contract
        return contract, self._running.pop(key).waiting

    def forget(self, key: ContractKey, session_id: UUID | None) -> None:
        """Its session is gone at the server. A newer one, which another row has found out for, stays."""
        contract = self._known.get(key)
        if contract is not None and contract.session_id == session_id:
            del self._known[key]

    def lost(self, key: ContractKey) -> list[Job]:
        """It could not be committed: nobody may rest on it."""
        self._pending.pop(key, None)
        return self._running.pop(key).waiting

    def misfit(self, contract: Contract, row: Row) -> events.RefusedBeforeSubmit | None:
        """Arguments that break the tool's own input schema are refused before anything is sent."""
        if contract.input_schema is None or row.arguments is None:
            return None
        try:
            problems = schemas.check(contract.input_schema, strict_json.loads(row.arguments))
        except schemas.SchemaError as error:
            return events.RefusedBeforeSubmit(error.code, f"the input schema of {row.tool}: {error.message}")
        except strict_json.BadJson as error:
            return events.RefusedBeforeSubmit("E_ARGUMENTS_INVALID", str(error))
        if not problems:
            return None
        told = "; ".join(f"{problem.path or '/'} {problem.message}" for problem in problems[:3])
        return events.RefusedBeforeSubmit(
            "E_ARGUMENTS_INVALID", f"the arguments break the input schema of {row.tool}: {told}"
        )


def _not_yet(job: Job, outcome: Any) -> Unsent:
    attempt = job.row.operation.attempt
    if isinstance(outcome, NoAccess):
        # Never as "not processed": that would close an intent which a successor may have opened meanwhile.
        return events.SubmitNotSent(attempt, "negotiation: the credential was refused", auth=True)
    assert isinstance(outcome, Busy)
    return events.SubmitNotSent(attempt, f"negotiation: {outcome.code}", outcome.retry_after_s)
