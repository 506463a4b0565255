"""`counterfoil targets …`: a file that people keep by hand, and a program that adds to it."""

import json
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from counterfoil.adapters.http_api import Key, Places, Routes, Statuses
from counterfoil.console.targets_file import add_target
from counterfoil.workers.target_entries import (
    Credentials,
    LookupEntry,
    Overrides,
    Poll,
    Shares,
    TargetEntry,
    TargetsFile,
    ToolEntry,
)
from counterfoil.workers.target_keys import all_keys
from counterfoil.workers.targets import load_targets

from .conftest import Run
from .mcp_server import Served, mcp_2025, serving, tool

TASKS = {"execution": {"taskSupport": "optional"}}
BY_HAND = """\
---
# our servers
targets:
    reports:   # the monthly ones
        url: "http://127.0.0.1:1/mcp"   # local
        protocol: 'mcp-2026-07-28'
        tools: {generate_report: {effects: false}}

        # nothing below yet
    other: {url: http://h/mcp, protocol: mcp-sync, sync_bound_s: 1.50}
# the end
"""
ENTRY = {"url": "http://h/mcp", "protocol": "mcp-sync"}


@pytest.fixture
def run(cli_in: Callable[..., Run]) -> Run:
    return cli_in()


# -- add ---------------------------------------------------------------------------------------------------------------


def test_add_pins_the_protocol_that_was_negotiated_and_writes_what_was_given(run: Run, tmp_path: Path) -> None:
    with serving(mcp_2025(tool("report", **TASKS), tasks=True)) as server:
        told = run("targets", "add", "reports", server.url, "--qps", "2")
    assert told.code == 0
    reports = load_targets(tmp_path / "targets.yaml")["reports"]
    assert (reports.protocol, reports.endpoint().url, reports.limit.qps) == ("mcp-2025-11-25", server.url, 2)
    assert "restart those that run" in told.err


def test_add_leaves_what_people_wrote_as_it_is(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "our.yaml"
    file.write_text(BY_HAND)
    file.chmod(0o640)
    with serving(mcp_2025(tool("add"))) as server:
        assert run("targets", "add", "sheets", server.url, "--sync-bound-s", "90", "--file", file).code == 0
    added = f"    sheets:\n        url: {server.url}\n        protocol: mcp-sync\n        sync_bound_s: 90.0\n"
    assert file.read_text() == BY_HAND.replace("# the end\n", f"{added}# the end\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["our.yaml"]


def test_add_says_that_a_blocking_tool_is_refused_without_its_bound(run: Run) -> None:
    with serving(mcp_2025(tool("add"))) as server:
        told = run("targets", "add", "sheets", server.url)
    assert told.code == 0
    assert "publishes no sync bound" in told.err


@pytest.mark.parametrize(("name", "code"), [("other", "E_TARGET_EXISTS"), ("o ther", "E_TARGET_INVALID")])
def test_add_refuses_a_name_before_it_asks_the_server(run: Run, tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "targets.yaml").write_text(BY_HAND)
    with serving(mcp_2025(tool("add"))) as server:
        told = run("targets", "add", name, server.url)
    assert (told.code, told.err.partition(":")[0], server.asked) == (2, code, [])
    assert (tmp_path / "targets.yaml").read_text() == BY_HAND


def test_add_writes_nothing_for_a_server_that_is_none(run: Run, tmp_path: Path) -> None:
    with serving(lambda _method, _message: (200, {}, b"hello")) as server:
        told = run("targets", "add", "reports", server.url)
    assert (told.code, told.err.partition(":")[0]) == (1, "E_NOT_MCP")
    with serving(mcp_2025()) as server:
        told = run("targets", "add", "reports", server.url)
    assert (told.code, "offers none" in told.err) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_add_refuses_a_file_with_faults_and_a_folder_that_is_not_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "targets.yaml").write_text("targets:\n\ta: 1\n")
    told = run("targets", "add", "reports", "http://127.0.0.1:1/mcp")
    assert (told.code, "targets.yaml:2: a tab" in told.err) == (2, True)
    told = run("targets", "add", "reports", "http://127.0.0.1:1/mcp", "--file", tmp_path / "none" / "targets.yaml")
    assert (told.code, "there is no folder" in told.err) == (2, True)


def test_two_that_add_at_the_same_time_both_get_in(tmp_path: Path) -> None:
    file = tmp_path / "targets.yaml"
    adding = [threading.Thread(target=add_target, args=(file, f"t{number}", ENTRY)) for number in range(8)]
    for thread in adding:
        thread.start()
    for thread in adding:
        thread.join()
    assert sorted(load_targets(file).names) == [f"t{number}" for number in range(8)]


def test_a_link_to_the_file_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text(BY_HAND)
    link = tmp_path / "targets.yaml"
    link.symlink_to("real.yaml")
    add_target(link, "new", ENTRY)
    assert link.is_symlink()
    assert "new" in load_targets(tmp_path / "real.yaml")


# -- check and list ----------------------------------------------------------------------------------------------------


def file_of(folder: Path, server: Served, *more: str) -> None:
    lines = (f"  sheets: {{url: '{server.url}', protocol: mcp-sync, sync_bound_s: 9}}", *more)
    (folder / "targets.yaml").write_text("\n".join(("targets:", *lines, "")))


def test_check_negotiates_with_each_target_and_exits_1_if_one_fails(run: Run, tmp_path: Path) -> None:
    with serving(mcp_2025(tool("add"))) as server:
        file_of(tmp_path, server)
        assert run("targets", "check").code == 0
        file_of(tmp_path, server, "  gone: {url: 'http://127.0.0.1:1/mcp', protocol: mcp-sync}")
        told = run("targets", "check", "--file", "targets.yaml", "-o", "json")
    assert told.code == 1
    sheets, gone = map(json.loads, told.out.splitlines())
    assert sheets == {"target": "sheets", "protocol": "mcp-sync", "tools": 1, "problems": []}
    assert gone["problems"][0].startswith("E_UNREACHABLE: ")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("protocol: mcp-sync", "E_CAPABILITY_UNSUPPORTED: t publishes no sync bound"),
        ("protocol: mcp-2025-11-25", "E_CAPABILITY_UNSUPPORTED: no tool of it can be called"),
        ("protocol: mcp-sync, sync_bound_s: 9, tools: {ad: {}}", "E_TOOL_UNKNOWN: the server offers no tool ad"),
        ("protocol: mcp-sync, sync_bound_s: 9, tools: {bad: {}}", "E_SCHEMA_INVALID: bad: "),
        (
            "protocol: mcp-sync, sync_bound_s: 9, tools: {add: {require_lookup: true}}",
            "E_CAPABILITY_UNSUPPORTED: t offers no lookup",
        ),
    ],
)
def test_check_finds_what_would_refuse_every_call(run: Run, tmp_path: Path, entry: str, problem: str) -> None:
    with serving(mcp_2025(tool("add"), tool("bad", inputSchema={"type": 1}))) as server:
        (tmp_path / "targets.yaml").write_text(f"targets:\n  t: {{url: '{server.url}', {entry}}}\n")
        told = run("targets", "check", "-o", "json")
    assert told.code == 1
    assert json.loads(told.out)["problems"][0].startswith(problem)


