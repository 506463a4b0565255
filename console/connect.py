"""How a command reaches the ledger: the settings that it was given, and a client made of them."""
# ruff: noqa: PLC0415 - heavy imports wait until they are needed: `--help` takes 0.2 s instead of 1 s

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..ledger.client import Client
    from ..workers.settings import Settings

Namespace = Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="Whose call nodes.")]
Principal = Annotated[
    str,
    typer.Option("--principal", metavar="NAME", help="On whose behalf: chooses the credential, part of the digest."),
]
Fleet = Annotated[
    str | None, typer.Option("--fleet", metavar="NAME", help="Which fleet; else COUNTERFOIL_FLEET, else main.")
]
CallNode = Annotated[str, typer.Argument(metavar="CALL_NODE", help="The call node id.")]


def load_settings(**given: object) -> "Settings":
    """The environment's settings, and what was given on the command line over them. Raises SettingsError."""
    from ..workers.settings import Settings

    return Settings.load(**{name: value for name, value in given.items() if value is not None})


@contextmanager
def client_of(namespace: str, fleet: str | None, principal: str = "default") -> Iterator["Client"]:
    """A client for one command. Raises SettingsError, InputRefused."""
    from ..ledger.client import Client

    settings = load_settings(fleet=fleet)
    client = Client(settings.require_database_url(), namespace=namespace, principal=principal, fleet=settings.fleet)
    try:
        yield client
    finally:
        client.close()
