"""Exit codes, and the words with which a command ends when something is wrong: one table, one place."""

import sys
import traceback
from enum import IntEnum

from ..ledger.errors import (
    CounterfoilError,
    CreateStopped,
    InputRefused,
    LedgerUnavailable,
    NoSuchOperation,
    NotSelected,
    RecoverFirst,
    ReleaseTooOld,
    SchemaOutdated,
    StaleEpoch,
    StillRunning,
)
from .output import say


class Exit(IntEnum):
    """What a script can tell from `$?`. MEANS says it in words, in `counterfoil --help` and docs/cli.md."""

    OK = 0
    INTERNAL = 1
    """Checks: `check`, `targets check`, `doctor`, `receipt --verify`, `db check`, `demo`."""
    USAGE = 2
    NOT_FOUND = 3
    TOOL_FAILED = 4
    CANCELLED = 5
    NEEDS_PERSON = 6
    STILL_RUNNING = 7
    REFUSED = 8
    UNREACHABLE = 9
    STALE = 75
    """EX_TEMPFAIL of sysexits: a worker whose epoch is over; whoever runs it starts the release that is current."""
    TOO_OLD = 78
    """EX_CONFIG of sysexits: a worker of a release that the ledger has left behind; starting it again is no use."""
    INTERRUPTED = 130


MEANS = {
    Exit.OK: "done",
    Exit.INTERNAL: "a fault of ours, or a check that found something",
    Exit.USAGE: "bad input, settings or files",
    Exit.NOT_FOUND: "not found",
    Exit.TOOL_FAILED: "the tool failed",
    Exit.CANCELLED: "cancelled",
    Exit.NEEDS_PERSON: "a person is asked: an open case, or abandoned",
    Exit.STILL_RUNNING: "still running",
    Exit.REFUSED: "refused: nothing was sent, nothing was changed",
    Exit.UNREACHABLE: "database, broker or server not reachable",
    Exit.STALE: "a worker whose epoch is over: start the release that is current",
    Exit.TOO_OLD: "a release that the ledger has left behind: start a newer one",
    Exit.INTERRUPTED: "Ctrl-C: the operation goes on",
}

OUTCOMES = {
    "succeeded": Exit.OK,
    "failed": Exit.TOOL_FAILED,
    "cancelled": Exit.CANCELLED,
    "refused": Exit.REFUSED,
    "abandoned": Exit.NEEDS_PERSON,
}
"""For commands that wait for an outcome. Commands that only look exit 0 when there is something to show."""


class NeedsPerson(CounterfoilError):
    """The operation has an open case. `code` is the case's."""


class BrokerUnavailable(CounterfoilError):
    """The broker can't be reached."""

    code = "E_BROKER_UNAVAILABLE"


_BY_CODE = {
    "E_NO_DATABASE": Exit.UNREACHABLE,
    "E_NO_BROKER": Exit.UNREACHABLE,
    "E_SETTINGS": Exit.USAGE,
    "E_TARGETS": Exit.USAGE,
    "E_NO_TARGETS": Exit.USAGE,
    "E_UNREACHABLE": Exit.UNREACHABLE,
    "E_TLS": Exit.UNREACHABLE,
    "E_KEYS": Exit.USAGE,
    "E_LISTEN": Exit.USAGE,
    "E_BUSY": Exit.REFUSED,
    "E_HEALTH_DIR": Exit.USAGE,
    "E_NO_SUCH_CASE": Exit.NOT_FOUND,
    "E_NO_CASE": Exit.NOT_FOUND,
    "E_NO_SUCH_ROUND": Exit.NOT_FOUND,
    # Right when it was typed, and overtaken: a script looks again.
    "E_ALREADY_OVER": Exit.REFUSED,
    "E_CANNOT_CANCEL": Exit.REFUSED,
    "E_CASE_CLOSED": Exit.REFUSED,
    "E_CASE_CHANGED": Exit.REFUSED,
    "E_INPUT_ROUND_CLOSED": Exit.REFUSED,
    "E_ADAPTER_IN_USE": Exit.REFUSED,
    "E_SHADOW_TOLD": Exit.REFUSED,
}
_BY_CLASS: tuple[tuple[type[CounterfoilError], Exit], ...] = (
    (InputRefused, Exit.USAGE),
    (NoSuchOperation, Exit.NOT_FOUND),
    (NeedsPerson, Exit.NEEDS_PERSON),
    (RecoverFirst, Exit.NEEDS_PERSON),
    (StillRunning, Exit.STILL_RUNNING),
    (CreateStopped, Exit.REFUSED),
    (NotSelected, Exit.REFUSED),
    (LedgerUnavailable, Exit.UNREACHABLE),
    (SchemaOutdated, Exit.UNREACHABLE),
    (BrokerUnavailable, Exit.UNREACHABLE),
    (StaleEpoch, Exit.STALE),
    (ReleaseTooOld, Exit.TOO_OLD),
)


def exit_for(error: CounterfoilError) -> Exit:
    """The exit code of an error: by its code, else by its class."""
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    return next((code for kind, code in _BY_CLASS if isinstance(error, kind)), Exit.INTERNAL)


def tell(error: Exception) -> Exit:
    """Say on stderr what is wrong, where, and what to do next; return the exit code."""
    if isinstance(error, CounterfoilError):
        say(f"{error.code}: {error.message}")
        if error.next_step:
            say(f"  {error.next_step}")
        return exit_for(error)
    from .devstate import DevStackError  # noqa: PLC0415  psutil costs 0.1 s, which only this path pays

    if isinstance(error, DevStackError):
        say(f"E_DEV_STACK: {error}")
        return Exit.UNREACHABLE
    if isinstance(error, PermissionError | NotADirectoryError | FileExistsError) and error.filename is not None:
        say(f"E_FILE: {error.filename}: {error.strerror}.\n  Correct the path or its permissions and try again.")
        return Exit.USAGE
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("counterfoil"):
        say(f"E_EXTRA: {error.name} is not installed.")
        say("  pip install 'counterfoil[fleet]' for workers, 'counterfoil[dev]' for the development stack.")
        return Exit.USAGE
    # A bug. A database error's text holds the statement's parameters: of those only the kind is shown.
    text = "" if type(error).__module__.startswith(("sqlalchemy", "psycopg")) else f": {error}"
    say("".join(traceback.format_tb(error.__traceback__)).rstrip())
    say(f"E_INTERNAL: {type(error).__name__}{text}")
    say("  This is a fault of Counterfoil: please report it with the lines above.")
    return Exit.INTERNAL


def end(code: Exit) -> None:
    """End the command unless all is well."""
    if code:
        sys.exit(code)
