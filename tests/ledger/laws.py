"""What must hold on every step of an operation, as sentences: true is lawful. The walk tries each on every step."""

from collections.abc import Callable
from dataclasses import dataclass

from counterfoil.ledger.operation import Operation
from counterfoil.ledger.rules import KNOWN_OVER
from counterfoil.ledger.states import TERMINAL, Lane, Outcome, State, may_move
from counterfoil.ledger.wakes import wakes


@dataclass(frozen=True, slots=True)
class Move:
    """One step: what caused it, before, after, and the edges of the table that it took (the end's included)."""

    name: str
    before: Operation
    after: Operation
    edges: tuple[tuple[State, State, Lane], ...] = ()

    @property
    def decides_the_end(self) -> bool:
        return self.after.settle_as is not None and self.before.settle_as is None


LAWS: list[Callable[[Move], bool]] = []


def law(holds: Callable[[Move], bool]) -> Callable[[Move], bool]:
    LAWS.append(holds)
    return holds


def broken(move: Move) -> list[str]:
    """The names of the laws that a step breaks."""
    return [holds.__name__ for holds in LAWS if not holds(move)]


# -- the table ---------------------------------------------------------------------------------------------------------


@law
def every_edge_stands_in_the_table_for_its_lane(move: Move) -> bool:
    return all(may_move(*edge) for edge in move.edges)


@law
def a_terminal_state_absorbs(move: Move) -> bool:
    kept = (move.before.state, move.before.outcome)
    return move.before.state not in TERMINAL or (move.after.state, move.after.outcome) == kept


@law
def a_decided_end_is_never_decided_again(move: Move) -> bool:
    said = ("outcome", "error_code", "result_digest", "effects_possible", "task_id", "cancel_generation")
    kept = ("state", "settle_as", *said)
    decided = move.before.settle_as is not None and move.name != "accepted"
    return not decided or all(getattr(move.before, name) == getattr(move.after, name) for name in kept)


# -- the CHECKs of the table `operation` -------------------------------------------------------------------------------


@law
def an_operation_at_work_has_a_task(move: Move) -> bool:
    return move.after.state not in (State.WORKING, State.CANCEL_REQUESTED) or move.after.task_id is not None


@law
def there_are_two_attempts_at_most_and_none_is_sent_before_its_time(move: Move) -> bool:
    return 1 <= move.after.attempt <= 2 and 0 <= move.after.sent_attempt <= move.after.attempt


@law
def a_success_has_a_result_and_an_end_has_an_outcome(move: Move) -> bool:
    op = move.after
    over = op.state in TERMINAL or op.settle_as is not None
    return (op.outcome is not Outcome.SUCCEEDED or op.result_digest is not None) and (
        not over or op.outcome is not None
    )


@law
def a_budget_that_runs_was_set(move: Move) -> bool:
    return not move.after.budget_running or move.after.budget_left_s is not None


@law
def one_intent_of_an_effect_is_open_at_a_time(move: Move) -> bool:
    return len(move.after.intents) == len({intent.effect for intent in move.after.intents})


# -- no orphan ---------------------------------------------------------------------------------------------------------


def _server_is_asked(op: Operation) -> bool:
    """In INPUT_REQUIRED: the server is to go on, to say what it asks, or whether a reply arrived."""
    waiting = [one.state for one in op.rounds if one.state != "closed"]
    return "open" not in waiting or "unclear" in waiting or op.policy.input_watch_s > 0


