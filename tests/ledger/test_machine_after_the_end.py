"""What is heard after the end: it never changes a receipt, and people learn of what ran (SPEC sections 1, 5, 7; review
M5 and table D)."""

from dataclasses import replace

import pytest

from counterfoil.ledger.decision import Decision, Unchanged
from counterfoil.ledger.events import (
    AccessDenied,
    CancelAcknowledged,
    CancelAsked,
    DeadlineReached,
    Ended,
    Event,
    Hinted,
    LookupAbsent,
    LookupFound,
    LookupOver,
    LookupUnsure,
    Progressed,
    ReadFailed,
    RefusedBeforeSubmit,
    Resubmit,
    Result,
    ResultAtOnce,
    SessionRenewed,
    SubmitUnclear,
    TaskBound,
    TaskNotFound,
)
from counterfoil.ledger.states import Lane, State
from counterfoil.tests.ledger.machine import GOOD, OTHER, TOKEN, Told, asks, cancelling, fresh, in_state, intended, said

STOP = CancelAsked("stop")
WON = Ended(9, "cancelled", "cancelled")
COMPLETED = Ended(10, "completed", "completed", GOOD)
ABSENT = LookupAbsent(authoritative=True)
KEYED = {"lookup": "by_key", "absence": "unique"}


def accepted(told: Told) -> Told:
    """What `accept_terminal` makes of a decided end."""
    op = told.op
    assert op.settle_as is not None
    return Told(replace(op, state=op.settle_as, settle_as=None, audit_left_s=op.audit_s))


def won(**policy: object) -> Told:
    return accepted(cancelling(in_state(State.WORKING, policy=policy).then(STOP)).then(WON))


