"""The walk: every operation that `decide()` can reach, breadth first, with the laws tried on each step.

The walk does what the ledger does: events from an alphabet that holds every class with every variant that matters,
intents as `intents.py` judges and opens them, the acceptance of a decided end, and each clock running out. Numbers are
folded where a larger one can't decide anything new, so that the walk is finite.
"""

import dataclasses
import uuid
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from counterfoil.ledger import events as ev
from counterfoil.ledger.events import Result
from counterfoil.ledger.intents import IntentRequest, _judge
from counterfoil.ledger.operation import OpenCase, OpenIntent, Operation
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.rows import Row
from counterfoil.ledger.rules import TABLE
from counterfoil.ledger.rules_submit import BEFORE_TASK, LOOKUP_TRIES
from counterfoil.ledger.states import CaseKind, Lane, State
from counterfoil.ledger.work import Work
from counterfoil.tests.ledger.laws import Move, broken

ID, MINE, OTHERS = (uuid.UUID(int=n) for n in (1, 2, 3))
GOOD, OTHER = Result(b"g" * 32, "/result", b"{}"), Result(b"o" * 32, "/result", b"[]")
TOOL_ERROR = Result(b"e" * 32, "/result", b"{}", tool_error=True)
PROBLEMS = tuple(
    Result(None, "", b"", problem=code) for code in ("E_RESULT_MISSING", "E_RESULT_TOO_LARGE", "E_RESULT_SCHEMA")
)

# One policy counts to two, the others stop at the first: no rule tells the third of three from the second of two.
BASE = Policy(protocol="p", not_found_asks=1, auth_tries=1, cancel_sends=1, wait_budget_s=100.0, settle_s=5.0)
POLICIES: dict[str, dict[str, Any]] = {
    "no lookup, not found is asked twice": {"not_found_asks": 2},
    "lookup, unique": {"lookup": "by_key", "absence": "unique"},
    "lookup, closes, cancel at the end": {"lookup": "by_key", "absence": "closes", "on_budget": "cancel"},
    "lookup, bounded but not allowed": {"lookup": "by_key", "absence": "bounded", "can_cancel": False},
    "lookup, bounded and allowed, cancel is evidence": {
        "lookup": "client_chosen_id",
        "absence": "bounded",
        "bounded_allowed": True,
        "cancel_is_evidence": True,
    },
    "lookup, unique, no effects, abandoned when nobody speaks": {
        "lookup": "by_key",
        "absence": "unique",
        "effects": False,
        "on_unknown": "abandon",
    },
    "replay, can't cancel": {"lookup": "replay", "can_cancel": False, "on_budget": "cancel", "effects": False},
    "cancel is evidence and sent twice, people keep the deadline": {
        "cancel_is_evidence": True,
        "on_input_deadline": "reconcile",
        "cancel_sends": 2,
    },
    "one attempt, two credentials, no watch": {
        "lookup": "by_key",
        "absence": "unique",
        "max_attempts": 1,
        "input_watch_s": 0.0,
        "auth_tries": 2,
    },
}


def alphabet() -> tuple[ev.Event, ...]:
    attempts, seqs, generations = (1, 2), (1, 2), (1, 2)
    both = (True, False)
    events: list[ev.Event] = []
    for attempt in attempts:
        events += [
            ev.TaskBound(attempt, task, "working", "c1", elsewhere=far)
            for task, far in (("t", False), ("u", False), ("t", True))
        ]
        events += [ev.ResultAtOnce(attempt, "completed", result) for result in (GOOD, TOOL_ERROR, *PROBLEMS)]
        events += [ev.ResultAtOnce(attempt, "failed", GOOD), ev.ResultAtOnce(attempt, "cancelled", PROBLEMS[0])]
        events += [ev.InputAsked(attempt, b"d1"), ev.SubmitRejected(attempt, "E_REJECTED", "no")]
        events += [
            ev.SubmitNotProcessed(attempt, "E_BUSY", retry, auth)
            for retry, auth in ((None, False), (7.0, False), (None, True))
        ]
        events += [ev.SubmitNotSent(attempt, "refused", send_token=token) for token in (MINE, OTHERS, None)]
        events += [
            ev.SubmitUnclear(attempt, code, "?") for code in ("E_SUBMISSION_UNKNOWN", "E_KEY_REUSED_DIFFERENT_REQUEST")
        ]
    events += [ev.IntentOverdue(), ev.RefusedBeforeSubmit("E_POLICY", "no"), ev.Resubmit()]
    events += [
        ev.LookupFound(task, "working", "c1", elsewhere=far) for task, far in (("t", False), ("u", False), ("t", True))
    ]
    events += [*(ev.LookupAbsent(sure) for sure in both), ev.LookupUnsure("E_UNSURE", "?")]
    for seq in seqs:
        events += [
            ev.Progressed(seq, "working", born, interval_ms=ms)
            for born, ms in (("c1", None), ("c1", 2000), ("c2", None))
        ]
        events += [
            ev.InputRequested(seq, "input_required", digest, born)
            for digest, born in ((b"d1", "c1"), (b"d2", "c1"), (b"d1", "c2"))
        ]
        events += [
            ev.Ended(seq, "completed", "completed", result, "c1")
            for result in (None, GOOD, OTHER, TOOL_ERROR, *PROBLEMS)
        ]
        events += [ev.Ended(seq, "failed", "failed", result, "c1") for result in (None, GOOD)]
        events += [
            ev.Ended(seq, "cancelled", "cancelled", None, "c1"),
            ev.Ended(seq, "completed", "completed", GOOD, "c2"),
        ]
        events += [ev.TaskNotFound(seq, "unknown")]
    events += [ev.ReadFailed("E_BUSY", 3, 9.0), ev.AccessDenied("401"), ev.SessionRenewed(OTHERS)]
    events += [ev.AnswerRefused("E_TASK_ID_MISMATCH", "?")]
    events += [ev.ResultFetched(result) for result in (GOOD, OTHER, TOOL_ERROR, *PROBLEMS)]
    events += [ev.CancelAsked("stop")]
    for generation in generations:
        events += [ev.CancelAcknowledged(generation, cancelled) for cancelled in both]
        events += [ev.CancelUnclear(generation, "E_CANCEL_UNCLEAR", "?")]
        events += [ev.CancelNotSent(generation, "refused", send_token=token) for token in (MINE, OTHERS, None)]
    events += [ev.DeadlineReached(), ev.Quarantined("poll")]
    events += [
        ev.VerdictGiven("bind", "t"),
        ev.VerdictGiven("bind"),
        ev.VerdictGiven("never_created"),
        ev.VerdictGiven("give_up"),
    ]
    return tuple(events)


