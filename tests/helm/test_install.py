"""A release from its first install to its end: with hooks and, for tools that run none, without."""

import json
import socket

import helm_python
import httpx
import pytest

from counterfoil.ledger.client import Client

from .conftest import Count, Release, two_groups

ODD = "$(JOB_NAME) & $$5 'quoted' <ö>"
"""What a shell, Kubernetes or JSON might each read otherwise."""


def one_synthetic_call(release: Release) -> None:
    """Its first pod is lost after the receipt has come, so another one runs in the same Job: it finds the operation and
    its receipt, and the server has heard of one call, whose argument is as it was written."""
    release.kubelet.fail_after_success = {"counterfoil-synthetic-29666880"}
    assert release.run_now("counterfoil-synthetic", "counterfoil-synthetic-29666880") == 2, release.kubelet.logs()
    client = Client(release.fleet.database_url, namespace="synthetic")
    (operation,) = client.operations()
    receipt = client.receipt(operation.call_node_id)
    client.close()
    assert receipt is not None
    assert (operation.call_node_id, receipt.outcome) == ("counterfoil-synthetic-29666880", "succeeded")
    shown = [pod.log for pod in release.kubelet.gone if "-synthetic-" in pod.name]
    assert [str(receipt.id) in log for log in shown] == [True, True]
    assert [line["node"] for line in release.server.lines() if line["on"] == "tools/call"] == [ODD]


def test_a_release_is_installed_tested_from_inside_makes_one_synthetic_call_a_job_and_is_taken_away_whole(
    release: Release, count: Count
) -> None:
    """Every probe is content with a fleet that is well, and the exporter reads the ledger. `helm test` is `counterfoil
    doctor` in a pod of the release: of these tests' server it has one thing to say, that fsync is off, and fails by it.
    Afterwards nothing is left but what hooks made, which Helm leaves for its logs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    call = {"target": "tools", "tool": "work", "arguments": {"secs": 0, "node": ODD}, "withinSeconds": 30}
    values = two_groups(release.server.url, 1, exporter={"port": port}, synthetic={"enabled": True, **call})
    release.install(values)
    release.rolled_out()
    probes = [
        (pod, name) for pod in release.kubelet.pods for name in ("startupProbe", "readinessProbe", "livenessProbe")
    ]
    assert len(probes) == 12
    assert {f"{pod.name} {name}": told for pod, name in probes if (told := release.kubelet.probe(pod, name))} == {}
    metrics = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    assert "counterfoil_ledger_up 1.0" in metrics
    with pytest.raises(helm_python.errors.HelmReleaseError, match="pod counterfoil-doctor failed"):
        release.helm.test("counterfoil", timeout=60)
    (doctor,) = [pod for pod in release.kubelet.gone if pod.name.endswith("-doctor")]
    assert "speaks mcp-2026-07-28" in doctor.log
    failed = [line.split(maxsplit=2)[1:] for line in doctor.log.splitlines() if line.startswith("FAIL")]
    assert failed == [["durability", "fsync is off."]]
    one_synthetic_call(release)
    release.helm.uninstall("counterfoil", timeout=60)
    left = {key.name for key in release.cluster.objects if key.plural != "secrets"}
    assert left == {"counterfoil-release", "counterfoil-doctor"}
    release.fleet.until("every process has ended", lambda: release.kubelet.pods == [], 60)
    assert {code for pod in release.kubelet.gone if pod.group for code in pod.exits} == {0}
    count(releases=1)


def test_without_hooks_pods_wait_for_the_job_and_going_back_raises_the_epoch(release: Release, count: Count) -> None:
    """Argo CD and Flux apply all at once, and go back by applying older values: the Job's name changes with what it
    does, and a worker joins neither an older schema nor another generation, whatever comes first."""

    def apply(generation: int) -> tuple[int, int]:
        values = two_groups(release.server.url, generation, jobs={"hooks": False}, beat={"replicas": 0})
        (release.upgrade if release.helm.list() else release.install)(values)
        release.rolled_out()
        shown = json.loads(release.fleet.say("epoch", "show", "-o", "json"))
        return shown["generation"], shown["epoch"]

    assert apply(1) == (1, 2)
    exits = {code for pod in release.kubelet.pods for code in pod.exits}
    assert exits <= {9, 75}, "no schema yet; no generation yet"
    assert [apply(2), apply(1)] == [(2, 3), (1, 4)]
    assert len({uid for _, uid, code in release.kubelet.jobs if code == 0}) == 3
    nodes = release.fleet.submit(5, secs=0)
    release.fleet.until("all have receipts", lambda: len(release.fleet.receipts(nodes)) == 5, 30)
    count(releases=1)
