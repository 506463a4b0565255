"""HTTP 202 and its kin: what answers mean under a declaration. Pure functions; hostile bytes included.

202 means accepted, nothing more. Where no status words are declared the HTTP status is all the status there is: 202
is working, any other 2xx is the result.
"""

from dataclasses import dataclass

from .contract import (
    Answered,
    Endpoint,
    RemoteTask,
    Reply,
)
from .fields import MAX_TASK_ID_CHARS, Malformed, items, status_unknown, word
from .http_answers import Heard, heard_effect, heard_read, heard_whole, id_text, said_of_failure
from .http_api import HttpApi, Meaning
from .http_routes import ForeignUrl, at_root, from_root, same_origin
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

_MONITORS = ("operation-location", "azure-asyncoperation")
"""Headers that name a status monitor under any status; `location` does so only for what was accepted."""

_OTHER_SHAPES = (frozenset({"jsonrpc"}), frozenset({"name", "done"}))
"""Members of a JSON-RPC message, and of an operation of AIP-151."""

_AT_ONCE = frozenset({200, 201, 204})
_ENDS = frozenset(Meaning) - {Meaning.WORKING}


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """It is over, and the server says where its result is."""

    url: str
    status: str


# -- submit ------------------------------------------------------------------------------------------------------------


def read_submit(endpoint: Endpoint, api: HttpApi, reply: Reply) -> SubmitOutcome:
    """The answer to the submit: work that can be asked for, a result at once, or neither."""
    heard = heard_effect(endpoint, reply)
    if not isinstance(heard, Heard):
        return heard
    code = f"HTTP {heard.status}"
    if api.key is not None and heard.status in api.key.reused_statuses:
        return Unclear(KEY_REUSED, f"{code}: the server knows the key with another request")
    if heard.status in api.rejections:
        return Rejected(code, said_of_failure(heard.at(api.fields.error)) or code)
    if not heard.is_success and heard.status != 303:
        return Unclear(code, said_of_failure(heard.at(api.fields.error)) or code, heard.wait_s)
    try:
        task_id = _task_id(endpoint, api, heard)
    except Malformed as error:
        return Unclear("E_UNREADABLE_ANSWER", str(error))
    except ForeignUrl as error:
        return Unclear(error.code, str(error))
    if task_id is not None:
        return _started(api, task_id, heard)
    return _at_once(api, heard)


def _started(api: HttpApi, task_id: str, heard: Heard) -> TaskStarted:
    status = word(heard.at(api.fields.status))
    over = api.statuses.meaning(status) in _ENDS
    return TaskStarted(task_id, status or "", None, None, heard.interval_ms, over)


def _task_id(endpoint: Endpoint, api: HttpApi, heard: Heard) -> str | None:
    """The id of what was started; None where nothing names any. Raises Malformed, ForeignUrl."""
    route = api.route("status")
    if route is None:
        return _monitor(endpoint, api, heard)
    found = id_text(heard.at(api.fields.id), slashes=route.names("name"))
    if found is not None and (heard.status == 202 or api.statuses.meaning(word(heard.at(api.fields.status)))):
        return found
    for name in (*_MONITORS, "location"):
        location = heard.headers.get(name)
        named = None if location is None else route.id_in(endpoint.url, _resolved(endpoint, api, location))
        if named is not None:
            return id_text(named, slashes=route.names("name"))
    return None


def _monitor(endpoint: Endpoint, api: HttpApi, heard: Heard) -> str | None:
    """The monitor's URL, which is the id where no route is declared: path and query, within our origin."""
    names = (*_MONITORS, "location") if heard.status in (202, 303) else _MONITORS
    location = next((heard.headers[name] for name in names if name in heard.headers), None)
    if location is None:
        return None
    place = from_root(_resolved(endpoint, api, location))
    if len(place) > MAX_TASK_ID_CHARS:
        raise Malformed(f"the monitor's URL has more than {MAX_TASK_ID_CHARS} characters")
    return place


def _resolved(endpoint: Endpoint, api: HttpApi, location: str) -> str:
    submit = api.route("submit")
    asked = endpoint.url if submit is None else submit.url(endpoint.url, tool="", key="")
    return same_origin(endpoint.url, asked, location)


