"""What must hold of sends, evidence, leases and people (docs/spec.md, sections 1, 3, 4 and 7)."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .case import SEND_BY_S, SWEEP_S, TICK_S, Case
from .facts import raw


def one_remote_operation_a_key_or_one_send(case: Case) -> Iterator[str]:
    """Where the server makes keys unique: one operation a call. Elsewhere: one send, but for those that the server
    said it did not process."""
    created: dict[str, set[str]] = defaultdict(set)
    for task in case.record.tasks:
        created[task.arguments].add(task.id)
    if case.record.server in ("unique", "bounded"):
        yield from (f"{len(ids)} operations for the call {call}" for call, ids in created.items() if len(ids) > 1)
        return
    sends: dict[tuple[str, str], int] = defaultdict(int)
    for sent in case.record.sent:
        if sent.effect == "submit" and not sent.excused:
            sends[sent.arguments, sent.leg] += 1
    yield from (f"{count} sends of the call {call}" for (call, _), count in sends.items() if count > 1)


def a_key_never_changes(case: Case) -> Iterator[str]:
    keys = {operation["submission_key"]: operation for operation in case.facts["operation"]}
    calls: dict[str, set[str]] = defaultdict(set)
    for sent in case.record.sent:
        if sent.effect == "submit":
            calls[sent.arguments].add(str(sent.key))
            if sent.key not in keys:
                yield f"{sent.name} went out under a key that no operation has"
    yield from (f"the call {call} went out under {len(keys)} keys" for call, keys in calls.items() if len(keys) > 1)


def no_effect_without_its_intent(case: Case) -> Iterator[str]:
    """Committed before the first byte, of this effect, and the byte left before `send_by`."""
    intents = {row["send_token"]: row for row in case.facts["intent"]}
    used: set[str] = set()
    for sent in case.sent:
        intent = intents.get(sent.token)
        if intent is None:
            yield f"{sent.name} left without an intent"
            continue
        if sent.token in used:
            yield f"{sent.name} left on an intent that was used already"
        used.add(sent.token)
        effect = "submit" if intent["effect"] == "replay" else intent["effect"]
        if effect != sent.effect or intent["epoch"] != sent.epoch:
            yield f"{sent.name} left on the intent of a {intent['effect']} of epoch {intent['epoch']}"
        opened_s, closed = case.at_s(intent["opened_at"]), intent["closed_at"]
        if not opened_s - TICK_S <= sent.at_s <= opened_s + SEND_BY_S + TICK_S:
            yield f"{sent.name} left {sent.at_s - opened_s:.2f} s after its intent"
        if closed is not None and case.at_s(closed) < sent.at_s - TICK_S:
            yield f"{sent.name} left after its intent was closed as {intent['how']}"


def a_used_intent_is_not_taken_back(case: Case) -> Iterator[str]:
    """Only its holder may, who knows that no byte of it left; or the server said that it did nothing."""
    ways = ("withdrawn", "not_processed")
    taken_back = {row["send_token"]: row for row in case.facts["intent"] if row["how"] in ways}
    for sent in case.sent:
        intent = taken_back.get(sent.token)
        if intent is not None and not sent.excused:
            yield f"{sent.name} left on an intent that was closed as {intent['how']}"


def attempts_are_at_most_two(case: Case) -> Iterator[str]:
    for operation in case.facts["operation"]:
        if not operation["sent_attempt"] <= operation["attempt"] <= 2:
            yield f"{case.number(operation)} is at attempt {operation['attempt']}"


def no_evidence_is_lost(case: Case) -> Iterator[str]:
    """Neither what was committed nor what a living worker held."""
    kept = {(row["send_token"], row["body"]) for row in case.facts["evidence"]}
    for held in case.record.held:
        if held.survived and (held.token, f"\\x{held.body.hex()}") not in kept:
            yield f"the answer that {held.worker} held at {held.at_s:.2f} is nowhere"
    for row in case.facts["evidence"]:
        if row["consumed_at"] is None and case.at_s(row["received_at"]) < case.record.end_s - SWEEP_S:
            yield f"evidence ({row['kind']}) of {case.at_s(row['received_at']):.2f} lies unconsumed"


def evidence_is_stored_at_once(case: Case) -> Iterator[str]:
    """In a commit that no timer delays (where neither the process nor its database was held up)."""
    if case.record.stopped or case.record.lost_commits:
        return
    kept = {row["send_token"]: case.at_s(row["received_at"]) for row in case.facts["evidence"]}
    for held in case.record.held:
        if kept.get(held.token, held.at_s) > held.at_s + 0.01:
            yield f"the answer that {held.worker} held at {held.at_s:.2f} was stored at {kept[held.token]:.2f}"


def a_named_task_is_bound_or_asked_about(case: Case) -> Iterator[str]:
    """Consumed evidence that names a task: it is the operation's, or somebody was told."""
    for operation in case.facts["operation"]:
        cases = case.facts.of("reconciliation_case", operation["id"])
        for row in case.facts.of("evidence", operation["id"]):
            named = _named_task(row)
            if named is None or row["consumed_at"] is None or named == operation["task_id"] or cases:
                continue
            yield f"{case.number(operation)}: evidence names {named}, the row {operation['task_id']}, and no case does"


