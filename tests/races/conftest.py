"""`world`: a ledger of the test's own."""

from collections.abc import Iterator

import pytest

from counterfoil.tests.ledger.world import World


@pytest.fixture
def world(database: str) -> Iterator[World]:
    made = World(database)
    yield made
    made.close()
