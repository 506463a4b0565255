"""One call of a server that stands in no targets file: the development stack, a loop in this process, its receipt."""

import hashlib
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from ..ledger.client import Client
from ..ledger.errors import CounterfoilError
from ..ledger.records import ToolOperation
from ..workers.settings import Settings
from .adhoc import Entry, negotiate, pin, target_of
from .exits import Exit
from .operation_view import open_cases, settled, show_receipt, unsettled
from .output import Format, say
from .preflight import check_worker
from .targets_file import snippet
from .watching import is_over, watch_changes

NAMESPACE = "try"

_TICK_S = 0.2
"""One call, watched by a person: the loop looks more often than a fleet's."""


def run_trial(
    settings: Settings,
    entry: Entry,
    protocol: str | None,
    tool: str,
    arguments: Mapping[str, object],
    *,
    timeout_s: float | None,
    output: Format,
) -> Exit:
    """Make the call, show its life, print its receipt. The exit code is the outcome's; 6 while a person is asked.

    Raises ProbeFailed, InputRefused, DevStackError and what the checks of a worker raise: then nothing was sent.
    """
    pinned = pin(entry, negotiate(entry, protocol, tool).require().target.protocol)
    name = _name(pinned)
    objection = target_of(name, pinned).objection(tool)
    if objection is not None:
        why = objection.removeprefix("Not sent: ")
        raise CounterfoilError(why, code="E_CAPABILITY_UNSUPPORTED", next_step="Give --sync-bound-s S.")
    say(f"{tool} at {pinned['url']}, {pinned['protocol']}")
    _start_stack(settings)
    call_node = f"try-{secrets.token_hex(4)}"
    with _loop(settings.state_dir, name, pinned) as (found, running):
        client = Client(found.require_database_url(), namespace=NAMESPACE, fleet=found.fleet)
        try:
            client.submit(name, tool, arguments, call_node_id=call_node)
            say(f"call node {call_node} in namespace {NAMESPACE}.")
            return _follow(client, call_node, running, timeout_s, output)
        except KeyboardInterrupt:
            say(
                f"stopping. `counterfoil get {call_node} -n {NAMESPACE}` shows how it stands, and another `try` of this"
            )
            say("server goes on with it. What is out is waited for; Ctrl-C again stops at once.")
            return Exit.INTERRUPTED
        finally:
            client.close()


def _name(entry: Entry) -> str:
    """The same server the same name: what an interrupted trial left is found again, and no other server gets it."""
    told = "\n".join(str(entry.get(key)) for key in ("url", "protocol", "credentials"))
    return f"try-{hashlib.sha256(told.encode()).hexdigest()[:8]}"


def _follow(
    client: Client, call_node: str, running: Callable[[], bool], timeout_s: float | None, output: Format
) -> Exit:
    def enough(operation: ToolOperation) -> bool:
        return is_over(operation) or bool(open_cases(operation)) or not running()

    operation = watch_changes(client, call_node, output, timeout_s, enough)
    receipt = client.receipt(call_node)
    if receipt is None:
        if not running():
            raise CounterfoilError("the loop ended by itself; the log above says why.")
        raise unsettled(operation)
    if output is Format.TABLE:
        print()
    show_receipt(output, receipt)
    return settled(receipt, operation)


def _start_stack(settings: Settings) -> None:
    """Where a database is set in the environment that one is used, as it is."""
    if os.environ.get("COUNTERFOIL_DATABASE_URL"):
        return
    from . import devstack  # noqa: PLC0415  psutil costs 0.1 s

    if not devstack.status(settings.state_dir).running:
        say(f"starting the development stack in {settings.state_dir}; it stays up until `counterfoil dev stop`.")
    devstack.up(settings.state_dir, progress=say)


@contextmanager
def _loop(state_dir: Path, name: str, entry: Entry) -> Iterator[tuple[Settings, Callable[[], bool]]]:
    """A worker without a broker in this process, for this target alone; and whether it still runs."""
    from ..workers.fleet import make_drive  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="counterfoil-try-") as folder:
        file = Path(folder) / "targets.yaml"
        file.write_text(snippet(name, entry), encoding="utf-8")
        settings = Settings.load(state_dir=state_dir, targets_file=file, tick_s=_TICK_S)
        check_worker(settings)
        ended: SimpleQueue[str] = SimpleQueue()
        drive = make_drive(settings, solo=True, ended=ended.put)
        drive.start()
        try:
            yield settings, ended.empty
        finally:
            drive.stop(settings.stop_grace_s)
