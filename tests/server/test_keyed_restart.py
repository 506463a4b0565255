"""Real processes on one store, killed in the middle: what was begun is never begun again."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .kit import WAIT_S, body, call, headers, lookup, new_key
from .stores import Place, sqlite_place, valkey_place

Start = Callable[[], tuple[subprocess.Popen[str], str]]


@pytest.fixture(params=[("mcp", "sqlite"), ("fastmcp", "valkey")], ids="-".join)
def parts(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Place, Path]:
    """An SDK, a store, and the tools' book."""
    sdk, store = request.param
    place = sqlite_place(tmp_path / "keys") if store == "sqlite" else valkey_place(request.getfixturevalue("broker"))
    (tmp_path / "book").touch()
    return sdk, place, tmp_path / "book"


@pytest.fixture
def start(parts: tuple[str, Place, Path]) -> Iterator[Start]:
    """Start a server process on these parts: the process, and its URL."""
    sdk, place, book = parts
    command = [sys.executable, "-P", Path(__file__).parent / "keyed_server.py", sdk, place.where, book]
    started = []

    def begin() -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        started.append(process)
        assert process.stdout is not None
        return process, f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def test_a_key_whose_server_was_killed_is_unsure_and_never_runs_again(
    parts: tuple[str, Place, Path], start: Start
) -> None:
    """Killed while the tool runs: the next server finds the key taken and no outcome. Until its silence is long
    enough it counts as running, for another process could still be at it."""
    _, place, book = parts
    key, done = new_key(), new_key()
    process, url = start()
    first = call(url, "add", {"a": 1}, key=done)
    address = urlsplit(url)
    caller = HTTPConnection(address.hostname or "", address.port)
    sent = headers("stuck") | {"Content-Type": "application/json"}
    caller.request("POST", address.path, json.dumps(body("stuck", {}, key)), sent)
    deadline = time.monotonic() + WAIT_S
    while "stuck" not in book.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)  # another process writes the book
    process.kill()
    process.wait()
    caller.close()

    _, url = start()
    assert lookup(url, key, "stuck") == {"found": True, "running": True}
    place.age(60)
    assert lookup(url, key, "stuck") == {"found": True, "unsure": True}
    refused = call(url, "stuck", {}, key=key)["error"]
    assert (refused["code"], refused["data"]) == (-32603, {"code": "E_KEY_UNSURE"})
    assert call(url, "add", {"a": 1}, key=done) == first
    assert book.read_text().split() == ["add", "stuck"]


def test_two_server_processes_on_one_store_run_a_key_once(parts: tuple[str, Place, Path], start: Start) -> None:
    _, _, book = parts
    keys = [new_key() for _ in range(4)]
    urls = [start()[1], start()[1]]
    with ThreadPoolExecutor(16) as pool:
        calls = [pool.submit(call, url, "add", {"a": 1}, key=key) for key in keys for url in urls * 2]
        answers = [each.result(WAIT_S)["result"]["structuredContent"] for each in calls]
    assert answers == [{"result": 2}] * 16
    assert book.read_text().split() == ["add"] * 4
