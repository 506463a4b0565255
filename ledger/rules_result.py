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

    The first valid result stored wins; another digest afterwards is a case and changes nothing.
    """
    op = decision.operation
    if op.state is State.TERMINAL_OBSERVED:
        decision = decision.move(State.FETCHING_RESULT, lane)
        op = decision.operation
    if result.problem is not None:
        return unknown(decision.note(result.problem, WHY[result.problem]), result.problem, WHY[result.problem])
    if op.result_digest is not None and op.result_digest != result.digest:
        return unknown(decision, "E_RESULT_DIGEST_CONFLICT", "two readings of the result differ")
    decision = replace(
        decision.having(result_digest=result.digest, result_pointer=result.pointer, cases=()),
        result=result,
        closes=("UNKNOWN",),
    )
    if op.terminal_status == "failed" or result.tool_error:
        return decision.note("E_TOOL_ERROR", "the tool reported an error").settle(
            State.ACCEPTED, Outcome.FAILED, code="E_TOOL_ERROR", effects=op.policy.effects, terminal="failed"
        )
    return decision.settle(State.ACCEPTED, Outcome.SUCCEEDED, effects=op.policy.effects, terminal="completed")
