"""The machine by itself, for examples that read like sentences: an operation, what happens, what became of it."""

import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from counterfoil.ledger.decision import Answer, Refusal
from counterfoil.ledger.digest import sha256
from counterfoil.ledger.events import Event, InputAsked, InputRequested, Result, Verdict, VerdictGiven
from counterfoil.ledger.operation import OpenIntent, Operation
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.rounds import Question
from counterfoil.ledger.rows import Row
from counterfoil.ledger.states import Lane, State
from counterfoil.ledger.work import Work

ID, TOKEN = uuid.UUID(int=1), uuid.UUID(int=2)
POLICY = Policy(protocol="p", wait_budget_s=3600.0, key_lifetime_s=86400.0)
GOOD = Result(sha256(b"{}"), "", b"{}", value_digest=b"good")
OTHER = Result(sha256(b"[]"), "", b"[]", value_digest=b"other")


@dataclass
class Told:
    """One operation as it goes along: `.op` as it is, `.answers` what the machine said, `.wake` when each lane is
    due."""

    op: Operation
    answers: list[Answer] = field(default_factory=list)
    wake: dict[Lane, float] = field(default_factory=dict)

    def then(self, *happened: Event, **changes: Any) -> "Told":
        """Let things happen, after the given changes (a clock that ran on, an intent that was opened)."""
        work = Work(
            Row(replace(self.op, **changes), "ns", "n", b"", "t", "t", "me", ID, None, None, None, None, True, 1, 0), ()
        )
        for event in happened:
            work.take(event)
        return Told(work.row.operation, work.answers, dict(work.needed()))

    @property
    def end(self) -> tuple[str | None, str | None, str | None, bool]:
        """(terminal state, outcome, code, effects possible) as decided."""
        return self.op.settle_as, self.op.outcome, self.op.error_code, self.op.effects_possible

    @property
    def rounds(self) -> list[tuple[str, str]]:
        """(key, state) of each round."""
        return [(one.key, one.state) for one in self.op.rounds]

    @property
    def asked(self) -> list[str]:
        """The codes of open cases."""
        return [case.code for case in self.op.cases]

    @property
    def refused(self) -> str | None:
        """The code of the last answer, where it is a refusal."""
        last = self.answers[-1]
        return last.code if isinstance(last, Refusal) else None


def fresh(**policy: Any) -> Told:
    """Handed in, nothing sent."""
    return Told(Operation(ID, POLICY.model_copy(update=policy)))


def intended(told: Told, *, send_left_s: float = 10.0, answer_left_s: float = 60.0) -> Told:
    """Its submit is intended: bytes may be on their way."""
    op = told.op
    intent = OpenIntent(TOKEN, "submit", op.attempt, op.cancel_generation, send_left_s, answer_left_s)
    return told.then(
        intents=(intent,),
        sent_attempt=op.attempt,
        budget_left_s=op.policy.wait_budget_s if op.budget_left_s is None else op.budget_left_s,
        budget_running=True,
        key_left_s=op.policy.key_lifetime_s if op.key_left_s is None else op.key_left_s,
    )


def cancelling(told: Told) -> Told:
    """The request of its cancel is intended."""
    op = told.op
    intent = OpenIntent(TOKEN, "cancel", op.attempt, op.cancel_generation, 10.0, 60.0)
    return told.then(intents=(intent,), cancel_sends=op.cancel_sends + 1, cancel_due=False)


def sending(told: Told, effect: str, number: int = 1) -> Told:
    """A reply to round `number`, or a replay, is intended."""
    intent = OpenIntent(TOKEN, effect, number, told.op.cancel_generation, 10.0, 60.0)
    return told.then(intents=(*told.op.intents, intent))


def question(key: str) -> Question:
    return Question(key, "elicitation/create", b"{}", b"d" * 32)


def asks(*keys: str, seq: int = 1, **more: Any) -> InputRequested:
    """The task waits for a person, and lists these."""
    return InputRequested(seq, "input_required", tuple(map(question, keys)), **more)


def asks_first(*keys: str, attempt: int = 1, state: str = "s") -> InputAsked:
    """Asked before a task exists."""
    return InputAsked(attempt, tuple(map(question, keys)), state)


def said(verdict: Verdict, **more: Any) -> VerdictGiven:
    return VerdictGiven(verdict, "ann", "looked at the server", **more)


def in_state(state: State, **values: Any) -> Told:
    """An operation with a known task in a state of its own."""
    policy = values.pop("policy", {})
    values = {
        "task_id": "t-1",
        "sent_attempt": 1,
        "budget_left_s": 100.0,
        "budget_running": state is State.WORKING,
        **values,
    }
    return Told(Operation(ID, POLICY.model_copy(update=policy), state=state, **values))
