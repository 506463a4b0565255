"""A field of crash points: one ledger, one judging server, a target for every ten operations, and processes that are
killed at their points."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import MappingProxyType
from typing import Any, LiteralString, NamedTuple, TypeAlias
from urllib.request import Request, urlopen

import psycopg
import pytest

from counterfoil.ledger.client import Call, Client
from counterfoil.ledger.database import Database
from counterfoil.ledger.decision import Decision
from counterfoil.ledger.events import Event
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.states import Lane
from counterfoil.ledger.store import Store
from counterfoil.ledger.transition import Transitions
from counterfoil.ledger.work import Item
from counterfoil.tests.crash import halting
from counterfoil.tests.crash.halting import Order

KILLS = 20
PER_TARGET = 10
"""Effects of one target that a worker has out at a time."""

KINDS = ("nothing", "looks", "unique")
PATIENCE_S = 100.0
ENTRY: Mapping[str, Any] = {
    "protocol": "mcp-2026-07-28",
    "qps": 2000.0,
    "burst": 400,
    "send_by_s": 4.0,
    "settle_s": 0.2,
    "poll": {"min_s": 0.1, "max_s": 2.0, "default_s": 0.3},
}
NOTHING: Mapping[str, str] = MappingProxyType({})
AT_ONCE = 6
"""Workers on their way to their points at the same time."""

LOOKUPS: Mapping[str, Mapping[str, Any]] = {
    "nothing": {},
    "looks": {"lookup": {"tool": "counterfoil_lookup"}},
    "unique": {"lookup": {"tool": "counterfoil_lookup", "absence": "unique", "key_lifetime_s": 86_400.0}},
    "replay": {"lookup": {"replay": True, "key_lifetime_s": 86_400.0}},
}


class Fact(NamedTuple):
    """How one operation stands. `asked`: cases of kind UNKNOWN that were ever opened, `open`: that are."""

    node: str
    target: str
    state: str
    outcome: str | None
    attempt: int
    asked: int
    open: int
    receipts: int


FACTS = """
SELECT o.call_node_id AS node, o.target, o.state, o.outcome, o.attempt,
    (SELECT count(*) FROM counterfoil.reconciliation_case AS c
     WHERE c.operation_id = o.id AND c.kind = 'UNKNOWN')::int AS asked,
    (SELECT count(*) FROM counterfoil.reconciliation_case AS c
     WHERE c.operation_id = o.id AND c.kind = 'UNKNOWN' AND c.closed_at IS NULL)::int AS open,
    (SELECT count(*) FROM counterfoil.terminal_receipt AS r
     WHERE r.namespace = o.namespace AND r.call_node_id = o.call_node_id)::int AS receipts
