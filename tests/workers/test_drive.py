"""The loop on its real parts: threads, PostgreSQL, sockets. What the engine's own tests prove is not repeated here."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from counterfoil.adapters.contract import Answered
from counterfoil.console.devstack import DevStack
from counterfoil.ledger import epochs
from counterfoil.ledger.client import Call, Client
from counterfoil.ledger.database import Database
from counterfoil.ledger.states import Lane
from counterfoil.workers.drive import Drive
from counterfoil.workers.jobs import Pace

from .kit_peer import PATIENCE_S, GatedBucket, Peer, serving
from .kit_world import targets


class Bench:
    """A database, a server, and loops on them."""

    def __init__(self, database_url: str, peer: Peer) -> None:
        self.url = database_url
        self.peer = peer
        self.bucket = GatedBucket()
        self.ended: queue.Queue[str] = queue.Queue()
        self.client = Client(database_url)
        self.nodes = 0

    @contextmanager
    def drive(self, **pace: Any) -> Iterator[Drive]:
        drive = Drive(self.url, targets("a", url=self.peer.url), self.bucket, pace=Pace(**pace), ended=self.ended.put)
        drive.start()
        try:
            yield drive
        finally:
            self.bucket.gate.open()
            self.peer.gate.open()
            assert drive.stop(PATIENCE_S)

    def submit(self, drive: Drive, count: int = 1) -> list[str]:
        nodes = [f"node-{number}" for number in range(self.nodes, self.nodes + count)]
        self.nodes += count
        with self.client._database.begin() as connection:
            self.client.submit_in(connection, [Call("a", "work", {}, node) for node in nodes])
        drive.kick(Lane.SUBMIT, "a")
        return nodes

    def state(self, node: str) -> str:
        return self.client.get(node).state

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(plain(self.url), autocommit=True) as connection:
            return connection.execute(query).fetchall()  # type: ignore[arg-type]

    def until(self, claim: str, holds: Callable[[], bool]) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < until_s, f"never: {claim}"
            time.sleep(0.01)  # other threads have to get on: what is waited for shows in the database only


def plain(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


@pytest.fixture
def bench(database: str) -> Iterator[Bench]:
    with serving() as peer:
        made = Bench(database, peer)
        yield made
        made.client.close()


def test_a_call_goes_from_the_door_to_its_receipt(bench: Bench) -> None:
    bench.peer.tasks.first_status = "completed"
    with bench.drive() as drive:
        (node,) = bench.submit(drive)
        receipt = bench.client.wait(node, timeout_s=PATIENCE_S)
    assert (receipt.outcome, receipt.result) == ("succeeded", {"n": 1})
    assert bench.peer.tasks.asked.count("tools/call") == 1


def test_intents_of_hooks_that_wait_at_the_same_time_share_a_commit(bench: Bench) -> None:
    with bench.drive() as drive:
        bench.submit(drive)
        bench.until("the contract is known", lambda: bench.state("node-0") == "WORKING")
        bench.bucket.gate.shut()
        connected = len(bench.peer.received)
        bench.submit(drive, 10)
        bench.bucket.gate.wait_for(1)
        bench.until("all are connected", lambda: len(bench.peer.received) == connected + 10)
        hooks = drive._engine._requests._tokens._waiting["a", Lane.SUBMIT]
        bench.until("the loop knows that all are connected", lambda: len(hooks) == 10)
        bench.peer.gate.shut()
        bench.bucket.gate.open()
        bench.peer.gate.wait_for(10)
        # xmin: the transaction that wrote the row. The bucket was asked twice: for the hook that came first, and for
        # those that came while it was being asked. The first intent of either answer may go alone.
        ((intents, commits),) = bench.rows(
            "SELECT count(*), count(DISTINCT xmin::text) FROM counterfoil.intent WHERE closed_at IS NULL"
        )
        assert intents == 10
        assert commits <= 4


def test_a_hook_that_is_refused_leaves_no_byte_at_the_server(bench: Bench) -> None:
    with bench.drive() as drive:
        bench.submit(drive)
        bench.until("the contract is known", lambda: bench.state("node-0") == "WORKING")
        bench.bucket.gate.shut()
        connected = len(bench.peer.received)
        (node,) = bench.submit(drive)
        bench.until("it is connected", lambda: len(bench.peer.received) > connected)
        with psycopg.connect(plain(bench.url), autocommit=True) as connection:
            connection.execute("UPDATE counterfoil.control SET create_on = false")
        bench.bucket.gate.open()
        bench.until(
            "it was taken back", lambda: any(line.code == "E_NOT_SENT_YET" for line in bench.client.journal(node))
        )
        assert bench.state(node) == "SUBMITTING"
    assert bench.peer.received[connected:].count(0) >= 1
    assert bench.peer.tasks.asked.count("tools/call") == 1
    assert bench.rows("SELECT count(*) FROM counterfoil.intent") == [(1,)]


def test_a_stop_waits_for_a_submit_that_is_out_and_takes_nothing_new(bench: Bench) -> None:
    with bench.drive() as drive:
        bench.peer.gate.shut()
        (node,) = bench.submit(drive)
        bench.peer.gate.wait_for(1)
        assert not drive.stop(grace_s=0.3)  # real time: that a thread does not end shows no other way
        (late,) = bench.submit(drive)
        bench.peer.gate.open()
        assert drive.stop(PATIENCE_S)
        assert (bench.state(node), bench.state(late)) == ("WORKING", "SUBMITTING")
    assert bench.rows("SELECT count(*) FROM counterfoil.wake WHERE lease_token IS NOT NULL") == [(0,)]
    assert bench.ended.empty()


def test_an_answer_that_comes_after_a_bump_is_kept_the_loop_ends_and_the_next_epoch_uses_it(bench: Bench) -> None:
    with bench.drive() as drive:
        bench.peer.gate.shut()
        (node,) = bench.submit(drive)
        bench.peer.gate.wait_for(1)
        operator = Database(bench.url)
        assert epochs.bump(operator, "main", "drill") == 2
        operator.dispose()
        bench.peer.gate.open()
        assert bench.ended.get(timeout=PATIENCE_S) == "stale"
    assert bench.state(node) == "SUBMITTING"
    assert bench.rows("SELECT epoch, consumed_at FROM counterfoil.evidence") == [(1, None)]
    with bench.drive() as drive:
        assert drive.epoch == 2
        bench.until("the new epoch consumed it", lambda: bench.state(node) == "WORKING")
    assert bench.peer.tasks.asked.count("tools/call") == 1


def test_an_idle_loop_finds_out_that_its_epoch_is_over(bench: Bench) -> None:
    with bench.drive():
        operator = Database(bench.url)
        epochs.bump(operator, "main", "drill")
        operator.dispose()
        assert bench.ended.get(timeout=PATIENCE_S) == "stale"


class Warned(logging.Handler):
    """Says when a write has failed."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self._word = word
        self.seen = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if self._word in record.getMessage():
            self.seen.set()


