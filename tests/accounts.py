"""The accounts of this machine that a development stack is tried with."""

import os
import pwd
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Account:
    """Who runs a development stack in a test, and with which interpreter; no user = ourselves."""

    name: str
    python: str = sys.executable
    user: int | None = None
    group: int | None = None

    def popen_options(self) -> dict[str, Any]:
        if self.user is None:
            return {}
        return {"user": self.user, "group": self.group, "extra_groups": []}

    def python_path(self) -> str:
        """Where an interpreter outside of our environment finds what ours finds."""
        # An editable install is a hook in our own environment; elsewhere the link that `make check` uses too serves.
        link = Path(__file__).parents[1] / ".types" / "counterfoil"
        link.parent.mkdir(exist_ok=True)
        with suppress(FileExistsError):
            link.symlink_to("..")
        return os.pathsep.join((str(link.parent), *filter(None, sys.path)))


def _accounts() -> list[Account]:
    """Return the accounts to try a stack with: ourselves, and where we are root one that isn't.

    Root's own interpreter may lie in a private home; then one of the same version on the system's path is taken.
    """
    if os.geteuid() != 0:
        return [Account("normal user")]
    nobody = pwd.getpwnam("nobody")
    system_python = shutil.which(f"python3.{sys.version_info.minor}", path=os.defpath)
    for python in filter(None, (sys.executable, system_python)):
        account = Account("nobody", python, nobody.pw_uid, nobody.pw_gid)
        with suppress(PermissionError, subprocess.CalledProcessError):
            subprocess.run(
                [python, "-c", "import counterfoil.console, pydantic, psycopg, psutil"],
                check=True,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PYTHONPATH": account.python_path()},
                **account.popen_options(),
            )
            return [Account("root"), account]
    return [Account("root")]


ACCOUNTS = _accounts()

whoever_runs_it = pytest.mark.parametrize("account", ACCOUNTS[-1:], indirect=True, ids=lambda account: account.name)
"""Marks what is the same for every account: it is tried as the one with the fewest rights."""
