"""The command of the callbacks' door."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

from pathlib import Path
from typing import Annotated

import typer

from .connect import Fleet, load_settings
from .exits import end

app = typer.Typer()


@app.command()
def hooks(
    *,
    hooks_file: Annotated[
        Path,
        typer.Option(
            metavar="FILE", envvar="COUNTERFOIL_HOOKS_FILE", help="Which targets may call back, and their secrets."
        ),
    ] = Path("hooks.yaml"),
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0: any that is free.")] = 8790,
    fleet: Fleet = None,
) -> None:
    """Take callbacks: POST /hooks/TARGET wakes the reading of a task early.

    A callback proves nothing and is never needed: without this process tasks are read at their own pace. Put a proxy
    with TLS in front of it. Runs until SIGTERM or Ctrl-C.

    \b
    Examples:
      counterfoil hooks
      counterfoil hooks --host 0.0.0.0 --port 8080 --hooks-file /etc/counterfoil/hooks.yaml
    """
    from .hooks_process import run_hooks

    end(run_hooks(load_settings(fleet=fleet), hooks_file, host, port))