def _lanes(op: Operation) -> set[Lane]:
    """The lanes that a state needs, said anew and not in the words of wakes.py."""
    submit = Lane.SYNC if op.policy.sync else Lane.SUBMIT
    needed = {
        State.SUBMITTING: {submit},
        State.NOT_FOUND_SAFE: {submit},
        State.SUBMISSION_UNKNOWN: {Lane.LOOKUP, Lane.TIMER},
        State.WORKING: {Lane.POLL},
        State.INPUT_REQUIRED: {Lane.TIMER},
        State.CANCEL_REQUESTED: {Lane.POLL},
        State.TERMINAL_OBSERVED: {Lane.FETCH},
        State.FETCHING_RESULT: {Lane.FETCH},
    }[op.state]
    if op.budget_running and op.state not in (State.SUBMISSION_UNKNOWN, State.TERMINAL_OBSERVED, State.FETCHING_RESULT):
        needed = needed | {Lane.TIMER}
    if op.state is State.CANCEL_REQUESTED:
        needed = needed | ({Lane.CANCEL} if op.cancel_due or op.intent("cancel") else set())
        needed = needed | ({Lane.TIMER} if op.confirm_left_s is not None else set())
    if op.state is State.INPUT_REQUIRED and op.task_id is not None:
        replied = any(one.state == "replied" for one in op.rounds) or op.intent("answer") is not None
        needed = needed | ({Lane.ANSWER} if replied else set())
        needed = needed | ({Lane.POLL} if _server_is_asked(op) else set())
    return needed


@law
def each_state_is_due_in_its_lanes_or_a_person_is_asked(move: Move) -> bool:
    op = move.after
    if op.state in TERMINAL:
        return True
    if op.settle_as is not None:
        return set(wakes(op)) == {Lane.FETCH}
    if op.parked:
        return set(wakes(op)) <= {Lane.TIMER} and bool(op.cases)
    return set(wakes(op)) == _lanes(op)


@law
def nothing_is_due_in_the_past(move: Move) -> bool:
    return all(delay_s >= 0 for delay_s in wakes(move.after).values())


@law
def a_lookup_is_due_only_where_there_is_one(move: Move) -> bool:
    return Lane.LOOKUP not in wakes(move.after) or move.after.policy.lookup != "none"


@law
def whoever_waits_for_a_server_waits_for_a_time(move: Move) -> bool:
    """Also where it answers for ever: budget, confirmation or a person's deadline stands, or a person was told."""
    op = move.after
    if op.state not in (State.WORKING, State.CANCEL_REQUESTED, State.INPUT_REQUIRED) or op.over or op.parked:
        return True
    return Lane.TIMER in wakes(op) or op.has_case("UNKNOWN", "E_CANCEL_UNCONFIRMED")


# -- after the end -----------------------------------------------------------------------------------------------------


@law
def after_the_end_only_an_audit_is_due_and_only_in_its_time(move: Move) -> bool:
    op = move.after
    if op.state not in TERMINAL:
        return True
    audited = op.audit_left_s is not None and op.audit_left_s > 0
    return set(wakes(op)) == ({Lane.AUDIT} if audited else set())


@law
def an_audit_follows_a_won_cancel_or_an_end_that_could_not_prove_that_nothing_ran(move: Move) -> bool:
    op = move.after
    if not move.decides_the_end or op.audit_s is None:
        return True
    won = op.settle_as is State.CANCELLED_ACCEPTED and op.task_id is not None
    unproven = op.task_id is None and op.effects_possible and op.policy.asks_by_key and op.server_status is None
    ended = op.outcome in (Outcome.CANCELLED, Outcome.REFUSED, Outcome.FAILED)
    return op.policy.audit_s > 0 and ended and (won or unproven)


@law
def an_end_that_could_not_prove_that_nothing_ran_is_audited(move: Move) -> bool:
    op = move.after
    by_key = op.policy.asks_by_key and op.policy.audit_s > 0 and (op.key_left_s or 0.0) > 0
    unheard = op.task_id is None and op.server_status is None and op.effects_possible
    said = op.outcome in (Outcome.CANCELLED, Outcome.REFUSED, Outcome.FAILED)
    return not (move.decides_the_end and by_key and unheard and said) or op.audit_s is not None


@law
def an_end_leaves_no_question_open_that_nobody_could_settle(move: Move) -> bool:
    return not move.decides_the_end or not move.after.has_case("UNKNOWN")


