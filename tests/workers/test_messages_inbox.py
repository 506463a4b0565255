"""A submit message ends in the ledger, as an operation of its key's namespace or as a dead letter with the reason."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from counterfoil.ledger.dead_letters import MAX_LETTERS_AN_HOUR, DeadLetter
from counterfoil.ledger.digest import MAX_ARGUMENTS_BYTES, sha256
from counterfoil.tests.ledger.world import World
from counterfoil.workers import inbox as module
from counterfoil.workers.inbox import Inbox, NotNow, deliver
from counterfoil.workers.messages import Message
from counterfoil.workers.producers import Producers

from . import kit_messages as kit
from .kit_messages import KEY_ID, PRODUCERS, SECRET, body_of, message, signed

MakeInbox = Callable[..., Inbox]


@pytest.fixture
def world(database: str) -> Iterator[World]:
    made = World(database)
    made.store.register_targets([("reports", "mcp-2026-07-28")])
    yield made
    made.close()


@pytest.fixture
def make_inbox(world: World, tmp_path: Path) -> Iterator[MakeInbox]:
    path = tmp_path / "producers.yaml"
    path.write_text(PRODUCERS)
    made: list[Inbox] = []

    def make(url: str = world.url, **options: bool) -> Inbox:
        made.append(Inbox(url, "main", Producers(path, {"BILLING_KEY": SECRET}), **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def inbox(make_inbox: MakeInbox) -> Inbox:
    return make_inbox()


def take(inbox: Inbox, **changes: object) -> str:
    return inbox.take(message(*signed(**changes)))


def letters(world: World) -> list[DeadLetter]:
    return kit.letters(world.database)


def operations(world: World) -> list[tuple[str, ...]]:
    return world.sql("SELECT namespace, principal, call_node_id, target, tool FROM counterfoil.operation ORDER BY 3")


def test_a_signed_message_becomes_an_operation_of_its_keys_namespace_and_principal(world: World, inbox: Inbox) -> None:
    assert take(inbox) == ""
    assert operations(world) == [("billing", "svc-billing", "run/1", "reports", "generate")]
    assert letters(world) == []


def test_a_message_that_comes_again_finds_the_same_operation(world: World, inbox: Inbox) -> None:
    """Replayed, restored by the broker, or sent again with another moment: one operation."""
    world.freeze()
    same = message(*signed())
    assert [inbox.take(same) for _ in range(3)] == [""] * 3
    world.pass_time(3600)
    assert take(inbox) == ""
    assert len(operations(world)) == 1
    assert letters(world) == []


def test_a_call_node_that_stands_for_another_request_is_a_dead_letter(world: World, inbox: Inbox) -> None:
    take(inbox)
    assert take(inbox, tool="other") == "E_CALL_NODE_CONFLICT"
    assert len(operations(world)) == 1
    (letter,) = letters(world)
    assert (letter.code, letter.key_id) == ("E_CALL_NODE_CONFLICT", KEY_ID)
    assert "already stands for another request" in letter.why
    assert json.loads(letter.body)["tool"] == "other"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (["{"], "E_MESSAGE_UNSIGNED"),
        ([body_of(), KEY_ID, "0" * 64], "E_MESSAGE_FORGED"),
        ([body_of(), "unknown\x00", "0" * 64], "E_MESSAGE_FORGED"),
        ([5, None, None], "E_MESSAGE_MALFORMED"),
        (signed("{"), "E_MESSAGE_MALFORMED"),
        (signed(principal="admin"), "E_MESSAGE_MALFORMED"),
        (signed(sent_at="2020-01-01T00:00:00Z"), "E_MESSAGE_STALE"),
        (signed(sent_at="2120-01-01T00:00:00Z"), "E_MESSAGE_STALE"),
        (signed(target="report"), "E_TARGET_UNKNOWN"),
        (signed(call_node_id=""), "E_CALL_NODE_INVALID"),
        (signed(call_node_id="x" * 10_000), "E_CALL_NODE_INVALID"),
        (signed(tool="a\x00b"), "E_TOOL_INVALID"),
        (signed(arguments={"n": 2**60}), "E_ARGUMENTS_INVALID"),
        (signed(arguments={"n": "\ud800"}), "E_ARGUMENTS_INVALID"),
        (signed(arguments={"n": "x" * MAX_ARGUMENTS_BYTES}), "E_ARGUMENTS_TOO_LARGE"),
    ],
)
def test_what_can_not_become_a_row_is_a_dead_letter_with_the_code_and_the_reason(
    world: World, inbox: Inbox, given: list[object], code: str
) -> None:
    assert inbox.take(message(*given)) == code
    (letter,) = letters(world)
    assert letter.code == code
    assert letter.why
    assert SECRET not in letter.why
    if isinstance(given[0], str):
        assert letter.body_digest == sha256(given[0].encode()).hex()
    assert operations(world) == []
    assert world.sql("SELECT count(*) FROM counterfoil.call_node") == [(0,)]


def test_age_is_judged_by_the_ledgers_clock(world: World, inbox: Inbox) -> None:
    world.freeze()
    given = message(*signed())
    world.pass_time(7 * 86400 + 60)
    assert inbox.take(given) == "E_MESSAGE_STALE"
    world.pass_time(-7 * 86400 - 600)
    assert inbox.take(given) == "E_MESSAGE_STALE"
    world.pass_time(600)
    assert inbox.take(given) == ""


def test_while_new_operations_are_switched_off_a_message_is_kept_as_a_dead_letter(world: World, inbox: Inbox) -> None:
    world.sql("INSERT INTO counterfoil.control (fleet, create_on) VALUES ('main', false)"
              " ON CONFLICT (fleet) DO UPDATE SET create_on = false")  # fmt: skip
    assert take(inbox) == "E_CREATE_OFF"
    assert letters(world)[0].code == "E_CREATE_OFF"


def test_an_unsigned_one_goes_to_the_default_namespace_where_it_is_allowed(world: World, make_inbox: MakeInbox) -> None:
    inbox = make_inbox(allow_unsigned=True)
    assert inbox.take(message(body_of(), None, None)) == ""
    assert inbox.take(message(*signed(call_node_id="run/2"))) == ""
    assert [row[:3] for row in operations(world)] == [
        ("default", "default", "run/1"),
        ("billing", "svc-billing", "run/2"),
    ]


def test_a_flood_beyond_the_cap_is_told_in_the_log_and_nothing_more(
    world: World, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert MAX_LETTERS_AN_HOUR == 10_000
    monkeypatch.setattr("counterfoil.ledger.dead_letters.MAX_LETTERS_AN_HOUR", 2)
    for number in range(3):
        inbox.take(message(f"forged {number}", KEY_ID, "0" * 64))
    assert [letter.body for letter in letters(world)] == ["forged 0", "forged 1"]
    (last,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert sha256(b"forged 2").hex() in last.getMessage()


def test_a_ledger_that_is_away_or_has_no_tables_or_waits_for_recover_is_not_the_messages_fault(
    world: World, make_inbox: MakeInbox, empty_database: str
) -> None:
    away = make_url(world.url).set(port=1).render_as_string(hide_password=False)
    world.sql("UPDATE counterfoil.execution_epoch SET timeline = timeline + 1")
    for url, code in ((away, "E_LEDGER_UNAVAILABLE"), (empty_database, "E_SCHEMA"), (world.url, "E_RECOVER_FIRST")):
        for given in (message(*signed()), message("forged", KEY_ID, "0" * 64)):
            with pytest.raises(NotNow, match=code):
                make_inbox(url).take(given)
    assert letters(world) == []


def test_a_database_that_refuses_for_now_is_told_by_its_code_and_never_by_the_message(
    world: World, inbox: Inbox
) -> None:
    """A statement that ran into its time limit shows its parameters in its text: the arguments, a secret maybe."""
    world.sql("REVOKE INSERT ON counterfoil.dead_letter FROM counterfoil_app")
    with pytest.raises(NotNow, match="SQLSTATE 42501") as raised:
        inbox.take(message("hunter2", KEY_ID, "0" * 64))
    assert "hunter2" not in str(raised.value)


def test_a_producers_file_that_is_wrong_holds_messages_instead_of_burying_them(
    world: World, inbox: Inbox, tmp_path: Path
) -> None:
    (tmp_path / "producers.yaml").write_text("nonsense: 1\n")
    with pytest.raises(NotNow, match=r"E_PRODUCERS.*\n.*producers\.yaml:1"):
        take(inbox)
    (tmp_path / "producers.yaml").write_text(PRODUCERS)
    assert take(inbox) == ""
    assert letters(world) == []


class BrokenProducers(Producers):
    """A fault of ours that nobody thought of."""

    def find(self, key_id: str) -> None:
        raise ZeroDivisionError(key_id)


def test_a_fault_of_ours_loses_no_message_either(world: World, caplog: pytest.LogCaptureFixture) -> None:
    inbox = Inbox(world.url, "main", BrokenProducers(None))
    assert take(inbox) == "E_INTERNAL"
    inbox.close()
    (letter,) = letters(world)
    assert "ZeroDivisionError" in letter.why
    assert json.loads(letter.body)["call_node_id"] == "run/1"
    assert any(record.exc_info for record in caplog.records)


# -- delivering while something is away --------------------------------------------------------------------------------


class Outage:
    """A ledger that takes messages from a moment on, a broker that takes them back from a moment on, and the clock."""

    def __init__(self, ledger_s: float = 1e9, broker_s: float = 1e9) -> None:
        self.now_s = 100.0
        self.ledger_s, self.broker_s = 100 + ledger_s, 100 + broker_s
        self.said: list[str] = []

    def take(self, given: Message) -> str:
        if self.now_s < self.ledger_s:
            raise NotNow("E_LEDGER_UNAVAILABLE: it is away.")
        self.said.append(f"taken at {self.now_s - 100:g}")
        return ""

    def put_back(self) -> bool:
        if self.now_s < self.broker_s:
            return False
        self.said.append(f"back at {self.now_s - 100:g}")
        return True

    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def run(self) -> bool:
        given = message(*signed())
        return deliver(given, self.take, self.put_back, now_s=lambda: self.now_s, wait=self.wait)


@pytest.mark.parametrize(
    ("outage", "said"),
    [
        (Outage(ledger_s=0), ["taken at 0"]),
        (Outage(ledger_s=9, broker_s=0), ["taken at 9"]),
        (Outage(ledger_s=16, broker_s=0), ["back at 15"]),
        (Outage(broker_s=40), ["back at 40"]),
        (Outage(ledger_s=40), ["taken at 40"]),
    ],
)
def test_a_message_waits_then_goes_back_to_whoever_is_there(outage: Outage, said: list[str]) -> None:
    assert outage.run()
    assert outage.said == said


def test_with_ledger_and_broker_away_the_loss_is_an_error_with_the_digest(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage()
    assert not outage.run()
    assert outage.now_s == 100 + module.GIVE_UP_S
    last = caplog.records[-1]
    assert last.levelno == logging.ERROR
    assert last.getMessage().startswith(f"LOST: the submit message of key '{KEY_ID}' with sha256 ")
    assert '"month"' not in caplog.text


def test_what_is_held_ends_before_a_soft_shutdown_does() -> None:
    """25 s (worker_soft_shutdown_timeout), of which one last look at the ledger takes 5."""
    assert module.HOLD_S + 5 < 25


def test_dead_letters_are_listed_for_people_and_for_programs(world: World, inbox: Inbox) -> None:
    inbox.take(message("forged", KEY_ID, "0" * 64))
    inbox.take(message(*signed(target="nowhere")))

    def listed(*options: str) -> str:
        environ = {"COUNTERFOIL_DATABASE_URL": world.url, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        argv = [sys.executable, "-m", "counterfoil", "list", "--dead", *options]
        return subprocess.run(argv, env=environ, capture_output=True, text=True, check=True).stdout

    (letter,) = [json.loads(line) for line in listed("-o", "json", "--limit", "1").splitlines()]
    assert (letter["code"], letter["key_id"]) == ("E_TARGET_UNKNOWN", KEY_ID)
    assert json.loads(letter["body"])["target"] == "nowhere"
    header, newest, oldest = listed().splitlines()
    assert header.split() == ["RECEIVED", "(UTC)", "CODE", "KEY", "SHA-256", "WHY"]
    assert "E_TARGET_UNKNOWN" in newest
    assert sha256(b"forged").hex() in oldest
