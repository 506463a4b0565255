"""`world`: a ledger of the test's own, with a worker, a door and a client."""

from collections.abc import Iterator

import pytest

from counterfoil.tests.ledger.world import World


@pytest.fixture
def world(database: str) -> Iterator[World]:
    made = World(database)
    yield made
    made.close()
