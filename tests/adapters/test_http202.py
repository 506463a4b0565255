"""What is sent under a declaration, verb by verb."""

import json
from dataclasses import replace

import pytest

from counterfoil.adapters.contract import (
    Effect,
    Endpoint,
    NoAnswer,
    Sent,
)
from counterfoil.adapters.http202 import Http202
from counterfoil.adapters.http_api import HttpApi
from counterfoil.adapters.outcomes import (
    Absent,
    Found,
    Hint,
    Negotiated,
    NoSuchVerb,
    NotFound,
    NotOffered,
    Over,
    Payload,
    Refused,
    StillWorking,
    TaskStarted,
    Terminal,
    Unclear,
)
from counterfoil.adapters.profile import Lookup

from .kit_http import BASE, CALL, JOBS, KEY, SEARCH, bare, jobs, run, says, task, without

ADAPTER = Http202()


# -- negotiate ---------------------------------------------------------------------------------------------------------


def test_what_was_declared_is_agreed_without_a_request_and_is_the_descriptor() -> None:
    agreed, sent = run(ADAPTER.negotiate(jobs(), "report"))
    assert isinstance(agreed, Negotiated)
    assert sent == []
    told = json.loads(agreed.descriptor)
    assert (told["name"], told["routes"]["submit"]) == ("report", "POST /jobs")
    assert run(ADAPTER.negotiate(jobs(), "report"))[0] == agreed  # one text for one declaration


def test_a_tool_without_a_way_to_submit_is_not_offered() -> None:
    refused, _ = run(ADAPTER.negotiate(jobs(JOBS, without("submit")), "report"))
    assert isinstance(refused, NotOffered)
    assert refused.code == "E_CAPABILITY_UNSUPPORTED"


def test_an_argument_of_the_name_of_the_key_is_refused_by_the_input_schema() -> None:
    agreed, _ = run(ADAPTER.negotiate(jobs(JOBS, {"key": {"body": "requestId"}}), "report"))
    assert isinstance(agreed, Negotiated)
    assert agreed.input_schema is not None
    assert json.loads(agreed.input_schema) == {"type": "object", "not": {"required": ["requestId"]}}


# -- submit ------------------------------------------------------------------------------------------------------------


def test_a_submit_sends_the_digested_arguments_byte_for_byte_and_the_key_in_its_header() -> None:
    outcome, (request,) = run(ADAPTER.submit(jobs(), CALL), says(202, {"id": "j-1", "status": "queued"}))
    assert outcome == TaskStarted("j-1", "queued", None, None, None)
    assert (request.method, request.url, request.body) == ("POST", f"{BASE}/jobs", CALL.arguments)
    assert (request.effect, request.deadline_s) == (Effect.SUBMIT, 60.0)
    headers = dict(request.headers)
    assert (headers["Idempotency-Key"], headers["Content-Type"]) == (KEY, "application/json")
    assert "Prefer" not in headers


@pytest.mark.parametrize(
    ("layer", "header", "value"),
    [
        ({"key": {"header": "Idempotency-Key", "quoted": True}}, "Idempotency-Key", f'"{KEY}"'),
        ({"key": {"header": "Operation-Id"}}, "Operation-Id", KEY),
        (
            {"key": {"header": "Repeatability-Request-ID", "first_sent": "Repeatability-First-Sent"}},
            "Repeatability-First-Sent",
            "Sat, 29 Nov 2025 10:00:00 GMT",
        ),
        ({"respond_async": True}, "Prefer", "respond-async"),
        ({"headers": {"X-Api-Version": "7"}}, "X-Api-Version", "7"),
    ],
)
def test_what_is_declared_of_headers_is_sent(layer: dict[str, object], header: str, value: str) -> None:
    _, (request,) = run(ADAPTER.submit(jobs(JOBS, layer), CALL), bare(500))
    assert dict(request.headers)[header] == value


