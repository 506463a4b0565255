"""What must hold of moves, cancels, epochs and ends (docs/spec.md, sections 2, 5, 6, 7 and 8)."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .case import CANCEL_SENDS, LEASE_S, SEND_BY_S, Case
from .facts import raw
from .published import ENDS, LANE_OF_STATE, PUBLISHED


def only_published_edges_by_their_lane(case: Case) -> Iterator[str]:
    for operation in case.facts["operation"]:
        state = None
        rows = sorted(case.facts.of("journal", operation["id"]), key=lambda row: row["seq"])
        if [row["seq"] for row in rows] != list(range(1, len(rows) + 1)) or operation["journal_seq"] != len(rows):
            yield f"{case.number(operation)}: the journal has holes"
        for row in rows:
            if row["event"] not in ("opened", "moved", "accepted"):
                continue
            edge = f"{row['source']} -> {row['target']} by {row['lane']}"
            if row["source"] != state:
                yield f"{case.number(operation)}: {edge}, and it was {state}"
            elif (
                state is not None
                and row["lane"] not in PUBLISHED.get((state, row["target"]), ())
                and not (row["lane"] is None and row["event"] == "accepted")
            ):
                yield f"{case.number(operation)}: {edge} is not published"
            state = row["target"]
        if state != operation["state"]:
            yield f"{case.number(operation)} is {operation['state']}, its journal says {state}"


# -- section 4: input ------------------------------------------------------------------------------------------------


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


# -- section 5: cancel is a request ----------------------------------------------------------------------------------


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
        if sent and (not asked or sent[0].at_s < asked[0]):
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
        if min(first, ended) == math.inf and not _open_cases(case, operation):
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


# -- section 6: the epoch fence --------------------------------------------------------------------------------------


def nothing_of_an_old_epoch_after_a_bump(case: Case) -> Iterator[str]:
    yield from case.record.stale_leases
    for bump in case.record.bumps:
        for operation in case.facts["operation"]:
            for row in case.facts.of("journal", operation["id"]):
                if row["seq"] > bump.journal.get(operation["id"], 0) and row["epoch"] < bump.epoch:
                    wrote = f"epoch {row['epoch']} wrote {row['event']}"
                    yield f"{case.number(operation)}: {wrote} after {bump.epoch} began"
        for row in case.facts["intent"]:
            if row["send_token"] not in bump.intents and row["epoch"] < bump.epoch:
                yield f"epoch {row['epoch']} opened an intent after {bump.epoch} began"
        for sent in case.record.sent:
            if sent.epoch < bump.epoch and sent.at_s > bump.at_s + SEND_BY_S:
                yield f"{sent.name} of epoch {sent.epoch} left {sent.at_s - bump.at_s:.1f} s after the bump"
        for at_s, epoch, name in case.record.requests:
            if epoch < bump.epoch and at_s > bump.at_s + LEASE_S:
                yield f"{name} of epoch {epoch} left {at_s - bump.at_s:.1f} s after the bump"


def epochs_only_grow(case: Case) -> Iterator[str]:
    for operation in case.facts["operation"]:
        epochs = [row["epoch"] for row in sorted(case.facts.of("journal", operation["id"]), key=lambda row: row["seq"])]
        if epochs != sorted(epochs):
            yield f"{case.number(operation)}: its journal's epochs go {epochs}"
        if epochs and operation["execution_epoch"] < epochs[-1]:
            yield f"{case.number(operation)} is of epoch {operation['execution_epoch']}, written by {epochs[-1]}"


def nothing_new_while_it_is_stopped(case: Case) -> Iterator[str]:
    """Where new operations are off, or a protocol is drained, no first submit is intended."""
    for stopped in case.record.stopped_between:
        fresh = stopped.until - stopped.since
        for row in case.facts["intent"]:
            if row["send_token"] in fresh and row["effect"] == "submit" and row["attempt"] == 1:
                again = [
                    other
                    for other in case.facts.of("intent", row["operation_id"])
                    if other["effect"] == "submit" and other["send_token"] in stopped.since
                ]
                if not again:
                    yield f"a submit was intended while {stopped.what}"


# -- sections 3 and 7: waiting, no orphan ----------------------------------------------------------------------------


def no_orphan(case: Case) -> Iterator[str]:
    """A wake row of the lane that the state needs, or an open case."""
    for operation in case.facts["operation"]:
        if operation["state"] in ENDS:
            lanes = {row["lane"] for row in case.facts.of("wake", operation["id"])} - {"audit"}
            if lanes:
                yield f"{case.number(operation)} is over and has wake rows of {lanes}"
            continue
        lanes = {row["lane"] for row in case.facts.of("wake", operation["id"])}
        needed = {"fetch"} if operation["settle_as"] else LANE_OF_STATE[operation["state"]]
        if not (lanes & needed or _open_cases(case, operation)):
            yield f"{case.number(operation)} is {operation['state']} with wake rows {lanes or 'none'} and no case"


def _open_cases(case: Case, operation: dict[str, Any]) -> bool:
    return any(row["closed_at"] is None for row in case.facts.of("reconciliation_case", operation["id"]))


def everything_ends(case: Case) -> Iterator[str]:
    """Once nothing goes wrong any more: an end, or a question to a person."""
    for operation in case.facts["operation"]:
        if operation["state"] not in ENDS and not _open_cases(case, operation) and case.record.finished:
            yield f"{case.number(operation)} is {operation['state']} for ever"


def a_calm_call_needs_nobody(case: Case) -> Iterator[str]:
    """Where nothing goes wrong a tool that answers is settled without a person, as what it answered."""
    if not case.record.calm:
        return
    for operation in case.facts["operation"]:
        tasks = [task for task in case.record.tasks if task.key == operation["submission_key"]]
        if len(tasks) != 1 or tasks[0].expected is None or operation["cancel_generation"]:
            continue
        if operation["outcome"] != tasks[0].expected or operation["state"] not in ENDS:
            yield f"{case.number(operation)} is {operation['state']}, {operation['outcome']}: not {tasks[0].expected}"


def requests_keep_to_the_rate(case: Case) -> Iterator[str]:
    """In any window of t >= 1 s: at most qps * (t + 0.25) + burst."""
    if case.record.stopped:
        return  # what a stopped process had in its hands leaves at once
    moments = sorted(case.record.departures)
    for first, begin_s in enumerate(moments):
        for last in range(first, len(moments)):
            t_s = max(moments[last] - begin_s, 1.0)
            if last - first + 1 > case.record.qps * (t_s + 0.25) + case.record.burst:
                yield f"{last - first + 1} requests within {t_s:.2f} s"
                return
