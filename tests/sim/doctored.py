"""One thing made wrong in the facts of a lawful run, for each check of the auditor, by its name."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .lawful import CANCEL, CASE, EVIDENCE, INTENT, OTHER, POLICY, READY, ROUND, SENT, TASK, Tables, at, hexed
from .record import BumpFact, StopFact
from .spoken import Told

Doctor = Callable[[Tables], dict[str, Any] | None]
"""Makes something wrong in the tables, or says what is other in the record."""


def operation(tables: Tables, **changes: Any) -> None:
    tables["operation"][0].update(changes)


def both(tables: Tables, **changes: Any) -> None:
    """In the row and on its receipt."""
    operation(tables, **changes)
    tables["terminal_receipt"][0].update(changes)


def still(tables: Tables, state: str, lines: int) -> None:
    """Not over: its journal ends with that line."""
    operation(tables, state=state, outcome=None, journal_seq=lines)
    tables["journal"] = tables["journal"][:lines]
    tables["terminal_receipt"], tables["ready_outbox"] = [], []
    tables["call_node"][0]["receipt_id"] = None


def pinned(tables: Tables, **changes: Any) -> None:
    tables["tool_policy"][0]["body"] = hexed(json.dumps(POLICY | changes).encode())


def asked(tables: Tables, **changes: Any) -> None:
    tables["input_round"].append(ROUND | changes)


def told_of(tables: Tables, **changes: Any) -> None:
    tables["reconciliation_case"].append(CASE | changes)


def moved(tables: Tables, source: str, target: str, lane: str, *, event: str = "moved", seconds: float = 0.4) -> None:
    """One more line in its journal."""
    seq = len(tables["journal"]) + 1
    line = {"operation_id": "op", "seq": seq, "at": at(seconds), "epoch": 1, "actor": "worker"}
    tables["journal"].append(line | {"source": source, "target": target, "lane": lane, "event": event})
    operation(tables, journal_seq=seq)


def replies(*said: tuple[str, str]) -> dict[str, Any]:
    """What reached the server: (question, content)."""
    return {"replies": tuple((3.5, "task-1", question, content, True) for question, content in said)}


GO = '{"action": "accept", "content": {"go": true}}'
STOP = GO.replace("true", "false")

# -- what is made wrong ------------------------------------------------------------------------------------------------

DOCTORS: dict[str, Doctor] = {}


def doctor(work: Doctor) -> Doctor:
    """Registered by the check that it is for."""
    DOCTORS[work.__name__] = work
    return work


@doctor
def one_receipt_a_call_node(tables: Tables) -> None:
    tables["terminal_receipt"].append(tables["terminal_receipt"][0] | {"id": READY})


@doctor
def ready_if_and_only_if_receipt(tables: Tables) -> None:
    tables["ready_outbox"].clear()


@doctor
def a_repeated_acceptance_is_the_same(_: Tables) -> dict[str, Any]:
    return {"acceptances": (("op", "accepted"), ("op", "differs"))}


@doctor
def ids_are_derived_from_the_call_node(tables: Tables) -> None:
    tables["ready_outbox"][0]["id"] = "9b1f5b6e-8d5f-4d7e-9d8b-111111111111"


@doctor
def a_receipt_says_what_its_row_says(tables: Tables) -> None:
    operation(tables, cancel_generation=1)


@doctor
def a_result_is_what_the_server_holds(_: Tables) -> dict[str, Any]:
    return {"said": ((0.2, 1, OTHER),)}


@doctor
def an_outcome_is_the_truth(_: Tables) -> dict[str, Any]:
    return {"tasks": (replace(TASK, end="failed"),)}


@doctor
def one_remote_operation_a_key_or_one_send(_: Tables) -> dict[str, Any]:
    return {"sent": (SENT, replace(SENT, token="again"))}


@doctor
def a_key_never_changes(_: Tables) -> dict[str, Any]:
    return {"sent": (SENT, replace(SENT, key="another"))}


@doctor
def no_effect_without_its_intent(tables: Tables) -> None:
    tables["intent"].clear()


@doctor
def a_used_intent_is_not_taken_back(tables: Tables) -> None:
    tables["intent"][0]["how"] = "withdrawn"


@doctor
def attempts_are_at_most_two(tables: Tables) -> None:
    both(tables, attempt=3)


@doctor
def no_evidence_is_lost(tables: Tables) -> None:
    tables["evidence"][0]["body"] = hexed(OTHER)


@doctor
def evidence_is_stored_at_once(tables: Tables) -> None:
    tables["evidence"][0]["received_at"] = at(0.5)


@doctor
def a_named_task_is_bound_or_asked_about(tables: Tables) -> dict[str, Any]:
    tables["evidence"].append(EVIDENCE | {"send_token": "second", "body": hexed(OTHER)})
    return {}


@doctor
def one_holder_a_row(_: Tables) -> dict[str, Any]:
    return {"leases": ("w2 claimed op1/poll, which was held until 9.37",)}


@doctor
def nobody_waits_in_a_circle(_: Tables) -> dict[str, Any]:
    return {"deadlocks": ("canceller 1 at lock_wakes",)}


@doctor
def a_person_is_asked_only_after_three_askings(tables: Tables) -> dict[str, Any]:
    told_of(tables, code="E_OPERATION_UNKNOWN")
    return {"not_found": ((1.0, "task-1"), (2.0, "task-1"))}


@doctor
def a_verdict_counts_for_what_its_person_saw(tables: Tables) -> dict[str, Any]:
    tables["journal"][3]["actor"] = "dee"
    return {"verdicts": (("op", 2, "dee"),)}


@doctor
def what_is_pinned_holds(_: Tables) -> dict[str, Any]:
    return {"lookups": ((1.0, "key"),)}


@doctor
def nobody_is_quarantined(tables: Tables) -> None:
    told_of(tables, code="E_QUARANTINED", why="five claims in a row")


@doctor
def nothing_leaves_after_the_end(tables: Tables) -> dict[str, Any]:
    tables["intent"].append(INTENT | {"send_token": "cancel", "effect": "cancel", "opened_at": at(50.0)})
    return {"sent": (SENT, replace(CANCEL, at_s=50.0))}


@doctor
def a_producer_is_always_told_the_same(_: Tables) -> dict[str, Any]:
    return {"told_producers": ((1, "op"), (1, "op-2"))}


@doctor
def progress_goes_back_to_a_receipt(_: Tables) -> dict[str, Any]:
    return {"acted_upon": (("run/1", READY),)}


@doctor
def one_answer_a_round(tables: Tables) -> dict[str, Any]:
    asked(tables)
    return replies(("1-1", GO), ("1-1", STOP))


@doctor
def an_answer_is_to_its_question(tables: Tables) -> dict[str, Any]:
    asked(tables)
    return replies(("1-1", GO), ("1-2", GO))


@doctor
def four_eyes_see_an_answer(tables: Tables) -> None:
    asked(tables, replied_by="default")
    pinned(tables, four_eyes=True)


@doctor
def a_round_takes_one_reply(_: Tables) -> dict[str, Any]:
    return {"replied": (("op", 1, "ann"), ("op", 1, "bob"))}


@doctor
def a_question_that_was_heard_is_kept(_: Tables) -> dict[str, Any]:
    return {"told": (("w1", 1.0, Told("task-1", "input_required", asks=True)),)}


@doctor
def a_kept_question_becomes_a_round(tables: Tables) -> None:
    tables["evidence"].append(EVIDENCE | {"kind": "input", "consumed_at": at(1.0)})


@doctor
def a_task_that_waits_is_noticed(tables: Tables) -> dict[str, Any]:
    still(tables, "WORKING", 2)
    return {"told": (("w1", 1.0, Told("task-1", "input_required")),) * 4}


@doctor
def a_round_closes_when_its_task_is_past_it(tables: Tables) -> dict[str, Any]:
    asked(tables)
    return {"tasks": (replace(TASK, waits=((1.9, 9.0),)),)}


@doctor
def a_receipt_tells_of_unanswered_rounds(tables: Tables) -> None:
    asked(tables, reply=None, replied_by=None, replied_at=None, how="superseded")


@doctor
def a_won_cancel_stays_won(tables: Tables) -> None:
    both(tables, state="CANCELLED_ACCEPTED")


@doctor
def a_cancel_is_committed_before_it_is_sent(tables: Tables) -> dict[str, Any]:
    return {"sent": (SENT, CANCEL)}


def cancelling(tables: Tables) -> None:
    """A cancel was asked for at 0.4 and has not ended it."""
    still(tables, "WORKING", 2)
    moved(tables, "WORKING", "CANCEL_REQUESTED", "door")
    operation(tables, state="CANCEL_REQUESTED", cancel_generation=1)


@doctor
def a_committed_cancel_is_sent(tables: Tables) -> None:
    cancelling(tables)


@doctor
def a_lost_cancel_is_sent_again(tables: Tables) -> dict[str, Any]:
    cancelling(tables)
    told_of(tables, code="E_CANCEL_UNCONFIRMED")
    return {"sent": (SENT, CANCEL), "read": tuple((at_s, "task-1") for at_s in (30.0, 40.0, 50.0, 60.0))}


@doctor
def a_remembered_cancel_is_sent(tables: Tables) -> None:
    tables["journal"][0]["event"], tables["journal"][0]["target"] = "asked", None
    both(tables, cancel_generation=1)


@doctor
def a_won_cancel_is_looked_after(tables: Tables) -> None:
    both(tables, state="CANCELLED_ACCEPTED", outcome="cancelled", cancel_generation=1)
    pinned(tables, effect_case="always")


@doctor
def a_late_completion_is_told(tables: Tables) -> None:
    both(tables, state="CANCELLED_ACCEPTED", outcome="cancelled", cancel_generation=1)
    operation(tables, audit_s=40.0)


@doctor
def only_published_edges_by_their_lane(tables: Tables) -> None:
    tables["journal"][1]["lane"] = "cancel"


@doctor
def a_task_that_is_over_is_noticed(_: Tables) -> dict[str, Any]:
    return {"told": (("w1", 1.0, Told("task-1", "completed")),) * 4}


@doctor
def nothing_of_an_old_epoch_after_a_bump(_: Tables) -> dict[str, Any]:
    return {"bumps": (BumpFact(2, 0.3, {"op": 2}, frozenset({"token"})),)}


@doctor
def epochs_only_grow(tables: Tables) -> None:
    tables["journal"][1]["epoch"] = 2


@doctor
def nothing_new_while_it_is_stopped(_: Tables) -> dict[str, Any]:
    return {"stopped_between": (StopFact("the protocol was drained", frozenset(), frozenset({"token"})),)}


@doctor
def no_orphan(tables: Tables) -> None:
    still(tables, "WORKING", 2)
    tables["wake"].append({"operation_id": "op", "lane": "cancel"})


@doctor
def everything_ends(tables: Tables) -> None:
    still(tables, "WORKING", 2)
    tables["wake"].append({"operation_id": "op", "lane": "poll"})


@doctor
def time_ends_it_as_its_policy_says(tables: Tables) -> None:
    told_of(tables, code="E_WAIT_BUDGET_EXHAUSTED")
    pinned(tables, on_budget="cancel")


@doctor
def a_calm_call_needs_nobody(_: Tables) -> dict[str, Any]:
    return {"tasks": (replace(TASK, expected="failed"),)}


@doctor
def requests_keep_to_the_rate(_: Tables) -> dict[str, Any]:
    return {"departures": (0.1, 0.2, 0.3, 0.4, 0.5)}
