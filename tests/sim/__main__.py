"""`make sim`: thousands of orderings, then the mutants. The last line says what was seen; exit 1 if anything is wrong.

make sim                          10,000 distinct orderings (tier A), 2,000 of statements (tier B), every mutant
make sim N=500 QUICK=1            a minute before a commit
make sim N=1000000                offline: goes on where it was, in build/sim
make sim SEED=17 FAMILY="2026 blind" TIER=B       one run, told as a story
make sim REPLAY=tests/sim/regressions/x.json      a recorded one
make sim REPORT=1                 writes docs/reliability.md
"""

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.console.devstack import DevStack

from . import ledgerdb, report
from .campaign import Stage, Verdict
from .chance import Drawn
from .families import EXHAUSTED, FAMILIES
from .mutants import Mutant, load_mutants
from .tally import PAIRS, REQUIRED, Tally

HERE = Path(__file__).resolve().parent
OFFLINE = HERE.parents[1] / "build" / "sim"
LANES = 2
BATCH = 20
OFFLINE_FROM = 50_000


@dataclass(frozen=True)
class Options:
    n: int
    quick: bool
    seed: int | None
    family: str
    tier: str
    replay: str
    report: bool

    @classmethod
    def read(cls) -> "Options":
        get = os.environ.get
        quick = get("QUICK", "") not in ("", "0")
        return cls(
            n=int(get("N") or (500 if quick else 10_000)),
            quick=quick,
            seed=int(get("SEED", "")) if get("SEED") else None,
            family=get("FAMILY") or "2026 blind",
            tier=get("TIER") or "A",
            replay=get("REPLAY", ""),
            report=get("REPORT", "") not in ("", "0"),
        )

    @property
    def offline(self) -> bool:
        return self.n >= OFFLINE_FROM


def main() -> int:
    options = Options.read()
    logging.disable(logging.CRITICAL)
    with ledgerdb.server() as stack:
        ledgerdb.make_template(stack, "sim_template")
        if options.seed is not None or options.replay:
            return _one(stack, options)
        tally = Tally()
        if options.offline:
            tally.load(OFFLINE)
        _play(stack, options, tally)
        mutants = [] if options.offline or tally.failed else _mutants(stack, options)
    return _judge(options, tally, mutants)


# -- one run ---------------------------------------------------------------------------------------------------------


def _one(stack: DevStack, options: Options) -> int:
    """Played and told."""
    url, standby = _databases(stack, "one")
    recorded = json.loads(Path(options.replay).read_text()) if options.replay else None
    tier = recorded["tier"] if recorded else options.tier
    stage = Stage(url, standby, statements=tier == "B")
    verdict: Verdict
    if recorded:
        verdict = stage.replay(recorded["family"], recorded["choices"], story=True)
    else:
        verdict = stage.play(FAMILIES[options.family], Drawn(options.seed or 0), story=True)
    stage.close()
    print("\n".join(verdict.story))
    print(f"\nchoices: {json.dumps(dict(verdict.choices))}")
    print("\n".join(f"VIOLATION {one}" for one in verdict.violations) or "no violation")
    return 1 if verdict.violations else 0


def _databases(stack: DevStack, name: str) -> tuple[str, str]:
    superuser = ledgerdb.superuser_url(stack)
    return (
        ledgerdb.create_database(superuser, stack.database_url, f"sim_{name}", "sim_template"),
        ledgerdb.create_database(superuser, stack.database_url, f"sim_{name}_standby", "sim_template"),
    )


# -- many ------------------------------------------------------------------------------------------------------------