def _named_task(row: dict[str, Any]) -> str | None:
    if row["kind"] != "submit" or row["status"] != 200:
        return None
    result = json.loads(raw(row["body"]) or b"{}").get("result", {})
    named = result.get("taskId") or result.get("task", {}).get("taskId")
    return None if named is None else str(named)


def one_holder_a_row(case: Case) -> Iterator[str]:
    """A lease is one process's; no intent rests on one that is over, or on somebody else's."""
    yield from case.record.leases


def nobody_waits_in_a_circle(case: Case) -> Iterator[str]:
    """Locks are taken in one order by everybody."""
    yield from case.record.deadlocks


def a_person_is_asked_only_after_three_askings(case: Case) -> Iterator[str]:
    """An unknown task is asked for three times, a refused credential tried three times."""
    for row in case.facts["reconciliation_case"] + case.facts["terminal_receipt"]:
        code = row.get("code") or row.get("error_code")
        operation = next(one for one in case.facts["operation"] if one["id"] == row["operation_id"])
        denied = [at_s for at_s, task in case.record.not_found if task == operation["task_id"]]
        if code == "E_OPERATION_UNKNOWN" and row.get("kind") == "UNKNOWN" and len(denied) < 3:
            yield f"{case.number(operation)}: {code} after {len(denied)} answers"
        if code == "E_AUTH_EXPIRED" and case.record.refused_credentials < 3:
            yield f"{case.number(operation)}: {code} after {case.record.refused_credentials} answers"


def a_verdict_counts_for_what_its_person_saw(case: Case) -> Iterator[str]:
    for id_, version, who in case.record.verdicts:
        spoken = [row["seq"] for row in case.facts.of("journal", id_) if row["actor"] == who and row["seq"] > version]
        if spoken and min(spoken) != version + 1:
            yield f"{who} spoke on line {version} and was heard at line {min(spoken)}"


def what_is_pinned_holds(case: Case) -> Iterator[str]:
    """Lookups and second attempts only where the policy of the first intent declares how."""
    for operation in case.facts["operation"]:
        pinned = case.policy_of(operation)
        if pinned is None or pinned["lookup"] != "none":
            continue
        looked = [at_s for at_s, key in case.record.lookups if key == operation["submission_key"]]
        if looked or operation["attempt"] > 1:
            yield f"{case.number(operation)} was looked up at {looked}, and its policy has no lookup"


def nobody_is_quarantined(case: Case) -> Iterator[str]:
    """Nothing that a server says takes its bearers down."""
    for row in case.facts["reconciliation_case"]:
        if row["code"] == "E_QUARANTINED":
            yield row["why"]


def nothing_leaves_after_the_end(case: Case) -> Iterator[str]:
    """What was intended before may still be on its way; nothing begins."""
    for receipt in case.facts["terminal_receipt"]:
        over_s = case.at_s(receipt["accepted_at"])
        for sent in case.sent:
            ours = sent.key == receipt["submission_key"] or (sent.task is not None and sent.task == receipt["task_id"])
            if ours and sent.at_s > over_s + SEND_BY_S:
                yield f"{receipt['call_node_id']} was over at {over_s:.2f}, and {sent.name} left at {sent.at_s:.2f}"


def a_producer_is_always_told_the_same(case: Case) -> Iterator[str]:
    """One call is one operation for ever, or was not selected for ever."""
    told: dict[int, set[str]] = defaultdict(set)
    for number, answer in case.record.told_producers:
        if not answer.startswith("E_"):
            told[number].add(answer)
    for number, answers in told.items():
        if len(answers) > 1:
            yield f"call {number} was answered {sorted(answers)}"
        if "None" in answers and any(row["call_node_id"] == f"run/{number}" for row in case.facts["operation"]):
            yield f"call {number} was not selected and has an operation"


def progress_goes_back_to_a_receipt(case: Case) -> Iterator[str]:
    """What a consumer acted upon is the receipt of that call node, also after a failover."""
    receipts = {row["call_node_id"]: row["id"] for row in case.facts["terminal_receipt"]}
    for node, receipt_id in case.record.acted_upon:
        if receipts.get(node, receipt_id) != receipt_id:
            yield f"a consumer acted upon {receipt_id} for {node}, whose receipt is {receipts[node]}"
        elif node not in receipts and case.record.failed_over_s < 0:
            yield f"a consumer acted upon {receipt_id} for {node}, which has no receipt"


# -- section 2: states -----------------------------------------------------------------------------------------------
