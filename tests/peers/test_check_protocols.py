"""docs/check.md: what is said of a live server of each protocol that the servers of other people here do not speak.

Servers of ours answer: the demo's, and the scripted one of the third party's example. The words are the same for any.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from counterfoil.tests.console.apis import serving
from counterfoil.tests.console.conftest import Run, cli_in
from counterfoil.tests.console.mcp_server import serving as http_serving
from counterfoil.tests.examples.conftest import installed
from counterfoil.tests.examples.responses_server import MODEL
from counterfoil.tests.examples.responses_server import serving as responses_serving

from .check_page import hold_words_in_step

__all__ = ["cli_in", "installed"]

DECLARED = {
    "aip-151": """\
    protocol: aip-151
    routes:
      submit: POST /v1/reports:generate
      lookup: GET /v1/operations?filter=requestId={key}
    key: {body: requestId}
    lookup: {absence: unique}
""",
    "http-202-plain": """\
    protocol: http-202
    preset: plain
    routes:
      submit: POST /jobs
      status: GET /jobs/{id}
      cancel: DELETE /jobs/{id}
      lookup: GET /jobs?key={key}
    key: {header: X-Request-Key}
    lookup: {absence: unique}
""",
    "http-202-azure": """\
    protocol: http-202
    preset: azure
    routes:
      submit: POST /jobs
      status: GET /jobs/{id}
      lookup: GET /jobs/{key}
""",
    "http-202-ogc": """\
    protocol: http-202
    preset: ogc
""",
    "http-202-idempotency-key": """\
    protocol: http-202
    preset: idempotency-key
    routes: {submit: POST /jobs}
    lookup: {replay: true, key_lifetime_s: 86400}
""",
}


@pytest.fixture
def run(cli_in: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "100")
    return cli_in()


@pytest.fixture(scope="module")
def apis() -> Iterator[str]:
    with serving() as (server, _):
        yield server.url


def told_of_target(run: Run, folder: Path, url: str, entry: str) -> tuple[str, str]:
    """What the file says, and what `targets check` says of it."""
    written = f"targets:\n  reports:\n    url: {url}\n{entry}"
    (folder / "targets.yaml").write_text(written)
    told = run("targets", "check", "reports")
    assert (told.code, told.err) == (0, "")
    return written, told.out


@pytest.mark.parametrize("name", DECLARED)
def test_the_words_about_a_declared_api_are_those_of_the_page(run: Run, apis: str, tmp_path: Path, name: str) -> None:
    written, words = told_of_target(run, tmp_path, apis, DECLARED[name])
    hold_words_in_step(name, apis, words, written)


def test_the_words_about_an_agent_are_those_of_the_page(run: Run, apis: str) -> None:
    told = run("check", f"{apis}/agent")
    assert (told.code, told.err) == (0, "")
    hold_words_in_step("a2a", apis, told.out)


def test_the_words_about_a_third_partys_protocol_are_those_of_the_page(run: Run, tmp_path: Path) -> None:
    with responses_serving() as api:
        entry = f"    protocol: openai-responses\n    tools: {{{MODEL}: {{}}}}\n"
        written, words = told_of_target(run, tmp_path, api.url, entry)
        hold_words_in_step("openai-responses", api.url, words, written)


def test_the_words_about_what_can_not_be_recognised_are_those_of_the_page(run: Run) -> None:
    with http_serving(lambda _method, _message: (404, {"Content-Type": "text/html"}, b"<html>")) as server:
        told = run("check", server.url)
        assert told.code == 1
        hold_words_in_step("unrecognised", server.url, told.out + told.err)