def _at_once(api: HttpApi, heard: Heard) -> Over | Unclear:
    """The whole result, unless anything in it looks like a handle or a failure: neither may pass for one."""
    if heard.status not in _AT_ONCE:
        return Unclear("E_UNREADABLE_ANSWER", f"HTTP {heard.status}, and nothing says where to ask what became of it")
    if heard.fault is not None:
        return Unclear("E_UNREADABLE_ANSWER", f"HTTP {heard.status}: {heard.fault}")
    fields = api.fields
    handle = api.routes.status is not None and heard.at(fields.id) is not None
    if handle or (api.statuses and heard.at(fields.status) is not None):
        return Unclear("E_UNREADABLE_ANSWER", f"HTTP {heard.status}: neither work that was started nor its result")
    if heard.at(fields.error) is not None:
        return Unclear("E_UNREADABLE_ANSWER", f"HTTP {heard.status}, and the body tells of an error")
    return Over(Terminal.COMPLETED, f"HTTP {heard.status}", None if heard.empty else Payload(heard.body, ""))


# -- status ------------------------------------------------------------------------------------------------------------


def status_url(endpoint: Endpoint, api: HttpApi, task_id: str) -> str:
    route = api.route("status")
    if route is None:
        return at_root(endpoint.url, task_id)
    return route.url(endpoint.url, id=task_id, name=task_id)


def read_status(endpoint: Endpoint, api: HttpApi, task: RemoteTask, reply: Reply) -> Observation | Elsewhere:
    """How it stands. `Elsewhere` is asked for in the same exchange: a result without a route of its own."""
    heard = heard_read(endpoint, reply)
    if not isinstance(heard, Heard):
        return heard
    if heard.status == 303:
        return _see_other(endpoint, api, task, heard)
    if not api.statuses:
        return _by_http_status(api, heard)
    return _by_word(endpoint, api, task, heard)


def _see_other(endpoint: Endpoint, api: HttpApi, task: RemoteTask, heard: Heard) -> Observation | Elsewhere:
    try:
        url = same_origin(endpoint.url, status_url(endpoint, api, task.task_id), heard.headers.get("location", ""))
    except ForeignUrl as error:
        return Refused(error.code, str(error))
    return _completed_elsewhere(api, url, "HTTP 303")


def _completed_elsewhere(api: HttpApi, url: str, status: str) -> Over | Elsewhere:
    """A declared route is the contract; what the server says beside it is not needed."""
    return Elsewhere(url, status) if api.routes.result is None else Over(Terminal.COMPLETED, status, None)


def _by_http_status(api: HttpApi, heard: Heard) -> Observation:
    status = f"HTTP {heard.status}"
    if heard.status == 202:
        return StillWorking(status, None, None, heard.interval_ms)
    if heard.fault is not None or heard.at(api.fields.error) is not None:
        return Busy("E_UNREADABLE_ANSWER", heard.wait_s)
    if api.routes.result is not None or heard.empty:
        return Over(Terminal.COMPLETED, status, None)
    return Over(Terminal.COMPLETED, status, Payload(heard.body, api.fields.result or ""))


def _by_word(endpoint: Endpoint, api: HttpApi, task: RemoteTask, heard: Heard) -> Observation | Elsewhere:
    said, fields = heard.at(api.fields.status), api.fields
    if _is_another(api, task, heard):
        return Refused("E_TASK_ID_MISMATCH", "the answer is about another id")
    if said is None and heard.status == 202:
        return StillWorking("HTTP 202", None, None, heard.interval_ms)
    if said is None and isinstance(heard.value, dict) and any(shape <= heard.value.keys() for shape in _OTHER_SHAPES):
        return Refused("E_PROTOCOL_MIX", "an answer in the shape of another protocol")
    if said is None and (not isinstance(heard.value, dict) or heard.at(fields.error) is not None):
        return Busy("E_UNREADABLE_ANSWER", heard.wait_s)  # HTTP 200 with an error inside, or a page of a gateway
    status = word(said)
    match api.statuses.meaning(status):
        case Meaning.WORKING:
            return StillWorking(status or "", None, None, heard.interval_ms)
        case Meaning.COMPLETED:
            return _completed(endpoint, api, task, heard, status or "")
        case Meaning.FAILED:
            told = heard.at(fields.error)
            payload = Payload(heard.body, fields.error if told is not None else "")
            return Over(Terminal.FAILED, status or "", payload, message=said_of_failure(told))
        case Meaning.CANCELLED:
            return Over(Terminal.CANCELLED, status or "", None)
        case None:
            return status_unknown(said)


