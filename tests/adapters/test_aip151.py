"""AIP-151: what is sent, and what each answer means."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from counterfoil.adapters.aip151 import Aip151
from counterfoil.adapters.contract import (
    Effect,
    NoAnswer,
    Reply,
    Sent,
)
from counterfoil.adapters.outcomes import (
    Absent,
    Acknowledged,
    Busy,
    Found,
    NoSuchVerb,
    NotFound,
    NotProcessed,
    NotSent,
    Observation,
    Over,
    Payload,
    Refused,
    Rejected,
    StillWorking,
    SubmitOutcome,
    TaskStarted,
    Terminal,
    Unclear,
)

from .kit_http import BASE, CALL, KEY, REPORTS, SEARCH, bare, reports, run, says, task

ADAPTER = Aip151()
NAME = "operations/op-1"
STARTED = TaskStarted(NAME, "running", None, None, None)


def failed(http: int, status: str, *details: Mapping[str, Any]) -> Reply:
    return says(http, {"error": {"code": http, "status": status, "message": "no", "details": list(details)}})


def submit(reply: Reply) -> SubmitOutcome:
    return ADAPTER.read_submit(reports(), CALL, reply)


def poll(reply: Reply, name: str = NAME) -> Observation:
    return run(ADAPTER.poll(reports(), task(name)), reply)[0]


# -- what is sent ------------------------------------------------------------------------------------------------------


def test_the_request_id_travels_in_the_body_beside_the_arguments() -> None:
    outcome, (request,) = run(ADAPTER.submit(reports(), CALL), says(200, {"name": NAME}))
    assert outcome == STARTED
    assert (request.method, request.url, request.effect) == ("POST", f"{BASE}/v1/reports:generate", Effect.SUBMIT)
    assert json.loads(request.body) == {"requestId": KEY, "month": "2026-10"}


def test_without_a_declared_key_none_travels() -> None:
    """A server that does not know the member rejects the request."""
    _, (request,) = run(ADAPTER.submit(reports({"routes": REPORTS["routes"] | {"lookup": None}}), CALL), bare(500))
    assert request.body == CALL.arguments


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("projects/p/operations/op-1", "/v1/projects/p/operations/op-1"),
        ("operations/a b?c#d", "/v1/operations/a%20b%3Fc%23d"),
        ("operations/../../admin", "/v1/operations/%2E%2E/%2E%2E/admin"),
    ],
)
def test_a_name_keeps_its_slashes_and_nothing_else(name: str, url: str) -> None:
    _, (request,) = run(ADAPTER.poll(reports(), task(name)), bare(500))
    assert request.url == BASE + url
    _, (request,) = run(ADAPTER.cancel(reports(), task(name)), bare(500))
    assert (request.method, request.url, request.body) == ("POST", f"{BASE}{url}:cancel", b"{}")


# -- submit ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (says(200, {"name": NAME, "done": False, "metadata": {"requestId": KEY}}), STARTED),
        (says(200, {"name": NAME, "extra": [1]}), STARTED),
        (says(200, {"name": NAME, "done": True, "error": {"code": 3}}), replace(STARTED, status="done", over=True)),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
        (failed(401, "UNAUTHENTICATED"), NotProcessed("HTTP 401", auth=True)),
        (failed(400, "INVALID_ARGUMENT"), Rejected("INVALID_ARGUMENT", "no")),
        (failed(400, "FAILED_PRECONDITION"), Rejected("FAILED_PRECONDITION", "no")),
        (failed(403, "PERMISSION_DENIED"), Rejected("PERMISSION_DENIED", "no")),
        (failed(404, "NOT_FOUND"), Rejected("NOT_FOUND", "no")),
        (failed(501, "UNIMPLEMENTED"), Rejected("UNIMPLEMENTED", "no")),
        (failed(409, "ALREADY_EXISTS", {"operation": NAME}), replace(STARTED, status="")),
        (failed(409, "ALREADY_EXISTS", {"metadata": {"operation": NAME}}, {"x": 1}), replace(STARTED, status="")),
        (failed(409, "ALREADY_EXISTS", {"resourceName": NAME}, {"operation": NAME}), replace(STARTED, status="")),
    ],
)
def test_a_clear_answer_to_a_submit_is_taken_at_its_word(reply: Reply, expected: SubmitOutcome) -> None:
    assert submit(reply) == expected


def test_a_result_at_once_is_taken_from_the_answer() -> None:
    answer = says(200, {"name": NAME, "done": True, "response": {"@type": "x/acme.Report", "rows": 3}})
    assert submit(answer) == Over(Terminal.COMPLETED, "done", Payload(answer.body, "/response"))


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (NoAnswer(Sent.MAYBE, "reset"), "E_NO_ANSWER"),
        (says(200, {"name": "reports/r-1", "rows": 3}), "E_UNREADABLE_ANSWER"),
        (says(200, {"done": False}), "E_UNREADABLE_ANSWER"),
        (says(200, {"name": "operations/../x", "done": False}), "E_UNREADABLE_ANSWER"),
        (says(200, {"name": 7, "done": False}), "E_UNREADABLE_ANSWER"),
        (says(200, {"error": {"code": 500}}), "E_UNREADABLE_ANSWER"),
        (bare(200, b"<html>"), "E_UNREADABLE_ANSWER"),
        (says(200, [NAME]), "E_UNREADABLE_ANSWER"),
        (bare(404, b"<html>"), "HTTP 404"),
        (failed(500, "NOT_FOUND"), "NOT_FOUND"),
        (failed(409, "ABORTED", {"operation": NAME}), "ABORTED"),
        (failed(409, "ALREADY_EXISTS"), "ALREADY_EXISTS"),
        (failed(409, "ALREADY_EXISTS", {"operation": "reports/r-1"}), "ALREADY_EXISTS"),
        (failed(409, "ALREADY_EXISTS", {"operation": NAME}, {"operation": "operations/op-2"}), "ALREADY_EXISTS"),
        (failed(429, "RESOURCE_EXHAUSTED"), "RESOURCE_EXHAUSTED"),
        (failed(503, "UNAVAILABLE"), "UNAVAILABLE"),
        (failed(500, "INTERNAL"), "INTERNAL"),
    ],
)
def test_everything_else_leaves_a_submit_unclear(reply: Reply, code: str) -> None:
    outcome = submit(reply)
    assert isinstance(outcome, Unclear)
    assert outcome.code == code


def test_an_operation_that_exists_is_ours_only_where_our_key_travelled() -> None:
    """Without a key ALREADY_EXISTS names somebody else's operation."""
    endpoint = reports({"routes": REPORTS["routes"] | {"lookup": None}})
    outcome = ADAPTER.read_submit(endpoint, CALL, failed(409, "ALREADY_EXISTS", {"operation": NAME}))
    assert isinstance(outcome, Unclear)


