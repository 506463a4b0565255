"""The README's "Now your own server" block, from an empty folder with the wheel installed, as a newcomer would."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel, unpacked: what an installation puts on the path, and nothing of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    # From a copy: a build leaves folders of its own in the source tree.
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "tests", "build", "*.egg-info", "__pycache__"))
    build = (sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation", "--wheel-dir", folder)
    subprocess.run([*build, source], check=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def report_server(tmp_path: Path) -> Iterator[str]:
    """A stranger's server: fastmcp with a tool `generate_report`."""
    script = tmp_path / "their_server.py"
    script.write_text(THEIR_SERVER)
    process = subprocess.Popen([sys.executable, "-P", script], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
    finally:
        process.kill()
        process.communicate()


THEIR_SERVER = """
import asyncio, socket
import uvicorn
from fastmcp import FastMCP
from fastmcp_tasks import TasksExtension

server = FastMCP("reports")
server.add_extension(TasksExtension())

@server.tool(task=True)
async def generate_report(month: str) -> dict:
    return {"month": month, "rows": 3}

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
config = uvicorn.Config(server.http_app(), log_level="error")
asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))
"""


class Newcomer:
    """Somebody who pastes commands in an empty folder."""

    def __init__(self, folder: Path, site: Path) -> None:
        self.folder = folder
        settings = [name for name in os.environ if name.startswith("COUNTERFOIL_")]
        self.environ = {name: value for name, value in os.environ.items() if name not in settings}
        self.environ["PYTHONPATH"] = str(site)

    def command(self, line: str) -> list[str]:
        return ["sh", "-c", line.replace("counterfoil ", f"{sys.executable} -P -m counterfoil ", 1)]

    def paste(self, line: str) -> str:
        done = self.run(self.command(line))
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=self.environ, capture_output=True, text=True, timeout=90, check=False
        )


def test_the_block_takes_a_newcomer_from_an_empty_folder_to_a_receipt(
    tmp_path: Path, site: Path, report_server: str
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    newcomer = Newcomer(folder, site)
    block = re.search(r"## Now your own server.*?```sh\n(.*?)```", README, re.DOTALL)
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert block is not None
    assert code is not None
    *lines, last = block[1].replace("http://127.0.0.1:8765/mcp", report_server).splitlines()
    assert last == "counterfoil worker --solo"
    try:
        for line in lines:
            newcomer.paste(line)
        worker = subprocess.Popen(
            newcomer.command(last),
            cwd=folder,
            env=newcomer.environ,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            assert _call(newcomer, code[1]).startswith("succeeded ")
        finally:
            os.killpg(worker.pid, signal.SIGTERM)
            worker.wait(60)
        assert "sound" in newcomer.paste("counterfoil receipt run-42/step-3 --verify")
    finally:
        newcomer.paste("counterfoil dev reset --yes")


def _call(newcomer: Newcomer, code: str) -> str:
    """The README's code. The worker announces its targets when it is up, so a newcomer tries again until it is."""
    until_s = time.monotonic() + 30
    while True:
        done = newcomer.run([sys.executable, "-P", "-c", code])
        if done.returncode == 0 or time.monotonic() > until_s:
            assert done.returncode == 0, done.stderr
            return done.stdout
        assert "E_TARGET_UNKNOWN" in done.stderr, done.stderr
