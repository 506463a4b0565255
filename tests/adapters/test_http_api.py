"""What may be declared of an API, and how its layers become one declaration."""

from typing import Any

import pytest
from pydantic import ValidationError

from counterfoil.adapters import presets
from counterfoil.adapters.aip151 import Aip151
from counterfoil.adapters.http202 import Http202
from counterfoil.adapters.http_api import HttpApi, Meaning
from counterfoil.adapters.http_routes import Route
from counterfoil.adapters.profile import Lookup

from .kit_http import JOBS


def declared(*layers: dict[str, Any], preset: str | None = None) -> HttpApi:
    return presets.declared("http-202", preset, *layers)


# -- what may be written -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("submit", "/jobs"),
        ("submit", "GET /jobs"),
        ("submit", "POST jobs"),
        ("submit", "POST //evil.example/jobs"),
        ("submit", "POST http://evil.example/jobs"),
        ("submit", "POST /jobs HTTP/1.1\r\nX: y"),
        ("submit", "POST /jobs/{id}"),
        ("submit", "POST /jobs/{key}/{key}"),
        ("submit", "POST /jobs/{key"),
        ("submit", "POST /jobs#x"),
        ("submit", "POST /" + "x" * 2001),
        ("status", "POST /jobs/{id}"),
        ("status", "GET /jobs"),
        ("status", "GET /jobs/{id}/{name}"),
        ("result", "GET /jobs/{key}"),
        ("cancel", "GET /jobs/{id}/cancel"),
        ("lookup", "POST /jobs?key={key}"),
        ("lookup", "GET /jobs"),
    ],
)
def test_a_route_that_can_not_be_meant_is_refused(name: str, text: str) -> None:
    with pytest.raises(ValidationError) as raised:
        declared({"routes": {"status": "GET /jobs/{id}"} | {name: text}})
    assert raised.value.errors()[0]["loc"] == ("routes", name)


@pytest.mark.parametrize(
    "layer",
    [
        {"statuses": {"working": ["running"], "failed": ["RUNNING"]}},
        {"statuses": {"working": [""]}},
        {"fields": {"id": "id"}},
        {"fields": {"id": "/" + "x" * 512}},
        {"fields": {"id": "/a\n"}},
        {"key": {}},
        {"key": {"header": "Idempotency-Key", "body": "requestId"}},
        {"key": {"body": "requestId", "quoted": True}},
        {"key": {"header": "Idempotency Key"}},
        {"key": {"header": "Authorization"}},
        {"key": {"header": "Operation-Id", "first_sent": "host"}},
        {"headers": {"Authorization": "Bearer s3cret"}},
        {"headers": {"Content-Length": "0"}},
        {"headers": {"X-A": "s3cret\r\nX-B: y"}},
        {"headers": {"X A": "s3cret"}},
        {"anything": "else"},
    ],
)
def test_what_contradicts_itself_or_would_carry_a_secret_is_refused(layer: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as raised:
        declared(layer)
    assert "s3cret" not in str(raised.value)


# -- layers ------------------------------------------------------------------------------------------------------------


def test_a_later_layer_replaces_members_of_routes_and_words_and_the_whole_of_a_key() -> None:
    target = {"routes": {"submit": "POST /a", "status": "GET /a/{id}"}, "key": {"header": "X-Key"}}
    tool = {"routes": {"submit": "POST /b"}, "statuses": {"failed": ["broken"]}, "key": {"body": "k"}}
    api = declared(target, tool, preset="plain")
    assert (api.routes.submit, api.routes.status) == ("POST /b", "GET /a/{id}")
    assert (api.statuses.failed, api.statuses.completed) == (["broken"], ["succeeded", "completed"])
    assert api.key is not None
    assert (api.key.header, api.key.body) == (None, "k")


def test_one_text_for_one_declaration_and_back() -> None:
    api = declared(dict(JOBS), preset="plain")
    assert HttpApi.of(api.text()) == api
    assert HttpApi.of(api.text()).text() == api.text()
    assert HttpApi.of("") == HttpApi()


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_every_preset_can_be_used_as_it_is(preset: str) -> None:
    api = declared({"routes": {"submit": "POST /jobs"}}, preset=preset)
    assert api.routes.submit == "POST /jobs"


def test_what_the_presets_say() -> None:
    azure, ogc, draft = (declared(preset=name) for name in ("azure", "ogc", "idempotency-key"))
    assert azure.key is not None
    assert (azure.key.header, azure.statuses.meaning("canceled")) == ("Operation-Id", Meaning.CANCELLED)
    assert (ogc.respond_async, ogc.cancel_is_evidence, ogc.fields.id) == (True, True, "/jobID")
    assert draft.key is not None
    assert (draft.key.header, draft.key.quoted, draft.key.reused_statuses) == ("Idempotency-Key", True, [422])


# -- what follows ------------------------------------------------------------------------------------------------------


def test_words_mean_the_same_in_any_case_and_unknown_ones_mean_nothing() -> None:
    statuses = declared(preset="azure").statuses
    assert [statuses.meaning(word) for word in ("Succeeded", "SUCCEEDED", "PartialFailed", "", None)] == [
        Meaning.COMPLETED,
        Meaning.COMPLETED,
        None,
        None,
        None,
    ]


def test_the_profile_follows_the_declaration() -> None:
    bare = HttpApi().of_profile(Http202.profile)
    assert (bare.lookup, bare.can_cancel, bare.result_separate, bare.cancel_is_evidence) == (
        Lookup.NONE,
        False,
        False,
        False,
    )
    whole = declared(dict(JOBS), preset="ogc").of_profile(Http202.profile)
    assert (whole.lookup, whole.can_cancel, whole.result_separate, whole.cancel_is_evidence) == (
        Lookup.BY_KEY,
        True,
        True,
        True,
    )
    aip = presets.declared("aip-151", None, {}).of_profile(Aip151.profile)
    assert (aip.can_cancel, aip.result_separate) == (True, False)


@pytest.mark.parametrize(
    ("path", "url", "id_"),
    [
        ("/jobs/{id}", "http://h/api/jobs/7", "7"),
        ("/jobs/{id}", "http://h/api/jobs/a%2Fb?v=1", "a/b"),
        ("/jobs/{id}", "http://h/api/jobs/7/result", None),
        ("/jobs/{id}", "http://h/jobs/7", None),
        ("/jobs/{id}?v=1", "http://h/api/jobs/7?v=1", "7"),
        ("/jobs/{id}?v=1", "http://h/api/jobs/7?v=2", None),
        ("/v1/{name}", "http://h/api/v1/operations/7", "operations/7"),
    ],
)
def test_a_url_that_a_server_hands_out_names_the_id_where_the_route_has_it(
    path: str, url: str, id_: str | None
) -> None:
    assert Route("GET", path).id_in("http://h/api/", url) == id_
