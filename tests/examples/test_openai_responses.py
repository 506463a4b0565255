"""A third party's adapter, as its package registers it: alone, and through the whole fleet loop."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters.contract import (
    Adapter,
    Answered,
    Call,
    Effect,
    Endpoint,
    Exchange,
    NoAnswer,
    RemoteTask,
    Reply,
    Request,
    Sent,
)
from counterfoil.adapters.outcomes import (
    Acknowledged,
    Busy,
    CancelOutcome,
    Hint,
    Negotiated,
    NoAccess,
    NotFound,
    NotOffered,
    NotProcessed,
    NotSent,
    Observation,
    Over,
    Refused,
    Rejected,
    StillWorking,
    SubmitOutcome,
    TaskStarted,
    Terminal,
    Unclear,
)
from counterfoil.adapters.profile import Lookup
from counterfoil.adapters.registry import adapter
from counterfoil.adapters.strict_json import is_storable, loads, resolve
from counterfoil.ledger.client import Client
from counterfoil.ledger.states import Lane
from counterfoil.tests.adapters.hostile import hard
from counterfoil.workers import schemas
from counterfoil.workers.bucket import LocalBucket
from counterfoil.workers.drive import Drive
from counterfoil.workers.jobs import Pace
from counterfoil.workers.targets import Targets, load_targets

from .responses_server import LOST, MODEL, Answer, Responses, error, serving

T = TypeVar("T")
PATIENCE_S = 20.0
PROTOCOL = "openai-responses"
KEY = "6f1c9a52-0000-8000-8000-000000000001"
ENDPOINT = Endpoint(
    "openai", "http://127.0.0.1:1/v1/", max_response_bytes=4000, not_processed_statuses=frozenset({429})
)
CALL = Call(MODEL, b'{"input":"otters","max_output_tokens":9}', KEY, 60.0)
TASK = RemoteTask("resp_1", KEY)


@pytest.fixture
def responses() -> Adapter:
    return adapter(PROTOCOL)


def play(exchange: Exchange[T], *replies: Reply) -> tuple[T, list[Request]]:
    sent, waiting = [], iter(replies)
    try:
        sent.append(next(exchange))
        while True:
            sent.append(exchange.send(next(waiting)))
    except StopIteration as stop:
        return stop.value, sent


def said(status: int = 200, /, **members: Any) -> Answered:
    return Answered(status, {}, json.dumps(members).encode())


def response(status: str, **members: Any) -> Answered:
    return said(id="resp_1", object="response", status=status, created_at=7, **members)


def refusal(status: int, kind: str = "invalid_request_error") -> Answered:
    return said(status, error={"type": kind, "message": "no"})


# -- the adapter alone -------------------------------------------------------------------------------------------------


def test_a_model_that_the_credential_may_use_is_a_tool(responses: Adapter) -> None:
    outcome, (request,) = play(responses.negotiate(ENDPOINT, "ft:a/b"), said(id="ft:a/b", object="model"))
    assert isinstance(outcome, Negotiated)
    assert request.url == "http://127.0.0.1:1/v1/models/ft%3Aa%2Fb"
    assert outcome.input_schema is not None
    assert schemas.check(outcome.input_schema, {"input": "otters", "tools": []}) == []
    for misfit in ({}, {"input": "x", "stream": True}, {"input": "x", "metadata": {}}):
        assert schemas.check(outcome.input_schema, misfit), misfit


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refusal(404), NotOffered),
        (Answered(401), NoAccess),
        (Answered(500), Busy),
        (Answered(200, {}, b"x"), NotOffered),
    ],
)
def test_a_model_that_is_not_there_is_not_called(responses: Adapter, reply: Reply, kind: type[object]) -> None:
    assert isinstance(play(responses.negotiate(ENDPOINT, MODEL), reply)[0], kind)


def test_a_submit_is_a_background_response_with_the_key_in_its_metadata(responses: Adapter) -> None:
    outcome, (request,) = play(responses.submit(ENDPOINT, CALL), response("queued"))
    assert outcome == TaskStarted("resp_1", "queued", "7", None, None)
    assert (request.method, request.url, request.effect) == ("POST", "http://127.0.0.1:1/v1/responses", Effect.SUBMIT)
    assert request.body.endswith(b"," + CALL.arguments[1:])
    assert json.loads(request.body) == {
        "background": True,
        "store": True,
        "model": MODEL,
        "metadata": {"counterfoil_submission_key": KEY},
        "input": "otters",
        "max_output_tokens": 9,
    }


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (refusal(400), Rejected("HTTP 400", "no")),
        (refusal(400, "server_error"), Unclear("HTTP 400", "no")),
        (refusal(500), Unclear("HTTP 500", "no")),
        (Answered(400, {}, b"<html>"), Unclear("HTTP 400", "an answer that names no response")),
        (Answered(401), NotProcessed("HTTP 401", None, auth=True)),
        (Answered(429, {"retry-after": "3"}), NotProcessed("HTTP 429", 3.0)),
        (said(id="../models"), Unclear("HTTP 200", "an answer that names no response")),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
        (NoAnswer(Sent.MAYBE, "reset"), Unclear("E_NO_ANSWER", "reset")),
    ],
)
def test_what_an_answer_to_a_submit_says(responses: Adapter, reply: Reply, expected: object) -> None:
    assert responses.read_submit(ENDPOINT, CALL, reply) == expected


@pytest.mark.parametrize(
    ("reply", "kind", "code"),
    [
        (response("queued"), StillWorking, ""),
        (response("in_progress"), StillWorking, ""),
        (response("cancelled"), Over, ""),
        (response("paused"), Refused, "E_STATUS_UNKNOWN"),
        (said(id="resp_2", status="completed"), Refused, "E_TASK_ID_MISMATCH"),
        (refusal(404), NotFound, ""),
        (Answered(200, {}, b"{"), Busy, "E_UNREADABLE_ANSWER"),
        (refusal(400), Busy, "HTTP 400"),
        (NoAnswer(Sent.MAYBE, "cut", b"x" * 4000), Refused, "E_RESULT_TOO_LARGE"),
    ],
)
def test_what_an_answer_to_a_poll_says(responses: Adapter, reply: Reply, kind: type[object], code: str) -> None:
    outcome = play(responses.poll(ENDPOINT, TASK), reply)[0]
    assert isinstance(outcome, kind)
    assert getattr(outcome, "code", "") == code


@pytest.mark.parametrize(
    ("reply", "terminal", "pointer"),
    [
        (response("completed", output=[{"type": "message"}]), Terminal.COMPLETED, "/output"),
        (response("failed", error={"code": "server_error"}), Terminal.FAILED, "/error"),
        (
            response("incomplete", incomplete_details={"reason": "content_filter"}),
            Terminal.FAILED,
            "/incomplete_details",
        ),
        (response("incomplete", output=[1]), Terminal.FAILED, ""),
    ],
)
def test_the_output_is_the_result_and_half_of_it_is_a_failure(
    responses: Adapter, reply: Reply, terminal: Terminal, pointer: str
) -> None:
    outcome = play(responses.poll(ENDPOINT, TASK), reply)[0]
    assert isinstance(outcome, Over)
    assert outcome.payload is not None
    assert (outcome.terminal, outcome.payload.pointer) == (terminal, pointer)


def test_completed_without_output_has_no_result(responses: Adapter) -> None:
    outcome = play(responses.poll(ENDPOINT, TASK), response("completed", output=[]))[0]
    assert isinstance(outcome, Over)
    assert outcome.payload is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (response("cancelled"), Over(Terminal.CANCELLED, "cancelled", None)),
        (response("completed"), Acknowledged("completed")),
        (refusal(404), NotFound("HTTP 404")),
        (refusal(400), Unclear("HTTP 400", "no")),
        (said(id="resp_2", status="cancelled"), Unclear("HTTP 200", "an answer about another response")),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
    ],
)
def test_the_answer_to_a_cancel_is_evidence_only_where_it_says_cancelled(
    responses: Adapter, reply: Reply, expected: object
) -> None:
    assert responses.read_cancel(ENDPOINT, TASK, reply) == expected


def test_a_webhook_names_the_response_that_moved(responses: Adapter) -> None:
    event = said(object="event", type="response.completed", id="evt_1", data={"id": "resp_1"})
    assert responses.hints(event) == (Hint("resp_1", "completed"),)
    for other in (response("completed"), said(object="event", type="batch.completed", data={"id": "b"}), Answered(200)):
        assert responses.hints(other) == ()


def test_its_profile_tells_what_is_missing(responses: Adapter) -> None:
    """No key, no list: a lost submit is nobody's to send again."""
    assert (responses.profile.lookup, responses.profile.absence) == (Lookup.NONE, None)


