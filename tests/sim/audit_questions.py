"""What must hold of questions and answers (docs/spec.md, sections 1 and 4)."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from .case import INPUT_DEADLINE_S, TICK_S, UNHEARD, Case
from .facts import raw
from .published import ENDS


def one_answer_a_round(case: Case) -> Iterator[str]:
    """What reaches the server for a question is one person's one answer, whatever is repeated."""
    said: dict[tuple[str, str], set[str]] = defaultdict(set)
    for _, task, question, content, _ in case.record.replies:
        said[task, question].add(content)
    for (task, question), contents in said.items():
        if len(contents) > 1:
            yield f"{len(contents)} answers to {question} of {task}: {sorted(contents)}"
    rounds = case.facts["input_round"]
    replies = {raw(row["reply"]) for row in rounds if row["reply"] is not None}
    for _, task, question, content, _ in case.record.replies:
        if not any(json.loads(reply or b"{}") == json.loads(content) for reply in replies):
            yield f"{content} reached {task} as an answer to {question}, and nobody had said it"
    for row in rounds:
        if row["reply"] is not None and row["replied_by"] is None:
            yield f"round {row['number']} has a reply of nobody"


def an_answer_is_to_its_question(case: Case) -> Iterator[str]:
    """The nth answer that a task took is what somebody said to its nth question. (Not where the network had sent a
    message twice, or kept it back: some servers take whatever comes.)"""
    if not case.record.faults.isdisjoint(("request doubled", "request late")):
        return
    for operation in case.facts["operation"]:
        rounds = case.facts.of("input_round", operation["id"])
        ours = sorted((row for row in rounds if row["leg"] == operation["leg"]), key=lambda row: row["number"])
        for _, task, question, content, asked in case.record.replies:
            if not asked or task != operation["task_id"]:
                continue
            number = int(question.rpartition("-")[2])
            said = raw(ours[number - 1]["reply"]) if number <= len(ours) else None
            if said is None or json.loads(said) != json.loads(content):
                yield f"{case.number(operation)}: its question {number} was answered with {content}: {said!r} was said"


def four_eyes_see_an_answer(case: Case) -> Iterator[str]:
    """Where the policy wants it, and a question without our answer is a person's business where it wants that."""
    for operation in case.facts["operation"]:
        policy = case.policy_of(operation) or {}
        for row in case.facts.of("input_round", operation["id"]):
            if policy.get("four_eyes") and row["replied_by"] == operation["principal"]:
                yield f"{case.number(operation)}: {row['replied_by']} answered a question of his own call"
        told = [row["code"] for row in case.facts.of("reconciliation_case", operation["id"])]
        if policy.get("require_answer") and operation["unanswered_rounds"] and "E_INPUT_UNANSWERED" not in told:
            yield f"{case.number(operation)} went on without an answer, and nobody was told"


def a_round_takes_one_reply(case: Case) -> Iterator[str]:
    """Used once, and not after its deadline (which only a person's word to read on begins anew)."""
    taken = Counter((id_, number) for id_, number, _ in case.record.replied)
    for (id_, number), count in taken.items():
        if count > 1:
            who = [name for *round_, name in case.record.replied if round_ == [id_, number]]
            yield f"round {number} took the replies of {who}"
    for row in case.facts["input_round"]:
        if row["replied_at"] is None or case.facts.of("reconciliation_case", row["operation_id"]):
            continue
        after_s = case.at_s(row["replied_at"]) - case.at_s(row["opened_at"])
        if after_s > INPUT_DEADLINE_S + TICK_S:
            yield f"round {row['number']} took a reply {after_s:.2f} s after it was asked"


def a_question_that_was_heard_is_kept(case: Case) -> Iterator[str]:
    """It may be told once only, so it is evidence or a round, whatever became of its bearer's lease. (Not where it was
    over already, or to be cancelled.)"""
    for worker, at_s, told in case.record.told:
        operation = next((row for row in case.facts["operation"] if row["task_id"] == told.task), None)
        if operation is None or not told.asks or case.state_at(operation, at_s) not in ("WORKING", "INPUT_REQUIRED"):
            continue
        stored = [row for row in case.facts.of("evidence", operation["id"]) if row["kind"] == "input"]
        if not (stored or case.facts.of("input_round", operation["id"])):
            yield f"{case.number(operation)}: the question that {worker} heard at {at_s:.2f} is nowhere"


