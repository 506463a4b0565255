"""MCP 2026-07-28 with tasks: what answers mean. Pure functions from a reply to an outcome; hostile bytes included."""

from typing import cast

from . import strict_json
from .contract import (
    Answered,
    Call,
    Endpoint,
    RemoteTask,
    Reply,
)
from .fields import MAX_TASK_ID_CHARS, MAX_WORD_CHARS, Malformed, items, member, status_unknown, text, whole_ms, word
from .jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Message, NoResponse, RpcError, read
from .jsonrpc_answers import heard_effect, heard_read, heard_submit
from .mcp_answers import MAX_INPUT_KEYS, says_error, task_started, tool_result
from .outcomes import (
    Acknowledged,
    Busy,
    InputKey,
    NeedsInput,
    NoSuchVerb,
    NotFound,
    NotOffered,
    Observation,
    Over,
    Payload,
    Refused,
    ReplyOutcome,
    StillWorking,
    SubmitOutcome,
    Terminal,
    Unclear,
)
from .profile import Profile
from .strict_json import Json, is_storable

MAX_STATE_BYTES = 64 * 1024
"""Of a request state: kept with the operation and sent back with the next leg."""

# -32020 headers, -32021 client capability, -32022 version: the server no longer speaks what was negotiated
_NO_LONGER_SPOKEN = frozenset({METHOD_NOT_FOUND, -32020, -32021, -32022})


# -- discover ----------------------------------------------------------------------------------------------------------


def read_discover(result: dict[str, Json], server: str, version: str, extension: str) -> NotOffered | None:
    """None when the server speaks the version and advertises the extension."""
    code = "E_CAPABILITY_UNSUPPORTED"
    if version not in items(result.get("supportedVersions")):
        spoken = ", ".join(word(item) or "?" for item in items(result.get("supportedVersions"))[:8])
        return NotOffered(code, f"Not sent: {server} speaks MCP {spoken or 'of no version it names'}, not {version}.")
    if not isinstance(member(result, "capabilities", "extensions", extension), dict):
        return NotOffered(code, f"Not sent: {server} does not declare the extension {extension}.")
    return None


# -- submit ------------------------------------------------------------------------------------------------------------


def read_submit(profile: Profile, endpoint: Endpoint, call: Call, reply: Reply) -> SubmitOutcome:
    """The answer to `tools/call`: a task, a result at once, or a question before a task exists."""
    return heard_submit(profile, endpoint, call.request_id, reply, _result_of_submit)


def _result_of_submit(message: Message, result: dict[str, Json]) -> SubmitOutcome:
    kind = result.get("resultType")
    if kind == "task":
        return task_started(result, *_times(result))
    if kind == "input_required":
        return _question_of_call(message, result)
    if kind not in (None, "complete"):
        said = word(kind) or "no text"
        return Unclear("E_RESULT_TYPE_UNKNOWN", f"the result is of a type that this version does not know: {said}")
    if "task" in result or "taskId" in result:
        # a handle must not pass for the result of the tool (2025 nests it in `task`)
        return Unclear("E_PROTOCOL_MIX", "a task handle in the shape of another protocol version")
    if kind is None and "content" not in result and "structuredContent" not in result:
        raise Malformed("the result is neither a task nor the result of a tool")
    return tool_result(message, result)


def _question_of_call(message: Message, result: dict[str, Json]) -> NeedsInput:
    """Asked before a task exists (an `InputRequiredResult`). No question but a state: the next leg is due as it is."""
    keys, state = _input_keys(result), _request_state(result)
    if not keys and state is None:
        raise Malformed("the call waits for input, and neither a question nor a state says how it goes on")
    return NeedsInput("input_required", keys, state=state, body=message.body)


def _request_state(result: dict[str, Json]) -> str | None:
    state = result.get("requestState")
    if state is None:
        return None
    if not isinstance(state, str) or not is_storable(state) or len(state.encode()) > MAX_STATE_BYTES:
        raise Malformed("the request state can't be carried back")
    return state


# -- poll --------------------------------------------------------------------------------------------------------------


def read_poll(endpoint: Endpoint, task: RemoteTask, reply: Reply) -> Observation:
    """The answer to `tasks/get`. Only a result that bears the task's own id says anything about the task."""
    heard = heard_read(endpoint, task.request_id, reply)
    if not isinstance(heard, Message):
        return heard
    if heard.error is not None:
        return _error_of_poll(heard.error)
    return _task_of_poll(heard, task)


def _error_of_poll(error: RpcError) -> Observation:
    if error.code == INVALID_PARAMS:
        return NotFound(error.message)
    if error.code in _NO_LONGER_SPOKEN:
        return Refused("E_CAPABILITY_UNSUPPORTED", f"error {error.code}: {error.message}")
    return Busy(str(error.code))


