"""What is left to chance in one run: named choices, where 0 is always the plain course.

A run is determined by its family and its choices that are not 0, so that is what a seed is expanded to, what a failure
is stored as, and what the shrinker takes away from. `pick` is asked for everything: who moves next, whether a message
is
lost, when somebody crashes.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Protocol

HORIZON = 70
"""Moves of a run within which somebody may crash, stop, cancel or bump. Two thirds of all runs are longer than that."""


class Scheduler(Protocol):
    """Who moves next. `actors` are the owners of the moves that are possible now, the longest waiting first."""

    @property
    def name(self) -> str: ...

    def next(self, actors: Sequence[str]) -> int: ...


class Uniform:
    name = "uniform"

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def next(self, actors: Sequence[str]) -> int:
        return self._rng.randrange(len(actors))


class Sticky:
    """Whoever moved goes on as long as he can; with a probability of 0.3 somebody else is drawn."""

    name = "sticky"

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._last = ""

    def next(self, actors: Sequence[str]) -> int:
        if self._last not in actors or self._rng.random() < 0.3:
            self._last = actors[self._rng.randrange(len(actors))]
        return actors.index(self._last)


class Pct:
    """Probabilistic concurrency testing: random priorities, lowered at depth - 1 random moves. Finds a bug of depth d
    among n actors and k moves with a probability of at least 1 / (n * k^(d - 1)) a run."""

    def __init__(self, rng: random.Random, depth: int) -> None:
        self.name = f"PCT of depth {depth}"
        self._rng = rng
        self._priorities: dict[str, float] = {}
        self._changes = {rng.randrange(HORIZON) for _ in range(depth - 1)}
        self._moves = 0
        self._lowest = 0.0

    def next(self, actors: Sequence[str]) -> int:
        for actor in actors:
            self._priorities.setdefault(actor, self._rng.random())
        best = max(range(len(actors)), key=lambda index: self._priorities[actors[index]])
        if self._moves in self._changes:
            self._lowest -= 1.0
            self._priorities[actors[best]] = self._lowest
            best = max(range(len(actors)), key=lambda index: self._priorities[actors[index]])
        self._moves += 1
        return best


def scheduler(rng: random.Random) -> Scheduler:
    """A quarter uniform, a quarter sticky, half PCT of depth 2 to 4 (one alone let a mutant live through 1,000
    runs)."""
    drawn = rng.randrange(4)
    if drawn == 0:
        return Uniform(rng)
    return Sticky(rng) if drawn == 1 else Pct(rng, rng.choice((2, 3, 4)))


class Choices:
    """The choices of one run, by name. `made` holds those that are not 0."""

    order = "as recorded"
    """How it is chosen who moves next."""

    def __init__(self) -> None:
        self.made: dict[str, int] = {}

    def pick(self, name: str, count: int, chance: float = 1.0) -> int:
        """One of `count` courses. `chance`: how likely it is that it isn't the plain one, where that is drawn."""
        value = self._draw(name, count, chance)
        if value:
            self.made[name] = value
        return value

    def among(self, name: str, values: Sequence[int], count: int, chance: float) -> int:
        """One of `values` (each below `count`), or 0."""
        value = self._among(name, values, count, chance)
        if value:
            self.made[name] = value
        return value

    def fault(self, name: str, kinds: Sequence[int], count: int, chance: float = 0.0) -> int:
        """What goes wrong with a message: 0 for nothing, else one of `kinds`. `chance`: that often, whatever this run
        has
        in store beside it."""
        value = self._fault(name, kinds, count, chance)
        if value:
            self.made[name] = value
        return value

    def next(self, move: int, actors: Sequence[str]) -> int:
        """Who moves."""
        value = self._next(f"move {move}", actors)
        if value:
            self.made[f"move {move}"] = value
        return value

    def _draw(self, name: str, count: int, chance: float) -> int:
        raise NotImplementedError

    def _among(self, name: str, values: Sequence[int], count: int, chance: float) -> int:
        raise NotImplementedError

    def _fault(self, name: str, kinds: Sequence[int], count: int, chance: float) -> int:
        raise NotImplementedError

    def _next(self, name: str, actors: Sequence[str]) -> int:
        raise NotImplementedError


class Drawn(Choices):
    """Everything from one seed. Swarm: each run has its own half of the kinds of faults, and at most four of them."""

    def __init__(self, seed: str) -> None:
        super().__init__()
        self._rng = random.Random(seed)
        self._scheduler = scheduler(self._rng)
        self.order = self._scheduler.name
        self._faults_left = self._rng.choice((0, 1, 2, 4))
        self._swarm = self._rng.getrandbits(64)

    def _draw(self, name: str, count: int, chance: float) -> int:
        if chance < 1.0 and self._rng.random() >= chance:
            return 0
        return self._rng.randrange(count)

    def _among(self, name: str, values: Sequence[int], count: int, chance: float) -> int:
        return self._rng.choice(values) if self._rng.random() < chance else 0

    def _fault(self, name: str, kinds: Sequence[int], count: int, chance: float) -> int:
        if chance:
            return self._rng.choice(kinds) if kinds and self._rng.random() < chance else 0
        enabled = [kind for kind in kinds if self._swarm >> kind & 1]
        if not (enabled and self._faults_left and self._rng.random() < 0.35):
            return 0
        self._faults_left -= 1
        return self._rng.choice(enabled)

    def _next(self, name: str, actors: Sequence[str]) -> int:
        return self._scheduler.next(actors) if len(actors) > 1 else 0


class Given(Choices):
    """A recorded run, or a part of one: what is not named takes the plain course."""

    def __init__(self, given: Mapping[str, int]) -> None:
        super().__init__()
        self._given = dict(given)
        self.offered: dict[str, Sequence[int]] = {}
        """Each choice that came up, with its other courses: what the exhaustive search goes through."""

    def _draw(self, name: str, count: int, chance: float) -> int:
        self.offered[name] = range(1, count)
        return min(self._given.get(name, 0), count - 1)

    def _among(self, name: str, values: Sequence[int], count: int, chance: float) -> int:
        self.offered[name] = values
        value = self._given.get(name, 0)
        return value if value in values else 0

    def _fault(self, name: str, kinds: Sequence[int], count: int, chance: float) -> int:
        self.offered[name] = kinds
        value = self._given.get(name, 0)
        return value if value in kinds else 0

    def _next(self, name: str, actors: Sequence[str]) -> int:
        self.offered[name] = range(1, len(actors))
        return min(self._given.get(name, 0), len(actors) - 1)
