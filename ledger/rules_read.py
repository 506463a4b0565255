"""Rules of the poll and fetch lanes: what a reading of a known task means (SPEC sections 3, 4, 6, 7)."""

from dataclasses import replace

from .decision import Answer, Decision, Refusal, Unchanged
from .events import (
    AccessDenied,
    AnswerRefused,
    Ended,
    InputRequested,
    Progressed,
    ReadFailed,
    ResultFetched,
    SessionRenewed,
    TaskNotFound,
)
from .operation import Operation
from .rules import backoff_s, on, unknown
from .rules_result import conclude
from .states import Lane, Outcome, State
from .wakes import wakes

LIVE = (State.WORKING, State.INPUT_REQUIRED, State.CANCEL_REQUESTED)
KNOWN_OVER = (State.TERMINAL_OBSERVED, State.FETCHING_RESULT)
NOT_FOUND_MAX_S = 60.0


def _pace_s(op: Operation) -> float:
    return wakes(op).get(Lane.POLL, op.policy.clamp_poll_s(op.interval_ms))


def _told(op: Operation, event: Progressed | InputRequested) -> Operation:
    return replace(
        op,
        server_status=event.status,
        ttl_ms=event.ttl_ms,
        interval_ms=event.interval_ms,
        remote_created_at=op.remote_created_at or event.created_at,
        not_found_count=0,
        auth_tries=0,
    )


def _reused(op: Operation, created_at: str | None) -> bool:
    """The same id with another birth is another task (SPEC section 3)."""
    return created_at is not None and op.remote_created_at is not None and created_at != op.remote_created_at


def _id_reused(op: Operation) -> Decision:
    return unknown(Decision(op), "E_TASK_ID_REUSED", "the server shows another createdAt under the task's id")


@on(LIVE, Progressed)
def progressed(op: Operation, event: Progressed) -> Answer:
    if event.seq < op.observed_seq:
        return Unchanged(_pace_s(op))
    if _reused(op, event.created_at):
        return _id_reused(op)
    told = _told(op, event)
    if op.state is State.INPUT_REQUIRED:
        return _input_over(Decision(told), event.seq)
    if op.state is State.CANCEL_REQUESTED and _cancel_again(op):
        return Decision(replace(told, cancel_due=True, observed_seq=event.seq), wake={Lane.CANCEL: 0.0})
    if told == op:
        return Unchanged(_pace_s(op))
    return Decision(replace(told, observed_seq=event.seq), wake={Lane.POLL: _pace_s(told)})


def _cancel_again(op: Operation) -> bool:
    """A lost acknowledgement and the task still works: the same generation may be sent again, at most three times."""
    return (
        not op.cancel_acked
        and not op.cancel_due
        and op.intent("cancel") is None
        and 0 < op.cancel_sends < op.policy.cancel_sends
    )


def _input_over(decision: Decision, seq: int) -> Decision:
    """The task left `input_required` without our answer: it goes on as the protocol says, the receipt tells (SPEC
    section 4)."""
    op = decision.operation
    return replace(
        decision.move(
            State.WORKING,
            Lane.POLL,
            unanswered_rounds=op.unanswered_rounds + 1,
            input_digest=None,
            input_left_s=None,
            budget_running=op.budget_left_s is not None,
            observed_seq=seq,
        ),
        wake={Lane.POLL: op.policy.clamp_poll_s(op.interval_ms)},
    )


@on(LIVE, InputRequested)
def input_requested(op: Operation, event: InputRequested) -> Answer:
    if event.seq < op.observed_seq:
        return Unchanged(_pace_s(op))
    if _reused(op, event.created_at):
        return _id_reused(op)
    told = replace(_told(op, event), observed_seq=event.seq)
    if op.state is State.CANCEL_REQUESTED:
        if _cancel_again(op):
            return Decision(replace(told, cancel_due=True), wake={Lane.CANCEL: 0.0})
        return Unchanged(_pace_s(op))
    if op.state is State.INPUT_REQUIRED and event.digest == op.input_digest:
        return Unchanged(_pace_s(op))
    round_open = {
        "input_round": op.input_round + 1,
        "input_digest": event.digest,
        "input_left_s": op.policy.input_deadline_s,
        "budget_running": False,
    }
    if op.state is State.INPUT_REQUIRED:
        return Decision(told).having(**round_open, unanswered_rounds=op.unanswered_rounds + 1)
    return Decision(told).move(State.INPUT_REQUIRED, Lane.POLL, **round_open)


