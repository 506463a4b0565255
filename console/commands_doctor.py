"""The commands that look and explain: doctor, config show, explain."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

from typing import Annotated

import typer

from .connect import Fleet, load_settings
from .exits import Exit, end
from .output import Format, Output, print_facts, print_json, print_table

app = typer.Typer()
config = typer.Typer(no_args_is_help=True, help="The settings, as they hold.")
app.add_typer(config, name="config")


@app.command()
def doctor(*, fleet: Fleet = None, output: Output = Format.TABLE) -> None:
    """Look at everything that a fleet needs.

    Says what to do where it is not well.

    Settings, database, durability, transactions, schema, epoch, clock, beat, due work, open cases, orphans, broker,
    eviction, bucket, files, keys, each target. Changes nothing. Exits 1 when something fails.

    \b
    Examples:
      counterfoil doctor
      counterfoil doctor -o json | jq -r 'select(.health != "OK")'
    """
    from dataclasses import asdict

    from .doctor import examine
    from .finding import Health

    fails = False
    for finding in examine(load_settings(fleet=fleet)):
        fails |= finding.health is Health.FAIL
        if output is Format.JSON:
            print_json(asdict(finding) | {"remedy": finding.remedy or None})
        else:
            print_facts([(f"{finding.health:<4}  {finding.name:<12}", finding.found)])
            if finding.remedy:
                print_facts([(" " * 18, finding.remedy)])
    end(Exit.INTERNAL if fails else Exit.OK)


@config.command("show")
def show(*, output: Output = Format.TABLE) -> None:
    """Show each setting, its value and where that comes from. Passwords and keys are hidden.

    \b
    Example:
      counterfoil config show
    """
    from .config_view import rows

    found = list(rows(load_settings()))
    if output is Format.TABLE:
        print_table(("VARIABLE", "VALUE", "FROM"), found)
        return
    for variable, value, origin in found:
        print_json({"variable": variable, "value": value, "origin": origin})


@app.command()
def explain(
    word: Annotated[str, typer.Argument(metavar="STATE|E_CODE", help="A state of an operation, or a code.")],
) -> None:
    """Say what a state or a code means, and what to do next.

    \b
    Examples:
      counterfoil explain SUBMISSION_UNKNOWN
      counterfoil explain E_RESULT_MISSING
    """
    from .explain import explain as told

    print_facts(told(word))
