"""The walk: every operation that `decide()` can reach, breadth first, with the laws tried on each step.

The walk does what the ledger does: events of the alphabet, intents as `intents.py` judges and opens them, the
acceptance of a decided end, and each clock running out. Numbers are folded where a larger one can't decide anything
new, so that the walk is finite.
"""

import dataclasses
import uuid
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from counterfoil.ledger import events as ev
from counterfoil.ledger.intents import IntentRequest, _judge, _Switches
from counterfoil.ledger.operation import CONTESTED, OpenCase, OpenIntent, Operation
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.rounds import REPLY_SENDS, Round
from counterfoil.ledger.rows import Row
from counterfoil.ledger.rules import BEFORE_TASK, KNOWN_OVER, TABLE
from counterfoil.ledger.rules_input import UNREAD_ASKS
from counterfoil.ledger.rules_lookup import LOOKUP_TRIES
from counterfoil.ledger.states import CaseKind, Lane, State
from counterfoil.ledger.wakes import submit_lane, wakes
from counterfoil.ledger.work import Work
from counterfoil.tests.ledger.alphabet import ALPHABET, BASE, BROKEN, GOOD, MINE
from counterfoil.tests.ledger.laws import Move, broken

ID = uuid.UUID(int=1)
_ON = _Switches(create_on=True, shut=frozenset())


# -- what the ledger does, without a database --------------------------------------------------------------------------


def row_of(op: Operation) -> Row:
    return Row(op, "ns", "node", b"", "target", "tool", "me", ID, b"{}", None, None, None, False, 1, 0)


def possible(op: Operation, event: ev.Event) -> bool:
    """Can this come at all? A pair without a rule changes nothing, and nobody answers what was never intended."""
    if op.over:
        return True
    if (op.state, type(event)) not in TABLE:
        return False
    if isinstance(event, ev.SubmitNotSent | ev.CancelNotSent | ev.ReplayNotSent | ev.ReplyNotSent):
        return True
    if event.lane is Lane.CANCEL:
        return op.state is not State.CANCEL_REQUESTED or op.cancel_sends > 0
    if event.lane is Lane.ANSWER:
        return op.intent("answer") is not None or any(one.sends for one in op.rounds)
    if event.lane is Lane.LOOKUP and op.state is State.SUBMITTING:
        return op.attempt > 1  # a late answer to what was asked of the first
    if isinstance(event, ev.LookupAbsent):
        return op.policy.asks_by_key
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


def by_intent(op: Operation, effect: str, lane: Lane) -> Move | None:
    """What the transaction of an intent does to the row (sql/open_intents.sql). Its lease needs a wake row."""
    if lane not in wakes(op):
        return None
    replied = next((one.number for one in op.rounds if one.state == "replied"), 0)
    attempt = replied if effect == "answer" else op.attempt
    request = IntentRequest(ID, effect, lane, MINE, MINE, attempt, op.cancel_generation, op.policy, b"", "p")
    if _judge(request, row_of(op), {(ID, str(lane), MINE)}, _ON) is not None:
        return None
    opened = OpenIntent(MINE, effect, attempt, op.cancel_generation, 10.0, 60.0)
    after = replace(op, intents=(*op.intents, opened))
    if effect == "submit":
        after = replace(after, sent_attempt=max(op.sent_attempt, op.attempt))
    if effect in ("submit", "replay"):
        after = replace(after, settle_left_s=15.0)
    if effect == "cancel":
        after = replace(after, cancel_sends=op.cancel_sends + 1, cancel_due=False)
    if op.key_left_s is None:
        after = replace(after, key_left_s=op.policy.key_lifetime_s)
    if op.budget_left_s is None and effect == "submit":
        after = replace(after, budget_left_s=op.policy.wait_budget_s, budget_running=True)
    return Move(f"intent to {effect}", op, after)


def by_acceptance(op: Operation) -> Move | None:
    """What `accept_terminal` does to a row whose end is decided."""
    if op.settle_as is None:
        return None
    return Move("accepted", op, replace(op, state=op.settle_as, settle_as=None, audit_left_s=op.audit_s))


def by_clock(op: Operation) -> Iterator[Move]:
    """Each deadline that can pass next."""
    runs = {"budget": op.budget_running, "settle": not op.intents, "key": op.policy.absence in ("unique", None)}
    for name in ("budget", "input", "confirm", "settle", "key", "audit"):
        left_s = getattr(op, f"{name}_left_s")
        if runs.get(name, True) and left_s is not None and left_s > 0:
            yield Move(f"{name} runs out", op, replace(op, **{f"{name}_left_s": 0.0}))
    for index, intent in enumerate(op.intents):
        if intent.send_left_s > 0:
            passed = replace(intent, send_left_s=0.0)
            late = replace(op, intents=(*op.intents[:index], passed, *op.intents[index + 1 :]))
            yield Move(f"{intent.effect}: nothing may leave any more", op, late)


