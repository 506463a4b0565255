"""The one place where an adapter's outcome becomes a ledger event: one pure function per verb.

No counters, no clock, no state: what counts to three lives in the machine.
"""

from typing import TypeAlias, assert_never
from uuid import UUID

from ..adapters import strict_json
from ..adapters.outcomes import (
    Absent,
    Acknowledged,
    Busy,
    CancelOutcome,
    Found,
    FoundOver,
    FoundRunning,
    InputKey,
    LookupOutcome,
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
    ReplyOutcome,
    SessionGone,
    StillWorking,
    SubmitOutcome,
    TaskStarted,
    Terminal,
    Unclear,
)
from ..ledger import events
from ..ledger.digest import canonical_json, sha256
from ..ledger.errors import InputRefused
from ..ledger.policy import Policy
from ..ledger.rounds import Question
from . import schemas

_EMPTY: tuple[object, ...] = (None, "", [], {})

_NOTHING = Payload(b"{}", "")
"""A result that the server left out, where the policy takes an empty one."""

Unsent: TypeAlias = events.SubmitNotSent | events.RefusedBeforeSubmit
"""Why a submit did not leave."""


def submit(outcome: SubmitOutcome, *, attempt: int, policy: Policy, output_schema: bytes | None) -> events.Event:
    """What an answer to a submit (or its absence) says of this attempt."""
    match outcome:
        case TaskStarted():
            return events.TaskBound(
                attempt,
                outcome.task_id,
                outcome.status,
                outcome.created_at,
                outcome.ttl_ms,
                outcome.interval_ms,
                outcome.over,
            )
        case Over():
            return events.ResultAtOnce(attempt, outcome.terminal.value, _result(outcome, policy, output_schema))
        case NeedsInput():
            return events.InputAsked(attempt, _questions(outcome), outcome.state)
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
                seq, outcome.status, _questions(outcome), outcome.created_at, outcome.ttl_ms, outcome.interval_ms
            )
        case Over():
            if fetched:
                return events.ResultFetched(_result(outcome, policy, output_schema))
            apart = policy.result_separate and outcome.payload is None  # what came with the status needs no fetch
            result = None if apart else _result(outcome, policy, output_schema)
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


def lookup(outcome: LookupOutcome, *, attempt: int, policy: Policy, output_schema: bytes | None) -> events.Event:
    """What a question by key says of a lost submit."""
    match outcome:
        case Found():
            return _found(outcome.task)
        case FoundOver():
            result = _result(outcome.over, policy, output_schema)
            return events.LookupOver(outcome.over.terminal.value, result)
        case FoundRunning():
            return events.LookupUnsure("E_SUBMISSION_UNKNOWN", "it still runs, and has no task", transient=True)
        case Absent():
            return events.LookupAbsent(outcome.authoritative, attempt)
        case Unclear():
            final = outcome.code in ("E_KEY_REUSED_DIFFERENT_REQUEST", "E_KEY_UNSURE")
            code = _submission_code(outcome.code)
            return events.LookupUnsure(code, f"{outcome.code}: {outcome.why}", outcome.retry_after_s, final=final)
        case NoSuchVerb():
            why = f"the server has no such lookup: {outcome.why}"
            return events.LookupUnsure("E_SUBMISSION_UNKNOWN", why, final=True)
        case Busy():
            why = f"the lookup was not answered: {outcome.code}"
            return events.LookupUnsure("E_SUBMISSION_UNKNOWN", why, outcome.retry_after_s, transient=True)
        case NoAccess():
            return events.LookupDenied(outcome.why)
        case SessionGone():
            return events.LookupUnsure("E_SUBMISSION_UNKNOWN", "the session is gone", transient=True)
        case _:
            assert_never(outcome)


def _found(task: TaskStarted) -> events.LookupFound:
    return events.LookupFound(task.task_id, task.status, task.created_at, task.ttl_ms, task.interval_ms, task.over)


def replay(
    outcome: SubmitOutcome, *, send_token: UUID | None, policy: Policy, output_schema: bytes | None
) -> events.Event:
    """What the answer to the same bytes under the same key says. A rejection of it proves nothing of the first attempt
    (SPEC section 1)."""
    match outcome:
        case TaskStarted():
            return _found(outcome)
        case Over():
            return events.LookupOver(outcome.terminal.value, _result(outcome, policy, output_schema))
        case NotProcessed() if outcome.auth:
            return events.LookupDenied(outcome.code)
        case NotProcessed():
            return events.ReplayNotSent(outcome.code, outcome.retry_after_s, send_token)
        case NotSent():
            return events.ReplayNotSent(outcome.why, send_token=send_token)
        case Rejected():
            return events.LookupUnsure(
                "E_SUBMISSION_UNKNOWN", f"the replay was rejected with {outcome.code}", final=True
            )
        case NeedsInput():
            return events.LookupUnsure("E_SUBMISSION_UNKNOWN", "the replay was answered with a question", final=True)
        case Unclear():
            final = outcome.code == "E_KEY_REUSED_DIFFERENT_REQUEST"
            code = _submission_code(outcome.code)
            return events.LookupUnsure(code, f"{outcome.code}: {outcome.why}", outcome.retry_after_s, final=final)
        case _:
            assert_never(outcome)


