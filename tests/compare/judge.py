"""What became of a run, from the server's own log and from what the client said."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .faults import Fault
from .service import Run


class Verdict(StrEnum):
    SETTLED = "settled"
    TOLD = "says so"
    ASKS = "asks a person"
    SECOND = "second operation"
    LOST = "lost"
    WRONG = "wrong"
    HANGS = "hangs"
    NOT_MET = "not met"


BAD = (Verdict.SECOND, Verdict.LOST, Verdict.WRONG, Verdict.HANGS)


@dataclass(frozen=True)
class Cell:
    verdict: Verdict
    words: str
    operations: int
    sends: int
    impatience_s: float | None

    def text(self) -> str:
        if self.verdict is Verdict.NOT_MET:
            return self.words
        soon = "" if self.impatience_s is None else f'; came back {self.impatience_s:.1f} s after "wait 2 s"'
        return f"{self.words} · {_number(self.operations, 'operation')}, {_number(self.sends, 'send')}{soon}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def judge(run: Run, end: dict[str, Any] | None) -> Cell:
    """`end`: what the program said of this run; None where it never did."""
    verdict, words = _verdict(run, end or {"end": "waits"})
    if len(run.operations) > 1:
        words = f"{words}; a second operation runs" if verdict is not Verdict.WRONG else words
        verdict = Verdict.SECOND
    return Cell(verdict, words, len(run.operations), run.sends, run.impatience_s())


def _verdict(run: Run, end: dict[str, Any]) -> tuple[Verdict, str]:
    if end["end"] == "not offered":
        return Verdict.NOT_MET, "has no cancel"
    if run.fault.on is not None and not run.met:
        return Verdict.NOT_MET, "does not poll"
    why = end.get("why")
    match end["end"]:
        case "returned":
            return _returned(run, end["value"])
        case "raised":
            return _raised(run, why)
        case "waits":
            return Verdict.HANGS, "hangs"
        case "asks":
            return Verdict.ASKS, f"asks a person ({why})"
        case outcome:
            return _ended(run.fault, outcome, end["case"])


def _ended(fault: Fault, outcome: str, case: str | None) -> tuple[Verdict, str]:
    """Ours alone tells an end that is no result from an exception."""
    if case is not None:
        return Verdict.ASKS, f"{outcome}, then asks a person ({case})"
    if fault.ending == "changed":
        return Verdict.TOLD, f"{outcome}, as it was told"
    return Verdict.LOST, f"{outcome}, and the work is done"


def _returned(run: Run, value: Any) -> tuple[Verdict, str]:
    text = json.dumps(value)
    if run.fault.ending == "unknown":
        return Verdict.WRONG, f"takes {_short(text)} for the result"
    if any(str(rows) in text for rows in run.rows):
        return Verdict.SETTLED, "settled"
    return Verdict.WRONG, f"takes {_short(text)} for the result"


def _raised(run: Run, why: str | None) -> tuple[Verdict, str]:
    if not run.operations:
        return Verdict.TOLD, f"raises {why}; nothing ran"
    if run.fault.ending == "completed":
        return Verdict.LOST, f"raises {why}, and the work is done: lost"
    return Verdict.TOLD, f"raises {why}"


def _short(text: str) -> str:
    return f"`{text if len(text) <= 40 else text[:39] + '…'}`"
