"""Sessions and negotiation as the two protocols of 2025 share them."""

import itertools
import json
from collections.abc import Mapping
from typing import TypeAlias

import pytest

from counterfoil.adapters.contract import (
    MAX_REQUESTS_PER_EXCHANGE,
    Answered,
    Call,
    Effect,
    Endpoint,
    NoAnswer,
    RemoteTask,
    Reply,
    Request,
    Sent,
)
from counterfoil.adapters.jsonrpc import JsonRpc
from counterfoil.adapters.mcp_2025_11_25 import Mcp20251125
from counterfoil.adapters.mcp_session import Session
from counterfoil.adapters.mcp_sync import McpSync
from counterfoil.adapters.outcomes import (
    Busy,
    Negotiated,
    NoAccess,
    NotOffered,
)

from .kit_mcp import Says, error, play

Adapter: TypeAlias = Mcp20251125 | McpSync

ENDPOINT = Endpoint("reports", "http://127.0.0.1:1/mcp", deadline_s=7.0, max_response_bytes=4096)
TASKS = {"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
TOOL = {
    "name": "generate",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object"},
    "execution": {"taskSupport": "optional"},
}
LISTED = {"result": {"tools": [TOOL]}}
ACCEPTED = Answered(202, {}, b"")
GONE = Answered(200, {}, b"")


def hello(version: str = "2025-11-25", capabilities: object = TASKS, session: str | None = "s-1") -> Says:
    headers = {} if session is None else {"mcp-session-id": session}
    return Says({"result": {"protocolVersion": version, "capabilities": capabilities}}, headers=headers)


def tool(support: object) -> dict[str, object]:
    return {"result": {"tools": [TOOL | {"execution": {"taskSupport": support}}]}}


def method(request: Request) -> str:
    return str(json.loads(request.body)["method"]) if request.method == "POST" else request.method


@pytest.fixture(params=[Mcp20251125, McpSync])
def adapter(request: pytest.FixtureRequest) -> Adapter:
    numbers = itertools.count(1)
    made: Adapter = request.param(JsonRpc(lambda: f"r-{next(numbers)}"))
    return made


@pytest.fixture
def tasks() -> Mcp20251125:
    return Mcp20251125(JsonRpc())


@pytest.fixture
def sync() -> McpSync:
    return McpSync(JsonRpc())


def test_a_session_is_begun_announced_and_named_in_every_later_request(adapter: Adapter) -> None:
    outcome, sent = play(adapter.negotiate(ENDPOINT, "generate"), [hello(), ACCEPTED, LISTED])
    assert outcome == Negotiated(
        adapter.profile.protocol,
        b'{"execution":{"taskSupport":"optional"},"inputSchema":{"type":"object"},"name":"generate",'
        b'"outputSchema":{"type":"object"}}',
        None,
        b'{"type":"object"}',
        b'{"type":"object"}',
        b'{"id":"s-1","version":"2025-11-25"}',
    )
    assert [method(request) for request in sent] == ["initialize", "notifications/initialized", "tools/list"]
    assert "id" not in json.loads(sent[1].body)
    assert not {"Mcp-Session-Id", "MCP-Protocol-Version"} & dict(sent[0].headers).keys()
    for request in sent[1:]:
        assert ("Mcp-Session-Id", "s-1") in request.headers
        assert ("MCP-Protocol-Version", "2025-11-25") in request.headers
    for request in sent:
        assert (request.effect, request.deadline_s, request.max_bytes) == (None, 7.0, 4096)
        assert ("Accept", "application/json, text/event-stream") in request.headers


def test_elicitation_is_declared_only_where_a_person_can_be_asked(tasks: Mcp20251125, sync: McpSync) -> None:
    for adapter, capabilities in ((tasks, {"elicitation": {}}), (sync, {})):
        _, [first, *_] = play(adapter.negotiate(ENDPOINT, "generate"), [hello(), ACCEPTED, LISTED])
        assert json.loads(first.body)["params"] == {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "counterfoil", "version": "1"},
        }


def test_a_server_without_sessions_is_as_good(adapter: Adapter) -> None:
    outcome, sent = play(adapter.negotiate(ENDPOINT, "generate"), [hello(session=None), ACCEPTED, LISTED])
    assert isinstance(outcome, Negotiated)
    assert outcome.session == b'{"id":null,"version":"2025-11-25"}'
    assert all("Mcp-Session-Id" not in dict(request.headers) for request in sent)
    assert play(adapter.end_session(ENDPOINT, outcome.session), []) == (None, [])