def by_abandoning(op: Operation) -> Move | None:
    if not op.abandon_left_s:
        return None
    late = replace(op, cases=tuple(replace(case, age_s=op.policy.on_unknown_after_s) for case in op.cases))
    return by_event(late, ev.DeadlineReached(), "nobody spoke in time")


# -- the same operation, as far as any rule can tell -------------------------------------------------------------------

_KEPT = {
    # What some rule (or a claim below) still reads. Everything else is set back to what a new operation has.
    "unsent": "attempt sent_attempt tries auth_tries cancel_generation budget_left_s budget_running settle_left_s"
    " key_left_s leg intents",
    "asked": "attempt sent_attempt cancel_generation input_left_s budget_left_s budget_running",
    "live": "remote_created_at observed_seq auth_tries not_found_count tries input_left_s budget_left_s budget_running"
    " intents",
    "cancel": "remote_created_at observed_seq auth_tries not_found_count cancel_due cancel_sends cancel_acked"
    " confirm_left_s intents",
    "read": "auth_tries not_found_count terminal_status",
    "over": "outcome settle_as result_digest result_value_digest server_status audit_s audit_left_s",
}
_CLOCKS = ("budget_left_s", "input_left_s", "confirm_left_s", "settle_left_s", "key_left_s", "audit_s", "audit_left_s")
_ALIKE = {"remote_created_at": "c1", "result_digest": GOOD.digest, "result_value_digest": GOOD.value_digest}


def _kind(op: Operation) -> str:
    if op.over:
        return "over"
    if op.state in KNOWN_OVER:
        return "read"
    if op.state is State.CANCEL_REQUESTED:
        return "cancel"
    if op.state is State.INPUT_REQUIRED and op.task_id is None:
        return "asked"
    return "unsent" if op.state in BEFORE_TASK else "live"


def _counted(op: Operation, kept: dict[str, Any]) -> None:
    """Numbers, capped where no larger one decides anything new; of three and more only the last but one is told."""
    policy = op.policy
    last_but_one = {State.SUBMISSION_UNKNOWN: LOOKUP_TRIES - 1, State.INPUT_REQUIRED: UNREAD_ASKS - 1}
    if "tries" in kept:
        kept["tries"] = last_but_one.get(op.state, 0) if kept["tries"] and not op.parked else 0
    caps = {
        "auth_tries": policy.auth_tries - 1,
        "not_found_count": policy.not_found_asks - 1,
        "cancel_sends": policy.cancel_sends,
        "cancel_generation": 1,
        "leg": 2,
    }
    kept |= {name: min(kept[name], cap) for name, cap in caps.items() if name in kept}
    if "observed_seq" in kept:
        kept["observed_seq"] = 2 if kept["observed_seq"] >= 2 and not op.rounds else 0
    for name in _CLOCKS:
        if kept.get(name) is not None:
            kept[name] = 100.0 if kept[name] > 0 else 0.0
    if op.state is State.INPUT_REQUIRED and op.task_id is not None and not op.budget_running:
        kept["budget_left_s"] = 100.0
    if "settle_left_s" in kept and (op.parked or op.state is not State.SUBMISSION_UNKNOWN):
        kept["settle_left_s"] = 100.0 if op.intents else 0.0


def _rounds(op: Operation, kind: str) -> tuple[dict[int, int], tuple[Round, ...]]:
    """(old number -> new, rounds): at most two that wait, in one order, else one for all that it was seen past."""
    if kind not in ("live", "asked"):
        return {}, ()
    if not op.waiting_rounds:
        return {}, (Round(1, "seen", "closed"),) if kind == "live" and op.rounds else ()
    # Parked, nothing is sent: late answers only move what is there.
    waiting = sorted(op.waiting_rounds[: 1 if op.parked else 2], key=lambda one: (one.state, one.sends))
    renamed = tuple(Round(n, key, one.state, _sends(one)) for n, key, one in zip((1, 2), "ab", waiting, strict=False))
    return {one.number: new.number for one, new in zip(waiting, renamed, strict=True)}, renamed


def _sends(one: Round) -> int:
    last_but_one = REPLY_SENDS - 1
    return last_but_one if 0 < one.sends < REPLY_SENDS or one.state == "sent" else min(one.sends, REPLY_SENDS)


def _intents(op: Operation, kind: str, numbers: dict[int, int]) -> tuple[OpenIntent, ...]:
    wanted = {"unsent": ("submit", "replay"), "live": ("answer",), "cancel": ("cancel",)}[kind]
    unread = {"generation": 0, "answer_left_s": 0.0}
    return tuple(
        replace(one, attempt=numbers.get(one.attempt, 3), send_left_s=0.0, **unread)
        if one.effect == "answer"
        else replace(one, attempt=op.attempt if one.effect == "submit" else 1, **unread)
        for one in op.intents
        if one.effect in wanted
    )


