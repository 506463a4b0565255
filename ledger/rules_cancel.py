"""Rules of cancelling: a cancel is a request (SPEC section 5)."""

from dataclasses import replace

from .decision import Answer, Decision, Refusal, Unchanged
from .events import CancelAcknowledged, CancelAsked, CancelNotSent, CancelUnclear
from .operation import Operation
from .rules import backoff_s, cancelled, effects_before_task, nothing_out, on, request_cancel, unknown
from .states import CaseKind, Lane, State

CANNOT = Refusal("E_CANNOT_CANCEL", "this target can't cancel; nothing was changed", note=False)


@on((State.SUBMITTING, State.NOT_FOUND_SAFE), CancelAsked)
def cancel_unsent(op: Operation, event: CancelAsked) -> Answer:
    asked = Decision(op, why=event.reason).having(cancel_generation=op.cancel_generation + 1)
    if event.evidence_waits or not (nothing_out(op) or op.state is State.NOT_FOUND_SAFE):
        # What a server said is read first, by whoever can: the submit lane then ends what does not run.
        return _remember(op, asked)
    return cancelled(asked, effects=effects_before_task(op))


@on((State.SUBMISSION_UNKNOWN,), CancelAsked)
def cancel_unknown(op: Operation, event: CancelAsked) -> Answer:
    return _remember(op, Decision(op, why=event.reason).having(cancel_generation=op.cancel_generation + 1))


def _remember(op: Operation, asked: Decision) -> Answer:
    """Asked before the task id is known: the generation is raised at once, the request leaves when WORKING."""
    if not op.policy.can_cancel:
        return CANNOT
    return asked if op.cancel_generation == 0 else Unchanged()


@on((State.WORKING, State.INPUT_REQUIRED), CancelAsked)
def cancel_live(op: Operation, event: CancelAsked) -> Answer:
    if op.task_id is None:
        asked = Decision(op, why=event.reason).having(cancel_generation=op.cancel_generation + 1)
        return cancelled(asked, effects=effects_before_task(op))
    if not op.policy.can_cancel:
        return CANNOT
    if op.has_case(CaseKind.UNKNOWN, "E_TASK_ID_REUSED"):
        return Refusal("E_TASK_ID_REUSED", "the server may show another's task under this id; settle its case first")
    return request_cancel(Decision(op, why=event.reason), Lane.DOOR)


@on((State.CANCEL_REQUESTED,), CancelAsked)
def cancel_twice(op: Operation, event: CancelAsked) -> Answer:
    return Unchanged()


@on((State.TERMINAL_OBSERVED, State.FETCHING_RESULT), CancelAsked)
def cancel_too_late(op: Operation, event: CancelAsked) -> Answer:
    return Refusal("E_ALREADY_OVER", f"the server already said {op.terminal_status}", note=False)


def _answered(op: Operation, how: str) -> Decision:
    decision = Decision(op).having(intents=tuple(i for i in op.intents if i.effect != "cancel"))
    return decision.ends("cancel", how) if op.intent("cancel") is not None else decision


@on((State.CANCEL_REQUESTED,), CancelAcknowledged)
def cancel_acknowledged(op: Operation, event: CancelAcknowledged) -> Answer:
    if event.generation != op.cancel_generation:
        return Refusal("E_LATE_EVIDENCE", f"a cancel of generation {event.generation} was answered")
    decision = _answered(op, "answered").having(cancel_acked=True)
    if op.policy.cancel_is_evidence and event.cancelled and not op.contested:
        return cancelled(decision.having(server_status="cancelled", confirm_left_s=None), effects=op.policy.effects)
    # An acknowledgement ends nothing: read the status until it is terminal, starting now.
    return replace(decision, wake={Lane.POLL: 0.0})


@on((State.TERMINAL_OBSERVED, State.FETCHING_RESULT), CancelAcknowledged)
def cancel_acknowledged_late(op: Operation, event: CancelAcknowledged) -> Answer:
    """Two different terminal words contradict each other; any other late answer to a cancel says nothing."""
    if op.policy.cancel_is_evidence and event.cancelled:
        why = f"the server said {op.terminal_status}, its answer to the cancel says cancelled"
        return unknown(Decision(op), "E_STATUS_REGRESSED", why)
    return Refusal("E_LATE_EVIDENCE", "the cancel was answered after the end")


@on((State.CANCEL_REQUESTED,), CancelUnclear)
def cancel_unclear(op: Operation, event: CancelUnclear) -> Answer:
    if event.generation != op.cancel_generation:
        return Refusal("E_LATE_EVIDENCE", f"a cancel of generation {event.generation} was answered unclearly")
    return replace(_answered(op, "lost").note(event.code, event.why), wake={Lane.POLL: 0.0})


@on((State.CANCEL_REQUESTED,), CancelNotSent)
def cancel_not_sent(op: Operation, event: CancelNotSent) -> Answer:
    if event.generation != op.cancel_generation:
        return Refusal("E_LATE_EVIDENCE", f"a cancel of generation {event.generation} was not sent")
    intent = op.intent("cancel")
    if intent is not None and intent.send_token != event.send_token:
        return Refusal("E_INTENT_OPEN", "the open intent is another bearer's: only its holder may withdraw it")
    if intent is None and not op.cancel_due:
        return Refusal("E_LATE_EVIDENCE", f"a cancel of generation {event.generation} was sent by another bearer")
    sends = op.cancel_sends if intent is None else op.cancel_sends - 1
    taken_back = _answered(op, "withdrawn").having(cancel_due=True, cancel_sends=sends, tries=op.tries + 1)
    return replace(taken_back, wake={Lane.CANCEL: backoff_s(op.tries + 1, event.retry_after_s)})
