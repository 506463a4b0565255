"""What must hold of receipts, results and outcomes (docs/spec.md, sections 2 and 6)."""

import hashlib
import json
from collections.abc import Iterator
from uuid import UUID

from .case import Case
from .facts import raw
from .published import ENDS

WRONG = ("differs", "failed")


def one_receipt_a_call_node(case: Case) -> Iterator[str]:
    nodes = [(row["namespace"], row["call_node_id"]) for row in case.facts["terminal_receipt"]]
    yield from (f"{node} has {nodes.count(node)} receipts" for node in set(nodes) if nodes.count(node) > 1)
    receipts = {row["id"]: row for row in case.facts["terminal_receipt"]}
    for row in case.facts["call_node"]:
        receipt = receipts.get(row["receipt_id"])
        if (row["receipt_id"] is None) != ((row["namespace"], row["call_node_id"]) not in nodes):
            yield f"the register of {row['call_node_id']} and its receipt disagree"
        elif receipt is not None and (receipt["outcome"], receipt["digest"]) != (row["outcome"], row["receipt_digest"]):
            yield f"the register of {row['call_node_id']} says {row['outcome']}, its receipt {receipt['outcome']}"


def ready_if_and_only_if_receipt(case: Case) -> Iterator[str]:
    ready = sorted(row["receipt_id"] for row in case.facts["ready_outbox"])
    receipts = sorted(row["id"] for row in case.facts["terminal_receipt"])
    if ready != receipts:
        yield f"{len(receipts)} receipts and {len(ready)} ready rows"


def a_repeated_acceptance_is_the_same(case: Case) -> Iterator[str]:
    """An end is decided once, so whoever brings it again is told so. (Nothing else is wrong with it here.)"""
    yield from (
        f"an acceptance of {id_} was answered: {word}" for id_, word in case.record.acceptances if word in WRONG
    )


def ids_are_derived_from_the_call_node(case: Case) -> Iterator[str]:
    for row in case.facts["terminal_receipt"] + case.facts["ready_outbox"]:
        if UUID(row["id"]).version != 5:
            yield f"the id {row['id']} of {row['call_node_id']} would be another one after a repeat"


def a_receipt_says_what_its_row_says(case: Case) -> Iterator[str]:
    names = [
        "namespace",
        "call_node_id",
        "request_digest",
        "submission_key",
        "target",
        "tool",
        "tool_version",
        "principal",
        "protocol",
        "task_id",
        "state",
        "outcome",
        "terminal_status",
        "error_code",
        "effects_possible",
        "attempt",
        "cancel_generation",
        "unanswered_rounds",
        "result_digest",
    ]
    for operation in case.facts["operation"]:
        receipt = case.receipt_of(operation)
        if (operation["state"] in ENDS) != (receipt is not None):
            yield f"{case.number(operation)} is {operation['state']} with{'' if receipt else 'out'} a receipt"
        elif receipt is not None:
            yield from (
                f"{case.number(operation)}: {name} is {operation[name]}, on the receipt {receipt[name]}"
                for name in names
                if operation[name] != receipt[name]
            )


def a_result_is_what_the_server_holds(case: Case) -> Iterator[str]:
    """SHA-256 over exact bytes that the server said of that very task, and a pointer at its result."""
    results = {row["operation_id"]: row for row in case.facts["operation_result"]}
    for receipt in case.facts["terminal_receipt"]:
        about = f"{receipt['call_node_id']} {receipt['outcome']}"
        digest = raw(receipt["result_digest"])
        if digest is None:
            if receipt["outcome"] == "succeeded":
                yield f"{about} without a result"
            continue
        stored = results.get(receipt["operation_id"])
        if stored is None or hashlib.sha256(raw(stored["body"]) or b"").digest() != digest:
            yield f"{about}: the stored bytes have another digest"
        task_keys = {task.number: task.key for task in case.record.tasks}
        said = next((one for one in case.record.said if hashlib.sha256(one[2]).digest() == digest), None)
        if said is None:
            yield f"{about}: the server never said the bytes of this result"
        elif task_keys.get(said[1] or 0) != receipt["submission_key"]:
            yield f"{about}: the bytes of its result are about another task"
        elif (
            receipt["outcome"] == "succeeded"
            and not receipt["error_code"]
            and not _holds_rows(said[2], receipt["result_pointer"])
        ):
            yield f"{about}: there is no valid result at {receipt['result_pointer']!r}"


def _holds_rows(body: bytes, pointer: str) -> bool:
    value = json.loads(body)
    for part in pointer.split("/")[1:]:
        value = value.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) else None
    return any(isinstance(rows, int) for rows in _rows(value))


def _rows(value: object) -> Iterator[object]:
    """What any part of it says under this name."""
    if isinstance(value, dict):
        yield from (value["rows"],) if "rows" in value else ()
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _rows(part)


def an_outcome_is_the_truth(case: Case) -> Iterator[str]:
    for receipt in case.facts["terminal_receipt"]:
        tasks = [task for task in case.record.tasks if task.key == receipt["submission_key"]]
        ends = {task.end for task in tasks}
        about = f"{receipt['call_node_id']} is {receipt['outcome']} ({receipt['error_code']})"
        match receipt["outcome"], receipt["error_code"]:
            case "succeeded", None if "succeeded" not in ends:
                yield f"{about}, its tasks ended as {ends or 'none'}"
            case "failed", "E_TOOL_ERROR" if "failed" not in ends:
                yield f"{about}, its tasks ended as {ends or 'none'}"
            case "cancelled", "E_REMOTE_CANCELLED" if "cancelled" not in ends:
                yield f"{about}, its tasks ended as {ends or 'none'}"
            case "cancelled", _ if receipt["task_id"] and not any(
                task.said_cancelled for task in tasks if task.id == receipt["task_id"]
            ):
                yield f"{about}, and the server never said so"
        operation = next(row for row in case.facts["operation"] if row["id"] == receipt["operation_id"])
        harmless = not (case.policy_of(operation) or {"effects": True})["effects"]
        if not (receipt["effects_possible"] or harmless) and receipt["outcome"] != "succeeded" and tasks:
            yield f"{about}, without possible effects, and {len(tasks)} tasks were made"
        if receipt["error_code"] == "E_NEVER_SENT" and any(
            sent.key == receipt["submission_key"] for sent in case.record.sent
        ):
            yield f"{about}, and it was sent"


# -- section 1: submit -----------------------------------------------------------------------------------------------
