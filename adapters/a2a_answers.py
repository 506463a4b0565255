"""A2A 1.0: what answers mean. Pure functions from a reply to an outcome; hostile bytes included.

Errors come under HTTP 200. Empty members may be left out of a message (ProtoJSON), so a missing list is an empty one.
"""

import hashlib
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from . import strict_json
from .a2a_card import PARTS_SCHEMA
from .contract import (
    Answered,
    Call,
    Endpoint,
    RemoteTask,
    Reply,
)
from .fields import MAX_TASK_ID_CHARS, MAX_TEXT_CHARS, Malformed, items, member, status_unknown, word
from .jsonrpc import METHOD_NOT_FOUND, Message, NoResponse, RpcError, read
from .jsonrpc_answers import heard_effect, heard_read, heard_submit
from .outcomes import (
    Absent,
    Acknowledged,
    Busy,
    Found,
    Hint,
    InputKey,
    LookupOutcome,
    NeedsInput,
    NoAccess,
    NoSuchVerb,
    NotFound,
    Observation,
    Over,
    Payload,
    Refused,
    ReplyOutcome,
    StillWorking,
    SubmitOutcome,
    TaskStarted,
    Terminal,
    Unclear,
)
from .profile import Profile
from .strict_json import BadJson, Json, is_storable, storable

TASK_NOT_FOUND = -32001
UNSUPPORTED_OPERATION = -32004
VERSION_NOT_SUPPORTED = -32009

HISTORY = 10
"""Messages that are asked for to see whether a reply of ours arrived."""

MAX_PAGE_TOKEN_CHARS = 2000

_PREFIX = "TASK_STATE_"
_WORKING = frozenset({"submitted", "working"})
_WAITING = {"input_required": "a2a/input-required", "auth_required": "a2a/auth-required"}
_OVER = {
    "completed": Terminal.COMPLETED,
    "failed": Terminal.FAILED,
    # It decided not to do it, or not to go on: no promise that nothing ran.
    "rejected": Terminal.FAILED,
    "canceled": Terminal.CANCELLED,
}
_WORDS = _WORKING | _WAITING.keys() | _OVER.keys()

_NO_SUCH_VERB = frozenset({METHOD_NOT_FOUND, UNSUPPORTED_OPERATION})
_EVENT = re.compile(rb'\s*\{\s*"(task|message|statusUpdate|artifactUpdate)"\s*:')
"""A pushed message has one member. An answer to a request is JSON-RPC and starts otherwise."""

_SILENT = "The agent waits for input, and does not say for what."


# -- submit ------------------------------------------------------------------------------------------------------------


def read_submit(profile: Profile, endpoint: Endpoint, call: Call, reply: Reply) -> SubmitOutcome:
    """The answer to `SendMessage`: a task, whatever its state by now, or a message, which is the result at once."""
    return heard_submit(profile, endpoint, call.request_id, reply, _result_of_submit)


def _result_of_submit(message: Message, result: dict[str, Json]) -> SubmitOutcome:
    task, said = result.get("task"), result.get("message")
    if (task is None) == (said is None):
        if "kind" in result or "taskId" in result or "id" in result:
            return Unclear("E_PROTOCOL_MIX", "an answer in the shape of another protocol version")
        raise Malformed("the result is neither a task nor a message")
    if task is not None:
        return _started(task)
    if not items(member(said, "parts")):
        raise Malformed("the agent answered with a message that says nothing")
    return Over(Terminal.COMPLETED, "completed", Payload(message.body, "/result/message/parts"))


def _started(task: Json) -> TaskStarted:
    status = _word(task)
    return TaskStarted(_id(task), status or "", None, None, None, over=status in _OVER)


# -- poll --------------------------------------------------------------------------------------------------------------


def read_poll(endpoint: Endpoint, task: RemoteTask, reply: Reply) -> Observation:
    """The answer to `GetTask`. Only a task that bears the id we asked for says anything about it."""
    heard = heard_read(endpoint, task.request_id, reply)
    if not isinstance(heard, Message):
        return heard
    return _error_of_poll(heard.error) if heard.error is not None else _task_of_poll(heard, task)


def _error_of_poll(error: RpcError) -> Observation:
    if error.code == TASK_NOT_FOUND:
        return NotFound(error.message)  # unknown, another tenant's, purged: never to be told apart
    if error.code in _NO_SUCH_VERB or error.code == VERSION_NOT_SUPPORTED:
        return Refused("E_CAPABILITY_UNSUPPORTED", f"error {error.code}: {error.message}")
    return Busy(str(error.code))


