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
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from counterfoil.console.devstack import DevStack

from . import ledgerdb, report
from .campaign import Stage, Verdict
from .families import FAMILIES
from .jobs import BATCH, REPEATED, Job, jobs, repeats
from .lanes import LANES, NURSERY, TEMPLATE, Players, Process, databases, side_by_side
from .mutants import CONTROL, Mutant, load_mutants
from .shrink import kind_of
from .tally import PAIRS, REQUIRED, Tally

HERE = Path(__file__).resolve().parent
OFFLINE = HERE.parents[1] / "build" / "sim"
OFFLINE_FROM = 50_000
TOLD_EVERY_S, SAVED_EVERY_S = 30.0, 60.0


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
    def wanted(self) -> dict[str, int]:
        """How many distinct orderings of each tier."""
        return {"A": self.n, "B": self.n // 5}

    @property
    def offline(self) -> bool:
        return self.n >= OFFLINE_FROM


def main() -> int:
    options = Options.read()
    logging.disable(logging.CRITICAL)
    with ledgerdb.server() as stack:
        ledgerdb.make_template(stack, TEMPLATE)
        if options.seed is not None or options.replay:
            return _one(stack, options)
        tally = Tally()
        if options.offline:
            tally.load(OFFLINE)
        wrong = _play(stack, options, tally)
        mutants = [] if options.offline or tally.failed or wrong else _mutants(stack, options)
    return judge(options, tally, wrong, mutants)


# -- one run ---------------------------------------------------------------------------------------------------------


def _one(stack: DevStack, options: Options) -> int:
    """Played and told."""
    recorded = json.loads(Path(options.replay).read_text()) if options.replay else None
    tier = recorded["tier"] if recorded else options.tier
    stage = Stage(*databases(stack, "one"), statements=tier == "B")
    verdict: Verdict
    if recorded:
        verdict = stage.replay(recorded["family"], recorded["choices"], story=True)
    else:
        verdict = stage.draw(FAMILIES[options.family], options.seed or 0, story=True)
    stage.close()
    print("\n".join(verdict.story))
    print(f"\nchoices: {json.dumps(dict(verdict.choices))}")
    print("\n".join(f"VIOLATION {one}" for one in verdict.violations) or "no violation")
    return 1 if verdict.violations else 0


# -- many ------------------------------------------------------------------------------------------------------------


def _play(stack: DevStack, options: Options, tally: Tally) -> list[str]:
    """Both tiers, in every lane; then some runs once more. Returns what is wrong beside what the tally knows."""
    players = Players(stack)
    handler = signal.signal(signal.SIGINT, players.stop)
    batch = 5 if options.quick else BATCH
    exhaustive = not (options.quick or options.offline)
    waiting = jobs(tally, options.wanted, batch=batch, exhaustive=exhaustive)
    lock, progress = threading.Lock(), Progress(options, tally)

    def next_job() -> Job | None:
        with lock:
            progress.tell()
            return None if tally.failed or players.broken else next(waiting, None)

    def lane(number: int) -> None:
        while (job := next_job()) is not None:
            tier, what = job
            tally.add(tier, what["family"], f"{tier}{number}", players.ask(tier, number, what))

    try:
        side_by_side(lane)
        if players.broken:
            return ["STOPPED before its end"]
        return [] if tally.failed else _repeat(players, 10 if options.quick else REPEATED)
    finally:
        signal.signal(signal.SIGINT, handler)
        if options.offline:
            tally.save(OFFLINE)
        players.close()


def _repeat(players: Players, count: int) -> list[str]:
    """The same seeds in every lane: other processes, other databases, another past. What differs is told."""
    heard: list[list[dict[str, Any]]] = [[] for _ in range(LANES)]

    def lane(number: int) -> None:
        heard[number] = [players.ask(tier, number, told) for tier, told in repeats(count)]

    side_by_side(lane)
    return [
        f"NOT THE SAME AGAIN: seed {told['seeds'][0]} of {told['family']!r} in tier {tier}"
        for (tier, told), *answers in zip(repeats(count), *heard, strict=True)
        if len({json.dumps([answer["traces"], answer["left"], answer["failed"]]) for answer in answers}) > 1
    ]


class Progress:
    """How far it is, now and then; offline it is kept as well."""

    def __init__(self, options: Options, tally: Tally) -> None:
        self._options, self._tally = options, tally
        self._told_s = self._saved_s = time.perf_counter()

    def tell(self) -> None:
        now_s, tally = time.perf_counter(), self._tally
        if now_s > self._told_s + TOLD_EVERY_S:
            self._told_s = now_s
            counts = f"{len(tally.traces['A'])} distinct, tier B {len(tally.traces['B'])}"
            print(f"… {counts} of {self._options.wanted}, {tally.per_s:.0f}/s", file=sys.stderr, flush=True)
        if self._options.offline and now_s > self._saved_s + SAVED_EVERY_S:
            self._saved_s = now_s
            tally.save(OFFLINE)


# -- mutants ---------------------------------------------------------------------------------------------------------


def _mutants(stack: DevStack, options: Options) -> list[dict[str, Any]]:
    wanted = load_mutants()
    if options.quick:
        wanted = wanted[:: max(len(wanted) // 8, 1)]

    def tell(answer: dict[str, Any]) -> None:
        if not answer["killed"] and answer["mutant"] != CONTROL.name:
            print(f"MUTANT LIVES {answer['mutant']}: {answer['why']}", file=sys.stderr)

    lives, *answers = play_mutants(stack, [CONTROL, *wanted], tell)
    if lives["killed"]:
        raise RuntimeError(f"what nothing is wrong with was called wrong, so no mutant counts: {lives}")
    return answers


def play_mutants(stack: DevStack, wanted: list[Mutant], tell: Callable[[dict[str, Any]], None]) -> list[dict[str, Any]]:
    """Each one until somebody notices; `tell` is told of each. Answers in the order of `wanted`."""
    waiting = list(enumerate(wanted))
    lock = threading.Lock()
    answers: dict[int, dict[str, Any]] = {}

    def lane(number: int) -> None:
        url, standby = databases(stack, f"m{number}")
        nursery = Process(str(NURSERY))
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
                "first": (index + 1) * 100_000,
            }
            answer = nursery.ask(told)
            with lock:
                answers[index] = answer
                tell(answer)
        nursery.close()

    side_by_side(lane)
    return [answers[index] for index in range(len(wanted))]


# -- the verdict -----------------------------------------------------------------------------------------------------


def judge(options: Options, tally: Tally, wrong: list[str], mutants: list[dict[str, Any]]) -> int:
    """Tell what was seen, the last line for everybody; 0 if that is all that was asked for and nothing is wrong, else
    1."""
    for failed in tally.failed:
        keep(failed)
    wrong = [*wrong]
    wrong += [
        f"ONLY {len(tally.traces[tier])} distinct orderings of tier {tier}, of {wanted}"
        for tier, wanted in options.wanted.items()
        if len(tally.traces[tier]) < wanted and not tally.failed
    ]
    if not options.quick:
        wrong += [f"NEVER REACHED {what}" for what in tally.missing]
        wrong += [f"ONLY {len(tally.pairs)} pairs of moves of {PAIRS}"] if len(tally.pairs) < PAIRS else []
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
    killed = sum(answer["killed"] for answer in mutants)
    good = not (tally.failed or wrong) and killed == len(mutants)
    if options.report and good:
        report.write(tally, mutants)
    reached = len(REQUIRED) - len(tally.missing)
    print(
        f"distinct={len(tally.traces['A'])} tier_b={len(tally.traces['B'])} violations={len(tally.failed)} "
        f"mutants={killed}/{len(mutants)} sometimes={reached}/{len(REQUIRED)} per_s={tally.per_s:.0f}"
    )
    return 0 if good else 1


def keep(failed: dict[str, Any], folder: Path = HERE / "regressions") -> None:
    """Tell the shrunk story, and write a file that plays it again."""
    if "broke" in failed:
        print(f"A RUN OF {failed['family']} BROKE\n{failed['broke']}", file=sys.stderr)
        return
    print("\n".join(failed["story"]), file=sys.stderr)
    print("\n".join(f"VIOLATION {one}" for one in failed["violations"]), file=sys.stderr)
    again = {key: failed[key] for key in ("family", "tier", "choices", "violations")}
    text = json.dumps(again, indent=1) + "\n"
    path = folder / f"{kind_of(failed['violations'][0])}_{sha256(text.encode()).hexdigest()[:6]}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    print(f"kept as {path}; play it again: make sim REPLAY={path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