FROM counterfoil.operation AS o
"""


@dataclass
class Worker:
    """One worker process and what it told."""

    process: BaseProcess
    word: Connection
    order: Order
    told: dict[str, list[str]] = field(default_factory=dict)

    def listen(self) -> None:
        while self.word.poll():
            kind, names = self.word.recv()
            self.told.setdefault(kind, []).extend(names)

    @property
    def there(self) -> bool:
        """Every operation has come to its point."""
        self.listen()
        return len(set(self.told.get("at", ()))) >= self.order.count

    @property
    def missing(self) -> int:
        return self.order.count - len(set(self.told.get("at", ())))

    @property
    def went_on(self) -> list[str]:
        """What became of what was under way when the process was stopped."""
        self.listen()
        return self.told.get("on", [])

    def signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.process.kill()
        self.process.join(PATIENCE_S)


@dataclass
class Field:
    """What a test of crash points works with."""

    database_url: str
    server_url: str
    log: Path
    client: Client
    targets: dict[str, dict[str, Any]] = field(default_factory=dict)
    workers: list[Worker] = field(default_factory=list)

    # -- handing in ----------------------------------------------------------------------------------------------------

    def hand_in(self, point: str, kinds: Sequence[str] = KINDS, /, **arguments: object) -> list[str]:
        """20 operations a kind that are to come to `point`; returns the names of their targets."""
        path = {"replay": "unique"}
        names = []
        for kind in kinds:
            for part in range(KILLS // PER_TARGET):
                name = f"{point}.{kind}.{part}"
                url = f"{self.server_url}/{path.get(kind, kind)}"
                self.targets[name] = {**ENTRY, "url": url, **LOOKUPS[kind]}
                names.append(name)
        database = Database(self.database_url)
        Store(database, "main", 1, lambda *_: pytest.fail("nobody asks for a policy here")).register_targets(
            [(name, ENTRY["protocol"]) for name in names]
        )
        database.dispose()
        calls = [
            Call(name, "work", {"secs": 0.2, "node": f"{name}/{number}", **arguments}, f"{name}/{number}")
            for name in names
            for number in range(PER_TARGET)
        ]
        with self.client._database.begin() as connection:
            self.client.submit_in(connection, calls)
        return names

    def say(self, names: Iterable[str], event: Event) -> None:
        """A door's word on every operation of these targets."""
        wanted = set(names)
        database = Database(self.database_url, fleet="main")
        door = Transitions(database, "main", None, interpret=None, policy_of=lambda *_: Policy(protocol="unknown"))
        asked = [one.id for one in self.client.operations(limit=10_000) if one.target in wanted]
        applied = door.apply([Item(id_, Lane.DOOR, (event,)) for id_ in asked])
        assert all(isinstance(answer, Decision) for one in applied for answer in one.answers), applied[0]
        database.dispose()

    def all_in(self, state: str) -> bool:
        return all(fact.state == state for fact in self.facts())

    # -- workers -------------------------------------------------------------------------------------------------------

    def start(self, names: Iterable[str] | None = None, **order: Any) -> Worker:
        """A worker of these targets (of all, if none are named)."""
        served = {name: self.targets[name] for name in (self.targets if names is None else names)}
        ordered = Order(self.database_url, served, **order)
        context = multiprocessing.get_context("forkserver")  # a fork costs 20 ms, a fresh interpreter a second
        context.set_forkserver_preload([halting.__name__])
        here, there = context.Pipe()
        process = context.Process(target=halting.work, args=(there, ordered))
        process.start()
        there.close()
        self.workers.append(Worker(process, here, ordered))
        return self.workers[-1]

    def kill_at(self, points: Mapping[str, Sequence[str]], *, seen: Mapping[str, str] = NOTHING, **order: Any) -> None:
        """One worker a point (name -> targets), killed when all its operations are there. `seen`: points that the
        server tells of, with the word of its log."""
        waiting, out = dict(points), dict[str, Worker]()
        end_s = time.monotonic() + PATIENCE_S
        while waiting or out:
            assert time.monotonic() < end_s, {point: worker.missing for point, worker in out.items()}
            while waiting and len(out) < AT_ONCE:
                point = next(iter(waiting))
                names = waiting.pop(point)
                halts = "" if point in seen else point.rpartition(":")[2]
                out[point] = self.start(names, point=halts, count=len(names) * PER_TARGET, **order)
            told = self.told_nodes(seen.values()) if any(point in seen for point in out) else {}
            for point, worker in list(out.items()):
                nodes = {f"{name}/{number}" for name in points[point] for number in range(PER_TARGET)}
                if nodes <= told[seen[point]] if point in seen else worker.there:
                    worker.kill()
                    del out[point]
            time.sleep(0.02)  # the processes have to get there

    def until(self, claim: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds. Real time passes: real processes work meanwhile."""
        end_s = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end_s, f"not within {PATIENCE_S} s: {claim}\n{self.unsettled()[:20]}"
            time.sleep(0.05)  # other processes have to get on

    # -- judging -------------------------------------------------------------------------------------------------------

    def facts(self) -> list[Fact]:
        return [Fact(*row) for row in self._sql(FACTS)]

    def unread_evidence(self) -> int:
        """How much a server said that no transition has read."""
        return int(self._sql("SELECT count(*) FROM counterfoil.evidence WHERE consumed_at IS NULL")[0][0])

    def _sql(self, query: LiteralString) -> list[tuple[Any, ...]]:
        """As the owner of the schema."""
        with psycopg.connect(self.database_url.replace("postgresql+psycopg://", "postgresql://")) as connection:
            connection.execute("SET ROLE counterfoil_owner")
            return connection.execute(query).fetchall()

    def unsettled(self) -> list[Fact]:
        """Operations with neither a receipt nor an open case."""
        return [fact for fact in self.facts() if not fact.receipts and not fact.open]

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def told_nodes(self, words: Iterable[str]) -> dict[str, set[str]]:
        """Call nodes of which the server's log has this word."""
        found: dict[str, set[str]] = {word: set() for word in words}
        for line in self.lines():
            if line["on"] in found:
                found[line["on"]].add(line["node"])
        return found

    def land(self) -> None:
        """What is still on its way to the server lands."""
        body = json.dumps({"id": 1, "method": "test/land", "params": {}}).encode()
        with urlopen(Request(f"{self.server_url}/nothing", data=body), timeout=10) as answer:
            answer.read()

    def looked_up(self, point: str) -> set[str]:
        """Call nodes of a point for which the server was asked by key."""
        lines = self.lines()
        asked = {line["key"] for line in lines if line["on"] == "lookup"}
        sent = {line["node"] for line in lines if line["on"] == "arrived" and line["key"] in asked}
        return {node for node in sent if node.startswith(f"{point}.")}

    def log_of_calls(self) -> "Calls":
        calls = Calls()
        for line in self.lines():
            if line["on"] == "arrived":
                calls.sends[line["node"]] += 1
            elif line["on"] == "created":
                calls.tasks.setdefault(line["node"], set()).add(line["task"])
            if line["on"] in ("arrived", "part"):
                calls.touched.add(line["node"])
        return calls


@dataclass
class Calls:
    """What the server says of each call node: whole sends, tasks that it made, and whether a byte of it came."""

    sends: Counter[str] = field(default_factory=Counter)
    tasks: dict[str, set[str]] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)

    def needless(self, fact: Fact) -> bool:
        """A person was asked although no byte had left, or although the server would have told."""
        if not fact.asked:
            return False
        looks = fact.target.split(".")[1] != "nothing"
        return fact.node not in self.touched or (looks and fact.node in self.tasks)


