"""A ledger without a worker for commands: what stands in it is brought by hand, so that every state can be shown."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterfoil.ledger.policy import Policy
from counterfoil.tests.ledger.world import POLICY, World

from .conftest import Ended, Run

TARGETS = """\
targets:
  reports:
    url: http://127.0.0.1:9/mcp
    protocol: mcp-2026-07-28
    tools:
      preview: {effects: false}
"""


@contextmanager
def desk(
    cli_in: Callable[..., Run], database: str, folder: Path, policy: Policy = POLICY
) -> Iterator[tuple[World, Run]]:
    """A ledger, and `counterfoil …` on it with a targets file."""
    file = folder / "targets.yaml"
    file.write_text(TARGETS)
    world = World(database, policy=policy)
    world.store.register_targets([("reports", "mcp-2026-07-28")])
    try:
        yield world, cli_in(DATABASE_URL=database, TARGETS_FILE=str(file))
    finally:
        world.close()


def lines(told: Ended) -> list[dict[str, Any]]:
    return [json.loads(line) for line in told.out.splitlines()]


def refused(told: Ended, code: str, exit_code: int = 2) -> None:
    """Ended with this code on stderr, a next step below it, and no data."""
    first, *steps = told.err.splitlines()
    assert (told.code, first.partition(":")[0], told.out) == (exit_code, code, ""), told
    assert any(step.strip() for step in steps), told.err
