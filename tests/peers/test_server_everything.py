"""The npm reference server `@modelcontextprotocol/server-everything`: MCP 2025-11-25 tasks, bound to a session."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from counterfoil.tests.fleet.conftest import Fleet

PACKAGE = "@modelcontextprotocol/server-everything"
VERSION = "2026.8.31"
FOLDER = Path(__file__).parent / "node"
TOOL = "simulate-research-query"


@pytest.fixture(scope="session")
def script() -> Path:
    """The server's script, installed once into a folder that git ignores."""
    installed = FOLDER / "node_modules" / PACKAGE
    if not (installed / "package.json").exists():
        FOLDER.mkdir(exist_ok=True)
        npm = shutil.which("npm")
        assert npm is not None
        command = [npm, "install", "--prefix", FOLDER, "--no-save", "--no-package-lock", "--no-audit", "--no-fund"]
        subprocess.run([*command, f"{PACKAGE}@{VERSION}"], check=True, stdout=subprocess.DEVNULL, timeout=120)
    return installed / "dist" / "index.js"


def free_port() -> int:
    """The server takes its port by environment only, so a free one is found first."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def everything(script: Path) -> Iterator[str]:
    """The running server's URL."""
    port = free_port()
    server = subprocess.Popen(
        ["node", script, "streamableHttp"],
        env=os.environ | {"PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        assert any("listening" in line for line in server.stderr)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.kill()
        server.communicate()


@pytest.fixture
def at_everything(fleet: Fleet, everything: str) -> Fleet:
    Path(fleet.environ["COUNTERFOIL_TARGETS_FILE"]).write_text(
        f"targets:\n  everything:\n    url: {everything}\n    protocol: mcp-2025-11-25\n    qps: 50\n    burst: 20\n"
    )
    fleet.environ["COUNTERFOIL_KEYS"] = Fernet.generate_key().decode()
    return fleet


def test_a_task_is_submitted_read_and_its_result_fetched(at_everything: Fleet) -> None:
    at_everything.announce("everything", "mcp-2025-11-25")
    at_everything.client.submit("everything", TOOL, {"topic": "tea"}, call_node_id="tea")
    at_everything.start(solo=True)
    at_everything.until("the receipt is there", lambda: len(at_everything.receipts(["tea"])) == 1, 40)
    (receipt,) = at_everything.receipts(["tea"])
    assert (receipt.outcome, receipt.protocol, receipt.problems()) == ("succeeded", "mcp-2025-11-25", [])
    assert "Research Report: tea" in receipt.result["content"][0]["text"]


def test_a_second_process_goes_on_in_the_session_of_a_killed_one(at_everything: Fleet) -> None:
    """In a session of its own it would be told that a living task is not found."""
    at_everything.announce("everything", "mcp-2025-11-25")
    at_everything.client.submit("everything", TOOL, {"topic": "coffee"}, call_node_id="coffee")
    first = at_everything.start(solo=True)
    at_everything.until("it is working", lambda: at_everything.states() == {"WORKING": 1}, 30)
    first.signal(signal.SIGKILL)
    at_everything.start(solo=True)
    at_everything.until("the receipt is there", lambda: len(at_everything.receipts(["coffee"])) == 1, 40)
    (receipt,) = at_everything.receipts(["coffee"])
    assert (receipt.outcome, receipt.problems()) == ("succeeded", [])
    assert "E_SESSION_GONE" not in {line.code for line in at_everything.client.journal("coffee")}
