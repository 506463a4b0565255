import itertools
import json

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
    Sent,
)
from counterfoil.adapters.jsonrpc import JsonRpc
from counterfoil.adapters.mcp_2026_07_28 import Mcp20260728
from counterfoil.adapters.outcomes import (
    Acknowledged,
    Busy,
    Negotiated,
    NoAccess,
    NotOffered,
    Over,
    StillWorking,
    TaskStarted,
    Terminal,
)

from .kit_mcp import error, play

ENDPOINT = Endpoint("reports", "http://127.0.0.1:1/mcp", deadline_s=7.0, max_response_bytes=4096)
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    },
    "io.modelcontextprotocol/clientInfo": {"name": "counterfoil", "version": "1"},
}
DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}
TOOL = {"name": "generate", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}, "version": "1.2"}


@pytest.fixture
def adapter() -> Mcp20260728:
    numbers = itertools.count(1)
    return Mcp20260728(JsonRpc(lambda: f"r-{next(numbers)}"))


def test_a_tool_is_negotiated_by_discover_and_its_descriptor(adapter: Mcp20260728) -> None:
    outcome, sent = play(
        adapter.negotiate(ENDPOINT, "generate"), [{"result": DISCOVERED}, {"result": {"tools": [TOOL]}}]
    )
    assert outcome == Negotiated(
        "mcp-2026-07-28",
        b'{"inputSchema":{"type":"object"},"name":"generate","outputSchema":{"type":"object"},"version":"1.2"}',
        "1.2",
        b'{"type":"object"}',
        b'{"type":"object"}',
    )
    assert [json.loads(request.body)["method"] for request in sent] == ["server/discover", "tools/list"]
    assert all(json.loads(request.body)["params"]["_meta"] == META for request in sent)
    assert all(request.effect is None and request.deadline_s == 7.0 and request.max_bytes == 4096 for request in sent)
    assert ("Mcp-Method", "tools/list") in sent[1].headers
    assert ("MCP-Protocol-Version", "2026-07-28") in sent[1].headers


def test_the_tool_is_looked_for_page_by_page(adapter: Mcp20260728) -> None:
    pages = [{"result": DISCOVERED}, {"result": {"tools": [], "nextCursor": "c1"}}, {"result": {"tools": [TOOL]}}]
    outcome, sent = play(adapter.negotiate(ENDPOINT, "generate"), pages)
    assert isinstance(outcome, Negotiated)
    assert json.loads(sent[2].body)["params"]["cursor"] == "c1"


def test_a_server_with_endless_pages_is_left_after_eight_requests(adapter: Mcp20260728) -> None:
    pages = ({"result": {"tools": [TOOL], "nextCursor": f"c{n}"}} for n in itertools.count())
    outcome, sent = play(adapter.negotiate(ENDPOINT, "generat"), itertools.chain([{"result": DISCOVERED}], pages))
    assert len(sent) == MAX_REQUESTS_PER_EXCHANGE
    assert isinstance(outcome, NotOffered)
    assert outcome.code == "E_TOOL_UNKNOWN"
    assert "first 7 pages" in outcome.why
    assert "generate" in outcome.why


def test_a_cursor_that_repeats_ends_the_search(adapter: Mcp20260728) -> None:
    page = {"result": {"tools": [], "nextCursor": "c"}}
    outcome, sent = play(adapter.negotiate(ENDPOINT, "x"), [{"result": DISCOVERED}, page, page])
    assert isinstance(outcome, NotOffered)
    assert len(sent) == 3


