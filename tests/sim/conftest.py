"""A database that runs are played on, and another one."""

from collections.abc import Iterator

import pytest

from counterfoil.console.devstack import DevStack

from . import ledgerdb
from .campaign import Stage


@pytest.fixture(scope="module")
def stages(database_stack: DevStack, _template: str) -> Iterator[tuple[Stage, Stage]]:
    """Two for tier A, each with a past of its own."""
    made = (_stage(database_stack, _template, "one"), _stage(database_stack, _template, "other", first=5000))
    yield made
    for stage in made:
        stage.close()


@pytest.fixture(scope="module")
def stage_of_statements(database_stack: DevStack, _template: str) -> Iterator[Stage]:
    """One for tier B."""
    made = _stage(database_stack, _template, "statements", statements=True)
    yield made
    made.close()


def _stage(stack: DevStack, template: str, name: str, *, statements: bool = False, first: int = 0) -> Stage:
    superuser = ledgerdb.superuser_url(stack)
    urls = [
        ledgerdb.create_database(superuser, stack.database_url, f"counterfoil_test_sim_{one}", template)
        for one in (name, f"{name}_standby")
    ]
    return Stage(*urls, statements=statements, first=first)
