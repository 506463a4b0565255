"""`check`, `targets …` and `try` against servers that are not ours: fastmcp, and the official SDK."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from counterfoil.tests.adapters.kit_peer import running
from counterfoil.workers.targets import load_targets

from .check_page import counterfoil, hold_in_step

SCRIPTS = Path(__file__).resolve().parents[1] / "adapters"


@pytest.fixture(scope="session")
def fastmcp() -> Iterator[str]:
    """With its tasks extension: wait, boom, ask as tasks, plain at once."""
    with running(SCRIPTS / "fastmcp_server.py") as endpoint:
        yield endpoint.url


@pytest.fixture(scope="session")
def sdk() -> Iterator[str]:
    """mcp 2.3 without tasks: add, boom, slow."""
    with running(SCRIPTS / "sync_server.py") as endpoint:
        yield endpoint.url


# -- check and targets -------------------------------------------------------------------------------------------------


def test_the_words_about_fastmcp_are_those_of_the_page(fastmcp: str, tmp_path: Path) -> None:
    hold_in_step("fastmcp", fastmcp, tmp_path)


def test_the_words_about_the_official_sdk_are_those_of_the_page(sdk: str, tmp_path: Path) -> None:
    hold_in_step("sdk", sdk, tmp_path)


def test_what_targets_add_writes_passes_targets_check(fastmcp: str, sdk: str, tmp_path: Path) -> None:
    for arguments in (("tasks", fastmcp), ("blocking", sdk, "--sync-bound-s", "30")):
        assert counterfoil("targets", "add", *arguments, cwd=tmp_path).returncode == 0
    targets = load_targets(tmp_path / "targets.yaml")
    assert {name: targets[name].protocol for name in targets.names} == {
        "tasks": "mcp-2026-07-28",
        "blocking": "mcp-sync",
    }
    assert counterfoil("targets", "check", cwd=tmp_path).returncode == 0


# -- try ---------------------------------------------------------------------------------------------------------------


def test_try_exits_by_the_outcome_and_needs_a_bound_for_a_call_that_blocks(
    sdk: str, database: str, tmp_path: Path
) -> None:
    settings = {"DATABASE_URL": database, "KEYS": Fernet.generate_key().decode()}
    unbound = counterfoil("try", sdk, "add", '{"a": 1, "b": 2}', cwd=tmp_path, **settings)
    assert (unbound.returncode, unbound.stdout) == (1, "")
    assert "Give --sync-bound-s" in unbound.stderr
    bound = ("--sync-bound-s", "20", "-o", "json")
    added = counterfoil("try", sdk, "add", '{"a": 1, "b": 2}', *bound, cwd=tmp_path, **settings)
    receipt = json.loads(added.stdout.splitlines()[-1])
    assert (added.returncode, receipt["outcome"], receipt["result"]) == (0, "succeeded", {"sum": 3})
    assert (receipt["namespace"], receipt["protocol"]) == ("try", "mcp-sync")
    failed = counterfoil("try", sdk, "boom", "{}", *bound, cwd=tmp_path, **settings)
    assert (failed.returncode, json.loads(failed.stdout.splitlines()[-1])["error_code"]) == (4, "E_TOOL_ERROR")
    refused = counterfoil("try", sdk, "add", '{"a": "one"}', *bound, cwd=tmp_path, **settings)
    assert (refused.returncode, json.loads(refused.stdout.splitlines()[-1])["outcome"]) == (8, "refused")


def test_try_starts_the_stack_where_it_is_not_up_and_shows_the_life_of_a_task_with_its_receipt(
    fastmcp: str, tmp_path: Path
) -> None:
    try:
        first = counterfoil("try", fastmcp, "wait", "{}", cwd=tmp_path)
        assert first.returncode == 0, first.stderr
        assert "starting the development stack in .counterfoil" in first.stderr
        assert "SUBMITTING -> WORKING (submit)" in first.stdout
        assert "FETCHING_RESULT -> ACCEPTED" in first.stdout
        assert 'result         {"rows": 3}\n' in first.stdout
        again = counterfoil("try", fastmcp, "plain", "{}", cwd=tmp_path)
        assert (again.returncode, "starting" in again.stderr) == (0, False)
        listed = counterfoil("list", "-n", "try", "-o", "json", cwd=tmp_path)
        assert [json.loads(line)["outcome"] for line in listed.stdout.splitlines()] == ["succeeded"] * 2
    finally:
        assert counterfoil("dev", "reset", "--yes", cwd=tmp_path).returncode == 0


def test_try_sends_nothing_to_a_server_that_has_no_such_tool(fastmcp: str, tmp_path: Path) -> None:
    told = counterfoil("try", fastmcp, "wiat", "{}", cwd=tmp_path)
    assert (told.returncode, told.stderr.partition(":")[0]) == (1, "E_TOOL_UNKNOWN")
    assert "Near names: wait" in told.stderr
    assert list(tmp_path.iterdir()) == []
