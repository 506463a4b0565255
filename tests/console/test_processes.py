"""worker and beat as processes: how they begin, how they end, what they leave."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest
import redis
from sqlalchemy.engine import make_url

from counterfoil.console import children as children_module
from counterfoil.console.children import Children
from counterfoil.console.devstate import has_ended
from counterfoil.ledger.database import Database
from counterfoil.ledger.epochs import bump

from .conftest import Served, environment_of

Start = Callable[..., subprocess.Popen[str]]


def read_until(process: subprocess.Popen[str], wanted: str) -> None:
    """Read what the process says to people until it has said this."""
    assert process.stderr is not None
    for line in process.stderr:
        if wanted in line:
            return
    raise AssertionError(f"it ended without {wanted!r}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_solo_worker_brings_home_what_is_out_and_exits_0(
    start: Start, database: str, served: Served, number: signal.Signals
) -> None:
    worker = start("worker", "--solo", DATABASE_URL=database, TARGETS_FILE=str(served.targets_file))
    read_until(worker, "worker ready: fleet main, epoch 1, all lanes, targets reports.")
    worker.send_signal(number)
    _, told = worker.communicate(timeout=30)
    assert (worker.returncode, "stopping" in told) == (0, True)


def test_a_solo_worker_whose_epoch_is_over_says_so_and_exits_75(start: Start, database: str, served: Served) -> None:
    worker = start("worker", "--solo", DATABASE_URL=database, TARGETS_FILE=str(served.targets_file), TICK_S="0.1")
    read_until(worker, "worker ready")
    ledger = Database(database)
    bump(ledger, "main", "a test")
    ledger.dispose()
    _, told = worker.communicate(timeout=30)
    assert worker.returncode == 75
    assert "E_STALE_EPOCH: epoch 1 is over" in told


def test_a_worker_that_the_ledger_has_left_behind_refuses_to_start_and_exits_78(
    start: Start, database: str, served: Served
) -> None:
    url = make_url(database).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as owner:
        owner.execute("UPDATE counterfoil.schema_floor SET version = '9998', why = 'a test'")
    worker = start("worker", "--solo", DATABASE_URL=database, TARGETS_FILE=str(served.targets_file))
    _, told = worker.communicate(timeout=30)
    assert worker.returncode == 78
    assert told.startswith("E_RELEASE_TOO_OLD: ")


def test_a_worker_reads_its_lanes_queues_and_exits_0_when_told_to(
    start: Start, database: str, broker: str, served: Served
) -> None:
    settings = {"DATABASE_URL": database, "BROKER_URL": broker, "TARGETS_FILE": str(served.targets_file)}
    worker = start("worker", "--concurrency", "1", "--lanes", "submit,poll", **settings)
    read_until(worker, "worker ready: fleet main, epoch 1, lanes submit, poll, targets reports.")
    with redis.Redis.from_url(broker) as client:
        bound = {key.decode() for key in client.keys("*_kombu.binding.*")}
        queues = {name for key in bound for name in (b.decode() for b in client.smembers(key)) if "counterfoil" in name}
    read = {name.rpartition("\x16")[2] for name in queues}
    assert read >= {"counterfoil.plan", "counterfoil.submit", "counterfoil.poll"}
    assert read.isdisjoint({"counterfoil.cancel", "counterfoil.fetch", "counterfoil.timer"})
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=60)
    assert worker.returncode == 0


def test_beat_ticks_from_memory_and_leaves_no_file(start: Start, broker: str, tmp_path: Path) -> None:
    beat = start("beat", BROKER_URL=broker)
    read_until(beat, "beat ticks")
    with redis.Redis.from_url(broker) as client:
        assert client.blpop("counterfoil:counterfoil.plan", timeout=30) is not None
    beat.send_signal(signal.SIGTERM)
    beat.communicate(timeout=30)
    assert beat.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_children_end_with_their_block_and_take_their_groups_along(tmp_path: Path, stopped: bool) -> None:
    with Children(tmp_path) as children:
        command = ["/bin/sh", "-c", "sleep 600 & echo $!; wait"]
        child = children.start("sleeper", command, environment_of(), reads_stdout=True)
        assert child.process.stdout is not None
        grandchild = psutil.Process(int(child.process.stdout.readline()))
        if stopped:
            os.killpg(child.pid, signal.SIGSTOP)
    assert child.process.returncode == -signal.SIGTERM
    end_s = time.monotonic() + 20
    while not has_ended(grandchild) and time.monotonic() < end_s:
        time.sleep(0.01)  # it was killed and isn't our child: nobody tells us when it has ended
    assert has_ended(grandchild)


def test_a_child_that_hears_nothing_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children_module, "_GRACE_S", 0.1)
    with Children(tmp_path) as children:
        code = "import signal; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
        child = children.start("deaf", [sys.executable, "-c", code], environment_of(), reads_stdout=True)
        assert child.process.stdout is not None
        child.process.stdout.readline()
    assert child.process.returncode == -signal.SIGKILL


def test_a_worker_of_another_generation_does_not_start_and_exits_75(
    start: Start, database: str, served: Served
) -> None:
    settings = {"DATABASE_URL": database, "TARGETS_FILE": str(served.targets_file), "GENERATION": "4"}
    worker = start("worker", "--solo", **settings)
    _, told = worker.communicate(timeout=60)
    assert (worker.returncode, told.partition(":")[0]) == (75, "E_GENERATION")


def test_the_first_process_of_a_container_can_be_stopped_before_its_command_has_begun() -> None:
    """The kernel ignores signals to the first process that it did not ask for: SIGTERM's default is none there."""
    code = "import os, signal\nos.getpid = lambda: 1\nfrom counterfoil.console import cli\n"
    code += "cli.program = lambda *_: lambda prog_name: signal.raise_signal(signal.SIGTERM)\ncli.main()"
    ended = subprocess.run([sys.executable, "-P", "-c", code], env=environment_of(), timeout=60, check=False)
    assert ended.returncode == 128 + signal.SIGTERM
