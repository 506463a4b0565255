"""The demo, whole: real servers, two workers of which one is killed, somebody else's MCP server, a proxy that loses
answers; and no orphan ever."""

import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from counterfoil import Client
from counterfoil.adapters import registry
from counterfoil.console import demo_lost
from counterfoil.console.demo_book import read_book

from .conftest import Run, environment_of
from .mcp_server import serving

DEADLINE_S = 90
REST_S = 20


class Folder:
    """A private folder of one account, and `counterfoil` run in it with nothing set."""

    def __init__(self, python: str = sys.executable, user: int | None = None, **popen_options: Any) -> None:
        self.program = [python, "-P", "-m", "counterfoil"]
        self.path = Path(tempfile.mkdtemp(prefix="counterfoil-demo-"))
        self._options = {"user": user, **popen_options}
        if user is not None:
            os.chown(self.path, user, popen_options["group"])

    def start(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self.path,
            env=environment_of() | {"HOME": str(self.path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **self._options,
        )

    def run(self, *command: str) -> tuple[int, str, str]:
        process = self.start(*command)
        output, errors = process.communicate(timeout=DEADLINE_S)
        return process.returncode, output, errors

    def running(self) -> list[psutil.Process]:
        """Every process that was started from here. Our own have this home; the servers' environment is bare."""
        found = []
        pids = _pids(json.loads(self.state_file.read_text())) if self.state_file.exists() else set[int]()
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                ours = process.pid in pids or process.environ().get("HOME") == str(self.path)
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def left_over(self) -> list[str]:
        """What still runs after a while: what isn't our child ends without telling us."""
        end_s = time.monotonic() + REST_S
        while (left := self.running()) and time.monotonic() < end_s:
            time.sleep(0.05)  # real processes end in real time
        return [_described(process) for process in left]

    @property
    def state_file(self) -> Path:
        return self.path / ".counterfoil" / "dev.json"

    def remove(self) -> None:
        self.run(*self.program, "dev", "reset", "--yes")
        shutil.rmtree(self.path)


def _described(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return f"{process.pid} (child of {process.ppid()}, {process.status()}): {' '.join(process.cmdline()[1:])}"
    return f"{process.pid}, which has ended now"


def _pids(state: dict[str, Any]) -> set[int]:
    identities = [state["supervisor"], *(server["process"] for server in state["servers"].values())]
    return {identity["pid"] for identity in identities if identity is not None}


@pytest.fixture
def folder(account: Any) -> Iterator[Folder]:
    """A folder of each account that this machine allows."""
    made = Folder(account.python, **account.popen_options())
    yield made
    made.remove()


@pytest.fixture
def own_folder() -> Iterator[Folder]:
    made = Folder()
    yield made
    made.remove()


def test_the_main_job_runs_through_a_killed_worker_and_the_servers_count_agrees(folder: Folder) -> None:
    code, output, told = folder.run(*folder.program, "demo", "--json")
    assert code == 0, told
    *lines, act = map(json.loads, output.splitlines())
    operations = {line["tool"]: line for line in lines}
    assert {tool: line["outcome"] for tool, line in operations.items()} == {
        "generate_report": "succeeded",
        "fail_report": "failed",
        "slow_report": "succeeded",
        "send_invoice": "succeeded",
    }
    for line in operations.values():
        assert line.keys() >= {"call_node_id", "protocol", "state", "outcome", "receipt_id", "task_id", "epoch"}
        assert (line["state"], line["protocol"], line["epoch"]) == ("ACCEPTED", "mcp-2026-07-28", 1)
        assert (line["server_runs"], line["receipt_sound"], line["attempt"]) == (1, True, 1)
    assert len({line["task_id"] for line in operations.values()}) == 4
    assert "it holds the slow call: the last poll came from it" in told
    assert "page 2 of 8" in told
    assert f"{operations['send_invoice']['call_node_id']}  SUBMISSION_UNKNOWN" in told
    assert "naive loop: no answer in 3 s, calling again" in told
    assert act == {
        "act": "a lost answer",
        "tool": "send_invoice",
        "naive_operations": 2,
        "counterfoil_operations": 1,
        "counterfoil_receipts": 1,
    }
    assert "The server started 4 operations for us; the ledger holds 4 receipts.\n" in told
    assert told.endswith("\nnaive: 2 operations · counterfoil: 1 operation, 1 receipt\n")
    assert folder.left_over() == []

    commands = [line.strip() for line in told.partition("Next:\n")[2].partition("\n\n")[0].splitlines()]
    assert len(commands) == 4
    for command in commands:
        code, _, said = folder.run(*shlex.split(command))
        assert code == 0, (command, said)
    assert folder.left_over() == []


def test_each_protocol_has_a_sound_receipt_and_its_server_started_the_call_once(own_folder: Folder) -> None:
    code, output, told = own_folder.run(*own_folder.program, "demo", "--protocol", "all", "--json")
    assert code == 0, told
    lines = [json.loads(line) for line in output.splitlines()]
    assert [line["protocol"] for line in lines] == list(registry.PROTOCOLS)
    for line in lines:
        assert (line["state"], line["outcome"], line["attempt"]) == ("ACCEPTED", "succeeded", 1), line
        assert (line["server_runs"], line["receipt_sound"]) == (1, True), line
    for protocol in ("mcp-2025-11-25", "aip-151", "http-202", "a2a-1.0"):
        assert f"/{protocol}  SUBMISSION_UNKNOWN" in told
    assert told.endswith("The servers started 6 operations for us; the ledger holds 6 receipts.\n")
    assert own_folder.left_over() == []


def test_the_demo_says_which_protocols_it_has(cli_in: Callable[..., Run]) -> None:
    told = cli_in()("demo", "--protocol", "mcp-2024")
    assert (told.code, told.out) == (2, "")
    assert "There is: " + ", ".join(registry.PROTOCOLS) in told.err


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)], ids=str
)
def test_a_demo_that_is_broken_off_leaves_no_process(own_folder: Folder, number: signal.Signals, code: int) -> None:
    demo = own_folder.start(*own_folder.program, "demo", "--json")
    assert demo.stderr is not None
    for line in demo.stderr:
        if "submitted three calls" in line:
            break
    # Demo, supervisor, two servers, the MCP server, the proxy, beat, two workers with a child each.
    assert len(own_folder.running()) >= 11
    demo.send_signal(number)
    output, told = demo.communicate(timeout=DEADLINE_S)
    assert (demo.returncode, output) == (code, "")
    assert "Traceback" not in told
    assert own_folder.left_over() == []


