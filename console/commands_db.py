"""The commands of the ledger's database: its schema, and what is taken away when it is old."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..ledger.errors import InputRefused
from .access import Yes
from .connect import load_settings
from .exits import Exit, end
from .output import Format, Output, print_facts, print_json, print_table, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..ledger.housekeeping import Housekeeping

app = typer.Typer()
db = typer.Typer(no_args_is_help=True, help="The ledger's schema, and what of it is old.")
app.add_typer(db, name="db")


@db.command()
def upgrade() -> None:
    """Bring the schema to this release's version; does nothing when it is there.

    Needs a user who may create the schema and, the first time, roles; else it prints the SQL for an administrator.

    \b
    Example:
      COUNTERFOIL_DATABASE_URL=postgresql://owner@db/app counterfoil db upgrade
    """
    from ..ledger import migrate

    version = migrate.upgrade(load_settings().require_database_url())
    print_facts([("schema version", version)])


@db.command()
def check() -> None:
    """Compare the database with this release; print the differences and exit 1 if there are any."""
    from ..ledger import migrate

    differences = migrate.check(load_settings().require_database_url())
    for difference in differences:
        print(difference)
    end(Exit.INTERNAL if differences else Exit.OK)
    say("the schema is as it should be.")


@db.command()
def prune(
    *,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="KIND=DAYS", help="How long after its end a kind is kept; again for another."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="KIND", help="Only this kind; may be given again.")
    ] = None,
    archive: Annotated[
        Path | None,
        typer.Option("--archive", metavar="DIR", help="Write each month as JSON lines before it is dropped."),
    ] = None,
    yes: Yes = False,
    output: Output = Format.TABLE,
) -> None:
    """Take away what is over and old; without --yes only say what that would be.

    Never the register: call nodes, operations and receipts stay, so a repeat is known for ever. Nothing that a living
    operation, an audit or an open case needs. Journal and evidence go by whole months. Needs the login of `db upgrade`.

    \b
    Examples:
      counterfoil db prune
      counterfoil db prune --yes --archive /var/lib/counterfoil/archive
      counterfoil db prune --keep evidence=365 --keep results=730 --yes
    """
    from ..ledger.housekeeping import BY_MONTH, Housekeeping, kept_days

    kept = kept_days(_days(keep or []))
    for kind in only or []:
        if kind not in kept:
            raise InputRefused(
                f"nothing of {kind[:32]!r} is taken away unless you say when.",
                code="E_RETENTION",
                next_step=f"Name one of {', '.join(kept)}, or give --keep {kind[:32]}=DAYS.",
            )
    chosen = {kind: days for kind, days in kept.items() if not only or kind in only}
    house = Housekeeping(load_settings().require_database_url())
    try:
        taken = [
            line
            for kind, days in chosen.items()
            for line in (
                _months(house, kind, days, archive, yes=yes) if kind in BY_MONTH else _rows(house, kind, days, yes=yes)
            )
        ]
    finally:
        house.close()
    if output is Format.JSON:
        for line in taken:
            print_json(line)
    else:
        columns = ("KIND", "KEPT FOR", "WHAT", "ROWS", "GONE")
        rows = [(x["kind"], f"{x['days']} d", x["name"], x["rows"], "yes" if x["gone"] else "no") for x in taken]
        print_table(columns, rows)
    if not yes:
        say("nothing was taken away. --yes does it.")


def _days(given: list[str]) -> dict[str, int]:
    """`KIND=DAYS` as they were typed. Raises InputRefused (E_RETENTION)."""
    found = {}
    for one in given:
        kind, _, days = one.partition("=")
        if not days.isdecimal() or not 1 <= int(days) <= 36_500:
            raise InputRefused(
                f"{one[:48]!r} is no KIND=DAYS.", code="E_RETENTION", next_step="As in --keep evidence=90: 1 to 36500."
            )
        found[kind] = int(days)
    return found


def _months(
    house: "Housekeeping", kind: str, days: int, archive: Path | None, *, yes: bool
) -> "Iterator[Mapping[str, object]]":
    for month in house.months(kind, days):
        gone = yes and house.take_month(month, archive)
        if gone:
            say(f"{month.name}: {'dropped' if archive is None else f'archived in {archive} and dropped'}.")
        yield {"kind": kind, "days": days, "name": month.name, "rows": month.rows, "gone": gone}


def _rows(house: "Housekeeping", kind: str, days: int, *, yes: bool) -> "Iterator[Mapping[str, object]]":
    def gone(rows: int) -> None:
        say(f"{kind}: {rows} gone.")

    count = house.take_rows(kind, days, gone) if yes else house.count(kind, days)
    yield {"kind": kind, "days": days, "name": "rows", "rows": count, "gone": yes}
