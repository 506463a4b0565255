"""Operations and receipts as people and scripts see them. Records come in, lines go out."""

import json
from collections.abc import Iterable

from ..ledger.errors import CounterfoilError, StillRunning
from ..ledger.records import Case, JournalLine, Receipt, ToolOperation
from .exits import OUTCOMES, Exit, NeedsPerson
from .output import Format, clean, print_facts, print_json, print_table

_RESULT_CHARS = 2_000


def show_operation(output: Format, operation: ToolOperation) -> None:
    """One operation, with its open cases and what to search for at the server."""
    if output is Format.JSON:
        print_json(operation.model_dump(mode="json"))
        return
    print_facts(
        [
            ("call node", operation.call_node_id),
            ("namespace", operation.namespace),
            ("state", operation.state),
            ("outcome", operation.outcome),
            ("error", operation.error_code),
            ("server says", operation.server_status),
            ("target", operation.target),
            ("tool", operation.tool),
            ("tool version", operation.tool_version),
            ("protocol", operation.protocol),
            ("principal", operation.principal),
            ("task id", operation.task_id),
            ("submission key", operation.submission_key),
            ("attempt", operation.attempt),
            ("epoch", operation.execution_epoch),
            ("opened", f"{operation.created_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("changed", f"{operation.updated_at:%Y-%m-%d %H:%M:%S} UTC"),
        ]
    )
    for case in open_cases(operation):
        print()
        for line in case_lines(case, operation):
            print(line)


def open_cases(operation: ToolOperation) -> list[Case]:
    return [case for case in operation.cases if case.closed_at is None]


def case_lines(case: Case, operation: ToolOperation) -> list[str]:
    """What a person needs: the question, why it is asked, and what to search for at the server."""
    searches = [f"submission key {operation.submission_key}"]
    if operation.task_id is not None:
        searches.append(f"task id {operation.task_id}")
    lines = [
        f"open case {case.code} ({case.kind}), since {case.opened_at:%Y-%m-%d %H:%M:%S} UTC",
        f"  why         {case.why}",
        f"  search for  {' or '.join(searches)} on {operation.target}",
    ]
    return [clean(line) for line in lines]


def list_operations(output: Format, operations: Iterable[ToolOperation], *, namespaces: bool) -> None:
    """Many operations, one a line. `namespaces`: they are of more than one."""
    if output is Format.JSON:
        for operation in operations:
            print_json(operation.model_dump(mode="json"))
        return
    columns = ["CALL NODE", "STATE", "SERVER SAYS", "TARGET", "TOOL", "OUTCOME", "ERROR", "CASES", "CHANGED (UTC)"]
    rows = [
        [
            operation.call_node_id,
            operation.state,
            operation.server_status,
            operation.target,
            operation.tool,
            operation.outcome,
            operation.error_code,
            len(open_cases(operation)) or None,
            f"{operation.updated_at:%m-%d %H:%M:%S}",
        ]
        for operation in operations
    ]
    if namespaces:
        columns.insert(0, "NAMESPACE")
        rows = [[operation.namespace, *row] for operation, row in zip(operations, rows, strict=True)]
    print_table(columns, rows)


def show_receipt(output: Format, receipt: Receipt, problems: list[str] | None = None) -> None:
    """One receipt. `problems`: what a verification found, None where none was made."""
    if output is Format.JSON:
        verified = {} if problems is None else {"problems": problems}
        print_json(receipt.model_dump(mode="json") | {"result": receipt.result} | verified)
        return
    print_facts(
        [
            ("receipt", receipt.id),
            ("call node", receipt.call_node_id),
            ("namespace", receipt.namespace),
            ("outcome", receipt.outcome),
            ("error", receipt.error_code),
            ("effects", "possible" if receipt.effects_possible else "none"),
            ("target", receipt.target),
            ("tool", receipt.tool),
            ("tool version", receipt.tool_version),
            ("protocol", receipt.protocol),
            ("task id", receipt.task_id),
            ("server said", receipt.terminal_status),
            ("attempt", receipt.attempt),
            ("epoch", receipt.execution_epoch),
            ("accepted", f"{receipt.accepted_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("digest", receipt.digest),
            ("result digest", receipt.result_digest),
            ("result", None if receipt.result is None else as_text(receipt.result)),
        ]
    )


def as_text(result: object) -> str:
    """A tool's payload on one line, cut where it is long."""
    text = json.dumps(result, ensure_ascii=False)
    return (
        text if len(text) <= _RESULT_CHARS else f"{text[:_RESULT_CHARS]} … ({len(text)} characters; all with -o json)"
    )


def change_line(line: JournalLine) -> str:
    """One line of an operation's story: when, what, by which lane, why."""
    parts = [f"{line.at:%H:%M:%S}.{line.at.microsecond // 1000:03}", line.event]
    if line.source is not None and line.source != line.target:
        parts.append(f"{line.source} -> {line.target}")
    elif line.target is not None:
        parts.append(line.target)
    if line.lane is not None:
        parts.append(f"({line.lane})")
    parts += [text for text in (line.code, line.why) if text is not None]
    return clean(" ".join(parts))


def settled(receipt: Receipt, operation: ToolOperation) -> Exit:
    """The exit code of a command that waited: the outcome's, unless a question about it is open."""
    return Exit.NEEDS_PERSON if open_cases(operation) else OUTCOMES[receipt.outcome]


def unsettled(operation: ToolOperation) -> CounterfoilError:
    """Why there is no receipt: a person is asked, or it is still running."""
    where = f"call node {operation.call_node_id!r} is {operation.state}"
    for case in open_cases(operation):
        return NeedsPerson(
            f"{where} and waits for a person: {case.why}",
            code=case.code,
            next_step=f"Look with `counterfoil get`: it shows the case and what to search for on {operation.target}.",
        )
    return StillRunning(f"{where}; it goes on.", next_step="Wait with `counterfoil watch`; nothing was changed.")