@contextmanager
def outage(stack: DevStack, url: str) -> Iterator[None]:
    """Nobody can connect to the database, and who was connected is not any more."""
    name = sql.Identifier(make_url(url).database or "")
    operator = plain(stack.superuser_url or stack.database_url)
    with psycopg.connect(operator, autocommit=True) as connection:
        connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (make_url(url).database,)
        )
        try:
            yield
        finally:
            connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))


def test_an_outage_of_the_database_does_not_lose_the_answer_to_a_submit(bench: Bench, database_stack: DevStack) -> None:
    warned = Warned("Keep")
    with ExitStack() as stack, bench.drive() as drive:
        log = logging.getLogger("counterfoil.workers.performer")
        log.addHandler(warned)
        stack.callback(log.removeHandler, warned)
        bench.peer.gate.shut()
        (node,) = bench.submit(drive)
        bench.peer.gate.wait_for(1)
        with outage(database_stack, bench.url):
            bench.peer.gate.open()
            assert warned.seen.wait(PATIENCE_S)
        bench.client._database.dispose()
        bench.until("it was kept and used", lambda: bench.state(node) == "WORKING")
    assert bench.peer.tasks.asked.count("tools/call") == 1
    assert bench.ended.empty()


def test_a_target_that_asks_for_quiet_is_closed_in_the_ledger_and_in_the_bucket(bench: Bench) -> None:
    bench.peer.tasks.rules["server/discover"] = lambda _: Answered(429, {"retry-after": "40"}, b"")
    with bench.drive() as drive:
        bench.submit(drive)
        bench.until("it is closed", lambda: "a" in bench.bucket.closed)
    ((closed_s,),) = bench.rows(
        "SELECT extract(epoch FROM closed_until - counterfoil.ledger_now())::float8 FROM counterfoil.target_state"
    )
    assert 30 < closed_s <= 40
