"""What each answer means under a declaration, row by row."""

import pytest

from counterfoil.adapters import http202_answers as answers
from counterfoil.adapters.contract import NoAnswer, Reply, Sent
from counterfoil.adapters.http_api import HttpApi
from counterfoil.adapters.outcomes import (
    Acknowledged,
    Busy,
    CancelOutcome,
    NoAccess,
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

from .kit_http import BASE, JOBS, bare, jobs, says, task, without

ENDPOINT = jobs(not_processed_statuses=frozenset({503}))
HTML = b"<html><h1>502 Bad Gateway</h1></html>"


def submit(reply: Reply, *layers: dict[str, object], preset: str | None = "plain") -> SubmitOutcome:
    endpoint = jobs(*(layers or (JOBS,)), preset=preset, not_processed_statuses=frozenset({503}))
    return answers.read_submit(endpoint, HttpApi.of(endpoint.api), reply)


# -- submit ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (says(202, {"id": "j-1", "status": "queued"}, retry_after="2"), TaskStarted("j-1", "queued", None, None, 2000)),
        (says(202, {"id": "j-1", "status": "succeeded"}), TaskStarted("j-1", "succeeded", None, None, None, over=True)),
        (says(202, {"id": 123456789012345678}), TaskStarted("123456789012345678", "", None, None, None)),
        (bare(202, location="/jobs/j-1"), TaskStarted("j-1", "", None, None, None)),
        (bare(202, HTML, location=f"{BASE}/jobs/j%2F1?x=2"), TaskStarted("j/1", "", None, None, None)),
        (bare(202, operation_location="/jobs/j-1"), TaskStarted("j-1", "", None, None, None)),
        (bare(201, b"null", location=f"{BASE}/jobs/j-1"), TaskStarted("j-1", "", None, None, None)),
        (says(200, {"id": "j-1", "status": "running"}), TaskStarted("j-1", "running", None, None, None)),
        (bare(303, location="/jobs/j-1"), TaskStarted("j-1", "", None, None, None)),
        (bare(204), Over(Terminal.COMPLETED, "HTTP 204", None)),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
        (bare(401), NotProcessed("HTTP 401", auth=True)),
        (bare(403, www_authenticate="Bearer"), NotProcessed("HTTP 403", auth=True)),
        (bare(503, HTML, retry_after="7"), NotProcessed("HTTP 503", 7.0)),
        (says(400, {"error": {"message": "no month"}}), Rejected("HTTP 400", "no month")),
        (says(404, {"error": "no such tool"}), Rejected("HTTP 404", "no such tool")),
        (bare(413, HTML), Rejected("HTTP 413", "HTTP 413")),
    ],
)
def test_a_clear_answer_to_a_submit_is_taken_at_its_word(reply: Reply, expected: SubmitOutcome) -> None:
    assert submit(reply) == expected


