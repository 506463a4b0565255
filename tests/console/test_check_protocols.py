"""`check URL` recognises what speaks there; `targets check NAME` tells the same of what has to be declared or named.

Whatever is asked, nothing is ever submitted: the servers' own books stay empty.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from counterfoil.adapters import registry
from counterfoil.console import demo_protocols
from counterfoil.console.check_view import EXAMPLE
from counterfoil.console.demo_apis import ApisServer
from counterfoil.console.targets_file import snippet
from counterfoil.tests.examples.conftest import installed
from counterfoil.tests.examples.responses_server import MODEL, Responses
from counterfoil.tests.examples.responses_server import serving as responses_serving
from counterfoil.workers.targets import load_targets

from .apis import serving
from .conftest import Ended, Run
from .mcp_server import Answer
from .mcp_server import serving as http_serving

__all__ = ["installed"]

LOOKUP = "routes: {submit: POST /jobs, status: 'GET /jobs/{id}', lookup: 'GET /jobs?key={key}'}"
KEYED = f"preset: plain, {LOOKUP}, key: {{header: Idempotency-Key}}, lookup: {{absence: unique}}"


@pytest.fixture
def run(cli_in: Callable[..., Run]) -> Run:
    return cli_in()


@pytest.fixture
def apis() -> Iterator[ApisServer]:
    with serving() as (server, book):
        yield server
        assert book.getvalue() == "", "a check submitted something"


def words(told: Ended) -> str:
    return " ".join(told.out.split())


def write(folder: Path, url: str, protocol: str, settings: str = "") -> None:
    entry = f"url: '{url}', protocol: {protocol}{', ' if settings else ''}{settings}"
    (folder / "targets.yaml").write_text(f"targets:\n  it: {{{entry}}}\n")


# -- recognising -------------------------------------------------------------------------------------------------------


def test_an_agent_card_makes_it_an_a2a_agent(run: Run, apis: ApisServer) -> None:
    told = run("check", f"{apis.url}/agent")
    assert told.code == 0
    assert "a2a-1.0 yes, 1 of 1 tools, proposed" in words(told)
    assert told.out.endswith(f"    url: {apis.url}/agent\n    protocol: a2a-1.0\n")


def test_the_root_of_an_agents_host_is_not_the_agent_and_its_url_is_named(run: Run, apis: ApisServer) -> None:
    told = run("check", apis.url, "--json")
    found = json.loads(told.out)
    assert (told.code, found["error"]["code"]) == (1, "E_NOT_MCP")
    assert f"its card names {apis.url}/agent; give that URL" in found["error"]["message"]


def test_where_mcp_is_spoken_nobody_looks_for_a_card(run: Run, apis: ApisServer) -> None:
    found = json.loads(run("check", f"{apis.url}/mcp", "--json").out)
    assert [attempt["protocol"] for attempt in found["protocols"]] == list(registry.MCP)
    assert found["proposed"] == "mcp-2025-11-25"


def test_a_card_is_found_although_everything_else_wants_a_credential(run: Run) -> None:
    """The card of an agent is public where its interface is not."""
    with serving() as (server, _):
        card = server.say("GET", "/.well-known/agent-card.json", {}, {})[1]

    def locked(method: str, _message: object) -> Answer:
        if method != "GET":
            return 401, {"WWW-Authenticate": "Bearer"}, b""
        return 200, {"Content-Type": "application/json"}, json.dumps(card).encode()

    with http_serving(locked) as agent:
        assert json.loads(run("check", agent.url, "--json").out)["proposed"] == "a2a-1.0"


def test_anything_else_is_told_how_an_http_api_is_declared(run: Run, tmp_path: Path) -> None:
    with http_serving(lambda _method, _message: (200, {"Content-Type": "text/html"}, b"<html>")) as server:
        told = run("check", server.url)
    assert told.code == 1
    assert "no agent card was found" in told.err
    assert "An HTTP API can't be asked what it offers" in told.out
    entry = snippet("my-server", {"url": server.url, **EXAMPLE})
    assert told.out.endswith(entry)
    (tmp_path / "targets.yaml").write_text(entry)
    policy = load_targets(tmp_path / "targets.yaml")["my-server"].policy("generate_report")
    assert (policy.lookup, policy.absence, policy.can_cancel) == ("by_key", "unique", True)


@pytest.mark.parametrize("protocol", registry.DECLARED)
def test_a_declared_protocol_that_is_named_without_its_declaration_says_what_is_missing(
    run: Run, apis: ApisServer, protocol: str
) -> None:
    told = run("check", apis.url, "--protocol", protocol)
    assert told.code == 1
    assert "declares no way to submit any tool" in words(told)
    assert "Such an entry could be:" in told.out


# -- declared APIs -----------------------------------------------------------------------------------------------------


def test_every_protocol_of_this_release_is_told_in_words_against_a_live_server(
    run: Run, apis: ApisServer, tmp_path: Path
) -> None:
    targets = json.loads(demo_protocols.targets_text(demo_protocols.PROTOCOLS, apis.server_port, apis.server_port))
    del targets["targets"]["mcp-2026-07-28"]  # a server of that version: tests/peers
    (tmp_path / "targets.yaml").write_text(json.dumps(targets))
    for protocol in targets["targets"]:
        told = run("targets", "check", protocol)
        assert (told.code, told.err) == (0, ""), protocol
        for label in ("lost submit", "sent again", "cancel", "questions", "a person"):
            assert f"\n  {label}" in told.out, protocol


def test_a_declared_api_is_asked_for_work_and_for_a_key_that_nobody_made(
    run: Run, apis: ApisServer, tmp_path: Path
) -> None:
    write(tmp_path, apis.url, "http-202", KEYED)
    told = run("targets", "check", "it")
    assert told.code == 0
    assert "It knows no work of an id that nobody made (HTTP 404)." in words(told)
    assert "Its lookup finds nothing under a key that nobody sent." in words(told)


def said(status: int, value: object) -> Callable[[str, object], Answer]:
    return lambda _method, _message: (status, {"Content-Type": "application/json"}, json.dumps(value).encode())


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (said(200, {"status": "succeeded"}), "E_CAPABILITY_UNSUPPORTED: HTTP 200 for an id that nobody made"),
        (said(200, "<html>"), "E_CAPABILITY_UNSUPPORTED: HTTP 200 for an id that nobody made"),
        (said(404, {}), "E_CAPABILITY_UNSUPPORTED: Its lookup does not say that nothing is there"),
        (said(401, {}), "E_AUTH: It refuses the credential, or wants one (HTTP 401)."),
        (said(403, {}), "E_AUTH: "),
        (said(503, {}), "E_UNREACHABLE: It answers HTTP 503."),
        (said(429, {}), "E_UNREACHABLE: "),
    ],
    ids=["knows everything", "a page", "no such route", "401", "403", "503", "429"],
)
def test_what_answers_other_than_declared_is_a_problem_that_exits_1(
    run: Run, tmp_path: Path, answer: Callable[[str, object], Answer], problem: str
) -> None:
    with http_serving(answer) as server:
        write(tmp_path, server.url, "http-202", KEYED)
        told = run("targets", "check", "-o", "json")
    assert told.code == 1
    assert json.loads(told.out)["problems"][0].startswith(problem)


def test_a_lookup_that_finds_what_nobody_sent_would_take_another_call_for_its_own(run: Run, tmp_path: Path) -> None:
    """The status is as declared, and the list ignores its filter."""

    def answer(_method: str, _message: object) -> Answer:
        asked.append(1)
        first = len(asked) == 1
        return said(404, {})("", {}) if first else said(200, {"jobs": [{"id": "j-1", "status": "running"}]})("", {})

    asked: list[int] = []
    with http_serving(answer) as server:
        write(tmp_path, server.url, "http-202", KEYED)
        told = run("targets", "check", "-o", "json")
    assert (told.code, len(asked)) == (1, 2)
    assert "finds work under a key that nobody sent" in json.loads(told.out)["problems"][0]


def test_a_lookup_that_closes_its_key_is_not_tried_since_it_would_leave_something_behind(
    run: Run, tmp_path: Path
) -> None:
    with http_serving(said(404, {})) as server:
        write(tmp_path, server.url, "http-202", KEYED.replace("unique", "closes"))
        assert run("targets", "check").code == 0
    assert server.asked == ["GET"]


def test_an_api_whose_server_hands_out_its_places_can_not_be_asked_beforehand(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "http://127.0.0.1:1", "http-202", "preset: azure, routes: {submit: POST /jobs}")
    told = run("targets", "check", "it")
    assert (told.code, "Nothing of it can be asked before the first call." in words(told)) == (0, True)


def test_an_api_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "http://127.0.0.1:1", "aip-151", "routes: {submit: POST /v1/r}")
    told = run("targets", "check", "it")
    assert (told.code, told.err.startswith("E_UNREACHABLE: ")) == (1, True)


def test_a_target_that_the_file_does_not_have_is_bad_input(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "http://127.0.0.1:1", "mcp-sync", "sync_bound_s: 9")
    told = run("targets", "check", "its")
    assert (told.code, told.err.partition(":")[0], "Did you mean it?" in told.err) == (2, "E_TARGET_UNKNOWN", True)


# -- an adapter of another package -------------------------------------------------------------------------------------


@pytest.fixture
def responses() -> Iterator[Responses]:
    with responses_serving() as api:
        yield api
        assert api.count("POST /v1/responses") == 0, "a check submitted something"


def test_a_third_partys_protocol_is_told_by_its_own_adapter(run: Run, responses: Responses, tmp_path: Path) -> None:
    write(tmp_path, responses.url, "openai-responses", f"tools: {{{MODEL}: {{}}}}")
    told = run("targets", "check", "it")
    assert told.code == 0
    assert "openai-responses yes, 1 of 1 tools" in words(told)
    assert "Its answer is the end of the task." in words(told)
    assert "Can't ask any" in told.out


def test_a_server_that_lists_no_tools_is_judged_by_those_that_are_named(
    run: Run, responses: Responses, tmp_path: Path
) -> None:
    write(tmp_path, responses.url, "openai-responses")
    unnamed = run("targets", "check", "it")
    assert (unnamed.code, "it doesn't say which tools it has: name one" in words(unnamed)) == (0, True)
    assert run("targets", "add", "more", responses.url, "--protocol", "openai-responses").code == 0
    bare = run("check", responses.url, "--protocol", "openai-responses")
    assert (bare.code, "name one" in words(bare)) == (1, True)
    asked = ("check", responses.url, "--protocol", "openai-responses", "--tool")
    assert run(*asked, MODEL).code == 0
    wrong = run(*asked, "gpt-0")
    assert (wrong.code, "offers this credential no model gpt-0" in words(wrong)) == (1, True)
    write(tmp_path, responses.url, "openai-responses", "tools: {gpt-0: {}}")
    assert run("targets", "check", "it").err.startswith("E_TOOL_UNKNOWN: gpt-0: it offers this credential no model")


def test_a_third_partys_adapter_is_tried_only_where_it_is_named(run: Run, responses: Responses) -> None:
    """It might take any server for its own: a 404 for a model is what every web server says."""
    told = run("check", responses.url, "--json")
    assert told.code == 1
    assert "openai-responses" not in {attempt["protocol"] for attempt in json.loads(told.out)["protocols"]}
