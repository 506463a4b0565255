"""Rules of the poll and fetch lanes: what a reading of a known task means (SPEC sections 3, 4, 6, 7)."""

from dataclasses import replace

from .decision import Answer, Decision, Refusal, Unchanged
from .events import (
    AccessDenied,
    AnswerRefused,
    Ended,
    Hinted,
    InputRequested,
    Progressed,
    ReadFailed,
    ResultFetched,
    SessionRenewed,
    TaskNotFound,
)
from .operation import Operation
from .rules import KNOWN_OVER, LIVE, backoff_s, cancel_again, cancelled, id_reused, on, pace_s, reused, told, unknown
from .rules_input import left_input, worked_on
from .rules_result import conclude
from .states import CaseKind, Lane, Outcome, State

NOT_FOUND_MAX_S = 60.0


@on(LIVE, Progressed)
def progressed(op: Operation, event: Progressed) -> Answer:
    if event.seq < op.observed_seq:
        return Unchanged(pace_s(op))
    if reused(op, event.created_at):
        return id_reused(op)
    now = told(op, event)
    seen = replace(now, observed_seq=event.seq)
    if op.state is State.INPUT_REQUIRED:
        return worked_on(left_input(Decision(seen), op))
    if op.state is State.CANCEL_REQUESTED and cancel_again(op):
        return Decision(replace(seen, cancel_due=True), wake={Lane.CANCEL: 0.0})
    if now == op:
        return Unchanged(pace_s(op))
    return Decision(seen, wake={Lane.POLL: pace_s(now)})


@on(LIVE, Ended)
def ended(op: Operation, event: Ended) -> Answer:
    """A terminal answer counts at any sequence."""
    if reused(op, event.created_at) or op.has_case(CaseKind.UNKNOWN, "E_TASK_ID_REUSED"):
        return id_reused(op)
    seen = Decision(op).having(
        server_status=event.status,
        terminal_status=event.terminal,
        observed_seq=max(op.observed_seq, event.seq),
        input_left_s=None,
        confirm_left_s=None,
        budget_running=False,
        cancel_due=False,
        not_found_count=0,
        auth_tries=0,
    )
    if not op.contested:
        seen = seen.answered()
    if op.state is State.INPUT_REQUIRED:
        seen = left_input(seen, op)
    if seen.opens or op.contested:
        # A person has to say what this end is worth; the result that came with it is theirs to accept.
        has_body = event.result is not None and bool(event.result.body)
        return replace(seen.move(State.TERMINAL_OBSERVED, Lane.POLL), keeps=event.result if has_body else None)
    if op.state is State.INPUT_REQUIRED and op.waiting_rounds and all(one.state == "sent" for one in op.waiting_rounds):
        seen = seen.move(State.WORKING, Lane.POLL)  # our answer took it on
    if event.terminal == "cancelled":
        if op.state is State.CANCEL_REQUESTED and op.cancel_sends > 0:
            return cancelled(seen, effects=op.policy.effects)
        return (
            seen.note("E_REMOTE_CANCELLED", "the server cancelled it; we did not ask")
            .move(State.TERMINAL_OBSERVED, Lane.POLL)
            .settle(
                State.ACCEPTED,
                Outcome.CANCELLED,
                code="E_REMOTE_CANCELLED",
                effects=op.policy.effects,
                terminal="cancelled",
            )
        )
    seen = seen.move(State.TERMINAL_OBSERVED, Lane.POLL)
    if event.result is None:
        return replace(seen, wake={Lane.FETCH: 0.0})
    return conclude(seen, event.result, Lane.POLL)


@on(KNOWN_OVER, Ended)
def ended_again(op: Operation, event: Ended) -> Answer:
    if event.terminal != op.terminal_status:
        return unknown(
            Decision(op), "E_STATUS_REGRESSED", f"the server said {op.terminal_status}, now {event.terminal}"
        )
    if event.result is None:
        return Unchanged()
    return conclude(Decision(op), event.result, Lane.POLL)


@on(KNOWN_OVER, ResultFetched)
def result_fetched(op: Operation, event: ResultFetched) -> Answer:
    return conclude(Decision(op), event.result, Lane.FETCH)


