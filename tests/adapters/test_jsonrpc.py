import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters.contract import Answered
from counterfoil.adapters.jsonrpc import JsonRpc, NoResponse, RpcError, random_id, read, read_cut, response_to

from .hostile import hard

SSE = {"content-type": "text/event-stream; charset=utf-8"}
RESULT = b'{"jsonrpc":"2.0","id":"r-1","result":{"a":1}}'


def test_arguments_are_spliced_in_byte_for_byte() -> None:
    body = JsonRpc.request("r-1", "tools/call", {"name": b'"x"', "arguments": b'{"n": 1.50}'})
    assert b'"arguments":{"n": 1.50}' in body
    assert json.loads(body) == {
        "jsonrpc": "2.0",
        "id": "r-1",
        "method": "tools/call",
        "params": {"name": "x", "arguments": {"n": 1.5}},
    }


def test_a_notification_has_no_id() -> None:
    expected = {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}
    assert json.loads(JsonRpc.notification("notifications/initialized")) == expected


@pytest.mark.parametrize("request_id", [b'"srv-1"', b"0", b"1.0"])
def test_a_response_hands_the_servers_id_back_as_it_came(request_id: bytes) -> None:
    body = JsonRpc.response(request_id, b'{"n": 1.50}')
    assert body == b'{"id":' + request_id + b',"jsonrpc":"2.0","result":{"n": 1.50}}'


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (RESULT, True),
        (b'{"jsonrpc":"2.0","id":"r-1","error":{"code":-32603,"message":"no"}}', True),
        (b'{"jsonrpc":"2.0","id":"r-1","method":"elicitation/create","params":{}}', False),
        (b'{"jsonrpc":"2.0","id":"r-2","result":{"text":"r-1"}}', False),
        (b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"token":"r-1"}}', False),
        (RESULT[:-1], False),
        (b"", False),
    ],
)
def test_an_event_is_the_response_only_if_it_is_one_and_ours(data: bytes, expected: bool) -> None:
    assert response_to("r-1")(data) is expected


def test_ids_are_new_each_time_and_the_maker_is_a_port() -> None:
    assert random_id() != random_id()
    assert JsonRpc(lambda: "mine").new_id() == "mine"


def test_a_plain_answer_keeps_its_exact_bytes() -> None:
    message = read(Answered(200, {"content-type": "application/json"}, RESULT), "r-1")
    assert message.body == RESULT
    assert message.result == {"a": 1}


def test_the_response_is_found_among_notifications_and_other_ids() -> None:
    stream = (
        b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n'
        b'data: {"jsonrpc":"2.0","id":"r-1","method":"roots/list"}\n\n'
        b'data: {"jsonrpc":"2.0","id":"r-2","result":{"b":2}}\n\n: ping\n\ndata: nonsense\n\ndata: ' + RESULT + b"\n\n"
    )
    assert read(Answered(200, SSE, stream), "r-1").body == RESULT
    assert read_cut(stream + b'data: {"json', "r-1") is not None
    assert read_cut(stream, "") is None
    assert read_cut(stream, "r-3") is None
    assert read_cut(RESULT, "r-1") is None


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (200, b"", "empty body"),
        (202, b"", "empty body"),
        (200, b'{"jsonrpc":"2.0","id":"r-2","result":{}}', "another request's id"),
        (200, b'{"jsonrpc":"2.0","id":1,"result":{}}', "another request's id"),
        (200, b'{"jsonrpc":"2.0","result":{}}', "without an id"),
        (400, b'{"jsonrpc":"2.0","id":null,"result":{}}', "without an id"),
        (200, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":""}}', "without an id"),
        (200, b'{"jsonrpc":"2.0","id":"r-1"}', "either a result or an error"),
        (200, b'{"jsonrpc":"2.0","id":"r-1","result":{},"error":{"code":1}}', "either a result or an error"),
        (200, b'{"jsonrpc":"2.0","id":"r-1","error":{"code":true}}', "no usable code"),
        (200, b'{"jsonrpc":"2.0","id":"r-1","error":"no"}', "not an object"),
        (200, b'{"id":"r-1","result":{}}', "not a JSON-RPC response"),
        (200, b"[" + RESULT + b"]", "not a JSON-RPC response"),
        (200, RESULT[:-5], "not JSON"),
        (200, b"<html>", "not JSON"),
    ],
)
def test_what_is_no_response_to_us_says_why(status: int, body: bytes, why: str) -> None:
    with pytest.raises(NoResponse, match=why):
        read(Answered(status, {}, body), "r-1")


def test_an_error_that_could_not_name_the_id_counts_under_a_4xx() -> None:
    message = read(
        Answered(400, {}, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a\\u0000"}}'), "r-1"
    )
    assert message.error == RpcError(-32600, "a\N{REPLACEMENT CHARACTER}")


def test_an_unknown_own_id_takes_any_but_none() -> None:
    assert read(Answered(200, {}, RESULT), "").result == {"a": 1}
    with pytest.raises(NoResponse):
        read(Answered(200, {}, b'{"jsonrpc":"2.0","result":{}}'), "")


@given(st.binary(max_size=200), st.booleans(), st.integers(100, 599))
@hard
def test_hostile_bytes_give_a_message_or_no_response(body: bytes, sse: bool, status: int) -> None:
    for data in (body, b"data: " + body + b"\n\n", RESULT[: len(body)] + body):
        read_cut(data, "r-1")
        with contextlib.suppress(NoResponse):
            read(Answered(status, SSE if sse else {}, data), "r-1")
