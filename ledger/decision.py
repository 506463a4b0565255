"""What the machine answers: a decision, "nothing changes", or a refusal. Delays, never instants."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from .events import Result, VerdictGiven
from .operation import Operation
from .rounds import Question, Round
from .states import CaseKind, Lane, Outcome, State


@dataclass(frozen=True, slots=True)
class Step:
    """One move for the journal, by the lane whose evidence caused it."""

    source: State
    target: State
    lane: Lane


@dataclass(frozen=True, slots=True)
class CaseDraft:
    """A case to open. `closed` ones are only recorded: their own evidence answered them (NEVER_CREATED)."""

    kind: CaseKind
    code: str
    why: str
    closed: bool = False


@dataclass(frozen=True, slots=True)
class IntentEnd:
    """How the open intent of one effect ends: answered | withdrawn | not_processed | lost."""

    effect: str
    how: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The new row and what goes with it. `wake` replaces default delays; `closes` are case kinds that evidence
    settled."""

    operation: Operation
    steps: tuple[Step, ...] = ()
    wake: Mapping[Lane, float] = field(default_factory=dict)
    opens: tuple[CaseDraft, ...] = ()
    closes: tuple[str, ...] = ()
    intent: IntentEnd | None = None
    result: Result | None = None
    keeps: Result | None = None
    """A result that can't be accepted as it is: kept for the person who may."""
    asks: tuple[tuple[int, Question], ...] = ()
    """Rounds to open, numbered."""
    ended_rounds: tuple[tuple[int, str], ...] = ()
    """Rounds that are over, and how: answered | superseded | over."""
    reply: tuple[int, bytes, str] | None = None
    """(round, reply, actor): a person's word, stored with the round."""
    verdict: VerdictGiven | None = None
    """Whose word closes the cases; None: evidence does."""
    code: str | None = None
    why: str | None = None

    def move(self, target: State, lane: Lane, **changes: Any) -> "Decision":
        """The same decision, one state further. Settling states are written by `accept_terminal`, not here."""
        step = Step(self.operation.state, target, lane)
        return replace(self, operation=replace(self.operation, state=target, **changes), steps=(*self.steps, step))

    def having(self, **changes: Any) -> "Decision":
        return replace(self, operation=replace(self.operation, **changes))

    def settle(
        self,
        target: State,
        outcome: Outcome,
        *,
        code: str | None = None,
        effects: bool,
        terminal: str | None = None,
    ) -> "Decision":
        """Decide the end. The row keeps its state until `accept_terminal` has written the receipt; a dead worker's
        successor finds `settle_as` and finishes (the fetch lane)."""
        op = self.operation
        ended = self.answered().end_rounds((one.number for one in op.waiting_rounds), "over")
        return ended.having(
            settle_as=target,
            outcome=outcome,
            error_code=code,
            effects_possible=effects,
            terminal_status=terminal if terminal is not None else op.terminal_status,
            budget_running=False,
            audit_s=_audit_s(op, target, outcome, effects=effects),
        )

    def answered(self) -> "Decision":
        """What people were asked is answered, by evidence or by their own word. Effects to be checked stay to be."""
        left = tuple(case for case in self.operation.cases if case.kind != CaseKind.UNKNOWN)
        answered = self if left == self.operation.cases else self.having(cases=left)
        return replace(answered, closes=(CaseKind.UNKNOWN,))

    def ask(self, questions: Iterable[Question]) -> "Decision":
        """Open a round for each question, in order."""
        first = len(self.operation.rounds) + 1
        asks = tuple(enumerate(questions, first))
        opened = tuple(Round(number, question.key, "open", 0, self.operation.leg) for number, question in asks)
        return replace(self.having(rounds=(*self.operation.rounds, *opened)), asks=(*self.asks, *asks))

    def end_rounds(self, numbers: Iterable[int], how: str) -> "Decision":
        """Close rounds."""
        ended = tuple((number, how) for number in numbers)
        if not ended:
            return self
        over = {number for number, _ in ended}
        rounds = tuple(replace(one, state="closed") if one.number in over else one for one in self.operation.rounds)
        return replace(self.having(rounds=rounds), ended_rounds=(*self.ended_rounds, *ended))

    def case(self, kind: CaseKind, code: str, why: str, *, closed: bool = False) -> "Decision":
        """Open a case, once per kind and code."""
        if self.operation.has_case(kind, code) and not closed:
            return self
        return replace(self, opens=(*self.opens, CaseDraft(kind, code, why, closed)), code=self.code or code)

    def note(self, code: str, why: str) -> "Decision":
        return replace(self, code=code, why=why)

    def ends(self, effect: str, how: str) -> "Decision":
        return replace(self, intent=IntentEnd(effect, how))


def _audit_s(op: Operation, target: State, outcome: Outcome, *, effects: bool) -> float | None:
    """For how long after this end the server is still asked what became of it: after a won cancel for as long as the
    policy says, after an end that could not prove that nothing ran until the key's lifetime is over (SPEC sections 5
    and 7)."""
    if op.policy.audit_s <= 0 or outcome in (Outcome.SUCCEEDED, Outcome.ABANDONED):
        return None
    if op.task_id is not None:
        return op.policy.audit_s if target is State.CANCELLED_ACCEPTED else None
    heard = op.server_status is not None  # the end is the server's own word: there is nothing to find out
    by_key = op.policy.asks_by_key and op.key_left_s is not None and op.key_left_s > 0
    return op.key_left_s if effects and by_key and not heard else None


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Nothing to write. The reader may stay resident and read again after this many seconds."""

    next_poll_in_s: float | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The event does not apply here. Journaled, never written into the row. `note`: worth a journal line."""

    code: str
    why: str
    note: bool = True


Answer: TypeAlias = Decision | Unchanged | Refusal
