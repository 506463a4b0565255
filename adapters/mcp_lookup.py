"""A lost submit is asked for by its key, through a read-only tool that the server's owner offers.

MCP has no such question of its own, so the tool's arguments and its answer are a contract of ours, the same for every
version: `{submission_key, tool, attempt}` in, and out either `{found: false, authoritative}` or `found: true` with one
of a task's id (`taskId`), `running`, `result`, `unsure`, `conflict`. What says less, or two things at once, says
nothing.
"""

from . import strict_json
from .contract import Search
from .fields import Malformed, items, member, text, whole_ms, word
from .jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Message, RpcError
from .mcp_answers import result_at_once, says_error, task_started
from .outcomes import (
    KEY_REUSED,
    Absent,
    Busy,
    Found,
    FoundOver,
    FoundRunning,
    LookupOutcome,
    NoAccess,
    NoSuchVerb,
    Refused,
    SessionGone,
    Unclear,
)
from .strict_json import BadJson, Json, is_storable

TOOL = "counterfoil_lookup"
"""Its usual name: what `counterfoil.server.keyed()` adds to a server."""

_POINTER = "/result/structuredContent"

# What was found. More than one of them, or one beside "not found", is a contradiction.
_FINDINGS = ("taskId", "running", "result", "unsure", "conflict")

# No such method or tool, or not callable as its owner declared it (-32020 to -32022: headers, capability, version).
_CANNOT_BE_ASKED = frozenset({METHOD_NOT_FOUND, INVALID_PARAMS, -32020, -32021, -32022})


def params(search: Search) -> dict[str, bytes]:
    """Of the `tools/call` that asks."""
    arguments: dict[str, Json] = {
        "submission_key": search.submission_key,
        "tool": search.tool,
        "attempt": search.attempt,
    }
    return {"name": strict_json.dumps(search.lookup_tool), "arguments": strict_json.dumps(arguments)}


def read(heard: Message | Busy | NoAccess | Refused | SessionGone, *, makes_tasks: bool) -> LookupOutcome:
    """The answer of the lookup tool. `makes_tasks`: whether a task that it names could be asked for."""
    if isinstance(heard, Refused):
        return Unclear(heard.code, heard.why)
    if not isinstance(heard, Message):
        return heard
    if heard.error is not None:
        return _error(heard.error)
    try:
        return _said(heard, makes_tasks=makes_tasks)
    except Malformed as error:
        return Unclear("E_UNREADABLE_ANSWER", f"the lookup tool: {error}")


def _error(error: RpcError) -> LookupOutcome:
    if member(error.data, "code") == KEY_REUSED:
        return Unclear(KEY_REUSED, error.message)
    if error.code in _CANNOT_BE_ASKED:
        return NoSuchVerb(f"error {error.code}: {error.message}")
    return Busy(str(error.code))


def _said(message: Message, *, makes_tasks: bool) -> LookupOutcome:
    result = message.result
    if not isinstance(result, dict) or result.get("resultType") not in (None, "complete"):
        raise Malformed("the answer is not the result of a tool")
    if says_error(result):
        return Unclear("E_LOOKUP_FAILED", text(_first_text(result)) or "the lookup tool reported an error")
    answer = _answer(result)
    findings = [name for name in _FINDINGS if answer.get(name) not in (None, False)]
    found = answer.get("found")
    if found is False and not findings:
        return _absent(answer)
    if found is not True or len(findings) != 1:
        raise Malformed("`found` and what was found contradict each other")
    finding = findings[0]
    if finding == "taskId":
        return _task(answer, makes_tasks=makes_tasks)
    if finding == "result":
        return _over(message, result)
    if answer[finding] is not True:
        raise Malformed(f"`{finding}` is neither true nor false")
    if finding == "running":
        return FoundRunning()
    if finding == "conflict":
        return Unclear(KEY_REUSED, "the server knows the key with another request")
    return Unclear("E_KEY_UNSURE", "the server knows the key, but not what became of the call")


def _answer(result: dict[str, Json]) -> dict[str, Json]:
    """The tool's own object: its structured content, or the one text block of a server that has none."""
    answer = result.get("structuredContent")
    if answer is None:
        spoken = _first_text(result) if len(items(result.get("content"))) == 1 else None
        if not isinstance(spoken, str) or not is_storable(spoken):
            raise Malformed("neither structured content nor one block of text")
        try:
            answer = strict_json.loads(spoken.encode())
        except BadJson as error:
            raise Malformed(f"its text is {error}") from None
    if not isinstance(answer, dict):
        raise Malformed("the answer is not an object")
    return answer


def _first_text(result: dict[str, Json]) -> Json:
    for block in items(result.get("content"))[:1]:
        return member(block, "text") if member(block, "type") == "text" else None
    return None


def _absent(answer: dict[str, Json]) -> Absent:
    authoritative = answer.get("authoritative")
    if not isinstance(authoritative, bool):
        raise Malformed("`authoritative` is neither true nor false")
    return Absent(authoritative)


def _task(answer: dict[str, Json], *, makes_tasks: bool) -> LookupOutcome:
    if not makes_tasks:
        return Unclear("E_PROTOCOL_MIX", "the lookup tool names a task, and this protocol has none")
    times = word(answer.get("createdAt")), whole_ms(answer.get("ttlMs")), whole_ms(answer.get("pollIntervalMs"))
    return Found(task_started(answer, *times))


def _over(message: Message, result: dict[str, Json]) -> LookupOutcome:
    """A digest is over exact bytes (SPEC section 6): within a text block there are none of the result's own."""
    found = member(result.get("structuredContent"), "result")
    if not isinstance(found, dict):
        raise Malformed("`result` is no object in the structured content")
    over = result_at_once(message, found, f"{_POINTER}/result")
    return over if isinstance(over, Unclear) else FoundOver(over)