@law
def an_end_leaves_no_round_open(move: Move) -> bool:
    return not move.decides_the_end or all(one.state == "closed" for one in move.after.rounds)


@law
def effects_to_be_checked_stay_until_a_person_looked(move: Move) -> bool:
    kind = "EFFECT_RECONCILIATION_REQUIRED"
    looked = move.name.startswith("VerdictGiven(verdict='accept'")
    return looked or not move.before.has_case(kind) or move.after.has_case(kind)


@law
def what_contests_the_servers_word_ends_by_a_person_alone(move: Move) -> bool:
    by_person = move.name.startswith(("VerdictGiven", "CancelAsked")) or move.name == "nobody spoke in time"
    by_timer = move.name.startswith("DeadlineReached")
    return not (move.before.contested and move.decides_the_end) or by_person or by_timer


# -- what never goes back ----------------------------------------------------------------------------------------------


@law
def counts_only_grow(move: Move) -> bool:
    names = ("attempt", "cancel_generation", "input_round", "observed_seq", "unanswered_rounds")
    return all(getattr(move.after, name) >= getattr(move.before, name) for name in names)


@law
def a_second_attempt_follows_the_proof_that_the_first_never_ran(move: Move) -> bool:
    return move.after.attempt == move.before.attempt or move.before.state is State.NOT_FOUND_SAFE


@law
def a_task_and_a_result_once_known_are_never_exchanged(move: Move) -> bool:
    names = ("task_id", "result_digest")
    known = [name for name in names if getattr(move.before, name) is not None]
    return all(getattr(move.after, name) == getattr(move.before, name) for name in known)


@law
def a_reply_is_used_once(move: Move) -> bool:
    """A round goes open, replied, sent or unclear, closed. Only a reading that shows it waiting still, after a loss or
    a recovery, takes an unclear one back to what it was."""
    after = {one.number: one for one in move.after.rounds}
    legal = {
        "open": {"open", "replied", "unclear", "sent", "closed"},
        "replied": {"replied", "sent", "unclear", "closed"},
        "unclear": {"unclear", "sent", "replied", "open", "closed"},
        "sent": {"sent", "unclear", "closed"},
        "closed": {"closed"},
    }
    moved = [(one.state, after[one.number].state) for one in move.before.rounds if one.number in after]
    back = ("unclear", "replied") in moved or ("unclear", "open") in moved
    doubt = ("sent", "unclear") in moved or ("open", "unclear") in moved
    read = not back or move.name.startswith("InputRequested")
    lost = not doubt or move.name.startswith(("Recovered", "ReplyUnclear"))
    taken = ("sent", "unclear") not in moved or move.name.startswith("Recovered")
    return len(moved) == len(move.before.rounds) and all(b in legal[a] for a, b in moved) and read and lost and taken


@law
def a_person_replies_only_to_what_is_open(move: Move) -> bool:
    open_ones = [one for one in move.before.rounds if one.state == "open"]
    waits = move.before.state is State.INPUT_REQUIRED and bool(open_ones)
    return not move.name.startswith("ReplyGiven") or waits


@law
def a_send_is_taken_back_by_its_holders_or_the_servers_word_alone(move: Move) -> bool:
    said = move.name.startswith(("SubmitNotSent", "SubmitNotProcessed"))
    return move.after.sent_attempt >= move.before.sent_attempt or said


# -- ends that say what happened ---------------------------------------------------------------------------------------


@law
def a_state_and_its_outcome_go_together(move: Move) -> bool:
    op = move.after
    if not move.decides_the_end:
        return True
    remote = op.error_code == "E_REMOTE_CANCELLED" and op.settle_as is State.ACCEPTED
    remote = remote or (op.terminal_status == "cancelled" and move.name.startswith("VerdictGiven(verdict='accept'"))
    cancelled = (op.settle_as is State.CANCELLED_ACCEPTED) == (op.outcome is Outcome.CANCELLED)
    return (cancelled or remote) and (op.settle_as is State.REFUSED) == (op.outcome is Outcome.REFUSED)


