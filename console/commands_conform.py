"""The command for whoever speaks one of our protocols: conform."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

from pathlib import Path
from typing import Annotated

import typer

from .exits import end

app = typer.Typer()


@app.command()
def conform(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Transcripts, or folders of them; else the checkout's own."),
    ] = None,
    *,
    only: Annotated[str | None, typer.Option("--only", metavar="C01,C02", help="Play these cases alone.")] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="One object a case: id, title, verdict, found, log. The sum goes to stderr.")
    ] = False,
) -> None:
    """Play transcripts of servers against the real loop, and compare how each call ends.

    Adapters, ledger and loop are the ones that work in a fleet; the server, the clock and the other people are the
    transcript's (longop-transcript.v1). On a PostgreSQL that is thrown away afterwards, or in a database of its own on
    COUNTERFOIL_DATABASE_URL's server. No real time passes. Exits 1 when a case fails.

    \b
    Examples:
      counterfoil conform
      counterfoil conform --only C05,C60
      counterfoil conform mine.json --json | jq -r 'select(.verdict == "FAIL") | .found[]'
    """
    from .conform import run_conform

    chosen = () if only is None else tuple(filter(None, (name.strip() for name in only.split(","))))
    end(run_conform(files or (), only=chosen, as_json=json_))
