"""What to try after the demo: commands that run as pasted, written as its own was."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from ..ledger.location import DEFAULT_STATE_DIR


def next_commands(state_dir: Path, namespace: str, call_node_id: str) -> list[str]:
    """One a line. With external servers there is no stack to start and stop."""
    program = _program()
    where = "" if state_dir == DEFAULT_STATE_DIR else f"COUNTERFOIL_STATE_DIR={shlex.quote(str(state_dir))} "
    external = all(os.environ.get(f"COUNTERFOIL_{name}_URL") for name in ("DATABASE", "BROKER"))
    commands = [
        *([] if external else ["dev up"]),
        f"list -n {namespace}",
        f"receipt {call_node_id} -n {namespace} --verify",
        *([] if external else ["dev stop"]),
    ]
    return [f"{where}{program} {command}" for command in commands]


def _program() -> str:
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m counterfoil"
    found = shutil.which(started.name)
    on_path = found is not None and Path(found).resolve() == started.resolve()
    return started.name if on_path else shlex.quote(sys.argv[0])
