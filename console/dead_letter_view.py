"""How dead letters look to people and to programs."""

from ..ledger.database import Database
from ..ledger.dead_letters import list_dead_letters
from ..workers.settings import Settings
from .output import Format, print_json, print_table, say


def list_dead(settings: Settings, output: Format, limit: int) -> None:
    """Print the fleet's dead letters, newest first; as JSON their bodies too.

    Raises SettingsError, LedgerUnavailable, SchemaOutdated.
    """
    database = Database(settings.require_database_url(), fleet=settings.fleet, pool_size=1)
    try:
        with database.autocommit() as connection:
            found = list_dead_letters(connection, settings.fleet, limit)
    finally:
        database.dispose()
    if output is Format.JSON:
        for letter in found:
            print_json(letter.model_dump(mode="json"))
    elif found:
        columns = ("RECEIVED (UTC)", "CODE", "KEY", "SHA-256", "WHY")
        rows = [(f"{x.received_at:%m-%d %H:%M:%S}", x.code, x.key_id, x.body_digest, x.why) for x in found]
        print_table(columns, rows)
    else:
        say("there are no dead letters.")
