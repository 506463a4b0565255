"""One run from its seed or its choices to its verdict."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from . import auditor, facts
from .chance import Choices, Drawn, Given
from .families import FAMILIES
from .family import Family
from .ledgerdb import LedgerDb
from .people import TARGET
from .record import record
from .starts import STARTS, Pasts
from .statements import Loom
from .world import Stuck, World

MID_LIFE = 0.8
"""How likely a family that can begin in mid-life does: half of all runs then do (some families can't)."""


@dataclass(frozen=True)
class Verdict:
    """What came of one run. `choices` are those that are not 0: with the family they determine it."""

    family: str
    choices: Mapping[str, int]
    trace: bytes
    left: bytes
    """A fingerprint of what stands in the tables."""
    moves: int
    violations: tuple[str, ...]
    reached: frozenset[str]
    pairs: frozenset[tuple[str, str]] = field(repr=False)
    story: tuple[str, ...] = field(repr=False)


class Stage:
    """One database that runs are played on, and its standby. `statements`: tier B."""

    def __init__(self, url: str, standby_url: str, *, statements: bool = False, first: int = 0) -> None:
        """`first`: tags count from here, where others have used these databases before."""
        self.db = LedgerDb(url)
        self._standby_url = standby_url
        self._standby: LedgerDb | None = None
        self.loom = Loom(self.db) if statements else None
        self._pasts = Pasts(self.db, first)
        self._count = first

    def close(self) -> None:
        if self.loom is not None:
            self.loom.close()
        if self._standby is not None:
            self._standby.close()
        self.db.close()

    def standby(self) -> LedgerDb:
        """The database that is promoted where a run fails over."""
        if self._standby is None:
            self._standby = LedgerDb(self._standby_url)
        return self._standby

    def draw(self, family: Family, seed: int, *, story: bool = False) -> Verdict:
        """A run by its seed, which means another one in each family."""
        return self.play(family, Drawn(f"{family.name} {seed}"), story=story)

    def replay(self, family: str, given: Mapping[str, int], *, story: bool = False) -> Verdict:
        return self.play(FAMILIES[family], Given(given), story=story)

    def play(self, family: Family, choices: Choices, *, story: bool = False) -> Verdict:
        self._count += 1
        world = World(self.db, family, f"{self._count:08x}", choices, loom=self.loom, story=story)
        world.standby = self.standby
        violations: list[str] = []
        if self.loom is not None:
            self.loom.clear()
        try:
            self._play(world)
        except Stuck as stuck:
            violations.append(f"everything_ends: {stuck}")
        world.going_on()
        happened = record(world)
        if self.loom is not None:
            self.loom.clear()
        left = facts.read(world.db.owner, world.tag)
        violations += auditor.audit(left, happened)
        for what in _rare(left):
            world.sometimes(what)
        world.sometimes(f"an order: {choices.order}")
        if len(world.operations) >= 3:
            world.sometimes("three calls at once")
        return Verdict(
            family=family.name,
            choices=dict(choices.made),
            trace=world.trace(),
            left=facts.fingerprint(left),
            moves=world.moves,
            violations=tuple(violations),
            reached=frozenset(world.reached | world.server.sometimes),
            pairs=frozenset(world.pairs),
            story=tuple(world.story or ()),
        )

    def _play(self, world: World) -> None:
        family = world.family
        world.begin()
        drawn = world.choices.pick("start", len(family.starts) + 1, MID_LIFE)
        if drawn:
            loom, world.loom = world.loom, None
            self._pasts.begin(world, family, STARTS[family.starts[drawn - 1]])
            world.loom = loom
            world.begin()
            world.sometimes(f"begun: {family.starts[drawn - 1]}")
        else:
            self.db.at(0.0)
            self.db.open_fleet(world.tag, TARGET, family.protocol)
            family.begin(world)
        for _ in range(family.workers):
            world.start_worker()
        family.plan(world)
        world.run()


def _rare(left: facts.Facts) -> Iterator[str]:
    """Rare ends and cases that a run came to."""
    for row in left["terminal_receipt"]:
        yield f"ended as {row['state']} {row['outcome']}"
    for row in left["reconciliation_case"]:
        yield f"a case: {row['code']}"
    if any(row["attempt"] > 1 and row["sent_attempt"] > 1 for row in left["operation"]):
        yield "a second attempt was made"
