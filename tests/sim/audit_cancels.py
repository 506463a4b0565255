"""What must hold of cancels and of what comes after them (docs/spec.md, section 5)."""

import math
from collections.abc import Iterator
from typing import Any

from .case import AUDIT_FIRST_S, CANCEL_SENDS, PATIENCE_S, TICK_S, Case

AUDIT_SLACK_S = 5.0
"""The last look comes by so much sooner than the audit's end, at most."""


def a_won_cancel_stays_won(case: Case) -> Iterator[str]:
    for receipt in case.facts["terminal_receipt"]:
        won = receipt["state"] == "CANCELLED_ACCEPTED"
        if won != (receipt["outcome"] == "cancelled" and receipt["error_code"] != "E_REMOTE_CANCELLED"):
            yield f"{receipt['call_node_id']}: {receipt['state']} as {receipt['outcome']} ({receipt['error_code']})"
        if won and receipt["cancel_generation"] < 1:
            yield f"{receipt['call_node_id']} was cancelled and nobody had asked"


def a_cancel_is_committed_before_it_is_sent(case: Case) -> Iterator[str]:
    for operation in case.facts["operation"]:
        asked = [
            case.at_s(row["at"])
            for row in case.facts.of("journal", operation["id"])
            if row["target"] == "CANCEL_REQUESTED"
        ]
        sent = [one for one in case.sent if one.effect == "cancel" and one.task == operation["task_id"]]
        if sent and (not asked or sent[0].at_s < asked[0] - TICK_S):
            yield f"{case.number(operation)}: a cancel left before it was recorded"
        if len([one for one in sent if not one.excused]) > CANCEL_SENDS * max(operation["cancel_generation"], 1):
            yield f"{case.number(operation)}: {len(sent)} cancels left"


def a_committed_cancel_is_sent(case: Case) -> Iterator[str]:
    """Soon where nothing is in its way; in any case before it all comes to rest."""
    for operation in case.facts["operation"]:
        journal = sorted(case.facts.of("journal", operation["id"]), key=lambda row: row["seq"])
        asked = next((row for row in journal if row["target"] == "CANCEL_REQUESTED"), None)
        if asked is None:
            continue
        asked_s = case.at_s(asked["at"])
        ended = next((case.at_s(row["at"]) for row in journal if row["source"] == "CANCEL_REQUESTED"), math.inf)
        # What a poll had seen before is accepted within a moment as well.
        ended = min([ended, *(case.at_s(row["at"]) for row in journal if row["event"] == "accepted")])
        first = min(
            (one.at_s for one in case.record.sent if one.effect == "cancel" and one.task == operation["task_id"]),
            default=math.inf,
        )
        if min(first, ended) == math.inf and not case.open_cases(operation):
            yield f"{case.number(operation)}: the cancel of {asked_s:.2f} was never sent"
        elif case.record.calm and min(first, ended) > asked_s + 2.5:
            yield f"{case.number(operation)}: the cancel of {asked_s:.2f} left at {first:.2f} though all was calm"


def a_lost_cancel_is_sent_again(case: Case) -> Iterator[str]:
    """While the task works and no acknowledgement came: the same generation, up to three times, before a person's
    case is
    all that is left."""
    for operation in case.facts["operation"]:
        told = [
            row
            for row in case.facts.of("reconciliation_case", operation["id"])
            if row["code"] == "E_CANCEL_UNCONFIRMED"
        ]
        if operation["state"] != "CANCEL_REQUESTED" or not told or not case.record.finished:
            continue
        sent = [
            one for one in case.sent if one.effect == "cancel" and one.task == operation["task_id"] and not one.excused
        ]
        read = [
            at_s
            for at_s, task in case.record.read
            if sent and task == operation["task_id"] and at_s > sent[-1].at_s + 20
        ]
        unheard = 0 < len(sent) < CANCEL_SENDS and not operation["cancel_acked"]
        if unheard and len(read) >= 4 and not _parked(case, operation):
            yield f"{case.number(operation)}: {len(sent)} cancels were sent, none was acknowledged"


def _parked(case: Case, operation: dict[str, Any]) -> bool:
    return any(
        row["closed_at"] is None and row["kind"] == "UNKNOWN" and row["code"] != "E_CANCEL_UNCONFIRMED"
        for row in case.facts.of("reconciliation_case", operation["id"])
    )


def a_remembered_cancel_is_sent(case: Case) -> Iterator[str]:
    """Asked for before the task was known: as soon as it works."""
    for operation in case.facts["operation"]:
        journal = sorted(case.facts.of("journal", operation["id"]), key=lambda row: row["seq"])
        asked = next((row["seq"] for row in journal if row["event"] == "asked"), None)
        if asked is None or not operation["cancel_generation"]:
            continue
        after = [row["target"] for row in journal if row["seq"] > asked and row["event"] in ("moved", "accepted")]
        if "WORKING" in after and "CANCEL_REQUESTED" not in after[after.index("WORKING") :]:
            yield f"{case.number(operation)}: a cancel was remembered at line {asked}, then {after}"


def a_won_cancel_is_looked_after(case: Case) -> Iterator[str]:
    """Where all the evidence is the answer to the cancel, somebody has to check what was done outside."""
    for receipt in case.facts["terminal_receipt"]:
        operation = next(row for row in case.facts["operation"] if row["id"] == receipt["operation_id"])
        policy = case.policy_of(operation)
        if receipt["state"] != "CANCELLED_ACCEPTED" or receipt["task_id"] is None or policy is None:
            continue
        if receipt["effects_possible"] and policy["effect_case"] == "always" and not _effects(case, operation):
            yield f"{receipt['call_node_id']} was cancelled, and nobody looks after its effects"


def a_late_completion_is_told(case: Case) -> Iterator[str]:
    """What is done all the same within the audit's time is seen by it. (Not where it could not be asked.)"""
    if case.record.faults:
        return
    for receipt in case.facts["terminal_receipt"]:
        operation = next(row for row in case.facts["operation"] if row["id"] == receipt["operation_id"])
        if receipt["state"] != "CANCELLED_ACCEPTED" or (operation["audit_s"] or 0.0) < AUDIT_FIRST_S:
            continue
        last_s = case.at_s(receipt["accepted_at"]) + operation["audit_s"]
        done_s = [one.completes_s for one in case.record.tasks if one.id == receipt["task_id"]]
        told = _effects(case, operation) or not case.record.finished or last_s > PATIENCE_S
        if done_s and done_s[0] < last_s - AUDIT_SLACK_S and not told:
            yield f"{receipt['call_node_id']} was cancelled, its task completes at {done_s[0]:.2f}: nobody knows"


def _effects(case: Case, operation: dict[str, Any]) -> bool:
    return any(
        row["kind"] == "EFFECT_RECONCILIATION_REQUIRED" for row in case.facts.of("reconciliation_case", operation["id"])
    )
