"""AIP-151 over HTTP/JSON: what answers mean. Pure functions; hostile bytes included.

Read leniently, without protobuf: unknown members are nobody's business, and `done` may be left out while it is false.
There are two spaces of error numbers, which never meet here: an HTTP answer says 404 and `NOT_FOUND`, an operation
that is over says 5.
"""

from collections.abc import Iterator

from .contract import Answered, Endpoint, Reply
from .fields import Malformed, items, member, status_unknown, text, word
from .http_answers import Heard, heard_effect, heard_read, heard_whole, id_text
from .http_api import HttpApi
from .outcomes import (
    KEY_REUSED,
    Absent,
    Acknowledged,
    Busy,
    CancelOutcome,
    Found,
    LookupOutcome,
    NoSuchVerb,
    NotFound,
    Observation,
    Over,
    Payload,
    Refused,
    Rejected,
    StillWorking,
    SubmitOutcome,
    TaskStarted,
    Terminal,
    Unclear,
)
from .strict_json import Json

CANCELLED = 1
"""google.rpc.Code of an operation that a cancel ended."""

REJECTIONS = {
    "INVALID_ARGUMENT": 3,
    "NOT_FOUND": 5,
    "PERMISSION_DENIED": 7,
    "FAILED_PRECONDITION": 9,
    "OUT_OF_RANGE": 11,
    "UNIMPLEMENTED": 12,
}
"""Errors that keep an operation from starting (AIP-151, AIP-193). ABORTED, UNKNOWN, INTERNAL may come from within."""

_OTHER_SHAPES = (frozenset({"jsonrpc"}), frozenset({"id", "status"}))
"""Members of a JSON-RPC message, and of a status monitor."""

_OPERATION = frozenset({"done", "metadata", "response", "error"})
_DONE = "done"


# -- submit ------------------------------------------------------------------------------------------------------------


def read_submit(endpoint: Endpoint, api: HttpApi, reply: Reply) -> SubmitOutcome:
    """The answer to the submit, or to its replay: an operation, or an error before there was one."""
    heard = heard_effect(endpoint, reply)
    if not isinstance(heard, Heard):
        return heard
    if heard.is_success:
        return _started(heard)
    said, message = _error(heard)
    if api.key is not None and heard.status in api.key.reused_statuses:
        return Unclear(KEY_REUSED, message)
    if said == "ALREADY_EXISTS" and heard.status == 409 and api.carries_key:
        name = _named(heard.value)
        if name is not None:
            return TaskStarted(name, "", None, None, heard.interval_ms)  # the key is ours, so is what it made
    if said in REJECTIONS and 400 <= heard.status <= 501 and heard.status != 500:
        return Rejected(said, message)
    return Unclear(said or f"HTTP {heard.status}", message, heard.wait_s)


def _started(heard: Heard) -> SubmitOutcome:
    operation = heard.value
    if not isinstance(operation, dict):
        return Unclear("E_UNREADABLE_ANSWER", f"HTTP {heard.status}: {heard.fault or 'no operation'}")
    if operation.get("done") is True and (operation.get("response") is not None or not operation.get("name")):
        return _over(heard, operation)
    try:
        return _task(operation, heard)
    except Malformed as error:
        return Unclear("E_UNREADABLE_ANSWER", f"HTTP {heard.status}: {error}")


def _task(operation: Json, heard: Heard) -> TaskStarted:
    """Raises Malformed."""
    status = _status(operation) if isinstance(operation, dict) else ""
    return TaskStarted(_name(operation), status, None, None, heard.interval_ms, over=status == _DONE)


def _name(operation: Json) -> str:
    """The name of an operation. A resource has a name as well, and must not pass for one. Raises Malformed."""
    found = member(operation, "name")
    name = id_text(found, slashes=True) if isinstance(found, str) else None
    if name is None:
        raise Malformed("an operation without a name")
    has_more = isinstance(operation, dict) and not _OPERATION.isdisjoint(operation)
    if not has_more and "operations" not in name.split("/")[:-1]:
        raise Malformed("what is named is no operation")
    return name


def _named(error: Json) -> str | None:
    """The operation that ALREADY_EXISTS names, in one of the ways in which servers do; None: it names none, or two."""
    names = set()
    for detail in items(member(error, "error", "details"))[:16]:
        for found in _mentions(detail):
            if isinstance(found, str) and "operations" in found.split("/")[:-1]:
                names.add(found)
    try:
        return id_text(names.pop(), slashes=True) if len(names) == 1 else None
    except Malformed:
        return None


def _mentions(detail: Json) -> Iterator[Json]:
    yield member(detail, "operation")
    yield member(detail, "metadata", "operation")  # google.rpc.ErrorInfo
    yield member(detail, "resourceName")  # google.rpc.ResourceInfo


