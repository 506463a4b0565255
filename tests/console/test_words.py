"""What a policy means for a call, in words."""

from pathlib import Path

import pytest

from counterfoil.console.probe import Tool
from counterfoil.console.words import tool_words
from counterfoil.workers.targets import load_targets

TARGET = "targets:\n  reports:\n    url: http://127.0.0.1:9/mcp\n    protocol: mcp-2026-07-28\n"


def words(folder: Path, *settings: str) -> dict[str, str]:
    file = folder / "targets.yaml"
    file.write_text(TARGET + "".join(f"    {line}\n" for line in settings))
    return tool_words(Tool("generate", None, None), load_targets(file)["reports"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ((), "Can't be looked up: the tool offers no key."),
        (
            ("lookup: {tool: counterfoil_lookup, absence: unique}",),
            "once more under the same key, which makes no second",
        ),
        (("lookup: {tool: counterfoil_lookup, absence: closes}",), "it refuses from then on"),
        (("lookup: {tool: counterfoil_lookup}",), "proves nothing, and asks a person."),
        (("lookup: {replay: true, key_lifetime_s: 3600}",), "remembers a key for 1 h."),
    ],
    ids=["none", "unique", "closes", "no proof", "replay"],
)
def test_a_lost_submit_is_told_as_the_policy_has_it(tmp_path: Path, settings: tuple[str, ...], said: str) -> None:
    assert said in words(tmp_path, *settings)["lost_submit"]


def test_a_person_is_needed_less_where_a_lookup_proves_something(tmp_path: Path) -> None:
    assert "answer to a submit is lost" in words(tmp_path)["person"]
    assert "not found by its key" in words(tmp_path, "lookup: {tool: counterfoil_lookup}")["person"]
    unique = words(tmp_path, "lookup: {tool: counterfoil_lookup, absence: unique}")["person"]
    assert "submit" not in unique


def test_a_tool_without_effects_may_close_itself(tmp_path: Path) -> None:
    told = words(tmp_path, "effects: false", "on_unknown: abandon", "on_unknown_after_s: 600")["person"]
    assert told.endswith("Nobody speaks within 10 min: it is closed as abandoned.")


def test_a_server_that_has_the_lookup_tool_is_told_to_be_declared(tmp_path: Path) -> None:
    words(tmp_path)
    target = load_targets(tmp_path / "targets.yaml")["reports"]
    said = tool_words(Tool("generate", None, None), target, keyed=True)["lost_submit"]
    assert "`lookup: {tool: counterfoil_lookup, absence: unique}`" in said
