"""MCP 2025-11-25 with tasks: what answers mean. Pure functions from a reply to an outcome; hostile bytes included."""

from dataclasses import replace

from . import mcp_question
from .contract import (
    Answered,
    Call,
    Endpoint,
    RemoteTask,
    Reply,
)
from .fields import Malformed, member, status_unknown, text, whole_ms, word
from .jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Message, RpcError
from .jsonrpc_answers import heard_effect, heard_submit, is_of_session
from .mcp_answers import result_at_once, task_started, tool_result
from .mcp_session import Session, heard_in
from .outcomes import (
    Acknowledged,
    Busy,
    CancelOutcome,
    NeedsInput,
    NoAccess,
    NoSuchVerb,
    NotFound,
    Observation,
    Over,
    Payload,
    Refused,
    ReplyOutcome,
    SessionGone,
    StillWorking,
    SubmitOutcome,
    Terminal,
    Unclear,
)
from .profile import Profile
from .strict_json import Json

_TERMINALS = {terminal.value: terminal for terminal in Terminal}

# 2025-11-25 -> 2026-07-28: a task with the new name alone was not written by this version
_RENAMED = (("ttl", "ttlMs"), ("pollInterval", "pollIntervalMs"), ("ttl", "resultType"))

# -- submit ------------------------------------------------------------------------------------------------------------


def read_submit(profile: Profile, endpoint: Endpoint, call: Call, reply: Reply) -> SubmitOutcome:
    """The answer to `tools/call` with a task asked for: the task, or a result at once from a server that ignored it."""
    return heard_submit(profile, endpoint, call.request_id, reply, _result_of_submit)


def _result_of_submit(message: Message, result: dict[str, Json]) -> SubmitOutcome:
    task = result.get("task")
    if isinstance(task, dict):
        return task_started(task, *_times(task))
    return result_at_once(message, result)


# -- poll --------------------------------------------------------------------------------------------------------------


def read_poll(endpoint: Endpoint, task: RemoteTask, session: Session, reply: Reply) -> Observation:
    """The answer to `tasks/get`. Only a result that bears the task's own id says anything about the task."""
    heard = heard_in(session, endpoint, task.request_id, reply)
    if not isinstance(heard, Message):
        return heard
    if heard.error is not None:
        return _error_of_read(heard.error)
    return _task(heard.result, task)


def _error_of_read(error: RpcError) -> Observation:
    if error.code == INVALID_PARAMS:
        return NotFound(error.message)
    if error.code == METHOD_NOT_FOUND:
        return Refused("E_CAPABILITY_UNSUPPORTED", f"error {error.code}: {error.message}")
    return Busy(str(error.code))


def _task(result: Json, task: RemoteTask) -> Observation:
    refusal = _not_this_task(result, task)
    if refusal is not None:
        return refusal
    assert isinstance(result, dict)  # anything else is not this task
    status, said = result.get("status"), text(result.get("statusMessage"))
    if status == "working":
        return StillWorking(status, *_times(result), message=said)
    if status == "input_required":
        return NeedsInput(status, (), *_times(result))  # what it asks comes on the stream of `tasks/result`
    if isinstance(status, str) and status in _TERMINALS:
        return Over(_TERMINALS[status], status, None, message=said, created_at=word(result.get("createdAt")))
    return status_unknown(status)


def _not_this_task(result: Json, task: RemoteTask) -> Refused | None:
    """Why a result is no word about this task: the shape of 2026-07-28, another id, or none."""
    if not isinstance(result, dict):
        return Refused("E_TASK_ID_MISMATCH", "the result is not an object, so it names no task")
    if any(new in result and old not in result for old, new in _RENAMED):
        return Refused("E_PROTOCOL_MIX", "a task in the shape of MCP 2026-07-28")
    if result.get("taskId") != task.task_id:
        return Refused("E_TASK_ID_MISMATCH", "the answer is about another task, or names none")
    return None


# -- input -------------------------------------------------------------------------------------------------------------


def read_question(
    endpoint: Endpoint, task: RemoteTask, session: Session, told: NeedsInput, reply: Reply
) -> Observation:
    """What the stream of `tasks/result` brought, for a task that `tasks/get` has just `told` to be waiting.

    No question (it was delivered before, or the task went on meanwhile) leaves what was told; so does a trouble of this
    one read, unless it is one of all reads: another credential, a lost session, a server that wants quiet.
    """
    body = mcp_question.on_stream(task.task_id, reply)
    if body:
        return _asked(task, session, body, told)
    heard = heard_in(session, endpoint, task.request_id, reply)
    if isinstance(heard, NoAccess | SessionGone) or (isinstance(heard, Busy) and heard.closes_target):
        return heard
    return told


