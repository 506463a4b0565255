"""Right answers of every protocol with something made wrong: whatever was asked, there is an outcome.

Random bytes stop at the first check. These get past it: a valid answer under the id that was asked, in which one to
three places are hostile.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters.contract import (
    Adapter,
    Answered,
    Call,
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
from counterfoil.adapters.mcp_session import Session
from counterfoil.adapters.outcomes import (
    CancelOutcome,
    Found,
    LookupOutcome,
    Negotiation,
    NotProcessed,
    NotSent,
    Observation,
    Over,
    ReplyOutcome,
    SubmitOutcome,
)
from counterfoil.adapters.registry import PROTOCOLS, adapter
from counterfoil.adapters.strict_json import MAX_DEPTH, is_storable, loads, resolve

from .hostile import hard, texts_of
from .kit_http import JOBS, jobs, reports
from .kit_mcp import TASK_RESULT
from .kit_mcp_2025 import RELATED, TASK_2025

ID = "$id"
"""In an answer: the id of the request that it answers."""

TOOL = {"name": "generate", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
TEXT = [{"type": "text", "text": "done"}]
ASKED = {
    "q-1": {"method": "elicitation/create", "params": {"mode": "form", "message": "Which?", "requestedSchema": {}}}
}
A2A_TASK = {
    "id": "t-1",
    "contextId": "key-1",
    "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-11-29T10:00:00Z"},
    "artifacts": [{"artifactId": "a-1", "parts": [{"data": {"rows": 3}}]}],
    "history": [{"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "x"}], "taskId": "t-1"}],
}
A2A_ASKS = {"state": "TASK_STATE_INPUT_REQUIRED", "message": {"messageId": "q-1", "parts": [{"text": "Which?"}]}}
CARD = {
    "name": "Reports",
    "version": "1.0",
    "supportedInterfaces": [
        {"url": "http://127.0.0.1:1/mcp", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
    ],
    "capabilities": {"streaming": False},
    "skills": [{"id": "generate", "name": "generate", "description": "x", "tags": []}],
}


def rpc(*results: object) -> list[object]:
    return [{"jsonrpc": "2.0", "id": ID, "result": result} for result in results]


MCP = [
    *rpc(
        {"tools": [TOOL], "nextCursor": "c"},
        {"content": TEXT, "structuredContent": {"a": 1}, "isError": False, "resultType": "complete"},
        {"content": TEXT, "structuredContent": {"found": True, "taskId": "t-1", "status": "working"}},
        {"structuredContent": {"result": {"state": "task", "task": TASK_2025}}, "content": TEXT},
    ),
    {"jsonrpc": "2.0", "id": ID, "error": {"code": -32602, "message": "no", "data": {"code": "E_X"}}},
    {"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": TASK_2025},
]
RIGHT: Mapping[str, list[object]] = {
    "mcp-2026-07-28": [
        *MCP,
        *rpc(
            TASK_RESULT,
            TASK_RESULT | {"resultType": "complete", "status": "completed", "result": {"content": TEXT}},
            TASK_RESULT | {"resultType": "complete", "status": "failed", "error": {"code": -1, "message": "x"}},
            TASK_RESULT | {"resultType": "complete", "status": "input_required", "inputRequests": ASKED},
            {"resultType": "input_required", "inputRequests": ASKED, "requestState": "s"},
            {"supportedVersions": ["2026-07-28"], "capabilities": {"extensions": {}}, "serverInfo": {"name": "x"}},
        ),
    ],
    "mcp-2025-11-25": [
        *MCP,
        *rpc(
            {"task": TASK_2025},
            TASK_2025 | {"status": "completed"},
            TASK_2025 | {"status": "cancelled", "_meta": RELATED},
            {"content": TEXT, "_meta": RELATED},
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}}},
                "serverInfo": {"name": "x", "version": "1"},
            },
        ),
        {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {"message": "Which?", "_meta": RELATED}},
    ],
    "mcp-sync": [*MCP, *rpc({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {}})],
    "aip-151": [
        {"name": "operations/op-1", "metadata": {"@type": "x"}},
        {"name": "operations/op-1", "done": True, "response": {"@type": "x", "rows": 3}},
        {"name": "operations/op-1", "done": True, "error": {"code": 1, "message": "x", "details": []}},
        {"operations": [{"name": "operations/op-1", "done": False}], "nextPageToken": "", "unreachable": []},
        {"error": {"code": 409, "status": "ALREADY_EXISTS", "details": [{"operation": "operations/op-1"}]}},
        {"error": {"code": 404, "status": "NOT_FOUND", "message": "x"}},
    ],
    "http-202": [
        {"id": "j-1", "status": "running"},
        {"id": "j-1", "status": "succeeded", "result": {"rows": 3}, "resourceLocation": "/jobs/j-1/result"},
        {"id": "j-1", "status": "failed", "error": {"code": "x", "message": "y"}},
        {"jobs": [{"id": "j-1", "status": "running"}]},
        {"jobID": "j-1", "status": "dismissed", "message": "x"},
    ],
    "a2a-1.0": [
        CARD,
        *rpc(
            {"task": A2A_TASK},
            A2A_TASK,
            A2A_TASK | {"status": A2A_ASKS},
            {"message": {"messageId": "m-2", "role": "ROLE_AGENT", "parts": [{"text": "hello"}]}},
            {"tasks": [A2A_TASK], "nextPageToken": "", "pageSize": 50, "totalSize": 1},
        ),
        {"jsonrpc": "2.0", "id": ID, "error": {"code": -32001, "message": "Task not found"}},
        {"statusUpdate": {"taskId": "t-1", "contextId": "c", "status": A2A_ASKS}},
    ],
}

HOSTILE = st.sampled_from(
    [
        "null",
        "true",
        "NaN",
        "-Infinity",
        "1e999",
        "-0",
        "9" * 400,
        "-" + "9" * 30,
        "1.5",
        '""',
        '"\\ud800"',
        '"\\u0000"',
        '"' + "x" * 3000 + '"',
        '"t-1"',
        '"working"',
        '"completed"',
        '"TASK_STATE_WORKING"',
        '"//evil.example/"',
        '"http://[::1"',
        "[]",
        "{}",
        "[[]]",
        '{"":{}}',
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        '{"id":1,"id":2}',
    ]
)
_PLACE = re.compile(r'(?<=[:\[,])(?:"(?:[^"\\]|\\.)*"|-?[0-9.]+|true|false|null)(?=[,\]}])')
"""Where a plain value stands in compact JSON."""
_OBJECT = re.compile(r"(?<=[:\[,])(?=[{\[])")
_MEMBER = re.compile(r'"[A-Za-z@]+":')


@dataclass(frozen=True)
class Wrong:
    """One thing made wrong in a text: which kind, how far in (0 to 1), with what."""

    kind: str
    at: float
    value: str

    def made(self, text: str) -> str:
        match self.kind:
            case "cut":
                return text[: int(len(text) * self.at)]
            case "value":
                return self._replaced(text, _PLACE)
            case "object":
                return self._inserted(text, _OBJECT, f"{self.value},") if self.at < 0.5 else self._swallowed(text)
            case "twice":
                return self._inserted(text, _MEMBER, f'"taskId":{self.value},')
            case "renamed":
                return self._replaced(text, _MEMBER, '"zzz":')
            case _:
                return text + self.value

    def _spot(self, text: str, places: re.Pattern[str]) -> re.Match[str] | None:
        found = list(places.finditer(text))
        return found[int(self.at * (len(found) - 1))] if found else None

    def _replaced(self, text: str, places: re.Pattern[str], by: str | None = None) -> str:
        spot = self._spot(text, places)
        return text if spot is None else text[: spot.start()] + (by or self.value) + text[spot.end() :]

    def _inserted(self, text: str, places: re.Pattern[str], what: str) -> str:
        spot = self._spot(text, places)
        return text if spot is None else text[: spot.start()] + what + text[spot.start() :]

    def _swallowed(self, text: str) -> str:
        """A whole object or list, with all that is in it, becomes a hostile value."""
        found = list(_OBJECT.finditer(text))
        if not found:
            return text
        begin = found[int(self.at * (len(found) - 1))].start()
        depth = 0
        for end in range(begin, len(text)):
            depth += (text[end] in "{[") - (text[end] in "}]")
            if depth == 0:
                return text[:begin] + self.value + text[end + 1 :]
        return text


WRONGS = st.lists(
    st.builds(
        Wrong,
        st.sampled_from(["cut", "value", "value", "value", "object", "twice", "renamed", "tail"]),
        st.floats(0, 1),
        HOSTILE,
    ),
    max_size=3,
)
HEADERS = st.fixed_dictionaries(
    {"content-type": st.sampled_from(["application/json", "text/event-stream", "text/html"])},
    optional={
        "retry-after": st.sampled_from(["7", "1e9", "-1", "9" * 500, "soon", "\xe9"]),
        "date": st.sampled_from(["Sun, 29 Nov 2026 10:00:00 GMT", "x", "Sun, 29 Nov 99999 10:00:00 GMT"]),
        "www-authenticate": st.just("Bearer"),
        "mcp-session-id": st.sampled_from(["s-1", "\x00", "x" * 5000]),
        "location": st.sampled_from(["/jobs/j-1", "//evil.example/", "http://[::1", "\x00", "/" + "x" * 3000]),
        "operation-location": st.sampled_from(["/jobs/j-1", "http://127.0.0.1:x/"]),
    },
)
STATUSES = st.sampled_from([200, 200, 200, 202, 201, 204, 303, 400, 401, 404, 409, 410, 429, 500, 503])


@dataclass(frozen=True)
class Template:
    """An answer that is made when it is known what was asked."""

    status: int
    headers: Mapping[str, str]
    text: str
    wrongs: tuple[Wrong, ...]
    cut: bool

    def to(self, request_id: str) -> Reply:
        text = self.text.replace(ID, request_id)
        for wrong in self.wrongs:
            text = wrong.made(text)
        body = text.encode("utf-8", "surrogatepass")
        if self.headers["content-type"] == "text/event-stream":
            body = b"event: message\nid: 1\ndata: " + body + b"\n\n"
        return NoAnswer(Sent.MAYBE, "cut", body) if self.cut else Answered(self.status, self.headers, body)


def templates(protocol: str) -> st.SearchStrategy[Template]:
    texts = [json.dumps(right, separators=(",", ":")) for right in RIGHT[protocol]]
    cut = st.sampled_from([False] * 9 + [True])
    return st.builds(Template, STATUSES, HEADERS, st.sampled_from(texts), WRONGS.map(tuple), cut)


def asked_id(request: Request) -> str:
    try:
        return str(json.loads(request.body)["id"])
    except (ValueError, KeyError, TypeError):
        return "none"


def finish(exchange: Exchange[Any], answers: list[Template]) -> Any:
    """The outcome; an exchange that asks on is told the last thing again."""
    try:
        request = next(exchange)
        for number in range(8):
            request = exchange.send(answers[min(number, len(answers) - 1)].to(asked_id(request)))
    except StopIteration as stop:
        return stop.value
    finally:
        exchange.close()
    raise AssertionError("more requests than an exchange may have")


MCP_AT = Endpoint("reports", "http://127.0.0.1:1/mcp", max_response_bytes=4000)
ENDPOINTS: Mapping[str, list[Endpoint]] = {
    "aip-151": [reports()],
    "http-202": [
        jobs(),
        jobs({"routes": {"submit": "POST /jobs"}}, preset="azure"),
        jobs(JOBS, {"routes": {"lookup": "GET /jobs/{key}"}}, preset="ogc"),
    ],
}
SESSIONS = {"mcp-2025-11-25": Session("2025-11-25", "s-1").pack(), "mcp-sync": Session("2025-11-25", "s-1").pack()}


def outcomes(one: Adapter, endpoint: Endpoint, answers: list[Template]) -> Iterator[tuple[Any, Any]]:
    """Every verb's outcome, and what it has to be."""
    protocol = one.profile.protocol
    session = SESSIONS.get(protocol)
    key = "key-1"
    lookup = "ListTasks" if protocol == "a2a-1.0" else "counterfoil_lookup"
    call = Call("generate", b"{}", key, 60.0, request_id="r-1", session=session, lookup_tool=lookup, state="s")
    task_id = {"aip-151": "operations/op-1", "http-202": "j-1"}.get(protocol, "t-1")
    task = RemoteTask(task_id, key, request_id="r-1", session=session, terminal="completed")
    reply = answers[0].to("r-1")
    person = InputReply("q-1", "elicitation/create", b'{"action":"accept","content":{"a":1}}', "7")
    yield finish(one.negotiate(endpoint, "generate"), answers), Negotiation
    yield one.read_submit(endpoint, call, reply), SubmitOutcome
    yield finish(one.lookup(endpoint, Search("generate", key, 1, lookup, session)), answers), LookupOutcome
    yield finish(one.poll(endpoint, task), answers), Observation
    yield finish(one.fetch(endpoint, task), answers), Observation
    yield one.read_cancel(endpoint, task, reply), CancelOutcome
    yield finish(one.reply(endpoint, task, person), answers), ReplyOutcome
    yield one.read_reply(endpoint, task, reply), ReplyOutcome
    yield one.read_input(endpoint, task, reply.body), Observation
    for hint in one.hints(reply):
        yield hint, type(hint)