def test_a_replay_is_the_same_bytes() -> None:
    """The moment of the first send may not move: the server compares it."""
    endpoint = jobs(JOBS, {"key": {"header": "Repeatability-Request-ID", "first_sent": "Repeatability-First-Sent"}})
    first, again = (run(ADAPTER.submit(endpoint, CALL), bare(500))[1] for _ in range(2))
    assert first == again


@pytest.mark.parametrize(
    ("arguments", "body"), [(b"{}", '{"requestId":"%s"}'), (b'{"a":1}', '{"requestId":"%s","a":1}')]
)
def test_a_key_in_the_body_stands_beside_the_arguments(arguments: bytes, body: str) -> None:
    endpoint = jobs(JOBS, {"key": {"body": "requestId"}})
    _, (request,) = run(ADAPTER.submit(endpoint, replace(CALL, arguments=arguments)), bare(500))
    assert request.body.decode() == body % KEY


def test_a_key_in_the_path_makes_the_client_choose_the_id() -> None:
    endpoint = jobs({"routes": {"submit": "PUT /jobs/{key}", "status": "GET /jobs/{id}", "lookup": "GET /jobs/{key}"}})
    outcome, (request,) = run(ADAPTER.submit(endpoint, CALL), says(202, {"id": KEY, "status": "queued"}))
    assert isinstance(outcome, TaskStarted)
    assert (request.method, request.url, outcome.task_id) == ("PUT", f"{BASE}/jobs/{KEY}", KEY)
    profile = HttpApi.of(endpoint.api).of_profile(ADAPTER.profile)
    assert (profile.lookup, profile.can_cancel) == (Lookup.CLIENT_CHOSEN_ID, False)


def test_routes_stand_below_the_path_of_the_target() -> None:
    _, (request,) = run(ADAPTER.submit(jobs(url=f"{BASE}/api/v2/"), CALL), bare(500))
    assert request.url == f"{BASE}/api/v2/jobs"


# -- poll, fetch -------------------------------------------------------------------------------------------------------


def test_a_poll_asks_the_declared_route() -> None:
    outcome, (request,) = run(ADAPTER.poll(jobs(), task("a/b c")), says(200, {"id": "a/b c", "status": "running"}))
    assert outcome == StillWorking("running", None, None, None)
    assert (request.method, request.url, request.effect) == ("GET", f"{BASE}/jobs/a%2Fb%20c", None)


def test_a_result_with_a_route_of_its_own_is_fetched_there() -> None:
    over, _ = run(ADAPTER.poll(jobs(), task()), says(200, {"id": "j-1", "status": "succeeded"}))
    assert over == Over(Terminal.COMPLETED, "succeeded", None)
    answer = says(200, {"rows": 3})
    fetched, (request,) = run(ADAPTER.fetch(jobs(), task(terminal="completed")), answer)
    assert fetched == Over(Terminal.COMPLETED, "completed", Payload(answer.body, ""))
    assert request.url == f"{BASE}/jobs/j-1/result"


def test_without_a_route_of_its_own_a_result_comes_with_the_status() -> None:
    endpoint = jobs(JOBS, without("result"))
    answer = says(200, {"id": "j-1", "status": "succeeded", "result": {"rows": 3}})
    for verb in (ADAPTER.poll, ADAPTER.fetch):
        over, _ = run(verb(endpoint, task()), answer)
        assert over == Over(Terminal.COMPLETED, "succeeded", Payload(answer.body, "/result"))


