"""Questions of an MCP 2025-11-25 task: requests of the server's own on the stream of `tasks/result`.

The server sends each of them once, and a stream that dies takes its questions along (seen with the reference servers in
Python and TypeScript: a second `tasks/result` never brings them again). So they are read, kept as exact bytes and the
stream is left; the answer is a POST of its own, from any process. The protocol has no name for a round: ids start at 0
in every session of a TypeScript server. A question's key is therefore the digest of session, id and parameters (SPEC
section 4).
"""

import hashlib
from collections.abc import Callable

from . import strict_json
from .contract import Reply
from .fields import MAX_SAFE_INTEGER, MAX_TASK_ID_CHARS, MAX_WORD_CHARS, Malformed, member
from .jsonrpc import NoResponse, events, response_to
from .mcp_answers import MAX_INPUT_KEYS
from .mcp_session import Session
from .outcomes import InputKey
from .strict_json import BadJson, Json

RELATED_TASK = "io.modelcontextprotocol/related-task"

DEADLINE_S = 5.0
"""Servers send a waiting question at once. A stream without one was read before, and would block until its end."""

MAX_STREAM_BYTES = 1024 * 1024

_TRACE = RELATED_TASK.rpartition("/")[2].encode()  # the slash before it may be escaped


def or_response(task_id: str, request_id: str) -> Callable[[bytes], bool]:
    """For `Request.until`: a question of this task, or the response to `tasks/result` itself (it is over meanwhile)."""
    is_response = response_to(request_id)
    return lambda data: _question(data, task_id) is not None or is_response(data)


def on_stream(task_id: str, reply: Reply) -> bytes:
    """The questions in what was read of a stream, cut or not, as one text: the exact message, or an array of them;
    empty when there is none. Requests that name another task, or none, are not ours to answer."""
    found: dict[bytes, None] = {}
    try:
        for data in events(reply.body):
            if _question(data, task_id) is not None:
                found[data] = None
    except NoResponse:  # the stream can't be read any further
        pass
    questions = list(found)
    return questions[0] if len(questions) == 1 else b"[" + b",".join(questions) + b"]" if questions else b""


def keys(session: Session, task_id: str, body: bytes) -> tuple[InputKey, ...]:
    """The questions in a text of `on_stream`. Raises Malformed: a question that was changed could not be answered."""
    try:
        told = strict_json.loads(body)
    except BadJson as error:
        raise Malformed(f"the question is {error}") from None
    messages = told if isinstance(told, list) else [told]
    if not 0 < len(messages) <= MAX_INPUT_KEYS:
        raise Malformed(f"not between 1 and {MAX_INPUT_KEYS} questions")
    found = (_key(session, task_id, message) for message in messages)
    return tuple({key.key: key for key in found}.values())


def related(content: bytes, task_id: str) -> bytes:
    """A person's answer, bound to the task: the result of our response MUST name it. Raises BadJson."""
    answer = strict_json.loads(content)
    if not isinstance(answer, dict):
        return content
    return strict_json.dumps(answer | {"_meta": {RELATED_TASK: {"taskId": task_id}}})


def _key(session: Session, task_id: str, message: Json) -> InputKey:
    if not isinstance(message, dict) or not _asks(message, task_id):
        raise Malformed("not a question of this task")
    if strict_json.find_unstorable(message) is not None:
        raise Malformed("a question holds a text that can't be stored")
    request_id, method, params = message["id"], message["method"], message["params"]
    if not _usable_id(request_id) or not isinstance(method, str) or len(method) > MAX_WORD_CHARS:
        raise Malformed("a question whose id or method can't be used")
    key = hashlib.sha256(strict_json.dumps([session.id, request_id, params])).hexdigest()
    return InputKey(key, method, strict_json.dumps(params), strict_json.dumps(request_id).decode())


def _usable_id(request_id: Json) -> bool:
    if isinstance(request_id, str):
        return 0 < len(request_id) <= MAX_TASK_ID_CHARS
    return isinstance(request_id, int) and not isinstance(request_id, bool) and abs(request_id) <= MAX_SAFE_INTEGER


def _question(data: bytes, task_id: str) -> Json:
    """The message, if it is a question of this task. Only what could be one is parsed."""
    if _TRACE not in data:
        return None
    try:
        message = strict_json.loads(data)
    except BadJson:
        return None
    return message if _asks(message, task_id) else None


def _asks(message: Json, task_id: str) -> bool:
    """A request, in JSON-RPC: a method and an id. Its `_meta` names the task that it belongs to."""
    related = member(message, "params", "_meta", RELATED_TASK, "taskId")
    is_request = isinstance(message, dict) and message.get("jsonrpc") == "2.0" and "id" in message
    return is_request and isinstance(member(message, "method"), str) and related == task_id
