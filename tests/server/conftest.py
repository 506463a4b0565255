"""Keyed servers on real HTTP, over real stores. The tools' own books are the judge."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from .kit import SDKS, Owner, Tools
from .stores import Place, sqlite_place, valkey_place

MakeOwner = Callable[..., Owner]


@pytest.fixture(params=["sqlite", "valkey"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty store of each kind."""
    if request.param == "sqlite":
        return sqlite_place(tmp_path / "keys.sqlite3")
    return valkey_place(request.getfixturevalue("broker"))


@pytest.fixture
def one_place(tmp_path: Path) -> Place:
    """An empty store, where its kind makes no difference."""
    return sqlite_place(tmp_path / "keys.sqlite3")


@pytest.fixture
def tools() -> Iterator[Tools]:
    """The tools' book and their gate, which is open at the end whatever happened."""
    made = Tools()
    yield made
    made.gate.set()


@pytest.fixture(params=sorted(SDKS))
def sdk(request: pytest.FixtureRequest) -> str:
    """Each SDK."""
    return str(request.param)


@pytest.fixture
def own(tools: Tools) -> Iterator[MakeOwner]:
    """Start keyed servers: `own("fastmcp", place.where)`; further arguments go to `keyed()`."""
    with ExitStack() as stack:

        def start(sdk: str, store: Any, **options: Any) -> Owner:
            return stack.enter_context(Owner.serving(sdk, tools, store, **options))

        stack.callback(tools.gate.set)
        yield start
