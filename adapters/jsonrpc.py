"""JSON-RPC 2.0 over HTTP: request bytes out, the one response to that request back.

Ids are UUIDs, new for every request of every process: two workers that counted from 1 in one shared session were handed
each other's answers (python-sdk #3060, typescript-sdk #2433, go-sdk #1004). A response with another id is no answer.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from . import strict_json
from .contract import Answered
from .sse import BadStream, SseParser, is_stream
from .strict_json import BadJson, Json

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

MAX_MESSAGE_CHARS = 500

_VERSION = b'"2.0"'


def random_id() -> str:
    """A fresh UUID: what production uses. The simulator hands its own maker to the adapter instead."""
    return str(uuid.uuid4())  # noqa: TID251  # the port's one default


@dataclass(frozen=True, slots=True)
class RpcError:
    """A JSON-RPC error object. `message` is storable and cut."""

    code: int
    message: str
    data: Json = None


@dataclass(frozen=True, slots=True)
class Message:
    """The response to our request: either `error`, or `result`. `body` is the exact bytes of the message alone."""

    body: bytes
    result: Json = None
    error: RpcError | None = None


class NoResponse(ValueError):
    """What came holds no response to our request. The message says why and repeats none of the content."""


class JsonRpc:
    """Builds requests. `new_id` is a port: the simulator controls it."""

    def __init__(self, new_id: Callable[[], str] = random_id) -> None:
        self.new_id = new_id

    @staticmethod
    def request(request_id: str, method: str, params: Mapping[str, bytes]) -> bytes:
        """The body of one request. `params`: a name to JSON text, spliced in unchanged (digested arguments)."""
        head = {"id": strict_json.dumps(request_id), "jsonrpc": _VERSION, "method": strict_json.dumps(method)}
        return strict_json.splice(head | {"params": strict_json.splice(params)})

    @staticmethod
    def notification(method: str) -> bytes:
        """The body of one notification: no id, so no response."""
        return strict_json.splice({"jsonrpc": _VERSION, "method": strict_json.dumps(method), "params": b"{}"})

    @staticmethod
    def response(request_id: bytes, result: bytes) -> bytes:
        """The body of our answer to a server's own request, both as JSON text: an id is handed back as it came."""
        return strict_json.splice({"id": request_id, "jsonrpc": _VERSION, "result": result})


def read(answer: Answered, request_id: str) -> Message:
    """The response to `request_id` in a whole answer, plain or as an event stream. Raises NoResponse.

    `request_id` "" takes any id: only for evidence whose request id was not kept. An error with id null counts where
    the HTTP status is 4xx: a server that could not read the request can't name its id.
    """
    if is_stream(answer.headers):
        return _first_response(answer.body, request_id)
    if not answer.body.strip():
        raise NoResponse("an empty body")
    return _response(answer.body, request_id, null_id=400 <= answer.status < 500)


def read_cut(body: bytes, request_id: str) -> Message | None:
    """The response in an event stream that was cut; None when it isn't in there.

    Only with a known id: nothing else is left to tell that these bytes answer us.
    """
    if not request_id:
        return None
    try:
        return _first_response(body, request_id)
    except NoResponse:
        return None


def response_to(request_id: str) -> Callable[[bytes], bool]:
    """For `Request.until`: whether an event's data is the response to `request_id`, and not a notification, the
    server's own request or another request's response. Only what holds the id is parsed (events may be large)."""
    needle = strict_json.dumps(request_id)

    def is_response(data: bytes) -> bool:
        if needle not in data:
            return False
        try:
            _response(data, request_id, null_id=False)
        except NoResponse:
            return False
        return True

    return is_response


def _first_response(stream: bytes, request_id: str) -> Message:
    why = "the event stream ended without a response"
    for data in events(stream):
        try:
            return _response(data, request_id, null_id=False)
        except NoResponse as error:  # a notification, another request's response, or an event that can't be read
            why = f"{why}; last event: {error}" if "last event" not in why else why
    raise NoResponse(why)


def events(stream: bytes) -> Iterator[bytes]:
    """The data of each event of a stream that was read, or of what was read of it. Raises NoResponse."""
    parser = SseParser()
    try:
        yield from parser.feed(stream)
        yield from parser.close()
    except BadStream as error:
        raise NoResponse(str(error)) from None


def _response(data: bytes, request_id: str, *, null_id: bool) -> Message:
    try:
        value = strict_json.loads(data)
    except BadJson as error:
        raise NoResponse(str(error)) from None
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise NoResponse("not a JSON-RPC response")
    if ("result" in value) == ("error" in value):
        raise NoResponse("a JSON-RPC response needs either a result or an error")
    _check_id(value, request_id, null_id=null_id)
    if "result" in value:
        return Message(data, result=value["result"])
    return Message(data, error=_error(value["error"]))


def _check_id(response: dict[str, Json], request_id: str, *, null_id: bool) -> None:
    given = response.get("id")
    if given is None:
        if not (null_id and "error" in response):
            raise NoResponse("a response without an id")
    elif request_id and given != request_id:
        raise NoResponse("a response with another request's id")


def _error(value: Json) -> RpcError:
    if not isinstance(value, dict):
        raise NoResponse("the error is not an object")
    code = value.get("code")
    if not isinstance(code, int) or isinstance(code, bool) or abs(code) > 2**31:
        raise NoResponse("the error has no usable code")
    message = strict_json.storable(value.get("message"), MAX_MESSAGE_CHARS)
    return RpcError(code, message or "", value.get("data"))
