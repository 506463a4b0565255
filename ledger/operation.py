"""What `decide()` looks at: one operation as its locked row says, with the ledger's clock already read.

Moments never appear here, only seconds left by the ledger's clock (negative or zero = over), because a decision may not
hang on a worker's clock (SPEC section 7, measured skews of minutes are survived that way).
"""

from dataclasses import dataclass, field
from uuid import UUID

from .policy import Policy
from .rounds import Round
from .states import TERMINAL, Outcome, State


@dataclass(frozen=True, slots=True)
class OpenIntent:
    """A committed intent without an end: the one request that may be on its way."""

    send_token: UUID
    effect: str
    attempt: int
    generation: int
    send_left_s: float
    answer_left_s: float


@dataclass(frozen=True, slots=True)
class OpenCase:
    """A question for a person that has no verdict yet."""

    kind: str
    code: str
    age_s: float = field(default=0.0, compare=False)


NOT_PARKING = frozenset({"E_CANCEL_UNCONFIRMED", "E_LATE_COMPLETION_AFTER_CANCEL"})
"""Cases beside which reading goes on: an unconfirmed cancel is read slowly until an end is seen (SPEC section 5)."""


CONTESTED = frozenset({"E_STATUS_REGRESSED", "E_TASK_ID_REUSED", "E_INPUT_UNANSWERED"})
"""Questions about what was said itself: no later word of the same server answers them, only a person does."""


@dataclass(frozen=True, slots=True)
class Operation:
    """The mutable half of the ledger's row plus what is open beside it. Frozen: decisions make a new one.

    `attempt` is the attempt that may be sent next or was sent last; `sent_attempt` the highest one of which bytes
    may have left. `settle_as` is a terminal state that is decided but not yet accepted: only `accept_terminal` may
    finish it.
    """

    id: UUID
    policy: Policy
    state: State = State.SUBMITTING
    attempt: int = 1
    sent_attempt: int = 0
    task_id: str | None = None
    session_id: UUID | None = None
    server_status: str | None = None
    remote_created_at: str | None = None
    ttl_ms: int | None = None
    interval_ms: int | None = None
    observed_seq: int = 0
    tries: int = 0
    auth_tries: int = 0
    not_found_count: int = 0
    cancel_generation: int = 0
    cancel_due: bool = False
    cancel_sends: int = 0
    cancel_acked: bool = False
    input_round: int = 0
    unanswered_rounds: int = 0
    last_code: str | None = None
    settle_as: State | None = None
    outcome: Outcome | None = None
    error_code: str | None = None
    effects_possible: bool = False
    terminal_status: str | None = None
    result_digest: bytes | None = None
    result_pointer: str | None = None
    budget_left_s: float | None = None
    budget_running: bool = False
    input_left_s: float | None = None
    confirm_left_s: float | None = None
    settle_left_s: float = 0.0
    key_left_s: float | None = None
    """How long the server still remembers the key by the policy's word; None before the first intent."""
    leg: int = 1
    """The leg of the current attempt: a call that asked before it made a task goes on with the next one."""
    request_state: str | None = None
    """What the next leg carries back to the server."""
    result_value_digest: bytes | None = None
    audit_s: float | None = None
    """Decided with the end: how long afterwards the task is still looked at."""
    audit_left_s: float | None = None
    shadow: bool = False
    rounds: tuple[Round, ...] = ()
    intents: tuple[OpenIntent, ...] = ()
    cases: tuple[OpenCase, ...] = field(default=())

    @property
    def over(self) -> bool:
        """Nothing may move it but the acceptance that is already decided."""
        return self.state in TERMINAL or self.settle_as is not None

    @property
    def never_sent(self) -> bool:
        """No open intent and every closed one withdrawn or not processed (SPEC section 3)."""
        return self.sent_attempt == 0 and self.intent("submit") is None

    @property
    def parked(self) -> bool:
        """A person has to speak first; no lane is due."""
        return any(case.kind == "UNKNOWN" and case.code not in NOT_PARKING for case in self.cases)

    @property
    def contested(self) -> bool:
        """What the server says is in question: it is kept, and ends nothing."""
        return any(case.kind == "UNKNOWN" and case.code in CONTESTED for case in self.cases)

    @property
    def abandon_left_s(self) -> float | None:
        """How long until a parked operation is closed without a person (`on_unknown: abandon`, SPEC section 7); None:
        never."""
        if not self.parked or self.policy.on_unknown != "abandon":
            return None
        asked_s = max(case.age_s for case in self.cases if case.kind == "UNKNOWN" and case.code not in NOT_PARKING)
        return max(self.policy.on_unknown_after_s - asked_s, 0.0)

    @property
    def waiting_rounds(self) -> tuple[Round, ...]:
        """Rounds that the task has not been seen past."""
        return tuple(one for one in self.rounds if one.waits)

    @property
    def all_replied(self) -> bool:
        """People have done their part: it is the server that we wait for."""
        waiting = self.waiting_rounds
        return bool(waiting) and all(one.state != "open" for one in waiting)

    def intent(self, effect: str) -> OpenIntent | None:
        return next((intent for intent in self.intents if intent.effect == effect), None)

    def has_case(self, kind: str, code: str | None = None) -> bool:
        return any(case.kind == kind and code in (None, case.code) for case in self.cases)