def is_clean(outcome: Any) -> None:
    assert all(is_storable(text) for text in texts_of(outcome))
    if isinstance(outcome, Found):
        assert all(is_storable(text) for text in texts_of(outcome.task))
    if isinstance(outcome, Over) and outcome.payload is not None and outcome.payload.pointer:
        resolve(loads(outcome.payload.body), outcome.payload.pointer)


@hard
@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(data=st.data())
def test_whatever_is_wrong_in_a_right_answer_every_verb_has_an_outcome(protocol: str, data: st.DataObject) -> None:
    one = adapter(protocol)
    endpoint = data.draw(st.sampled_from(ENDPOINTS.get(protocol, [MCP_AT])))
    answers = data.draw(st.lists(templates(protocol), min_size=1, max_size=3))
    for outcome, kind in outcomes(one, endpoint, answers):
        assert isinstance(outcome, kind), outcome
        is_clean(outcome)
        if answers[0].cut:
            assert not isinstance(outcome, NotSent | NotProcessed)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_right_answers_are_taken_for_what_they_are(protocol: str) -> None:
    """Else the test above would only see what is refused at once."""
    one = adapter(protocol)
    seen = set()
    for right in RIGHT[protocol]:
        whole = Template(200, {"content-type": "application/json"}, json.dumps(right), (), cut=False)
        seen |= {type(outcome).__name__ for outcome, _ in outcomes(one, ENDPOINTS.get(protocol, [MCP_AT])[0], [whole])}
    assert len(seen) >= 6, sorted(seen)
