"""Numbers from numbers: percentiles, medians with their spread."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Self


def percentile(values: Sequence[float], part: float) -> float:
    """The smallest value that `part` (0 to 1) of all are not above; 0 of none."""
    if not values:
        return 0.0
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of several runs, and from where to where they went."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        return cls(median(values), min(values), max(values)) if values else cls(0.0, 0.0, 0.0)