@on(LIVE, Ended)
def ended(op: Operation, event: Ended) -> Answer:
    """A terminal answer counts at any sequence."""
    if _reused(op, event.created_at):
        return _id_reused(op)
    unanswered = op.unanswered_rounds + (1 if op.state is State.INPUT_REQUIRED else 0)
    seen = Decision(op, closes=("UNKNOWN",)).having(
        server_status=event.status,
        terminal_status=event.terminal,
        observed_seq=max(op.observed_seq, event.seq),
        unanswered_rounds=unanswered,
        input_left_s=None,
        confirm_left_s=None,
        budget_running=False,
        cancel_due=False,
        not_found_count=0,
        auth_tries=0,
        cases=(),
    )
    if event.terminal == "cancelled":
        if op.state is State.CANCEL_REQUESTED and op.cancel_sends > 0:
            return seen.settle(
                State.CANCELLED_ACCEPTED, Outcome.CANCELLED, effects=op.policy.effects, terminal="cancelled"
            )
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


@on(KNOWN_OVER, TaskNotFound)
def result_not_found(op: Operation, event: TaskNotFound) -> Answer:
    asked = op.not_found_count + 1
    decision = Decision(op).having(not_found_count=asked).note("E_RESULT_MISSING", event.why)
    if asked >= op.policy.not_found_asks:
        return unknown(decision, "E_RESULT_MISSING", f"it ended, its result is gone (asked {asked} times)")
    return replace(decision, wake={Lane.FETCH: backoff_s(asked)})


@on((*LIVE, *KNOWN_OVER), ReadFailed)
def read_failed(op: Operation, event: ReadFailed) -> Answer:
    """Transient errors only back off, inside the budget: nothing is written, nothing is counted to an end."""
    return Unchanged(max(backoff_s(event.failures, event.retry_after_s), min(_pace_s(op), NOT_FOUND_MAX_S)))


@on((*LIVE, *KNOWN_OVER), SessionRenewed)
def session_renewed(op: Operation, event: SessionRenewed) -> Answer:
    """Ask again at once: whether the task is still known there is the next answer's business."""
    lane = Lane.FETCH if op.state in KNOWN_OVER else Lane.POLL
    renewed = Decision(op).having(session_id=event.session_id).note("E_SESSION_GONE", "a new session was begun")
    return replace(renewed, wake={lane: 0.0})


@on((*LIVE, *KNOWN_OVER), AccessDenied)
def access_denied(op: Operation, event: AccessDenied) -> Answer:
    tries = op.auth_tries + 1
    decision = Decision(op).having(auth_tries=tries).note("E_AUTH_EXPIRED", event.why)
    if tries >= op.policy.auth_tries:
        return unknown(decision, "E_AUTH_EXPIRED", f"the credential was refused {tries} times")
    lane = Lane.FETCH if op.state in KNOWN_OVER else Lane.POLL
    return replace(decision, wake={lane: backoff_s(tries)})


@on((*LIVE, *KNOWN_OVER), AnswerRefused)
def answer_refused(op: Operation, event: AnswerRefused) -> Answer:
    """Recorded once, then read on at the same pace: an unknown word isn't terminal (SPEC section 3)."""
    if op.last_code == event.code:
        return Unchanged(_pace_s(op))
    lane = Lane.FETCH if op.state in KNOWN_OVER else Lane.POLL
    return replace(Decision(op).having(last_code=event.code).note(event.code, event.why), wake={lane: _pace_s(op)})