def test_a_whole_result_at_once_is_the_result() -> None:
    for status in (200, 201):
        answer = says(status, {"rows": 3})
        assert submit(answer) == Over(Terminal.COMPLETED, f"HTTP {status}", Payload(answer.body, ""))


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (NoAnswer(Sent.MAYBE, "reset"), "E_NO_ANSWER"),
        (NoAnswer(Sent.MAYBE, "cut", b'{"id": "j-1", "sta'), "E_NO_ANSWER"),
        (NoAnswer(Sent.MAYBE, "larger", b"x" * 2000), "E_RESULT_TOO_LARGE"),
        (bare(202), "E_UNREADABLE_ANSWER"),
        (says(202, {"status": "queued"}), "E_UNREADABLE_ANSWER"),
        (bare(202, b'{"id": "j-1", "id": "j-2"}'), "E_UNREADABLE_ANSWER"),
        (says(202, {"id": 1.5}), "E_UNREADABLE_ANSWER"),
        (says(202, {"id": True}), "E_UNREADABLE_ANSWER"),
        (says(202, {"id": ""}), "E_UNREADABLE_ANSWER"),
        (says(202, {"id": ".."}), "E_UNREADABLE_ANSWER"),
        (says(202, {"id": "j\x00"}), "E_UNREADABLE_ANSWER"),
        (says(202, {"id": "j" * 513}), "E_UNREADABLE_ANSWER"),
        (bare(202, location="http://evil.example/jobs/j-1"), "E_CROSS_ORIGIN_REDIRECT"),
        (bare(202, location="/elsewhere/j-1"), "E_UNREADABLE_ANSWER"),
        (says(200, {"id": "j-1"}), "E_UNREADABLE_ANSWER"),
        (says(200, {"status": "running"}), "E_UNREADABLE_ANSWER"),
        (says(200, {"error": {"code": "InternalServerError"}}), "E_UNREADABLE_ANSWER"),
        (bare(200, HTML), "E_UNREADABLE_ANSWER"),
        (bare(206, b"{}"), "E_UNREADABLE_ANSWER"),
        (bare(302, location="/jobs/j-1"), "HTTP 302"),
        (bare(307, location="/jobs"), "HTTP 307"),
        (bare(403), "HTTP 403"),
        (says(422, {"error": {"code": "idempotency_key_payload_mismatch"}}), "E_KEY_REUSED_DIFFERENT_REQUEST"),
        (bare(408), "HTTP 408"),
        (bare(409), "HTTP 409"),
        (bare(429, retry_after="5"), "HTTP 429"),
        (bare(500), "HTTP 500"),
        (bare(502, HTML), "HTTP 502"),
    ],
)
def test_everything_else_leaves_a_submit_unclear(reply: Reply, code: str) -> None:
    outcome = submit(reply)
    assert isinstance(outcome, Unclear)
    assert outcome.code == code


def test_what_rejects_for_certain_is_the_operators_word() -> None:
    assert submit(bare(412), JOBS, {"rejections": [412, 501]}) == Rejected("HTTP 412", "HTTP 412")  # type: ignore[arg-type]
    assert submit(bare(501), JOBS, {"rejections": [412, 501]}) == Rejected("HTTP 501", "HTTP 501")  # type: ignore[arg-type]
    assert isinstance(submit(bare(400), JOBS, {"rejections": [412]}), Unclear)  # type: ignore[arg-type]


# -- status ------------------------------------------------------------------------------------------------------------


def status(reply: Reply) -> Observation | answers.Elsewhere:
    return answers.read_status(ENDPOINT, HttpApi.of(ENDPOINT.api), task(), reply)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (says(200, {"id": "j-1", "status": "running"}, retry_after="2"), StillWorking("running", None, None, 2000)),
        (says(200, {"status": "RUNNING"}), StillWorking("RUNNING", None, None, None)),
        (says(202, {"id": "j-1", "status": "queued"}), StillWorking("queued", None, None, None)),
        (bare(202, retry_after="9"), StillWorking("HTTP 202", None, None, 9000)),
        (says(200, {"id": "j-1", "status": "canceling"}), StillWorking("canceling", None, None, None)),
        (says(200, {"id": "j-1", "status": "succeeded"}), Over(Terminal.COMPLETED, "succeeded", None)),
        (bare(303, location="/jobs/j-1/result"), Over(Terminal.COMPLETED, "HTTP 303", None)),
        (says(200, {"id": "j-1", "status": "canceled"}), Over(Terminal.CANCELLED, "canceled", None)),
        (says(404, {"error": "no"}), NotFound("HTTP 404")),
        (bare(410), NotFound("HTTP 410: it was there, and is gone")),
        (bare(401), NoAccess("HTTP 401: the server wants another credential")),
        (bare(403), Busy("HTTP 403")),
        (bare(502, HTML), Busy("HTTP 502")),
        (bare(429, retry_after="30"), Busy("HTTP 429", 30.0, closes_target=True)),
        (bare(200, HTML), Busy("E_UNREADABLE_ANSWER")),
        (bare(200), Busy("E_UNREADABLE_ANSWER")),
        (says(200, {"error": {"code": "InternalServerError"}}), Busy("E_UNREADABLE_ANSWER")),
        (
            says(200, {"id": "j-2", "status": "succeeded"}),
            Refused("E_TASK_ID_MISMATCH", "the answer is about another id"),
        ),
        (says(200, {"id": "j-1", "status": None}), Refused("E_STATUS_UNKNOWN", "no status")),
        (says(200, {"id": "j-1", "status": "PartialFailed"}), Refused("E_STATUS_UNKNOWN", "status 'PartialFailed'")),
        (says(200, {"id": "j-1", "status": ["succeeded"]}), Refused("E_STATUS_UNKNOWN", "no status")),
        (
            says(200, {"name": "operations/j-1", "done": True}),
            Refused("E_PROTOCOL_MIX", "an answer in the shape of another protocol"),
        ),
        (NoAnswer(Sent.MAYBE, "cut"), Busy("E_NO_ANSWER")),
        (NoAnswer(Sent.MAYBE, "large", b"x" * 2000), Refused("E_RESULT_TOO_LARGE", "large")),
    ],
)
def test_what_a_status_says(reply: Reply, expected: Observation) -> None:
    assert status(reply) == expected