VALUES = (
    st.none() | st.booleans() | st.integers() | st.sampled_from(["resp_1", "completed", "\x00", "\ud800", "response.x"])
)
BODIES = st.binary(max_size=40) | st.dictionaries(
    st.sampled_from(["id", "status", "error", "output", "created_at", "incomplete_details", "type", "data", "object"]),
    VALUES | st.dictionaries(st.sampled_from(["id", "type", "message"]), VALUES, max_size=2) | st.just("event"),
).map(lambda value: json.dumps(value).encode())
REPLIES = st.builds(Answered, st.sampled_from([200, 400, 404, 500]), st.just({}), BODIES) | st.builds(
    NoAnswer, st.sampled_from(Sent), st.just("why"), BODIES
)


@given(REPLIES)
@hard
def test_hostile_bytes_give_an_outcome_that_can_be_stored(reply: Reply) -> None:
    """The test that every adapter wants: no reply may raise, and no text may be one that PostgreSQL refuses."""
    responses = adapter(PROTOCOL)
    submitted = responses.read_submit(ENDPOINT, CALL, reply)
    polled = play(responses.poll(ENDPOINT, TASK), reply)[0]
    cancelled = responses.read_cancel(ENDPOINT, TASK, reply)
    assert isinstance(submitted, SubmitOutcome)
    assert isinstance(polled, Observation)
    assert isinstance(cancelled, CancelOutcome)
    if isinstance(polled, Over) and polled.payload is not None:
        resolve(loads(polled.payload.body), polled.payload.pointer)
    for outcome in (submitted, polled, cancelled, *responses.hints(reply)):
        texts = (getattr(outcome, name) for name in outcome.__slots__)
        assert all(is_storable(text) for text in texts if isinstance(text, str))


