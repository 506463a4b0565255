"""The commands of the fleet: worker and beat."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

from typing import Annotated

import typer

from ..ledger.states import QUEUES
from .connect import Fleet, load_settings
from .exits import end

app = typer.Typer()


@app.command()
def worker(
    *,
    solo: Annotated[bool, typer.Option("--solo", help="One process, no broker, no beat.")] = False,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=1024, metavar="N", help="Processes; else COUNTERFOIL_CONCURRENCY, else one per core."),
    ] = None,
    lanes: Annotated[
        str | None, typer.Option(metavar="LANE,LANE", help=f"Serve only these: {', '.join(QUEUES)}.")
    ] = None,
    fleet: Fleet = None,
) -> None:
    """Work: submit, poll, fetch, settle. Runs until SIGTERM or Ctrl-C, then brings home what is out.

    Checks the database, its schema, the targets file and the broker first. Exits 75 when its epoch is over.

    \b
    Examples:
      counterfoil worker --concurrency 4
      counterfoil worker --solo
      COUNTERFOIL_TARGETS_FILE=/etc/counterfoil/targets.yaml counterfoil worker --lanes submit,poll,fetch
    """
    from .fleet_processes import run_solo, run_worker

    settings = load_settings(fleet=fleet, concurrency=concurrency, lanes=lanes)
    end(run_solo(settings) if solo else run_worker(settings))


@app.command()
def beat(*, fleet: Fleet = None) -> None:
    """Tick: wake the fleet twice a second.

    Two may run; none costs latency, not liveness. Writes no file.

    \b
    Example:
      counterfoil beat
    """
    from .fleet_processes import run_beat

    end(run_beat(load_settings(fleet=fleet)))