def absent(**policy: object) -> Told:
    """Sent, lost, and found absent by key."""
    lost = intended(fresh(**{**KEYED, **policy})).then(SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut"))
    return lost.then(ABSENT, settle_left_s=0.0)


def succeeded() -> Told:
    return accepted(in_state(State.WORKING).then(Ended(9, "completed", "completed", GOOD)))


# -- the audit ---------------------------------------------------------------------------------------------------------


def test_after_a_won_cancel_the_task_is_still_looked_at_and_after_no_other_end_of_a_known_task() -> None:
    assert won().op.audit_s == 300.0
    assert won(audit_s=0.0).op.audit_s is None
    for told in (succeeded(), accepted(in_state(State.WORKING).then(WON))):
        assert (told.op.audit_s, told.then(DeadlineReached()).wake) == (None, {})


def test_an_end_that_could_not_prove_that_nothing_ran_is_looked_up_until_the_key_is_forgotten() -> None:
    refused = absent().then(RefusedBeforeSubmit("E_ADAPTER_DRAINING", "drained"), key_left_s=5000.0)
    assert (refused.end, refused.op.audit_s) == (("REFUSED", "refused", "E_NOT_RESUBMITTED", True), 5000.0)
    assert absent().then(STOP).op.audit_s == 86400.0
    assert absent(absence="closes").then(STOP).op.audit_s is None
    verdict = intended(fresh(**KEYED)).then(SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut"), DeadlineReached())
    assert verdict.then(said("never_created")).op.audit_s == 86400.0
    assert verdict.then(said("give_up")).op.audit_s is None


def test_an_end_that_the_server_itself_told_is_not_looked_up_again() -> None:
    """A call that was answered with an error would find its own answer under its key, and call it a second one."""
    wrong = Result(b"e" * 32, "", b"{}", tool_error=True, value_digest=b"wrong")
    told = intended(fresh(**KEYED)).then(ResultAtOnce(1, "completed", wrong))
    assert (told.end[1:], told.op.audit_s) == (("failed", "E_TOOL_ERROR", True), None)
    assert told.then(LookupOver("completed", wrong)).asked == []
    assert told.then(LookupOver("completed", GOOD)).asked == ["E_LATE_ANSWER"]


def test_an_audit_comes_in_doubling_pauses_and_ends_with_its_time() -> None:
    told = won()
    pauses = {
        left_s: told.then(Progressed(9, "x"), audit_left_s=left_s).wake for left_s in (300.0, 270.0, 180.0, 20.0, 0.0)
    }
    assert pauses == {
        300.0: {Lane.AUDIT: 30.0},
        270.0: {Lane.AUDIT: 30.0},
        180.0: {Lane.AUDIT: 120.0},
        20.0: {Lane.AUDIT: 20.0},
        0.0: {},
    }


@pytest.mark.parametrize(
    "event",
    [
        WON,
        Progressed(10, "working"),
        asks("a"),
        AccessDenied("401"),
        ReadFailed("E_BUSY", 1),
        LookupUnsure("E_SUBMISSION_UNKNOWN", "500"),
        LookupAbsent(authoritative=False),
    ],
    ids=repr,
)
def test_what_says_nothing_new_lets_the_audit_go_on_until_its_time_is_over(event: Event) -> None:
    """A server that keeps `cancelled` while the work runs on may overwrite it when the work is done."""
    told = won().then(event)
    assert (told.asked, told.wake) == ([], {Lane.AUDIT: 30.0})


def test_an_absence_ends_no_audit_by_key_but_where_it_closes_the_key() -> None:
    """The first request may land any time; only a lookup that closes the key says that it can't any more."""
    unique = accepted(absent().then(STOP))
    assert unique.then(ABSENT).wake == {Lane.AUDIT: 30.0}
    person = intended(fresh(lookup="by_key", absence="closes")).then(SubmitUnclear(1, "E_SUBMISSION_UNKNOWN", "cut"))
    closes = accepted(person.then(DeadlineReached(), said("never_created")))
    assert closes.then(LookupAbsent(authoritative=False)).wake == {Lane.AUDIT: 30.0}
    assert closes.then(ABSENT).wake == {}


@pytest.mark.parametrize("word", ["completed", "failed"])
def test_a_task_that_went_on_after_a_won_cancel_opens_the_effects_case_and_stays_cancelled(word: str) -> None:
    told = won().then(Ended(10, word, word, GOOD))  # type: ignore[arg-type]  # a word that pytest chose
    assert (told.op.outcome, told.op.result_digest) == ("cancelled", None)
    assert (told.asked, told.wake) == (["E_LATE_COMPLETION_AFTER_CANCEL"], {})


def test_what_an_audit_finds_under_the_key_opens_the_effects_case() -> None:
    cancelled = accepted(absent().then(STOP))
    for found in (LookupFound("t-1", "working"), LookupOver("completed", GOOD)):
        assert cancelled.then(found).asked == ["E_LATE_COMPLETION_AFTER_CANCEL"]
    refused = accepted(absent().then(RefusedBeforeSubmit("E_CREATE_OFF", "off")))
    assert refused.then(LookupFound("t-1", "working")).asked == ["E_LATE_ANSWER"]


def test_where_the_cancels_answer_is_all_the_evidence_people_check_the_effects_of_every_won_cancel() -> None:
    assert won(effect_case="always").asked == ["E_EFFECTS_POSSIBLE"]
    assert won(effect_case="always", effects=False).asked == []
    remote = in_state(State.WORKING, policy={"effect_case": "always"}).then(WON)
    assert (remote.end[2], remote.asked) == ("E_REMOTE_CANCELLED", [])


def test_a_task_that_the_server_forgot_after_its_end_is_recorded_and_asks_nobody() -> None:
    """With the receipt in hand EXPIRED_WITH_RECEIPT at the first (SPEC section 7)."""
    told = won().then(TaskNotFound(10, "gone"))
    last = told.answers[-1]
    assert isinstance(last, Decision)
    assert [(case.kind, case.closed) for case in last.opens] == [("EXPIRED_WITH_RECEIPT", True)]
    assert (told.asked, told.wake) == ([], {})


def test_a_session_that_was_renewed_for_an_audit_is_kept() -> None:
    assert won().then(SessionRenewed(TOKEN)).op.session_id == TOKEN


# -- hints -------------------------------------------------------------------------------------------------------------


def test_a_hint_wakes_a_reading_and_proves_nothing() -> None:
    for state, lanes in ((State.WORKING, {Lane.POLL, Lane.TIMER}), (State.CANCEL_REQUESTED, {Lane.POLL})):
        told = in_state(state).then(Hinted("completed"))
        assert (told.op.state, told.op.server_status, told.wake[Lane.POLL], set(told.wake)) == (state, None, 0.0, lanes)


def test_after_a_won_cancel_a_hint_alone_lets_a_person_look() -> None:
    assert won().then(Hinted("completed")).asked == ["E_LATE_COMPLETION_AFTER_CANCEL"]
    assert won().then(Hinted("completed"), Hinted("completed")).asked == ["E_LATE_COMPLETION_AFTER_CANCEL"]
    for quiet in (won().then(Hinted("working")), succeeded().then(Hinted("completed"))):
        assert isinstance(quiet.answers[-1], Unchanged)


# -- late answers ------------------------------------------------------------------------------------------------------


def test_a_second_reading_of_the_result_is_compared_by_its_value_and_not_by_its_bytes() -> None:
    """The message around it bears another JSON-RPC id each time."""
    same = replace(GOOD, digest=b"x" * 32, body=b'{"id": 2}')
    assert succeeded().then(Ended(10, "completed", "completed", same)).asked == []
    told = succeeded().then(Ended(10, "completed", "completed", OTHER))
    assert (told.asked, told.op.result_digest) == (["E_RESULT_DIGEST_CONFLICT"], GOOD.digest)
    at_once = accepted(intended(fresh(**KEYED)).then(ResultAtOnce(1, "completed", GOOD)))
    assert at_once.then(LookupOver("completed", OTHER)).asked == ["E_RESULT_DIGEST_CONFLICT"]
    assert at_once.then(LookupOver("completed", same)).asked == []


def test_cases_that_open_after_the_end_are_closed_by_having_looked_and_nothing_else_is_offered() -> None:
    """Two cases of two kinds on a call that is over: giving it up would decide its end a second time."""
    told = succeeded().then(TaskBound(2, "t-2", "working"), Ended(10, "completed", "completed", OTHER))
    assert told.asked == ["E_RESULT_DIGEST_CONFLICT"]
    both = won(effect_case="always").then(COMPLETED)
    assert both.asked == ["E_EFFECTS_POSSIBLE", "E_LATE_COMPLETION_AFTER_CANCEL"]
    for over in (told, both):
        assert over.then(said("give_up")).refused == "E_VERDICT_NOT_OFFERED"
        looked = over.then(said("accept"))
        assert (looked.asked, looked.op.outcome, looked.op.settle_as) == ([], over.op.outcome, None)
    assert succeeded().then(said("accept")).refused == "E_ALREADY_OVER"


def test_the_late_answer_to_a_cancel_changes_nothing_after_the_end() -> None:
    for told in (succeeded(), won()):
        late = told.then(CancelAcknowledged(1, cancelled=True))
        assert (late.refused, late.op) == ("E_LATE_EVIDENCE", told.op)


def test_an_end_that_is_decided_and_not_yet_accepted_is_over_already() -> None:
    decided = cancelling(in_state(State.WORKING).then(STOP)).then(WON)
    assert decided.wake == {Lane.FETCH: 2.0}
    late = decided.then(COMPLETED, Resubmit())
    assert (late.op.settle_as, late.op.outcome, late.asked) == (
        State.CANCELLED_ACCEPTED,
        "cancelled",
        ["E_LATE_COMPLETION_AFTER_CANCEL"],
    )
