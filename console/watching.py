"""Following one operation: each change a line, and on a terminal a last line that shows how it stands."""
# ruff: noqa: PLC0415 - heavy imports wait until they are needed: `--help` takes 0.2 s instead of 1 s

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..ledger.client import Client
from ..ledger.records import JournalLine, ToolOperation
from ..ledger.states import TERMINAL
from .operation_view import case_lines, change_line, open_cases
from .output import Format, clean, print_json

_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found: the operation, and the lines of its story that are new."""

    operation: ToolOperation
    news: list[JournalLine]


def is_over(operation: ToolOperation) -> bool:
    return operation.state in TERMINAL


def follow(
    client: Client, call_node_id: str, timeout_s: float | None, enough: Callable[[ToolOperation], bool] = is_over
) -> Iterator[Look]:
    """Look until there is `enough` or the time is over. The journal is followed: no change falls between two looks.

    Raises NoSuchOperation.
    """
    end_s = None if timeout_s is None else time.monotonic() + timeout_s
    seen = 0
    while True:
        # The operation first: the story read after it holds everything that led there.
        operation = client.get(call_node_id)
        news = [line for line in client.journal(call_node_id) if line.seq > seen]
        seen = max([seen, *(line.seq for line in news)])
        yield Look(operation, news)
        if enough(operation) or (end_s is not None and time.monotonic() >= end_s):
            return
        time.sleep(_LOOK_S)


def watch_changes(
    client: Client,
    call_node_id: str,
    output: Format,
    timeout_s: float | None,
    enough: Callable[[ToolOperation], bool] = is_over,
) -> ToolOperation:
    """Print changes as they come; return the operation as it was last seen. Raises NoSuchOperation."""
    with _status_line(live=output is Format.TABLE and sys.stdout.isatty()) as show:
        status, cases, operation = None, set(), None
        for look in follow(client, call_node_id, timeout_s, enough):
            operation = look.operation
            for line in look.news:
                if output is Format.JSON:
                    print_json(line.model_dump(mode="json"))
                else:
                    print(change_line(line), flush=True)
            if output is Format.JSON:
                continue
            if operation.server_status != status:
                status = operation.server_status
                print(clean(f"{operation.updated_at:%H:%M:%S}     server says {status}"), flush=True)
            for case in open_cases(operation):
                if case.id not in cases:
                    cases.add(case.id)
                    print("\n".join(case_lines(case, operation)), flush=True)
            show(operation)
    assert operation is not None
    return operation


@contextmanager
def _status_line(*, live: bool) -> Iterator[Callable[[ToolOperation], None]]:
    """The last line of a terminal; nothing where there is none."""
    if not live:
        yield lambda operation: None
        return
    from rich.console import Console
    from rich.status import Status
    from rich.text import Text

    started_s = time.monotonic()

    def show(operation: ToolOperation) -> None:
        parts = [operation.state, f"attempt {operation.attempt}", f"epoch {operation.execution_epoch}"]
        if operation.interval_ms is not None:
            parts.append(f"the server asks for a poll every {operation.interval_ms / 1000:g} s")
        parts.append(f"watched for {time.monotonic() - started_s:.0f} s, Ctrl-C stops watching only")
        status.update(Text(" · ".join(parts)))

    with Status("", console=Console(highlight=False)) as status:
        yield show
