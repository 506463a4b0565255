"""One operation on its way through a transition: what is brought, what was decided, what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from .decision import Answer, CaseDraft, Decision, Refusal, Unchanged
from .events import Event, VerdictGiven
from .machine import decide
from .operation import OpenCase
from .rows import Row, with_operation
from .states import Lane
from .wakes import wakes


@dataclass(frozen=True, slots=True)
class Item:
    """What a bearer brings for one operation.

    `token` and `kick` are those of its claim on `lane` (None: a door or a sweep, no lease). `hold_s`: keep the
    lease, or take the next lane's, for this long beyond its due moment; `hold_lanes` are the lanes its bearer can
    stay resident in.
    `jitter` stretches the next due moment, upward only.
    """

    operation_id: UUID
    lane: Lane
    events: tuple[Event, ...] = ()
    token: UUID | None = None
    kick: int = 0
    hold_s: float | None = None
    hold_lanes: frozenset[Lane] = frozenset()
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class Held:
    """A wake row that the bearer holds after the transition."""

    lane: Lane
    token: UUID
    kick: int
    read_seq: int
    due_in_s: float


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one operation's items. `answers` are the machine's, in order; `row` is the operation as it now
    stands.

    `verdict` is `accept_terminal`'s word where the end was decided; `failed`: it could not be written and is parked.
    """

    operation_id: UUID
    row: Row | None
    answers: tuple[Answer, ...] = ()
    held: tuple[Held, ...] = ()
    verdict: str | None = None
    failed: bool = False


@dataclass(slots=True)
class Work:
    """One locked row and everything decided on it, until it is written."""

    before: Row
    items: Sequence[Item]
    row: Row = field(init=False)
    decisions: list[Decision] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    consumed: list[UUID] = field(default_factory=list)
    replaced: dict[Lane, float] = field(default_factory=dict)
    settled_by: Lane | None = None
    """The lane whose evidence decided the end; None when it was decided earlier and only the acceptance is missing."""

    def __post_init__(self) -> None:
        self.row = self.before

    def take(self, event: Event) -> None:
        """Decide one event on top of what was decided before it."""
        answer = self._outdated(event) or decide(self.row.operation, event)
        self.answers.append(answer)
        if isinstance(answer, Decision):
            if answer.operation.settle_as is not None and not self.row.operation.over:
                self.settled_by = event.lane
            self._accept(answer)
        elif isinstance(answer, Unchanged):
            if answer.next_poll_in_s is not None:
                self.replaced.setdefault(Lane.POLL, answer.next_poll_in_s)
        elif answer.note:
            self.refusals.append(answer)

    def _outdated(self, event: Event) -> Refusal | None:
        """A verdict counts for what its person saw, or not at all (SPEC section 7)."""
        if not isinstance(event, VerdictGiven) or event.seen_seq is None:
            return None
        if not self.decisions and self.before.journal_seq == event.seen_seq:
            return None
        return Refusal("E_CASE_CHANGED", "something happened since the case was looked at", note=False)

    def _accept(self, decision: Decision) -> None:
        self.decisions.append(decision)
        if decision.steps:
            self.replaced.clear()
        self.replaced.update(decision.wake)
        # The view of open cases is kept in step, so that `wakes()` and the next event see what this one opened and
        # closed.
        opened = tuple(OpenCase(case.kind, case.code) for case in decision.opens if not case.closed)
        kept = tuple(
            case for case in self.row.operation.cases if case.kind not in decision.closes and case not in opened
        )
        self.row = with_operation(self.row, replace(decision.operation, cases=(*kept, *opened)))

    def cases_to_open(self) -> list[CaseDraft]:
        """What the decisions opened, in order; what a later one of them closed is only recorded."""
        drafts: list[CaseDraft] = []
        for decision in self.decisions:
            drafts = [replace(draft, closed=draft.closed or draft.kind in decision.closes) for draft in drafts]
            drafts += decision.opens
        return drafts

    @property
    def dirty(self) -> bool:
        """Something has to be written into the operation's row or its journal."""
        return bool(self.decisions or self.refusals)

    def needed(self) -> Mapping[Lane, float]:
        """Lane -> delay in seconds for every wake row the operation needs now, the decisions' replacements included."""
        rows = dict(wakes(self.row.operation))
        rows.update({lane: delay_s for lane, delay_s in self.replaced.items() if lane in rows})
        return rows
