"""Each target of a file, negotiated with: can what it says be had?"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..workers.targets import Target, Targets
from .probe import Attempt, Probe, probe


@dataclass(frozen=True, slots=True)
class CheckedTarget:
    """What came of one target. `problems` is empty where calls can be made."""

    name: str
    protocol: str
    tools: int
    problems: tuple[str, ...]
    """Each with its code in front."""
    probe: Probe


def check_targets(targets: Targets, names: Sequence[str] = ()) -> list[CheckedTarget]:
    """Negotiate with these at the same time; none named: with all. Never raises for what a server or the network did.

    Raises UnknownTarget.
    """

    async def all_of_them() -> list[CheckedTarget]:
        return list(await asyncio.gather(*(_check(targets[name]) for name in names or targets.names)))

    return asyncio.run(all_of_them())


async def _check(target: Target) -> CheckedTarget:
    found = await probe([[target]])
    (attempt,) = found.attempts
    problems = (
        tuple(_problems(attempt)) if found.trouble is None else (f"{found.trouble.code}: {found.trouble.message}",)
    )
    return CheckedTarget(target.name, target.protocol, len(attempt.offered), problems, found)


def _problems(attempt: Attempt) -> Iterator[str]:
    """Tools that the file names have to be there; of the others one that can be called will do."""
    target = attempt.target
    named = [tool for tool in attempt.tools if tool.name in target.tools]
    for name in target.tools:
        why = target.objection(name)
        if why is not None:
            yield f"E_CAPABILITY_UNSUPPORTED: {why.removeprefix('Not sent: ')}"
        elif not attempt.left_out and name not in {tool.name for tool in named}:
            yield f"E_TOOL_UNKNOWN: the server offers no tool {name}, which the file names."
    for tool in named:
        if not tool.offered:
            yield f"{tool.code}: {tool.name}: {tool.why}"
    if attempt.heard is not None and attempt.heard.code is not None:
        yield f"{attempt.heard.code}: {attempt.heard.said}"
    if attempt.tells_none:
        return  # whether it has a tool shows when one is called
    if not attempt.offered and not named:
        yield f"E_CAPABILITY_UNSUPPORTED: no tool of it can be called: {_first_why(attempt)}"
    elif not target.tools and attempt.offered and (why := target.objection("its tools")) is not None:
        yield f"E_CAPABILITY_UNSUPPORTED: {why.removeprefix('Not sent: ')}"


def _first_why(attempt: Attempt) -> str:
    return next((tool.why or "" for tool in attempt.tools), "it offers none.")
