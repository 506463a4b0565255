"""Background responses of the OpenAI API (`POST /responses` with `background: true`) as calls of Counterfoil.

A call's tool is the model's name, its arguments are the body of the request without what this adapter sets itself. The
API takes no idempotency key that it documents and lists no responses: a lost submit asks a person, who finds the
submission key in the response's metadata.
"""

import re
from typing import cast
from urllib.parse import quote

from counterfoil.adapters import strict_json
from counterfoil.adapters.answers import retry_after_s, trouble, wants_credential
from counterfoil.adapters.contract import (
    Answered,
    Call,
    Effect,
    Endpoint,
    Exchange,
    InputReply,
    NoAnswer,
    RemoteTask,
    Reply,
    Request,
    Search,
    Sent,
)
from counterfoil.adapters.jsonrpc import JsonRpc
from counterfoil.adapters.outcomes import (
    Acknowledged,
    Busy,
    CancelOutcome,
    Hint,
    LookupOutcome,
    Negotiated,
    Negotiation,
    NoSuchVerb,
    NotFound,
    NotOffered,
    NotProcessed,
    NotSent,
    Observation,
    Over,
    Payload,
    Refused,
    Rejected,
    ReplyOutcome,
    StillWorking,
    SubmitOutcome,
    TaskStarted,
    Terminal,
    Unclear,
)
from counterfoil.adapters.profile import BucketScope, Lookup, Profile, ReplyReplay
from counterfoil.adapters.strict_json import BadJson, Json

PROTOCOL = "openai-responses"
METADATA_KEY = "counterfoil_submission_key"

PROFILE = Profile(
    protocol=PROTOCOL,
    lookup=Lookup.NONE,  # responses can't be listed, and nobody promises what a repeated key does
    absence=None,
    definite_codes=frozenset({400, 404, 422}),  # with `invalid_request_error` in the body: it was read and refused
    not_processed_statuses=frozenset(),  # an operator may list 429
    can_cancel=True,
    cancel_is_evidence=True,  # the answer is the response itself, with its last status
    reply_replay=ReplyReplay.NEVER,  # a response asks nothing
    result_separate=False,
    watches_input=False,
    settle_s=5.0,
    bucket_scope=BucketScope.CREDENTIAL,  # limits are a project's
)

INPUT_SCHEMA: dict[str, Json] = {
    "type": "object",
    "required": ["input"],
    "properties": dict.fromkeys(("background", "metadata", "model", "store", "stream"), False),
}
"""Members that are set here may not stand in the arguments: the body would say two things."""

_WORKING = frozenset({"queued", "in_progress"})
_ID = re.compile(r"[A-Za-z0-9_-]{1,512}")
"""It becomes a step of a path, so it is nothing that a path could mean otherwise."""

_MAX_TEXT_CHARS = 500