@law
def a_cancelled_receipt_follows_a_request_and_either_nothing_sent_or_a_cancel_sent(move: Move) -> bool:
    op, before = move.after, move.before
    if not move.decides_the_end or op.settle_as is not State.CANCELLED_ACCEPTED:
        return True
    nothing_ran = (
        (before.state is State.SUBMITTING and op.intent("submit") is None)
        or before.state is State.NOT_FOUND_SAFE
        or (before.state is State.INPUT_REQUIRED and before.task_id is None)
    )
    confirmed = before.state is State.CANCEL_REQUESTED and before.cancel_sends > 0
    return op.cancel_generation > 0 and (nothing_ran or confirmed)


@law
def nothing_is_refused_while_a_submit_may_be_on_its_way(move: Move) -> bool:
    return not move.decides_the_end or move.after.settle_as is not State.REFUSED or move.after.intent("submit") is None


@law
def never_sent_means_that_nothing_was_sent_and_nothing_ran(move: Move) -> bool:
    op = move.after
    return op.error_code != "E_NEVER_SENT" or (not op.effects_possible and op.sent_attempt == 0)


@law
def nothing_ran_is_said_only_where_that_is_known(move: Move) -> bool:
    """Nothing was sent; or it was rejected, not processed or taken back as the only attempt; or the server asked
    instead of running; or the key was found absent and closed."""
    op, before = move.after, move.before
    heard = move.name.startswith(("ResultAtOnce", "LookupOver", "SubmitRejected")) or before.state in KNOWN_OVER
    if not move.decides_the_end or op.effects_possible or op.task_id is not None or heard:
        return True
    if op.outcome is Outcome.ABANDONED:
        return not op.policy.effects or before.never_sent
    out = op.intent("submit") is not None
    taken_back = move.name.startswith(("SubmitNotSent", "SubmitNotProcessed"))
    waits = before.state is State.SUBMITTING or (before.state is State.INPUT_REQUIRED and before.task_id is None)
    only_attempt = waits and before.attempt == 1 and (not out or taken_back)
    closed = before.policy.absence == "closes" and (before.state is State.NOT_FOUND_SAFE or (waits and not out))
    return only_attempt or closed


@law
def what_never_left_had_no_effects(move: Move) -> bool:
    op, before = move.after, move.before
    heard = move.name.startswith(("VerdictGiven", "ResultAtOnce", "LookupOver", "Recovered"))
    told = before.has_case("EFFECT_RECONCILIATION_REQUIRED")
    unsent = before.state is State.SUBMITTING and before.never_sent and op.sent_attempt == 0
    return not (move.decides_the_end and not heard and unsent and not told and op.effects_possible)


@law
def a_persons_never_created_is_no_proof(move: Move) -> bool:
    said = move.decides_the_end and move.after.error_code == "E_NOT_SENT_BY_VERDICT"
    return not said or move.before.state is not State.SUBMISSION_UNKNOWN or move.after.effects_possible


@law
def nothing_is_sent_for_a_call_that_was_cancelled(move: Move) -> bool:
    return not (move.name == "intent to submit" and move.before.cancel_generation > 0)


@law
def nothing_is_sent_before_a_person_spoke(move: Move) -> bool:
    return not (move.name.startswith("intent to") and move.before.parked)


@law
def only_a_person_gives_up_or_a_policy_for_what_has_no_effects(move: Move) -> bool:
    decided = move.decides_the_end and move.after.outcome is Outcome.ABANDONED
    by_policy = move.name == "nobody spoke in time" and move.after.policy.on_unknown == "abandon"
    return not decided or move.name.startswith("VerdictGiven") or (by_policy and not move.after.policy.effects)
