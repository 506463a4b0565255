"""A database that is promoted or restored may lack what was sent: nothing is sent from it before `recover` (SPEC
section 8). On real clusters, by the server's log."""

import json
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import LiteralString
from uuid import UUID

import psycopg
import pytest

from counterfoil.ledger import epochs, migrate, recovery
from counterfoil.ledger.client import Call, Client
from counterfoil.ledger.errors import LedgerUnavailable, RecoverFirst
from counterfoil.ledger.records import Ready
from counterfoil.ledger.recovery import Recovered
from counterfoil.workers.desk import Desk
from counterfoil.workers.targets import load_targets

from .clusters import Cluster, Clusters, clusters
from .conftest import Fleet, Server, Worker, fleet_at

COUNT = 5
"""Operations of each kind."""

REFUSED = "E_RECOVER_FIRST: this database was promoted or restored since the fleet last ran; it may lack sent calls."

OPERATIONS: LiteralString = "SELECT md5(string_agg(o::text, ',' ORDER BY id)) FROM counterfoil.operation AS o"
STREAMS: LiteralString = "SELECT count(*) FROM pg_stat_replication"
REPLAYED: LiteralString = (
    "SELECT coalesce(bool_and(replay_lsn = pg_current_wal_lsn()), false) FROM pg_stat_replication"
    " WHERE state = 'streaming'"
)


@pytest.fixture
def machines() -> Iterator[Clusters]:
    # As root, PostgreSQL's account must be able to pass, which pytest's own folders don't let it.
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-drill-"))
    folder.chmod(0o755)
    try:
        with clusters(folder) as made:
            yield made
    finally:
        shutil.rmtree(folder)


@dataclass
class Failover:
    """A fleet on a primary with an asynchronous standby, and what was handed in, by kind."""

    primary: Cluster
    standby: Cluster
    fleet: Fleet
    server: Server
    old: Worker
    nodes: dict[str, list[str]] = field(default_factory=dict)

    def hand_in(self, kind: str, target: str = "tools", **arguments: object) -> None:
        nodes = [f"{kind}/{number}" for number in range(COUNT)]
        calls = [Call(target, "work", {"node": node, "secs": 0, **arguments}, node) for node in nodes]
        with self.fleet.client._database.begin() as connection:
            self.fleet.client.submit_in(connection, calls)
        self.nodes[kind] = nodes

    def of(self, *kinds: str) -> list[str]:
        return [node for kind in kinds for node in self.nodes[kind]]

    def states(self, *kinds: str) -> set[str]:
        return {self.fleet.client.get(node).state for node in self.of(*kinds)}

    def until_settled(self, nodes: list[str]) -> None:
        self.fleet.until(f"{len(nodes)} are settled", lambda: len(self.fleet.receipts(nodes)) == len(nodes), 60)

    def facts(self, nodes: list[str]) -> dict[str, tuple[UUID, str, str | None, object]]:
        receipts = self.fleet.receipts(nodes)
        return {one.call_node_id: (one.id, one.outcome, one.task_id, one.result) for one in receipts}

    def desk(self) -> Desk:
        return Desk(self.fleet.database_url, load_targets(Path(self.fleet.environ["COUNTERFOIL_TARGETS_FILE"])))

    # -- before ----------------------------------------------------------------------------------------------------

    def fill(self) -> None:
        """What the standby knows: settled, working and asking calls; intended ones, that the server does not answer
        yet; and some that nobody has sent."""
        self.hand_in("done")
        self.hand_in("working", held=True)
        self.hand_in("asking", asks=1)
        self.until_settled(self.of("done"))
        self.fleet.until("some ask", lambda: self.states("asking") == {"INPUT_REQUIRED"}, 30)
        self.hand_in("intended", answer_held=True)
        self.hand_in("looked-up", "looks", answer_held=True)
        self.fleet.until("their intents are committed", lambda: len(self.server.created()) == 5 * COUNT, 30)
        self.old.signal(signal.SIGSTOP)
        self.hand_in("unsent")
        self.hand_in("unsent-looks", "looks")
        self.fleet.until("the standby knows it all", lambda: self.primary.ask(REPLAYED), 30)

    def fall_behind(self) -> None:
        """What the standby never hears of: the rest is sent, all is answered and settled. A pause of its replay would
        not do: what was received is replayed before a promotion is through."""
        with self.standby.connect("postgres") as connection:
            connection.execute("ALTER SYSTEM SET primary_conninfo = ''")
            connection.execute("SELECT pg_reload_conf()")
        self.fleet.until("nothing is streamed", lambda: not self.primary.ask(STREAMS), 30)
        self.old.signal(signal.SIGCONT)
        self.fleet.until("the calls leave", lambda: len(self.server.created()) == 7 * COUNT, 30)
        self.server.release()
        desk = self.desk()
        (question,) = [one for one in desk.inputs() if one.call_node_id == "asking/0"]
        desk.answer(question.operation_id, question.number, "accept", {"month": "May"}, actor="ann")
        desk.close()
        self.until_settled(self.settled)

    @property
    def settled(self) -> list[str]:
        """What the primary had settled when it was lost."""
        return [*self.of("done", "working", "intended", "looked-up", "unsent", "unsent-looks"), "asking/0"]

    # -- between ---------------------------------------------------------------------------------------------------

    def everything_refuses(self) -> None:
        """Doors, a new worker and the living one; and the server is asked nothing by anybody."""
        promoted_s, client, desk = time.time(), self.fleet.client, self.desk()
        again = {"node": "unsent/0", "secs": 0}
        doors: tuple[Callable[[], object], ...] = (
            lambda: client.submit("tools", "work", {"node": "new"}, call_node_id="new"),
            lambda: client.submit("tools", "work", again, call_node_id="unsent/0"),
            lambda: client.cancel("working/0"),
            lambda: client.get("done/0"),
            client.ready,
            lambda: client.ack([UUID(int=1)]),
            desk.inputs,
            desk.cases,
            lambda: epochs.bump(client._database, "main", "drill"),
        )
        assert [refuses(door) for door in doors] == [True] * len(doors)
        desk.close()
        hasty = self.fleet.run("worker", "--solo", WHO="hasty")
        assert (hasty.returncode, hasty.stderr.splitlines()[0]) == (6, REFUSED)
        self.fleet.until("the living worker is refused", lambda: "E_RECOVER_FIRST" in self.old.log.read_text(), 30)
        assert [line for line in self.server.lines() if line["at"] > promoted_s] == []
        assert self.old.process.poll() is None

    # -- after -----------------------------------------------------------------------------------------------------

    def people_settle(self, asked: list[str]) -> None:
        """They look each call up on the server by its key, and say which task is it; and answer what is asked."""
        desk = self.desk()
        for node in asked:
            operation = self.fleet.client.get(node)
            (case,) = [one for one in operation.cases if one.closed_at is None]
            assert case.code == "E_SUBMISSION_UNKNOWN"
            (task,) = self.server.created()[str(operation.submission_key)]
            version = desk.case(case.id).version
            desk.settle(case.id, "bind", actor="ann", reason="found by its key", version=version, task_id=task)
        self.fleet.until("what asked asks again", lambda: len(desk.inputs()) == COUNT - 1, 30)
        for question in desk.inputs():
            desk.answer(question.operation_id, question.number, "accept", {"month": "June"}, actor="ann")
        desk.close()


