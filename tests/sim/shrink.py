"""A failing run made small: choices are taken away as long as it still fails in the same way."""

from collections.abc import Callable, Mapping

Fails = Callable[[Mapping[str, int]], bool]

MAX_REPLAYS = 250


def shrink(choices: Mapping[str, int], fails: Fails) -> dict[str, int]:
    """Fewer choices (delta debugging: halves, quarters, … single ones), then smaller ones. `fails` replays."""
    left = MAX_REPLAYS
    best = dict(choices)

    def still(candidate: dict[str, int]) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and fails(candidate)

    size = max(len(best) // 2, 1)
    while size >= 1 and left > 0:
        removed = False
        names = sorted(best, key=_noise_first)
        for begin in range(0, len(names), size):
            dropped = set(names[begin : begin + size])
            candidate = {name: value for name, value in best.items() if name not in dropped}
            if len(candidate) < len(best) and still(candidate):
                best, removed = candidate, True
        if not removed or size > 1:
            size = size // 2 if size > 1 else 0 if not removed else 1
    for name in sorted(best):
        while best[name] > 1 and still(best | {name: best[name] // 2}):
            best[name] //= 2
    return best


def _noise_first(name: str) -> tuple[int, str]:
    """Who moved next is mostly noise, faults and crashes mostly are not."""
    return (0 if name.startswith(("move ", "kick ")) else 1, name)


def kind_of(violation: str) -> str:
    """The check that said so: a shrunk run has to fail in the same way."""
    return violation.partition(":")[0]
