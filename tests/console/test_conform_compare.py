"""The comparison behind `counterfoil conform`: every field of `expected` can fail, and a failure names its field."""

from dataclasses import replace
from typing import Any

import pytest

from counterfoil.console.conform_compare import FoundCase, Observed, differences

EXPECTED: dict[str, Any] = {
    "state": "ACCEPTED",
    "terminal": "completed",
    "receipt": "success",
    "effects": 1,
    "keys": 1,
    "counts": {"submit": [1, 1], "status": [1, 3], "lookup": [0, 0], "ask": [0, None]},
    "reconciliation": "NEVER_CREATED",
    "outbox": 1,
    "path": ["SUBMITTING", "WORKING", "ACCEPTED"],
    "error": "E_STATUS_UNKNOWN",
    "minGapMs": {"g1": 2000},
    "result": {"rows": 3},
}
OBSERVED = Observed(
    state="ACCEPTED",
    terminal="completed",
    receipt="success",
    receipt_code=None,
    effects=1,
    keys=1,
    counts={"submit": 1, "status": 2, "ask": 7},
    cases=[FoundCase("NEVER_CREATED", is_open=False)],
    outbox=1,
    path=["SUBMITTING", "WORKING", "TERMINAL_OBSERVED", "ACCEPTED"],
    codes=frozenset({"E_STATUS_UNKNOWN", "E_OTHER"}),
    gaps_ms={"g1": 2000.0},
    result={"rows": 3},
)


def test_what_is_as_expected_has_no_differences() -> None:
    assert differences(EXPECTED, OBSERVED) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("state", "WORKING"),
        ("terminal", None),
        ("receipt", "failure"),
        ("effects", 2),
        ("keys", 0),
        ("counts", {"submit": [2, 2]}),
        ("counts", {"status": [3, None]}),
        ("counts", {"lookup": [1, 1]}),
        ("reconciliation", "UNKNOWN"),
        ("reconciliation", None),
        ("outbox", 0),
        ("path", ["WORKING", "SUBMITTING"]),
        ("path", ["SUBMITTING", "FETCHING_RESULT"]),
        ("error", "E_TOOL_ERROR"),
        ("minGapMs", {"g1": 2001}),
        ("minGapMs", {"g2": 1}),
        ("result", {"rows": "3"}),
        ("result", None),
    ],
)
def test_one_wrong_expectation_fails_with_that_field_named(field: str, value: object) -> None:
    (difference,) = differences({**EXPECTED, field: value}, OBSERVED)
    assert difference.startswith(field)
    assert "expected" in difference or "recorded" in difference


def test_a_code_on_the_receipt_fails_a_case_that_expects_none() -> None:
    expected = {**EXPECTED, "error": None}
    assert differences(expected, OBSERVED) == []
    assert differences(expected, replace(OBSERVED, receipt_code="E_TOOL_ERROR")) == [
        "error is E_TOOL_ERROR on the receipt, expected none"
    ]


def test_a_case_that_is_open_beside_the_expected_one_fails() -> None:
    both = replace(OBSERVED, cases=[*OBSERVED.cases, FoundCase("UNKNOWN", is_open=True)])
    assert differences(EXPECTED, both) == ["reconciliation is NEVER_CREATED (closed), UNKNOWN, expected NEVER_CREATED"]
    settled = replace(OBSERVED, cases=[*OBSERVED.cases, FoundCase("UNKNOWN", is_open=False)])
    assert differences(EXPECTED, settled) == []


def test_what_a_transcript_does_not_expect_is_not_compared() -> None:
    optional = ("path", "error", "minGapMs", "result")
    expected = {name: value for name, value in EXPECTED.items() if name not in optional}
    assert differences(expected, replace(OBSERVED, path=[], codes=frozenset(), gaps_ms={}, result=None)) == []


def test_every_difference_is_told_not_the_first_alone() -> None:
    found = differences({**EXPECTED, "state": "WORKING", "outbox": 0, "result": 3}, OBSERVED)
    assert [difference.partition(" ")[0] for difference in found] == ["state", "outbox", "result"]
