"""Every operation that `decide()` can reach breaks no law, has a way to an end, and takes every edge of the table.

The laws stand in `laws.py`, the walk in `walk.py`; each policy is walked once for all the claims below.
"""

from collections import defaultdict, deque
from dataclasses import replace
from functools import cache
from typing import get_args

import pytest

from counterfoil.ledger import events as ev
from counterfoil.ledger.decision import Decision, Refusal
from counterfoil.ledger.machine import decide
from counterfoil.ledger.operation import Operation
from counterfoil.ledger.rules import TABLE
from counterfoil.ledger.states import EDGES, OPEN, TERMINAL, Lane, Outcome, State
from counterfoil.tests.ledger.alphabet import ALPHABET, BASE, POLICIES
from counterfoil.tests.ledger.walk import ID, Walk, shown


@cache
def walk(name: str) -> Walk:
    promises = POLICIES[name]
    return Walk(BASE.model_copy(update=promises.changes), promises.without, promises.start).run()


@pytest.mark.parametrize("name", POLICIES)
def test_no_reachable_step_breaks_a_rule(name: str) -> None:
    assert walk(name).complaints[:10] == []


@pytest.mark.parametrize("name", POLICIES)
def test_every_operation_that_is_not_over_has_a_way_to_an_end(name: str) -> None:
    found = walk(name)
    came_from: dict[Operation, set[Operation]] = defaultdict(set)
    for op, afters in found.leads_to.items():
        for after in afters:
            came_from[after].add(op)
    queue = deque(op for op in found.seen if op.state in TERMINAL)
    saved = set(queue)
    while queue:
        fresh = came_from[queue.popleft()] - saved
        saved |= fresh
        queue.extend(fresh)
    assert [shown(op) for op in found.seen - saved][:5] == []


_CARRIED = "the answer to a cancel carries the ended task: a protocol that does so has no events yet"
NOT_REACHED = {
    (State.CANCEL_REQUESTED, State.TERMINAL_OBSERVED, Lane.CANCEL): _CARRIED,
    (State.TERMINAL_OBSERVED, State.FETCHING_RESULT, Lane.CANCEL): _CARRIED,
    (State.FETCHING_RESULT, State.ACCEPTED, Lane.CANCEL): _CARRIED,
}


def test_every_edge_of_the_table_is_reached_or_its_reason_is_stated() -> None:
    legal_edges = {(source, target, lane) for (source, target), lanes in EDGES.items() for lane in lanes}
    reached = set().union(*(walk(name).edges for name in POLICIES))
    assert legal_edges - reached == NOT_REACHED.keys()
    assert reached <= legal_edges


# Pairs that say nothing to each other, by what the operation lacks for them. An event class that is new stands nowhere
# here, so the test below asks for a rule or for its place in one of these lists.
_READINGS = "Progressed InputRequested Ended TaskNotFound ReadFailed AccessDenied AnswerRefused ResultFetched Hinted"
_ANSWERS = "ReplyAcknowledged ReplyUnclear ReplyNotSent"
_CANCEL_ANSWERS = "CancelAcknowledged CancelUnclear CancelNotSent"
_SUBMIT_IS_OVER = (
    "SubmitRejected SubmitNotProcessed SubmitNotSent SubmitUnclear IntentOverdue RefusedBeforeSubmit Resubmit"
)
_NOTHING_TO_LOOK_UP = "LookupAbsent LookupUnsure LookupDenied ReplayNotSent"
_TASK_IS_KNOWN = f"{_SUBMIT_IS_OVER} {_NOTHING_TO_LOOK_UP} LookupOver"
_NO_TASK = f"{_READINGS} {_ANSWERS} {_CANCEL_ANSWERS}"
WITHOUT_A_RULE = {
    State.SUBMITTING: f"SessionRenewed {_NOTHING_TO_LOOK_UP} {_NO_TASK}",
    State.SUBMISSION_UNKNOWN: f"IntentOverdue RefusedBeforeSubmit Resubmit {_NO_TASK}",
    State.NOT_FOUND_SAFE: f"SubmitNotProcessed SubmitNotSent IntentOverdue SessionRenewed {_NOTHING_TO_LOOK_UP}"
    f" {_NO_TASK}",
    State.WORKING: f"{_TASK_IS_KNOWN} ResultFetched {_CANCEL_ANSWERS}",
    State.INPUT_REQUIRED: f"{_TASK_IS_KNOWN} ResultFetched {_CANCEL_ANSWERS}",
    State.CANCEL_REQUESTED: f"{_TASK_IS_KNOWN} ResultFetched",
    State.TERMINAL_OBSERVED: f"{_TASK_IS_KNOWN} Hinted CancelUnclear CancelNotSent",
    State.FETCHING_RESULT: f"{_TASK_IS_KNOWN} Hinted CancelUnclear CancelNotSent",
}


@pytest.mark.parametrize("state", sorted(OPEN))
def test_each_pair_of_state_and_event_has_a_rule_or_is_listed_as_saying_nothing(state: State) -> None:
    silent = {kind.__name__ for kind in get_args(ev.Event) if (state, kind) not in TABLE}
    assert silent == set(WITHOUT_A_RULE[state].split())


@pytest.mark.parametrize("state", sorted(OPEN))
def test_a_pair_without_a_rule_is_refused_and_changes_nothing(state: State) -> None:
    op = Operation(ID, BASE, state=state, task_id="t")
    silent = [event for event in ALPHABET if (state, type(event)) not in TABLE]
    answers = [decide(op, event) for event in silent]
    assert answers
    assert all(isinstance(answer, Refusal) and not answer.note for answer in answers)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_after_the_end_no_event_moves_anything_but_cases_and_the_audit(state: State) -> None:
    op = Operation(ID, BASE, state=state, task_id="t", outcome=Outcome.CANCELLED, audit_s=60.0, audit_left_s=30.0)
    for event in ALPHABET:
        answer = decide(op, event)
        if isinstance(answer, Decision):
            assert (answer.steps, answer.intent, answer.result) == ((), None, None)
            still = {"audit_left_s": op.audit_left_s, "session_id": op.session_id, "cases": op.cases}
            assert replace(answer.operation, **still) == op


def test_the_alphabet_holds_every_class_of_event() -> None:
    assert {type(event) for event in ALPHABET} == set(get_args(ev.Event))