def _is_another(api: HttpApi, task: RemoteTask, heard: Heard) -> bool:
    """Whether an answer names an id that is not ours. One without any is taken: many monitors name none."""
    named = heard.at(api.fields.id)
    if named is None or api.routes.status is None:
        return False
    try:
        return id_text(named, slashes=True) != task.task_id
    except Malformed:
        return True


def _completed(
    endpoint: Endpoint, api: HttpApi, task: RemoteTask, heard: Heard, status: str
) -> Observation | Elsewhere:
    fields = api.fields
    place = None if fields.result_url is None else heard.at(fields.result_url)
    if isinstance(place, str):
        try:
            url = same_origin(endpoint.url, status_url(endpoint, api, task.task_id), place)
        except ForeignUrl as error:
            return Refused(error.code, str(error))
        return _completed_elsewhere(api, url, status)
    pointer = "/result" if fields.result is None else fields.result
    inline = api.routes.result is None and heard.has(pointer)
    return Over(Terminal.COMPLETED, status, Payload(heard.body, pointer) if inline else None)


# -- result ------------------------------------------------------------------------------------------------------------


def read_result(endpoint: Endpoint, api: HttpApi, reply: Reply, *, terminal: Terminal, status: str) -> Observation:
    """The result where it is kept apart. What can't be read is handed on: that it is none is the policy's to say."""
    heard = heard_read(endpoint, reply)
    if not isinstance(heard, Heard):
        return heard
    if heard.status == 202:
        return Busy("HTTP 202", heard.wait_s)
    return Over(terminal, status, None if heard.empty else Payload(heard.body, api.fields.result or ""))


# -- cancel ------------------------------------------------------------------------------------------------------------


def read_cancel(endpoint: Endpoint, api: HttpApi, task: RemoteTask, reply: Reply) -> CancelOutcome:
    """The answer to the cancel. The word `cancelled` in it is passed on; what it is worth the policy says."""
    heard = heard_effect(endpoint, reply)
    if not isinstance(heard, Heard):
        return heard
    if heard.status in (404, 410):
        return NotFound(f"HTTP {heard.status}")
    if heard.status in (405, 501):
        return NoSuchVerb(f"HTTP {heard.status}")
    if not heard.is_success:
        return Unclear(f"HTTP {heard.status}", said_of_failure(heard.at(api.fields.error)) or "", heard.wait_s)
    status = word(heard.at(api.fields.status))
    cancelled = api.statuses.meaning(status) is Meaning.CANCELLED and not _is_another(api, task, heard)
    return Acknowledged(Terminal.CANCELLED.value if cancelled else status)


# -- lookup ------------------------------------------------------------------------------------------------------------


def read_lookup(endpoint: Endpoint, api: HttpApi, reply: Reply, *, by_id: bool) -> LookupOutcome:
    """What the server holds under the key. `by_id`: the key names the thing itself, so 404 is its absence; of a
    collection it would only say that there is no such route."""
    heard = heard_read(endpoint, reply)
    if isinstance(heard, Refused):
        return Unclear(heard.code, heard.why)
    if isinstance(heard, NotFound):
        return _nothing(reply, heard, by_id=by_id)
    if not isinstance(heard, Heard):
        return heard
    if heard.status != 200 or heard.empty or heard.fault is not None:
        return Busy("E_UNREADABLE_ANSWER", heard.wait_s)
    pointer = api.fields.found
    return _found(api, heard, heard.at(("" if by_id else "/jobs") if pointer is None else pointer))


def _nothing(reply: Reply, heard: NotFound, *, by_id: bool) -> LookupOutcome:
    if not by_id:
        return NoSuchVerb(heard.why)
    if isinstance(reply, Answered) and reply.status == 404 and heard_whole(reply).fault is None:
        return Absent(authoritative=True)
    return Unclear("E_KEY_UNSURE", f"{heard.why}: a page of a gateway, or a thing that was there")


def _found(api: HttpApi, heard: Heard, found: Json) -> LookupOutcome:
    matches = items(found) if isinstance(found, list) else [found]
    if not matches:
        return Absent(authoritative=True)
    if len(matches) > 1:
        return Unclear("E_KEY_UNSURE", f"{len(matches)} things under one key")
    one = Heard(heard.status, heard.headers, heard.body, matches[0], None)
    route = api.route("status")
    try:
        named = id_text(one.at(api.fields.id), slashes=route is not None and route.names("name"))
    except Malformed as error:
        return Unclear("E_UNREADABLE_ANSWER", str(error))
    if named is None:
        return Unclear("E_UNREADABLE_ANSWER", "what was found has no id")
    return Found(_started(api, named, one))
