"""The commands around the fleet: the development stack, the demo."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..ledger.errors import InputRefused
from ..ledger.location import DEFAULT_STATE_DIR
from .exits import Exit, end
from .output import Format, Output, print_json, print_table, say

if TYPE_CHECKING:
    from .devstack import Status

StateDir = Annotated[
    Path,
    typer.Option(
        "--state-dir", envvar="COUNTERFOIL_STATE_DIR", metavar="DIR", help="Where the stack keeps its data and logs."
    ),
]

app = typer.Typer()
dev = typer.Typer(no_args_is_help=True, help="Real PostgreSQL and Valkey, without Docker.")
app.add_typer(dev, name="dev")


@dev.command()
def up(*, state_dir: StateDir = DEFAULT_STATE_DIR, output: Output = Format.TABLE) -> None:
    """Start the stack in the background and bring its schema up to date; find it if it runs.

    Commands in this folder find it by themselves. COUNTERFOIL_DATABASE_URL and COUNTERFOIL_BROKER_URL put servers of
    yours in the place of either.

    \b
    Examples:
      counterfoil dev up
      counterfoil dev up --state-dir ~/counterfoil-state
    """
    from . import devstack

    _print_status(output, devstack.up(state_dir, progress=say))


@dev.command()
def stop(*, state_dir: StateDir = DEFAULT_STATE_DIR) -> None:
    """Stop the stack; the data stay."""
    from . import devstack

    say("stopped; the data stay." if devstack.stop(state_dir) else "nothing ran.")


@dev.command()
def status(*, state_dir: StateDir = DEFAULT_STATE_DIR, output: Output = Format.TABLE) -> None:
    """Show what runs. Exit 9 when something of it does not."""
    from . import devstack

    found = devstack.status(state_dir)
    _print_status(output, found)
    end(Exit.OK if found.running else Exit.UNREACHABLE)


@dev.command()
def reset(
    *,
    state_dir: StateDir = DEFAULT_STATE_DIR,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Stop the stack and delete its data, logs and passwords. There is no way back.

    \b
    Example:
      counterfoil dev reset --yes
    """
    from . import devstack

    if not yes:
        if not sys.stdin.isatty():
            raise InputRefused(
                "`dev reset` deletes data and nobody is there to ask.", next_step="Run it with --yes to confirm."
            )
        typer.confirm(f"Delete every operation and receipt in {state_dir.resolve()}?", abort=True, err=True)
    devstack.reset(state_dir)
    say("deleted.")


def _print_status(output: Format, status: "Status") -> None:
    """Addresses only: the URLs hold passwords and stand in dev.json."""
    servers = [
        {"name": s.name, "running": s.running, "external": s.external, "address": s.address, "pid": s.pid}
        for s in status.servers
    ]
    if output is Format.JSON:
        for server in servers:
            print_json(server)
        return
    words = [
        "yours, not tried" if server["external"] else "running" if server["running"] else "stopped"
        for server in servers
    ]
    rows = [
        (server["name"], word, server["address"], server["pid"]) for server, word in zip(servers, words, strict=True)
    ]
    print_table(("SERVER", "STATE", "ADDRESS", "PID"), rows)


@app.command()
def demo(
    *,
    json_: Annotated[
        bool, typer.Option("--json", help="One object per operation on stdout, all else on stderr.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the stack running for the commands it names.")] = False,
    protocol: Annotated[
        str | None, typer.Option(metavar="P", help="One call of this protocol instead, or of `all` of them.")
    ] = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Run the main job on real parts.

    Three calls on two workers, one of which is killed in the middle. Starts PostgreSQL, Valkey, the workers, beat and
    an MCP server of somebody else's making; exits 0 only if the server's own count of started operations and our
    receipts agree. With --protocol: one call of that protocol, or of each; a server of ours loses its answer.

    \b
    Examples:
      counterfoil demo
      counterfoil demo --json | jq -r .outcome
      counterfoil demo --protocol all
    """
    if protocol is None:
        from .demo import run_demo

        end(run_demo(state_dir, as_json=json_, keep=keep))
        return
    from .demo_protocols import chosen, run_protocols

    end(run_protocols(state_dir, chosen(protocol), as_json=json_, keep=keep))


@app.command()
def version() -> None:
    """Print the version."""
    from .. import __version__

    print(__version__)
