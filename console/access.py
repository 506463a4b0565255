"""How a command reaches the ledger's switches and the desk: opened for one command, closed after it."""
# ruff: noqa: PLC0415 - heavy imports wait until they are needed: `--help` takes 0.2 s instead of 1 s

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from ..ledger.errors import InputRefused
from .connect import load_settings

if TYPE_CHECKING:
    from ..ledger.database import Database
    from ..workers.desk import Desk

Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why: it is kept beside what it changed.")]
Actor = Annotated[str, typer.Option("--actor", metavar="NAME", help="Who says so: it stands in the journal.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]


@contextmanager
def ledger_of(fleet: str | None) -> Iterator[tuple["Database", str]]:
    """The ledger and the fleet that is meant. Raises SettingsError, LedgerUnavailable, SchemaOutdated, RecoverFirst."""
    from ..ledger.database import Database

    settings = load_settings(fleet=fleet)
    database = Database(settings.require_database_url(), fleet=settings.fleet, pool_size=1)
    try:
        yield database, settings.fleet
    finally:
        database.dispose()


@contextmanager
def desk_of(fleet: str | None) -> Iterator["Desk"]:
    """The desk. It reads evidence before it writes down what a person says, so it needs the workers' targets file, and
    their keys where a target keeps sessions. Raises as `ledger_of`, TargetsError, VaultError."""
    from ..workers.desk import Desk
    from ..workers.targets import load_targets
    from ..workers.vault import load_vault

    settings = load_settings(fleet=fleet)
    url, targets = settings.require_database_url(), load_targets(settings.targets_file)
    sessions = any(targets[name].profile.sessions for name in targets.names)
    desk = Desk(url, targets, fleet=settings.fleet, vault=load_vault(settings.state_dir) if sessions else None)
    try:
        yield desk
    finally:
        desk.close()


def checked_reason(reason: str) -> str:
    """Raises InputRefused (E_REASON) for one that says nothing."""
    if not reason.strip():
        raise InputRefused("the reason is empty.", code="E_REASON", next_step="Say why: whoever comes after you asks.")
    return reason.strip()


def confirm(question: str, *, yes: bool, what: str) -> None:
    """Ask back. Raises InputRefused where nobody is there to ask; typer.Abort for a no."""
    import sys

    if yes:
        return
    if not sys.stdin.isatty():
        raise InputRefused(f"{what}, and nobody is there to ask.", next_step="Run it with --yes to confirm.")
    typer.confirm(question, abort=True, err=True)
