"""The commands for whoever watches a fleet: health and exporter."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

from pathlib import Path
from typing import Annotated, Literal

import typer

from .connect import Fleet, load_settings
from .exits import Exit, end
from .output import say

app = typer.Typer()


@app.command()
def health(
    kind: Annotated[Literal["worker", "beat"], typer.Argument(metavar="worker|beat", help="Whose processes.")],
    *,
    ready: Annotated[bool, typer.Option("--ready", help="Must they serve as well?")] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--dir", envvar="COUNTERFOIL_HEALTH_DIR", metavar="DIR", help="Where they leave signs of life."),
    ] = None,
) -> None:
    """Do the processes on this machine move? For probes: exit 0, or 1 with the reason.

    Life is progress: each loop must have turned within 30 s. A worker whose database or broker is away is alive: it
    waits, and a restart would help nobody.

    \b
    Examples:
      COUNTERFOIL_HEALTH_DIR=/tmp/health counterfoil health worker
      counterfoil health worker --ready --dir /tmp/health
    """
    from ..workers.health import HealthError, troubles

    if folder is None:
        raise HealthError(
            "COUNTERFOIL_HEALTH_DIR is unset, so no process leaves a sign of life.",
            next_step="Set it for worker, beat and this command alike.",
        )
    found = list(troubles(folder, kind, ready=ready))
    for trouble in found:
        say(trouble)
    end(Exit.INTERNAL if found else Exit.OK)


@app.command()
def exporter(
    *,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0: any that is free.")] = 9108,
    fleet: Fleet = None,
) -> None:
    """Serve the fleet's metrics to Prometheus: GET /metrics.

    Reads the ledger and nothing else, as `counterfoil_reader` where its login is a member of that role. One is enough,
    two do no harm. Runs until SIGTERM or Ctrl-C.

    \b
    Examples:
      counterfoil exporter
      counterfoil exporter --host 0.0.0.0 --port 9108
    """
    from .exporter_process import run_exporter

    end(run_exporter(load_settings(fleet=fleet), host, port))
