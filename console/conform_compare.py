"""What came out of a case beside what its transcript expects: one line a difference, each naming its field."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

RECEIPTS = {"succeeded": "success", "failed": "failure"}
"""Outcomes with another word in transcripts."""

MAX_SHOWN_CHARS = 120


@dataclass(frozen=True, slots=True)
class FoundCase:
    """A case of the operation, open or closed."""

    kind: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class Observed:
    """A case as it ended, in the words of `expected`.

    `codes` are those of the journal, the cases, the receipt and of refused writes; `gaps_ms` the shortest time from a
    step's answer to the next status request, for steps that one followed.
    """

    state: str
    terminal: str | None
    receipt: str
    receipt_code: str | None
    effects: int
    keys: int
    counts: Mapping[str, int]
    cases: Sequence[FoundCase]
    outbox: int
    path: Sequence[str]
    codes: frozenset[str]
    gaps_ms: Mapping[str, float]
    result: Any


def differences(expected: Mapping[str, Any], observed: Observed) -> list[str]:
    """Every expected field that is not met; an empty list means that the case passes."""
    return [*_plain(expected, observed), *_counts(expected["counts"], observed), *_optional(expected, observed)]


def _plain(expected: Mapping[str, Any], observed: Observed) -> Iterator[str]:
    for name in ("state", "terminal", "receipt", "effects", "keys", "outbox"):
        found = getattr(observed, name)
        if found != expected[name]:
            yield f"{name} is {_word(found)}, expected {_word(expected[name])}"
    yield from _reconciliation(expected["reconciliation"], observed.cases)


def _reconciliation(kind: str | None, cases: Sequence[FoundCase]) -> Iterator[str]:
    """The kind of its case, open or closed by evidence. What is still open beside it was not expected."""
    strangers = [case.kind for case in cases if case.kind != kind and (case.is_open or kind is None)]
    if strangers or (kind is not None and all(case.kind != kind for case in cases)):
        found = ", ".join(f"{case.kind}{'' if case.is_open else ' (closed)'}" for case in cases) or "null"
        yield f"reconciliation is {found}, expected {_word(kind)}"


def _counts(expected: Mapping[str, Sequence[int | None]], observed: Observed) -> Iterator[str]:
    for kind, (low, high) in expected.items():
        found = observed.counts.get(kind, 0)
        if not (low or 0) <= found or (high is not None and found > high):
            wanted = f"at least {low}" if high is None else f"{low}" if low == high else f"{low} to {high}"
            yield f"counts.{kind} is {found}, expected {wanted}"


def _optional(expected: Mapping[str, Any], observed: Observed) -> Iterator[str]:
    if "path" in expected and not _in_order(expected["path"], observed.path):
        yield f"path is {' '.join(observed.path)}, expected {' '.join(expected['path'])} in this order"
    if "error" in expected:
        yield from _error(expected["error"], observed)
    for step, least_ms in expected.get("minGapMs", {}).items():
        gap_ms = observed.gaps_ms.get(step)
        if gap_ms is None:
            yield f"minGapMs.{step}: no status request followed it, expected one after {least_ms} ms"
        elif gap_ms < least_ms:
            yield f"minGapMs.{step} is {round(gap_ms, 3)}, expected at least {least_ms}"
    if "result" in expected and observed.result != expected["result"]:
        yield f"result is {_word(observed.result)}, expected {_word(expected['result'])}"


def _error(code: str | None, observed: Observed) -> Iterator[str]:
    if code is None and observed.receipt_code is not None:
        yield f"error is {observed.receipt_code} on the receipt, expected none"
    elif code is not None and code not in observed.codes:
        recorded = ", ".join(sorted(observed.codes)) or "no code"
        yield f"error {code} is not recorded, only {recorded}"


def _in_order(wanted: Iterable[str], visited: Iterable[str]) -> bool:
    """Whether the wanted states were visited in this order; others may lie between."""
    left = iter(visited)
    return all(state in left for state in wanted)


def _word(value: Any) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"