def test_an_operators_own_output_schema_counts_instead_of_one_that_is_none(run: Run, tmp_path: Path) -> None:
    with serving(mcp_2025(tool("add", outputSchema={"type": 1}))) as server:
        file_of(tmp_path, server)
        assert run("targets", "check").code == 1
        own = "tools: {add: {output_schema: {type: object}}}"
        text = f"targets:\n  t: {{url: '{server.url}', protocol: mcp-sync, sync_bound_s: 9, {own}}}\n"
        (tmp_path / "targets.yaml").write_text(text)
        assert run("targets", "check").code == 0


def test_check_tells_faults_with_their_lines_before_it_asks_anybody(run: Run, tmp_path: Path) -> None:
    (tmp_path / "targets.yaml").write_text("targets:\n  a:\n    url: http://h/mcp\n    protocl: mcp-sync\n")
    told = run("targets", "check")
    assert (told.code, told.err.partition(":")[0]) == (2, "E_TARGETS")
    assert "targets.yaml:4: targets.a.protocl: there is no such setting; did you mean protocol?" in told.err


def test_list_shows_what_the_file_says_and_no_secret_is_in_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "targets.yaml").write_text(BY_HAND)
    assert "generate_report" in run("targets", "list").out
    reports = json.loads(run("targets", "list", "-o", "json").out.splitlines()[0])
    assert (reports["target"], reports["protocol"], reports["qps"]) == ("reports", "mcp-2026-07-28", 5)


# -- explain -----------------------------------------------------------------------------------------------------------


def test_every_key_that_may_be_written_is_explained_once() -> None:
    models = (TargetsFile, TargetEntry, ToolEntry)
    written = {name for model in models for name in model.model_fields} | set(Overrides.model_fields)
    below = {"poll": Poll, "shares": Shares, "credentials": Credentials, "lookup": LookupEntry}
    below |= {"routes": Routes, "statuses": Statuses, "fields": Places, "key": Key}
    written |= {f"{name}.{child}" for name, model in below.items() for child in model.model_fields}
    names = [key.name for key in all_keys()]
    assert sorted(names) == sorted(written)
    assert [key.name for key in all_keys() if key.means[-1] not in ".?`"] == []


def test_explain_says_what_a_key_takes_and_what_it_is_without_being_written(run: Run) -> None:
    told = run("targets", "explain", "wait_budget_s").out
    assert "default  3600\n" in told
    assert "takes    a number above 0, up to 2592000\n" in told
    assert "default  by protocol\n" in run("targets", "explain", "effect_case").out
    assert run("targets", "explain", "poll").out.count("key ") == 4
    assert "sync_bound_s" in run("targets", "explain").out


@pytest.mark.parametrize(("typed", "meant"), [("wait_budget", "wait_budget_s"), ("min_s", "poll.min_s")])
def test_explain_names_the_nearest_key(run: Run, typed: str, meant: str) -> None:
    told = run("targets", "explain", typed)
    assert (told.code, f"Did you mean {meant}?" in told.err) == (2, True)


def test_check_judges_a_declared_api_by_its_declaration_and_asks_nobody(run: Run, tmp_path: Path) -> None:
    entry = (
        "{url: 'http://127.0.0.1:1', protocol: http-202, tools: {report: {routes: {submit: POST /reports}}, purge: {}}}"
    )
    (tmp_path / "targets.yaml").write_text(f"targets:\n  jobs: {entry}\n")
    told = run("targets", "check")
    assert (
        told.code,
        "E_CAPABILITY_UNSUPPORTED: purge: jobs declares no way to submit purge" in told.out + told.err,
    ) == (
        1,
        True,
    )
    (tmp_path / "targets.yaml").write_text(f"targets:\n  jobs: {entry.replace(', purge: {}', '')}\n")
    told = run("targets", "check")
    assert (told.code, "E_" in told.out + told.err) == (0, False)