# -- operation ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (says(200, {"name": NAME, "done": False}, retry_after="4"), StillWorking("running", None, None, 4000)),
        (says(200, {"name": NAME, "metadata": {"percent": 7}}), StillWorking("running", None, None, None)),
        (says(200, {"name": NAME, "done": True}), Over(Terminal.COMPLETED, "done", None)),
        (says(200, {"name": NAME, "done": "true"}), Refused("E_STATUS_UNKNOWN", "no status")),
        (
            says(200, {"name": NAME, "done": True, "error": {"code": 1, "message": "CANCELLED"}}),
            Over(Terminal.CANCELLED, "done", None, message="CANCELLED"),
        ),
        (
            says(200, {"name": NAME, "done": True, "error": {"code": 5}, "response": {"rows": 3}}),
            Refused("E_STATUS_UNKNOWN", "the operation is over with a response and with an error"),
        ),
        (
            says(200, {"name": "operations/op-2", "done": True}),
            Refused("E_TASK_ID_MISMATCH", "the answer is about another operation, or names none"),
        ),
        (
            says(200, {"id": "op-1", "status": "succeeded"}),
            Refused("E_PROTOCOL_MIX", "an answer in the shape of another protocol"),
        ),
        (says(200, {"error": {"code": 500, "status": "INTERNAL"}}), Busy("E_UNREADABLE_ANSWER")),
        (bare(200, b"<html>"), Busy("E_UNREADABLE_ANSWER")),
        (failed(404, "NOT_FOUND"), NotFound("HTTP 404")),
        (failed(403, "PERMISSION_DENIED"), Busy("HTTP 403")),
        (failed(429, "RESOURCE_EXHAUSTED"), Busy("HTTP 429")),
        (NoAnswer(Sent.MAYBE, "cut"), Busy("E_NO_ANSWER")),
    ],
)
def test_what_an_operation_says(reply: Reply, expected: Observation) -> None:
    assert poll(reply) == expected