def _error(heard: Heard) -> tuple[str | None, str]:
    """The status word of an error answer, and its message."""
    error = member(heard.value, "error")
    return word(member(error, "status")), text(member(error, "message")) or f"HTTP {heard.status}"


# -- operation ---------------------------------------------------------------------------------------------------------


def read_operation(endpoint: Endpoint, name: str, reply: Reply) -> Observation:
    """How the operation stands. Its name is compared: clients that did not took another's end for theirs."""
    heard = heard_read(endpoint, reply)
    if not isinstance(heard, Heard):
        return heard
    operation = heard.value
    if not isinstance(operation, dict):
        return Busy("E_UNREADABLE_ANSWER", heard.wait_s)
    if any(shape <= operation.keys() for shape in _OTHER_SHAPES) and "name" not in operation:
        return Refused("E_PROTOCOL_MIX", "an answer in the shape of another protocol")
    if operation.get("name") != name:
        if "name" not in operation and "error" in operation and "done" not in operation:
            return Busy("E_UNREADABLE_ANSWER", heard.wait_s)  # HTTP 200 with an error inside
        return Refused("E_TASK_ID_MISMATCH", "the answer is about another operation, or names none")
    done = operation.get("done", False)
    if done is True:
        return _end(heard, operation)
    if done is not False:
        return status_unknown(None)
    return StillWorking(_status(operation), None, None, heard.interval_ms)


def _end(heard: Heard, operation: dict[str, Json]) -> Observation:
    if operation.get("response") is not None and operation.get("error") is not None:
        return Refused("E_STATUS_UNKNOWN", "the operation is over with a response and with an error")
    return _over(heard, operation)


def _over(heard: Heard, operation: dict[str, Json]) -> Over:
    """`done`. With neither a response nor an error there is no result, which is no success by itself."""
    error = operation.get("error")
    if error is None:
        payload = Payload(heard.body, "/response") if operation.get("response") is not None else None
        return Over(Terminal.COMPLETED, "done", payload)
    message = text(member(error, "message"))
    if member(error, "code") == CANCELLED:
        return Over(Terminal.CANCELLED, "done", None, message=message)
    return Over(Terminal.FAILED, "done", Payload(heard.body, "/error"), message=message)


def _status(operation: dict[str, Json]) -> str:
    return _DONE if operation.get("done") is True else "running"


# -- cancel ------------------------------------------------------------------------------------------------------------


def read_cancel(endpoint: Endpoint, reply: Reply) -> CancelOutcome:
    """An acknowledgement: best effort, and never an end."""
    heard = heard_effect(endpoint, reply)
    if not isinstance(heard, Heard):
        return heard
    if heard.is_success:
        return Acknowledged()
    said, message = _error(heard)
    if said == "UNIMPLEMENTED" or heard.status in (405, 501):
        return NoSuchVerb(message)
    if heard.status == 404:
        return NotFound(message)
    return Unclear(said or f"HTTP {heard.status}", message, heard.wait_s)


# -- lookup ------------------------------------------------------------------------------------------------------------


def read_lookup(endpoint: Endpoint, reply: Reply, *, by_id: bool) -> LookupOutcome:
    """Operations under the key. `by_id`: the key is the operation's own id, so NOT_FOUND is its absence."""
    heard = heard_read(endpoint, reply)
    if isinstance(heard, Refused):
        return Unclear(heard.code, heard.why)
    if isinstance(heard, NotFound):
        return _nothing(heard, reply, by_id=by_id)
    if not isinstance(heard, Heard):
        return heard
    if not isinstance(heard.value, dict):
        return Busy("E_UNREADABLE_ANSWER", heard.wait_s)
    found = [heard.value] if by_id else heard.value.get("operations", [])
    if not isinstance(found, list):
        return Unclear("E_UNREADABLE_ANSWER", "`operations` is no list")
    if not found:
        # A page more, or a place that could not be asked: not the whole truth.
        return Absent(authoritative=not heard.value.get("nextPageToken") and not heard.value.get("unreachable"))
    if len(found) > 1:
        return Unclear("E_KEY_UNSURE", f"{len(found)} operations under one key")
    try:
        return Found(_task(found[0], heard))
    except Malformed as error:
        return Unclear("E_UNREADABLE_ANSWER", str(error))


def _nothing(heard: NotFound, reply: Reply, *, by_id: bool) -> LookupOutcome:
    if not by_id:
        return NoSuchVerb(heard.why)  # of a collection: there is no such route
    if isinstance(reply, Answered) and reply.status == 404 and _error(heard_whole(reply))[0] == "NOT_FOUND":
        return Absent(authoritative=True)
    return Unclear("E_KEY_UNSURE", f"{heard.why}: a page of a gateway, or an operation that was there")
