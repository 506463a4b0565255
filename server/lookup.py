"""The lookup tool: what became of the call with this key?"""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from mcp_types import ToolAnnotations

from .calls import stored_name
from .records import Answer, Kind, Record, is_lost
from .register import Register
from .store import Entry

ANNOTATIONS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
DESCRIPTION = "Says what became of a call of a tool here, by its submission key. Runs nothing."

_TASK_FIELDS = ("taskId", "status", "createdAt", "ttlMs", "pollIntervalMs")

Lookup = Callable[[UUID, str, int], Awaitable[dict[str, Any]]]


def make_lookup(register: Register, principal: Callable[[], str]) -> Lookup:
    """Return the tool's function. `principal`: on whose behalf the request being served comes."""

    async def lookup(submission_key: UUID, tool: str, attempt: int = 1) -> dict[str, Any]:
        # `attempt` is part of the contract for servers that close attempts; here a key is unique for its lifetime.
        entry = await register.find(stored_name(principal(), submission_key))
        return describe(entry, tool, durable=register.durable)

    return lookup


def describe(entry: Entry | None, tool: str, *, durable: bool) -> dict[str, Any]:
    """Return the tool's answer: the table in docs/tool-owners.md.

    Raises:
        StoreError: what the store holds is no record.
    """
    if entry is None:
        return {"found": False, "authoritative": durable}
    record = Record.decode(entry.value)
    if record.tool != tool:
        return {"found": True, "conflict": True}
    if record.answer is None:
        return {"found": True, "unsure": True} if is_lost(entry) else {"found": True, "running": True}
    return {"found": True} | _outcome(record.answer)


def _outcome(answer: Answer) -> dict[str, Any]:
    match answer.kind:
        case Kind.TASK:
            return {name: answer.body[name] for name in _TASK_FIELDS if answer.body.get(name) is not None}
        case Kind.RESULT:
            return {"result": answer.body}
        case Kind.ERROR:
            # The caller needs a result to settle on; the words are the first answer's own.
            text = f"{answer.body['message']} (JSON-RPC error {answer.body['code']})"
            return {"result": {"content": [{"type": "text", "text": text}], "isError": True}}
        case Kind.QUESTION:
            return {"inputRequired": answer.body}
        case Kind.NOT_KEPT:
            return {"unsure": True}