ALPHABET = alphabet()
NAMED = tuple((event, repr(event)) for event in ALPHABET)


# -- what the ledger does, without a database --------------------------------------------------------------------------


def row_of(op: Operation) -> Row:
    return Row(op, "ns", "node", b"", "target", "tool", "me", ID, b"{}", None, None, None, False, 1, 0)


def possible(op: Operation, event: ev.Event) -> bool:
    """Can this come at all? A pair without a rule changes nothing, and nobody answers what was never intended."""
    if op.over:
        return True
    if (op.state, type(event)) not in TABLE:
        return False
    if isinstance(event, ev.SubmitNotSent | ev.CancelNotSent):
        return True
    if event.lane is Lane.CANCEL:
        return op.state is not State.CANCEL_REQUESTED or op.cancel_sends > 0
    return event.lane is not Lane.SUBMIT or getattr(event, "attempt", 0) <= op.sent_attempt


def by_event(op: Operation, event: ev.Event, name: str) -> Move | None:
    work = Work(row_of(op), ())
    work.take(event)
    after, edges = work.row.operation, []
    for decision in work.decisions:
        edges += [(step.source, step.target, step.lane) for step in decision.steps]
    if after.settle_as is not None and op.settle_as is None:
        edges.append((after.state, after.settle_as, event.lane))
    if after == op:
        return None
    return Move(name, op, after, tuple(edges))


def by_intent(op: Operation, effect: str) -> Move | None:
    """What the transaction of an intent does to the row (sql/pin_intents.sql)."""
    lane = Lane(effect)
    request = IntentRequest(ID, effect, lane, MINE, MINE, op.attempt, op.cancel_generation, op.policy, b"", "p")
    if _judge(request, row_of(op), {(ID, str(lane), MINE)}, create_on=True) is not None:
        return None
    opened = OpenIntent(MINE, effect, op.attempt, op.cancel_generation, 10.0, 60.0)
    after = replace(op, intents=(*op.intents, opened))
    if effect == "submit":
        after = replace(after, sent_attempt=max(op.sent_attempt, op.attempt), settle_left_s=15.0)
    if effect == "cancel":
        after = replace(after, cancel_sends=op.cancel_sends + 1, cancel_due=False)
    if op.budget_left_s is None:
        after = replace(after, budget_left_s=op.policy.wait_budget_s, budget_running=True)
    return Move(f"intent to {effect}", op, after)


def by_acceptance(op: Operation) -> Move | None:
    """What `accept_terminal` does to a row whose end is decided."""
    if op.settle_as is None:
        return None
    return Move("accepted", op, replace(op, state=op.settle_as, settle_as=None))


def by_clock(op: Operation) -> Iterator[Move]:
    """Each deadline that can pass next."""
    for name, runs in (("budget", op.budget_running), ("input", True), ("confirm", True), ("settle", not op.intents)):
        left_s = getattr(op, f"{name}_left_s")
        if runs and left_s is not None and left_s > 0:
            yield Move(f"{name} runs out", op, replace(op, **{f"{name}_left_s": 0.0}))
    for index, intent in enumerate(op.intents):
        for left in ("send_left_s", "answer_left_s"):
            if getattr(intent, left) > 0 and (left == "send_left_s" or intent.send_left_s <= 0):
                passed = replace(intent, **{left: 0.0})
                yield Move(
                    f"{intent.effect}: {left} runs out",
                    op,
                    replace(op, intents=(*op.intents[:index], passed, *op.intents[index + 1 :])),
                )


