"""Any interleaving of looking, taking, finishing, dying and falling silent leaves one run a key, on each store.

Several processes serve the same key. Each looks at the store, and later (others having moved meanwhile) writes what it
decided. The judge is a book of the runs that were begun.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from mcp.shared.exceptions import MCPError

from counterfoil.server.calls import Call
from counterfoil.server.records import Answer, Kind, Record, Take, Wait, judge
from counterfoil.server.store import Store

from .stores import Place, sqlite_place, valkey_place

LIFETIME_S = 3600.0
PROCESSES = st.integers(0, 2)
NAMES = ("key-a", "key-a", "key-b")
LEGS = ("", "", "leg-2", "leg-3")
REQUESTS = ("r1", "r1", "r1", "r2")  # now and then somebody uses the key for something else


class Processes(RuleBasedStateMachine):
    place: Place

    @initialize()
    def begin(self) -> None:
        self.stores: list[Store] = [self.place.open() for _ in range(3)]
        self.decided: dict[int, tuple[Call, Take]] = {}
        self.running: list[tuple[int, Call, Take]] = []
        self.begun: Counter[tuple[str, str]] = Counter()
        self.request: dict[str, str] = {}
        self.answered: dict[str, Kind | None] = {}

    @rule(
        processes=st.sets(PROCESSES, min_size=1),
        name=st.sampled_from(NAMES),
        leg=st.sampled_from(LEGS),
        request=st.sampled_from(REQUESTS),
    )
    def look(self, processes: set[int], name: str, leg: str, request: str) -> None:
        """One, or several before any of them writes."""
        call = Call(name=name, tool="t", request=request, leg=leg, takes_tasks=True)
        for process in processes:
            try:
                verdict = judge(call, self.stores[process].get(name))
            except MCPError:  # another request, or one that nobody can answer: nothing runs
                continue
            if isinstance(verdict, Take):
                self.decided[process] = (call, verdict)
            elif isinstance(verdict, Answer):
                assert request == self.request[name]
                assert (name, verdict.body["by"]) in self.begun
            else:
                assert verdict == Wait()

    @precondition(lambda self: self.decided)
    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        process = data.draw(st.sampled_from(sorted(self.decided)))
        call, take = self.decided.pop(process)
        if self._put(process, call, take.record, take.version):
            self.begun[call.name, call.leg] += 1
            assert self.request.setdefault(call.name, call.request) == call.request
            assert self.answered.get(call.name, Kind.QUESTION) is Kind.QUESTION, "only a question has another leg"
            self.answered[call.name] = None
            self.running.append((process, call, take))

    @rule(
        processes=st.sets(PROCESSES, min_size=1),
        name=st.sampled_from(NAMES),
        leg=st.sampled_from(LEGS),
        data=st.data(),
    )
    def race(self, processes: set[int], name: str, leg: str, data: st.DataObject) -> None:
        """The race itself: they look, and then each writes."""
        self.look(processes, name, leg, "r1")
        while self.decided:
            self.take(data)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), kind=st.sampled_from([Kind.RESULT, Kind.TASK, Kind.QUESTION, Kind.QUESTION, Kind.NOT_KEPT]))
    def finish(self, data: st.DataObject, kind: Kind) -> None:
        process, call, take = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        self.answered[call.name] = kind
        record = take.record.answered(Answer(kind, {"by": call.leg}))
        assert self._put(process, call, record, take.version + 1), "nobody takes what is held, however silent"

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        process, call, take = data.draw(st.sampled_from(self.running))
        assert self.stores[process].renew(call.name, version=take.version, lifetime_s=LIFETIME_S)

    @rule(process=PROCESSES)
    def die(self, process: int) -> None:
        """And start again, with nothing in memory."""
        self.decided.pop(process, None)
        self.running = [each for each in self.running if each[0] != process]
        self.stores[process] = self.place.open()

    @rule()
    def fall_silent(self) -> None:
        self.place.age(60)

    @invariant()
    def one_run_a_key_and_leg(self) -> None:
        assert [key for key, runs in self.begun.items() if runs > 1] == []

    def _put(self, process: int, call: Call, record: Record, version: int) -> bool:
        return self.stores[process].put(call.name, record.encode(), version=version, lifetime_s=LIFETIME_S)


def _places(kind: str, broker: str) -> Iterator[Place]:
    if kind == "valkey":
        place = valkey_place(broker)
        while True:
            place.expire()
            yield place
    while True:
        with tempfile.TemporaryDirectory() as folder:
            place = sqlite_place(Path(folder) / "keys")
            place.open()
            yield place


@pytest.mark.parametrize("kind", ["sqlite", "valkey"])
def test_any_interleaving_leaves_one_run_a_key(kind: str, broker: str) -> None:
    places = _places(kind, broker)

    class OnStore(Processes):
        def __init__(self) -> None:
            super().__init__()
            self.place = next(places)

    run_state_machine_as_test(OnStore, settings=settings(max_examples=60, stateful_step_count=30))
