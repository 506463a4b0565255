"""Mutants: one thing of the product made wrong, in a copy of it. Each must be noticed.

They are patches on text (Python and SQL alike), never switches in the product. A process that has loaded everything but
the product is forked for each; the child loads the mutated copy and plays runs until one is judged wrong.
"""

import json
import os
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HINTS = HERE / "mutants" / "hints.json"
COPIED = ("__init__.py", "ledger", "adapters", "workers", "console", "server", "beat_schedule.py", "tests/sim")


@dataclass(frozen=True)
class Mutant:
    """`patches`: (file, text, its replacement, what is added at the file's end). `by`: families that notice it soonest.
    `tier`: which yield points it takes."""

    name: str
    patches: tuple[tuple[str, str, str, str], ...]
    by: tuple[str, ...]
    tier: str = "A"
    seeds: int = 120
    hint: tuple[str, int] | None = None
    """The family and seed that noticed it when somebody last looked: tried first, and one of those that are anyway."""

    def tries(self) -> list[tuple[str, int]]:
        """(family, seed), in the order in which they are played."""
        everything = [(family, seed) for seed in range(self.seeds) for family in self.by]
        return [self.hint, *everything] if self.hint in everything else everything


CONTROL = Mutant("nothing is wrong", (), ("2026 blind", "2025 questions"), seeds=3)
"""Nobody may notice it: else whatever kills it would kill every mutant."""


def load_mutants() -> list[Mutant]:
    """All of them, in the order of their files."""
    found = []
    hints = json.loads(HINTS.read_text()) if HINTS.exists() else {}
    for path in sorted((HERE / "mutants").glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["mutant"]:
            first = (entry["file"], entry["search"], entry["replace"], "")
            also = [(*more, "")[:4] for more in entry.get("also", ())]
            hint = hints.get(entry["name"])
            found.append(
                Mutant(
                    name=entry["name"],
                    patches=(first, *also),
                    by=tuple(entry["by"]),
                    tier=entry.get("tier", "A"),
                    seeds=entry.get("seeds", 120),
                    hint=None if hint is None else (hint[0], hint[1]),
                )
            )
    return found


def keep_hints(answers: list[dict[str, Any]]) -> None:
    """Write down by what each was noticed; forget those that live or are no more."""
    known = json.loads(HINTS.read_text()) if HINTS.exists() else {}
    for answer in answers:
        known.pop(answer["mutant"], None)
        if answer["killed"] and "seed" in answer:
            known[answer["mutant"]] = [answer["by"], answer["seed"]]
    names = {mutant.name for mutant in load_mutants()}
    lines = [f"  {json.dumps(name)}: {json.dumps(hint)}" for name, hint in sorted(known.items()) if name in names]
    HINTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


class DoesNotApply(ValueError):
    """The product has changed under a mutant: its text is not there, or not once."""


def copy_product(to: Path) -> None:
    """A pristine copy that mutants are made from, with its compiled files."""
    for name in COPIED:
        source, target = ROOT / name, to / "counterfoil" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.md", "testdata"))
        else:
            shutil.copy2(source, target)


def make(mutant: Mutant, pristine: Path, to: Path) -> None:
    """The mutated copy. Raises DoesNotApply."""
    shutil.copytree(pristine, to, copy_function=os.link)
    for name, search, replacement, appended in mutant.patches:
        path = to / "counterfoil" / name
        text = path.read_text()
        if text.count(search) != 1:
            raise DoesNotApply(f"{mutant.name}: {name} holds its text {text.count(search)} times")
        path.unlink()  # the pristine file shares its place on the disk
        path.write_text(text.replace(search, replacement) + appended)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


def touches_migrations(mutant: Mutant) -> bool:
    """Whether its database has to be made anew."""
    return any(name.startswith("ledger/migrations/") for name, *_ in mutant.patches)


def check_all_apply(mutants: list[Mutant]) -> Iterator[str]:
    """What is wrong with the patches, against the product as it is now."""
    for mutant in mutants:
        texts: dict[str, str] = {}
        for name, search, replacement, _ in mutant.patches:
            text = texts.setdefault(name, (ROOT / name).read_text())
            if text.count(search) != 1:
                yield f"{mutant.name}: {name} holds {search[:60]!r} {text.count(search)} times"
            texts[name] = text.replace(search, replacement)


def in_a_fork(work: Callable[[], str]) -> Callable[[], str]:
    """Begin `work` in a child; what is returned waits for its last word."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        said = "crashed"
        try:
            said = work()
        except BaseException as error:  # noqa: BLE001  a mutant may break anything
            said = f"killed by {type(error).__name__}: {str(error)[:200]}"
        os.write(writing, said.encode()[:4000])
        sys.stdout.flush()
        os._exit(0)
    os.close(writing)

    def last_word() -> str:
        with os.fdopen(reading) as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
        return said or "killed by a crash"

    return last_word
