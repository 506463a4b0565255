"""Each pair of state and event that a review found unclear, with the one decision about it.

A row reads: in this state, when this happens, it stands so: (state, outcome, codes of open cases, code of a refusal).
"""

from dataclasses import replace
from typing import NamedTuple

import pytest

from counterfoil.ledger.events import (
    AnswerRefused,
    CancelAcknowledged,
    CancelAsked,
    CancelUnclear,
    DeadlineReached,
    Ended,
    Event,
    Hinted,
    IntentOverdue,
    LookupAbsent,
    LookupFound,
    LookupUnsure,
    Progressed,
    RefusedBeforeSubmit,
    ReplayNotSent,
    ReplyAcknowledged,
    ReplyGiven,
    ReplyUnclear,
    Resubmit,
    Result,
    ResultAtOnce,
    ResultFetched,
    SubmitNotProcessed,
    SubmitNotSent,
    SubmitRejected,
    SubmitUnclear,
    TaskBound,
    TaskNotFound,
)
from counterfoil.ledger.states import State
from counterfoil.tests.ledger.machine import (
    GOOD,
    OTHER,
    TOKEN,
    Told,
    asks,
    asks_first,
    cancelling,
    fresh,
    in_state,
    intended,
    said,
    sending,
)

S = State
STOP, DUE = CancelAsked("stop"), DeadlineReached()
BOUND, BOUND_2, LATE_1 = TaskBound(1, "t-1", "working"), TaskBound(2, "t-2", "working"), TaskBound(1, "t-2", "working")
LOST = SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "-32603")
ABSENT = LookupAbsent(authoritative=True)
UNSENT = SubmitNotSent(1, "refused", send_token=TOKEN)
DENIED = SubmitNotProcessed(1, "E_AUTH", auth=True)
MISSING = Result(None, "", b"", "E_RESULT_MISSING")
UNSURE = LookupUnsure("E_SUBMISSION_UNKNOWN", "?", final=True)
GONE = TaskNotFound(9, "gone")
REPLY = ReplyGiven(1, b"{}", "ann")
WON = Ended(9, "cancelled", "cancelled")
ENDED = Ended(9, "completed", "completed")
DONE = Ended(9, "completed", "completed", GOOD)
KEYED = {"lookup": "by_key", "absence": "bounded", "bounded_allowed": True}
REJECTED = SubmitRejected(1, "E_REJECTED", "bad")


def over(told: Told) -> Told:
    op = told.op
    assert op.settle_as is not None
    return Told(replace(op, state=op.settle_as, settle_as=None, audit_left_s=op.audit_s))


unsent, out = fresh(), intended(fresh())
out_cancelled = out.then(STOP)
unknown = intended(fresh(**KEYED)).then(LOST).then(settle_left_s=0.0)
replayed = sending(intended(fresh(lookup="replay")).then(LOST), "replay")
safe = unknown.then(ABSENT)
second = safe.then(Resubmit())
second_out = intended(second)
working = in_state(S.WORKING, remote_created_at="c1")
asked = working.then(asks("a"))
in_flight = sending(asked.then(REPLY), "answer")
cancel = cancelling(working.then(STOP))
cancel_2025 = cancelling(in_state(S.WORKING, policy={"cancel_is_evidence": True}).then(STOP))
unwanted = out_cancelled.then(BOUND)
fetching = working.then(ENDED)
fetching_2025 = cancel_2025.then(ENDED)
accepted = over(working.then(DONE))
refused = over(second.then(RefusedBeforeSubmit("E_ADAPTER_DRAINING", "drained")))
failed = over(out.then(REJECTED))
won = over(cancel.then(WON))


class Row(NamedTuple):
    name: str
    before: Told
    happens: tuple[Event, ...]
    state: State
    outcome: str | None = None
    asked: tuple[str, ...] = ()
    refused: str | None = None


