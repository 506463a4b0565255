"""docs/check.md: what `check` says of a real peer, kept in step by the tests that ask it (WRITE_DOCS=1 writes it)."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "check.md"
WRITE = bool(os.environ.get("WRITE_DOCS"))

SHOWN_PORT = "50000"
"""As long as the port that a system gives: the lines break at the same places."""


def counterfoil(*arguments: str, cwd: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """`counterfoil …` in a process of its own, with nothing but these settings."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        **{f"COUNTERFOIL_{name}": value for name, value in settings.items()},
    }
    command = [sys.executable, "-P", "-m", "counterfoil", *arguments]
    return subprocess.run(
        command, check=False, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def hold_in_step(name: str, url: str, cwd: Path) -> None:
    """Ask the peer, and compare with the page, or write it."""
    told = counterfoil("check", url, cwd=cwd)
    assert (told.returncode, told.stderr) == (0, "")
    hold_words_in_step(name, url, told.stdout)


def hold_words_in_step(name: str, url: str, words: str, targets: str = "") -> None:
    """Compare what was said of the server at `url` with the page, or write it. `targets`: the file that declares it."""
    parts = [f"```yaml\n{targets}```\n"] if targets else []
    text = "".join((*parts, f"```\n{words}```\n")).replace(f":{urlsplit(url).port}", f":{SHOWN_PORT}")
    block = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    page = PAGE.read_text(encoding="utf-8")
    assert block.search(page), f"the page has no place for {name}"
    wanted = block.sub(lambda found: f"{found[1]}{text}{found[2]}", page)
    if WRITE:
        PAGE.write_text(wanted, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == wanted, "WRITE_DOCS=1 writes the page"