# -- through the fleet loop --------------------------------------------------------------------------------------------


class Fleet:
    """One loop on one scripted API, configured by a targets file as an operator writes it."""

    def __init__(self, database: str, api: Responses, targets: Targets) -> None:
        self.api = api
        self.client = Client(database)
        bucket = LocalBucket(targets.limits, time.monotonic)
        pace = Pace(tick_s=0.1, self_tick_s=0.1)
        self.drive = Drive(database, targets, bucket, pace=pace, ended=lambda _: None)

    def submit(self, node: str) -> None:
        self.client.submit("openai", MODEL, {"input": "otters"}, call_node_id=node)
        self.drive.kick(Lane.SUBMIT, "openai")

    def until(self, claim: str, holds: Callable[[], Any]) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < until_s, f"never: {claim}"
            time.sleep(0.01)  # other threads have to get on: what is waited for shows in the database only


@contextmanager
def running(database: str, folder: Path) -> Iterator[Fleet]:
    with serving() as api:
        path = folder / "targets.yaml"
        path.write_text(
            f"targets:\n  openai:\n    url: {api.url}\n    protocol: {PROTOCOL}\n    credentials: env:EXAMPLE_KEY\n"
            "    qps: 1000\n    burst: 100\n    poll: {min_s: 0.05, default_s: 0.05}\n"
        )
        made = Fleet(database, api, load_targets(path))
        made.drive.start()
        try:
            yield made
        finally:
            assert made.drive.stop(PATIENCE_S)
            made.client.close()


def test_three_calls_go_their_ways_through_the_whole_loop(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One completes, one is cancelled, and of one the answer to the submit is lost: nothing of it is sent again."""
    monkeypatch.setenv("EXAMPLE_KEY", "sk-test")
    with running(database, tmp_path) as fleet:
        api, client = fleet.api, fleet.client
        fleet.submit("done")
        fleet.until("it is known", lambda: client.get("done").state == "WORKING")
        api.set("resp_1", "in_progress")
        api.complete("resp_1", "otters swim")
        receipt = client.wait("done", timeout_s=PATIENCE_S)
        assert (receipt.outcome, receipt.result[0]["content"][0]["text"]) == ("succeeded", "otters swim")

        fleet.submit("cancelled")
        fleet.until("it is known", lambda: client.get("cancelled").state == "WORKING")
        client.cancel("cancelled")
        fleet.drive.kick(Lane.CANCEL, "openai")
        assert client.wait("cancelled", timeout_s=PATIENCE_S).outcome == "cancelled"

        def lost() -> Answer:
            api.served("POST", "/v1/responses", api.bodies[-1])
            return LOST, None

        api.rules["POST /v1/responses"] = lost
        fleet.submit("lost")
        fleet.until("a person is asked", lambda: client.get("lost").state == "SUBMISSION_UNKNOWN")
        key = str(client.get("lost").submission_key)
        assert api.responses["resp_3"]["metadata"] == {"counterfoil_submission_key": key}  # where they find it
    assert api.count("POST /v1/responses") - api.count("POST /v1/responses/") == 3
    assert {headers.get("Authorization") for headers in api.headers} == {"Bearer sk-test"}


def test_a_refused_request_is_a_receipt_that_says_so(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXAMPLE_KEY", "sk-test")
    with running(database, tmp_path) as fleet:
        fleet.api.rules["POST /v1/responses"] = lambda: error(400, "Unsupported parameter")
        fleet.submit("refused")
        receipt = fleet.client.wait("refused", timeout_s=PATIENCE_S)
    assert receipt.outcome == "failed"
    assert not receipt.effects_possible
