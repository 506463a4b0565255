"""The callbacks' door as a process: an HTTP server around `workers.hooks`, without TLS and behind a proxy."""

import time
from pathlib import Path

from ..adapters.credentials import Credentials
from ..workers.hooks import HooksApp, Waker, load_hooks
from ..workers.settings import Settings
from ..workers.targets import load_targets
from .exits import Exit
from .logs import log_to_stderr
from .output import say
from .preflight import check_ledger
from .serving import listen, serve


def run_hooks(settings: Settings, hooks_file: Path, host: str, port: int) -> Exit:
    """Listen until SIGTERM or SIGINT.

    Raises SettingsError, LedgerUnavailable, SchemaOutdated, ReleaseTooOld, RecoverFirst, InputRefused (no such fleet),
    TargetsError, HooksError, ListenError.
    """
    check_ledger(settings)
    targets = load_targets(settings.targets_file)
    hooks = load_hooks(hooks_file, targets)
    log_to_stderr(settings)
    listening, url = listen(host, port)
    waker = Waker(settings.require_database_url(), targets, fleet=settings.fleet)
    app = HooksApp(hooks, targets, waker.wake, Credentials(time.monotonic), time.monotonic)
    say(f"hooks ready: {url}/hooks/TARGET, fleet {settings.fleet}, targets {', '.join(hooks)}.")
    try:
        serve(app, listening)
    finally:
        waker.close()
    return Exit.OK