PAIRS = [
    Row("never sent, the lease is lost", unsent, (IntentOverdue(),), S.SUBMITTING),
    Row(
        "never sent, the budget is over",
        unsent.then(budget_left_s=0.0, budget_running=True),
        (DUE,),
        S.TERMINAL_OBSERVED,
        "failed",
    ),
    Row("never sent, cancelled", unsent, (STOP,), S.SUBMITTING, "cancelled"),
    Row("never sent, drained", unsent, (RefusedBeforeSubmit("E_ADAPTER_DRAINING", "?"),), S.SUBMITTING, "refused"),
    Row("out, a task after a remembered cancel", out_cancelled, (BOUND,), S.CANCEL_REQUESTED),
    Row(
        "out, a result after a remembered cancel",
        out_cancelled,
        (ResultAtOnce(1, "completed", GOOD),),
        S.FETCHING_RESULT,
        "succeeded",
    ),
    Row("out, a question", out, (asks_first("a"),), S.INPUT_REQUIRED),
    Row("out, a question after a remembered cancel", out_cancelled, (asks_first("a"),), S.SUBMITTING, "cancelled"),
    Row("out, a refused credential", out, (DENIED,), S.SUBMITTING),
    Row("out, a credential refused for the third time", out.then(auth_tries=2), (DENIED,), S.SUBMITTING, "refused"),
    Row("out, -32603", out, (LOST,), S.SUBMISSION_UNKNOWN, None, ("E_SUBMISSION_UNKNOWN",)),
    Row(
        "out, an id that is bound elsewhere",
        out,
        (replace(BOUND, elsewhere=True),),
        S.SUBMISSION_UNKNOWN,
        None,
        ("E_TASK_ID_REUSED",),
    ),
    Row("out, a hint before the answer", out, (Hinted("working"),), S.SUBMITTING, None, (), "E_NOT_APPLICABLE"),
    Row("second attempt due, the first is answered", second, (LATE_1,), S.WORKING),
    Row("second attempt due, the first was rejected", second, (REJECTED,), S.TERMINAL_OBSERVED, "failed"),
    Row("second attempt out, the first is answered", second_out, (LATE_1,), S.SUBMITTING, None, ("E_TWO_OPERATIONS",)),
    Row(
        "second attempt out and answered after that",
        second_out,
        (LATE_1, BOUND_2),
        S.WORKING,
        None,
        ("E_TWO_OPERATIONS",),
    ),
    Row("second attempt out, rejected", second_out, (SubmitRejected(2, "E_REJECTED", "bad"),), S.SUBMISSION_UNKNOWN),
    Row(
        "second attempt out, no connection", second_out, (SubmitNotSent(2, "refused", send_token=TOKEN),), S.SUBMITTING
    ),
    Row("unknown, a late answer", unknown, (BOUND,), S.WORKING),
    Row("unknown, a late result", unknown, (ResultAtOnce(1, "completed", GOOD),), S.FETCHING_RESULT, "succeeded"),
    Row(
        "unknown, more than one found, or another digest",
        unknown,
        (UNSURE,),
        S.SUBMISSION_UNKNOWN,
        None,
        ("E_SUBMISSION_UNKNOWN",),
    ),
    Row("unknown, absent while the window is open", unknown.then(settle_left_s=5.0), (ABSENT,), S.SUBMISSION_UNKNOWN),
    Row(
        "unknown, absent by its own word",
        unknown,
        (LookupAbsent(authoritative=False),),
        S.SUBMISSION_UNKNOWN,
        None,
        ("E_SUBMISSION_UNKNOWN",),
    ),
    Row("unknown, the replay is not processed", replayed, (ReplayNotSent("429", 9.0, TOKEN),), S.SUBMISSION_UNKNOWN),
    Row("unknown, the replay is rejected", replayed, (UNSURE,), S.SUBMISSION_UNKNOWN, None, ("E_SUBMISSION_UNKNOWN",)),
    Row("unknown, cancelled", unknown, (STOP,), S.SUBMISSION_UNKNOWN),
    Row("unknown, cancelled and then found", unknown, (STOP, LookupFound("t-1", "working")), S.CANCEL_REQUESTED),
    Row("unknown, 15 minutes are over", unknown, (DUE,), S.SUBMISSION_UNKNOWN, None, ("E_SUBMISSION_UNKNOWN",)),
    Row("unknown, a person binds", unknown, (DUE, said("bind", task_id="t-1")), S.WORKING),
    Row("unknown, a person says never created", unknown, (DUE, said("never_created")), S.SUBMISSION_UNKNOWN, "failed"),
    Row("absent, a late answer", safe, (BOUND,), S.WORKING),
    Row("absent, a hint", safe, (Hinted("working"),), S.NOT_FOUND_SAFE, None, (), "E_NOT_APPLICABLE"),
    Row("absent, drained", safe, (RefusedBeforeSubmit("E_ADAPTER_DRAINING", "?"),), S.NOT_FOUND_SAFE, "refused"),
    Row("absent, the budget is over", safe.then(budget_left_s=0.0), (DUE,), S.NOT_FOUND_SAFE, "refused"),
    Row("absent, its bearer died before the next intent", second, (IntentOverdue(),), S.SUBMITTING),
    Row("cancel remembered, completed before it left", unwanted, (DONE,), S.FETCHING_RESULT, "succeeded"),
    Row("cancel remembered, cancelled before it left", unwanted, (WON,), S.TERMINAL_OBSERVED, "cancelled"),
    Row(
        "working, a word that nobody knows, for ever", working, (AnswerRefused("E_STATUS_UNKNOWN", "?"),) * 9, S.WORKING
    ),
    Row("working, another birth", working, (Progressed(9, "x", "c2"),), S.WORKING, None, ("E_TASK_ID_REUSED",)),
    Row(
        "working, a key that was answered is listed",
        in_flight.then(ReplyAcknowledged(1), Progressed(2, "x")),
        (asks("a", seq=3),),
        S.WORKING,
    ),
    Row(
        "working, completed without a result",
        working,
        (replace(DONE, result=MISSING),),
        S.FETCHING_RESULT,
        None,
        ("E_RESULT_MISSING",),
    ),
    Row(
        "working, a lookup names another task",
        working,
        (LookupFound("t-2", "working"),),
        S.WORKING,
        None,
        ("E_TWO_OPERATIONS",),
    ),
    Row("asked, the deadline", asked.then(input_left_s=0.0), (DUE,), S.CANCEL_REQUESTED),
    Row("asked, the reply is lost", in_flight, (ReplyUnclear(1, "E_INPUT_UNCLEAR", "cut"),), S.INPUT_REQUIRED),
    Row("asked, cancelled while the reply is in flight", in_flight, (STOP,), S.CANCEL_REQUESTED),
    Row("asked, it ended by itself", asked, (DONE,), S.FETCHING_RESULT, "succeeded"),
    Row("asked, another key", asked, (asks("b", seq=2),), S.INPUT_REQUIRED),
    Row("asked, the same key again", asked, (asks("a", seq=2),), S.INPUT_REQUIRED),
    Row(
        "asked, the reply was taken and the budget is over",
        in_flight.then(ReplyAcknowledged(1)).then(budget_left_s=0.0),
        (DUE,),
        S.INPUT_REQUIRED,
        None,
        ("E_WAIT_BUDGET_EXHAUSTED",),
    ),
    Row("cancelling, it asks", cancel, (asks("a"),), S.CANCEL_REQUESTED),
    Row("cancelling, not found", cancel, (GONE, GONE, GONE), S.CANCEL_REQUESTED, None, ("E_OPERATION_UNKNOWN",)),
    Row("cancelling, no such method", cancel, (CancelUnclear(1, "E_CANNOT_CANCEL", "-32601"),), S.CANCEL_REQUESTED),
    Row(
        "cancelling, taken and never an end",
        cancel.then(CancelAcknowledged(1, cancelled=False)).then(confirm_left_s=0.0),
        (DUE,),
        S.CANCEL_REQUESTED,
        None,
        ("E_CANCEL_UNCONFIRMED",),
    ),
    Row("cancelling, a second cancel", cancel, (STOP,), S.CANCEL_REQUESTED),
    Row(
        "cancelling, completed of a lower sequence",
        cancel.then(observed_seq=20),
        (DONE,),
        S.FETCHING_RESULT,
        "succeeded",
    ),
    Row("cancelling, the budget is over", cancel.then(budget_left_s=0.0), (DUE,), S.CANCEL_REQUESTED),
    Row(
        "cancelling in 2025, its answer says working",
        cancel_2025,
        (CancelAcknowledged(1, cancelled=False),),
        S.CANCEL_REQUESTED,
    ),
    Row(
        "cancelling in 2025, its answer says cancelled",
        cancel_2025,
        (CancelAcknowledged(1, cancelled=True),),
        S.CANCEL_REQUESTED,
        "cancelled",
    ),
    Row("ended, cancelled by its producer", fetching, (STOP,), S.TERMINAL_OBSERVED, None, (), "E_ALREADY_OVER"),
    Row(
        "ended in 2025, the cancel's answer says cancelled",
        fetching_2025,
        (CancelAcknowledged(1, cancelled=True),),
        S.TERMINAL_OBSERVED,
        None,
        ("E_STATUS_REGRESSED",),
    ),
    Row(
        "ended, another terminal word",
        fetching,
        (Ended(10, "failed", "failed"),),
        S.TERMINAL_OBSERVED,
        None,
        ("E_STATUS_REGRESSED",),
    ),
    Row(
        "ended, working again",
        fetching,
        (Progressed(10, "working"),),
        S.TERMINAL_OBSERVED,
        None,
        (),
        "E_STATUS_REGRESSED",
    ),
    Row("ended, its result is gone", fetching, (GONE, GONE, GONE), S.FETCHING_RESULT, None, ("E_RESULT_MISSING",)),
    Row("ended, a timer that was late", fetching.then(budget_left_s=0.0), (DUE,), S.TERMINAL_OBSERVED),
    Row(
        "ended, a person gives up on its result",
        fetching,
        (ResultFetched(MISSING), said("give_up")),
        S.FETCHING_RESULT,
        "abandoned",
    ),
    Row("accepted, a late id", accepted, (BOUND_2,), S.ACCEPTED, "succeeded", (), "E_LATE_EVIDENCE"),
    Row(
        "accepted, a late cancel answer",
        accepted,
        (CancelAcknowledged(1, cancelled=True),),
        S.ACCEPTED,
        "succeeded",
        (),
        "E_LATE_EVIDENCE",
    ),
    Row(
        "accepted, a late completion with another digest",
        accepted,
        (replace(DONE, result=OTHER),),
        S.ACCEPTED,
        "succeeded",
        ("E_RESULT_DIGEST_CONFLICT",),
    ),
    Row("failed, a late id", failed, (BOUND,), S.ACCEPTED, "failed", ("E_LATE_ANSWER",)),
    Row("refused, a late id", refused, (BOUND,), S.REFUSED, "refused", ("E_LATE_ANSWER",)),
    Row("won, the audit finds nothing", won, (GONE,), S.CANCELLED_ACCEPTED, "cancelled"),
    Row(
        "won, the audit sees it work",
        won,
        (Progressed(10, "working"),),
        S.CANCELLED_ACCEPTED,
        "cancelled",
        (),
        "E_STATUS_REGRESSED",
    ),
    Row(
        "won, the audit sees it failed",
        won,
        (Ended(10, "failed", "failed"),),
        S.CANCELLED_ACCEPTED,
        "cancelled",
        ("E_LATE_COMPLETION_AFTER_CANCEL",),
    ),
]


@pytest.mark.parametrize("row", PAIRS, ids=[row.name for row in PAIRS])
def test_each_unclear_pair_has_one_decision(row: Row) -> None:
    told = row.before.then(*row.happens)
    assert (told.op.state, told.op.outcome, tuple(told.asked), told.refused) == row[3:]
