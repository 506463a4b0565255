"""Hostile answers to declared APIs give an outcome that can be stored, never an exception."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters import callbacks
from counterfoil.adapters.aip151 import Aip151
from counterfoil.adapters.contract import (
    MAX_REQUESTS_PER_EXCHANGE,
    Adapter,
    Answered,
    Endpoint,
    Exchange,
    NoAnswer,
    Reply,
    Sent,
)
from counterfoil.adapters.http202 import Http202
from counterfoil.adapters.outcomes import (
    CancelOutcome,
    Found,
    LookupOutcome,
    NotProcessed,
    NotSent,
    Observation,
    Over,
    StillWorking,
    SubmitOutcome,
    TaskStarted,
)
from counterfoil.adapters.strict_json import MAX_DEPTH, is_storable, loads, resolve

from .hostile import VALUES, hard, texts_of
from .kit_http import BASE, CALL, JOBS, REPORTS, SEARCH, jobs, reports, task, without

PLACES = st.sampled_from(
    [
        "/jobs/j-1",
        f"{BASE}/jobs/j-1",
        "http://evil.example/",
        "//evil.example",
        "http://[::1",
        "http://127.0.0.1:x/",
        "http://127.0.0.1:99999999/",
        "/\x00",
        "/jobs/%00",
        "/jobs/%ff",
        "?",
        "",
        "/" + "x" * 600,
    ]
)
HEADERS = st.dictionaries(
    st.sampled_from(["location", "operation-location", "azure-asyncoperation"]), PLACES
) | st.dictionaries(
    st.sampled_from(["retry-after", "date", "www-authenticate", "content-type"]),
    st.sampled_from(["7", "1e9", "-1", "soon", "Sun, 29 Nov 2026 10:00:00 GMT", "", "\xe9"]),
)
MEMBERS = st.sampled_from(
    ["id", "status", "result", "error", "jobs", "name", "done", "response", "metadata", "operations", "nextPageToken"]
)
WORDS = st.sampled_from(
    [
        "j-1",
        "operations/op-1",
        "succeeded",
        "failed",
        "canceled",
        "running",
        "\x00",
        "\ud800",
        "..",
        "a/../b",
        10**30,
        1.5,
        True,
    ]
)
OBJECTS = st.dictionaries(MEMBERS, VALUES | WORDS | st.dictionaries(MEMBERS, WORDS, max_size=3), max_size=6)
JSON = (VALUES | OBJECTS | st.dictionaries(MEMBERS, st.lists(OBJECTS, max_size=2), max_size=2)).map(
    lambda value: json.dumps(value).encode()
)
ERRORS = st.sampled_from(["NOT_FOUND", "ALREADY_EXISTS", "INVALID_ARGUMENT", "ABORTED", "\x00", 5]).flatmap(
    lambda status: st.lists(OBJECTS, max_size=2).map(
        lambda details: json.dumps({"error": {"status": status, "details": details, "message": "\ud800"}}).encode()
    )
)
BODIES = (
    st.binary(max_size=60)
    | JSON
    | ERRORS
    | st.sampled_from(
        [
            b"[" * (MAX_DEPTH + 1),
            b'{"id":' * (MAX_DEPTH + 1),
            b'{"id":1,"id":2}',
            b'{"status":NaN}',
            b'{"id":' + b"9" * 600 + b"}",
            b'{"id":1e999}',
            b"\xef\xbb\xbf{}",
            b'"\\ud800"',
            b"null",
        ]
    )
)
STATUSES = st.sampled_from([200, 201, 202, 204, 303, 307, 400, 401, 403, 404, 409, 410, 422, 429, 501, 503])
REPLIES = st.one_of(
    st.builds(Answered, STATUSES | st.integers(100, 599), HEADERS, BODIES),
    st.builds(Answered, st.sampled_from([200, 202]), HEADERS, BODIES),
    st.builds(NoAnswer, st.sampled_from(Sent), st.just("why"), BODIES),
)

TARGETS: Mapping[str, tuple[Adapter, list[Endpoint]]] = {
    "http-202": (
        Http202(),
        [
            jobs(),
            jobs(JOBS, without("result"), preset="azure"),
            jobs({"routes": {"submit": "POST /jobs"}}, preset=None),
            jobs(JOBS, {"routes": {"lookup": "GET /jobs/{key}"}}, preset="ogc"),
        ],
    ),
    "aip-151": (Aip151(), [reports(), reports(REPORTS, {"routes": {"lookup": "GET /v1/operations/{key}"}})]),
}
EACH = pytest.mark.parametrize("protocol", TARGETS)


def target(data: st.DataObject, protocol: str) -> tuple[Adapter, Endpoint]:
    adapter, endpoints = TARGETS[protocol]
    return adapter, data.draw(st.sampled_from(endpoints))


def finish(exchange: Exchange[Any], replies: list[Reply]) -> Any:
    """The outcome, whatever is said: an exchange that asks on is told the last thing again."""
    try:
        next(exchange)
        for reply in [*replies, *replies[-1:] * MAX_REQUESTS_PER_EXCHANGE][:MAX_REQUESTS_PER_EXCHANGE]:
            exchange.send(reply)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("more requests than an exchange may have")


def is_clean(outcome: object) -> None:
    assert all(is_storable(text) for text in texts_of(outcome))
    if isinstance(outcome, Found):
        is_clean(outcome.task)
    if isinstance(outcome, StillWorking | TaskStarted):
        assert outcome.interval_ms is None or 0 <= outcome.interval_ms <= 3_600_000
    if isinstance(outcome, TaskStarted):
        assert 0 < len(outcome.task_id) <= 512


@EACH
@given(data=st.data(), reply=REPLIES)
@hard
def test_a_hostile_answer_to_a_submit_gives_a_storable_outcome(
    protocol: str, data: st.DataObject, reply: Reply
) -> None:
    adapter, endpoint = target(data, protocol)
    outcome = adapter.read_submit(endpoint, CALL, reply)
    assert isinstance(outcome, SubmitOutcome)
    is_clean(outcome)
    if isinstance(reply, NoAnswer) and reply.sent is Sent.MAYBE:
        assert not isinstance(outcome, NotSent | NotProcessed)
    if isinstance(outcome, TaskStarted):
        asked = next(adapter.poll(endpoint, task(outcome.task_id)))
        assert asked.url.startswith(f"{BASE}/")


@EACH
@given(data=st.data(), replies=st.lists(REPLIES, min_size=1, max_size=3))
@hard
def test_hostile_answers_to_a_poll_give_a_storable_outcome(
    protocol: str, data: st.DataObject, replies: list[Reply]
) -> None:
    adapter, endpoint = target(data, protocol)
    outcome = finish(adapter.poll(endpoint, task("j-1")), replies)
    assert isinstance(outcome, Observation)
    is_clean(outcome)


@EACH
@given(data=st.data(), replies=st.lists(REPLIES, min_size=1, max_size=3))
@hard
def test_hostile_answers_to_a_fetch_give_a_storable_outcome(
    protocol: str, data: st.DataObject, replies: list[Reply]
) -> None:
    adapter, endpoint = target(data, protocol)
    outcome = finish(adapter.fetch(endpoint, task("operations/op-1", terminal="completed")), replies)
    assert isinstance(outcome, Observation)
    is_clean(outcome)
    if isinstance(outcome, Over) and outcome.payload is not None and outcome.payload.pointer:
        resolve(loads(outcome.payload.body), outcome.payload.pointer)


@EACH
@given(data=st.data(), reply=REPLIES)
@hard
def test_a_hostile_answer_to_a_cancel_gives_a_storable_outcome(
    protocol: str, data: st.DataObject, reply: Reply
) -> None:
    adapter, endpoint = target(data, protocol)
    outcome = adapter.read_cancel(endpoint, task("j-1"), reply)
    assert isinstance(outcome, CancelOutcome)
    is_clean(outcome)


@EACH
@given(data=st.data(), replies=st.lists(REPLIES, min_size=1, max_size=3))
@hard
def test_hostile_answers_to_a_lookup_give_a_storable_outcome(
    protocol: str, data: st.DataObject, replies: list[Reply]
) -> None:
    adapter, endpoint = target(data, protocol)
    exchange = adapter.lookup(endpoint, SEARCH)
    outcome = finish(exchange, replies)
    assert isinstance(outcome, LookupOutcome)
    is_clean(outcome)


@given(st.text(max_size=40))
@hard
def test_an_id_stays_in_its_place_whatever_it_holds(task_id: str) -> None:
    """Ids are bound by servers and by people; none of them may leave the origin or the route."""
    for adapter, endpoints in TARGETS.values():
        for endpoint in endpoints:
            for exchange in (adapter.poll(endpoint, task(task_id)), adapter.fetch(endpoint, task(task_id))):
                assert next(exchange).url.startswith(f"{BASE}/")


@given(BODIES)
@hard
def test_a_hostile_callback_is_hints_or_nothing(body: bytes) -> None:
    hints = callbacks.read(body)
    assert len(hints) <= callbacks.MAX_HINTS
    assert all(is_storable(text) for hint in hints for text in texts_of(hint))