@pytest.mark.parametrize(
    ("discovered", "why"),
    [
        ({"supportedVersions": ["2025-11-25"]}, "speaks MCP 2025-11-25, not 2026-07-28"),
        ({"supportedVersions": "2026-07-28"}, "not 2026-07-28"),
        ({"supportedVersions": ["2026-07-28"], "capabilities": {"extensions": {}}}, "does not declare the extension"),
        ({"supportedVersions": ["2026-07-28"], "capabilities": {"tasks": {}}}, "does not declare the extension"),
        ({"supportedVersions": [["x\x00"], "2026-07-28"], "capabilities": []}, "does not declare the extension"),
    ],
)
def test_a_missing_version_or_extension_is_not_offered(
    adapter: Mcp20260728, discovered: dict[str, object], why: str
) -> None:
    outcome, sent = play(adapter.negotiate(ENDPOINT, "generate"), [{"result": discovered}])
    assert isinstance(outcome, NotOffered)
    assert outcome.code == "E_CAPABILITY_UNSUPPORTED"
    assert why in outcome.why
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (error(-32601), NotOffered),
        (error(-32022, {"supported": ["2027-01-01"]}), NotOffered),
        (error(-32603), Busy),
        (Answered(404, {}, b"nope"), NotOffered),
        (Answered(405, {}, b""), NotOffered),
        (Answered(200, {}, b"<html>"), NotOffered),
        (Answered(307, {"location": "http://elsewhere/"}, b""), NotOffered),
        (Answered(503, {}, b""), Busy),
        (Answered(429, {"retry-after": "3"}, b""), Busy),
        (Answered(401, {}, b""), NoAccess),
        (Answered(403, {"www-authenticate": "Bearer"}, b""), NoAccess),
        (NoAnswer(Sent.NO, "refused"), Busy),
        (NoAnswer(Sent.MAYBE, "reset"), Busy),
    ],
)
def test_trouble_in_the_negotiation_refuses_waits_or_asks_for_access(
    adapter: Mcp20260728, reply: Reply | dict[str, object], expected: type
) -> None:
    assert isinstance(play(adapter.negotiate(ENDPOINT, "generate"), [reply])[0], expected)
    later, _ = play(adapter.negotiate(ENDPOINT, "generate"), [{"result": DISCOVERED}, reply])
    assert isinstance(later, expected)


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "generate", "description": "a\x00b"},
        {"name": "generate", "title": "\ud800"},
        {"name": "generate", "inputSchema": {"properties": {"a": {"x-mcp-header": "a b", "type": "string"}}}},
    ],
)
def test_a_descriptor_that_cannot_be_kept_or_obeyed_is_not_offered(
    adapter: Mcp20260728, tool: dict[str, object]
) -> None:
    outcome, _ = play(adapter.negotiate(ENDPOINT, "generate"), [{"result": DISCOVERED}, {"result": {"tools": [tool]}}])
    assert isinstance(outcome, NotOffered)
    assert outcome.code == "E_TOOL_UNKNOWN"


def test_an_unknown_tool_names_its_neighbours(adapter: Mcp20260728) -> None:
    tools = [TOOL, {"name": 7}, {"name": "genera\x00te"}, None]
    outcome, _ = play(adapter.negotiate(ENDPOINT, "generte"), [{"result": DISCOVERED}, {"result": {"tools": tools}}])
    why = "Not sent: reports offers no tool generte. Near names: generate."
    assert outcome == NotOffered("E_TOOL_UNKNOWN", why, ("generate",))


def test_a_submit_carries_the_key_the_digested_arguments_and_one_effect(adapter: Mcp20260728) -> None:
    descriptor = {"inputSchema": {"properties": {"month": {"type": "string", "x-mcp-header": "Month"}}}}
    call = Call("générer", b'{"month":"2026-10","n":1}', "key-1", 90.0, descriptor, request_id="send-token")
    created = {"resultType": "task", "taskId": "t-1", "status": "working", "createdAt": "x", "ttlMs": 1000}
    outcome, [request] = play(adapter.submit(ENDPOINT, call), [{"result": created}])
    assert outcome == TaskStarted("t-1", "working", "x", 1000, None)
    assert request.effect is Effect.SUBMIT
    assert request.deadline_s == 90.0
    assert b'"arguments":{"month":"2026-10","n":1}' in request.body
    assert request.headers == (
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "=?base64?Z8OpbsOpcmVy?="),
        ("Mcp-Param-Month", "2026-10"),
    )
    body = json.loads(request.body)
    assert body["id"] == "send-token"
    assert body["params"]["name"] == "générer"
    assert body["params"]["_meta"] == META | {"dev.counterfoil/submission-key": "key-1"}


