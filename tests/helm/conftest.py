"""Releases of the chart by Helm itself, on an API server of ours, with the fleet as real processes.

The last line of a run says what was seen: every test adds to it by `count`.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import helm_python
import pytest

from counterfoil.tests.fleet import conftest as fleets
from counterfoil.tests.fleet.conftest import Fleet, Server, fleet_at

from .api import Cluster, Key, serving
from .kubelet import Kubelet
from .table import CHART

NAMESPACE = "tools"
NAME = "counterfoil"
READY_S = 60.0

EFFECTS, READS = ["submit", "sync"], ["poll", "lookup", "fetch", "audit", "timer", "answer", "cancel"]


def two_groups(server_url: str, generation: int, **more: Any) -> dict[str, Any]:
    """Values of a small fleet: one group has the submits, one all the rest."""
    target = {
        "url": server_url,
        "protocol": "mcp-2026-07-28",
        "qps": 2000,
        "burst": 400,
        "poll": {"min_s": 0.2},
        "send_by_s": 2,
        "credentials": "env:WHO",
    }
    groups = {"submit": None, "read": None, "people": None, "sync": None}
    return {
        "execution": {"generation": generation},
        "workers": {**groups, "effects": {"lanes": EFFECTS}, "rest": {"lanes": READS}},
        "workerDefaults": {"replicas": 1},
        "beat": {"replicas": 1},
        "exporter": {"enabled": False},
        "targets": {"entries": {"tools": target}},
        "settings": {"poll_lease_s": 5, "self_tick_s": 1},
        "preStopSeconds": 1,
        **more,
    }


@dataclass
class Release:
    """One release of the chart, with what Helm does to it."""

    cluster: Cluster
    kubelet: Kubelet
    fleet: Fleet
    server: Server
    helm: helm_python.Config
    chart: helm_python.Chart

    def install(self, values: dict[str, Any]) -> None:
        self.helm.install(self.chart, NAME, values, timeout=120)

    def upgrade(self, values: dict[str, Any]) -> None:
        self.helm.upgrade(self.chart, NAME, values, timeout=120)

    def rollback(self, revision: int) -> None:
        self.helm.rollback(NAME, version=revision, timeout=120)

    def rolled_out(self) -> None:
        """Wait until every pod is one of what was rolled out last."""
        self.fleet.until("it is rolled out", self.kubelet.settled, READY_S)

    def run_now(self, cron_job: str, name: str) -> int:
        """As `kubectl create job NAME --from=cronjob/…`, to its end. Returns how many pods of it succeeded; its
        controller takes the Job away afterwards."""
        template = self.cluster.of("cronjobs")[cron_job]["spec"]["jobTemplate"]
        key = Key("batch", "v1", "jobs", NAMESPACE, name)
        self.cluster.put(key, {"metadata": {}, "spec": template["spec"]})
        self.fleet.until("the Job is over", lambda: "status" in self.cluster.of("jobs")[name], READY_S)
        self.cluster.drop(key)
        return [code for job, _, code in self.kubelet.jobs if job == name].count(0)

    def restart(self, number: int) -> None:
        """As `kubectl rollout restart`, of all workers."""
        for name, one in self.cluster.of("deployments").items():
            if "-worker-" not in name:
                continue
            annotations = one["spec"]["template"]["metadata"]["annotations"]
            annotations["kubectl.kubernetes.io/restartedAt"] = f"restart {number}"
            self.cluster.put(Key("apps", "v1", "deployments", NAMESPACE, name), one)


@pytest.fixture
def release(empty_database: str, broker: str, server: Server, tmp_path: Path) -> Iterator[Release]:
    """Nothing is installed yet; its Secrets are there."""
    cluster = Cluster()
    urls = {"counterfoil-database": empty_database, "counterfoil-broker": broker}
    for name, url in urls.items():
        cluster.put(Key("", "v1", "secrets", NAMESPACE, name), {"metadata": {}, "stringData": {"url": url}})
    with serving(cluster) as kubeconfig, fleet_at(empty_database, server, tmp_path, broker_url=broker) as fleet:
        environ = {name: value for name, value in fleet.environ.items() if not name.startswith("COUNTERFOIL_")}
        kubelet = Kubelet(cluster, tmp_path, environ)
        try:
            with (
                helm_python.Config(
                    kubeconfig_content=kubeconfig, namespace=NAMESPACE, storage_driver="memory"
                ) as config,
                helm_python.Chart.load(CHART) as chart,
            ):
                yield Release(cluster, kubelet, fleet, server, config, chart)
        except BaseException:
            print(kubelet.logs())
            raise
        finally:
            kubelet.close()


server = fleets.server
"""The tools server, as a fixture of these tests too."""

Count = Callable[..., None]


@pytest.fixture
def count(record_property: Callable[[str, object], None]) -> Count:
    """`count(value_sets=240)` adds to the numbers of the run's last line."""

    def add(**numbers: int) -> None:
        for name, number in numbers.items():
            record_property(f"count:{name}", number)

    return add


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, so that the others run beside it."""
    long = ("test_restarts", "test_the_steps", "test_release", "test_every_good")
    items.sort(key=lambda item: next((at for at, name in enumerate(long) if name in item.nodeid), len(long)))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The numbers, when all is well and when it is not."""
    found: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, number in getattr(report, "user_properties", ()):
                if name.startswith("count:") and report.when == "call":
                    found[name.removeprefix("count:").replace("_", " ")] += number
    terminalreporter.write_line("helm: " + "; ".join(f"{name} {number}" for name, number in found.items()))
