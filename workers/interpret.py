"""The one place where an adapter's outcome becomes a ledger event: one pure function per verb.

No counters, no clock, no state: what counts to three lives in the machine.
"""

from typing import assert_never
from uuid import UUID

from ..adapters import strict_json
from ..adapters.contract import (
    Acknowledged,
    Busy,
    CancelOutcome,
    NeedsInput,
    NoAccess,
    NoSuchVerb,
    NotFound,
    NotProcessed,
    NotSent,
    Observation,
    Over,
    Payload,
    Refused,
    Rejected,
    SessionGone,
    StillWorking,
    SubmitOutcome,
    TaskStarted,
    Terminal,
    Unclear,
)
from ..ledger import events
from ..ledger.digest import sha256
from ..ledger.policy import Policy
from . import schemas

_EMPTY: tuple[object, ...] = (None, "", [], {})


def submit(outcome: SubmitOutcome, *, attempt: int, policy: Policy, output_schema: bytes | None) -> events.Event:
    """What an answer to a submit (or its absence) says of this attempt."""
    match outcome:
        case TaskStarted():
            return events.TaskBound(
                attempt, outcome.task_id, outcome.status, outcome.created_at, outcome.ttl_ms, outcome.interval_ms
            )
        case Over():
            return events.ResultAtOnce(attempt, outcome.terminal.value, _result(outcome, policy, output_schema))
        case NeedsInput():
            return events.InputAsked(attempt, _round_digest(outcome))
        case Rejected():
            return events.SubmitRejected(attempt, outcome.code, outcome.message)
        case NotProcessed():
            return events.SubmitNotProcessed(attempt, outcome.code, outcome.retry_after_s, outcome.auth)
        case Unclear():
            return events.SubmitUnclear(attempt, _submission_code(outcome.code), f"{outcome.code}: {outcome.why}")
        case NotSent():
            return events.SubmitNotSent(attempt, outcome.why)
        case _:
            assert_never(outcome)


def _submission_code(code: str) -> str:
    """Whatever made it unclear, the operation's code is E_SUBMISSION_UNKNOWN, but for a key that names another
    request."""
    return code if code == "E_KEY_REUSED_DIFFERENT_REQUEST" else "E_SUBMISSION_UNKNOWN"


def observation(
    outcome: Observation,
    *,
    seq: int,
    failures: int,
    policy: Policy,
    output_schema: bytes | None,
    fetched: bool = False,
) -> events.Event:
    """What a reading of a known task says. `failures`: transient troubles in a row before this one; `fetched`: its
    result was asked for where the protocol keeps it apart."""
    match outcome:
        case StillWorking():
            return events.Progressed(seq, outcome.status, outcome.created_at, outcome.ttl_ms, outcome.interval_ms)
        case NeedsInput():
            return events.InputRequested(
                seq, outcome.status, _round_digest(outcome), outcome.created_at, outcome.ttl_ms, outcome.interval_ms
            )
        case Over():
            if fetched:
                return events.ResultFetched(_result(outcome, policy, output_schema))
            result = None if policy.result_separate else _result(outcome, policy, output_schema)
            return events.Ended(seq, outcome.terminal.value, outcome.status, result, outcome.created_at)
        case NotFound():
            return events.TaskNotFound(seq, outcome.why)
        case Busy():
            return events.ReadFailed(outcome.code, failures + 1, outcome.retry_after_s)
        case NoAccess():
            return events.AccessDenied(outcome.why)
        case Refused():
            return events.AnswerRefused(outcome.code, outcome.why)
        case SessionGone():
            return events.ReadFailed("E_SESSION_GONE", failures + 1)
        case _:
            assert_never(outcome)


def cancel(outcome: CancelOutcome, *, generation: int, send_token: UUID | None = None) -> events.Event:
    """What an answer to a cancel (or its absence) says of this generation. `send_token` is the intent's that was
    answered: one that was not processed takes back that intent and no other."""
    match outcome:
        case Acknowledged():
            return events.CancelAcknowledged(generation, cancelled=outcome.status == Terminal.CANCELLED)
        case Over():
            return events.CancelAcknowledged(generation, cancelled=outcome.terminal is Terminal.CANCELLED)
        case NotFound():
            return events.CancelUnclear(generation, "E_CANCEL_UNCLEAR", outcome.why)
        case NoSuchVerb():
            return events.CancelUnclear(generation, "E_CANNOT_CANCEL", outcome.why)
        case NotProcessed():
            return events.CancelNotSent(generation, outcome.code, outcome.retry_after_s, send_token)
        case Unclear():
            return events.CancelUnclear(generation, "E_CANCEL_UNCLEAR", f"{outcome.code}: {outcome.why}")
        case NotSent():
            return events.CancelNotSent(generation, outcome.why, send_token=send_token)
        case _:
            assert_never(outcome)


def _round_digest(outcome: NeedsInput) -> bytes:
    """The identity of a round: the set of its open keys."""
    return sha256("\0".join(sorted(key.key for key in outcome.keys)).encode())


def _result(outcome: Over, policy: Policy, output_schema: bytes | None) -> events.Result:
    """The result with the reason why it can't be accepted, if there is one (SPEC section 6). Size first, then shape."""
    payload = outcome.payload
    if payload is None:
        return events.Result(None, "", b"", "E_RESULT_MISSING", outcome.tool_error)
    if len(payload.body) > policy.max_result_bytes:
        return events.Result(None, payload.pointer, b"", "E_RESULT_TOO_LARGE", outcome.tool_error)
    failed = outcome.tool_error or outcome.terminal is not Terminal.COMPLETED
    problem = None if failed else _problem(payload, policy, output_schema)
    return events.Result(sha256(payload.body), payload.pointer, payload.body, problem, outcome.tool_error)


def _problem(payload: Payload, policy: Policy, output_schema: bytes | None) -> str | None:
    try:
        value = strict_json.resolve(strict_json.loads(payload.body), payload.pointer)
        if value in _EMPTY and not policy.empty_result:
            return "E_RESULT_MISSING"
        if output_schema is not None and schemas.check(output_schema, value):
            return "E_RESULT_SCHEMA"
    except (strict_json.BadJson, schemas.SchemaError):
        return "E_RESULT_SCHEMA"
    return None