def a_kept_question_becomes_a_round(case: Case) -> Iterator[str]:
    """Where somebody is still to be asked, and no case holds everything up."""
    for operation in case.facts["operation"]:
        if case.facts.of("input_round", operation["id"]) or case.facts.of("reconciliation_case", operation["id"]):
            continue
        for row in case.facts.of("evidence", operation["id"]):
            taken = row["kind"] == "input" and row["consumed_at"] is not None
            if taken and case.state_at(operation, case.at_s(row["consumed_at"])) in ("WORKING", "INPUT_REQUIRED"):
                yield f"{case.number(operation)}: a question of {case.at_s(row['received_at']):.2f} asked nobody"


def a_task_that_waits_is_noticed(case: Case) -> Iterator[str]:
    """Whoever reads that a task waits for input tells somebody."""
    for operation in case.facts["operation"]:
        heard = [told for _, _, told in case.record.told if told.task == operation["task_id"]]
        waits = sum(told.status == "input_required" for told in heard)
        rounds = case.facts.of("input_round", operation["id"])
        cases = case.facts.of("reconciliation_case", operation["id"])
        if waits >= UNHEARD and not rounds and not cases and operation["state"] not in ENDS:
            yield f"{case.number(operation)}: {waits} times it was read that the task waits, and nobody was asked"


def a_round_closes_when_its_task_is_past_it(case: Case) -> Iterator[str]:
    """Not later: what is over or works on asks nobody any more. Not sooner: while the task waits its round stays."""
    for operation in case.facts["operation"]:
        rounds = case.facts.of("input_round", operation["id"])
        waiting = [row["number"] for row in rounds if row["closed_at"] is None]
        if waiting and operation["state"] not in ("INPUT_REQUIRED", "CANCEL_REQUESTED"):
            yield f"{case.number(operation)} is {operation['state']}, and its rounds {waiting} are open"
        for row in rounds:
            if row["closed_at"] is None or row["how"] == "over" or "older status" in case.record.faults:
                continue
            opened_s, at_s = case.at_s(row["opened_at"]), case.at_s(row["closed_at"])
            for since_s, until_s in _waits(case, operation):
                if since_s - TICK_S < opened_s and at_s < until_s - TICK_S:
                    closed = f"closed at {at_s:.2f} as {row['how']}"
                    yield f"round {row['number']} {closed}; its task waited until {until_s:.2f}"


def _waits(case: Case, operation: dict[str, Any]) -> list[tuple[float, float]]:
    return [wait for task in case.record.tasks if task.id == operation["task_id"] for wait in task.waits]


def a_receipt_tells_of_unanswered_rounds(case: Case) -> Iterator[str]:
    """A task that went on without our answer; never one that our answer took on."""
    for receipt in case.facts["terminal_receipt"]:
        task = receipt["task_id"]
        tasks = [one for one in case.record.tasks if one.id == task]
        if task is None or len(tasks) != 1 or "older status" in case.record.faults:
            continue
        answered = any(asked and of == task for _, of, _, _, asked in case.record.replies)
        sent = any(one.effect == "answer" and one.task == task for one in case.record.sent)
        leg = next(row["leg"] for row in case.facts["operation"] if row["id"] == receipt["operation_id"])
        rounds = case.facts.of("input_round", receipt["operation_id"])
        asked = [row for row in rounds if row["leg"] == leg and row["how"] != "over"]  # (by the task itself)
        if answered and receipt["unanswered_rounds"]:
            yield f"{receipt['call_node_id']}: {receipt['unanswered_rounds']} rounds went unanswered; ours was taken"
        if asked and not sent and not receipt["unanswered_rounds"] and receipt["state"] in ENDS:
            yield f"{receipt['call_node_id']}: a round was asked, none was answered, and its receipt says nothing of it"
