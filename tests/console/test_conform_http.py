"""How declared APIs are spoken in transcripts: kinds of requests, the key, answers as written."""

import pytest

from counterfoil.adapters.contract import Answered, Request
from counterfoil.adapters.outcomes import Hint
from counterfoil.console.conform_http import AIP_KEY, HTTP_KEY, HttpDialect

KEY = "6f1c3f5e-0000-8000-8000-000000000000"
JOBS = {
    "submit": "POST /jobs",
    "status": "GET /jobs/{id}",
    "result": "GET /jobs/{id}/result",
    "cancel": "POST /jobs/{id}/cancel",
    "lookup": "GET /jobs?submissionKey={key}",
}
REPORTS = {"submit": "POST /v1/reports:generate", "status": "GET /v1/{name}", "cancel": "POST /v1/{name}:cancel"}


@pytest.mark.parametrize(
    ("routes", "method", "path", "kind"),
    [
        (JOBS, "POST", "/jobs", "submit"),
        (JOBS, "GET", "/jobs/j-1", "status"),
        (JOBS, "GET", "/jobs/j-1/result", "result"),
        (JOBS, "POST", "/jobs/j-1/cancel", "cancel"),
        (JOBS, "GET", f"/jobs?submissionKey={KEY}", "lookup"),
        (JOBS | {"lookup": "GET /jobs/{key}"}, "GET", f"/jobs/{KEY}", "lookup"),
        (JOBS, "GET", "/files/7", None),
        (REPORTS, "GET", "/v1/operations/op-1", "status"),
        (REPORTS, "POST", "/v1/operations/op-1:cancel", "cancel"),
    ],
)
def test_a_request_is_of_the_kind_whose_route_it_has(
    routes: dict[str, str], method: str, path: str, kind: str | None
) -> None:
    asked = HttpDialect({"routes": routes}, HTTP_KEY).read(Request(method, f"http://127.0.0.1:1{path}"))
    assert (asked.on, asked.kind) == (f"{method} {path}", kind)


def test_the_key_is_found_where_it_travels_and_counted_of_submits_only() -> None:
    jobs = HttpDialect({"routes": JOBS}, HTTP_KEY)
    submit = Request("POST", "http://127.0.0.1:1/jobs", (("Idempotency-Key", KEY),), b'{"a":1}')
    asked = jobs.read(submit)
    assert (asked.key, asked.view["key"], asked.view["idempotency-key"], asked.view["a"]) == (KEY, KEY, KEY, 1)
    aip = HttpDialect({"routes": REPORTS}, AIP_KEY)
    url = "http://127.0.0.1:1/v1/reports:generate"
    assert aip.read(Request("POST", url, body=b'{"requestId":"%s"}' % KEY.encode())).key == KEY
    assert jobs.read(Request("GET", "http://127.0.0.1:1/jobs/j-1", (("Idempotency-Key", KEY),))).key is None


def test_answers_go_out_as_they_are_written() -> None:
    jobs = HttpDialect({"routes": JOBS}, HTTP_KEY)
    asked = jobs.read(Request("GET", "http://127.0.0.1:1/jobs/j-1"))
    assert jobs.handshake(asked) is None
    assert jobs.answer(asked, {"status": 303, "headers": {"Location": "/r"}}) == Answered(303, {"location": "/r"})
    assert jobs.answer(asked, {"raw": '{"id": 1e0}'}).body == b'{"id": 1e0}'
    assert jobs.answer(asked, {"json": {"a": 1}, "fill": 9}).body == b'{"a":1}  '
    page = jobs.answer(asked, {"status": 502, "text": "<html>"})
    assert (page.status, page.headers["content-type"]) == (502, "text/html")


def test_a_callback_is_a_hint_and_a_result_stands_without_the_name_of_its_type() -> None:
    jobs = HttpDialect({"routes": JOBS}, HTTP_KEY)
    assert jobs.hints({"id": "j-1", "status": "succeeded"}) == (Hint("j-1", "succeeded"),)
    assert jobs.payload({"@type": "x/acme.Report", "rows": 3}) == {"rows": 3}
    assert jobs.payload([1]) == [1]
