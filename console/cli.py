"""The command line: `counterfoil …`."""

import os
import signal
import sys
from types import ModuleType
from typing import NoReturn

try:
    import typer
except ModuleNotFoundError:  # the ledger and the client alone are installed, without what people need
    sys.exit("E_EXTRA: the command line needs more: pip install 'counterfoil[fleet]'")

from .exits import MEANS, tell

_FOR_LIFE = frozenset({"worker", "beat"})
"""Commands that would hold what the other commands are made of for as long as they run: 1.6 MB in each process."""

_CODES = "\n".join(f"      {int(code):>3}  {means}" for code, means in MEANS.items())


def program(command: str = "") -> typer.Typer:
    """The command line, all of it; of a command that runs for life its own part alone."""
    app = typer.Typer(
        name="counterfoil",
        # Plain help: it starts twice as fast as the boxed one, and a pipe or NO_COLOR needs no second form.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        help=f"""A long-running tool call, settled once: one call, one operation, one receipt.

    \b
    First steps:
      counterfoil demo
      counterfoil check http://127.0.0.1:8765/mcp
      counterfoil try http://127.0.0.1:8765/mcp generate_report '{{"month": "2026-10"}}'
      counterfoil targets add reports http://127.0.0.1:8765/mcp
      counterfoil worker --solo
      counterfoil submit reports generate_report '{{"month": "2026-10"}}' --call-node run-42/step-3 --wait

    \b
    Data goes to stdout, everything else to stderr. Exit codes:
{_CODES}
    """,
    )
    for commands in _fleet() if command in _FOR_LIFE else _all():
        app.add_typer(commands.app)
    return app


def _fleet() -> tuple[ModuleType, ...]:
    from . import commands_fleet  # noqa: PLC0415

    return (commands_fleet,)


def _all() -> tuple[ModuleType, ...]:
    """In the order of the first page."""
    from . import (  # noqa: PLC0415
        commands_calls,
        commands_check,
        commands_conform,
        commands_db,
        commands_doctor,
        commands_epochs,
        commands_fleet,
        commands_hooks,
        commands_people,
        commands_rollout,
        commands_signals,
        commands_stack,
        commands_story,
        commands_targets,
        commands_webhooks,
    )

    return (
        commands_check,
        commands_targets,
        commands_calls,
        commands_people,
        commands_story,
        commands_epochs,
        commands_rollout,
        commands_fleet,
        commands_hooks,
        commands_webhooks,
        commands_signals,
        commands_stack,
        commands_db,
        commands_doctor,
        commands_conform,
    )


def main() -> NoReturn:
    """The entry point. Ends the process with the exit code of the table in `exits.py`."""
    if os.getpid() == 1:
        # The first process of a container has no default handlers: a SIGTERM before a command has its own would be
        # ignored, and a worker would take work on in the middle of its grace period.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        program(*sys.argv[1:2])(prog_name="counterfoil")
    except Exception as error:  # noqa: BLE001  the last catch: every error is told in one way
        sys.exit(tell(error))
    sys.exit(0)
