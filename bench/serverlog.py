"""What the remote server's log says: how many, how late, how often twice."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from .remote import INTERVAL_S
from .statistics import percentile

Line: TypeAlias = tuple[float, str, str]
"""(moment in Unix seconds, what was asked, of which call). A poll that saw the end is an `end`."""

READINGS = ("poll", "end")


@dataclass(frozen=True, slots=True)
class ServerLog:
    """The lines of one measurement."""

    lines: Sequence[Line]

    @classmethod
    def of(cls, rows: Iterable[Sequence[object]]) -> "ServerLog":
        return cls([(float(str(at)), str(what), str(call)) for at, what, call in rows])

    def only(self, prefix: str) -> "ServerLog":
        """The lines about the calls whose name begins so."""
        return ServerLog([line for line in self.lines if line[2].startswith(prefix)])

    def between(self, from_s: float, to_s: float) -> "ServerLog":
        return ServerLog([line for line in self.lines if from_s <= line[0] < to_s])

    def count(self, *what: str) -> int:
        return sum(line[1] in what for line in self.lines)

    def first(self, what: str) -> dict[str, float]:
        """Of each call, when this was asked first."""
        moments: dict[str, float] = {}
        for at_s, said, call in self.lines:
            if said == what:
                moments.setdefault(call, at_s)
        return moments

    @property
    def second_submits(self) -> int:
        return self.count("submit") - len(self.first("submit"))

    def detections_s(self, work_s: float) -> list[float]:
        """Of each call, how long after its job was over somebody saw it."""
        submits, ends = self.first("submit"), self.first("end")
        return [ends[call] - submits[call] - work_s for call in ends if call in submits]

    def ops_per_s(self) -> float:
        """Results a second, from the first submit to the last result."""
        submits, results = self.first("submit"), self.first("result")
        span_s = max(results.values(), default=0.0) - min(submits.values(), default=0.0)
        return len(results) / span_s if span_s > 0 else 0.0

    def lateness_s(self, bound_s: Mapping[str, float]) -> list[float]:
        """Of each reading, how long after the first moment at which it could have been due it was sent.

        That is one suggested interval after the reading before it; of the first one, after the ledger knew the task
        (`bound_s`, by call). The jitter that is added on purpose (a tenth of the interval at most) is in it.
        """
        readings: dict[str, list[float]] = defaultdict(list)
        for at_s, what, call in self.lines:
            if what in READINGS:
                readings[call].append(at_s)
        found = []
        for call, moments in readings.items():
            before = [bound_s[call], *moments] if call in bound_s else moments
            found += [max(0.0, later - earlier - INTERVAL_S) for earlier, later in pairwise(before)]
        return found

    def late_p99_s(self, bound_s: Mapping[str, float]) -> float:
        return percentile(self.lateness_s(bound_s), 0.99)