def _task_of_poll(message: Message, task: RemoteTask) -> Observation:
    result = message.result
    if not isinstance(result, dict):
        return Refused("E_TASK_ID_MISMATCH", "the result is not an object, so it names no task")
    if "kind" in result or "taskId" in result:
        return Refused("E_PROTOCOL_MIX", "a task in the shape of another protocol version")
    if result.get("id") != task.task_id:
        return Refused("E_TASK_ID_MISMATCH", "the answer is about another task, or names none")
    status = _word(result)
    if status in _WORKING:
        return StillWorking(status, None, None, None, message=_said(result) or None)
    if status in _WAITING:
        return _waiting(message, result, task, status)
    if status in _OVER:
        return _over(message, result, status)
    return status_unknown(member(result, "status", "state"))


def _over(message: Message, task: dict[str, Json], status: str) -> Over:
    """A completed task's artifacts are its result. One that has none is kept from passing for a success: with the
    reference server's versioned store a race wrote `completed` and lost the artifact."""
    terminal, payload = _OVER[status], None
    if terminal is Terminal.COMPLETED and any(items(member(one, "parts")) for one in items(task.get("artifacts"))):
        payload = Payload(message.body, "/result/artifacts")
    elif terminal is Terminal.FAILED:
        payload = Payload(message.body, "/result/status")
    return Over(terminal, status, payload, message=_said(task) or None)


# -- input -------------------------------------------------------------------------------------------------------------


def _waiting(message: Message, result: dict[str, Json], task: RemoteTask, status: str) -> Observation:
    try:
        key = _question(result, status)
    except Malformed as error:
        return Refused("E_INPUT_MALFORMED", str(error))
    answered = reply_id(task.task_id, key.key)
    if any(member(said, "messageId") == answered for said in items(result.get("history"))):
        # Our reply is there, and the agent has not said anything new yet.
        return StillWorking(status, None, None, None)
    return NeedsInput(status, (key,), body=message.body)


def _question(task: dict[str, Json], status: str) -> InputKey:
    """What the status message asks. Its id is the round's identity; one without an id is known by what it is.

    Raises Malformed.
    """
    asked = member(task, "status", "message")
    if strict_json.find_unstorable(asked) is not None:
        raise Malformed("a question holds a text that can't be stored")
    key = member(asked, "messageId")
    if key is not None and not _usable(key):
        raise Malformed("a question whose id can't be used")
    if key is None:
        recorded_at = word(member(task, "status", "timestamp"))
        key = hashlib.sha256(strict_json.dumps([status, asked, recorded_at])).hexdigest()
    params: dict[str, Json] = {
        "message": _said(task) or _SILENT,
        "parts": member(asked, "parts") or [],
        "requestedSchema": PARTS_SCHEMA,
    }
    return InputKey(cast("str", key), _WAITING[status], strict_json.dumps(params))