def test_a_promoted_standby_sends_nothing_before_recover_and_nothing_twice_after_it(
    machines: Clusters, server: Server, tmp_path: Path
) -> None:
    """An asynchronous standby falls behind while calls are intended, sent, answered and settled; the primary's machine
    is lost and the standby takes its place, at its address. What it lacks is the danger: calls that stand there as
    never sent, and were.

    The living worker, a new one and every door refuse until `recover`. After it the calls whose intents may be missing
    are looked up by their keys where they can be, else a person is asked; none is sent a second time by the server's
    count. What was settled and delivered before is settled again under the same ids. A second copy of the standby, of
    which somebody says that it lacks nothing, is only bumped.
    """
    primary = machines.primary("primary")
    migrate.upgrade(primary.url)
    standby = machines.standby("standby", primary)
    with fleet_at(primary.url, server, tmp_path) as fleet:
        prepare(fleet, server)
        drill = Failover(primary, standby, fleet, server, fleet.start(solo=True, WHO="old"))
        drill.fill()
        drill.fall_behind()
        receipts, handed_out = drill.facts(drill.settled), take_ready(fleet.client)
        lost = fleet.client.submit("away", "work", {}, call_node_id="lost")

        primary.kill()
        standby.stop()
        twin = machines.copy("twin", standby)
        standby.start(port=primary.server.record.port)
        fleet.client.close()
        with pytest.raises(LedgerUnavailable):  # the address leads to a standby for a moment
            fleet.client.get("done/0")
        assert standby.ask("SELECT pg_promote()")
        drill.everything_refuses()

        recovered = json.loads(fleet.say("recover", "--reason", "drill: the primary is lost", "-o", "json"))
        assert recovered == {"epoch": 2, "moved": 4 * COUNT, "asked": 3 * COUNT}
        assert drill.old.process.wait(30) == 75
        new = fleet.start(solo=True, WHO="new")
        drill.until_settled([*drill.of("done", "working", "looked-up"), "asking/0"])
        asked = drill.of("intended", "unsent", "unsent-looks")
        assert drill.states("intended", "unsent", "unsent-looks") == {"SUBMISSION_UNKNOWN"}
        drill.people_settle(asked)
        drill.until_settled([*drill.settled, *drill.of("asking")[1:]])
        assert drill.facts(drill.settled) == receipts
        taken = take_ready(fleet.client)
        assert {node: taken[node].id for node in drill.settled} == {node: one.id for node, one in handed_out.items()}
        assert {taken[node].deliveries for node in drill.of("done")} == {2}, "perhaps delivered before it was lost"
        assert fleet.client.submit("away", "work", {}, call_node_id="lost").submission_key == lost.submission_key
        assert (len(server.created()), server.second_submits()) == (7 * COUNT, 0)
        assert "new" not in server.said("tools/call")
        assert fleet.say("orphans").strip() == "0"
        assert new.stop() == 0
    only_bumped(twin, server, tmp_path)
    print(
        f"promotion: {7 * COUNT} calls, {recovered['moved']} perhaps sent, {COUNT} of them closed by lookup and"
        f" {recovered['asked']} by a person; second sends {server.second_submits()}; the same receipts and ready ids"
        f" when accepted again: {len(receipts)} of {len(handed_out)}"
    )