@pytest.mark.parametrize(
    "over",
    [
        bare(303, location="/files/7"),
        bare(303, location=f"{BASE}/files/7"),
        says(200, {"status": "Succeeded", "resourceLocation": f"{BASE}/files/7#top"}),
    ],
)
def test_a_result_that_the_server_keeps_elsewhere_is_read_in_the_same_exchange(over: object) -> None:
    endpoint = jobs({"routes": {"submit": "POST /jobs", "status": "GET /jobs/{id}"}}, preset="azure")
    answer = says(200, {"rows": 3})
    outcome, (_, request) = run(ADAPTER.poll(endpoint, task()), over, answer)  # type: ignore[arg-type]
    assert isinstance(outcome, Over)
    assert (outcome.payload, request.url) == (Payload(answer.body, ""), f"{BASE}/files/7")


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/",
        "//evil.example/j",
        "https://127.0.0.1:1/j",
        "http://127.0.0.1:2/",
        "http://u@127.0.0.1:1/",
        "ftp:x",
        "http://[",
        "/a b",
        "/\x7f",
        "",
    ],
)
@pytest.mark.parametrize("status", [303, 302, 307])
def test_nothing_outside_of_the_origin_is_ever_asked(location: str, status: int) -> None:
    """A redirect there would carry the credential to whoever answers."""
    endpoint = jobs(JOBS, without("result"))
    outcome, sent = run(ADAPTER.poll(endpoint, task()), bare(status, location=location))
    assert isinstance(outcome, Refused)
    assert outcome.code == "E_CROSS_ORIGIN_REDIRECT"
    assert len(sent) == 1


def test_a_read_follows_where_it_was_moved_to_but_not_for_ever() -> None:
    moved = bare(308, location="/v2/jobs/j-1")
    outcome, sent = run(ADAPTER.poll(jobs(), task()), moved, says(200, {"id": "j-1", "status": "running"}))
    assert (type(outcome), sent[1].url) == (StillWorking, f"{BASE}/v2/jobs/j-1")
    outcome, _ = run(ADAPTER.poll(jobs(), task()), moved, moved, moved)
    assert isinstance(outcome, Refused)


# -- location polling --------------------------------------------------------------------------------------------------


def plain() -> Endpoint:
    return jobs({"routes": {"submit": "POST /jobs"}}, preset=None)


@pytest.mark.parametrize("location", ["/monitors/7?v=1", f"{BASE}/monitors/7?v=1", "monitors/7?v=1"])
def test_without_a_status_route_the_id_is_the_url_that_the_server_hands_out(location: str) -> None:
    started, _ = run(ADAPTER.submit(plain(), CALL), bare(202, location=location, retry_after="7"))
    assert started == TaskStarted("/monitors/7?v=1", "", None, None, 7000)
    working, (request,) = run(ADAPTER.poll(plain(), task("/monitors/7?v=1")), bare(202, retry_after="3"))
    assert working == StillWorking("HTTP 202", None, None, 3000)
    assert request.url == f"{BASE}/monitors/7?v=1"
    answer = says(200, {"rows": 3})
    over, _ = run(ADAPTER.poll(plain(), task("/monitors/7?v=1")), answer)
    assert over == Over(Terminal.COMPLETED, "HTTP 200", Payload(answer.body, ""))


def test_a_monitor_of_its_own_counts_before_location() -> None:
    started, _ = run(ADAPTER.submit(plain(), CALL), bare(202, location="/things/7", operation_location="/operations/9"))
    assert isinstance(started, TaskStarted)
    assert started.task_id == "/operations/9"


@pytest.mark.parametrize("place", ["jobs/../../admin", "//evil.example/", "http://evil.example/", "\x00", "/a#b"])
def test_an_id_that_a_person_bound_stays_within_the_origin(place: str) -> None:
    _, (request,) = run(ADAPTER.poll(plain(), task(place)), bare(500))
    assert request.url.startswith(f"{BASE}/")
    _, (request,) = run(ADAPTER.poll(jobs(), task(place)), bare(500))
    assert request.url.startswith(f"{BASE}/jobs/")
    assert "/" not in request.url.removeprefix(f"{BASE}/jobs/")


# -- cancel, lookup ----------------------------------------------------------------------------------------------------