def test_with_keep_the_stack_goes_on_for_the_next_commands(own_folder: Folder) -> None:
    code, output, told = own_folder.run(*own_folder.program, "demo", "--json", "--keep")
    assert (code, len(output.splitlines())) == (0, 5), told
    assert len(own_folder.running()) == 3
    node = json.loads(output.splitlines()[0])["call_node_id"]
    assert own_folder.run(*own_folder.program, "receipt", node, "-n", "demo", "--verify")[0] == 0


def test_without_the_key_lookup_a_lost_answer_is_a_case_and_nothing_is_sent_again(
    database: str, demo_server: tuple[int, Path], start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """The demo's own target but for the lookup: the server ran the call, we can't know, so a person is asked."""
    server_port, book = demo_server
    with _proxy(server_port, demo_lost.TOOL) as proxy_port:
        lines = demo_lost.target(proxy_port).splitlines()
        without = [line for line in lines if "lookup:" not in line]
        assert len(without) == len(lines) - 1
        targets_file = tmp_path / "targets.yaml"
        targets_file.write_text("\n".join(["targets:", *without]))
        worker = start("worker", "--solo", DATABASE_URL=database, TARGETS_FILE=str(targets_file), TICK_S="0.1")
        assert worker.stderr is not None
        assert worker.stderr.readline().startswith("worker ready:")
        run = secrets.token_hex(4)
        client = Client(database, namespace="demo")
        client.submit(demo_lost.TARGET, demo_lost.TOOL, demo_lost.arguments(run), call_node_id="lost")
        end_s = time.monotonic() + REST_S
        while not (operation := client.get("lost")).cases and time.monotonic() < end_s:
            time.sleep(0.05)  # the answer is missed in real time
        assert client.receipt("lost") is None
        client.close()
    assert (operation.state, operation.task_id, operation.attempt) == ("SUBMISSION_UNKNOWN", None, 1)
    assert [(case.kind, case.code) for case in operation.cases] == [("UNKNOWN", "E_SUBMISSION_UNKNOWN")]
    assert read_book(book, run).runs == {demo_lost.TOOL: 1}


def test_the_proxy_loses_one_answer_a_client_and_only_after_the_server_gave_it() -> None:
    def answer(method: str, message: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        return 200, {"Content-Type": "application/json"}, json.dumps(message).encode()

    with serving(answer) as server, _proxy(server.port, "send") as port:

        def ask(client: str, tool: str = "send") -> Any:
            headers = {"User-Agent": client, "Mcp-Method": "tools/call", "Mcp-Name": tool}
            return httpx.post(
                f"http://127.0.0.1:{port}/mcp", json={"method": tool}, headers=headers, timeout=1, trust_env=False
            ).json()

        assert ask("one", "other") == {"method": "other"}
        for client in ("one", "two"):
            with pytest.raises(httpx.ReadTimeout):
                ask(client)
            assert ask(client) == {"method": "send"}
    assert server.asked == ["other", "send", "send", "send", "send"]


@contextmanager
def _proxy(upstream_port: int, tool: str) -> Iterator[int]:
    command = [sys.executable, "-P", "-m", "counterfoil.console.demo_proxy", str(upstream_port), tool]
    with subprocess.Popen(
        command, env=environment_of(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()
