"""What the machine answers: a decision, "nothing changes", or a refusal. Delays, never instants."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from .events import Result
from .operation import Operation
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
        return self.having(
            settle_as=target,
            outcome=outcome,
            error_code=code,
            effects_possible=effects,
            terminal_status=terminal if terminal is not None else self.operation.terminal_status,
            budget_running=False,
        )

    def case(self, kind: CaseKind, code: str, why: str, *, closed: bool = False) -> "Decision":
        """Open a case, once per kind and code."""
        if self.operation.has_case(kind, code) and not closed:
            return self
        return replace(self, opens=(*self.opens, CaseDraft(kind, code, why, closed)), code=self.code or code)

    def note(self, code: str, why: str) -> "Decision":
        return replace(self, code=code, why=why)

    def ends(self, effect: str, how: str) -> "Decision":
        return replace(self, intent=IntentEnd(effect, how))


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