@on(KNOWN_OVER, Progressed, InputRequested)
def regressed(op: Operation, event: Progressed | InputRequested) -> Answer:
    """Terminal is sticky: an older or a wrong word changes nothing."""
    return Refusal("E_STATUS_REGRESSED", f"{event.status} after {op.terminal_status}")


@on(LIVE, TaskNotFound)
def task_not_found(op: Operation, event: TaskNotFound) -> Answer:
    asked = op.not_found_count + 1
    decision = Decision(op).having(not_found_count=asked).note("E_OPERATION_UNKNOWN", event.why)
    if asked >= op.policy.not_found_asks:
        return unknown(decision, "E_OPERATION_UNKNOWN", f"the server no longer knows the task (asked {asked} times)")
    return replace(decision, wake={Lane.POLL: min(op.policy.clamp_poll_s(op.interval_ms), NOT_FOUND_MAX_S)})


def _fetching(op: Operation) -> Decision:
    """Its end is known, and its result was asked for (SPEC section 6)."""
    if op.state is State.TERMINAL_OBSERVED:
        return Decision(op).move(State.FETCHING_RESULT, Lane.FETCH)
    return Decision(op)


@on(KNOWN_OVER, TaskNotFound)
def result_not_found(op: Operation, event: TaskNotFound) -> Answer:
    asked = op.not_found_count + 1
    decision = _fetching(op).having(not_found_count=asked).note("E_RESULT_MISSING", event.why)
    if asked >= op.policy.not_found_asks:
        return unknown(decision, "E_RESULT_MISSING", f"it ended, its result is gone (asked {asked} times)")
    return replace(decision, wake={Lane.FETCH: backoff_s(asked)})


@on((*LIVE, *KNOWN_OVER), ReadFailed)
def read_failed(op: Operation, event: ReadFailed) -> Answer:
    """Transient errors only back off, inside the budget: nothing is written, nothing is counted to an end."""
    return Unchanged(max(backoff_s(event.failures, event.retry_after_s), min(pace_s(op), NOT_FOUND_MAX_S)))


@on((State.SUBMISSION_UNKNOWN, *LIVE, *KNOWN_OVER), SessionRenewed)
def session_renewed(op: Operation, event: SessionRenewed) -> Answer:
    """Ask again at once: whether the task is still known there is the next answer's business."""
    lane = Lane.FETCH if op.state in KNOWN_OVER else Lane.POLL if op.state in LIVE else Lane.LOOKUP
    renewed = Decision(op).having(session_id=event.session_id).note("E_SESSION_GONE", "a new session was begun")
    return replace(renewed, wake={lane: 0.0})


@on((*LIVE, *KNOWN_OVER), AccessDenied)
def access_denied(op: Operation, event: AccessDenied) -> Answer:
    tries = op.auth_tries + 1
    asked = _fetching(op) if op.state in KNOWN_OVER else Decision(op)
    decision = asked.having(auth_tries=tries).note("E_AUTH_EXPIRED", event.why)
    if tries >= op.policy.auth_tries:
        return unknown(decision, "E_AUTH_EXPIRED", f"the credential was refused {tries} times")
    lane = Lane.FETCH if op.state in KNOWN_OVER else Lane.POLL
    return replace(decision, wake={lane: backoff_s(tries)})


@on((*LIVE, *KNOWN_OVER), AnswerRefused)
def answer_refused(op: Operation, event: AnswerRefused) -> Answer:
    """Recorded once, then read on at the same pace: an unknown word isn't terminal (SPEC section 3)."""
    if op.last_code == event.code:
        return Unchanged(pace_s(op))
    lane = Lane.FETCH if op.state in KNOWN_OVER else Lane.POLL
    return replace(Decision(op).having(last_code=event.code).note(event.code, event.why), wake={lane: pace_s(op)})


@on(LIVE, Hinted)
def hinted(op: Operation, event: Hinted) -> Answer:
    """A hint is never evidence: it wakes the reading early."""
    return Decision(op, wake={Lane.POLL: 0.0})
