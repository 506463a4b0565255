"""Some hundred value sets: what the schema takes renders to objects that Kubernetes takes, and that are as they should
be; what is misspelt, unsafe or at odds is refused in words."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import helm_python
import psycopg
import pytest
import yaml

from counterfoil.console.exits import OUTCOMES, Exit
from counterfoil.ledger.states import QUEUES
from counterfoil.workers.settings import Settings
from counterfoil.workers.targets import load_targets

from . import table
from .conftest import Count
from .rendered import (
    PodOf,
    Rendered,
    against_each_other,
    against_the_restricted_profile,
    against_the_schemas,
    due_rows,
    ways_out,
)
from .valuesets import CONTRADICTIONS, TARGETS, good, spoiled

GOOD = 160
MINIMAL = {"targets": TARGETS[0]}


@pytest.fixture(scope="module")
def chart() -> Iterator[helm_python.Chart]:
    with helm_python.Chart.load(table.CHART) as found:
        yield found


def test_every_good_value_set_makes_what_kubernetes_takes_and_no_pod_may_more_than_it_must(
    chart: helm_python.Chart, tmp_path: Path, count: Count
) -> None:
    pods = objects = 0
    for number, values in enumerate(good(GOOD)):
        chart.validate_schema(values)
        rendered = Rendered.of(chart, values, is_upgrade=bool(number % 2))
        wrong = [*against_the_schemas(rendered), *against_each_other(rendered)]
        for pod in rendered.pods:
            wrong += [f"{pod.where}: {each}" for each in against_the_restricted_profile(pod)]
        assert wrong == [], values
        judge_workers(rendered, chart.merge_values(values))
        judge_ways_out(rendered, values)
        judge_files(rendered, values, tmp_path)
        pods, objects = pods + len(rendered.pods), objects + len(rendered.objects)
        if number % 40 == 39:
            print(f"{number + 1} of {GOOD} value sets rendered", flush=True)
    count(value_sets=GOOD, objects_judged=objects, pods_judged=pods)


def workers_of(rendered: Rendered) -> list[PodOf]:
    return [pod for pod in rendered.pods if pod.component.startswith("worker-")]


def judge_workers(rendered: Rendered, values: dict[str, Any]) -> None:
    """Every lane is served, by workers that name their generation and are given time to bring home what is out."""
    workers, served, processes = workers_of(rendered), set(), 0
    scaled = rendered.kind("HorizontalPodAutoscaler") | rendered.kind("ScaledObject")
    for pod in workers:
        arguments = pod.spec["containers"][0]["args"]
        assert [arguments[0], arguments[1], arguments[3]] == ["worker", "--lanes", "--concurrency"]
        served |= set(arguments[2].split(","))
        own = pod.environ()
        assert own["COUNTERFOIL_GENERATION"] == str(values["execution"]["generation"])
        stop_s = pod.spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert pod.spec["terminationGracePeriodSeconds"] == stop_s + int(own["COUNTERFOIL_STOP_GRACE_S"]) + 15
        most = scaled.get(pod.maker["metadata"]["name"])
        spec = pod.maker["spec"] if most is None else most["spec"]
        pods = spec.get("replicas") or spec.get("maxReplicas") or spec["maxReplicaCount"]
        assert pods >= 1
        processes += pods * int(arguments[4])
    assert served == set(QUEUES)
    settings = next(iter(one["data"] for name, one in rendered.kind("ConfigMap").items() if name.endswith("-settings")))
    if "local_share" not in values["settings"]:
        assert math.isclose(float(settings["COUNTERFOIL_LOCAL_SHARE"]), 1 / processes, abs_tol=1e-6)


def judge_ways_out(rendered: Rendered, values: dict[str, Any]) -> None:
    """Nobody gets out but where the component has business."""
    if not values["networkPolicy"]["enabled"]:
        assert rendered.kind("NetworkPolicy") == {}
        return
    for pod in rendered.pods:
        business = {"dns"} | ({"database"} if pod.component != "beat" else set())
        if pod.component in ("beat", "doctor") or pod.component.startswith("worker-"):
            business.add("broker")
        if pod.component == "doctor" or pod.component.startswith("worker-"):
            business.add("targets")
        if "COUNTERFOIL_WEBHOOKS_FILE" in pod.environ() and pod.component != "doctor":
            business.add("webhooks")
        if values["networkPolicy"]["egress"]["telemetry"] and pod.component.startswith(("worker-", "hooks")):
            business.add("telemetry")
        assert ways_out(rendered, pod) == business, pod.where


def judge_files(rendered: Rendered, values: dict[str, Any], folder: Path) -> None:
    """The files and settings are ones that a worker takes."""
    for name, one in rendered.kind("ConfigMap").items():
        if name.endswith("-targets"):
            path = folder / "targets.yaml"
            path.write_text(one["data"]["targets.yaml"])
            assert set(load_targets(path).names) == set(values["targets"]["entries"])
        elif name.endswith("-settings"):
            given = {key.removeprefix("COUNTERFOIL_").lower(): value for key, value in one["data"].items()}
            Settings.load(**given)


def test_what_is_misspelt_unsafe_or_out_of_bounds_is_refused_by_the_schema(
    chart: helm_python.Chart, count: Count
) -> None:
    chart.validate_schema(MINIMAL)
    taken = []
    for what, values in spoiled():
        try:
            chart.validate_schema(values)
        except helm_python.HelmValuesError:
            continue
        taken.append(what)
    assert taken == []
    count(value_sets=len(list(spoiled())))


@pytest.mark.parametrize("words", sorted(CONTRADICTIONS))
def test_what_is_at_odds_is_refused_in_words(chart: helm_python.Chart, words: str, count: Count) -> None:
    with pytest.raises(helm_python.HelmError) as refused:
        chart.render(MINIMAL | CONTRADICTIONS[words], name="fleet")
    assert words in str(refused.value)
    count(value_sets=1)


SYNTHETIC = {"enabled": True, "target": "reports", "tool": "ping", "arguments": {"text": "$(HOME) costs $5"}}


def test_the_synthetic_call_has_its_call_node_from_the_job_and_comes_again_only_where_it_has_no_answer(
    chart: helm_python.Chart,
) -> None:
    """Pods of one Job ask for one call node, so for one operation. `$$` is how Kubernetes is told a `$`."""
    rendered = Rendered.of(chart, MINIMAL | {"synthetic": SYNTHETIC | {"withinSeconds": 45}})
    ((name, cron_job),) = rendered.kind("CronJob").items()
    assert name == "fleet-counterfoil-synthetic"
    (pod,) = [pod for pod in rendered.pods if pod.maker is cron_job]
    (container,) = pod.containers
    told = ["--call-node", "$(JOB_NAME)", "--namespace", "synthetic", "--wait", "--timeout", "45"]
    assert container["args"] == ["submit", "reports", "ping", '{"text":"$$(HOME) costs $$5"}', *told]
    (node,) = [one for one in container["env"] if one["name"] == "JOB_NAME"]
    assert node["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}}
    assert cron_job["spec"]["concurrencyPolicy"] == "Forbid"
    job = cron_job["spec"]["jobTemplate"]["spec"]
    assert job["activeDeadlineSeconds"] == 45 + 120
    (rule,) = job["podFailurePolicy"]["rules"]
    answers = {Exit.USAGE, Exit.STILL_RUNNING, *OUTCOMES.values()} - {Exit.OK}
    assert rule["onExitCodes"]["values"] == sorted(answers)
    assert (rule["action"], rule["onExitCodes"]["containerName"]) == ("FailJob", container["name"])
    assert ways_out(rendered, pod) == {"dns", "database"}


def test_the_alert_of_the_synthetic_call_is_there_with_it_and_asks_for_its_cron_job(chart: helm_python.Chart) -> None:
    values = MINIMAL | {"fullnameOverride": "fleet-a", "monitoring": {"rules": {"enabled": True}}}

    def rules(values: dict[str, Any]) -> dict[str, str]:
        (made,) = Rendered.of(chart, values).kind("PrometheusRule").values()
        return {rule["alert"]: rule["expr"] for group in made["spec"]["groups"] for rule in group["rules"]}

    without, with_it = rules(values), rules(values | {"synthetic": SYNTHETIC})
    assert with_it.keys() - without.keys() == {"CounterfoilSyntheticCall"}
    assert without.keys() < with_it.keys()
    asked = with_it["CounterfoilSyntheticCall"]
    assert asked.count("kube_cronjob_") == asked.count('{cronjob="fleet-a-synthetic"}') == 6


def test_the_chart_lints_without_a_warning() -> None:
    found = helm_python.lint(table.CHART, MINIMAL, strict=True, kube_version="v1.33.0")
    assert found["errors"] == []
    assert [one for one in found["messages"] if one["severity"] > 1] == []


def test_no_object_of_the_schema_takes_keys_that_it_does_not_name() -> None:
    """But maps of names (labels, groups) and what Kubernetes or targets.yaml defines."""
    theirs = {"targets.entries", "affinity", "global", "tolerations[]", "extraEnv[].valueFrom"}

    def loose(of: dict[str, Any], path: str) -> Iterator[str]:
        if of.get("type") == "object" and "additionalProperties" not in of:
            yield path
        for name, one in of.get("properties", {}).items():
            yield from loose(one, f"{path}.{name}".strip("."))
        if isinstance(of.get("additionalProperties"), dict):
            yield from loose(of["additionalProperties"], f"{path}.*")
        if isinstance(of.get("items"), dict):
            yield from loose(of["items"], f"{path}[]")

    selectors = ("[].ipBlock", "[].namespaceSelector", "[].podSelector")
    found = {path for path in loose(table.schema(), "") if not path.endswith(selectors)}
    assert found == theirs


def test_the_table_of_values_and_the_settings_are_in_step() -> None:
    assert table.README.read_text() == table.readme(), "run: python -m counterfoil.tests.helm.table"
    assert table.SCHEMA.read_text() == table.written(table.schema()), "run: python -m counterfoil.tests.helm.table"
    assert [path for path, _, means in table.rows() if not means] == []


def test_every_default_has_a_place_in_the_schema_and_every_place_a_default() -> None:
    defaults = yaml.safe_load((table.CHART / "values.yaml").read_text())

    def compare(of: dict[str, Any], given: Any, path: str) -> Iterator[str]:
        if "properties" not in of or path == "settings" or path.endswith("resources"):
            return
        for name in of["properties"].keys() ^ given.keys():
            yield f"{path}.{name}".strip(".")
        for name in of["properties"].keys() & given.keys():
            yield from compare(of["properties"][name], given[name], f"{path}.{name}".strip("."))

    assert set(compare(table.schema(), defaults, "")) == {"global"}


def test_the_question_that_scales_counts_rows_that_wait_and_nothing_else(
    chart: helm_python.Chart, database: str
) -> None:
    """Asked as the scaler asks: by a plain connection that takes no role. A row counts when it is due and nobody holds
    it, of these lanes, of a target that is open."""
    query = due_rows(chart)
    with psycopg.connect(database.replace("postgresql+psycopg://", "postgresql://"), autocommit=True) as ledger:

        def waiting() -> int:
            row = ledger.execute(query.encode()).fetchone()
            assert row is not None
            return int(row[0])

        assert waiting() == 0
        ledger.execute("SET ROLE counterfoil_owner")
        ledger.execute(
            "INSERT INTO counterfoil.target_state (fleet, target, protocol, closed_until) VALUES ('main', 'open', 'p',"
            " NULL), ('main', 'shut', 'p', counterfoil.ledger_now() + interval '1 hour')"
        )
        for lane, target, due_s in (("poll", "open", -1), ("fetch", "open", 0), ("poll", "open", 60)):
            add_wake(ledger, lane, target, due_s)
        add_wake(ledger, "submit", "open", -1)
        add_wake(ledger, "poll", "shut", -1)
        ledger.execute("RESET ROLE")
        assert waiting() == 2


def add_wake(ledger: "psycopg.Connection[Any]", lane: str, target: str, due_s: float) -> None:
    ledger.execute(
        "INSERT INTO counterfoil.wake (operation_id, lane, fleet, target, due_at) VALUES (gen_random_uuid(), %s,"
        " 'main', %s, counterfoil.ledger_now() + make_interval(secs => %s))",
        (lane, target, due_s),
    )
