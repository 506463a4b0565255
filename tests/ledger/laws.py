"""What must hold on every step of an operation, as sentences: true is lawful. The walk tries each on every step."""

from collections.abc import Callable
from dataclasses import dataclass

from counterfoil.ledger.operation import Operation
from counterfoil.ledger.states import OPEN, TERMINAL, Lane, Outcome, State, may_move
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
    kept = ("state", "settle_as", "outcome", "error_code", "result_digest", "effects_possible", "task_id")
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


@law
def after_the_end_nothing_is_due_and_before_it_something_is_or_a_person_is_asked(move: Move) -> bool:
    op = move.after
    if op.state in TERMINAL:
        return not wakes(op)
    return bool(wakes(op)) or (op.parked and bool(op.cases))


@law
def nothing_is_due_in_the_past(move: Move) -> bool:
    return all(delay_s >= 0 for delay_s in wakes(move.after).values())


@law
def a_lookup_is_due_only_where_there_is_one(move: Move) -> bool:
    return Lane.LOOKUP not in wakes(move.after) or move.after.policy.lookup != "none"


@law
def an_intent_whose_bearer_may_die_is_found_in_its_lane(move: Move) -> bool:
    op, rows = move.after, wakes(move.after)
    waiting = op.state in OPEN and op.settle_as is None and not op.parked
    submit = op.state is not State.SUBMITTING or op.intent("submit") is None or Lane.SUBMIT in rows
    cancel = op.state is not State.CANCEL_REQUESTED or op.intent("cancel") is None or Lane.CANCEL in rows
    return not waiting or (submit and cancel)


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
    cancelled = (op.settle_as is State.CANCELLED_ACCEPTED) == (op.outcome is Outcome.CANCELLED)
    return (cancelled or remote) and (op.settle_as is State.REFUSED) == (op.outcome is Outcome.REFUSED)


@law
def a_cancelled_receipt_follows_a_request_and_either_nothing_sent_or_a_cancel_sent(move: Move) -> bool:
    op, before = move.after, move.before
    if not move.decides_the_end or op.settle_as is not State.CANCELLED_ACCEPTED:
        return True
    nothing_ran = (
        (before.state is State.SUBMITTING and op.sent_attempt == 0)
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
def what_never_left_had_no_effects(move: Move) -> bool:
    op, before = move.after, move.before
    by_us = not move.name.startswith(("VerdictGiven", "ResultAtOnce"))
    unsent = before.state is State.SUBMITTING and before.never_sent and op.sent_attempt == 0
    return not (move.decides_the_end and by_us and unsent and op.effects_possible)


@law
def nothing_ran_after_a_send_is_said_only_where_the_key_was_closed(move: Move) -> bool:
    op, before = move.after, move.before
    by_absence = before.state in (State.NOT_FOUND_SAFE, State.SUBMITTING) and op.sent_attempt > 0
    says_so = op.outcome in (Outcome.CANCELLED, Outcome.REFUSED) and not op.effects_possible
    by_us = not move.name.startswith("ResultAtOnce")
    return not (move.decides_the_end and by_absence and by_us and says_so and op.policy.absence != "closes")


@law
def only_a_person_gives_up_or_a_policy_for_what_has_no_effects(move: Move) -> bool:
    decided = move.decides_the_end and move.after.outcome is Outcome.ABANDONED
    by_policy = move.name == "nobody spoke in time" and move.after.policy.on_unknown == "abandon"
    return not decided or move.name.startswith("VerdictGiven") or (by_policy and not move.after.policy.effects)
