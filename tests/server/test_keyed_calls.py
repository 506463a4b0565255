"""Blocking tools under keys: one run a key, on both SDKs."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from counterfoil.server import RedisStore, SqliteStore

from .conftest import MakeOwner
from .kit import WAIT_S, body, call, headers, new_key
from .stores import Place


def code(answer: dict[str, Any]) -> Any:
    return answer["error"]["data"]["code"]


def test_the_same_key_twice_runs_once_and_is_answered_the_same(sdk: str, place: Place, own: MakeOwner) -> None:
    owner, key = own(sdk, place.where), new_key()
    first = owner.call("add", key, a=1)
    assert first["result"]["structuredContent"] == {"result": 2}
    assert owner.call("add", key, a=1) == first
    assert owner.tools.begun == {"add": 1}
    assert owner.lookup(key, "add")["result"]["structuredContent"] == {"result": 2}


def test_twenty_repeats_at_once_run_once(sdk: str, place: Place, own: MakeOwner) -> None:
    """All are under way, on two servers over one store, before the first one is let through."""
    owners, key = [own(sdk, place.where), own(sdk, place.where)], new_key()
    tools = owners[0].tools
    ready = threading.Barrier(21, timeout=WAIT_S)

    def one(index: int) -> dict[str, Any]:
        ready.wait()
        return owners[index % 2].call("slow", key, a=1)

    with ThreadPoolExecutor(20) as pool:
        answers = [pool.submit(one, index) for index in range(20)]
        ready.wait()
        assert tools.started.wait(WAIT_S)
        assert owners[1].lookup(key, "slow") == {"found": True, "running": True}
        tools.gate.set()
        results = [answer.result(WAIT_S)["result"]["structuredContent"] for answer in answers]
    assert results == [{"result": 2}] * 20
    assert (tools.begun, tools.ended) == ({"slow": 1}, {"slow": 1})


def test_another_request_with_the_key_is_refused_and_runs_nothing(sdk: str, one_place: Place, own: MakeOwner) -> None:
    owner, key = own(sdk, one_place.where), new_key()
    owner.call("add", key, a=1)
    for other in (owner.call("add", key, a=2), owner.call("fails", key)):
        assert other["error"]["code"] == -32602
        assert code(other) == "E_KEY_REUSED_DIFFERENT_REQUEST"
    assert owner.tools.begun == {"add": 1}
    assert owner.lookup(key, "fails") == {"found": True, "conflict": True}


def test_a_call_without_a_key_passes_untouched(sdk: str, one_place: Place, own: MakeOwner) -> None:
    owner = own(sdk, one_place.where)
    assert owner.call("add", a=1) == owner.call("add", a=1)
    assert owner.tools.begun == {"add": 2}
    SqliteStore(one_place.where)
    assert one_place.count() == 0


def test_a_key_that_is_no_uuid_runs_nothing(sdk: str, one_place: Place, own: MakeOwner) -> None:
    """Its sender counts on one run; running it unkeyed would be the lie."""
    owner = own(sdk, one_place.where)
    request = body("add", {"a": 1}, "placeholder")
    for key in ("", "key-1", 7, None, ["x"], "{12345678-1234-8234-9234-123456789abc}"):
        request["params"]["_meta"]["dev.counterfoil/submission-key"] = key
        answer = httpx.post(owner.url, json=request, headers=headers("add"), timeout=WAIT_S).json()
        assert (answer["error"]["code"], code(answer)) == (-32602, "E_KEY_INVALID")
    assert owner.tools.begun == {}


def test_a_key_in_capitals_is_the_same_key(sdk: str, one_place: Place, own: MakeOwner) -> None:
    owner, key = own(sdk, one_place.where), new_key()
    assert owner.call("add", key.upper(), a=1) == owner.call("add", key, a=1)
    assert owner.tools.begun == {"add": 1}


def test_what_was_never_called_is_not_found(sdk: str, one_place: Place, own: MakeOwner) -> None:
    owner = own(sdk, one_place.where)
    assert owner.lookup(new_key(), "add") == {"found": False, "authoritative": True}


@pytest.mark.parametrize("store", ["memory", "valkey"])
def test_a_store_that_can_forget_is_no_authority(sdk: str, store: str, broker: str, own: MakeOwner) -> None:
    owner = own(sdk, ":memory:" if store == "memory" else broker)
    key = new_key()
    assert owner.lookup(key, "add") == {"found": False, "authoritative": False}
    owner.call("add", key, a=1)
    assert owner.lookup(key, "add")["found"]


def test_a_tool_that_fails_fails_once(sdk: str, one_place: Place, own: MakeOwner) -> None:
    owner, key = own(sdk, one_place.where), new_key()
    first = owner.call("fails", key)
    assert first["result"]["isError"]
    assert owner.call("fails", key) == first
    assert owner.lookup(key, "fails")["result"]["isError"]
    assert owner.tools.begun == {"fails": 1}


def test_a_json_rpc_error_is_an_outcome_like_any_other(one_place: Place, own: MakeOwner) -> None:
    """The tool may have run before it was raised. (FastMCP turns a tool's errors into results.)"""
    owner, key = own("mcp", one_place.where), new_key()
    first = owner.call("refuses", key)
    assert first == {"error": {"code": -32050, "message": "the printer said no", "data": {"tray": 2}}}
    assert owner.call("refuses", key) == first
    assert owner.tools.begun == {"refuses": 1}
    assert owner.lookup(key, "refuses")["result"] == {
        "content": [{"type": "text", "text": "the printer said no (JSON-RPC error -32050)"}],
        "isError": True,
    }


def test_an_answer_too_large_to_keep_is_given_once_and_never_made_again(
    sdk: str, one_place: Place, own: MakeOwner
) -> None:
    owner, key = own(sdk, one_place.where), new_key()
    assert len(owner.call("large", key)["result"]["structuredContent"]["result"]) == 1_100_000
    assert code(owner.call("large", key)) == "E_KEY_UNSURE"
    assert owner.lookup(key, "large") == {"found": True, "unsure": True}
    assert owner.tools.begun == {"large": 1}


def test_a_call_whose_caller_goes_away_runs_on_and_is_answered_later(sdk: str, place: Place, own: MakeOwner) -> None:
    """2026-07-28 takes a lost connection for a cancel: without the shield the tool would be cut in the middle, and
    nobody could tell what it had done."""
    owner, key = own(sdk, place.where), new_key()
    address = urlsplit(owner.url)
    gone = HTTPConnection(address.hostname or "", address.port)
    sent = headers("slow") | {"Content-Type": "application/json"}
    gone.request("POST", address.path, json.dumps(body("slow", {"a": 1}, key)), sent)
    assert owner.tools.started.wait(WAIT_S)
    gone.close()
    # These round trips go through the loop that the hang-up reached before them.
    assert [owner.lookup(key, "slow") for _ in range(3)] == [{"found": True, "running": True}] * 3
    owner.tools.gate.set()
    assert owner.call("slow", key, a=1)["result"]["structuredContent"] == {"result": 2}
    assert (owner.tools.begun, owner.tools.ended) == ({"slow": 1}, {"slow": 1})


def test_a_question_is_asked_once_and_its_answer_is_the_next_leg(sdk: str, place: Place, own: MakeOwner) -> None:
    """2026-07-28 asks by ending the request; the answers come in the next one, with the same key."""
    owner, key = own(sdk, place.where), new_key()
    asked = owner.call("asks", key)["result"]
    assert asked["resultType"] == "input_required"
    again = owner.call("asks", key)["result"]
    assert again["inputRequests"] == asked["inputRequests"]
    assert owner.tools.begun == {"asks": 1}
    assert owner.lookup(key, "asks")["inputRequired"]["inputRequests"] == asked["inputRequests"]

    def answer(size: str, state: str) -> dict[str, Any]:
        responses = {"paper": {"action": "accept", "content": {"size": size}}}
        return call(owner.url, "asks", {}, key=key, inputResponses=responses, requestState=state)

    printed = answer("A4", asked["requestState"])
    assert printed["result"]["content"][0]["text"] == "printed A4"
    assert answer("A4", again["requestState"])["result"]["content"] == printed["result"]["content"]
    assert owner.call("asks", key)["result"]["content"] == printed["result"]["content"], "a late first leg"
    assert code(answer("A5", asked["requestState"])) == "E_KEY_REUSED_DIFFERENT_REQUEST"
    assert owner.tools.begun == {"asks": 2}


def test_a_tool_that_calls_tools_of_its_server_does_not_meet_its_own_key(one_place: Place, own: MakeOwner) -> None:
    owner, key = own("fastmcp", one_place.where), new_key()
    first = owner.call("twice", key, a=1)
    assert first["result"]["structuredContent"] == {"result": 2}
    assert owner.call("twice", key, a=1) == first
    assert owner.tools.begun == {"add": 2}


def test_nothing_runs_while_the_store_is_away(sdk: str, own: MakeOwner) -> None:
    import redis

    away = RedisStore(redis.Redis(port=1, retry=None))
    owner, key = own(sdk, away), new_key()
    refused = owner.call("add", key, a=1)
    assert (refused["error"]["code"], code(refused)) == (-32603, "E_KEY_STORE")
    assert owner.tools.begun == {}
    assert owner.call("add", a=1)["result"]["structuredContent"] == {"result": 2}, "calls without a key don't need it"


def test_the_key_works_on_the_older_protocol_too(sdk: str, one_place: Place, own: MakeOwner) -> None:
    """A session of 2025-11-25, and a repeat that comes by 2026-07-28 and needs its `resultType`."""
    owner, key = own(sdk, one_place.where), new_key()
    sent = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    with httpx.Client(headers=sent, timeout=WAIT_S) as old:
        begun = old.post(owner.url, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        old.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        old.post(owner.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        params = {"name": "add", "arguments": {"a": 1}, "_meta": {"dev.counterfoil/submission-key": key}}
        request = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        answers = [old.post(owner.url, json=request).text for _ in range(2)]
    assert all('"structuredContent":{"result":2}' in answer for answer in answers)
    repeat = owner.call("add", key, a=1)["result"]
    assert (repeat["structuredContent"], repeat["resultType"]) == ({"result": 2}, "complete")
    assert owner.tools.begun == {"add": 1}


def test_one_client_sees_nothing_of_another_ones_keys(sdk: str, place: Place, own: MakeOwner) -> None:
    owner, key = own(sdk, place.where, auth=True), new_key()
    anns = call(owner.url, "add", {"a": 1}, key=key, token="token-ann")
    assert owner.lookup(key, "add", "token-ann")["result"]["structuredContent"] == {"result": 2}
    assert owner.lookup(key, "add", "token-bob")["found"] is False
    assert call(owner.url, "add", {"a": 7}, key=key, token="token-bob")["result"]["structuredContent"] == {"result": 8}
    assert call(owner.url, "add", {"a": 1}, key=key, token="token-ann") == anns
    assert owner.tools.begun == {"add": 2}
