"""The targets file: what it means, and every fault with its line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters.profile import Profile
from counterfoil.adapters.registry import PROTOCOLS, adapter
from counterfoil.ledger.policy import Policy
from counterfoil.workers.target_entries import NO_POLICY, Overrides
from counterfoil.workers.target_keys import all_keys, find
from counterfoil.workers.targets import Targets, TargetsError, UnknownTarget, load_targets

PROTOCOL = "mcp-2026-07-28"
TWO = f"""\
targets:
  reports:
    url: http://127.0.0.1:8765/mcp
    protocol: {PROTOCOL}
    credentials: env:REPORTS_TOKEN
    qps: 4
    burst: 8
    shares: {{cancel: 0.2, submit: 0.1, fetch: 0}}
    allow_private: true
    not_processed_statuses: [503]
    max_response_bytes: 2097152
    poll: {{min_s: 2, max_s: 60}}
    wait_budget_s: 1800
    on_budget: cancel
    tools:
      generate_report:
        wait_budget_s: 7200
        effects: false
        poll: {{max_s: 90}}
        output_schema: {{type: object, required: [month]}}
  uploads:
    url: https://uploads.example/mcp
    protocol: {PROTOCOL}
    credentials:
      default: file:/run/token
      principals: {{alice: 'exec:["vault", "read"]'}}
"""


def load(folder: Path, text: str | bytes) -> Targets:
    file = folder / "targets.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_targets(file)


def faults(folder: Path, text: str | bytes) -> list[str]:
    with pytest.raises(TargetsError) as raised:
        load(folder, text)
    assert raised.value.code == "E_TARGETS"
    return [problem.removeprefix(f"{folder}/targets.yaml:") for problem in raised.value.problems]


def target_with(*lines: str) -> str:
    head = ("targets:", "  reports:", "    url: http://127.0.0.1/mcp", f"    protocol: {PROTOCOL}")
    return "\n".join((*head, *(f"    {line}" for line in lines)))


def test_a_target_has_its_endpoint_its_limit_and_its_credentials(tmp_path: Path) -> None:
    targets = load(tmp_path, TWO)
    assert targets.names == ("reports", "uploads")
    assert "reports" in targets
    reports, uploads = targets["reports"], targets["uploads"]
    endpoint = reports.endpoint()
    assert (endpoint.name, endpoint.url) == ("reports", "http://127.0.0.1:8765/mcp")
    assert (endpoint.max_response_bytes, endpoint.not_processed_statuses) == (2097152, frozenset({503}))
    limit = targets.limits["reports"]
    assert (limit.qps, limit.burst, limit.shares["cancel"], limit.shares["fetch"]) == (4, 8, 0.2, 0)
    assert (reports.allow_private, uploads.allow_private) == (True, False)
    assert reports.credential_for("anybody") == "env:REPORTS_TOKEN"
    assert uploads.credential_for("alice") == 'exec:["vault", "read"]'
    assert uploads.credential_for("bob") == "file:/run/token"


def test_a_tools_policy_is_the_targets_defaults_with_its_own_settings_on_top(tmp_path: Path) -> None:
    reports = load(tmp_path, TWO)["reports"]
    own, other = reports.policy("generate_report"), reports.policy("any_other")
    assert (own.wait_budget_s, own.effects, own.on_budget) == (7200, False, "cancel")
    assert (own.poll_min_s, own.poll_max_s, own.poll_default_s) == (2, 90, 5)
    assert (other.wait_budget_s, other.effects, other.poll_max_s) == (1800, True, 60)
    assert own.url == "http://127.0.0.1:8765/mcp"
    assert own.credential == "env:REPORTS_TOKEN"
    assert reports.output_schema("generate_report") == b'{"required":["month"],"type":"object"}'
    assert reports.output_schema("any_other") is None


def test_a_policy_pins_the_credential_of_its_principal(tmp_path: Path) -> None:
    uploads = load(tmp_path, TWO)["uploads"]
    assert uploads.policy("put", "alice").credential == 'exec:["vault", "read"]'
    assert uploads.policy("put", "bob").credential == "file:/run/token"


def test_what_the_protocol_promises_comes_from_its_profile(tmp_path: Path) -> None:
    policy = load(tmp_path, target_with())["reports"].policy("tool")
    profile: Profile = adapter(PROTOCOL).profile
    assert policy.protocol == PROTOCOL
    assert policy.cancel_is_evidence == profile.cancel_is_evidence
    assert policy.result_separate == profile.result_separate
    assert (policy.lookup, policy.absence) == (profile.lookup, profile.absence)
    assert policy.settle_s == profile.settle_s


def test_an_operator_may_set_every_field_of_a_policy_that_is_no_promise_of_the_protocol() -> None:
    promises = {"protocol", "cancel_is_evidence", "result_separate", "sync", "reply_replay"}
    of_lookup = {"lookup", "lookup_tool", "absence", "bounded_allowed", "key_lifetime_s"}
    filled_in = {"url", "credential", "api"}
    poll = {"poll_min_s", "poll_max_s", "poll_default_s"}
    assert Overrides.model_fields.keys() - NO_POLICY == (
        Policy.model_fields.keys() - promises - of_lookup - filled_in - poll
    )


def test_no_setting_makes_a_protocol_cancel_what_it_can_not(tmp_path: Path) -> None:
    assert load(tmp_path, target_with("can_cancel: false"))["reports"].policy("tool").can_cancel is False


def test_an_unknown_target_is_an_error_that_names_the_nearest(tmp_path: Path) -> None:
    targets = load(tmp_path, TWO)
    assert targets.near("report") == ["reports"]
    with pytest.raises(UnknownTarget, match=r"E_TARGET_UNKNOWN: no target 'report'.*Did you mean reports\?"):
        targets["report"]


def test_every_fault_is_told_with_its_line(tmp_path: Path) -> None:
    text = """\
