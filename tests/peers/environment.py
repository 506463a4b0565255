"""The peers' own environment: made once, from a lock with hashes, into a folder that git ignores.

pygeoapi alone brings 40 packages, and none of them may meet ours. `python -m counterfoil.tests.peers.environment` makes
it; 20 s on two cores.
"""

import fcntl
import hashlib
import subprocess
import sys
import venv
from pathlib import Path

LOCK = Path(__file__).resolve().with_name("python.lock")
FOLDER = LOCK.parent / "python"


def python() -> Path:
    """The interpreter of the environment, which is made where it is missing or of another lock. One process makes it,
    others wait."""
    found, stamp = FOLDER / "bin" / "python", FOLDER / ".made-from"
    wanted = f"{hashlib.sha256(LOCK.read_bytes()).hexdigest()} {sys.version_info.major}.{sys.version_info.minor}"
    with FOLDER.with_name(".python-being-made").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not (stamp.exists() and stamp.read_text() == wanted):
            venv.create(FOLDER, clear=True, with_pip=True)
            options = ["--require-hashes", "--no-deps", "--only-binary", ":all:"]
            pip = [found, "-m", "pip", "-qqq", "--disable-pip-version-check", "install", *options, "-r", LOCK]
            subprocess.run(pip, check=True, timeout=300)
            stamp.write_text(wanted)
    return found


if __name__ == "__main__":
    print(python())
