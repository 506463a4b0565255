"""The register over stores that falter, as an owner's own may."""

import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from counterfoil.server import Entry, SqliteStore, Store, StoreError
from counterfoil.server.calls import Call
from counterfoil.server.leases import Leases
from counterfoil.server.records import LEGS_MAX, NOT_KEPT, VALUE_BYTES_MAX, Answer, Kind, Record, Take, judge
from counterfoil.server.register import Register

from .kit import WAIT_S

HOUR_S = 3600.0


class Faltering:
    """An owner's own store: SQLite, and what goes wrong with it."""

    def __init__(self, path: Path) -> None:
        self.inner = SqliteStore(path)
        self.durable = True
        self.away_for_versions: list[int] = []
        self.replies_lost = 0
        self.renewals: list[str] = []
        self.renewed = threading.Event()

    def get(self, name: str) -> Entry | None:
        return self.inner.get(name)

    def put(self, name: str, value: bytes, *, version: int, lifetime_s: float) -> bool:
        if version in self.away_for_versions:
            self.away_for_versions.remove(version)
            raise StoreError("away")
        written = self.inner.put(name, value, version=version, lifetime_s=lifetime_s)
        if self.replies_lost:  # the client asked again, and was refused by its own first write
            self.replies_lost -= 1
            return False
        return written

    def renew(self, name: str, *, version: int, lifetime_s: float) -> bool:
        self.renewals.append(name)
        if len(self.renewals) == 1:
            raise StoreError("away")
        self.renewed.set()
        return self.inner.renew(name, version=version, lifetime_s=lifetime_s)


class Words:
    """A codec whose results are texts."""

    def read(self, result: str) -> Answer:
        return Answer.of_result({"text": result})

    def read_error(self, error: Exception) -> Answer:
        return Answer.of_error(-1, str(error))

    def write(self, answer: Answer) -> str:
        return str(answer.body["text"])


@pytest.fixture
def store(tmp_path: Path) -> Faltering:
    return Faltering(tmp_path / "keys")


CALL = Call(name="k", tool="t", request="r", leg="", takes_tasks=False)


def once(register: Register, run: Callable[[], Awaitable[str]], call: Call = CALL) -> str:
    return anyio.run(register.once, call, run, Words())


class Runs:
    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> str:
        self.count += 1
        return f"run {self.count}"


def test_an_own_store_is_a_store(store: Faltering) -> None:
    assert isinstance(store, Store)
    run = Runs()
    register = Register(store, lifetime_s=HOUR_S)
    assert [once(register, run), once(register, run)] == ["run 1"] * 2
    assert run.count == 1


def test_a_write_whose_reply_was_lost_is_known_as_our_own(store: Faltering) -> None:
    """Without that the key would be taken by nobody, and be unsure for ever though nothing ran."""
    store.replies_lost = 2
    run = Runs()
    register = Register(store, lifetime_s=HOUR_S)
    assert [once(register, run), once(register, run)] == ["run 1"] * 2
    assert run.count == 1


def test_an_outcome_is_kept_though_the_store_was_away_for_a_moment(store: Faltering) -> None:
    store.away_for_versions = [2]
    run = Runs()
    register = Register(store, lifetime_s=HOUR_S)
    assert [once(register, run), once(register, run)] == ["run 1"] * 2
    assert run.count == 1


def test_a_key_that_can_not_be_taken_runs_nothing(store: Faltering) -> None:
    store.away_for_versions = [1]
    run = Runs()
    with pytest.raises(MCPError, match="E_KEY_STORE"):
        once(Register(store, lifetime_s=HOUR_S), run)
    assert run.count == 0


def test_a_record_that_is_not_ours_runs_nothing(store: Faltering) -> None:
    store.put("k", b'{"else": 1}', version=1, lifetime_s=HOUR_S)
    run = Runs()
    with pytest.raises(MCPError, match="E_KEY_STORE"):
        once(Register(store, lifetime_s=HOUR_S), run)
    assert run.count == 0


def test_what_is_held_is_renewed_by_a_thread_whatever_the_event_loop_does(store: Faltering) -> None:
    """Also after a renewal that failed; when nothing is held any more the thread ends."""
    store.put("k", b"{}", version=1, lifetime_s=HOUR_S)
    leases = Leases(store, lifetime_s=HOUR_S, every_s=0.01)
    leases.hold("k", 1)
    thread = leases._thread
    assert thread is not None
    assert store.renewed.wait(WAIT_S)
    leases.drop("k")
    thread.join(WAIT_S)
    assert not thread.is_alive()
    renewals = len(store.renewals)
    store.renewed.clear()
    leases.hold("k", 1)
    assert store.renewed.wait(WAIT_S), "it begins again"
    leases.drop("k")
    assert len(store.renewals) > renewals


def test_a_key_is_held_while_its_request_runs_and_no_longer(store: Faltering) -> None:
    """Also when the request fails."""
    register = Register(store, lifetime_s=HOUR_S)

    async def run() -> str:
        assert register._leases._held == {"k": 1}
        raise ValueError("no paper")

    with pytest.raises(ValueError, match="no paper"):
        once(register, run)
    assert register._leases._held == {}


def test_an_answer_is_kept_up_to_the_cap_and_never_half() -> None:
    record = Record("t", "r", ("",), "run")
    for body in ({"text": "x" * VALUE_BYTES_MAX}, {"text": {1, 2}}, {"text": object()}):
        assert record.answered(Answer(Kind.RESULT, body)).answer == NOT_KEPT
    kept = record.answered(Answer(Kind.RESULT, {"text": "\ud800 ü"}))
    assert Record.decode(kept.encode()) == kept


@pytest.mark.parametrize("value", [b"", b"[]", b"null", b"{}", b"\xff", b'{"tool":1,"request":2,"legs":3}'])
def test_a_record_that_can_not_be_read_is_a_store_error(value: bytes) -> None:
    with pytest.raises(StoreError):
        Record.decode(value)


def test_a_call_asks_only_so_many_questions() -> None:
    question = Answer(Kind.QUESTION, {})
    legs = tuple(f"leg-{number}" for number in range(LEGS_MAX - 1))
    last = Record("t", "r", legs, "run", question)
    call = Call(name="k", tool="t", request="r", leg="one more", takes_tasks=False)
    take = judge(call, Entry(last.encode(), 7, 0.0))
    assert isinstance(take, Take)
    assert (take.version, take.record.legs[-1]) == (8, "one more")
    full = take.record.answered(question)
    more: Any = Call(name="k", tool="t", request="r", leg="too many", takes_tasks=False)
    with pytest.raises(MCPError, match="E_KEY_REUSED"):
        judge(more, Entry(full.encode(), 9, 0.0))
