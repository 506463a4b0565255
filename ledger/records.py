"""What the ledger shows to the outside: pydantic records, versioned by name."""

import json
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from .digest import canonical_json, sha256

Hex = str


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Case(Record):
    """A question for a person."""

    id: UUID
    kind: str
    code: str
    why: str
    version: int
    opened_at: datetime
    closed_at: datetime | None
    closed_by: str | None
    verdict: str | None = None
    reason: str | None = None
    second_actor: str | None = None


class ToolOperation(Record):
    """`toolOperation.v1`: one call node's operation as it stands."""

    format: Literal["toolOperation.v1"] = "toolOperation.v1"
    id: UUID
    namespace: str
    call_node_id: str
    request_digest: Hex
    target: str
    tool: str
    tool_version: str | None
    descriptor_digest: Hex | None
    principal: str
    protocol: str | None
    submission_key: UUID
    task_id: str | None
    state: str
    server_status: str | None
    attempt: int
    input_round: int
    cancel_generation: int
    execution_epoch: int
    remote_created_at: str | None
    ttl_ms: int | None
    interval_ms: int | None
    wait_budget_ends_at: datetime | None
    outcome: str | None
    error_code: str | None
    result_digest: Hex | None
    created_at: datetime
    updated_at: datetime
    cases: tuple[Case, ...] = ()


RECEIPT_FIELDS = (
    "attempt",
    "call_node_id",
    "cancel_generation",
    "descriptor_digest",
    "effects_possible",
    "error_code",
    "execution_epoch",
    "id",
    "namespace",
    "operation_id",
    "outcome",
    "principal",
    "protocol",
    "request_digest",
    "result_digest",
    "result_pointer",
    "state",
    "submission_key",
    "target",
    "task_id",
    "terminal_status",
    "tool",
    "tool_version",
    "unanswered_rounds",
)


class Receipt(Record):
    """The one terminal fact of a call node. Immutable.

    `outcome` is succeeded, failed, cancelled, refused or abandoned; `abandoned` is never a reason to run again.
    `result` is what the tool said, untrusted content: the value at `result_pointer` in `result_body`'s exact bytes.
    `effects_possible` tells whether something may have happened outside.
    """

    format: Literal["receipt.v1"] = "receipt.v1"
    id: UUID
    namespace: str
    call_node_id: str
    operation_id: UUID
    request_digest: Hex
    submission_key: UUID
    target: str
    tool: str
    tool_version: str | None
    descriptor_digest: Hex | None
    principal: str
    protocol: str | None
    task_id: str | None
    state: str
    outcome: Literal["succeeded", "failed", "cancelled", "refused", "abandoned"]
    terminal_status: str | None
    error_code: str | None
    effects_possible: bool
    attempt: int
    cancel_generation: int
    unanswered_rounds: int
    execution_epoch: int
    result_digest: Hex | None
    result_pointer: str | None
    digest: Hex
    accepted_at: datetime
    result_trust: Literal["untrusted_tool_output"] = "untrusted_tool_output"
    result_body: bytes | None = Field(None, repr=False, exclude=True)

    @property
    def result(self) -> Any:
        """The tool's payload, parsed. None where there is none."""
        if self.result_body is None or self.result_pointer is None:
            return None
        return at_pointer(json.loads(self.result_body), self.result_pointer)

    def problems(self) -> list[str]:
        """Verify the receipt against itself: its digest over its fields, the result's digest over its exact bytes.
        Empty: sound."""
        found = []
        if sha256(self.canonical()).hex() != self.digest:
            found.append("the digest does not match the receipt's fields")
        if (
            self.result_digest is not None
            and self.result_body is not None
            and sha256(self.result_body).hex() != self.result_digest
        ):
            found.append("the result's digest does not match its bytes")
        if self.result_digest is not None and self.result_body is None:
            found.append("the result's bytes are missing")
        return found

    def canonical(self) -> bytes:
        """The RFC 8785 text that `digest` is taken over; the same as the SQL function `receipt_text`."""
        values: dict[str, Any] = {name: getattr(self, name) for name in RECEIPT_FIELDS}
        values = {name: str(value) if isinstance(value, UUID) else value for name, value in values.items()}
        values["accepted_at"] = self.accepted_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return canonical_json(values)


class Ready(Record):
    """A receipt that waits to be taken: the id is derived, so a repeat bears the same one."""

    id: UUID
    namespace: str
    call_node_id: str
    receipt_id: UUID
    deliveries: int
    created_at: datetime


class JournalLine(Record):
    """One line of an operation's story."""

    seq: int
    at: datetime
    epoch: int
    actor: str
    event: str
    source: str | None
    target: str | None
    lane: str | None
    code: str | None
    why: str | None


def at_pointer(value: Any, pointer: str) -> Any:
    """RFC 6901. None where the pointer leads nowhere."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        try:
            value = value[_index(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return value


def _index(key: str) -> int:
    """Digits only: `int` would take a sign, blanks and other scripts' digits as well."""
    if not (key.isascii() and key.isdigit()):
        raise ValueError(key)
    return int(key)