def test_the_tool_is_looked_for_page_by_page_but_not_for_ever(adapter: Adapter) -> None:
    first = {"result": {"tools": [], "nextCursor": "c1"}}
    outcome, sent = play(adapter.negotiate(ENDPOINT, "generate"), [hello(), ACCEPTED, first, LISTED])
    assert isinstance(outcome, Negotiated)
    assert json.loads(sent[3].body)["params"] == {"cursor": "c1"}

    pages = [{"result": {"tools": [TOOL], "nextCursor": f"c{n}"}} for n in range(5)]
    outcome, sent = play(adapter.negotiate(ENDPOINT, "generat"), [hello(), ACCEPTED, *pages, GONE])
    assert isinstance(outcome, NotOffered)
    assert outcome.code == "E_TOOL_UNKNOWN"
    assert "first 5 pages" in outcome.why
    assert "Near names: generate" in outcome.why
    assert len(sent) == MAX_REQUESTS_PER_EXCHANGE
    assert sent[-1].method == "DELETE"


@pytest.mark.parametrize("answer", [GONE, Answered(405, {}, b""), Answered(404, {}, b""), NoAnswer(Sent.MAYBE, "cut")])
def test_ending_a_session_is_one_delete_whatever_the_answer_is(adapter: Adapter, answer: Reply) -> None:
    packed = Session("2025-06-18", "s-1").pack()
    outcome, [request] = play(adapter.end_session(ENDPOINT, packed), [answer])
    assert outcome is None
    assert (request.method, request.url, request.body, request.effect) == ("DELETE", ENDPOINT.url, b"", None)
    assert request.headers == (("MCP-Protocol-Version", "2025-06-18"), ("Mcp-Session-Id", "s-1"))
    assert request.deadline_s == 5.0


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (error(-32601), NotOffered),
        (error(-32602, {"supported": ["2024-11-05"]}), NotOffered),
        (error(-32603), Busy),
        (Answered(404, {}, b"nope"), NotOffered),
        (Answered(400, {}, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}'), NotOffered),
        (Answered(200, {}, b"<html>"), NotOffered),
        (Answered(307, {"location": "http://elsewhere/"}, b""), NotOffered),
        (Answered(503, {}, b""), Busy),
        (Answered(429, {"retry-after": "3"}, b""), Busy),
        (Answered(401, {}, b""), NoAccess),
        (NoAnswer(Sent.NO, "refused"), Busy),
        (NoAnswer(Sent.MAYBE, "reset"), Busy),
    ],
)
def test_trouble_refuses_waits_or_asks_for_access_and_a_begun_session_is_ended(
    adapter: Adapter, reply: Reply | Mapping[str, object], expected: type
) -> None:
    outcome, sent = play(adapter.negotiate(ENDPOINT, "generate"), [reply])
    assert isinstance(outcome, expected)
    assert len(sent) == 1
    outcome, sent = play(adapter.negotiate(ENDPOINT, "generate"), [hello(), ACCEPTED, reply, GONE])
    assert isinstance(outcome, expected)
    assert method(sent[-1]) == "DELETE"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Answered(200, {}, b""), Negotiated),
        (Answered(204, {}, b""), Negotiated),
        (Answered(400, {}, b""), NotOffered),
        (Answered(404, {}, b""), NotOffered),
        (Answered(503, {}, b""), Busy),
        (Answered(401, {}, b""), NoAccess),
        (NoAnswer(Sent.MAYBE, "cut"), Busy),
    ],
)
def test_the_server_must_take_the_announcement(adapter: Adapter, reply: Reply, expected: type) -> None:
    after = [LISTED] if expected is Negotiated else [GONE]
    assert isinstance(play(adapter.negotiate(ENDPOINT, "generate"), [hello(), reply, *after])[0], expected)


@pytest.mark.parametrize("given", ["a b", "a\r\nX: y", "sid\N{LATIN SMALL LETTER E WITH ACUTE}", "x" * 4097])
def test_a_session_id_that_cannot_be_sent_back_is_refused(adapter: Adapter, given: str) -> None:
    outcome, sent = play(adapter.negotiate(ENDPOINT, "generate"), [hello(session=given)])
    assert isinstance(outcome, NotOffered)
    assert "session id" in outcome.why
    assert given not in outcome.why
    assert len(sent) == 1