def reply_id(task_id: str, key: str) -> str:
    """The `messageId` of our reply to a question: the same whoever sends it, so that it can be looked for."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"counterfoil:{task_id}\n{key}"))


def read_input(task: RemoteTask, body: bytes) -> Observation:
    """A kept message, read again."""
    try:
        message = read(Answered(200, body=body), "")
    except NoResponse as error:
        return Refused("E_INPUT_MALFORMED", str(error))
    asked = _task_of_poll(message, task)
    return asked if isinstance(asked, NeedsInput | Refused) else Refused("E_INPUT_MALFORMED", "no question is in there")


# -- reply, cancel -----------------------------------------------------------------------------------------------------


def read_reply(profile: Profile, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> ReplyOutcome:
    """The answer to a `SendMessage` to a task. What it shows is read again: an agent may say a state and change it."""
    heard = _acknowledged(profile, endpoint, task, reply)
    if not isinstance(heard, dict):
        return heard
    said = heard.get("task") if "task" in heard else heard.get("message")
    named = member(said, "id" if "task" in heard else "taskId")
    if not isinstance(said, dict) or named not in (None, task.task_id):
        return Unclear("E_TASK_ID_MISMATCH", "the answer to the reply is about another task")
    return Acknowledged(_word(said))


def read_cancel(profile: Profile, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> ReplyOutcome:
    """The answer to `CancelTask`: a task, and no proof of its end (a server was seen to say `canceled` and to complete
    it afterwards). -32002, not cancelable, was seen for a task that was running."""
    heard = _acknowledged(profile, endpoint, task, reply)
    if not isinstance(heard, dict):
        return heard
    if heard.get("id") != task.task_id:
        return Unclear("E_TASK_ID_MISMATCH", "the answer to the cancel is about another task, or names none")
    return Acknowledged(_word(heard))


def _acknowledged(
    profile: Profile, endpoint: Endpoint, task: RemoteTask, reply: Reply
) -> dict[str, Json] | ReplyOutcome:
    heard = heard_effect(profile, endpoint, task.request_id, reply)
    if not isinstance(heard, Message):
        return heard
    if heard.error is None:
        result = heard.result
        return result if isinstance(result, dict) else Unclear("E_UNREADABLE_ANSWER", "the result is not an object")
    if heard.error.code == TASK_NOT_FOUND:
        return NotFound(heard.error.message)
    if heard.error.code in _NO_SUCH_VERB:
        return NoSuchVerb(heard.error.message)
    return Unclear(str(heard.error.code), heard.error.message)


# -- lookup ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """One page of `ListTasks`: tasks in the context that was asked for, and whether others were among them."""

    found: tuple[TaskStarted, ...]
    strangers: bool
    next_token: str


def read_page(endpoint: Endpoint, request_id: str, reply: Reply, context_id: str) -> Page | LookupOutcome:
    """The answer to `ListTasks`, or why there is none."""
    heard = heard_read(endpoint, request_id, reply)
    if isinstance(heard, Busy | NoAccess):
        return heard
    if isinstance(heard, Refused):
        return Unclear(heard.code, heard.why)
    if heard.error is not None:
        if heard.error.code in _NO_SUCH_VERB or heard.error.code == VERSION_NOT_SUPPORTED:
            return NoSuchVerb(f"error {heard.error.code}: {heard.error.message}")
        return Busy(str(heard.error.code))
    try:
        return _page(heard.result, context_id)
    except Malformed as error:
        return Unclear("E_UNREADABLE_ANSWER", f"ListTasks: {error}")


def _page(result: Json, context_id: str) -> Page:
    tasks, token = member(result, "tasks"), member(result, "nextPageToken")
    if not isinstance(result, dict) or not isinstance(tasks, list | None):
        raise Malformed("the result is no list of tasks")
    if token is not None and not (isinstance(token, str) and is_storable(token) and len(token) <= MAX_PAGE_TOKEN_CHARS):
        raise Malformed("the token of the next page can't be used")
    if tasks is None and "totalSize" not in result and "nextPageToken" not in result:
        raise Malformed("the result is no list of tasks")
    ours = [one for one in items(tasks) if member(one, "contextId") == context_id]
    found = tuple(map(_started, ours))
    return Page(found, len(ours) < len(items(tasks)), token or "")


def found(pages: Iterable[Page], *, complete: bool) -> LookupOutcome:
    """What all pages say. Nobody but us knows the context, so a task in it is ours; two of them are a person's
    business. That there is none counts only where the agent heeds the filter and the list came to its end."""
    seen = list(pages)
    tasks = {task.task_id: task for page in seen for task in page.found}
    if len(tasks) > 1:
        return Unclear("E_KEY_UNSURE", f"{len(tasks)} tasks stand under the key")
    if tasks:
        return Found(next(iter(tasks.values())))
    if not complete or any(page.strangers for page in seen):
        return Unclear("E_UNREADABLE_ANSWER", "ListTasks does not end, or lists tasks of other contexts")
    return Absent(authoritative=True)


# -- pushes ------------------------------------------------------------------------------------------------------------


def hints(reply: Reply) -> tuple[Hint, ...]:
    """The task that a pushed message names. What was asked for is read elsewhere: its answers are no pushes."""
    pushed = _EVENT.match(reply.body)
    if pushed is None:
        return ()
    try:
        event = strict_json.loads(reply.body)
    except BadJson:
        return ()
    kind = pushed[1].decode()
    about = member(event, kind)
    named = member(about, "id" if kind == "task" else "taskId")
    return (Hint(cast("str", named), _word(about)),) if _usable(named) else ()


# -- fields ------------------------------------------------------------------------------------------------------------


def _usable(text: Json) -> bool:
    return isinstance(text, str) and 0 < len(text) <= MAX_TASK_ID_CHARS and is_storable(text)


def _id(task: Json) -> str:
    """Raises Malformed: an id that is changed here could never be asked for."""
    found = member(task, "id")
    if not _usable(found):
        raise Malformed("a task was made, but its id can't be used")
    return cast("str", found)


def _word(task: Json) -> str | None:
    """`TASK_STATE_WORKING` is `working`; None for what this version does not have."""
    state = member(task, "status", "state")
    if not isinstance(state, str) or not state.startswith(_PREFIX):
        return None
    said = state.removeprefix(_PREFIX).lower()
    return said if said in _WORDS and state.isupper() else None


def _said(task: Json) -> str:
    """The texts of the status message, for people."""
    parts = items(member(task, "status", "message", "parts"))
    texts = (storable(member(part, "text"), MAX_TEXT_CHARS) for part in parts[:100])
    return "\n".join(text for text in texts if text)[:MAX_TEXT_CHARS]
