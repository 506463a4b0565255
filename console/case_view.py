"""Cases and questions as people see them before they speak. Records come in, lines go out."""

import json
from collections.abc import Iterable

from ..ledger.outages import CaseGroup
from ..ledger.people import CaseView, EvidenceView, InputView
from .output import Format, clean, print_facts, print_json, print_table

VERDICTS = {
    "bind": "this is its task (--task ID): it is read on from there",
    "accept": "what the server said is its end; beside a question about effects: they were looked after",
    "never_created": "it never ran: ends as failed (E_NOT_SENT_BY_VERDICT), and is not sent again",
    "give_up": "nobody can tell: ends as abandoned, which is never a reason to run it again",
}


def list_groups(output: Format, groups: Iterable[CaseGroup]) -> None:
    """One line for one outage; a case that is alone shows its call node."""
    if output is Format.JSON:
        for group in groups:
            print_json(group.model_dump(mode="json"))
        return
    columns = ("TARGET", "CODE", "KIND", "CASES", "SINCE (UTC)", "CALL NODE", "CASE")
    rows = [
        (
            *(group.target, group.code, group.kind, group.count, f"{group.opened_at:%m-%d %H:%M:%S}"),
            f"{group.namespace}: {group.call_node_id}" + (" …" if group.count > 1 else ""),
            group.case_id if group.count == 1 else None,
        )
        for group in groups
    ]
    print_table(columns, rows)


def show_case(output: Format, view: CaseView) -> None:
    """A case: the question, what was said side by side, which verdicts are safe, and the words to search for."""
    if output is Format.JSON:
        print_json(view.model_dump(mode="json"))
        return
    case, operation = view.case, view.operation
    print_facts(
        [
            ("case", case.id),
            ("code", f"{case.code} ({case.kind})"),
            ("why", case.why),
            ("opened", f"{case.opened_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("closed", None if case.closed_at is None else _closed(view)),
            ("call node", f"{operation.namespace}: {operation.call_node_id}"),
            ("tool", f"{operation.target}/{operation.tool}"),
            ("state", operation.state),
            ("server says", operation.server_status),
            ("version", view.version),
        ]
    )
    print(f"\nsearch for, on {clean(operation.target)}:")
    for word in view.search:
        print(f"  {clean(word)}")
    print(
        "\nevidence, the oldest first:" if view.evidence else "\nevidence: none; the server said nothing that was kept."
    )
    for piece in view.evidence:
        print_evidence(piece)
    print("\nverdicts:" if view.offered else "\nverdicts: none.")
    width = max(map(len, VERDICTS))
    for verdict in view.offered:
        print(f"  {verdict:<{width}}  {VERDICTS[verdict]}")


def _closed(view: CaseView) -> str:
    case = view.case
    verdict = "" if case.verdict is None else f", {case.verdict}: {case.reason}"
    return f"{case.closed_at:%Y-%m-%d %H:%M:%S} UTC by {case.closed_by}{verdict}"


def print_evidence(piece: EvidenceView) -> None:
    """One piece: when, to what, and its beginning. A server's words never reach the terminal as they are."""
    status = "cut" if piece.status == 0 else f"HTTP {piece.status}"
    attempt = f", attempt {piece.attempt}" if piece.attempt else ""
    read = "read" if piece.consumed else "not read yet"
    print(f"  {piece.received_at:%Y-%m-%d %H:%M:%S} UTC, to {piece.kind}{attempt}: {status}, {read}")
    for line in piece.text.splitlines() or [""]:
        print(f"    {clean(line)}")


def list_questions(output: Format, questions: Iterable[InputView]) -> None:
    """Questions that wait, one a line."""
    if output is Format.JSON:
        for question in questions:
            print_json(question.model_dump(mode="json"))
        return
    columns = ("CALL NODE", "ROUND", "TOOL", "ASKED (UTC)", "DEADLINE (UTC)", "ASKS")
    rows = [
        (
            *(f"{one.namespace}: {one.call_node_id}", one.number, f"{one.target}/{one.tool}"),
            f"{one.opened_at:%m-%d %H:%M:%S}",
            None if one.deadline_at is None else f"{one.deadline_at:%m-%d %H:%M:%S}",
            one.message if one.message is None or len(one.message) <= 80 else f"{one.message[:80]}…",
        )
        for one in questions
    ]
    print_table(columns, rows)


def show_question(output: Format, question: InputView) -> None:
    """One question, with the schema that an answer has to fit."""
    if output is Format.JSON:
        print_json(question.model_dump(mode="json"))
        return
    deadline = question.deadline_at
    print_facts(
        [
            ("call node", f"{question.namespace}: {question.call_node_id}"),
            ("round", question.number),
            ("state", question.state),
            ("tool", f"{question.target}/{question.tool}"),
            ("asked for", question.principal),
            ("task id", question.task_id),
            ("kind", question.method),
            ("asked", f"{question.opened_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("deadline", None if deadline is None else f"{deadline:%Y-%m-%d %H:%M:%S} UTC"),
            ("asks", question.message),
        ]
    )
    if question.request_schema is not None:
        print("\nan answer fits this schema:")
        for line in json.dumps(question.request_schema, indent=2, ensure_ascii=False).splitlines():
            print(f"  {clean(line)}")
