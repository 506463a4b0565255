"""A process that plays runs: told what on its standard input, one JSON line each, and answering with one each.

`python -m counterfoil.tests.sim.play DATABASE STANDBY TIER` (with PYTHONHASHSEED=0, so that a seed means the same run
in
every process).
"""

import gc
import json
import logging
import sys
import traceback
from collections.abc import Iterator
from typing import Any

from .campaign import Stage, Verdict
from .chance import Given
from .families import FAMILIES
from .shrink import kind_of, shrink


def main(url: str, standby_url: str, tier: str) -> None:
    logging.disable(logging.CRITICAL)
    gc.disable()
    gc.freeze()
    stage = Stage(url, standby_url, statements=tier == "B")
    for line in sys.stdin:
        told = json.loads(line)
        print(json.dumps(_answer(stage, told)), flush=True)
        gc.collect()
    stage.close()


def _answer(stage: Stage, told: dict[str, Any]) -> dict[str, Any]:
    """What came of a batch: `{family, seeds: [first, count]}` or `{family, around: {…choices}, slice: [i, n]}`."""
    said: dict[str, Any] = {"traces": [], "left": [], "reached": {}, "pairs": [], "runs": 0, "moves": 0, "failed": None}
    pairs: set[tuple[str, str]] = set()
    for run in _runs(stage, told):
        if isinstance(run, str):
            said["failed"] = {"family": told["family"], "broke": run}
            break
        said["runs"] += 1
        said["moves"] += run.moves
        said["traces"].append(run.trace.hex()[:16])
        said["left"].append(run.left.hex()[:16])
        pairs |= run.pairs
        for what in run.reached:
            said["reached"][what] = said["reached"].get(what, 0) + 1
        if run.violations:
            said["failed"] = _small(stage, run)
            break
    said["pairs"] = sorted(pairs)
    said["waits"] = stage.loom.waits if stage.loom is not None else 0
    return said


def _runs(stage: Stage, told: dict[str, Any]) -> Iterator[Verdict | str]:
    family = FAMILIES[told["family"]]
    try:
        if "seeds" in told:
            first, count = told["seeds"]
            for seed in range(first, first + count):
                yield stage.draw(family, seed)
        else:
            part, parts = told["slice"]
            for choices in list(around(stage, told["family"], told["around"]))[part::parts]:
                yield stage.replay(told["family"], choices)
    except Exception:  # noqa: BLE001  a run that breaks is told like one that fails
        yield traceback.format_exc()[-3000:]


def around(stage: Stage, family: str, base: dict[str, int]) -> Iterator[dict[str, int]]:
    """Every run that differs from this one in one choice: exhaustive, with bound 1."""
    given = Given(base)
    stage.play(FAMILIES[family], given)
    for name, others in given.offered.items():
        for value in others:
            yield base | {name: value}


def _small(stage: Stage, run: Verdict) -> dict[str, Any]:
    kind = kind_of(run.violations[0])

    def fails(choices: Any) -> bool:
        try:
            return any(kind_of(one) == kind for one in stage.replay(run.family, choices).violations)
        except Exception:  # noqa: BLE001
            return False

    choices = dict(run.choices)
    repeats = fails(choices)
    if repeats:
        choices = shrink(choices, fails)
    told = stage.replay(run.family, choices, story=True)
    return {
        "family": run.family,
        "tier": "A" if stage.loom is None else "B",
        "choices": choices,
        "violations": list(told.violations or run.violations),
        "story": list(told.story),
        "repeats": repeats,
    }


if __name__ == "__main__":
    main(*sys.argv[1:4])