class _Process:
    """A process that answers one JSON line with one."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": "0"},
        )

    def ask(self, told: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process of the simulator ended: {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _play(stack: DevStack, options: Options, tally: Tally) -> None:
    """Both tiers, in two processes."""
    jobs = _jobs(options, tally)
    lock = threading.Lock()

    def next_job() -> tuple[str, dict[str, Any]] | None:
        with lock:
            return None if tally.failed else next(jobs, None)

    def lane(number: int) -> None:
        processes: dict[str, _Process] = {}
        while (job := next_job()) is not None:
            tier, told = job
            if tier not in processes:
                url, standby = _databases(stack, f"{tier.lower()}{number}")
                processes[tier] = _Process("-m", "counterfoil.tests.sim.play", url, standby, tier)
            tally.add(tier, told["family"], f"{tier}{number}", processes[tier].ask(told))
        for process in processes.values():
            process.close()

    with ThreadPoolExecutor(LANES) as pool:
        for done in [pool.submit(lane, number) for number in range(LANES)]:
            done.result()


def _jobs(options: Options, tally: Tally) -> Iterator[tuple[str, dict[str, Any]]]:
    """Batches, until there are enough distinct orderings."""
    of_a = [name for name, family in FAMILIES.items() if family.tier == "A"]
    of_b = [name for name, family in FAMILIES.items() if family.tier == "B"] + ["2026 blind", "2025 questions"]
    batch = 5 if options.quick else BATCH
    if not (options.quick or options.offline):
        for family in EXHAUSTED:
            yield from (("A", {"family": family, "around": {}, "slice": [part, 12]}) for part in range(12))
    begun = dict.fromkeys((*of_a, *(f"{name}/B" for name in of_b)), 0)
    begun.update({name: tally.runs[name] for name in of_a if options.offline})
    last_said, last_saved = time.perf_counter(), time.perf_counter()
    while len(tally.traces) < options.n or tally.runs["B"] < options.n // 5:
        for name in of_a if len(tally.traces) < options.n else ():
            if len(tally.traces) < options.n:
                yield "A", {"family": name, "seeds": [begun[name], batch]}
                begun[name] += batch
        for name in of_b if tally.runs["B"] < options.n // 5 else ():
            if tally.runs["B"] < options.n // 5:
                yield "B", {"family": name, "seeds": [begun[f"{name}/B"], batch]}
                begun[f"{name}/B"] += batch
        now_s = time.perf_counter()
        if now_s > last_said + 30.0:
            last_said = now_s
            print(f"… {len(tally.traces)} distinct, tier B {tally.runs['B']}, {tally.per_s:.0f}/s", file=sys.stderr)
        if options.offline and now_s > last_saved + 60.0:
            last_saved = now_s
            tally.save(OFFLINE)
    if options.offline:
        tally.save(OFFLINE)


# -- mutants ---------------------------------------------------------------------------------------------------------


def _mutants(stack: DevStack, options: Options) -> list[dict[str, Any]]:
    wanted = load_mutants()
    if options.quick:
        wanted = wanted[:: max(len(wanted) // 8, 1)]

    def tell(answer: dict[str, Any]) -> None:
        if not answer["killed"]:
            print(f"MUTANT LIVES {answer['mutant']}: {answer['why']}", file=sys.stderr)

    return play_mutants(stack, wanted, tell)


def play_mutants(stack: DevStack, wanted: list[Mutant], tell: Callable[[dict[str, Any]], None]) -> list[dict[str, Any]]:
    """Each one until somebody notices; `tell` is told of each."""
    waiting = list(enumerate(wanted))
    lock = threading.Lock()
    answers: list[dict[str, Any]] = []

    def lane(number: int) -> None:
        url, standby = _databases(stack, f"m{number}")
        nursery = _Process(str(HERE / "nursery.py"))
        while True:
            with lock:
                if not waiting:
                    break
                index, mutant = waiting.pop(0)
            told = {
                "mutant": mutant.name,
                "url": url,
                "standby": standby,
                "superuser": ledgerdb.superuser_url(stack),
                "seeds": mutant.seeds,
                "first": (index + 1) * 100_000,
            }
            answer = nursery.ask(told)
            with lock:
                answers.append(answer)
                tell(answer)
        nursery.close()

    with ThreadPoolExecutor(LANES) as pool:
        for done in [pool.submit(lane, number) for number in range(LANES)]:
            done.result()
    return answers


# -- the verdict -----------------------------------------------------------------------------------------------------


def _judge(options: Options, tally: Tally, mutants: list[dict[str, Any]]) -> int:
    for failed in tally.failed:
        _tell(failed)
    killed = sum(answer["killed"] for answer in mutants)
    good = not tally.failed and killed == len(mutants)
    if not options.quick:
        for what in tally.missing:
            print(f"NEVER REACHED {what}", file=sys.stderr)
        good = good and not tally.missing
        if len(tally.pairs) < PAIRS:
            print(f"ONLY {len(tally.pairs)} pairs of moves of {PAIRS}", file=sys.stderr)
            good = False
    if options.report and good:
        report.write(tally, mutants)
    reached = len(REQUIRED) - len(tally.missing)
    print(
        f"distinct={len(tally.traces)} tier_b={tally.runs['B']} violations={len(tally.failed)} "
        f"mutants={killed}/{len(mutants)} sometimes={reached}/{len(REQUIRED)} per_s={tally.per_s:.0f}"
    )
    return 0 if good else 1


def _tell(failed: dict[str, Any]) -> None:
    """The shrunk story, and a file that plays it again."""
    if "broke" in failed:
        print(f"A RUN OF {failed['family']} BROKE\n{failed['broke']}", file=sys.stderr)
        return
    print("\n".join(failed["story"]), file=sys.stderr)
    print("\n".join(f"VIOLATION {one}" for one in failed["violations"]), file=sys.stderr)
    name = failed["violations"][0].partition(":")[0] + f"_{len(failed['choices'])}"
    path = HERE / "regressions" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        json.dumps({key: failed[key] for key in ("family", "tier", "choices", "violations")}, indent=1) + "\n"
    )
    print(f"kept as {path}; play it again: make sim REPLAY={path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
