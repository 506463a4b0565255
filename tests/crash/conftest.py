"""`field`: a ledger, a judging server, and workers that die at their points."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil.tests.crash.field import Field, made


@pytest.fixture
def field(database: str, tmp_path: Path) -> Iterator[Field]:
    with made(database, tmp_path) as ready:
        yield ready
