"""The judge of a run: written from docs/spec.md alone, with no line of the product in it.

It reads the simulated server's log, the wire's log of what left and the tables. Each check is one sentence of the
specification; what it yields are violations.
"""

from collections.abc import Callable, Iterator

from .audit_lives import (
    a_calm_call_needs_nobody,
    a_cancel_is_committed_before_it_is_sent,
    a_committed_cancel_is_sent,
    a_lost_cancel_is_sent_again,
    a_question_that_was_heard_is_kept,
    a_remembered_cancel_is_sent,
    a_round_closes_when_its_task_is_past_it,
    a_won_cancel_stays_won,
    epochs_only_grow,
    everything_ends,
    no_orphan,
    nothing_new_while_it_is_stopped,
    nothing_of_an_old_epoch_after_a_bump,
    one_answer_a_round,
    only_published_edges_by_their_lane,
    requests_keep_to_the_rate,
)
from .audit_receipts import (
    a_receipt_says_what_its_row_says,
    a_result_is_what_the_server_holds,
    an_outcome_is_the_truth,
    ids_are_derived_from_the_call_node,
    one_receipt_a_call_node,
    ready_if_and_only_if_receipt,
)
from .audit_sends import (
    a_key_never_changes,
    a_named_task_is_bound_or_asked_about,
    a_person_is_asked_only_after_three_askings,
    a_producer_is_always_told_the_same,
    a_verdict_counts_for_what_its_person_saw,
    attempts_are_at_most_two,
    evidence_is_stored_at_once,
    no_effect_without_its_intent,
    no_evidence_is_lost,
    nobody_is_quarantined,
    nobody_waits_in_a_circle,
    nothing_leaves_after_the_end,
    one_holder_a_row,
    one_remote_operation_a_key_or_one_send,
    progress_goes_back_to_a_receipt,
    what_is_pinned_holds,
)
from .case import Case
from .facts import Facts
from .record import Record

Check = Callable[[Case], Iterator[str]]


def audit(facts: Facts, record: Record) -> list[str]:
    """Every violation, as a sentence."""
    case = Case(facts, record)
    return [f"{check.__name__}: {found}" for check in CHECKS for found in check(case)]


# -- section 6: accept once ------------------------------------------------------------------------------------------


CHECKS: tuple[Check, ...] = (
    one_receipt_a_call_node,
    ready_if_and_only_if_receipt,
    ids_are_derived_from_the_call_node,
    a_receipt_says_what_its_row_says,
    a_result_is_what_the_server_holds,
    an_outcome_is_the_truth,
    one_remote_operation_a_key_or_one_send,
    a_key_never_changes,
    no_effect_without_its_intent,
    attempts_are_at_most_two,
    no_evidence_is_lost,
    evidence_is_stored_at_once,
    a_named_task_is_bound_or_asked_about,
    what_is_pinned_holds,
    one_holder_a_row,
    nobody_waits_in_a_circle,
    a_person_is_asked_only_after_three_askings,
    a_verdict_counts_for_what_its_person_saw,
    a_lost_cancel_is_sent_again,
    a_remembered_cancel_is_sent,
    nobody_is_quarantined,
    nothing_leaves_after_the_end,
    a_producer_is_always_told_the_same,
    progress_goes_back_to_a_receipt,
    one_answer_a_round,
    a_question_that_was_heard_is_kept,
    a_round_closes_when_its_task_is_past_it,
    nothing_new_while_it_is_stopped,
    only_published_edges_by_their_lane,
    a_won_cancel_stays_won,
    a_cancel_is_committed_before_it_is_sent,
    a_committed_cancel_is_sent,
    nothing_of_an_old_epoch_after_a_bump,
    epochs_only_grow,
    no_orphan,
    everything_ends,
    a_calm_call_needs_nobody,
    requests_keep_to_the_rate,
)
