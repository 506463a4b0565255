"""Alerts and dashboard: each rests on metrics that there are, fires when it should, and says what to do."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from counterfoil.ledger.gauges import Reading
from counterfoil.workers.metrics import FAMILIES, Counts

ROOT = Path(__file__).parents[2]
RULES, CASES = ROOT / "helm" / "files" / "alerts.yaml", Path(__file__).with_name("alerts.test.yaml")
PAGES = ROOT / "docs" / "operate" / "runbooks"
PROMTOOL = shutil.which("promtool")
METRIC = re.compile(r"\bcounterfoil_[a-z0-9_]+")


def read(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text())


ALERTS = {rule["alert"]: rule for group in read(RULES)["groups"] for rule in group["rules"]}


def made() -> set[str]:
    """The names of all series that the exporter can make."""
    counts = Counts()
    counts.add(Reading())
    names = {"counterfoil_ledger_up", "counterfoil_read_seconds", "counterfoil_read_failed"}
    names |= {f"counterfoil_{family.name}" for family in FAMILIES}
    for metric in counts.metrics():
        suffixes = ("_bucket", "_sum", "_count") if metric.type == "histogram" else ("_total",)
        names |= {metric.name + suffix for suffix in suffixes}
    return names


@pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not here, SO NO ALERT WAS TRIED: install Debian's `prometheus`"
)
def test_each_alert_fires_when_it_should_and_is_silent_when_all_is_well() -> None:
    assert PROMTOOL is not None
    for arguments in (("check", "rules", RULES), ("test", "rules", CASES)):
        tried = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)
        assert tried.returncode == 0, tried.stdout + tried.stderr


def test_each_alert_is_tried_firing_and_silent() -> None:
    tried: dict[str, set[bool]] = {name: set() for name in ALERTS}
    for case in read(CASES)["tests"]:
        for check in case["alert_rule_test"]:
            tried[check["alertname"]].add(bool(check["exp_alerts"]))
    assert [name for name, outcomes in tried.items() if outcomes != {True, False}] == []


@pytest.mark.parametrize("name", ALERTS)
def test_each_alert_says_how_bad_it_is_and_has_a_page_that_says_what_to_do(name: str) -> None:
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert rule["annotations"]["summary"]
    page = ROOT / rule["annotations"]["runbook"]
    assert page == PAGES / f"{name}.md"
    text = page.read_text()
    assert text.startswith(f"# {name}\n")
    positions = [text.find(part) for part in ("**What it means.**", "**How to look.**", "**What to do.**")]
    assert -1 not in positions
    assert positions == sorted(positions)


def test_there_is_no_page_without_its_alert() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == set(ALERTS)


def test_alerts_and_dashboard_ask_for_nothing_that_is_not_there() -> None:
    dashboard = json.loads((ROOT / "helm" / "files" / "dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [rule["expr"] for rule in ALERTS.values()]
    assert {name for query in asked for name in METRIC.findall(query)} - made() == set()


def test_no_two_panels_lie_on_each_other() -> None:
    dashboard = json.loads((ROOT / "helm" / "files" / "dashboard.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
