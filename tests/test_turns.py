"""Whose turn it is when tests run side by side. The locks are real; a worker is a thread with locks of its own."""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil.tests.turns import ALONE, SHARES_A_FLEET, SHARES_NOTHING, Turns, scope_of

PATIENCE_S = 20.0


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[Turns]]:
    """Three workers of one run."""
    made = [Turns(tmp_path) for _ in range(3)]
    yield made
    for turns in made:
        turns.close()


def is_taken(path: Path, how: int) -> bool:
    handle = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def entering(turns: Turns, *, alone: bool) -> threading.Thread:
    thread = threading.Thread(target=turns.enter, kwargs={"alone": alone}, daemon=True)
    thread.start()
    return thread


def until_the_door_is_kept(folder: Path) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not is_taken(folder / "door", fcntl.LOCK_EX):
        assert time.monotonic() < end_s, "nobody waits for the room"
        time.sleep(0.002)  # nothing tells that a thread has come to wait for a lock of the kernel's


def test_tests_of_other_kinds_run_beside_each_other(workers: list[Turns]) -> None:
    for turns in workers:
        thread = entering(turns, alone=False)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_one_that_judges_time_waits_for_the_others_and_nobody_overtakes_it(
    workers: list[Turns], tmp_path: Path
) -> None:
    """The race: one is in the room, one that judges time waits for it to leave, a third comes meanwhile.

    Did the third get in beside the first, the second would wait as long as tests are left.
    """
    first, judge, late = workers
    first.enter(alone=False)
    judging = entering(judge, alone=True)
    until_the_door_is_kept(tmp_path)
    coming = entering(late, alone=False)
    first.leave()
    judging.join(PATIENCE_S)
    assert not judging.is_alive()
    assert is_taken(tmp_path / "room", fcntl.LOCK_SH)
    assert coming.is_alive()
    judge.leave()
    coming.join(PATIENCE_S)
    assert not coming.is_alive()


def test_the_room_is_kept_from_one_that_judges_time_to_the_next_though_others_wait_at_the_door(
    workers: list[Turns], tmp_path: Path
) -> None:
    judge, other, _ = workers
    judge.enter(alone=True)
    coming = entering(other, alone=False)
    until_the_door_is_kept(tmp_path)
    again = entering(judge, alone=True)
    again.join(PATIENCE_S)
    assert not again.is_alive()
    assert coming.is_alive()
    judge.leave()
    coming.join(PATIENCE_S)
    assert not coming.is_alive()


@pytest.mark.parametrize(
    ("nodeid", "scope"),
    [
        ("races/test_a.py::test_b[x::y]", "alone"),
        ("workers/test_a.py::test_b[x::y]", "workers/test_a.py"),
        ("console/test_a.py::test_b", "console/"),
        ("console/test_devstack.py::test_b[root]", "console/test_devstack.py::test_b[root]"),
    ],
)
def test_what_shares_servers_stays_together(nodeid: str, scope: str) -> None:
    assert scope_of(nodeid) == scope


@pytest.mark.parametrize("path", [*ALONE, *SHARES_NOTHING, SHARES_A_FLEET])
def test_every_path_that_is_named_is_there(path: str) -> None:
    """A file that was renamed would run beside others, or split what shares servers, and nobody would be told."""
    assert (Path(__file__).parent / path).exists()
