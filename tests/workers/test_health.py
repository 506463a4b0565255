"""Signs of life: who moves is alive, who stands still is not, whatever stands around."""

import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from celery import Celery

from counterfoil.workers.app import HEALTH_DIR
from counterfoil.workers.beat import Ticker
from counterfoil.workers.bucket import LocalBucket
from counterfoil.workers.drive import STUCK_S, Drive
from counterfoil.workers.health import SERVING, STARTING, HealthError, Pulse, troubles

from .kit_world import targets

PATIENCE_S = 30.0


def told(folder: Path, *, ready: bool = False) -> list[str]:
    return list(troubles(folder, "worker", ready=ready))


def age(folder: Path, seconds: float) -> None:
    """The last sign of life becomes that much older."""
    for path in folder.iterdir():
        moment = path.stat().st_mtime - seconds
        os.utime(path, (moment, moment))


def test_a_process_that_moves_is_alive_and_ready_once_it_serves(tmp_path: Path) -> None:
    assert told(tmp_path) == [f"no worker has left a sign of life in {tmp_path}."]
    pulse = Pulse(tmp_path, "worker")
    pulse.beat(0.0, STARTING)
    assert told(tmp_path) == []
    assert told(tmp_path, ready=True) == [f"worker-{os.getpid()} does not serve yet."]
    pulse.beat(0.1, SERVING)
    assert told(tmp_path, ready=True) == []
    assert list(troubles(tmp_path, "beat", ready=False)) != []


def test_a_process_that_stood_still_is_not_alive_until_it_moves_again(tmp_path: Path) -> None:
    pulse = Pulse(tmp_path, "worker")
    pulse.beat(0.0, SERVING)
    age(tmp_path, 31)
    (trouble,) = told(tmp_path)
    assert trouble.startswith(f"worker-{os.getpid()} has stood still for 31 s")
    pulse.beat(0.5, SERVING)
    assert told(tmp_path) != [], "a file is written once a second at most"
    pulse.beat(1.0, SERVING)
    assert told(tmp_path) == []


def test_one_child_that_stands_still_is_enough_and_one_that_has_ended_does_not_count(tmp_path: Path) -> None:
    Pulse(tmp_path, "worker").beat(0.0, SERVING)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        path = tmp_path / f"worker-{other.pid}"
        path.write_text(SERVING)
        os.utime(path, (1, 1))
        (trouble,) = told(tmp_path)
        assert trouble.startswith(path.name)
        other.communicate(b"\n")
    assert told(tmp_path) == []


def test_a_folder_that_was_emptied_is_filled_again(tmp_path: Path) -> None:
    pulse = Pulse(tmp_path / "deep" / "health", "worker")
    pulse.beat(0.0, SERVING)
    (tmp_path / "deep" / "health" / f"worker-{os.getpid()}").unlink()
    pulse.beat(1.0, SERVING)
    assert told(tmp_path / "deep" / "health", ready=True) == []


def test_a_folder_that_can_not_be_made_is_told_and_a_disk_that_fails_later_stops_no_loop(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HealthError, match="COUNTERFOIL_HEALTH_DIR"):
        Pulse(tmp_path / "file" / "health", "worker")
    pulse = Pulse(tmp_path / "health", "worker")
    (tmp_path / "health").rmdir()
    pulse.beat(0.0, SERVING)
    assert told(tmp_path / "health") != []


def test_beat_moves_with_its_ticks_whether_or_not_the_broker_takes_them(tmp_path: Path) -> None:
    app = Celery("ticks", broker="redis://127.0.0.1:1/0", set_as_current=False)
    app.conf.update(
        beat_schedule={"tick": {"task": "tick", "schedule": 0.01}},
        result_expires=None,
        task_publish_retry=False,
        broker_connection_retry=False,
        **{HEALTH_DIR: tmp_path},
    )
    beat = Ticker(app)
    beat.tick()
    assert list(troubles(tmp_path, "beat", ready=True)) == []


def test_a_loop_does_not_move_while_a_write_to_its_ledger_is_never_answered(database: str) -> None:
    """On a half-open connection a write is never answered, and only the process's end brings it back to work: its loop
    still turns, so turning alone would be no sign of life."""
    known = targets("a")
    moved: queue.SimpleQueue[float] = queue.SimpleQueue()
    drive = Drive(
        database,
        known,
        LocalBucket(known.limits, lambda: 0.0),
        ended=lambda _: None,
        moved=moved.put,
    )
    drive.start()
    try:
        moved.get(timeout=PATIENCE_S)
        standing, go_on = threading.Event(), threading.Event()

        def never_answered() -> None:
            standing.set()
            go_on.wait(PATIENCE_S)

        drive._run_in(drive._bulk, lambda: (never_answered(), [])[1], None)
        assert standing.wait(PATIENCE_S)
        moved.get(timeout=PATIENCE_S)
        drive._since_s[drive._bulk] -= STUCK_S
        while not moved.empty():
            moved.get()
        with pytest.raises(queue.Empty):
            # Real time: the loop turns once a second, so one and a half without a sign are one turn that gave none.
            moved.get(timeout=1.5)
        go_on.set()
        moved.get(timeout=PATIENCE_S)
    finally:
        assert drive.stop(PATIENCE_S)
