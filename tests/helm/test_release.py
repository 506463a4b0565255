"""Install, upgrade and roll-back by Helm, with operations in flight, while workers of the old release live on; judged
by the server's log and by PostgreSQL's own order of writes."""

import json
import signal
from collections import Counter
from typing import Any

import pytest

from counterfoil.ledger.client import Call
from counterfoil.ledger.errors import CreateStopped
from counterfoil.tests.fleet.epoch_watch import Watch, watching
from counterfoil.workers.effects import OUT_MAX

from .conftest import Count, Release, two_groups
from .kubelet import Pod

WORKING, CANCELLED, SLOW = 20, 8, 15
ALL = WORKING + CANCELLED + SLOW


def hand_in(release: Release, kind: str, count: int, **arguments: object) -> list[str]:
    nodes = [f"{kind}-{number:03}" for number in range(count)]
    calls = [Call("tools", "work", {"node": node, "secs": 0, **arguments}, node) for node in nodes]
    with release.fleet.client._database.begin() as connection:
        release.fleet.client.submit_in(connection, calls)
    return nodes


def bring_in_flight(release: Release) -> None:
    """Working, cancelled but not confirmed, and calls that the server does not answer yet: ten are out, the most that
    one process has, the others were never sent."""
    fleet, server = release.fleet, release.server
    hand_in(release, "working", WORKING, held=True)
    cancelled = hand_in(release, "cancelled", CANCELLED, held=True)
    fleet.until("all have tasks", lambda: fleet.states() == {"WORKING": WORKING + CANCELLED}, 30)
    for node in cancelled:
        fleet.client.cancel(node)
    fleet.until("every cancel is sent", lambda: len(server.said("tasks/cancel")) == CANCELLED, 30)
    hand_in(release, "slow", SLOW, answer_held=True)
    out = WORKING + CANCELLED + OUT_MAX
    fleet.until("ten are out", lambda: len(server.created()) == out, 30)


def cut_off(release: Release) -> Pod:
    """The submitting pod's node is gone from sight, its calls are out, and it stands still."""
    (pod,) = release.kubelet.of("-worker-effects")
    release.kubelet.cut_off(pod)
    pod.signal(signal.SIGSTOP)
    return pod


def shown(release: Release) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(release.fleet.say("epoch", "show", "-o", "json"))
    return found


def settles(release: Release, late: Pod, watch: Watch, epoch: int) -> None:
    """The late writer goes on with the answers in its hands; everything ends, once, and nobody had to be asked."""
    fleet, server, kubelet = release.fleet, release.server, release.kubelet
    fleet.until("what was out is unknown", lambda: fleet.states().get("SUBMISSION_UNKNOWN") == OUT_MAX, 30)
    server.release()
    late.signal(signal.SIGCONT)
    assert late.process is not None
    assert late.process.wait(30) == 75, late.log
    over = {"ACCEPTED": WORKING + SLOW, "CANCELLED_ACCEPTED": CANCELLED}
    fleet.until("all have receipts", lambda: fleet.states() == over, 60)
    receipts = fleet.receipts([one.call_node_id for one in fleet.client.operations(limit=1000)])
    outcomes = Counter((receipt.call_node_id.partition("-")[0], receipt.outcome) for receipt in receipts)
    assert outcomes == {
        ("working", "succeeded"): WORKING,
        ("cancelled", "cancelled"): CANCELLED,
        ("slow", "succeeded"): SLOW,
    }
    assert {receipt.execution_epoch for receipt in receipts} == {epoch}
    assert server.second_submits() == 0
    assert watch.late_writes() == {}
    assert watch.one("SELECT count(*) FROM counterfoil.evidence WHERE epoch < %s", epoch) >= OUT_MAX
    assert watch.one("SELECT count(*) FROM counterfoil.reconciliation_case WHERE closed_at IS NULL") == 0
    assert fleet.say("orphans").strip() == "0"
    assert kubelet.killed == []


def jobs_of(release: Release, name: str) -> list[tuple[str, int]]:
    return [(uid, code) for job, uid, code in release.kubelet.jobs if job.endswith(name)]


def test_an_upgrade_that_raises_the_generation_takes_over_while_an_old_worker_holds_answers(
    release: Release, count: Count
) -> None:
    """Generation 1 has calls out when its submitting pod's node is cut off. The upgrade's hook raises the epoch before
    a pod of generation 2 exists; generation 1 is rolled away, its cut-off pod comes back late, is refused everything
    but evidence, ends, and does not come in again."""
    fleet, kubelet = release.fleet, release.kubelet
    release.install(two_groups(release.server.url, 1))
    assert (shown(release)["epoch"], shown(release)["generation"]) == (2, 1)
    release.rolled_out()
    bring_in_flight(release)
    with watching(fleet.database_url) as watch:
        late = cut_off(release)
        made_before = {pod.name for pod in kubelet.of("-effects") + kubelet.of("-rest")}
        release.upgrade(two_groups(release.server.url, 2))
        assert (shown(release)["epoch"], shown(release)["generation"]) == (3, 2)
        release.rolled_out()
        assert {pod.name for pod in kubelet.pods}.isdisjoint(made_before)
        settles(release, late, watch, 3)
        again = fleet.run("worker", "--solo", COUNTERFOIL_GENERATION="1")
        assert (again.returncode, again.stderr.partition(":")[0]) == (75, "E_GENERATION")
    release.upgrade(two_groups(release.server.url, 2))
    assert shown(release)["epoch"] == 3, "the same generation again raises nothing"
    assert [code for _, code in jobs_of(release, "-release")] == [0] * 3
    count(drills=1, operations_taken_over=ALL)


def test_a_helm_rollback_with_older_values_raises_the_epoch_once_and_the_old_release_takes_over(
    release: Release, count: Count
) -> None:
    """Generation 2 is bad. First `create: false` stops new operations, by an upgrade; then `helm rollback` goes back to
    generation 1, whose values say `create: true` and know nothing of the epoch. Its hook's pod is lost after its bump
    has committed, and comes again: one bump all the same. A worker of generation 2 that is started anew stays out."""
    fleet, kubelet, server = release.fleet, release.kubelet, release.server
    release.install(two_groups(server.url, 1))
    release.upgrade(two_groups(server.url, 2))
    release.rolled_out()
    bring_in_flight(release)
    with watching(fleet.database_url) as watch:
        release.upgrade(two_groups(server.url, 2, execution={"generation": 2, "create": False}))
        assert (shown(release)["epoch"], shown(release)["create_on"]) == (3, False)
        with pytest.raises(CreateStopped):
            fleet.client.submit("tools", "work", {}, call_node_id="too late")
        release.rolled_out()
        late = cut_off(release)
        kubelet.fail_after_success = {"counterfoil-rollback"}
        release.rollback(1)
        now = shown(release)
        assert (now["epoch"], now["generation"], now["create_on"]) == (4, 1, False)
        (first, _), (second, _) = jobs_of(release, "-rollback")
        assert first == second, "one Job, two pods"
        release.rolled_out()
        stray = fleet.run("worker", "--solo", COUNTERFOIL_GENERATION="2")
        assert (stray.returncode, stray.stderr.partition(":")[0]) == (75, "E_GENERATION")
        assert fleet.states()["SUBMITTING"] == SLOW - OUT_MAX, "what was never sent waits"
        fleet.say("create", "on", "--reason", "generation 1 is well")
        settles(release, late, watch, 4)
    count(drills=1, operations_taken_over=ALL)
