"""What the walk tries: policies that differ in what they promise, and an alphabet that holds every class of event with
every variant that matters.

A policy is walked with the events that its promises speak of; what has nothing to do with them is walked under
another one, which keeps the walk in seconds.
"""

import uuid
from typing import Any, NamedTuple

from counterfoil.ledger import events as ev
from counterfoil.ledger.events import Result
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.rounds import Question
from counterfoil.ledger.states import State

MINE, OTHERS = uuid.UUID(int=2), uuid.UUID(int=3)
GOOD = Result(b"g" * 32, "/result", b"{}", value_digest=b"g")
OTHER = Result(b"o" * 32, "/result", b"[]", value_digest=b"o")
TOOL_ERROR = Result(b"e" * 32, "/result", b"{}", tool_error=True, value_digest=b"e")
BROKEN = Result(b"s" * 32, "/result", b"1", "E_RESULT_SCHEMA", value_digest=b"s")
PROBLEMS = (Result(None, "", b"", "E_RESULT_MISSING"), Result(None, "", b"", "E_RESULT_TOO_LARGE"), BROKEN)
A, B, SEEN = (Question(key, "elicitation/create", b"{}", b"d") for key in ("a", "b", "seen"))
"""Two questions, and the one that a task was seen past already."""

# One policy counts to two, the others stop at the first: no rule tells the third of three from the second of two.
BASE = Policy(
    protocol="p",
    not_found_asks=1,
    auth_tries=1,
    cancel_sends=1,
    wait_budget_s=100.0,
    settle_s=5.0,
    key_lifetime_s=100.0,
    audit_s=100.0,
)

_LOOKUP = (ev.LookupFound, ev.LookupAbsent, ev.LookupOver, ev.LookupUnsure, ev.LookupDenied, ev.ReplayNotSent)
_REPLY = (ev.ReplyGiven, ev.ReplyAcknowledged, ev.ReplyUnclear, ev.ReplyNotSent)
_INPUT = (ev.InputAsked, ev.InputRequested, *_REPLY)
_CANCEL = (ev.CancelAsked, ev.CancelAcknowledged, ev.CancelUnclear, ev.CancelNotSent)
_SUBMIT = (ev.TaskBound, ev.ResultAtOnce, ev.InputAsked)
_RARE = (ev.Quarantined, ev.AccessDenied, ev.SessionRenewed, ev.ReadFailed, ev.AnswerRefused, ev.Hinted)


class Promises(NamedTuple):
    """A policy's changes, the events that are left out of its walk, and where it starts."""

    changes: dict[str, Any]
    without: tuple[type, ...] = ()
    start: State = State.SUBMITTING


POLICIES = {
    "nothing is promised, not found is asked twice": Promises({"not_found_asks": 2}, (*_LOOKUP, *_INPUT)),
    "lookup, unique": Promises({"lookup": "by_key", "absence": "unique"}, _INPUT),
    "lookup, closes, cancel at the end": Promises(
        {"lookup": "by_key", "absence": "closes", "on_budget": "cancel"}, (ev.InputRequested, *_RARE)
    ),
    "lookup, bounded but not allowed": Promises(
        {"lookup": "by_key", "absence": "bounded", "can_cancel": False}, (*_INPUT, *_RARE)
    ),
    "lookup, bounded and allowed, cancel is evidence": Promises(
        {
            "lookup": "client_chosen_id",
            "absence": "bounded",
            "bounded_allowed": True,
            "cancel_is_evidence": True,
            "effect_case": "always",
        },
        _INPUT,
    ),
    "lookup, no effects, abandoned when nobody speaks": Promises(
        {"lookup": "by_key", "absence": "unique", "effects": False, "on_unknown": "abandon"}, (*_INPUT, *_RARE)
    ),
    "lookup and a call that blocks": Promises(
        {"lookup": "by_key", "absence": "unique", "sync": True}, (*_INPUT, *_RARE)
    ),
    "replay, can't cancel": Promises(
        {"lookup": "replay", "can_cancel": False, "on_budget": "cancel", "effects": False}, _INPUT
    ),
    "replay, two credentials": Promises({"lookup": "replay", "auth_tries": 2}, (*_INPUT, *_RARE)),
    "one attempt, no audit": Promises(
        {"lookup": "by_key", "absence": "unique", "max_attempts": 1, "audit_s": 0.0}, (*_INPUT, *_RARE)
    ),
    "cancel is evidence and sent twice": Promises({"cancel_is_evidence": True, "cancel_sends": 2}, (*_LOOKUP, *_INPUT)),
    "a reply is sent once, people keep the deadline": Promises(
        {"reply_replay": "never", "on_input_deadline": "reconcile"}, (*_SUBMIT, *_LOOKUP, *_RARE), State.WORKING
    ),
    "a reply may be repeated, nobody watches": Promises(
        {"reply_replay": "safe", "input_watch_s": 0.0, "effects": False, "on_unknown": "abandon"},
        (*_SUBMIT, *_LOOKUP, *_CANCEL, *_RARE),
        State.WORKING,
    ),
    "a reply is repeated after a look, an answer is required": Promises(
        {"reply_replay": "read_first", "require_answer": True, "can_cancel": False},
        (*_SUBMIT, *_LOOKUP, *_RARE),
        State.WORKING,
    ),
}