targets:
  reports:
    url: ftp://127.0.0.1/mcp
    protocol: mcp-2026-07-29
    qps: "5"
    qsp: 5
    on_budget: never
    poll: {defalt_s: 1}
    tools:
      generate_report:
        efects: false
        output_schema: {type: 12}
  empty:
  slow: {url: "http://127.0.0.1/", protocol: mcp-2026-07-28, wait_budget_s: -5}
tragets: 1
"""
    spoken = ", ".join(PROTOCOLS)
    unknown_protocol = f"No adapter for protocol 'mcp-2026-07-29'. Did you mean '{PROTOCOL}'? There is: {spoken}"
    no_type = "the value is not valid under any of the schemas listed in the 'anyOf' keyword"
    assert faults(tmp_path, text) == [
        "3: targets.reports.url: must be an http:// or https:// URL.",
        f"4: targets.reports.protocol: {unknown_protocol}.",
        "5: targets.reports.qps: should be a valid number.",
        "6: targets.reports.qsp: there is no such setting; did you mean qps?",
        "7: targets.reports.on_budget: should be 'reconcile' or 'cancel'.",
        "8: targets.reports.poll.defalt_s: there is no such setting; did you mean default_s?",
        "11: targets.reports.tools.generate_report.efects: there is no such setting; did you mean effects?",
        f"12: targets.reports.tools.generate_report.output_schema: the schema can't be used, at /type: {no_type}.",
        "13: targets.empty: must be a mapping: indented lines of `key: value`.",
        "14: targets.slow.wait_budget_s: should be greater than 0.",
        "15: tragets: there is no such setting; did you mean targets?",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1: targets: is missing."),
        ("targets: {}", "1: targets: names no target."),
        ("- a", "1: the file: must be a mapping: indented lines of `key: value`."),
        ("targets:\n\t- a", "2: a tab can't indent YAML; use spaces."),
        ("targets: [", "1: the YAML can't be read: expected the node content, but found '<stream end>'."),
        ("targets: *nowhere", "1: the YAML can't be read: found undefined alias 'nowhere'."),
        ("a: 1\n---\nb: 2", "2: the YAML can't be read: but found another document."),
        (b"targets:\n  \xff: 1", "2: the text is not UTF-8."),
        ("\0", "1: the file is not YAML: it holds control characters or is nested too deep."),
        (f"a: {'[' * 90}{']' * 90}", "1: the file has more than 20000 parts, or is nested too deep."),
        (target_with("1: 2"), "5: a key must be a word; put it in quotes if it is meant as one."),
        (target_with("qps: !!python/name:os.system x"), "5: tags (!…) are not read."),
        (target_with("qps: 5", "qps: 6"), "6: targets.reports.qps stands here a second time (first on line 5)."),
        (target_with("qps: .inf"), "5: targets.reports.qps: should be a finite number."),
        (target_with("burst: " + "9" * 5000), "5: this number can't be read."),
        (target_with("shares: {cancel: 0.5, submit: 0.5}"), "5: targets.reports.shares: add up to more than 0.9"),
        (target_with("send_by_s: 30", "answer_by_s: 10"), "6: targets.reports.answer_by_s: send_by_s (30) must not"),
        (target_with("poll: {min_s: 9, max_s: 3}"), "5: targets.reports.poll.min_s: poll_min_s (9) must not be above"),
        (target_with("max_response_bytes: 2000"), "5: targets.reports.max_response_bytes: max_result_bytes (1048576)"),
        (target_with("not_processed_statuses: [200]"), "5: targets.reports.not_processed_statuses: holds only"),
        ("targets: {'a b': {url: 'http://h/', protocol: mcp-2026-07-28}}", "1: 'a b': a name has letters, digits"),
        ("targets: {a: {command: [npx, server]}}", "1: targets.a: `command:` starts a server over stdio"),
    ],
)  # fmt: skip
def test_a_fault_is_told_in_words(tmp_path: Path, text: str | bytes, expected: str) -> None:
    assert any(fault.startswith(expected) for fault in faults(tmp_path, text)), faults(tmp_path, text)


@pytest.mark.parametrize(
    "url",
    ["//h/", "http://", "http:///x", "http://h:0/", "http://h:99999/", "http://[h/", "http://h /", "http://h/#f", "http://hé/",
     "http://u:hunter2@h/", "file:///etc/passwd"],
)  # fmt: skip
def test_a_url_that_can_not_be_called_is_refused_without_repeating_it(tmp_path: Path, url: str) -> None:
    text = f"targets: {{a: {{url: '{url}', protocol: {PROTOCOL}}}}}"
    (fault,) = faults(tmp_path, text)
    assert fault.startswith("1: targets.a.url: ")
    assert "hunter2" not in fault


@pytest.mark.parametrize(
    "reference", ["hunter2", "'env:'", "'exec:hunter2'", "'exec:[]'", "'exec:[\"a\", 5]'", "{principals: {a: hunter2}}"]
)
def test_a_token_in_the_place_of_a_reference_is_refused_and_not_repeated(tmp_path: Path, reference: str) -> None:
    (fault,) = faults(tmp_path, target_with(f"credentials: {reference}"))
    assert fault.startswith("5: targets.reports.credentials: name where the token is, never the token")
    assert "hunter2" not in fault


@pytest.mark.parametrize("text", ["&a [*a]", "a: &a [*a, *a]"])
def test_an_alias_loop_ends(tmp_path: Path, text: str) -> None:
    assert any("more than 20000 parts" in fault for fault in faults(tmp_path, text))


def test_aliases_that_multiply_are_stopped(tmp_path: Path) -> None:
    laughs = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))
    assert faults(tmp_path, f"a0: &a0 [x]\n{laughs}")[0].endswith("more than 20000 parts, or is nested too deep.")


def test_an_alias_shares_settings(tmp_path: Path) -> None:
    targets = load(tmp_path, target_with("poll: &slow {min_s: 30}", "tools: {report: {poll: *slow}}"))
    assert targets["reports"].policy("report").poll_min_s == 30


def test_a_missing_file_is_an_error_with_what_to_do_next(tmp_path: Path) -> None:
    with pytest.raises(TargetsError, match=r"E_NO_TARGETS: there is no targets file .*COUNTERFOIL_TARGETS_FILE"):
        load_targets(tmp_path / "targets.yaml")
    with pytest.raises(TargetsError, match=r"E_TARGETS: the targets file .* can't be read: Is a directory"):
        load_targets(tmp_path)


@given(text=st.text(max_size=60) | st.binary(max_size=60))
def test_any_text_is_a_file_or_a_list_of_faults(tmp_path_factory: pytest.TempPathFactory, text: str | bytes) -> None:
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    assert faults(tmp_path_factory.getbasetemp(), b"targets:\n" + content)


def test_a_call_that_blocks_has_its_published_bound_as_the_bound_of_its_answer(tmp_path: Path) -> None:
    text = (
        "targets:\n  sheets:\n    url: http://127.0.0.1/mcp\n    protocol: mcp-sync\n    sync_bound_s: 90\n"
        "    tools: {slow: {sync_bound_s: 600}, quick: {sync_bound_s: 2}}\n"
    )
    sheets = load(tmp_path, text)["sheets"]
    bounds = [sheets.policy(tool).answer_by_s for tool in ("any_other", "slow", "quick")]
    assert bounds == [90, 600, sheets.policy("quick").send_by_s]
    assert sheets.policy("slow").sync
    assert sheets.objection("slow") is None


def test_a_call_that_blocks_without_a_published_bound_is_objected_to(tmp_path: Path) -> None:
    text = (
        "targets:\n  sheets:\n    url: http://127.0.0.1/mcp\n    protocol: mcp-sync\n"
        "    tools: {slow: {sync_bound_s: 600}}\n"
    )
    sheets = load(tmp_path, text)["sheets"]
    assert "publishes no sync bound" in (sheets.objection("any_other") or "")
    assert sheets.objection("slow") is None
    assert load(tmp_path, target_with())["reports"].objection("tool") is None


def test_a_tool_without_a_lookup_is_objected_to_where_one_is_required(tmp_path: Path) -> None:
    reports = load(tmp_path, target_with("require_lookup: true", "tools: {t: {require_lookup: false}}"))["reports"]
    assert "require_lookup" in (reports.objection("any_other") or "")
    assert reports.objection("t") is None


@pytest.mark.parametrize(("protocol", "foreign"), [("mcp-sync", "answer_by_s"), (PROTOCOL, "sync_bound_s")])
def test_a_bound_that_the_protocol_has_no_use_for_is_a_fault(tmp_path: Path, protocol: str, foreign: str) -> None:
    head = f"targets:\n  t:\n    url: http://h/mcp\n    protocol: {protocol}\n"
    (fault,) = faults(tmp_path, f"{head}    tools:\n      x:\n        {foreign}: 20\n")
    assert fault.startswith(f"7: targets.t.tools.x.{foreign}: is not for {protocol}")


# -- lost submits, people, cancels -----------------------------------------------------------------------------------


def test_a_declared_lookup_is_pinned_with_why_absence_counts_and_how_long_a_key_lives(tmp_path: Path) -> None:
    lines = ("lookup: {tool: counterfoil_lookup, absence: unique, key_lifetime_s: 600}", "tools: {t: {effects: false}}")
    reports = load(tmp_path, target_with(*lines))["reports"]
    for tool in ("t", "any_other"):
        policy = reports.policy(tool)
        assert (policy.lookup, policy.lookup_tool, policy.absence) == ("by_key", "counterfoil_lookup", "unique")
        assert (policy.key_lifetime_s, policy.bounded_allowed) == (600, False)
    assert policy.digest() != reports.policy("t").model_copy(update={"lookup_tool": "other"}).digest()


def test_a_tools_own_lookup_stands_in_the_place_of_the_targets(tmp_path: Path) -> None:
    lines = ("lookup: {tool: counterfoil_lookup, absence: closes}", "tools: {t: {lookup: {replay: true}}}")
    reports = load(tmp_path, target_with(*lines))["reports"]
    own, other = reports.policy("t"), reports.policy("any_other")
    assert (own.lookup, own.lookup_tool, own.absence) == ("replay", "", None)
    assert (other.lookup, other.absence, other.key_lifetime_s) == ("by_key", "closes", 86_400)


def test_that_only_time_speaks_is_allowed_by_name_alone(tmp_path: Path) -> None:
    bounded = load(tmp_path, target_with("lookup: {tool: l, absence: bounded}"))["reports"].policy("t")
    nothing = load(tmp_path, target_with("lookup: {tool: l}"))["reports"].policy("t")
    assert (bounded.absence, bounded.bounded_allowed) == ("bounded", True)
    assert (nothing.absence, nothing.bounded_allowed) == (None, False)


def test_without_a_lookup_the_protocol_has_the_word(tmp_path: Path) -> None:
    policy = load(tmp_path, target_with())["reports"].policy("t")
    assert (policy.lookup, policy.absence, policy.key_lifetime_s) == ("none", None, 0)


@pytest.mark.parametrize("lookup", ["{tool: counterfoil_lookup}", "{replay: true}"])
def test_a_declared_lookup_satisfies_the_demand_for_one(tmp_path: Path, lookup: str) -> None:
    lines = ("require_lookup: true", f"tools: {{t: {{lookup: {lookup}}}}}")
    reports = load(tmp_path, target_with(*lines))["reports"]
    assert reports.objection("t") is None
    assert "require_lookup" in (reports.objection("any_other") or "")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("lookup: {}", "lookup: names one way: `tool: NAME`, or `replay: true`."),
        ("lookup: {tool: l, replay: true}", "lookup: names one way: `tool: NAME`, or `replay: true`."),
        (
            "lookup: {replay: true, absence: unique}",
            "lookup: can't say `absence` of a replay: only a lookup by key can",
        ),
        ("lookup: {tol: l}", "lookup.tol: there is no such setting; did you mean tool?"),
        ("lookup: {tool: ''}", "lookup.tool: String should have at least 1 character."),
        ("lookup: {tool: l, absence: sure}", "lookup.absence: should be 'unique', 'closes' or 'bounded'."),
        ("lookup: {tool: l, key_lifetime_s: 0}", "lookup.key_lifetime_s: should be greater than 0."),
        ("lookup: {tool: l, key_lifetime_s: 1e9}", "lookup.key_lifetime_s: should be less than or equal to 31622400."),
        ("lookup: counterfoil_lookup", "lookup: must be a mapping: indented lines of `key: value`."),
        ("require_answer: 1", "require_answer: should be a valid boolean."),
        ("four_eyes: alice", "four_eyes: should be a valid boolean."),
        ("cancel_stops: maybe", "cancel_stops: should be a valid boolean."),
        ("audit_s: -1", "audit_s: should be greater than or equal to 0."),
        ("audit_s: 99999999", "audit_s: should be less than or equal to 2592000."),
        ("on_unknown: abandon", "on_unknown: on_unknown: abandon is for tools without effects"),
    ],
)
def test_a_fault_in_a_key_about_lost_submits_people_or_cancels_is_told_with_its_line(
    tmp_path: Path, line: str, fault: str
) -> None:
    (at_target,) = faults(tmp_path, target_with("burst: 3", line))
    assert at_target.startswith(f"6: targets.reports.{fault}"), at_target
    (at_tool,) = faults(tmp_path, target_with("tools:", "  t:", f"    {line}"))
    assert at_tool.startswith(f"7: targets.reports.tools.t.{fault}"), at_tool


def test_people_and_audits_are_policy(tmp_path: Path) -> None:
    lines = ("require_answer: true", "four_eyes: true", "audit_s: 0", "tools: {t: {four_eyes: false, audit_s: 60}}")
    reports = load(tmp_path, target_with(*lines))["reports"]
    own, other = reports.policy("t"), reports.policy("any_other")
    assert (own.require_answer, own.four_eyes, own.audit_s) == (True, False, 60)
    assert (other.require_answer, other.four_eyes, other.audit_s) == (True, True, 0)
    plain = load(tmp_path, target_with())["reports"].policy("t")
    assert (plain.require_answer, plain.four_eyes, plain.audit_s, plain.cancel_stops) == (False, False, 300, False)


@pytest.mark.parametrize(
    ("protocol", "said", "effect_case"),
    [
        ("mcp-2025-11-25", {}, "always"),
        ("mcp-2025-11-25", {"effects": "false"}, "on_evidence"),
        ("mcp-2025-11-25", {"cancel_stops": "true"}, "on_evidence"),
        ("mcp-2025-11-25", {"cancel_stops": "true", "effect_case": "always"}, "always"),
        ("mcp-2025-11-25", {"effect_case": "on_evidence"}, "on_evidence"),
        ("mcp-2026-07-28", {}, "on_evidence"),
        ("mcp-2026-07-28", {"effect_case": "always"}, "always"),
    ],
)
def test_effects_are_looked_after_by_default_where_the_answer_to_a_cancel_is_all_the_evidence(
    tmp_path: Path, protocol: str, said: dict[str, str], effect_case: str
) -> None:
    own = ", ".join(f"{key}: {value}" for key, value in said.items())
    text = f"targets:\n  t:\n    url: http://h/mcp\n    protocol: {protocol}\n    tools: {{x: {{{own}}}}}\n"
    assert load(tmp_path, text)["t"].policy("x").effect_case == effect_case


def test_every_key_about_lost_submits_people_and_cancels_is_explained() -> None:
    explained = {key.name: key for key in all_keys()}
    lookup = {f"lookup.{name}" for name in ("tool", "replay", "absence", "key_lifetime_s")}
    assert lookup | {"lookup", "require_answer", "four_eyes", "cancel_stops", "audit_s"} <= explained.keys()
    assert explained["lookup.absence"].kind == "unique or closes or bounded"
    assert (explained["lookup.key_lifetime_s"].kind, explained["lookup.key_lifetime_s"].default) == (
        "a number above 0, up to 31622400",
        "86400",
    )
    assert (explained["audit_s"].default, explained["effect_case"].default) == ("300", "by protocol")
    assert [key.name for key in find("lookup")] == ["lookup", *sorted(lookup, key=list(explained).index)]
