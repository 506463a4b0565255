"""What a policy means for a call, in words."""

from pathlib import Path

import pytest

from counterfoil.console.probe import Tool
from counterfoil.console.words import age, tool_words
from counterfoil.workers.targets import load_targets

TARGET = "targets:\n  reports:\n    url: http://127.0.0.1:9/mcp\n    protocol: {protocol}\n"


def words(folder: Path, *settings: str, protocol: str = "mcp-2026-07-28") -> dict[str, str]:
    file = folder / "targets.yaml"
    file.write_text(TARGET.format(protocol=protocol) + "".join(f"    {line}\n" for line in settings))
    return tool_words(Tool("generate", None, None), load_targets(file)["reports"])


@pytest.mark.parametrize(
    ("settings", "lost", "again"),
    [
        (
            (),
            "Can't be looked up: no way to ask for it by its key is declared.",
            "Not once it may have arrived: nothing says",
        ),
        (
            ("lookup: {tool: counterfoil_lookup, absence: unique}",),
            "looked up by its submission key (`counterfoil_lookup`)",
            "the key makes no second operation.",
        ),
        (
            ("lookup: {tool: counterfoil_lookup, absence: closes}",),
            "looked up",
            "the server then refuses the first one",
        ),
        (
            ("lookup: {tool: counterfoil_lookup, absence: unique}", "max_attempts: 1"),
            "looked up",
            "`max_attempts` is 1.",
        ),
        (("lookup: {tool: counterfoil_lookup, absence: bounded}",), "looked up", "your own risk, and no proof."),
        (("lookup: {tool: counterfoil_lookup}",), "looked up", "proves nothing, and asks a person."),
        (("lookup: {replay: true, key_lifetime_s: 3600}",), "found by sending it again", "remembers a key for 1 h."),
    ],
    ids=["none", "unique", "closes", "once", "bounded", "no proof", "replay"],
)
def test_a_lost_submit_is_told_as_the_policy_has_it(
    tmp_path: Path, settings: tuple[str, ...], lost: str, again: str
) -> None:
    told = words(tmp_path, *settings)
    assert lost in told["lost_submit"]
    assert again in told["sent_again"]


def test_a_person_is_needed_less_where_a_lookup_proves_something(tmp_path: Path) -> None:
    assert "answer to a submit is lost" in words(tmp_path)["person"]
    assert "not found by its key" in words(tmp_path, "lookup: {tool: counterfoil_lookup}")["person"]
    for proof in ("{tool: counterfoil_lookup, absence: unique}", "{replay: true}"):
        assert "submit" not in words(tmp_path, f"lookup: {proof}")["person"]


def test_a_tool_without_effects_may_close_itself(tmp_path: Path) -> None:
    told = words(tmp_path, "effects: false", "on_unknown: abandon", "on_unknown_after_s: 600")["person"]
    assert told.endswith("Nobody speaks within 10 min: it is closed as abandoned.")


def test_a_server_that_has_the_lookup_tool_is_told_to_be_declared(tmp_path: Path) -> None:
    words(tmp_path)
    target = load_targets(tmp_path / "targets.yaml")["reports"]
    said = tool_words(Tool("generate", None, None), target, keyed=True)
    assert "the server has the tool counterfoil_lookup" in said["lost_submit"]
    assert "`lookup: {tool: counterfoil_lookup, absence: unique}`" in said["declare"]


@pytest.mark.parametrize(
    ("protocol", "settings", "said"),
    [
        ("mcp-2025-11-25", (), "`cancel_stops: true`, if a cancel stops the work"),
        ("mcp-sync", (), "`sync_bound_s`, the longest that it takes"),
        ("a2a-1.0", (), "`lookup: {tool: ListTasks}`, if the server's owner says"),
        ("a2a-1.0", ("lookup: {tool: ListTasks}",), "`absence` beside the lookup"),
        ("http-202", ("routes: {submit: POST /jobs}",), "`key`, how a submission key travels"),
        ("http-202", ("routes: {submit: POST /jobs}",), "`routes.cancel`, if it can be cancelled."),
        ("http-202", ("preset: idempotency-key",), "`lookup: {replay: true}`, if a repeat of the key"),
        ("aip-151", ("routes: {submit: POST /r}", "key: {body: requestId}"), "`lookup: {replay: true}`"),
    ],
)
def test_what_only_an_operator_can_say_is_asked_for(
    tmp_path: Path, protocol: str, settings: tuple[str, ...], said: str
) -> None:
    assert said in words(tmp_path, *settings, protocol=protocol)["declare"]


def test_where_everything_is_declared_nothing_is_asked_for(tmp_path: Path) -> None:
    settings = ("preset: plain", "routes: {submit: POST /j, status: 'GET /j/{id}', cancel: 'DELETE /j/{id}'}")
    keyed = (*settings, "key: {header: Idempotency-Key}", "lookup: {replay: true}")
    assert "declare" in words(tmp_path, *settings, protocol="http-202")
    assert "declare" not in words(tmp_path, *keyed, protocol="http-202")


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("mcp-2026-07-28", "A reply that is lost is sent again: "),
        ("mcp-2025-11-25", "only where a reading shows that the question is still open"),
        ("a2a-1.0", "A reply that is lost is not sent again: "),
        ("mcp-sync", "Can't ask any"),
        ("aip-151", "Can't ask any"),
    ],
)
def test_whether_a_tool_asks_people_and_what_becomes_of_a_lost_reply_is_told(
    tmp_path: Path, protocol: str, said: str
) -> None:
    assert said in words(tmp_path, protocol=protocol)["questions"]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.4, "0 s"),
        (119.4, "119 s"),
        (120, "2 min"),
        (3601, "60 min"),
        (7200, "2 h"),
        (172_799, "47 h"),
        (172_800, "2 d"),
    ],
)
def test_a_measured_duration_is_told_in_the_coarsest_unit_that_says_something(seconds: float, told: str) -> None:
    assert age(seconds) == told
