"""Rules of the lookup lane: what became of a submit whose answer is lost (SPEC section 7)."""

from dataclasses import replace

from .decision import Answer, Decision, Refusal
from .events import LookupAbsent, LookupDenied, LookupOver, LookupUnsure, ReplayNotSent
from .operation import Operation
from .rules import BEFORE_TASK, backoff_s, on, unknown
from .rules_submit import ended_at_once, two_operations
from .states import CaseKind, Lane, State

LOOKUP_TRIES = 5


@on((State.SUBMISSION_UNKNOWN,), LookupAbsent)
def lookup_absent(op: Operation, event: LookupAbsent) -> Answer:
    """Absence counts only with its proof, after the last `send_by` and the settle window by the ledger's clock, and
    while the server remembers keys that old: it has nothing under one that it forgot.

    `unique` proves nothing by itself: it makes a second create harmless, for as long as the key is remembered.
    """
    if event.attempt != op.attempt:
        return Refusal("E_LATE_EVIDENCE", f"a lookup that was asked of attempt {event.attempt} found nothing")
    if op.settle_left_s > 0:
        return Decision(op, wake={Lane.LOOKUP: op.settle_left_s})
    policy = op.policy
    remembers = op.key_left_s is not None and op.key_left_s > policy.send_by_s
    proven = policy.absence in ("unique", "closes") or (policy.absence == "bounded" and policy.bounded_allowed)
    if not (event.authoritative and proven and remembers):
        return unknown(Decision(op), "E_SUBMISSION_UNKNOWN", "the lookup found nothing, which proves nothing here")
    return (
        Decision(op)
        .answered()
        .case(CaseKind.NEVER_CREATED, "E_SUBMISSION_UNKNOWN", "the server holds nothing under the key", closed=True)
        .move(State.NOT_FOUND_SAFE, Lane.LOOKUP, tries=0, auth_tries=0)
    )


@on(BEFORE_TASK, LookupOver)
def lookup_over(op: Operation, event: LookupOver) -> Answer:
    if op.intent("submit") is not None and op.policy.absence != "unique":
        return two_operations(op, f"a late lookup found a result while attempt {op.attempt} is out")
    # Where both attempts are said to be one, an answer of the other that differs is seen after the end.
    return ended_at_once(_closed(op, "answered"), event.terminal, event.result, Lane.LOOKUP)


def _closed(op: Operation, how: str) -> Decision:
    """What is brought for a replay ends its intent."""
    if op.intent("replay") is None:
        return Decision(op)
    return Decision(op).ends("replay", how).having(intents=tuple(i for i in op.intents if i.effect != "replay"))


@on((State.SUBMISSION_UNKNOWN,), LookupUnsure)
def lookup_unsure(op: Operation, event: LookupUnsure) -> Answer:
    """A question that was not answered is asked again, not for ever; what is busy is asked until the 15 minutes are
    over."""
    tries = op.tries + 1
    decision = _closed(op, "lost").having(tries=tries)
    if event.final or (tries >= LOOKUP_TRIES and not event.transient):
        return unknown(decision, event.code, event.why)
    return replace(decision, wake={Lane.LOOKUP: backoff_s(tries, event.retry_after_s)})


@on((State.SUBMISSION_UNKNOWN,), LookupDenied)
def lookup_denied(op: Operation, event: LookupDenied) -> Answer:
    tries = op.auth_tries + 1
    decision = _closed(op, "not_processed").having(auth_tries=tries).note("E_AUTH_EXPIRED", event.why)
    if tries >= op.policy.auth_tries:
        return unknown(decision, "E_AUTH_EXPIRED", f"the credential was refused {tries} times")
    return replace(decision, wake={Lane.LOOKUP: backoff_s(tries)})


@on((State.SUBMISSION_UNKNOWN,), ReplayNotSent)
def replay_not_sent(op: Operation, event: ReplayNotSent) -> Answer:
    intent = op.intent("replay")
    if intent is not None and intent.send_token != event.send_token:
        return Refusal("E_INTENT_OPEN", "the open intent is another bearer's: only its holder may withdraw it")
    tries = op.tries + 1
    return replace(
        _closed(op, "withdrawn").having(tries=tries), wake={Lane.LOOKUP: backoff_s(tries, event.retry_after_s)}
    )
