"""The commands that tell how it went: story, orphans."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

from typing import TYPE_CHECKING, Annotated

import typer

from .access import ledger_of
from .connect import CallNode, Fleet, Namespace
from .exits import Exit, end
from .output import Format, Output, clean, print_json, print_table, say

if TYPE_CHECKING:
    from ..ledger.story import StoryLine

app = typer.Typer()


@app.command()
def story(
    call_node: CallNode, *, namespace: Namespace = "default", fleet: Fleet = None, output: Output = Format.TABLE
) -> None:
    """Tell an operation's life: who, when, in which epoch and generation, what was sent, what was heard.

    A server's words are shown as they begin; what a person replied is left out. A shadow's story is in the namespace
    `NAME~shadow`.

    \b
    Examples:
      counterfoil story run-42/step-3
      counterfoil story run-42/step-3 -o json | jq -r 'select(.kind == "heard") | .what'
    """
    from ..ledger.reads import find_receipts, get_operation, read_journal
    from ..ledger.story import tell_story

    with ledger_of(fleet) as (database, _), database.begin() as connection:
        operation = get_operation(connection, namespace, call_node)
        receipts = find_receipts(connection, namespace, [call_node])
        lines = tell_story(connection, operation, read_journal(connection, operation.id), next(iter(receipts), None))
    for line in lines:
        if output is Format.JSON:
            print_json(line.model_dump(mode="json"))
        else:
            print(_told(line))


def _told(line: "StoryLine") -> str:
    about = [f"epoch {line.epoch}"] if line.epoch is not None else []
    about += [f"generation {line.generation}"] if line.generation is not None else []
    about += [f"attempt {line.attempt}"] if line.attempt is not None else []
    when = f"{line.at:%Y-%m-%d %H:%M:%S}.{line.at.microsecond // 1000:03}"
    return clean(f"{when}  {line.who}: {line.what}" + (f" [{', '.join(about)}]" if about else ""))


@app.command()
def orphans(
    *,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="N", help="At most so many, the oldest first.")
    ] = 100,
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Look for operations that nobody will come by for. Prints 0; or the rows, and exits 1.

    What is not over is due, with a lease of the current epoch, or asks a person; no evidence lies unread for 30 s.

    \b
    Examples:
      counterfoil orphans
      counterfoil orphans -o json | jq -r '[.lane, .age_s] | @tsv'
    """
    from ..ledger.orphans import by_lane, find_orphans
    from .words import age

    with ledger_of(fleet) as (database, name), database.begin() as connection:
        found = find_orphans(connection, name, limit=limit)
    if output is Format.JSON:
        for one in sorted(found, key=lambda orphan: (orphan.lane, -orphan.age_s)):
            print_json(one.model_dump(mode="json"))
    elif found:
        columns = ("CALL NODE", "STATE", "TARGET", "LANE", "FOR", "WHY")
        rows = [(f"{x.namespace}: {x.call_node_id}", x.state, x.target, x.lane, age(x.age_s), x.why) for x in found]
        print_table(columns, rows)
        for lane, (count, oldest_s) in sorted(by_lane(found).items()):
            say(f"{lane}: {count}, the oldest for {age(oldest_s)}.")
    else:
        print(0)
    end(Exit.INTERNAL if found else Exit.OK)