class OpenAiResponses:
    """The adapter. Stateless: all it knows comes with its arguments."""

    profile = PROFILE

    def __init__(self, rpc: JsonRpc) -> None:
        """`rpc` makes ids for protocols whose requests have some; these have none."""

    # -- negotiate -----------------------------------------------------------------------------------------------------

    def negotiate(self, endpoint: Endpoint, tool: str) -> Exchange[Negotiation]:
        """`GET /models/MODEL`: this credential may use the model."""
        reply = yield _get(endpoint, f"/models/{quote(tool, safe='')}")
        found = trouble(reply)
        if found is not None:
            return found
        body = _object(reply)
        if body is None or body.get("id") != tool:
            return NotOffered("E_TOOL_UNKNOWN", f"Not sent: {endpoint.name} offers this credential no model {tool}.")
        descriptor = strict_json.dumps({"name": tool, "inputSchema": INPUT_SCHEMA})
        return Negotiated(PROTOCOL, descriptor, None, strict_json.dumps(INPUT_SCHEMA), None)

    # -- submit --------------------------------------------------------------------------------------------------------

    def submit(self, endpoint: Endpoint, call: Call) -> Exchange[SubmitOutcome]:
        """`POST /responses`, stored, so that it may be read for longer than the ten minutes of one that isn't."""
        ours = strict_json.dumps(
            {
                "background": True,
                "metadata": {METADATA_KEY: call.submission_key},
                "model": call.tool,
                "store": True,
            }
        )
        reply = yield Request(
            "POST",
            f"{endpoint.url.rstrip('/')}/responses",
            (("Content-Type", "application/json"), ("Accept", "application/json")),
            ours[:-1] + b"," + call.arguments[1:],  # two objects in one; what was digested leaves as it is
            effect=Effect.SUBMIT,
            deadline_s=call.answer_by_s,
            max_bytes=endpoint.max_response_bytes,
        )
        return self.read_submit(endpoint, call, reply)

    def read_submit(self, endpoint: Endpoint, call: Call, reply: Reply) -> SubmitOutcome:
        """Pure, and read again from kept bytes by another worker: whatever the reply is, it has an outcome."""
        if isinstance(reply, NoAnswer):
            return NotSent(reply.why) if reply.sent is Sent.NO else Unclear("E_NO_ANSWER", reply.why)
        code, wait_s = f"HTTP {reply.status}", retry_after_s(reply.headers)
        if wants_credential(reply) or reply.status in endpoint.not_processed_statuses:
            return NotProcessed(code, wait_s, auth=wants_credential(reply))
        body = _object(reply)
        if reply.status == 200 and body is not None and _usable(body.get("id")):
            return TaskStarted(cast("str", body["id"]), _word(body.get("status")), _created_at(body), None, None)
        kind, message = _member(body, "error", "type"), _text(_member(body, "error", "message"))
        if reply.status in PROFILE.definite_codes and kind == "invalid_request_error":
            return Rejected(code, message)
        return Unclear(code, message or "an answer that names no response", wait_s)

    def lookup(self, endpoint: Endpoint, search: Search) -> Exchange[LookupOutcome]:
        """There is nothing that could be asked."""
        yield from ()
        return NoSuchVerb("responses can't be listed")

    # -- poll, fetch ---------------------------------------------------------------------------------------------------

    def poll(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """`GET /responses/ID`: status and, once it is over, the output."""
        reply = yield _get(endpoint, f"/responses/{quote(task.task_id, safe='')}")
        return read_poll(endpoint, task, reply)

    def fetch(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        return self.poll(endpoint, task)

    # -- cancel --------------------------------------------------------------------------------------------------------

    def cancel(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[CancelOutcome]:
        """`POST /responses/ID/cancel`; a second one gets the same answer."""
        reply = yield Request(
            "POST",
            f"{endpoint.url.rstrip('/')}/responses/{quote(task.task_id, safe='')}/cancel",
            (("Content-Type", "application/json"), ("Accept", "application/json")),
            b"{}",
            effect=Effect.CANCEL,
            deadline_s=endpoint.deadline_s,
            max_bytes=endpoint.max_response_bytes,
        )
        return self.read_cancel(endpoint, task, reply)

    def read_cancel(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> CancelOutcome:
        """Pure, as `read_submit`."""
        if isinstance(reply, NoAnswer):
            return NotSent(reply.why) if reply.sent is Sent.NO else Unclear("E_NO_ANSWER", reply.why)
        code, wait_s = f"HTTP {reply.status}", retry_after_s(reply.headers)
        if wants_credential(reply) or reply.status in endpoint.not_processed_statuses:
            return NotProcessed(code, wait_s, auth=wants_credential(reply))
        body = _object(reply)
        if reply.status == 404:
            return NotFound(code)
        if reply.status != 200 or body is None or body.get("id") != task.task_id:
            return Unclear(code, _text(_member(body, "error", "message")) or "an answer about another response", wait_s)
        status = _word(body.get("status"))
        return Over(Terminal.CANCELLED, status, None) if status == "cancelled" else Acknowledged(status)

    # -- what this protocol does not have ------------------------------------------------------------------------------

    def read_input(self, endpoint: Endpoint, task: RemoteTask, body: bytes) -> Observation:
        return Refused("E_INPUT_MALFORMED", "a response asks nothing")

    def reply(self, endpoint: Endpoint, task: RemoteTask, reply: InputReply) -> Exchange[ReplyOutcome]:
        yield from ()
        return NoSuchVerb("a response asks nothing")

    def read_reply(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> ReplyOutcome:
        return NoSuchVerb("a response asks nothing")

    def end_session(self, endpoint: Endpoint, session: bytes) -> Exchange[None]:
        yield from ()

    # -- hints ---------------------------------------------------------------------------------------------------------

    def hints(self, reply: Reply) -> tuple[Hint, ...]:
        """A webhook's event: `{"object": "event", "type": "response.completed", "data": {"id": …}}`."""
        if b'"event"' not in reply.body:
            return ()
        event = _parsed(reply.body)
        kind, named = _word(_member(event, "type")), _member(event, "data", "id")
        if not kind.startswith("response.") or not _usable(named):
            return ()
        return (Hint(cast("str", named), kind.removeprefix("response.")),)


def read_poll(endpoint: Endpoint, task: RemoteTask, reply: Reply) -> Observation:
    """Only a response that bears the id we asked for says anything about it."""
    if isinstance(reply, NoAnswer) and len(reply.body) >= endpoint.max_response_bytes:
        return Refused("E_RESULT_TOO_LARGE", reply.why)
    found = trouble(reply)
    if found is not None:
        return found
    answer = cast("Answered", reply)  # `trouble` took everything else
    body = _object(answer)
    if answer.status == 404:
        return NotFound(_text(_member(body, "error", "message")) or "HTTP 404")
    if answer.status != 200 or body is None:
        return Busy(f"HTTP {answer.status}" if answer.status != 200 else "E_UNREADABLE_ANSWER")
    if body.get("id") != task.task_id:
        return Refused("E_TASK_ID_MISMATCH", "the answer is about another response, or names none")
    status, created_at = _word(body.get("status")), _created_at(body)
    if status in _WORKING:
        return StillWorking(status, created_at, None, None)
    if status == "completed":
        payload = Payload(answer.body, "/output") if body.get("output") else None
        return Over(Terminal.COMPLETED, status, payload, created_at=created_at)
    if status in ("failed", "incomplete"):
        # An incomplete response is no success: half of an answer must not start the next step.
        why = "error" if status == "failed" else "incomplete_details"
        pointer = f"/{why}" if isinstance(body.get(why), dict) else ""
        return Over(Terminal.FAILED, status, Payload(answer.body, pointer), created_at=created_at)
    if status == "cancelled":
        return Over(Terminal.CANCELLED, status, None, created_at=created_at)
    return Refused("E_STATUS_UNKNOWN", f"status {status!r}" if status else "no status")


# -- fields: what a server says is made storable, or it is not used ----------------------------------------------------


def _get(endpoint: Endpoint, path: str) -> Request:
    return Request(
        "GET",
        endpoint.url.rstrip("/") + path,
        (("Accept", "application/json"),),
        deadline_s=endpoint.deadline_s,
        max_bytes=endpoint.max_response_bytes,
    )


def _parsed(body: bytes) -> Json:
    try:
        return strict_json.loads(body)
    except BadJson:
        return None


def _object(reply: Reply) -> dict[str, Json] | None:
    body = _parsed(reply.body)
    return body if isinstance(body, dict) else None


def _member(value: Json, *names: str) -> Json:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _usable(value: Json) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _word(value: Json) -> str:
    return strict_json.storable(value, 64) or ""


def _text(value: Json) -> str:
    return strict_json.storable(value, _MAX_TEXT_CHARS) or ""


def _created_at(body: dict[str, Json]) -> str | None:
    """Unix seconds as a text: the same id with another one is another response."""
    created = body.get("created_at")
    return str(created) if isinstance(created, int) and 0 < created < 2**53 else None
