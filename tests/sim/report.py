"""docs/reliability.md, from what a campaign has seen."""

import os
import platform
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .families import EXHAUSTED, FAMILIES
from .mutants import HERE, load_mutants
from .tally import PAIRS, REQUIRED, Tally

PATH = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"

HEAD = """# How it is tried

Written by `make sim REPORT=1`; don't edit it. The simulator plays the product's own code (the loop, the SQL, the
adapters' bytes) on a real PostgreSQL against simulated servers, one move at a time, in an order that a seed decides.
An auditor that was written from [the specification](spec.md) and shares no line with the product then compares the
server's own log, and the log of what left over the wire, with the tables.

- **Tier A** moves a whole transaction at a time: breadth.
- **Tier B** moves every single SQL statement, on a connection of its own and with real row locks: it is the tier that
  sees an epoch that is read without a lock. Who waits for a lock is found out by `pg_blocking_pids`, never by a
  timeout.
- **Mutants** are the product with one thing made wrong, patched in a copy of it: each must be noticed, and a copy
  with nothing wrong must not be.

An ordering counts once: two runs are the same if their servers are of one kind, they made the same moves, and the
same went wrong with the same messages. Play one again as a story: `make sim SEED=17 FAMILY="2026 blind"`.

## What is simulated
Workers and the loop's lines to the database, the beat and its wake-ups, producers, cancellers, people who answer and
settle, consumers, bumps, recoveries, switches, canaries; the tool server and the network. Each of these is a choice
of its own: who moves next, a crash or a stop right before any kind of move, a slow database, a commit whose outcome
is lost, a message that is lost, late, doubled, cut or refused, a wake-up that is lost, doubled or forged, clocks that
differ, a bad release that goes on after its epoch, a failover to a standby that is behind, a bucket that forgets.

## What is not
Threads inside of one worker (its lines are moved one at a time), HTTP and TLS themselves (bytes are handed over whole
or cut in half), Redis and Celery (wake-ups and the bucket are played), a database that loses what it has committed
without a failover, and time that runs while somebody can move. Real processes, sockets and kills are tried in
`tests/crash`, `tests/fleet`, `tests/races` and `tests/peers`.
"""


def write(tally: Tally, mutants: list[dict[str, Any]]) -> None:
    """Write the page."""
    parts = (HEAD, _seen(tally, mutants), _families(tally), _rare(tally), _mutants(mutants), _equivalent())
    PATH.write_text("\n".join(parts))


def _seen(tally: Tally, mutants: list[dict[str, Any]]) -> str:
    runs = tally.runs["A"] + tally.runs["B"]
    begun = sum(count for what, count in tally.reached.items() if what.startswith("begun: "))
    at_once = tally.reached["three calls at once"]
    orders = [
        (what.removeprefix("an order: "), tally.reached[what]) for what in REQUIRED if what.startswith("an order")
    ]
    exhausted = tally.reached["an order: as recorded"]
    machine = (
        f"{platform.machine()} with {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    )
    lines = [
        "## What was seen",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine}, {tally.per_s:.0f} runs a second:",
        "",
        f"- {len(tally.traces['A']):,} distinct orderings in tier A and {len(tally.traces['B']):,} in B: no violation.",
        f"- {runs:,} runs, {tally.moves:,} moves, {sum(tally.waits.values()):,} real waits for a lock.",
        f"- {sum(one['killed'] for one in mutants)} of {len(mutants)} mutants noticed.",
        f"- {len(REQUIRED)} of {len(REQUIRED)} rare states reached.",
        f"- {len(tally.pairs):,} pairs of kinds of moves followed each other (at least {PAIRS:,} must).",
        f"- {begun:,} runs began in mid-life, {at_once:,} had three calls at once.",
        f"- Who moved next: {', '.join(f'{name} {count:,}' for name, count in orders)}.",
        f"- {exhausted:,} runs are all that differ in one choice from the plain course of {' or '.join(EXHAUSTED)}.",
        "",
    ]
    return "\n".join(lines)


def _families(tally: Tally) -> str:
    lines = [
        "## Families",
        "| family | protocol | server | calls | begins in | tier | runs |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, family in FAMILIES.items():
        lines += [
            f"| {name} | {family.protocol} | {family.server} | {family.operations} | {len(family.starts) + 1} states"
            f" | {tier} | {tally.runs[f'{tier} {name}']:,} |"
            for tier in ("A", "B")
            if tally.runs[f"{tier} {name}"]
        ]
    return "\n".join([*lines, ""])


def _rare(tally: Tally) -> str:
    lines = ["## Rare states", "| state | runs |", "|---|---|"]
    return "\n".join([*lines, *(f"| {what} | {tally.reached[what]:,} |" for what in sorted(REQUIRED)), ""])


def _mutants(mutants: list[dict[str, Any]]) -> str:
    lines = ["## Mutants", "| what was made wrong | noticed by the check | in the family |", "|---|---|---|"]
    order = {mutant.name: number for number, mutant in enumerate(load_mutants())}
    lines += [
        f"| {one['mutant']} | {one['why'].partition(':')[0]} | {one.get('by', '')} |"
        for one in sorted(mutants, key=lambda one: order[one["mutant"]])
    ]
    return "\n".join([*lines, ""])


def _equivalent() -> str:
    found = tomllib.loads((HERE / "equivalent.toml").read_text())["equivalent"]
    lines = [f"- **{one['name']}**: {' '.join(one['proof'].split())}" for one in found]
    return "\n".join(["## Guards that another guard makes up for", *lines, ""])
