"""Targets whose servers can't be asked: what may be written of their APIs, and what a policy pins of it."""

import json
from pathlib import Path

import pytest

from counterfoil.workers.targets import Targets, TargetsError, load_targets

JOBS = """\
targets:
  jobs:
    url: http://127.0.0.1:1
    protocol: http-202
    preset: plain
    key: {header: Idempotency-Key}
    routes: {status: "GET /jobs/{id}", cancel: "DELETE /jobs/{id}"}
    tools:
      report:
        routes: {submit: POST /reports, result: "GET /jobs/{id}/result"}
        lookup: {replay: true, key_lifetime_s: 600}
      purge:
        routes: {submit: POST /purge, lookup: "GET /jobs?key={key}", cancel: null}
"""


def load(tmp_path: Path, text: str) -> Targets:
    file = tmp_path / "targets.yaml"
    file.write_text(text)
    return load_targets(file)


def faults(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(TargetsError) as raised:
        load(tmp_path, text)
    return [problem.partition("targets.yaml:")[2] for problem in raised.value.problems]


def test_a_policy_pins_what_was_declared_and_what_follows_from_it(tmp_path: Path) -> None:
    jobs = load(tmp_path, JOBS)["jobs"]
    report, purge, other = (jobs.policy(tool) for tool in ("report", "purge", "other"))
    assert (report.lookup, report.key_lifetime_s, report.result_separate, report.can_cancel) == (
        "replay",
        600,
        True,
        True,
    )
    assert (purge.lookup, purge.absence, purge.key_lifetime_s) == ("by_key", None, 86_400)
    assert (other.lookup, other.result_separate) == ("none", False)
    assert json.loads(report.api)["routes"]["submit"] == "POST /reports"
    assert json.loads(other.api)["routes"]["submit"] is None
    assert report.digest() != purge.digest()


def test_an_id_that_the_client_chose_is_a_lookup_of_its_own_kind(tmp_path: Path) -> None:
    text = JOBS.replace('"GET /jobs?key={key}"', '"GET /jobs/{key}"').replace(
        "cancel: null}", "cancel: null}\n        lookup: {absence: unique, key_lifetime_s: 60}"
    )
    purge = load(tmp_path, text)["jobs"].policy("purge")
    assert (purge.lookup, purge.asks_by_key, purge.absence) == ("client_chosen_id", True, "unique")


def test_require_lookup_takes_a_declared_route_for_one(tmp_path: Path) -> None:
    jobs = load(tmp_path, JOBS.replace("preset: plain", "preset: plain\n    require_lookup: true"))["jobs"]
    assert [jobs.objection(tool) is None for tool in ("report", "purge", "other")] == [True, True, False]


def test_where_the_answer_to_a_cancel_ends_the_work_somebody_looks_after_it(tmp_path: Path) -> None:
    """A dismissed OGC job was seen to run on."""
    text = "targets: {ogc: {url: 'http://127.0.0.1:1', protocol: http-202, preset: ogc}}"
    policy = load(tmp_path, text)["ogc"].policy("slow")
    assert (policy.cancel_is_evidence, policy.effect_case) == (True, "always")


def test_aip_151_has_the_routes_of_its_protocol(tmp_path: Path) -> None:
    text = "targets: {aip: {url: 'http://127.0.0.1:1', protocol: aip-151, routes: {submit: 'POST /v1/x:run'}}}"
    aip = load(tmp_path, text)["aip"]
    assert json.loads(aip.policy("x").api)["routes"]["cancel"] == "POST /v1/{name}:cancel"
    assert aip.policy("x").can_cancel


def entry(protocol: str, *lines: str) -> str:
    head = f"targets:\n  t:\n    url: http://127.0.0.1:1\n    protocol: {protocol}\n"
    return head + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            entry("mcp-sync", "sync_bound_s: 5", "routes: {submit: POST /x}"),
            "6: targets.t.routes: is not for mcp-sync.",
        ),
        (entry("aip-151", "statuses: {failed: [x]}"), "5: targets.t.statuses: is not for aip-151."),
        (
            entry("mcp-2026-07-28", "lookup: {absence: unique}"),
            "5: targets.t.lookup: names one way: `tool: NAME`, or `replay: true`.",
        ),
        (
            entry("http-202", "lookup: {tool: find}"),
            "5: targets.t.lookup: can't name a tool: http-202 has none. Declare `routes.lookup`, or `replay: true`.",
        ),
        (
            entry("http-202", "lookup: {absence: unique}"),
            "5: targets.t.lookup: needs a way: `routes.lookup`, or `replay: true`.",
        ),
        (
            entry("http-202", "lookup: {replay: true}"),
            "5: targets.t.lookup: finds nothing unless the submission key travels: declare `key`.",
        ),
        (
            entry("http-202", 'routes: {status: "GET /j/{id}", lookup: "GET /j?k={key}"}'),
            "5: targets.t.routes: has a lookup, which finds nothing unless the submission key travels: declare `key`.",
        ),
        (
            entry(
                "http-202",
                "key: {body: k}",
                "lookup: {replay: true}",
                'routes: {status: "GET /j/{id}", lookup: "GET /j?k={key}"}',
            ),
            "6: targets.t.lookup: names one way: `replay: true`, or `routes.lookup`.",
        ),
        (
            entry("http-202", "rejections: [500]"),
            "5: targets.t.rejections: holds only statuses from 400 to 501, and not 401, 408 or 500.",
        ),
        (
            entry("http-202", "routes: {sumbit: POST /x}"),
            "5: targets.t.routes.sumbit: there is no such setting; did you mean submit?",
        ),
        (
            entry("http-202", 'routes: {cancel: "POST /j/{id}"}'),
            "5: targets.t.routes: needs `status` beside `result`, `cancel` or `lookup`: its id names the work.",
        ),
    ],
)
def test_what_can_not_be_meant_is_told_with_its_line(tmp_path: Path, text: str, fault: str) -> None:
    assert faults(tmp_path, text) == [fault]
