"""health and exporter: what a probe and a Prometheus are told by real processes."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from .conftest import Run, Served

Start = Callable[..., subprocess.Popen[str]]


def said(process: subprocess.Popen[str], wanted: str) -> str:
    """The first line of the process that says this."""
    assert process.stderr is not None
    for line in process.stderr:
        if wanted in line:
            return line
    raise AssertionError(f"it ended without {wanted!r}")


def sign_of_life(folder: Path, process: subprocess.Popen[str]) -> Path:
    """The file that the process's first turn leaves. A process that has ended leaves none."""
    while process.poll() is None:
        if folder.exists() and (found := list(folder.iterdir())):
            return found[0]
        time.sleep(0.01)  # the turn of a real process comes in real time, and it tells nobody
    raise AssertionError("it ended without a sign of life")


def test_a_worker_is_alive_and_ready_while_it_moves(
    start: Start, cli_in: Callable[..., Run], database: str, served: Served, tmp_path: Path
) -> None:
    health = tmp_path / "health"
    settings = {"DATABASE_URL": database, "TARGETS_FILE": str(served.targets_file), "HEALTH_DIR": str(health)}
    worker = start("worker", "--solo", **settings)
    run = cli_in(HEALTH_DIR=str(health))
    assert run("health", "worker").code == 1
    said(worker, "worker ready")
    file = sign_of_life(health, worker)
    for arguments in (("health", "worker"), ("health", "worker", "--ready")):
        told = run(*arguments)
        assert (told.code, told.out, told.err) == (0, "", "")
    assert list(health.iterdir()) == [file]
    worker.send_signal(signal.SIGSTOP)
    try:
        moment = file.stat().st_mtime - 60  # as if it had stood still for a minute
        os.utime(file, (moment, moment))
        told = run("health", "worker")
    finally:
        worker.send_signal(signal.SIGCONT)
    assert told.code == 1
    assert f"{file.name} has stood still for 6" in told.err
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=30)
    assert run("health", "worker").code == 1


def test_beat_leaves_a_sign_of_life(
    start: Start, cli_in: Callable[..., Run], database: str, broker: str, tmp_path: Path
) -> None:
    health = tmp_path / "health"
    beat = start("beat", DATABASE_URL=database, BROKER_URL=broker, HEALTH_DIR=str(health))
    said(beat, "beat ticks.")
    sign_of_life(health, beat)
    assert cli_in(HEALTH_DIR=str(health))("health", "beat").code == 0


def test_without_a_folder_the_probe_says_which_setting_is_missing(cli_in: Callable[..., Run]) -> None:
    told = cli_in()("health", "beat")
    assert told.code == 2
    assert told.err.startswith("E_HEALTH_DIR: COUNTERFOIL_HEALTH_DIR is unset")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_the_exporter_serves_metrics_until_it_is_told_to_stop(
    start: Start, database: str, number: signal.Signals
) -> None:
    exporter = start("exporter", "--port", "0", DATABASE_URL=database)
    url = said(exporter, "exporter ready: ").split()[2].removesuffix("/metrics,")
    with httpx.Client(base_url=url, trust_env=False) as client:
        answer = client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=")
        assert "\ncounterfoil_ledger_up 1.0\n" in answer.text
        assert (client.get("/healthz").status_code, client.get("/").status_code) == (200, 404)
        openmetrics = client.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
        assert openmetrics.text.endswith("# EOF\n")
    exporter.send_signal(number)
    _, told = exporter.communicate(timeout=30)
    assert (exporter.returncode, told) == (0, "")


def test_an_exporter_whose_ledger_is_away_says_so_in_its_metrics_and_in_json_without_the_password(
    start: Start,
) -> None:
    url = "postgresql://me:hunter2-secret@127.0.0.1:1/none"
    exporter = start("exporter", "--port", "0", DATABASE_URL=url, LOG_FORMAT="json")
    where = said(exporter, "exporter ready: ").split()[2].removesuffix("/metrics,")
    with httpx.Client(base_url=where, trust_env=False) as client:
        assert "\ncounterfoil_ledger_up 0.0\n" in client.get("/metrics").text
        assert client.get("/healthz").status_code == 200
    exporter.send_signal(signal.SIGTERM)
    _, told = exporter.communicate(timeout=30)
    assert "hunter2" not in told
    lines = [json.loads(line) for line in told.splitlines()]
    assert [line["code"] for line in lines] == ["E_LEDGER_UNAVAILABLE"]