def prepare(fleet: Fleet, server: Server) -> None:
    settings = (
        f"url: '{server.url}', protocol: mcp-2026-07-28, qps: 500, burst: 100, poll: {{min_s: 0.2}}, send_by_s: 2,"
        " settle_s: 0.5, credentials: 'env:WHO'"
    )
    fleet.aim(
        f"tools: {{{settings}}}\n"
        f"looks: {{{settings}, lookup: {{tool: counterfoil_lookup, absence: unique}}}}\n"
        "away: {url: 'http://127.0.0.1:9/mcp', protocol: mcp-2026-07-28, credentials: 'env:WHO'}"
    )
    fleet.environ["COUNTERFOIL_POLL_LEASE_S"] = "5"
    for target in ("tools", "looks", "away"):
        fleet.announce(target)


def take_ready(client: Client) -> dict[str, Ready]:
    """What a consumer is handed; it dies before it acknowledges anything."""
    return {one.call_node_id: one for one in client.ready(limit=500, lease_s=0.001)}


def refuses(door: Callable[[], object]) -> bool:
    try:
        door()
    except RecoverFirst as error:
        return error.code == "E_RECOVER_FIRST"
    return False


def only_bumped(twin: Cluster, server: Server, folder: Path) -> None:
    """A standby of which somebody knows that it lacks nothing."""
    twin.start()
    assert twin.ask("SELECT pg_promote()")
    with fleet_at(twin.url, server, folder) as fleet:
        assert refuses(lambda: fleet.client.get("done/0"))
        before = twin.ask(OPERATIONS, "counterfoil")
        assert recovery.recover(twin.url, "main", reason="drill: it lacks nothing", no_loss=True) == Recovered(2, 0, 0)
        assert twin.ask(OPERATIONS, "counterfoil") == before
        assert fleet.client.get("unsent/0").state == "SUBMITTING"


def test_a_dump_restored_into_another_cluster_refuses_until_it_is_recovered(
    machines: Clusters, fleet: Fleet, server: Server, tmp_path: Path
) -> None:
    """A restored copy may be a day old, and its original may live on: the other cluster's identifier tells."""
    fleet.announce()
    fleet.client.submit("tools", "work", {"node": "n"}, call_node_id="n")
    other = machines.primary("other")
    migrate.upgrade(other.url)  # its roles; the tables come from the dump
    plain = fleet.database_url.replace("postgresql+psycopg://", "postgresql://")
    dump = other.program("pg_dump", "--dbname", plain).stdout
    other.program("createdb", "restored")
    other.program("psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", "restored", input=dump)
    restored = other.url.rpartition("/")[0] + "/restored"
    with fleet_at(restored, server, tmp_path) as copy:
        assert refuses(lambda: copy.client.get("n"))
        worker = copy.run("worker", "--solo")
        assert (worker.returncode, worker.stderr.partition(":")[0]) == (6, "E_RECOVER_FIRST")
        copy.say("recover", "--reason", "restored from the dump of the night")
        assert copy.client.get("n").state == "SUBMISSION_UNKNOWN"
    assert server.lines() == []
    assert fleet.client.get("n").state == "SUBMITTING"


@pytest.mark.parametrize("arguments", [("--solo",), ("--concurrency", "1")], ids=["solo", "celery"])
@pytest.mark.parametrize(
    ("older", "epoch", "told"),
    [
        ("UPDATE counterfoil.alembic_version SET version_num = '0001'", "1", (9, "E_SCHEMA")),
        ("SELECT 1", "2", (75, "E_STALE_EPOCH")),
    ],
    ids=["schema", "epoch"],
)
def test_a_worker_newer_than_its_ledger_refuses_to_start(
    fleet: Fleet, older: str, epoch: str, told: tuple[int, str], arguments: Sequence[str]
) -> None:
    with psycopg.connect(fleet.database_url.replace("postgresql+psycopg://", "postgresql://")) as owner:
        owner.execute("SET ROLE counterfoil_owner")
        owner.execute(older.encode())
    worker = fleet.run("worker", *arguments, COUNTERFOIL_EPOCH=epoch)
    assert (worker.returncode, worker.stderr.partition(":")[0]) == told
