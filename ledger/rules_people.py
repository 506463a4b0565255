"""Rules of people: verdicts on cases, and the recovery of a ledger that may lack what was sent (SPEC sections 7, 8)."""

from dataclasses import replace

from .decision import Answer, Decision, Refusal, Unchanged
from .events import Recovered, Result, Verdict, VerdictGiven
from .operation import Operation
from .rules import KNOWN_OVER, effects_before_task, nothing_out, on, unknown
from .rules_result import having_result
from .rules_submit import cancel_if_remembered
from .states import OPEN, CaseKind, Lane, Outcome, State

OTHERS = tuple(sorted(OPEN - {State.SUBMITTING, State.NOT_FOUND_SAFE}))


def offered(op: Operation, *, kept: bool) -> tuple[Verdict, ...]:
    """The safe verdicts on what is open here. `kept`: a result that could not be accepted by itself is at hand.

    On what only has to be looked after (effects, anything after the end) there is one: `accept`, it was.
    """
    if op.over or not op.parked:
        looked_after: tuple[Verdict, ...] = ("accept",) if _to_look_after(op) else ()
        unconfirmed = not op.over and op.has_case(CaseKind.UNKNOWN)
        return (*looked_after, "give_up") if unconfirmed else looked_after
    never: tuple[Verdict, ...] = () if _heard_of(op) else ("never_created",)
    if op.state is State.SUBMISSION_UNKNOWN:
        return ("bind", *never, "give_up")
    if op.state is State.NOT_FOUND_SAFE or nothing_out(op):
        return (*never, "give_up")
    if op.state in KNOWN_OVER and op.terminal_status == "cancelled":
        return ("accept", "give_up")
    if op.state in KNOWN_OVER and (kept or op.terminal_status == "failed"):
        return ("bind", "accept", "give_up")
    return ("bind", "give_up") if op.task_id is not None else ("give_up",)


def _heard_of(op: Operation) -> bool:
    """A server named a task for this call that is not bound: nobody can say that none was created."""
    return op.has_case(CaseKind.EFFECT_RECONCILIATION_REQUIRED) or op.has_case(CaseKind.UNKNOWN, "E_TWO_OPERATIONS")


def _to_look_after(op: Operation) -> tuple[str, ...]:
    """Kinds of open cases that a person closes by having looked; after the end that is every kind."""
    kinds = {case.kind for case in op.cases}
    return tuple(sorted(kinds if op.over else kinds & {CaseKind.EFFECT_RECONCILIATION_REQUIRED}))


@on(sorted(OPEN), VerdictGiven)
def verdict(op: Operation, event: VerdictGiven) -> Answer:
    if not op.cases:
        return Refusal("E_NO_CASE", "no case is open on this operation", note=False)
    allowed = offered(op, kept=event.result is not None)
    if event.verdict not in allowed:
        why = f"{event.verdict} is no answer to a case in {op.state}; offered: {', '.join(allowed) or 'nothing'}"
        return Refusal("E_VERDICT_NOT_OFFERED", why, note=False)
    if event.verdict == "accept" and (op.over or not op.parked):
        return replace(_looked_after(op), verdict=event)
    closing = replace(Decision(op).answered(), verdict=event)
    if event.verdict == "give_up":
        return closing.settle(State.ACCEPTED, Outcome.ABANDONED, code="E_ABANDONED", effects=not op.never_sent)
    if event.verdict == "never_created":
        # A person's word proves nothing of what was sent.
        effects = op.state is State.SUBMISSION_UNKNOWN or effects_before_task(op)
        return closing.settle(State.ACCEPTED, Outcome.FAILED, code="E_NOT_SENT_BY_VERDICT", effects=effects)
    return _bind(op, closing, event) if event.verdict == "bind" else _accept(op, closing, event.result)


def _looked_after(op: Operation) -> Decision:
    """Somebody checked what was done outside."""
    kinds = _to_look_after(op)
    left = tuple(case for case in op.cases if case.kind not in kinds)
    checked = Decision(op, closes=kinds).having(cases=left)
    return checked.note("E_EFFECTS_CHECKED", "a person looked after what was done outside")


