"""A Node.js script that uses nothing of ours hands in an operation by name."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from counterfoil.tests.workers.kit_messages import KEY_ID, SECRET, Worker, worker

SCRIPT = Path(__file__).parents[2] / "examples" / "submit.mjs"


@pytest.fixture
def running(tmp_path: Path, database: str, broker: str) -> Iterator[Worker]:
    with worker(tmp_path, database, broker) as made:
        yield made


def submit(broker: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    given = {"COUNTERFOIL_BROKER_URL": broker, "COUNTERFOIL_KEY_ID": KEY_ID, "BILLING_KEY": SECRET} | environ
    return subprocess.run(
        ["node", SCRIPT, *arguments],
        env={"PATH": os.environ["PATH"], **given},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_node_script_hands_in_an_operation_by_name(running: Worker) -> None:
    call = ("reports", "generate_report", '{"month": "2026-10", "note": "für \\u2028 Zoë"}', "run-42/step-3")
    for _ in range(2):
        ran = submit(running.broker, *call)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "handed to the broker: run-42/step-3\n")
    assert submit(running.broker, *call, BILLING_KEY=SECRET + "!").returncode == 0
    running.until(lambda: running.letters() and running.client.operations())
    (operation,) = running.client.operations()
    assert (operation.namespace, operation.principal, operation.target) == ("billing", "svc-billing", "reports")
    (letter,) = running.letters()
    assert (letter.code, letter.key_id) == ("E_MESSAGE_FORGED", KEY_ID)


def test_it_says_what_went_wrong_and_no_secret(broker: str) -> None:
    call = ("reports", "generate_report", "{}", "run/1")
    port = urlsplit(broker).port
    for url, why in (
        (f"redis://:hunter2@127.0.0.1:{port}/0", "WRONGPASS"),
        ("redis://127.0.0.1:1/0", "ECONNREFUSED"),
        (f"{broker.rpartition('/')[0]}/99999", "the broker refused"),
    ):
        ran = submit(url, *call)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert why in ran.stderr
        assert "hunter2" not in ran.stderr
    assert submit(broker, *call[:3]).returncode == 2
    assert "usage" in submit(broker, *call[:3]).stderr
    assert submit(broker, "reports", "t", "{nope", "run/1").returncode == 1