@pytest.mark.parametrize("answered", ["2025-06-18", "2024-11-05", "2026-07-28", "x\x00", "", None, 20251125, ["2025"]])
def test_tasks_take_exactly_their_version_and_name_both(tasks: Mcp20251125, answered: object) -> None:
    said = Says({"result": {"protocolVersion": answered, "capabilities": TASKS}}, headers={"mcp-session-id": "s-1"})
    outcome, sent = play(tasks.negotiate(ENDPOINT, "generate"), [said, GONE])
    assert isinstance(outcome, NotOffered)
    assert outcome.code == "E_CAPABILITY_UNSUPPORTED"
    assert "not 2025-11-25" in outcome.why
    if answered in ("2025-06-18", "2024-11-05"):
        assert f"answers with MCP {answered}" in outcome.why
    assert [method(request) for request in sent] == ["initialize", "DELETE"]


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_sync_takes_the_version_that_the_server_answers_with_and_pins_it(sync: McpSync, version: str) -> None:
    outcome, sent = play(sync.negotiate(ENDPOINT, "generate"), [hello(version, {}), ACCEPTED, LISTED])
    assert isinstance(outcome, Negotiated)
    assert ("MCP-Protocol-Version", version) in sent[2].headers
    _, [request] = play(sync.submit(ENDPOINT, Call("generate", b"{}", "key-1", 9.0, session=outcome.session)), [GONE])
    assert ("MCP-Protocol-Version", version) in request.headers


def test_sync_takes_no_version_that_has_no_sessions(sync: McpSync) -> None:
    outcome, _ = play(sync.negotiate(ENDPOINT, "generate"), [hello("2024-11-05", {}), GONE])
    assert isinstance(outcome, NotOffered)
    assert "answers with MCP 2024-11-05, not 2025-11-25 or 2025-06-18 or 2025-03-26" in outcome.why


@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        None,
        [],
        {"tasks": {}},
        {"tasks": {"requests": {"tools": {}}}},
        {"tasks": {"requests": {"tools": {"call": True}}}},
        {"tasks": {"requests": {"sampling": {"createMessage": {}}}}},
        {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    ],
)
def test_a_server_that_declares_no_task_calls_is_refused_whatever_the_tool_says(
    tasks: Mcp20251125, sync: McpSync, capabilities: object
) -> None:
    replies = [hello(capabilities=capabilities), ACCEPTED, tool("required"), GONE]
    outcome, sent = play(tasks.negotiate(ENDPOINT, "generate"), replies)
    assert isinstance(outcome, NotOffered)
    assert outcome.code == "E_CAPABILITY_UNSUPPORTED"
    assert "`protocol: mcp-sync`" in outcome.why
    assert method(sent[-1]) == "DELETE"
    assert isinstance(play(sync.negotiate(ENDPOINT, "generate"), replies)[0], Negotiated)


@pytest.mark.parametrize("support", ["forbidden", None, "Optional", True, ["optional"], {}])
def test_a_tool_that_takes_no_task_is_left_to_sync(tasks: Mcp20251125, sync: McpSync, support: object) -> None:
    replies = [hello(), ACCEPTED, tool(support), GONE]
    outcome, _ = play(tasks.negotiate(ENDPOINT, "generate"), replies)
    assert isinstance(outcome, NotOffered)
    assert outcome.code == "E_CAPABILITY_UNSUPPORTED"
    assert "not for its tool generate. Use `protocol: mcp-sync`" in outcome.why
    assert isinstance(play(sync.negotiate(ENDPOINT, "generate"), replies)[0], Negotiated)


def test_a_tool_without_a_word_about_tasks_takes_none(tasks: Mcp20251125) -> None:
    silent = {"result": {"tools": [{"name": "generate"}]}}
    outcome, _ = play(tasks.negotiate(ENDPOINT, "generate"), [hello(), ACCEPTED, silent, GONE])
    assert isinstance(outcome, NotOffered)


def test_a_tool_that_insists_on_a_task_is_left_to_tasks(tasks: Mcp20251125, sync: McpSync) -> None:
    replies = [hello(), ACCEPTED, tool("required"), GONE]
    outcome, _ = play(sync.negotiate(ENDPOINT, "generate"), replies)
    assert isinstance(outcome, NotOffered)
    assert outcome.code == "E_CAPABILITY_UNSUPPORTED"
    assert "`protocol: mcp-2025-11-25`" in outcome.why
    assert isinstance(play(tasks.negotiate(ENDPOINT, "generate"), replies)[0], Negotiated)


