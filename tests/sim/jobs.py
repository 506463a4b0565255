"""What is played, in which order, until there is enough of it."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from .families import EXHAUSTED, FAMILIES
from .tally import Tally

Job: TypeAlias = tuple[str, dict[str, Any]]
"""(tier, what `play.py` is told)."""

BATCH = 20
SLICES = 12
OF_A = tuple(name for name, family in FAMILIES.items() if family.tier == "A")
OF_B = (*(name for name, family in FAMILIES.items() if family.tier == "B"), "2026 blind", "2025 questions")
ROUNDS_WITHOUT_GAIN = 3
REPEATED = 50


def jobs(tally: Tally, wanted: dict[str, int], *, batch: int = BATCH, exhaustive: bool = False) -> Iterator[Job]:
    """Batches, as they are asked for, until there are `wanted` distinct orderings of each tier: all families in turn,
    each from the seeds on that the tally has no runs of. Ends as well where nothing new comes any more."""
    if exhaustive:
        for family in EXHAUSTED:
            yield from (("A", {"family": family, "around": {}, "slice": [part, SLICES]}) for part in range(SLICES))
    families = {"A": OF_A, "B": OF_B}
    begun = {(tier, name): tally.runs[f"{tier} {name}"] for tier in families for name in families[tier]}
    gained, idle = _distinct(tally), 0
    while idle < ROUNDS_WITHOUT_GAIN and any(len(tally.traces[tier]) < wanted[tier] for tier in wanted):
        for tier, names in families.items():
            for name in names:
                if len(tally.traces[tier]) >= wanted[tier]:
                    break
                yield tier, {"family": name, "seeds": [begun[tier, name], batch]}
                begun[tier, name] += batch
        idle = 0 if _distinct(tally) > gained else idle + 1
        gained = _distinct(tally)


def _distinct(tally: Tally) -> int:
    return sum(map(len, tally.traces.values()))


def repeats(count: int) -> list[Job]:
    """So many runs, spread over all families of both tiers: what every lane has to play alike."""
    spread = [("A", name) for name in OF_A] + [("B", name) for name in OF_B]
    chosen = [divmod(number * len(spread) // count, len(spread)) for number in range(count)]
    return [(spread[at][0], {"family": spread[at][1], "seeds": [7 + again, 1]}) for again, at in chosen]
