"""The server of a transcript: which step answers, what goes over the wire, and what is counted."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from counterfoil.adapters.contract import Answered, NoAnswer, Request
from counterfoil.adapters.jsonrpc import response_to
from counterfoil.console.conform_mcp import McpDialect
from counterfoil.console.conform_server import SPARE_REQUESTS, CaseBroken, TranscriptServer
from counterfoil.console.conform_transcript import Transcript

KEY = "6f1c3f5e-0000-8000-8000-000000000000"
TOOL = {"name": "report", "keyLookup": "query", "sideEffects": True, "taskSupport": "optional", "capabilities": {}}
POLICY = {"totalWaitMs": 10_000, "pollMinMs": 1_000}
Reply = Answered | NoAnswer


class Played:
    """A server with these steps; `ask` is one request of a loop at `now_us`."""

    def __init__(self, *steps: dict[str, Any], stateless: bool = False) -> None:
        document = {"id": "C1", "title": "", "protocol": "", "tool": TOOL, "policy": POLICY, "expected": {}}
        transcript = Transcript.of(document | {"steps": [{"drop": "mid"} | step for step in steps]})
        self.server = TranscriptServer(transcript, McpDialect(TOOL, stateless=stateless), KEY)
        self.now_us = 0

    def ask(self, method: str | None = None, params: dict[str, Any] | None = None, **request: Any) -> Reply:
        message = {"jsonrpc": "2.0", "id": "r-1", "method": method, "params": params or {}}
        return self.send(message, **request)

    def send(self, message: dict[str, Any], **request: Any) -> Reply:
        made = Request("POST", "http://127.0.0.1:1/mcp", body=json.dumps(message).encode(), **request)
        taken, entry = self.server.take(made, self.now_us)
        reply = self.server.answer(taken, made)
        entry.answered_us = self.now_us
        return reply

    def call(self, key: str = KEY) -> Reply:
        return self.ask("tools/call", {"name": "report", "_meta": {"dev.counterfoil/submission-key": key}})


def step(name: str, on: str, **members: Any) -> dict[str, Any]:
    """A step that answers, unless it drops."""
    answers = {} if "drop" in members else {"respond": {"result": {"step": name}}, "drop": None}
    return {"id": name, "on": on} | answers | members


def said(reply: Reply) -> Any:
    assert isinstance(reply, Answered)
    return json.loads(reply.body)


def steps_of(played: Played) -> Sequence[str | None]:
    return [entry.step for entry in played.server.log]


def test_a_server_says_what_time_it_is_on_its_own_clock_and_a_transcript_may_say_otherwise() -> None:
    """Without it a wait until a date can't be counted."""
    wrong = {"json": {}, "headers": {"Date": "soon"}}
    played = Played(step("a", "tasks/get"), step("b", "tasks/get", respond=wrong))
    played.now_us = 61_000_000
    replies = [played.ask("tasks/get") for _ in range(2)]
    assert [reply.headers["date"] for reply in replies if isinstance(reply, Answered)] == [
        "Sun, 29 Nov 2026 10:01:01 GMT",
        "soon",
    ]


# -- which step --------------------------------------------------------------------------------------------------------


def test_a_request_takes_the_first_step_of_its_kind_that_has_uses_left() -> None:
    played = Played(step("a", "tasks/get", times=2), step("b", "tasks/get"), step("c", "tasks/get", times="*"))
    for _ in range(6):
        played.ask("tasks/get")
    assert steps_of(played) == ["a", "a", "b", "c", "c", "c"]


def test_a_request_that_no_step_expects_breaks_the_case() -> None:
    played = Played(step("a", "tasks/get"))
    played.ask("tasks/get")
    with pytest.raises(CaseBroken, match="unexpected request: tasks/get"):
        played.ask("tasks/get")
    with pytest.raises(CaseBroken, match="unexpected request: tasks/cancel"):
        played.ask("tasks/cancel")