def test_what_is_told_of_a_failure_is_its_result() -> None:
    answer = says(200, {"id": "j-1", "status": "failed", "error": {"message": "disk full"}})
    assert status(answer) == Over(Terminal.FAILED, "failed", Payload(answer.body, "/error"), message="disk full")
    answer = says(200, {"id": "j-1", "status": "failed"})
    assert status(answer) == Over(Terminal.FAILED, "failed", Payload(answer.body, ""))


def test_a_completed_status_without_its_result_has_none() -> None:
    endpoint = jobs(JOBS, without("result"))
    answer = says(200, {"id": "j-1", "status": "succeeded"})
    outcome = answers.read_status(endpoint, HttpApi.of(endpoint.api), task(), answer)
    assert outcome == Over(Terminal.COMPLETED, "succeeded", None)


@pytest.mark.parametrize(
    ("reply", "payload"),
    [(bare(204), None), (bare(200, b" "), None), (bare(200, HTML), HTML), (bare(200, b'{"rows": 3}'), b'{"rows": 3}')],
)
def test_a_fetched_result_is_handed_on_as_it_came(reply: Reply, payload: bytes | None) -> None:
    outcome = answers.read_result(
        ENDPOINT, HttpApi.of(ENDPOINT.api), reply, terminal=Terminal.COMPLETED, status="completed"
    )
    assert isinstance(outcome, Over)
    assert (outcome.payload and outcome.payload.body) == payload


# -- cancel ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (bare(202), Acknowledged(None)),
        (bare(204), Acknowledged(None)),
        (says(200, {"id": "j-1", "status": "canceling"}), Acknowledged("canceling")),
        (says(200, {"id": "j-1", "status": "canceled"}), Acknowledged("cancelled")),
        (says(200, {"id": "j-2", "status": "canceled"}), Acknowledged("canceled")),
        (bare(404), NotFound("HTTP 404")),
        (bare(405), NoSuchVerb("HTTP 405")),
        (bare(501), NoSuchVerb("HTTP 501")),
        (bare(401), NotProcessed("HTTP 401", auth=True)),
        (NoAnswer(Sent.NO, "refused"), NotSent("refused")),
        (NoAnswer(Sent.MAYBE, "reset"), Unclear("E_NO_ANSWER", "reset")),
        (says(409, {"error": "already over"}), Unclear("HTTP 409", "already over")),
        (bare(500), Unclear("HTTP 500", "")),
    ],
)
def test_what_the_answer_to_a_cancel_says(reply: Reply, expected: CancelOutcome) -> None:
    assert answers.read_cancel(ENDPOINT, HttpApi.of(ENDPOINT.api), task(), reply) == expected