def test_a_call_without_an_id_of_its_own_gets_a_fresh_one_that_is_checked(adapter: Mcp20260728) -> None:
    call = Call("generate", b"{}", "key-1", 90.0)
    foreign = Answered(200, {}, b'{"jsonrpc":"2.0","id":"r-9","result":{"resultType":"task","taskId":"t-9"}}')
    outcome, [request] = play(adapter.submit(ENDPOINT, call), [foreign])
    assert json.loads(request.body)["id"] == "r-1"
    assert not isinstance(outcome, TaskStarted)


def test_a_poll_routes_by_task_id_and_asks_under_a_new_id_each_time(adapter: Mcp20260728) -> None:
    task = RemoteTask("t 1\n")
    status = {"taskId": "t 1\n", "status": "working"}
    outcome, [first] = play(adapter.poll(ENDPOINT, task), [{"result": status}])
    _, [second] = play(adapter.poll(ENDPOINT, task), [{"result": status}])
    assert isinstance(outcome, StillWorking)
    assert first.effect is None
    assert ("Mcp-Name", "=?base64?dCAxCg==?=") in first.headers
    assert json.loads(first.body)["method"] == "tasks/get"
    assert json.loads(first.body)["id"] != json.loads(second.body)["id"]


def test_a_poll_brings_the_result_inline(adapter: Mcp20260728) -> None:
    done = {"taskId": "t-1", "status": "completed", "result": {"content": []}}
    outcome, _ = play(adapter.poll(ENDPOINT, RemoteTask("t-1")), [{"result": done}])
    assert isinstance(outcome, Over)
    assert outcome.terminal is Terminal.COMPLETED
    assert outcome.payload is not None
    assert outcome.payload.pointer == "/result/result"


def test_a_fetch_is_a_poll_and_there_is_no_session_to_end(adapter: Mcp20260728) -> None:
    done = {"taskId": "t-1", "status": "completed", "result": {"content": []}}
    outcome, [request] = play(adapter.fetch(ENDPOINT, RemoteTask("t-1", terminal="completed")), [{"result": done}])
    assert isinstance(outcome, Over)
    assert json.loads(request.body)["method"] == "tasks/get"
    assert play(adapter.end_session(ENDPOINT, b"{}"), []) == (None, [])


def test_every_request_is_read_only_until_its_own_response(adapter: Mcp20260728) -> None:
    _, requests = play(adapter.negotiate(ENDPOINT, "x"), [{"result": DISCOVERED}, {"result": {"tools": []}}])
    _, [sent] = play(adapter.submit(ENDPOINT, Call("generate", b"{}", "key-1", 90.0)), [error(-32603)])
    for request in (*requests, sent):
        own = json.loads(request.body)["id"]
        assert request.until is not None
        assert request.until(json.dumps({"jsonrpc": "2.0", "id": own, "result": {}}).encode())
        assert not request.until(b'{"jsonrpc":"2.0","id":"r-99","result":{}}')


def test_a_cancel_is_one_effect_and_its_answer_an_acknowledgement(adapter: Mcp20260728) -> None:
    outcome, [request] = play(adapter.cancel(ENDPOINT, RemoteTask("t-1")), [{"result": {"resultType": "complete"}}])
    assert outcome == Acknowledged(None)
    assert request.effect is Effect.CANCEL
    assert json.loads(request.body)["method"] == "tasks/cancel"
    assert ("Mcp-Name", "t-1") in request.headers