def _cases(op: Operation, kind: str) -> tuple[OpenCase, ...]:
    """What the open cases do: contest what the server says, or park, or stand beside."""
    if kind == "over":
        return tuple(sorted({OpenCase(case.kind, "E_ANY") for case in op.cases}, key=str))
    beside = () if kind != "unsent" else tuple({OpenCase(c.kind, "E_ANY") for c in op.cases if c.kind in _EFFECTS})
    codes = [case.code for case in op.cases if case.kind == CaseKind.UNKNOWN]
    if op.contested and kind != "unsent":
        return (*beside, OpenCase(CaseKind.UNKNOWN, next(code for code in codes if code in CONTESTED)))
    if op.parked:
        return (*beside, OpenCase(CaseKind.UNKNOWN, "E_PARKING"))
    return (*beside, *(OpenCase(CaseKind.UNKNOWN, code) for code in codes))


_EFFECTS = (CaseKind.EFFECT_RECONCILIATION_REQUIRED,)
_START = Operation(ID, BASE)


def folded(op: Operation) -> Operation:
    """The same operation as far as any rule can tell: names of tasks, births, rounds and results exchanged for the
    first of their sort (the alphabet is closed under that). In CANCEL_REQUESTED generation 1 of the alphabet stands
    for the current one."""
    kind = _kind(op)
    kept = {name: getattr(op, name) for name in _KEPT[kind].split()}
    _counted(op, kept)
    kept |= {name: first for name, first in _ALIKE.items() if kept.get(name) is not None}
    if op.rounds and "remote_created_at" in kept:
        kept["remote_created_at"] = "c1"
    if kept.get("result_digest") is not None or kept.get("server_status") != "cancelled":
        kept.pop("server_status", None)
    numbers, rounds = _rounds(op, kind)
    if "intents" in kept:
        kept["intents"] = _intents(op, kind, numbers)
    return replace(
        _START,
        policy=op.policy,
        state=op.state,
        task_id=None if op.task_id is None else "t",
        cases=_cases(op, kind),
        rounds=rounds,
        input_round=len(rounds),
        **{"cancel_generation": int(kind == "cancel"), **kept},
    )


# -- breadth first -----------------------------------------------------------------------------------------------------


@dataclass
class Walk:
    policy: Policy
    without: tuple[type, ...] = ()
    start: State = State.SUBMITTING
    seen: set[Operation] = field(default_factory=set)
    leads_to: dict[Operation, set[Operation]] = field(default_factory=lambda: defaultdict(set))
    edges: set[tuple[State, State, Lane]] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Where rounds are told apart, the order of readings, births of tasks and kinds of results are not.
        rounds = self.start is State.WORKING
        events = [event for event in ALPHABET if not isinstance(event, self.without)]
        if rounds:
            events = [e for e in events if getattr(e, "seq", 1) == 1 and getattr(e, "created_at", "c1") == "c1"]
            events = [e for e in events if getattr(e, "result", None) in (None, GOOD, BROKEN)]
        self._named = tuple((event, repr(event)) for event in events)
        self._effects = (("replay", Lane.LOOKUP), ("answer", Lane.ANSWER), ("cancel", Lane.CANCEL))

    def run(self) -> "Walk":
        start = Operation(ID, self.policy)
        if self.start is State.WORKING:
            known = {"task_id": "t", "sent_attempt": 1, "remote_created_at": "c1"}
            start = replace(start, state=self.start, budget_left_s=100.0, budget_running=True, **known)
        start = folded(start)
        queue = deque([start])
        self.seen.add(start)
        while queue:
            op = queue.popleft()
            for move in self.moves(op):
                self.complaints += [f"{what}: {move.name} on {shown(op)}" for what in broken(move)]
                self.edges.update(move.edges)
                after = folded(move.after)
                self.leads_to[op].add(after)
                if after not in self.seen:
                    self.seen.add(after)
                    queue.append(after)
        return self

    def moves(self, op: Operation) -> Iterator[Move]:
        found = [by_event(op, event, name) for event, name in self._named if possible(op, event)]
        found += [
            by_intent(op, effect, lane)
            for effect, lane in (("submit", submit_lane(op)), *self._effects)
            if effect != "replay" or op.policy.lookup == "replay"
        ]
        found += [by_acceptance(op), by_abandoning(op)]
        yield from (move for move in found if move is not None)
        yield from by_clock(op)


def shown(op: Operation) -> str:
    told = {field.name: getattr(op, field.name) for field in dataclasses.fields(op) if field.name != "policy"}
    return ", ".join(f"{name}={value}" for name, value in told.items() if value != getattr(_START, name))
