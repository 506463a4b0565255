"""A server of the official SDK without tasks (mcp 2.3): the common path, one blocking call with a published bound."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from counterfoil.tests.fleet.conftest import Fleet

HERE = Path(__file__).parent


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Its URL, and the file where it notes each call that it begins."""
    begun = tmp_path / "begun.log"
    begun.touch()
    server = subprocess.Popen(
        [sys.executable, "-P", HERE / "plain_server.py", begun],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/mcp", begun
    finally:
        server.kill()
        server.communicate()


@pytest.fixture
def at_plain(fleet: Fleet, plain: tuple[str, Path]) -> Fleet:
    Path(fleet.environ["COUNTERFOIL_TARGETS_FILE"]).write_text(
        f"targets:\n  plain: {{url: '{plain[0]}', protocol: mcp-sync, sync_bound_s: 20, qps: 50, burst: 20}}\n"
    )
    fleet.environ["COUNTERFOIL_KEYS"] = Fernet.generate_key().decode()
    fleet.announce("plain", "mcp-sync")
    return fleet


def test_blocking_calls_run_beside_each_other_and_give_their_receipts(at_plain: Fleet, plain: tuple[str, Path]) -> None:
    nodes = [f"sum-{index}" for index in range(5)]
    for index, node in enumerate(nodes):
        at_plain.client.submit("plain", "add", {"a": index, "b": 2, "secs": 2}, call_node_id=node)
    at_plain.start(solo=True)
    at_plain.until("all have receipts", lambda: len(at_plain.receipts(nodes)) == 5, 30)
    results = {receipt.call_node_id: receipt.result for receipt in at_plain.receipts(nodes)}
    assert results == {node: {"result": index + 2} for index, node in enumerate(nodes)}
    assert plain[1].read_text().splitlines() == ["add"] * 5


def test_a_blocking_call_whose_worker_dies_is_never_made_again(at_plain: Fleet, plain: tuple[str, Path]) -> None:
    """Nobody can tell what became of it, so it asks a person; the server's count stays one."""
    at_plain.client.submit("plain", "add", {"a": 1, "b": 2, "secs": 60}, call_node_id="long")
    first = at_plain.start(solo=True)
    at_plain.until("the server has begun", lambda: plain[1].read_text() != "", 30)
    first.signal(signal.SIGKILL)
    at_plain.start(solo=True)
    at_plain.until("it is unknown", lambda: at_plain.states() == {"SUBMISSION_UNKNOWN": 1}, 40)
    assert [case.code for case in at_plain.client.get("long").cases] == ["E_SUBMISSION_UNKNOWN"]
    assert plain[1].read_text().splitlines() == ["add"]