def moves(op: Operation) -> Iterator[Move]:
    found = [by_event(op, event, name) for event, name in NAMED if possible(op, event)]
    found += [by_intent(op, effect) for effect in ("submit", "cancel")]
    found.append(by_acceptance(op))
    if op.abandon_left_s:
        late = replace(op, cases=tuple(replace(case, age_s=op.policy.on_unknown_after_s) for case in op.cases))
        found.append(by_event(late, ev.DeadlineReached(), "nobody spoke in time"))
    yield from (move for move in found if move is not None)
    yield from by_clock(op)


_START = Operation(ID, BASE)
_KEPT = {
    # What some rule (or a claim below) still reads. Everything else is set back to what a new operation has.
    "unsent": "attempt sent_attempt tries auth_tries cancel_generation budget_left_s budget_running settle_left_s"
    " intents",
    "asked": "attempt sent_attempt cancel_generation input_left_s budget_left_s budget_running",
    "live": "remote_created_at observed_seq auth_tries not_found_count input_digest input_left_s budget_left_s"
    " budget_running intents",
    "cancel": "remote_created_at observed_seq auth_tries not_found_count cancel_due cancel_sends cancel_acked"
    " confirm_left_s intents",
    "read": "auth_tries not_found_count terminal_status",
    "over": "outcome settle_as result_digest",
}


def _kind(op: Operation) -> str:
    if op.over:
        return "over"
    if op.state in (State.TERMINAL_OBSERVED, State.FETCHING_RESULT):
        return "read"
    if op.state is State.CANCEL_REQUESTED:
        return "cancel"
    if op.state is State.INPUT_REQUIRED and op.task_id is None:
        return "asked"
    return "unsent" if op.state in BEFORE_TASK else "live"


def folded(op: Operation) -> Operation:
    """The same operation as far as any rule can tell: numbers capped where no larger one decides anything new, names of
    tasks, births, rounds and results exchanged for the first of their sort (the alphabet is closed under that), cases
    told by what they do. In CANCEL_REQUESTED generation 1 of the alphabet stands for the current one."""
    kind = _kind(op)
    kept = {name: getattr(op, name) for name in _KEPT[kind].split()}
    policy = op.policy
    caps = {
        "tries": LOOKUP_TRIES if op.state is State.SUBMISSION_UNKNOWN else 0,
        "auth_tries": policy.auth_tries - 1,
        "not_found_count": policy.not_found_asks - 1,
        "cancel_sends": policy.cancel_sends,
        "cancel_generation": 1,
        "observed_seq": 2,
    }
    kept |= {name: min(kept[name], cap) for name, cap in caps.items() if name in kept}
    if kept.get("budget_left_s") is not None:
        kept["budget_left_s"] = 100.0 if kept["budget_left_s"] > 0 else 0.0
    names = {"remote_created_at": "c1", "input_digest": b"d1", "result_digest": GOOD.digest}
    kept |= {name: first for name, first in names.items() if kept.get(name) is not None}
    if "intents" in kept:
        unread = {"attempt": 1, "generation": 0, "answer_left_s": 0.0}
        kept["intents"] = tuple(i if i.effect == "submit" else replace(i, **unread) for i in op.intents)
    cases = [case for case in op.cases if case.kind != CaseKind.UNKNOWN or case.code == "E_CANCEL_UNCONFIRMED"]
    if op.parked and kind != "over":
        cases.append(OpenCase(CaseKind.UNKNOWN, "E_PARKING"))
    return replace(
        _START,
        policy=policy,
        state=op.state,
        task_id=None if op.task_id is None else "t",
        cases=tuple(sorted(set(cases), key=str)),
        **{"cancel_generation": int(kind == "cancel"), **kept},
    )


@dataclass
class Walk:
    policy: Policy
    seen: set[Operation] = field(default_factory=set)
    leads_to: dict[Operation, set[Operation]] = field(default_factory=lambda: defaultdict(set))
    edges: set[tuple[State, State, Lane]] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)

    def run(self) -> "Walk":
        start = folded(Operation(ID, self.policy))
        queue = deque([start])
        self.seen.add(start)
        while queue:
            op = queue.popleft()
            for move in moves(op):
                self.complaints += [f"{what}: {move.name} on {shown(op)}" for what in broken(move)]
                self.edges.update(move.edges)
                after = folded(move.after)
                self.leads_to[op].add(after)
                if after not in self.seen:
                    self.seen.add(after)
                    queue.append(after)
        return self


def shown(op: Operation) -> str:
    plain = {
        field.name: getattr(op, field.name) for field in dataclasses.fields(op) if field.name not in ("id", "policy")
    }
    return ", ".join(f"{name}={value}" for name, value in plain.items() if value not in (None, 0, False, (), 0.0))
