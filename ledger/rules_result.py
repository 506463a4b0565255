"""A status is not a result: what a terminal status with (or without) its result leads to (SPEC section 6)."""

from dataclasses import replace

from .decision import Answer, Decision
from .events import Result
from .rules import unknown
from .states import Lane, Outcome, State

WHY = {
    "E_RESULT_MISSING": "it ended without a result",
    "E_RESULT_TOO_LARGE": "its result is over the cap",
    "E_RESULT_SCHEMA": "its result breaks the output schema",
}


def conclude(decision: Decision, result: Result, lane: Lane) -> Answer:
    """From TERMINAL_OBSERVED or FETCHING_RESULT with a result in hand: accept it, or keep it and ask a person.

    The first valid result stored decides the end, so a later reading that differs meets an operation that is over.
    While what the server says is in question, a result is kept for the person who is asked, and ends nothing.
    """
    op = decision.operation
    if op.state is State.TERMINAL_OBSERVED:
        decision = decision.move(State.FETCHING_RESULT, lane)
        op = decision.operation
    if op.contested:
        return replace(decision, keeps=result if result.body else None)
    if result.problem is not None:
        kept = replace(decision.note(result.problem, WHY[result.problem]), keeps=result if result.body else None)
        return unknown(kept, result.problem, WHY[result.problem])
    decision = having_result(decision, result)
    if op.terminal_status == "failed" or result.tool_error:
        return decision.note("E_TOOL_ERROR", "the tool reported an error").settle(
            State.ACCEPTED, Outcome.FAILED, code="E_TOOL_ERROR", effects=op.policy.effects, terminal="failed"
        )
    return decision.settle(State.ACCEPTED, Outcome.SUCCEEDED, effects=op.policy.effects, terminal="completed")


def having_result(decision: Decision, result: Result) -> Decision:
    """Store the exact bytes with the decision."""
    stored = decision.having(
        result_digest=result.digest, result_pointer=result.pointer, result_value_digest=result.value_digest
    )
    return replace(stored, result=result)
