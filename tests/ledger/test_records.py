"""A receipt's digest is the same in SQL and in Python, whatever stands in its fields."""

from typing import Any

import pytest

from counterfoil.ledger import reads
from counterfoil.ledger.digest import sha256
from counterfoil.ledger.events import Ended, Result
from counterfoil.ledger.records import RECEIPT_FIELDS, Receipt, at_pointer
from counterfoil.tests.ledger.world import World

AWKWARD = (
    "plain",
    'quotes " and \\ and /',
    "".join(map(chr, range(1, 32))) + "\x7f\x80\x9f",
    "ü 漢字 \U0001f600 \u2028\u2029\ufeff\ufffd",
    "</script> {{}} %s :name $1",
    "",
)


@pytest.fixture
def accepted(world: World) -> World:
    body = b'{"result":{"rows":[1,{"a/b":"x","m~n":"y"}]}}'
    world.bring(world.working(), Ended(9, "completed", "completed", Result(sha256(body), "/result/rows", body)))
    return world


def test_the_digest_in_sql_and_in_python_is_one(accepted: World) -> None:
    """Every text field takes every awkward text in turn; the function and the record must spell it alike."""
    receipt = accepted.client.wait("run/1", timeout_s=0)
    assert receipt.problems() == []
    texts = (
        "namespace",
        "call_node_id",
        "target",
        "tool",
        "tool_version",
        "principal",
        "protocol",
        "task_id",
        "terminal_status",
        "error_code",
        "result_pointer",
    )
    changes = [{name: text} for name in texts for text in AWKWARD]
    changes += [
        {name: None}
        for name in ("tool_version", "protocol", "task_id", "terminal_status", "error_code", "result_pointer")
    ]
    changes += [
        {"effects_possible": False},
        {"attempt": 2, "cancel_generation": 2**31 - 1, "execution_epoch": 2**53 - 1, "unanswered_rounds": 7},
    ]
    with accepted.owner() as connection:
        connection.execute("SET ROLE counterfoil_owner")
        for change in changes:
            columns = ", ".join(f"%({name})s AS {name}" for name in change)
            query = (
                "SELECT counterfoil.receipt_text(r2) FROM counterfoil.terminal_receipt AS r"
                f" CROSS JOIN LATERAL (SELECT {columns}) AS c"
                " CROSS JOIN LATERAL jsonb_populate_record(r, to_jsonb(c)) AS r2"
            )
            (text,) = connection.execute(query, change).fetchone()  # type: ignore[call-overload, misc]
            assert text.encode() == receipt.model_copy(update=change).canonical(), change


def test_a_changed_receipt_or_result_is_found_out(accepted: World) -> None:
    receipt = accepted.client.wait("run/1", timeout_s=0)
    assert receipt.model_copy(update={"outcome": "failed"}).problems() == [
        "the digest does not match the receipt's fields"
    ]
    assert receipt.model_copy(update={"result_body": b"{}"}).problems() == [
        "the result's digest does not match its bytes"
    ]
    assert receipt.model_copy(update={"result_body": None}).problems() == ["the result's bytes are missing"]


def test_every_field_of_a_receipt_but_its_digest_is_digested() -> None:
    not_digested = {"format", "digest", "accepted_at", "result_trust", "result_body"}
    assert set(RECEIPT_FIELDS) == set(Receipt.model_fields) - not_digested
    assert list(RECEIPT_FIELDS) == sorted(RECEIPT_FIELDS)


def test_the_result_is_the_value_at_its_pointer_and_stays_labelled(accepted: World) -> None:
    receipt = accepted.client.wait("run/1", timeout_s=0)
    assert receipt.result == [1, {"a/b": "x", "m~n": "y"}]
    assert receipt.result_trust == "untrusted_tool_output"
    assert "result_body" not in receipt.model_dump()
    assert "rows" not in repr(receipt).replace("result_pointer='/result/rows'", "")


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", {"a": [1]}),
        ("/a/0", 1),
        ("/a", [1]),
        ("/a/1", None),
        ("/a/x", None),
        ("/b", None),
        ("/a/0/c", None),
        ("/a/-1", None),
    ],
)
def test_a_pointer_that_leads_nowhere_gives_none(pointer: str, value: Any) -> None:
    assert at_pointer({"a": [1]}, pointer) == value


def test_moments_are_told_in_utc_and_digests_in_hex(accepted: World) -> None:
    with accepted.database.begin() as connection:
        connection.exec_driver_sql("SET LOCAL TIME ZONE 'Asia/Kathmandu'")
        (receipt,) = reads.find_receipts(connection, "default", ["run/1"])
        assert reads.find_receipt(connection, receipt.id) == receipt
    assert receipt == accepted.client.receipt("run/1")
    assert receipt.accepted_at.utcoffset().total_seconds() == 0  # type: ignore[union-attr]
    assert (len(receipt.digest), receipt.problems()) == (64, [])
