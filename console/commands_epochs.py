"""The commands of roll-back: epoch, create, rollback, recover."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

from enum import StrEnum
from typing import Annotated

import typer

from .access import Reason, checked_reason, ledger_of
from .connect import Fleet, load_settings
from .output import Format, Output, print_facts, print_json, say

app = typer.Typer()
epoch = typer.Typer(no_args_is_help=True, help="The execution epoch: which release may write.")
create = typer.Typer(no_args_is_help=True, help="New operations, on or off.")
app.add_typer(epoch, name="epoch")
app.add_typer(create, name="create")


class OnOff(StrEnum):
    ON = "on"
    OFF = "off"


MAX_EPOCH = 1_000_000_000
"""Epochs only grow, so a number that was typed wrong can't be taken back."""


@epoch.command("show")
def epoch_show(*, fleet: Fleet = None, output: Output = Format.TABLE) -> None:
    """Show the epoch, the create switch, and how often an older epoch was refused.

    \b
    Examples:
      counterfoil epoch show
      counterfoil epoch show -o json | jq .refused
    """
    from ..ledger.switches import epoch_now

    with ledger_of(fleet) as (database, name), database.begin() as connection:
        now = epoch_now(connection, name)
    if output is Format.JSON:
        print_json(now.model_dump(mode="json"))
        return
    why = "" if now.create_reason is None else f": {now.create_reason}"
    last = "" if now.last_refused_at is None else f", the last at {now.last_refused_at:%Y-%m-%d %H:%M:%S} UTC"
    print_facts(
        [
            ("fleet", now.fleet),
            ("epoch", now.epoch),
            ("generation", now.generation),
            ("since", f"{now.bumped_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("reason", now.reason),
            ("new operations", f"{'on' if now.create_on else 'off'}{why}"),
            ("writes of older epochs refused", f"{now.refused}{last}"),
        ]
    )


@epoch.command("bump")
def epoch_bump(
    *,
    reason: Reason,
    to: Annotated[
        int | None,
        typer.Option("--to", min=1, max=MAX_EPOCH, metavar="N", help="This number; the same again does nothing."),
    ] = None,
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Raise the epoch. Workers of an older one write nothing from then on but what servers said.

    Epochs only grow: a lower number is refused (E_EPOCH_DOWN).

    \b
    Examples:
      counterfoil epoch bump --reason "release 2.4"
      counterfoil epoch bump --to 7 --reason "hook of release 7"
    """
    from ..ledger.epochs import bump

    with ledger_of(fleet) as (database, name):
        raised = bump(database, name, checked_reason(reason), to=to)
    _print_epoch(output, raised)


@epoch.command("adopt")
def epoch_adopt(
    generation: Annotated[
        int, typer.Argument(min=1, max=MAX_EPOCH, metavar="GENERATION", help="The number that the release names.")
    ],
    *,
    reason: Reason,
    create_switch: Annotated[
        OnOff | None,
        typer.Option("--create", help="New operations: off with the bump; on again only what this switched off."),
    ] = None,
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Be in this generation: raise the epoch if the ledger is in another one, higher or lower; else do nothing.

    What a release's hook runs before its workers start: those with COUNTERFOIL_GENERATION join no other (E_GENERATION).

    \b
    Example:
      counterfoil epoch adopt 4 --reason "release 2.4"
    """
    from ..ledger.generations import adopt

    on = None if create_switch is None else create_switch is OnOff.ON
    with ledger_of(fleet) as (database, name):
        adopted = adopt(database, name, generation, checked_reason(reason), create=on)
    if adopted.raised:
        _print_epoch(output, adopted.epoch)
    elif output is Format.JSON:
        print_json({"epoch": adopted.epoch})
    else:
        print_facts([("epoch", adopted.epoch)])
        say(f"The ledger was in generation {generation} already.")


def _print_epoch(output: Format, raised: int) -> None:
    if output is Format.JSON:
        print_json({"epoch": raised})
    else:
        print_facts([("epoch", raised)])
    say("Workers of older epochs stop by themselves (exit 75); start those of the release that is current.")


@create.command("on")
def create_on(*, reason: Reason, fleet: Fleet = None) -> None:
    """Take new operations again.

    \b
    Example:
      counterfoil create on --reason "2.4.1 mends it"
    """
    _switch_create(fleet, reason, on=True)


@create.command("off")
def create_off(*, reason: Reason, fleet: Fleet = None) -> None:
    """Take no new operations (E_CREATE_OFF). What is in flight goes on, what was never sent waits in its budget.

    \b
    Example:
      counterfoil create off --reason "reports is down until noon"
    """
    _switch_create(fleet, reason, on=False)


def _switch_create(fleet: str | None, reason: str, *, on: bool) -> None:
    from ..ledger.switches import set_create

    with ledger_of(fleet) as (database, name):
        set_create(database, name, on=on, reason=checked_reason(reason))
    say(f"new operations are {'on' if on else 'off'}.")


@app.command()
def rollback(
    *,
    reason: Reason,
    generation: Annotated[
        int | None,
        typer.Option(
            "--generation", min=1, max=MAX_EPOCH, metavar="N", help="Which release takes over, if it has one."
        ),
    ] = None,
    once: Annotated[
        str | None, typer.Option("--once", metavar="KEY", help="With the key of the last bump: do nothing.")
    ] = None,
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Stop new operations and bump the epoch, in one transaction.

    Then start the older release's workers: they take over what is in flight in the same ledger. `create on` when all
    is well.

    \b
    Examples:
      counterfoil rollback --reason "2.4 loses answers"
      counterfoil rollback --generation 3 --once "$JOB_UID" --reason "helm rollback"
    """
    from ..ledger.switches import rollback as roll_back

    with ledger_of(fleet) as (database, name):
        raised = roll_back(database, name, checked_reason(reason), generation=generation, once=once)
    _print_epoch(output, raised)
    say("New operations are off: `counterfoil create on` when all is well.")


@app.command()
def recover(
    *,
    reason: Reason,
    no_loss: Annotated[
        bool, typer.Option("--no-loss", help="The standby was synchronous and lacks nothing: only bump.")
    ] = False,
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Take over a promoted or restored database. Until then nothing is sent (E_RECOVER_FIRST).

    Bumps the epoch; what may have been sent by the database that is gone is looked up, or asks a person. A run that
    broke off can be run again.

    \b
    Examples:
      counterfoil recover --reason "primary lost, standby promoted"
      counterfoil recover --no-loss --reason "planned switch-over, synchronous standby"
    """
    from ..ledger.recovery import recover as take_over

    settings = load_settings(fleet=fleet)
    url = settings.require_database_url()
    done = take_over(url, settings.fleet, reason=checked_reason(reason), no_loss=no_loss)
    if output is Format.JSON:
        print_json({"epoch": done.epoch, "moved": done.moved, "asked": done.asked})
        return
    print_facts([("epoch", done.epoch), ("may have been sent", done.moved), ("of these ask a person", done.asked)])
    say("`counterfoil cases list` shows what asks a person. Start the workers.")
