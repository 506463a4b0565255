"""Rolling restarts under load: `RESTARTS=10` (100 by `make drills`)."""

import os
import threading
from collections import Counter

import psycopg

from counterfoil.ledger.client import Call, Client

from .conftest import Count, Release, two_groups

RESTARTS = int(os.environ.get("RESTARTS", "10"))
PAUSE_S = 0.25
"""Between two calls that are handed in: four a second, each answered after half a second, so that a SIGTERM always
meets some that are out, some that are polled, some that are fetched."""


class Load:
    """Calls, one after the other, until it is stopped."""

    def __init__(self, database_url: str) -> None:
        self.nodes: list[str] = []
        self._client = Client(database_url)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(PAUSE_S):  # real time: the load is a rate
            node = f"load-{len(self.nodes):05}"
            asked = {"node": node, "secs": 1, "answer_after_s": 0.5}
            with self._client._database.begin() as connection:
                self._client.submit_in(connection, [Call("tools", "work", asked, node)])
            self.nodes.append(node)

    def stop(self) -> list[str]:
        self._over.set()
        self._thread.join()
        self._client.close()
        return self.nodes


def test_rolling_restarts_under_load_lose_nothing_send_nothing_twice_and_ask_nobody(
    release: Release, count: Count
) -> None:
    """Each restart gives every worker a SIGTERM in the middle of its work: a submit whose answer is on its way, polls,
    results. All of it comes home inside the grace that the chart has computed, nobody is killed, no submit becomes
    unknown."""
    fleet, kubelet, server = release.fleet, release.kubelet, release.server
    release.install(two_groups(server.url, 1))
    release.rolled_out()
    load = Load(fleet.database_url)
    for number in range(RESTARTS):
        release.restart(number)
        release.rolled_out()
        if RESTARTS > 10 or number % 5 == 4:
            print(f"restart {number + 1} of {RESTARTS}: {len(load.nodes)} calls so far", flush=True)
    nodes = load.stop()
    fleet.until("all have receipts", lambda: len(fleet.receipts(nodes)) == len(nodes), 60)
    assert Counter(one.outcome for one in fleet.receipts(nodes)) == {"succeeded": len(nodes)}
    assert (len(server.created()), server.second_submits()) == (len(nodes), 0)
    assert kubelet.killed == []
    ended = [pod for pod in kubelet.gone if pod.group]
    assert len(ended) == 2 * RESTARTS
    assert {code for pod in ended for code in pod.exits} == {0}
    with psycopg.connect(fleet.database_url.replace("postgresql+psycopg://", "postgresql://")) as ledger:
        ledger.execute("SET ROLE counterfoil_owner")
        for query in (
            "SELECT count(*) FROM counterfoil.reconciliation_case",
            "SELECT count(*) FROM counterfoil.journal WHERE target = 'SUBMISSION_UNKNOWN'",
        ):
            assert ledger.execute(query.encode()).fetchone() == (0,), query
    assert fleet.say("orphans").strip() == "0"
    count(rolling_restarts=RESTARTS, pods_restarted=len(ended), calls_under_restarts=len(nodes))