def _bind(op: Operation, closing: Decision, event: VerdictGiven) -> Answer:
    """This is its task: a lost one that was found, or the known one, which is read again from here on."""
    if not event.task_id:
        return Refusal("E_VERDICT_INCOMPLETE", "a bind needs the task id", note=False)
    if event.elsewhere:
        return Refusal("E_TASK_ID_REUSED", "another open operation holds that task", note=False)
    budget_s = max(op.budget_left_s or 0.0, op.policy.wait_budget_s)
    if op.state is State.SUBMISSION_UNKNOWN:
        bound = closing.move(
            State.WORKING,
            Lane.DOOR,
            task_id=event.task_id,
            tries=0,
            auth_tries=0,
            budget_left_s=budget_s,
            budget_running=True,
        )
        return cancel_if_remembered(bound, Lane.DOOR)
    if event.task_id != op.task_id:
        return Refusal("E_VERDICT_NOT_OFFERED", "the operation has another task; bind that one to read on", note=False)
    on_again = closing.having(
        not_found_count=0,
        auth_tries=0,
        tries=0,
        remote_created_at=None,
        last_code=None,
        budget_left_s=budget_s,
        budget_running=op.state is State.WORKING or op.all_replied,
        # Who reads on asks on: a question that waits has its time again.
        input_left_s=None if op.input_left_s is None else op.policy.input_deadline_s,
        confirm_left_s=op.policy.cancel_confirm_s if op.state is State.CANCEL_REQUESTED else None,
    )
    lane = Lane.FETCH if op.state in KNOWN_OVER else Lane.POLL
    return replace(on_again.note("E_READ_ON", "a person's word: it is the task, read on"), wake={lane: 0.0})


def _accept(op: Operation, closing: Decision, result: Result | None) -> Answer:
    """What the server said is taken as it is, with the case's code on the receipt."""
    code = next(case.code for case in op.cases if case.kind == CaseKind.UNKNOWN)
    if op.terminal_status == "cancelled":
        return closing.settle(State.ACCEPTED, Outcome.CANCELLED, code=code, effects=op.policy.effects)
    if op.state is State.TERMINAL_OBSERVED:
        closing = closing.move(State.FETCHING_RESULT, Lane.FETCH)
    stored = having_result(closing, result) if result is not None else closing
    failed = op.terminal_status == "failed" or (result is not None and result.tool_error)
    outcome = Outcome.FAILED if failed else Outcome.SUCCEEDED
    return stored.settle(State.ACCEPTED, outcome, code=code, effects=op.policy.effects)


# -- recovery --------------------------------------------------------------------------------------------------------


@on((State.SUBMITTING, State.NOT_FOUND_SAFE), Recovered)
def recovered_before_task(op: Operation, event: Recovered) -> Answer:
    """The database may have forgotten an intent whose bytes left. What was never pinned here can't be looked up: nobody
    knows with which policy it may have been sent."""
    pinned = op.sent_attempt > 0
    moved = (
        Decision(op)
        .note("E_RECOVERED", "the database was promoted or restored; an intent may be missing")
        .move(State.SUBMISSION_UNKNOWN, Lane.DOOR, sent_attempt=max(op.sent_attempt, op.attempt), tries=0)
    )
    if op.intent("submit") is not None:
        moved = moved.ends("submit", "lost").having(intents=())
    if not pinned or op.policy.lookup == "none":
        return unknown(moved, "E_SUBMISSION_UNKNOWN", "the database was promoted or restored; it may have been sent")
    # The missing intent may be as young as this: its settle window begins now.
    return replace(moved, wake={Lane.LOOKUP: op.policy.send_by_s + op.policy.settle_s})


@on((State.INPUT_REQUIRED,), Recovered)
def recovered_input(op: Operation, event: Recovered) -> Answer:
    """Open rounds may have been answered: the next reading tells, and the profile says whether a reply may be sent
    again."""
    waiting = {one.number for one in op.waiting_rounds}
    rounds = tuple(
        replace(one, state="unclear", sends=one.sends + (one.state != "open")) if one.number in waiting else one
        for one in op.rounds
    )
    noted = Decision(op).having(rounds=rounds).note("E_RECOVERED", "the database was promoted or restored")
    if op.task_id is None:
        return unknown(
            noted, "E_SUBMISSION_UNKNOWN", "the database was promoted or restored; the next leg may have been sent"
        )
    return replace(noted, wake={Lane.POLL: 0.0})


@on(tuple(state for state in OTHERS if state is not State.INPUT_REQUIRED), Recovered)
def recovered_after(op: Operation, event: Recovered) -> Answer:
    """Its task is known, and reading it repeats nothing."""
    return Unchanged()