def test_a_submit_goes_out_in_its_session_with_key_and_digested_arguments(adapter: Adapter) -> None:
    call = Call("g\u00e9n", b'{"month":"2026-10","n":1}', "key-1", 90.0, session=Session("2025-11-25", "s-1").pack())
    _, [request] = play(adapter.submit(ENDPOINT, call), [error(-32603)])
    assert request.effect is Effect.SUBMIT
    assert request.deadline_s == 90.0
    assert ("Mcp-Session-Id", "s-1") in request.headers
    assert b'"arguments":{"month":"2026-10","n":1}' in request.body
    params = json.loads(request.body)["params"]
    assert params["name"] == "g\u00e9n"
    assert params["_meta"] == {"dev.counterfoil/submission-key": "key-1"}
    assert ("task" in params) is isinstance(adapter, Mcp20251125)


def test_every_request_is_read_only_until_its_own_response(adapter: Adapter) -> None:
    _, [first, _, listed] = play(adapter.negotiate(ENDPOINT, "generate"), [hello(), ACCEPTED, LISTED])
    _, [sent] = play(adapter.submit(ENDPOINT, Call("generate", b"{}", "key-1", 9.0)), [error(-32603)])
    ids = {json.loads(request.body)["id"] for request in (first, listed, sent)}
    assert len(ids) == 3
    for request in (first, listed, sent):
        own = json.loads(request.body)["id"]
        assert request.until is not None
        assert request.until(json.dumps({"jsonrpc": "2.0", "id": own, "result": {}}).encode())
        assert not any(
            request.until(json.dumps({"jsonrpc": "2.0", "id": other, "result": {}}).encode()) for other in ids - {own}
        )


def test_the_send_token_is_the_request_id(adapter: Adapter) -> None:
    call = Call("generate", b"{}", "key-1", 9.0, request_id="send-token")
    _, [request] = play(adapter.submit(ENDPOINT, call), [error(-32603)])
    assert json.loads(request.body)["id"] == "send-token"


@pytest.mark.parametrize(
    "session", [Session("2025-11-25", "s-1"), Session("2025-03-26"), Session("2025-11-25", "~!x" * 100)]
)
def test_a_session_survives_the_ledger(session: Session) -> None:
    assert Session.unpack(session.pack(), "2000-01-01") == session


@pytest.mark.parametrize(
    "packed",
    [
        None,
        b"",
        b"x",
        b"[]",
        b'{"id":7,"version":8}',
        b'{"id":"a b","version":"\\r\\n"}',
        b'{"id":null}',
        '{"version":"\N{ARABIC-INDIC DIGIT TWO}025-11-25"}'.encode(),
    ],
)
def test_bytes_that_hold_no_session_are_a_server_without_one(packed: bytes | None) -> None:
    assert Session.unpack(packed, "2025-11-25") == Session("2025-11-25")


def test_a_task_is_read_in_the_session_that_it_names(tasks: Mcp20251125) -> None:
    task = RemoteTask("t-1", session=Session("2025-11-25", "s-7").pack(), terminal="completed")
    for exchange, name in (
        (tasks.poll(ENDPOINT, task), "tasks/get"),
        (tasks.fetch(ENDPOINT, task), "tasks/result"),
        (tasks.cancel(ENDPOINT, task), "tasks/cancel"),
    ):
        _, [request] = play(exchange, [error(-32603)])
        assert (method(request), json.loads(request.body)["params"]) == (name, {"taskId": "t-1"})
        assert ("Mcp-Session-Id", "s-7") in request.headers
        assert (request.effect is Effect.CANCEL) is (name == "tasks/cancel")
        assert (request.deadline_s, request.max_bytes) == (7.0, 4096)


def test_a_task_may_be_asked_to_be_kept_for_a_time(tasks: Mcp20251125) -> None:
    for ttl_ms, asked in ((None, {}), (3_600_000, {"ttl": 3_600_000})):
        call = Call("generate", b"{}", "key-1", 9.0, ttl_ms=ttl_ms)
        _, [request] = play(tasks.submit(ENDPOINT, call), [error(-32603)])
        assert json.loads(request.body)["params"]["task"] == asked