def _task_of_poll(message: Message, task: RemoteTask) -> Observation:
    result = message.result
    if not isinstance(result, dict):
        return Refused("E_TASK_ID_MISMATCH", "the result is not an object, so it names no task")
    if _is_of_2025(result):
        return Refused("E_PROTOCOL_MIX", "a task in the shape of MCP 2025-11-25")
    if result.get("taskId") != task.task_id:
        return Refused("E_TASK_ID_MISMATCH", "the answer is about another task, or names none")
    status = result.get("status")
    if status == "working":
        return StillWorking(status, *_times(result), message=text(result.get("statusMessage")))
    if status == "input_required":
        try:
            return _question_of_task(message, result)
        except Malformed as error:
            return Refused("E_INPUT_MALFORMED", str(error))
    if status == "completed":
        return _over_completed(message, result)
    if status == "failed":
        return _over_failed(message, result)
    if status == "cancelled":
        said = text(result.get("statusMessage"))
        return Over(Terminal.CANCELLED, status, None, message=said, created_at=word(result.get("createdAt")))
    return status_unknown(status)


def _question_of_task(message: Message, task: dict[str, Json]) -> NeedsInput:
    keys = _input_keys(task)
    return NeedsInput("input_required", keys, *_times(task), body=message.body if keys else b"")


def _is_of_2025(result: dict[str, Json]) -> bool:
    nested = isinstance(result.get("task"), dict) and "taskId" not in result
    return nested or any(
        old in result and new not in result for old, new in (("ttl", "ttlMs"), ("pollInterval", "pollIntervalMs"))
    )


def _over_completed(message: Message, task: dict[str, Json]) -> Over:
    result = task.get("result")
    payload, failed = None, False
    if isinstance(result, dict):
        failed = says_error(result)
        structured = result.get("structuredContent") is not None
        payload = Payload(message.body, "/result/result/structuredContent" if structured else "/result/result")
    said = text(task.get("statusMessage"))
    return Over(
        Terminal.COMPLETED,
        "completed",
        payload,
        tool_error=failed,
        message=said,
        created_at=word(task.get("createdAt")),
    )


def _over_failed(message: Message, task: dict[str, Json]) -> Over:
    error = task.get("error")
    payload = Payload(message.body, "/result/error") if isinstance(error, dict) else None
    said = text(task.get("statusMessage")) or text(member(error, "message"))
    return Over(Terminal.FAILED, "failed", payload, message=said, created_at=word(task.get("createdAt")))


# -- input -------------------------------------------------------------------------------------------------------------


def read_input(task: RemoteTask, body: bytes) -> Observation:
    """A kept message, read again: a task's own, or that of the call which asked before a task existed."""
    try:
        message = read(Answered(200, body=body), "")
        if message.error is None and not task.task_id and member(message.result, "resultType") == "input_required":
            return _question_of_call(message, cast("dict[str, Json]", message.result))
    except (NoResponse, Malformed) as error:
        return Refused("E_INPUT_MALFORMED", str(error))
    asked = _task_of_poll(message, task)
    return asked if isinstance(asked, NeedsInput | Refused) else Refused("E_INPUT_MALFORMED", "no question is in there")


# -- reply, cancel -----------------------------------------------------------------------------------------------------


def read_acknowledgement(profile: Profile, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> ReplyOutcome:
    """The answer to `tasks/update` and to `tasks/cancel`: empty, and never an end in this version (SPEC section 5)."""
    heard = heard_effect(profile, endpoint, task.request_id, reply)
    if isinstance(heard, Unclear) and isinstance(reply, Answered) and reply.status in (404, 501):
        return NoSuchVerb(f"HTTP {reply.status}")
    if not isinstance(heard, Message):
        return heard
    if heard.error is None:
        return Acknowledged(word(member(heard.result, "status")))
    if heard.error.code == INVALID_PARAMS:
        return NotFound(heard.error.message)
    if heard.error.code == METHOD_NOT_FOUND:
        return NoSuchVerb(heard.error.message)
    return Unclear(str(heard.error.code), heard.error.message)


# -- fields ------------------------------------------------------------------------------------------------------------


def _times(result: dict[str, Json]) -> tuple[str | None, int | None, int | None]:
    """createdAt, ttlMs, pollIntervalMs as last told. `lastUpdatedAt` moves at every poll, also under a dead worker."""
    return word(result.get("createdAt")), whole_ms(result.get("ttlMs")), whole_ms(result.get("pollIntervalMs"))


def _input_keys(result: dict[str, Json]) -> tuple[InputKey, ...]:
    """The open questions, sorted by key. Raises Malformed: a key that is changed here could never be answered."""
    requests = result.get("inputRequests")
    if requests is None:
        return ()
    if not isinstance(requests, dict) or len(requests) > MAX_INPUT_KEYS:
        raise Malformed(f"inputRequests is no object of at most {MAX_INPUT_KEYS} questions")
    if strict_json.find_unstorable(requests) is not None:
        raise Malformed("a question holds a text that can't be stored")
    keys = []
    for key, question in sorted(requests.items()):
        method = question.get("method") if isinstance(question, dict) else None
        if not isinstance(question, dict) or not isinstance(method, str):
            raise Malformed("a question without a method")
        if not 0 < len(key) <= MAX_TASK_ID_CHARS or len(method) > MAX_WORD_CHARS:
            raise Malformed("a question whose key or method is too long")
        keys.append(InputKey(key, method, strict_json.dumps(question.get("params", {}))))
    return tuple(keys)