Table: TypeAlias = dict[str, dict[str, tuple[int, int]]]
"""Point -> kind of server -> how many of the 20 asked a person, and how many of those needlessly."""


def judged(field: Field) -> Table:
    """What people were asked, after the laws that hold at every point: each operation has one receipt or an open case;
    there is no second operation where the key is unique, no second send where it isn't."""
    told = field.log_of_calls()
    field.land()
    calls = field.log_of_calls()
    found: Table = {}
    for fact in sorted(field.facts()):
        point, kind, _ = fact.target.split(".")
        assert (fact.receipts, fact.open > 0) in ((1, False), (0, True)), fact
        assert len(calls.tasks.get(fact.node, ())) <= 1, f"two operations: {fact}"
        if kind in ("nothing", "looks"):
            assert calls.sends[fact.node] <= 1, f"two sends: {fact}"
        cases, needless = found.setdefault(point, {}).get(kind, (0, 0))
        found[point][kind] = (cases + (fact.asked > 0), needless + told.needless(fact))
    print(f"\n{KILLS} operations each: cases, of them needless")
    for point, kinds in found.items():
        print(
            f"  {point:20}", "  ".join(f"{kind} {cases:2}, {needless:2}" for kind, (cases, needless) in kinds.items())
        )
    return found


@contextmanager
def made(database: str, folder: Path) -> Iterator[Field]:
    """A field with its server; whoever is still there at the end is killed."""
    log = folder / "server.log"
    log.touch()
    argv = [sys.executable, str(Path(__file__).with_name("tools_server.py")), str(log)]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    client = Client(database)
    assert server.stdout is not None
    made = Field(database, f"http://127.0.0.1:{int(server.stdout.readline())}", log, client)
    try:
        yield made
    finally:
        for worker in made.workers:
            worker.kill()
            worker.word.close()
        client.close()
        server.kill()
        server.communicate()