def test_the_two_spaces_of_error_numbers_are_kept_apart() -> None:
    """404 is HTTP's word for an operation that is not there; 5 in an operation is how the work itself ended. A client
    library raises the same NotFound for both."""
    answer = says(200, {"name": NAME, "done": True, "error": {"code": 5, "message": "no such table"}})
    assert poll(answer) == Over(Terminal.FAILED, "done", Payload(answer.body, "/error"), message="no such table")
    assert poll(failed(404, "NOT_FOUND")) == NotFound("HTTP 404")
    answer = says(200, {"name": NAME, "done": True, "error": {"code": 404}})
    assert isinstance(poll(answer), Over)


# -- cancel, lookup ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (says(200, {}), Acknowledged()),
        (says(200, {"name": NAME, "done": True, "error": {"code": 1}}), Acknowledged()),
        (failed(404, "NOT_FOUND"), NotFound("no")),
        (failed(501, "UNIMPLEMENTED"), NoSuchVerb("no")),
        (bare(405), NoSuchVerb("HTTP 405")),
        (failed(400, "FAILED_PRECONDITION"), Unclear("FAILED_PRECONDITION", "no")),
        (bare(500), Unclear("HTTP 500", "HTTP 500")),
    ],
)
def test_the_answer_to_a_cancel_is_an_acknowledgement_and_never_an_end(reply: Reply, expected: object) -> None:
    assert run(ADAPTER.cancel(reports(), task(NAME)), reply)[0] == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (says(200, {"operations": [{"name": NAME}]}), Found(STARTED)),
        (says(200, {"operations": []}), Absent(authoritative=True)),
        (says(200, {}), Absent(authoritative=True)),
        (says(200, {"nextPageToken": "p2"}), Absent(authoritative=False)),
        (says(200, {"operations": [], "unreachable": ["europe"]}), Absent(authoritative=False)),
        (says(200, {"operations": [{"name": NAME}, {"name": "operations/op-2"}]}), "E_KEY_UNSURE"),
        (says(200, {"operations": {"name": NAME}}), "E_UNREADABLE_ANSWER"),
        (says(200, {"operations": ["x"]}), "E_UNREADABLE_ANSWER"),
        (failed(404, "NOT_FOUND"), NoSuchVerb("HTTP 404")),
        (bare(200, b"<html>"), Busy("E_UNREADABLE_ANSWER")),
    ],
)
def test_a_list_by_the_key_says_what_there_is(reply: Reply, expected: object) -> None:
    outcome, (request,) = run(ADAPTER.lookup(reports(), SEARCH), reply)
    assert (outcome.code if isinstance(outcome, Unclear) else outcome) == expected
    assert request.url == f"{BASE}/v1/operations?filter=requestId={KEY}"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (says(200, {"name": f"operations/{KEY}", "done": False}), Found(replace(STARTED, task_id=f"operations/{KEY}"))),
        (failed(404, "NOT_FOUND"), Absent(authoritative=True)),
        (bare(404, b"<html>"), "E_KEY_UNSURE"),
        (says(404, {"detail": "Not Found"}), "E_KEY_UNSURE"),
        (failed(410, "NOT_FOUND"), "E_KEY_UNSURE"),
        (says(200, {"name": "reports/r-1"}), "E_UNREADABLE_ANSWER"),
    ],
)
def test_under_an_id_that_we_chose_not_found_says_that_there_is_nothing(reply: Reply, expected: object) -> None:
    endpoint = reports({"routes": {"submit": "POST /v1/x?operationId={key}", "lookup": "GET /v1/operations/{key}"}})
    outcome, _ = run(ADAPTER.lookup(endpoint, SEARCH), reply)
    assert (outcome.code if isinstance(outcome, Unclear) else outcome) == expected
