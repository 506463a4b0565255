"""The ledger as plain values: rows, leases, intents and evidence in dictionaries, moved by the real `decide()`.

What the SQL does is told again here in a few lines, so that the loop can be run through thousands of interleavings. The
SQL itself has its own tests; `test_drive.py` runs the loop on it.
"""

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from counterfoil.ledger.intents import Denied, Granted, IntentRequest, _judge, _Switches
from counterfoil.ledger.operation import OpenIntent, Operation
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.rounds import Question
from counterfoil.ledger.rows import Evidence, Reply, Row
from counterfoil.ledger.states import TERMINAL, Lane, State
from counterfoil.ledger.store import Answer, Due, Lease, Renewed
from counterfoil.ledger.transition import Interpret
from counterfoil.ledger.wakes import AUDIT_FIRST_S
from counterfoil.ledger.work import Applied, Held, Item, Work
from counterfoil.workers.actions import Claim, Key

OVERDUE_S = 2.0
CLOCKS = ("budget", "input", "confirm", "audit")
"""Seconds left of an operation that pass with the ledger's clock."""


@dataclass
class Wake:
    due_s: float
    target: str
    kick: int = 0
    token: uuid.UUID | None = None
    until_s: float = 0.0
    claims: int = 0
    seq: int = 0


@dataclass
class Ledger:
    """`create_on` and `shut` are what people switched."""

    interpret: Interpret
    rows: dict[uuid.UUID, Row] = field(default_factory=dict)
    wakes: dict[Key, Wake] = field(default_factory=dict)
    evidence: list[tuple[float, Answer]] = field(default_factory=list)
    opened: dict[uuid.UUID, float] = field(default_factory=dict)
    """Send token -> when its intent was opened."""
    create_on: bool = True
    shut: frozenset[str] = frozenset()
    asked: dict[tuple[uuid.UUID, int], tuple[int, Question]] = field(default_factory=dict)
    """(operation, number of the round) -> its leg and what is asked."""
    said: dict[tuple[uuid.UUID, int], bytes] = field(default_factory=dict)
    sessions: dict[uuid.UUID, bytes] = field(default_factory=dict)
    heard: list[Answer] = field(default_factory=list)
    """Evidence that was consumed."""
    _ends: dict[tuple[uuid.UUID, str], float] = field(default_factory=dict)
    _first_intent: dict[uuid.UUID, float] = field(default_factory=dict)
    _send_by: dict[uuid.UUID, float] = field(default_factory=dict)
    _serial: int = 0
    _seq: int = 0

    def new_id(self) -> uuid.UUID:
        self._serial += 1
        return uuid.UUID(int=self._serial)

    def add(self, now_s: float, policy: Policy, target: str = "a", lane: Lane = Lane.SUBMIT, **fields: object) -> Row:
        """An operation whose row is due now on one lane."""
        due_in_s = float(str(fields.pop("due_in_s", 0.0)))
        arguments, pinned = fields.pop("arguments", b"{}"), bool(fields.pop("pinned", False))
        id_ = self.new_id()
        operation = replace(Operation(id=id_, policy=policy), **fields)  # type: ignore[arg-type]
        row = Row(
            operation=operation,
            namespace="default",
            call_node_id=f"node-{id_.int}",
            request_digest=b"d" * 32,
            target=target,
            tool="work",
            principal="default",
            submission_key=uuid.uuid5(id_, "key"),
            arguments=arguments,  # type: ignore[arg-type]
            protocol=None,
            tool_version=None,
            descriptor_digest=None,
            pinned=pinned,
            execution_epoch=1,
            journal_seq=0,
        )
        self.rows[id_] = row
        self._set_clocks(Operation(id=id_, policy=policy), operation, now_s)
        self.wakes[id_, lane] = Wake(now_s + due_in_s, target)
        return row

    def working(self, now_s: float, policy: Policy, task: str, target: str = "a", due_in_s: float = 0.0) -> Row:
        """An operation whose task the server knows, due for a poll."""
        told = {"server_status": "working", "interval_ms": 1000, "remote_created_at": "2026-11-29T10:00:00Z"}
        known = {"state": State.WORKING, "task_id": task, "sent_attempt": 1, "ttl_ms": 3_600_000, **told}
        return self.add(now_s, policy, target, Lane.POLL, due_in_s=due_in_s, arguments=None, **known)

    def lost(self, now_s: float, policy: Policy, target: str = "a", *, sent_s: float, **fields: object) -> Row:
        """An operation whose submit was sent at `sent_s` and never answered, due for a lookup."""
        known = {"state": State.SUBMISSION_UNKNOWN, "sent_attempt": 1, "pinned": True, **fields}
        row = self.add(now_s, policy, target, Lane.LOOKUP, **known)
        self._first_intent[row.id], self._send_by[row.id] = sent_s, sent_s + policy.send_by_s
        return row

    def read(self, id_: uuid.UUID, now_s: float) -> Row:
        row = self.rows[id_]
        op, policy = row.operation, row.operation.policy
        intents = tuple(
            replace(
                intent,
                send_left_s=self.opened[intent.send_token] + policy.send_by_s - now_s,
                answer_left_s=self.opened[intent.send_token] + policy.answer_by_s - now_s,
            )
            for intent in op.intents
        )
        left = {f"{name}_left_s": self._ends[id_, name] - now_s for name in CLOCKS if (id_, name) in self._ends}
        if id_ in self._send_by:
            left["settle_left_s"] = policy.settle_s - (now_s - self._send_by[id_])
            left["key_left_s"] = policy.key_lifetime_s - (now_s - self._first_intent[id_])
        return replace(row, operation=replace(op, intents=intents, **left), replies=self._replies(op))  # type: ignore[arg-type]

    def _replies(self, op: Operation) -> tuple[Reply, ...]:
        """As `read_replies.sql`: before a task all of the leg before, to a task what waits to be sent."""
        found = []
        for one in op.rounds:
            leg, question = self.asked[op.id, one.number]
            due = leg == op.leg - 1 if op.task_id is None else one.state == "replied"
            content = self.said.get((op.id, one.number))
            if due and content is not None:
                found.append(Reply(op.id, one.number, one.key, question.method, question.reply_to, content))
        return tuple(found)

    def _set_clocks(self, before: Operation, after: Operation, now_s: float) -> None:
        for name in CLOCKS:
            left_s = getattr(after, f"{name}_left_s")
            runs = after.budget_running if name == "budget" else left_s is not None
            moved = left_s != getattr(before, f"{name}_left_s") or (
                name == "budget" and after.budget_running != before.budget_running
            )
            if runs and moved:
                self._ends[after.id, name] = now_s + left_s
            elif not runs:
                self._ends.pop((after.id, name), None)

    # -- what the loop writes ----------------------------------------------------------------------------------------

    def plan(self, lanes: Sequence[Lane], ahead_s: float, now_s: float) -> list[Due]:
        due: dict[tuple[Lane, str], list[float]] = {}
        for (_, lane), wake in self.wakes.items():
            if lane in lanes and wake.due_s <= now_s + ahead_s:
                due.setdefault((lane, wake.target), []).append(wake.due_s - now_s)
        found = []
        for (lane, target), moments in due.items():
            later = [in_s for in_s in moments if in_s > 0 and lane is not Lane.POLL]
            found.append(Due(lane, target, len(moments) - len(later), max(later, default=None)))
        return found

    def claim(self, claim: Claim, now_s: float) -> list[tuple[Lease, Row]]:
        token, found = self.new_id(), []
        for (id_, its), wake in sorted(self.wakes.items(), key=lambda pair: (pair[1].due_s, pair[0])):
            free = wake.token is None or wake.until_s <= now_s
            due = (its, wake.target) == (claim.lane, claim.target) and wake.due_s <= now_s + claim.ahead_s
            if due and free and len(found) < claim.limit:
                due_in_s = wake.due_s - now_s
                wake.claims += wake.token is not None
                wake.token, wake.until_s = token, max(wake.due_s, now_s) + claim.lease_s
                wake.due_s, wake.seq = wake.until_s, self._next_seq()
                lease = Lease(id_, its, token, wake.kick, wake.seq, wake.claims, due_in_s)
                found.append((lease, self.read(id_, now_s)))
        return found

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def intend(self, request: IntentRequest, now_s: float) -> Granted | Denied:
        wake = self.wakes.get((request.operation_id, request.lane))
        alive = wake is not None and wake.token == request.token and wake.until_s > now_s
        leases = {(request.operation_id, str(request.lane), request.token)} if alive else set()
        row = self.read(request.operation_id, now_s)
        refusal = _judge(request, row, leases, _Switches(self.create_on, self.shut))
        if refusal is not None:
            return Denied(request.send_token, *refusal)
        self.opened[request.send_token] = now_s
        self._pin(row, request, now_s)
        return Granted(request.send_token, request.policy.send_by_s)

    def _pin(self, row: Row, request: IntentRequest, now_s: float) -> None:
        op, policy = self.rows[row.id].operation, request.policy
        intent = OpenIntent(request.send_token, request.effect, request.attempt, request.generation, 0.0, 0.0)
        if request.effect == "submit":
            op = replace(op, sent_attempt=max(op.sent_attempt, op.attempt))
        elif request.effect == "cancel":
            op = replace(op, cancel_due=False, cancel_sends=op.cancel_sends + 1)
        if request.effect in ("submit", "replay"):
            self._send_by[row.id] = now_s + policy.send_by_s
        if row.id not in self._first_intent and op.budget_left_s is None:
            op = replace(op, budget_left_s=policy.wait_budget_s, budget_running=True)
            self._ends[row.id, "budget"] = now_s + policy.wait_budget_s
        self._first_intent.setdefault(row.id, now_s)
        op = replace(op, policy=policy, intents=(*op.intents, intent), session_id=request.session_id or op.session_id)
        pins = {"protocol": request.protocol, "descriptor_digest": request.descriptor_digest}
        self.rows[row.id] = replace(self.rows[row.id], operation=op, pinned=True, **pins)  # type: ignore[arg-type]

    def keep(self, answer: Answer, now_s: float) -> None:
        self.evidence.append((now_s, answer))

    def overdue(self, now_s: float) -> list[uuid.UUID]:
        return sorted({answer.operation_id for at_s, answer in self.evidence if at_s < now_s - OVERDUE_S})

    def find_tasks(self, target: str, task_ids: Iterable[str]) -> list[tuple[uuid.UUID, str]]:
        wanted = set(task_ids)
        found = [(row.id, row.operation.task_id) for row in self.rows.values() if row.target == target]
        return [(id_, task) for id_, task in found if task is not None and task in wanted]

    def apply(self, items: Sequence[Item], now_s: float) -> list[Applied]:
        grouped: dict[uuid.UUID, list[Item]] = {}
        for item in items:
            grouped.setdefault(item.operation_id, []).append(item)
        return [self._transition(self.read(id_, now_s), items, now_s) for id_, items in grouped.items()]

    def _transition(self, row: Row, items: list[Item], now_s: float) -> Applied:
        work = Work(row, items)
        answers = [answer for _, answer in self.evidence if answer.operation_id == row.id]
        for event in [self.interpret(row, _evidence(answer)) for answer in answers]:
            work.take(event)
        self.evidence = [(at_s, answer) for at_s, answer in self.evidence if answer.operation_id != row.id]
        self.heard += answers
        for event in [event for item in items for event in item.events]:
            work.take(event)
        for decision in work.decisions:
            leg = decision.operation.leg
            self.asked |= {(row.id, number): (leg, question) for number, question in decision.asks}
            if decision.reply is not None:
                self.said[row.id, decision.reply[0]] = decision.reply[1]
        op = work.row.operation
        self._set_clocks(row.operation, op, now_s)
        if op.settle_as is not None:
            op = self._accepted(op, now_s)
        self.rows[row.id] = replace(work.row, operation=op, journal_seq=row.journal_seq + len(work.decisions))
        held = () if row.operation.state not in TERMINAL and op.state in TERMINAL else self._wakes(work, op, now_s)
        return Applied(row.id, self.read(row.id, now_s), tuple(work.answers), held)

    def _accepted(self, op: Operation, now_s: float) -> Operation:
        """As `accept_terminal` does."""
        assert op.settle_as is not None
        for key in [key for key in self.wakes if key[0] == op.id]:
            del self.wakes[key]
        if op.audit_s is not None and op.audit_s > 0:
            self._ends[op.id, "audit"] = now_s + op.audit_s
            self.wakes[op.id, Lane.AUDIT] = Wake(now_s + min(op.audit_s, AUDIT_FIRST_S), self.rows[op.id].target)
        return replace(op, state=op.settle_as, settle_as=None)

    def _wakes(self, work: Work, op: Operation, now_s: float) -> tuple[Held, ...]:
        needed = dict(work.needed())
        for key in [key for key in self.wakes if key[0] == op.id and key[1] not in needed]:
            del self.wakes[key]
        return tuple(held for lane, delay_s in needed.items() for held in self._wake(work, op.id, lane, delay_s, now_s))

    def _wake(self, work: Work, id_: uuid.UUID, lane: Lane, delay_s: float, now_s: float) -> list[Held]:
        leased = [item for item in work.items if item.token is not None]
        bearer = next((item for item in leased if item.lane is lane), None) or next(
            (item for item in leased if lane in item.hold_lanes), None
        )
        if bearer is not None and lane is Lane.POLL:
            delay_s *= 1.0 + bearer.jitter
        holds = bearer is not None and lane in bearer.hold_lanes and delay_s <= (bearer.hold_s or 0.0)
        wake = self.wakes.get((id_, lane))
        if wake is None:
            wake = self.wakes[id_, lane] = Wake(now_s + delay_s, work.row.target, seq=self._next_seq())
        elif bearer is None or wake.token != bearer.token:
            if lane in work.replaced:
                wake.due_s, wake.kick = now_s + delay_s, wake.kick + 1
            elif wake.token is None:
                wake.due_s = min(wake.due_s, now_s + delay_s)
            return []
        elif bearer.lane is lane and wake.kick == bearer.kick:
            wake.due_s = now_s + delay_s
        wake.claims = 0
        if not holds or bearer is None:
            wake.token = None
            return []
        wake.token, wake.until_s = bearer.token, now_s + delay_s + (bearer.hold_s or 0.0)
        wake.due_s = wake.until_s
        assert wake.token is not None
        return [Held(lane, wake.token, wake.kick, wake.seq, delay_s)]

    def renew(self, held: Sequence[tuple[uuid.UUID, Lane, uuid.UUID, float]], now_s: float) -> dict[Key, Renewed]:
        found = {}
        for id_, lane, token, until_s in held:
            wake = self.wakes.get((id_, lane))
            if wake is not None and wake.token == token:
                # A kick put its moment before the lease's end, where it stays.
                wake.due_s = now_s + until_s if wake.due_s >= wake.until_s else wake.due_s
                wake.until_s = now_s + until_s
                wake.seq, wake.claims = self._next_seq(), 0
                found[id_, lane] = Renewed(wake.kick, wake.seq)
        return found

    def reread(self, held: Sequence[tuple[uuid.UUID, Lane, uuid.UUID]]) -> dict[Key, int]:
        return {
            (id_, lane): self.wakes[id_, lane].kick
            for id_, lane, token in held
            if (id_, lane) in self.wakes and self.wakes[id_, lane].token == token
        }

    def release(self, rows: Sequence[tuple[Lease, float]], now_s: float) -> None:
        for lease, delay_s in rows:
            wake = self.wakes.get((lease.operation_id, lease.lane))
            if wake is not None and wake.token == lease.token:
                wake.token = None
                if wake.kick == lease.kick:
                    wake.due_s = now_s + delay_s

    def kick(self, id_: uuid.UUID, lane: Lane, now_s: float) -> None:
        """Somebody wants this row looked at: a door, a transition of another lane."""
        self.wakes[id_, lane].kick += 1
        self.wakes[id_, lane].due_s = now_s


def _evidence(answer: Answer) -> Evidence:
    return Evidence(
        id=uuid.UUID(int=0),
        operation_id=answer.operation_id,
        kind=answer.kind,
        attempt=answer.attempt,
        generation=answer.generation,
        send_token=answer.send_token,
        epoch=1,
        status=answer.status,
        headers=json.loads(answer.headers),
        body=answer.body,
        seq=answer.seq,
    )
