"""The commands of webhooks: which endpoints fail, and to start one anew."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

from typing import Annotated

import typer

from .access import ledger_of
from .connect import Fleet
from .exits import Exit, end
from .output import Format, Output, print_json, print_table, say

app = typer.Typer()
webhooks = typer.Typer(no_args_is_help=True, help="Endpoints that events are pushed to.")
app.add_typer(webhooks, name="webhooks")


@webhooks.command("list")
def list_(*, fleet: Fleet = None, output: Output = Format.TABLE) -> None:
    """List the endpoints that fail or were stopped, with why. One that is well is not listed.

    \b
    Example:
      counterfoil webhooks list
    """
    from ..ledger.pushes import webhook_endpoints

    with ledger_of(fleet) as (database, _):
        found = webhook_endpoints(database)
    if output is Format.JSON:
        for one in found:
            print_json(one.model_dump(mode="json"))
        return
    rows = [
        (x.namespace, "stopped" if x.stopped_at else "failing", x.failures, x.failing_since, x.why or "") for x in found
    ]
    print_table(("NAMESPACE", "STATE", "FAILURES", "SINCE", "WHY"), rows)


@webhooks.command()
def resume(
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="Whose endpoint.")], *, fleet: Fleet = None
) -> None:
    """Start a stopped or failing endpoint anew: everything that waits is pushed at once.

    \b
    Example:
      counterfoil webhooks resume billing
    """
    from ..ledger.pushes import resume_webhook

    with ledger_of(fleet) as (database, _):
        resumed = resume_webhook(database, namespace)
    if not resumed:
        say(f"the endpoint of {namespace!r} neither fails nor was stopped.")
        end(Exit.NOT_FOUND)
    say(f"{namespace}: what waits is pushed now.")