def test_a_cancel_is_the_declared_route_and_an_effect() -> None:
    _, (request,) = run(ADAPTER.cancel(jobs(), task()), bare(202))
    assert (request.method, request.url, request.effect) == ("POST", f"{BASE}/jobs/j-1/cancel", Effect.CANCEL)
    refused, sent = run(ADAPTER.cancel(jobs(JOBS, without("cancel")), task()))
    assert (type(refused), sent) == (NoSuchVerb, [])


def test_a_lost_submit_is_asked_for_by_its_key() -> None:
    found, (request,) = run(
        ADAPTER.lookup(jobs(), SEARCH), says(200, {"jobs": [{"id": 7, "status": "running"}]}, retry_after="2")
    )
    assert found == Found(TaskStarted("7", "running", None, None, 2000))
    over, _ = run(ADAPTER.lookup(jobs(), SEARCH), says(200, {"jobs": [{"id": 7, "status": "succeeded"}]}))
    assert over == Found(TaskStarted("7", "succeeded", None, None, None, over=True))
    assert (request.method, request.url, request.effect) == ("GET", f"{BASE}/jobs?key={KEY}", None)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (says(200, {"jobs": []}), Absent(authoritative=True)),
        (says(200, {"jobs": None}), "E_UNREADABLE_ANSWER"),
        (says(200, {}), "E_UNREADABLE_ANSWER"),
        (says(200, {"jobs": [{"id": "a"}, {"id": "b"}]}), "E_KEY_UNSURE"),
        (says(200, {"jobs": [{"status": "running"}]}), "E_UNREADABLE_ANSWER"),
        (says(200, {"jobs": [{"id": ".."}]}), "E_UNREADABLE_ANSWER"),
        (says(404, {"error": "no"}), NoSuchVerb("HTTP 404")),
    ],
)
def test_only_an_empty_list_says_that_there_is_nothing(answer: object, expected: object) -> None:
    outcome, _ = run(ADAPTER.lookup(jobs(), SEARCH), answer)  # type: ignore[arg-type]
    assert (outcome.code if isinstance(outcome, Unclear) else outcome) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (says(200, {"id": KEY, "status": "running"}), Found(TaskStarted(KEY, "running", None, None, None))),
        (says(404, {"detail": "Not Found"}), Absent(authoritative=True)),
        (bare(404), Absent(authoritative=True)),
        (bare(404, b"<html>not here</html>"), "E_KEY_UNSURE"),
        (says(410, {"error": "gone"}), "E_KEY_UNSURE"),
    ],
)
def test_where_the_client_chose_the_id_404_says_that_there_is_nothing(answer: object, expected: object) -> None:
    """A gateway's page is no word of the API: it would have allowed a second submit."""
    endpoint = jobs(JOBS, {"routes": {"lookup": "GET /jobs/{key}"}})
    outcome, _ = run(ADAPTER.lookup(endpoint, SEARCH), answer)  # type: ignore[arg-type]
    assert (outcome.code if isinstance(outcome, Unclear) else outcome) == expected


def test_a_result_that_is_not_there_yet_is_asked_for_again() -> None:
    outcome, _ = run(ADAPTER.fetch(jobs(), task(terminal="completed")), says(404, {"error": "File not found"}))
    assert isinstance(outcome, NotFound)


def test_a_callback_is_a_hint_and_an_answer_is_none() -> None:
    """Each answer would wake what it is the answer for."""
    assert ADAPTER.hints(says(200, {"id": "j-1", "status": "running"})) == ()
    assert ADAPTER.hints(says(200, {"id": "j-1", "status": "x"}, host="hooks:8000")) == (Hint("j-1", "x"),)
    assert ADAPTER.hints(NoAnswer(Sent.MAYBE, "cut", b'{"id":"j-1"}')) == ()


def test_nothing_asks_questions() -> None:
    endpoint = jobs()
    assert isinstance(ADAPTER.read_input(endpoint, task(), b"{}"), Refused)
    assert isinstance(ADAPTER.read_reply(endpoint, task(), bare(200)), NoSuchVerb)