def unsent_replay(event: Unsent) -> events.Event:
    """What kept a submit from being sent, said of a replay."""
    if isinstance(event, events.RefusedBeforeSubmit):
        return events.LookupUnsure("E_SUBMISSION_UNKNOWN", f"no replay: {event.why}", final=True)
    if event.auth:
        return events.LookupDenied(event.why)
    return events.ReplayNotSent(event.why, event.retry_after_s, event.send_token)


def reply(outcome: ReplyOutcome, *, number: int, send_token: UUID | None = None) -> events.Event:
    """What an answer to a person's reply (or its absence) says of its round."""
    match outcome:
        case Acknowledged():
            return events.ReplyAcknowledged(number)
        case NotFound():
            return events.ReplyUnclear(number, "E_INPUT_UNCLEAR", outcome.why)
        case NoSuchVerb():
            return events.ReplyUnclear(number, "E_INPUT_UNCLEAR", outcome.why)
        case NotProcessed():
            return events.ReplyNotSent(number, outcome.code, outcome.retry_after_s, send_token)
        case Unclear():
            return events.ReplyUnclear(number, "E_INPUT_UNCLEAR", f"{outcome.code}: {outcome.why}")
        case NotSent():
            return events.ReplyNotSent(number, outcome.why, send_token=send_token)
        case _:
            assert_never(outcome)


def _questions(outcome: NeedsInput) -> tuple[Question, ...]:
    return tuple(
        Question(key.key, key.method, key.params, sha256(schema_of(key)), key.reply_to) for key in outcome.keys
    )


def schema_of(key: InputKey | Question) -> bytes:
    """RFC 8785 text of the schema that a reply's content must fit; an empty schema where none was said."""
    try:
        params = strict_json.loads(key.params)
        schema = params.get("requestedSchema") if isinstance(params, dict) else None
        return canonical_json(schema if isinstance(schema, dict) else {})
    except (strict_json.BadJson, InputRefused):
        return b"{}"


def _result(outcome: Over, policy: Policy, output_schema: bytes | None) -> events.Result:
    """The result with the reason why it can't be accepted, if there is one (SPEC section 6). Size first, then shape."""
    payload = outcome.payload
    if payload is None and policy.empty_result and outcome.terminal is not Terminal.CANCELLED:
        payload = _NOTHING
    if payload is None:
        return events.Result(None, "", b"", "E_RESULT_MISSING", outcome.tool_error)
    if len(payload.body) > policy.max_result_bytes:
        return events.Result(None, payload.pointer, b"", "E_RESULT_TOO_LARGE", outcome.tool_error)
    failed = outcome.tool_error or outcome.terminal is not Terminal.COMPLETED
    problem, value_digest = _judged(payload, policy, output_schema, failed=failed)
    return events.Result(sha256(payload.body), payload.pointer, payload.body, problem, outcome.tool_error, value_digest)


def _judged(
    payload: Payload, policy: Policy, output_schema: bytes | None, *, failed: bool
) -> tuple[str | None, bytes | None]:
    """Why the result can't be accepted, and the digest of its value."""
    try:
        value = strict_json.resolve(strict_json.loads(payload.body), payload.pointer)
        value_digest = _value_digest(value)
        if failed:
            return None, value_digest
        if value in _EMPTY and not policy.empty_result:
            return "E_RESULT_MISSING", value_digest
        if output_schema is not None and schemas.check(output_schema, value):
            return "E_RESULT_SCHEMA", value_digest
    except (strict_json.BadJson, schemas.SchemaError):
        return (None if failed else "E_RESULT_SCHEMA"), None
    return None, value_digest


def _value_digest(value: object) -> bytes | None:
    """None where the value has no RFC 8785 text (an integer above 2^53 - 1): it can be accepted, not compared."""
    try:
        return sha256(canonical_json(value))
    except InputRefused:
        return None


def accepted(body: bytes, pointer: str) -> events.Result:
    """A result that a person accepts although it breaks its schema."""
    try:
        value_digest = _value_digest(strict_json.resolve(strict_json.loads(body), pointer))
    except strict_json.BadJson:
        value_digest = None
    return events.Result(sha256(body), pointer, body, value_digest=value_digest)
