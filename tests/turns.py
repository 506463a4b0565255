"""Which tests run beside which, when several workers run them (`pytest -n`).

A file's tests stay together on one worker, since they share servers; so do the console's, which share a fleet. A test
that judges time runs while nothing else does: beside others it would judge them.
"""

import fcntl
import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

# What a deadline, a lease or the chance of a race decides. Paths as pytest names tests: from the folder of pytest.ini.
ALONE = (
    "races/",
    "adapters/test_wire_answers.py",
    "adapters/test_wire_intent.py",
    "fleet/test_killed_workers.py",
    "fleet/test_stopped_workers.py",
    "ledger/test_epochs.py",
    "peers/test_input_round_everything.py",
    "workers/test_bucket.py",
)
# Each test starts servers of its own and waits for them most of the time.
SHARES_NOTHING = ("console/test_devstack.py", "console/test_demo.py")
SHARES_A_FLEET = "console/"


def scope_of(nodeid: str) -> str:
    """Return the name of what stays together on one worker: tests of one scope run there one after the other."""
    if nodeid.startswith(ALONE):
        return "alone"
    if nodeid.startswith(SHARES_NOTHING):
        return nodeid
    if nodeid.startswith(SHARES_A_FLEET):
        return SHARES_A_FLEET
    return nodeid.partition("::")[0]


class Turns:
    """A room that one test which judges time has to itself, and any number of others share.

    Two locks of the kernel's, which frees them however a worker ends. Who waits for the room keeps the door: without
    it the others would follow each other in for ever.
    """

    def __init__(self, folder: Path) -> None:
        self._door, self._room = (os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600) for name in ("door", "room"))
        self._alone = False

    def enter(self, *, alone: bool) -> None:
        """Wait for the turn; from one test that judges time to the next the room is kept."""
        if self._alone:
            return
        fcntl.flock(self._door, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        finally:
            fcntl.flock(self._door, fcntl.LOCK_UN)
        self._alone = alone

    def leave(self) -> None:
        fcntl.flock(self._room, fcntl.LOCK_UN)
        self._alone = False

    def close(self) -> None:
        os.close(self._door)
        os.close(self._room)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Run a test in its turn, with what it sets up and tears down."""
        alone = item.nodeid.startswith(ALONE)
        self.enter(alone=alone)
        try:
            return (yield)
        finally:
            if not (alone and nextitem is not None and nextitem.nodeid.startswith(ALONE)):
                self.leave()


def pytest_configure(config: pytest.Config) -> None:
    """On a worker: take turns with the others."""
    if (given := getattr(config, "workerinput", None)) is not None:
        turns = Turns(Path(given["turns"]))
        config.add_cleanup(turns.close)
        config.pluginmanager.register(turns)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Where the workers are started: tell each of them the folder of the locks."""
    config: pytest.Config = node.config
    if _FOLDER not in config.stash:
        folder = tempfile.TemporaryDirectory(prefix="counterfoil-turns-")
        config.add_cleanup(folder.cleanup)
        config.stash[_FOLDER] = folder.name
    node.workerinput["turns"] = config.stash[_FOLDER]


_FOLDER = pytest.StashKey[str]()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand the tests out by scope, those of many tests first."""
    from xdist.scheduler import LoadScopeScheduling

    class ByScope(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return ByScope(config, log)