def _submit() -> list[ev.Event]:
    events: list[ev.Event] = []
    for attempt in (1, 2):
        events += [
            ev.TaskBound(attempt, task, "working", "c1", elsewhere=far)
            for task, far in (("t", False), ("u", False), ("t", True))
        ]
        events += [ev.ResultAtOnce(attempt, "completed", result) for result in (GOOD, TOOL_ERROR, *PROBLEMS)]
        events += [ev.ResultAtOnce(attempt, "failed", GOOD), ev.ResultAtOnce(attempt, "cancelled", PROBLEMS[0])]
        events += [ev.InputAsked(attempt, asked, "s") for asked in ((A,), ())]
        events += [ev.SubmitRejected(attempt, "E_REJECTED", "no")]
        events += [
            ev.SubmitNotProcessed(attempt, "E_BUSY", retry, auth)
            for retry, auth in ((None, False), (7.0, False), (None, True))
        ]
        events += [ev.SubmitNotSent(attempt, "refused", send_token=token) for token in (MINE, OTHERS, None)]
        events += [
            ev.SubmitUnclear(attempt, code, "?") for code in ("E_SUBMISSION_UNKNOWN", "E_KEY_REUSED_DIFFERENT_REQUEST")
        ]
    return [*events, ev.IntentOverdue(), ev.RefusedBeforeSubmit("E_POLICY", "no"), ev.Resubmit()]


def _lookup() -> list[ev.Event]:
    events: list[ev.Event] = [
        ev.LookupFound(task, "working", "c1", elsewhere=far) for task, far in (("t", False), ("u", False), ("t", True))
    ]
    events += [ev.LookupAbsent(sure, attempt) for sure in (True, False) for attempt in (1, 2)]
    events += [ev.LookupOver("completed", result) for result in (GOOD, OTHER, TOOL_ERROR, BROKEN)]
    events += [ev.LookupOver("cancelled", PROBLEMS[0])]
    events += [ev.LookupUnsure("E_UNSURE", "?", final=final) for final in (True, False)]
    events += [ev.LookupUnsure("E_UNSURE", "?", transient=True), ev.LookupDenied("401")]
    return [*events, *(ev.ReplayNotSent("refused", send_token=token) for token in (MINE, OTHERS, None))]


def _read() -> list[ev.Event]:
    events: list[ev.Event] = []
    for seq in (1, 2):
        events += [
            ev.Progressed(seq, "working", born, interval_ms=ms)
            for born, ms in (("c1", None), ("c1", 2000), ("c2", None))
        ]
        events += [ev.InputRequested(seq, "input_required", asked, "c1") for asked in ((), (A,), (B,), (A, B), (SEEN,))]
        events += [ev.InputRequested(seq, "input_required", (A,), "c2")]
        events += [
            ev.Ended(seq, "completed", "completed", result, "c1")
            for result in (None, GOOD, OTHER, TOOL_ERROR, *PROBLEMS)
        ]
        events += [ev.Ended(seq, "failed", "failed", result, "c1") for result in (None, GOOD)]
        events += [ev.Ended(seq, "cancelled", "cancelled", None, "c1")]
        events += [ev.Ended(seq, "completed", "completed", GOOD, born) for born in ("c2", None)]
        events += [ev.TaskNotFound(seq, "unknown")]
    events += [ev.ReadFailed("E_BUSY", 3, 9.0), ev.AccessDenied("401"), ev.SessionRenewed(OTHERS)]
    events += [ev.AnswerRefused("E_TASK_ID_MISMATCH", "?"), ev.Hinted(), ev.Hinted("completed")]
    return [*events, *(ev.ResultFetched(result) for result in (GOOD, OTHER, TOOL_ERROR, *PROBLEMS))]


def _cancel() -> list[ev.Event]:
    events: list[ev.Event] = [ev.CancelAsked("stop"), ev.CancelAsked("stop", evidence_waits=True)]
    for generation in (1, 2):
        events += [ev.CancelAcknowledged(generation, cancelled=won) for won in (True, False)]
        events += [ev.CancelUnclear(generation, "E_CANCEL_UNCLEAR", "?")]
        events += [ev.CancelNotSent(generation, "refused", send_token=token) for token in (MINE, OTHERS, None)]
    return events


def _reply() -> list[ev.Event]:
    events: list[ev.Event] = []
    for number in (1, 2, 3):
        events += [ev.ReplyGiven(number, b"{}", "ann"), ev.ReplyAcknowledged(number)]
        events += [ev.ReplyUnclear(number, "E_INPUT_UNCLEAR", "?")]
        events += [ev.ReplyNotSent(number, "refused", send_token=token) for token in (MINE, OTHERS)]
    return events


def _people() -> list[ev.Event]:
    said = ("ann", "looked")
    return [
        ev.DeadlineReached(),
        ev.Quarantined("poll"),
        ev.Recovered(),
        ev.VerdictGiven("bind", *said, task_id="t"),
        ev.VerdictGiven("bind", *said, task_id="u", elsewhere=True),
        ev.VerdictGiven("bind", *said),
        ev.VerdictGiven("accept", *said),
        ev.VerdictGiven("accept", *said, result=BROKEN),
        ev.VerdictGiven("accept", *said, result=TOOL_ERROR),
        ev.VerdictGiven("never_created", *said),
        ev.VerdictGiven("give_up", *said),
    ]


ALPHABET = (*_submit(), *_lookup(), *_read(), *_cancel(), *_reply(), *_people())