def read_input(task: RemoteTask, session: Session, body: bytes) -> Observation:
    """A kept question, read again."""
    return _asked(task, session, body, NeedsInput("input_required", ()))


def _asked(task: RemoteTask, session: Session, body: bytes, told: NeedsInput) -> Observation:
    try:
        return replace(told, keys=mcp_question.keys(session, task.task_id, body), body=body)
    except Malformed as error:
        return Refused("E_INPUT_MALFORMED", str(error))


def read_reply(profile: Profile, endpoint: Endpoint, session: Session, reply: Reply) -> ReplyOutcome:
    """The answer to our response: HTTP 202, whatever becomes of it (also for a second one, which is ignored)."""
    if isinstance(reply, Answered) and reply.status == 202:
        return Acknowledged()
    heard = heard_effect(profile, endpoint, "", reply)
    if isinstance(heard, Message):
        code = "E_UNREADABLE_ANSWER" if heard.error is None else str(heard.error.code)
        heard = Unclear(code, "an answer to an answer" if heard.error is None else heard.error.message)
    if isinstance(heard, Unclear) and isinstance(heard_in(session, endpoint, "", reply), SessionGone):
        return Unclear("E_SESSION_GONE", "the session that asked is gone, and no other can answer in its place")
    return heard


# -- fetch -------------------------------------------------------------------------------------------------------------


def read_fetch(endpoint: Endpoint, task: RemoteTask, session: Session, reply: Reply) -> Observation:
    """The answer to `tasks/result`: what the call itself would have been answered with, a result or an error.

    It says no status word: the one that was read (`task.terminal`) stands. -32602 stays "not found" even for a failed
    task, whose own error it might be: the message alone would tell them apart.
    """
    heard = heard_in(session, endpoint, task.request_id, reply)
    if not isinstance(heard, Message):
        return heard
    if heard.error is not None:
        return _error_of_fetch(heard, heard.error, task)
    if not isinstance(heard.result, dict):
        return Over(_terminal(task), _terminal(task).value, None)
    related = member(heard.result, "_meta", mcp_question.RELATED_TASK)
    if related is not None and member(related, "taskId") != task.task_id:
        return Refused("E_TASK_ID_MISMATCH", "the result of another task")
    if heard.result.get("resultType") not in (None, "complete"):
        return Refused("E_PROTOCOL_MIX", "a result in the shape of MCP 2026-07-28")
    over = tool_result(heard, heard.result)
    return replace(over, terminal=_terminal(task), status=_terminal(task).value)


def _error_of_fetch(message: Message, error: RpcError, task: RemoteTask) -> Observation:
    if error.code != INVALID_PARAMS and _terminal(task) is Terminal.FAILED:
        return Over(Terminal.FAILED, "failed", Payload(message.body, "/error"), message=error.message)
    if error.code != INVALID_PARAMS and _terminal(task) is Terminal.CANCELLED:
        return Over(Terminal.CANCELLED, "cancelled", None, message=error.message)  # "has no result stored"
    return _error_of_read(error)


def _terminal(task: RemoteTask) -> Terminal:
    return _TERMINALS.get(task.terminal or "", Terminal.COMPLETED)


# -- cancel ------------------------------------------------------------------------------------------------------------


def read_cancel(profile: Profile, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> CancelOutcome:
    """The answer to `tasks/cancel`: the task itself. -32602 means over, unknown or not ours: `tasks/get` tells."""
    heard = heard_effect(profile, endpoint, task.request_id, reply)
    if isinstance(heard, Unclear) and isinstance(reply, Answered) and reply.status == 501:
        return NoSuchVerb("HTTP 501")
    if not isinstance(heard, Message):
        return heard
    if heard.error is not None:
        return _error_of_cancel(heard.error, reply)
    refusal = _not_this_task(heard.result, task)
    if refusal is not None:
        return Unclear(refusal.code, refusal.why)
    return Acknowledged(word(member(heard.result, "status")))


def _error_of_cancel(error: RpcError, reply: Reply) -> CancelOutcome:
    if isinstance(reply, Answered) and is_of_session(reply.status, error.code):
        return Unclear(str(error.code), f"HTTP {reply.status}: {error.message}")
    if error.code == INVALID_PARAMS:
        return NotFound(error.message)
    if error.code == METHOD_NOT_FOUND:
        return NoSuchVerb(error.message)
    return Unclear(str(error.code), error.message)


# -- fields ------------------------------------------------------------------------------------------------------------


def _times(result: dict[str, Json]) -> tuple[str | None, int | None, int | None]:
    """createdAt, ttl, pollInterval (ms) as last told. A server may change the ttl that it was asked for."""
    return word(result.get("createdAt")), whole_ms(result.get("ttl")), whole_ms(result.get("pollInterval"))