def test_a_request_that_does_not_match_its_step_breaks_the_case() -> None:
    played = Played(step("a", "tools/call", match={"key": "$key"}, times="*"))
    played.call()
    with pytest.raises(CaseBroken, match="does not match step a: key is other"):
        played.call("other")


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ({"inputResponses": {"k1": "$any"}}, True),
        ({"inputResponses": {"k1": {"content": {"region": "eu"}}}}, True),
        ({"inputResponses": {"k1": {"content": {"region": "us"}}}}, False),
        ({"inputResponses": {"k2": "$any"}}, False),
        ({"tags": ["a", "$any"]}, True),
        ({"tags": ["a"]}, False),
        ({"nothing": 1}, False),
    ],
)
def test_a_match_is_a_subset_of_the_request(wanted: dict[str, Any], fits: bool) -> None:
    played = Played(step("up", "tasks/update", match=wanted))
    replies = {"k1": {"action": "accept", "content": {"region": "eu", "zone": 1}}}
    params = {"inputResponses": replies, "tags": ["a", "b"]}
    if fits:
        played.ask("tasks/update", params)
    else:
        with pytest.raises(CaseBroken, match="does not match step up"):
            played.ask("tasks/update", params)


def test_the_lookup_tool_is_a_lookup_and_no_submit() -> None:
    played = Played(step("look", "lookup", respond={"result": {"found": False}}), stateless=True)
    answer = said(played.ask("tools/call", {"name": "counterfoil_lookup", "arguments": {}}))["result"]
    assert answer["structuredContent"] == {"found": False}
    assert answer["resultType"] == "complete"
    assert played.server.counts() == {"lookup": 1, "handshake": 0}
    assert played.server.keys == set()


def test_a_reply_to_the_servers_own_request_is_known_by_its_id() -> None:
    asks = {"id": "e-1", "method": "elicitation/create", "params": {}}
    played = Played(
        step("rs", "tasks/result", respond={"stream": [asks]}),
        step("rep", "reply:elicitation/create", match={"id": "e-1", "action": "accept"}),
    )
    stream = played.ask("tasks/result")
    assert isinstance(stream, Answered)
    assert b'"method":"elicitation/create"' in stream.body
    reply = played.send({"jsonrpc": "2.0", "id": "e-1", "result": {"action": "accept"}})
    assert reply == Answered(202, {"date": "Sun, 29 Nov 2026 10:00:00 GMT"}, b"")
    assert played.server.counts()["input"] == 1
    with pytest.raises(CaseBroken, match="never sent"):
        played.send({"jsonrpc": "2.0", "id": "e-2", "result": {}})


# -- what goes over the wire -------------------------------------------------------------------------------------------


def test_an_answer_bears_the_requests_id_and_the_key() -> None:
    played = Played(step("a", "tasks/get", respond={"result": {"requestId": "$key", "list": ["$key"]}}))
    assert said(played.ask("tasks/get")) == {
        "jsonrpc": "2.0",
        "id": "r-1",
        "result": {"requestId": KEY, "list": [KEY]},
    }


@pytest.mark.parametrize("how", ["before", "after", "mid"])
def test_every_drop_is_perhaps_sent(how: str) -> None:
    reply = Played(step("a", "tasks/get", drop=how)).ask("tasks/get")
    assert isinstance(reply, NoAnswer)
    assert (reply.sent, reply.body) == ("maybe", b"")


@pytest.mark.parametrize(
    ("respond", "status", "body"),
    [
        ({"status": 404, "json": {"error": "gone"}}, 404, b'{"error":"gone"}'),
        ({"status": 502, "text": "<html>"}, 502, b"<html>"),
        ({"raw": '{"id": 123456789012345678}'}, 200, b'{"id": 123456789012345678}'),
    ],
)
def test_bodies_that_are_no_json_rpc_leave_as_they_are(respond: dict[str, Any], status: int, body: bytes) -> None:
    reply = Played(step("a", "tasks/get", respond=respond)).ask("tasks/get")
    assert isinstance(reply, Answered)
    assert (reply.status, reply.body) == (status, body)


