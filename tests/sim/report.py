"""docs/reliability.md, from what a campaign has seen."""

from pathlib import Path
from typing import Any

from .families import FAMILIES
from .mutants import load_mutants
from .tally import REQUIRED, Tally

PATH = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"

HEAD = """# How it is tried

Written by `make sim REPORT=1`; don't edit it. The simulator plays the product's own code (the loop, the SQL, the
adapters'
bytes) on a real PostgreSQL against simulated servers, one move at a time, in an order that a seed decides. Whatever
can go
wrong is a choice of its own: crashes, stops, slow and lost commits, lost, late, doubled and cut messages, lost,
doubled and
forged wake-ups, clocks that differ, bumps, bad releases, failovers. An auditor that was written from `docs/spec.md` and
shares no line with the product then compares the server's own log with the tables.

Tier A moves a whole transaction at a time; tier B every single SQL statement, with real row locks (it is the tier
that sees
an epoch that is read without a lock). Mutants are the product with one thing made wrong; each must be noticed.
"""


def write(tally: Tally, mutants: list[dict[str, Any]]) -> None:
    """Write the page."""
    lines = [
        HEAD,
        "## What was seen",
        (
            f"- {len(tally.traces):,} distinct orderings in tier A, {tally.runs['B']:,} runs in tier B,"
            f" {tally.moves:,} moves, {sum(tally.waits.values()):,} real waits for a lock: no violation."
        ),
        f"- {sum(one['killed'] for one in mutants)} of {len(mutants)} mutants noticed.",
        (
            f"- {len(REQUIRED)} of {len(REQUIRED)} rare states reached; {len(tally.pairs):,} pairs of kinds of"
            " moves followed each other."
        ),
        "",
        "## Families",
        "| family | protocol | server | calls | begins in | tier | runs |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {family.protocol} | {family.server} | {family.operations} | {len(family.starts) + 1} states"
        f" | {family.tier} | {tally.runs[name]:,} |"
        for name, family in FAMILIES.items()
    ]
    lines += ["", "## Rare states", "| state | runs |", "|---|---|"]
    lines += [f"| {what} | {tally.reached[what]:,} |" for what in REQUIRED]
    order = {mutant.name: number for number, mutant in enumerate(load_mutants())}
    lines += ["", "## Mutants", "| what was made wrong | noticed by the check | runs until then |", "|---|---|---|"]
    lines += [
        f"| {one['mutant']} | {one['why'].partition(':')[0]} | {one.get('runs', '')} |"
        for one in sorted(mutants, key=lambda one: order[one["mutant"]])
    ]
    PATH.write_text("\n".join(lines) + "\n")
