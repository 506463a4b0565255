"""What must hold of moves, cancels, epochs and ends (docs/spec.md, sections 2, 5, 6, 7 and 8)."""

from collections.abc import Iterator

from .case import LEASE_S, SEND_BY_S, UNHEARD, Case
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


def a_task_that_is_over_is_noticed(case: Case) -> Iterator[str]:
    """Whoever reads that a task is completed says so."""
    if case.record.stopped or case.record.lost_commits:
        return
    for operation in case.facts["operation"]:
        heard = [told for _, _, told in case.record.told if told.task == operation["task_id"]]
        over = sum(told.status == "completed" for told in heard)
        codes = [row["code"] for row in case.facts.of("reconciliation_case", operation["id"])]
        if over >= UNHEARD and not any(code.startswith("E_RESULT") for code in codes):
            yield f"{case.number(operation)}: {over} times it was read that the task is over"


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
        if not (lanes & needed or case.open_cases(operation)):
            yield f"{case.number(operation)} is {operation['state']} with wake rows {lanes or 'none'} and no case"


def everything_ends(case: Case) -> Iterator[str]:
    """Once nothing goes wrong any more: an end, or a question to a person."""
    for operation in case.facts["operation"]:
        if operation["state"] not in ENDS and not case.open_cases(operation) and case.record.finished:
            yield f"{case.number(operation)} is {operation['state']} for ever"


def time_ends_it_as_its_policy_says(case: Case) -> Iterator[str]:
    """The wait budget by a cancel or by a case, an unknown without effects after a while by itself."""
    for operation in case.facts["operation"]:
        policy = case.policy_of(operation)
        for row in case.facts.of("reconciliation_case", operation["id"]) if policy is not None else ():
            assert policy is not None
            if row["code"] == "E_WAIT_BUDGET_EXHAUSTED" and policy["on_budget"] == "cancel":
                yield f"{case.number(operation)}: at the end of its budget a person is asked, not the server"
            until_s = case.at_s(row["opened_at"]) + policy["on_unknown_after_s"] + LEASE_S
            waits = row["kind"] == "UNKNOWN" and row["closed_at"] is None and until_s < case.record.end_s
            if waits and policy["on_unknown"] == "abandon" and case.record.finished:
                yield f"{case.number(operation)}: a case of a tool without effects waits for ever"


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