def test_a_filled_answer_is_as_large_as_asked_and_still_the_same() -> None:
    played = Played(step("a", "tasks/get", respond={"result": 1, "fill": 5000}, times="*"))
    filled = played.ask("tasks/get")
    assert isinstance(filled, Answered)
    assert len(filled.body) == 5000
    assert said(filled)["result"] == 1
    cut = played.ask("tasks/get", max_bytes=1000)
    assert isinstance(cut, NoAnswer)
    assert len(cut.body) == 1000


def test_a_stream_is_read_up_to_the_event_that_was_waited_for() -> None:
    asks = {"id": "e-1", "method": "elicitation/create"}
    later = {"method": "notifications/message"}
    played = Played(step("a", "tasks/result", respond={"stream": [asks, later], "result": 1}, times="*"))
    whole = played.ask("tasks/result", until=response_to("r-1"))
    assert isinstance(whole, Answered)
    assert whole.body.count(b"data: ") == 3
    short = played.ask("tasks/result", until=lambda data: b"elicitation" in data)
    assert isinstance(short, Answered)
    assert short.body.count(b"data: ") == 1


def test_an_expired_token_is_refused_once_and_no_step_is_used() -> None:
    played = Played(step("a", "tasks/get"))
    played.server.token_expired = True
    refused = played.ask("tasks/get")
    assert isinstance(refused, Answered)
    assert refused.status == 401
    assert said(played.ask("tasks/get"))["result"] == {"step": "a"}
    assert played.server.counts()["status"] == 2


def test_a_scripted_refusal_is_the_one_that_an_expired_token_meets() -> None:
    played = Played(step("a", "tasks/get", respond={"status": 401}), step("b", "tasks/get"))
    played.server.token_expired = True
    played.ask("tasks/get")
    played.ask("tasks/get")
    assert steps_of(played) == ["a", "b"]


# -- the books ---------------------------------------------------------------------------------------------------------


def test_requests_are_counted_by_kind_and_only_a_second_handshake() -> None:
    played = Played(
        step("s", "tools/call", creates=True),
        step("g", "tasks/get", times="*"),
        step("c", "tasks/cancel"),
        step("l", "tasks/list"),
    )
    played.ask("initialize")
    played.ask("notifications/initialized")
    played.ask("tools/list")
    played.call()
    for method in ("tasks/get", "tasks/get", "tasks/cancel", "tasks/list"):
        played.ask(method)
    assert played.server.counts() == {"submit": 1, "status": 2, "cancel": 1, "list": 1, "handshake": 0}
    played.ask("initialize")
    assert played.server.counts()["handshake"] == 1
    assert (played.server.effects, played.server.keys) == (1, {KEY})


def test_a_scripted_handshake_is_the_transcripts_own() -> None:
    played = Played(step("hello", "initialize", respond={"error": {"code": -32602, "message": "no"}}))
    assert said(played.ask("initialize"))["error"]["code"] == -32602
    assert "result" in said(played.ask("initialize"))


def test_a_gap_is_the_least_time_from_a_steps_answer_to_the_next_status_request() -> None:
    played = Played(step("s", "tools/call"), step("g", "tasks/get", times="*"), step("r", "tasks/result"))
    for moment_ms, method in ((0, "tools/call"), (5000, "tasks/get"), (7000, "tasks/get"), (7500, "tasks/result")):
        played.now_us = moment_ms * 1000
        played.ask(method)
    assert played.server.gaps_ms() == {"s": 5000.0, "g": 2000.0}


def test_a_loop_that_asks_without_end_breaks_the_case() -> None:
    played = Played(step("g", "tasks/get", times="*"))
    for _ in range(SPARE_REQUESTS + 10):
        played.ask("tasks/get")
    with pytest.raises(CaseBroken, match="more than 110 requests"):
        played.ask("tasks/get")
