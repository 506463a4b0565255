"""What the answers of every MCP version have in common: the results of tools, and the ids of tasks."""

from .fields import MAX_TASK_ID_CHARS, Malformed, word
from .jsonrpc import Message
from .outcomes import Over, Payload, TaskStarted, Terminal, Unclear
from .strict_json import Json, is_storable

MAX_INPUT_KEYS = 64
_ENDS = frozenset(Terminal)


def result_at_once(message: Message, result: dict[str, Json], at: str = "/result") -> Over | Unclear:
    """The result of a plain call. A handle or a question in another version's shape must not pass for it.

    Raises Malformed.
    """
    if result.get("resultType") not in (None, "complete") or "taskId" in result or "task" in result:
        return Unclear("E_PROTOCOL_MIX", "an answer in the shape of another protocol version")
    if "content" not in result and "structuredContent" not in result:
        raise Malformed("the result is neither a task nor the result of a tool")
    return tool_result(message, result, at)


def tool_result(message: Message, result: dict[str, Json], at: str = "/result") -> Over:
    """A `CallToolResult` that stands in the message `at` a pointer; no payload when it holds nothing."""
    structured = result.get("structuredContent") is not None
    pointer = f"{at}/structuredContent" if structured else at
    payload = Payload(message.body, pointer) if structured or "content" in result else None
    return Over(Terminal.COMPLETED, "completed", payload, tool_error=says_error(result))


def says_error(result: dict[str, Json]) -> bool:
    """`isError` is the tool's own word, whatever the status: anything but absent or false counts as an error."""
    return result.get("isError") not in (None, False)


def task_started(
    task: dict[str, Json], created_at: str | None, ttl_ms: int | None, interval_ms: int | None
) -> TaskStarted:
    """A task that was made, with what was told of its times. Raises Malformed."""
    status = word(task.get("status")) or ""
    return TaskStarted(_task_id(task), status, created_at, ttl_ms, interval_ms, over=status in _ENDS)


def _task_id(result: dict[str, Json]) -> str:
    """The id of a task that was made. Raises Malformed: an id that is changed here could never be asked for."""
    found = result.get("taskId")
    if not isinstance(found, str) or not 0 < len(found) <= MAX_TASK_ID_CHARS or not is_storable(found):
        raise Malformed("a task was made, but its id can't be used")
    return found
