"""Hostile answers give an outcome that can be stored, never an exception."""

from collections.abc import Mapping
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters import mcp_2026_07_28_answers as answers
from counterfoil.adapters.contract import NoAnswer, Reply, Sent
from counterfoil.adapters.outcomes import (
    NotProcessed,
    NotSent,
    Observation,
    Over,
    ReplyOutcome,
    StillWorking,
    SubmitOutcome,
)
from counterfoil.adapters.strict_json import Json, is_storable, loads, resolve

from .hostile import REPLIES, VALUES, hard, texts_of
from .kit_mcp import cancel, poll, submit


@given(REPLIES)
@hard
def test_a_hostile_answer_to_a_submit_gives_a_storable_outcome(reply: Reply) -> None:
    outcome = submit(reply)
    assert isinstance(outcome, SubmitOutcome)
    assert all(is_storable(text) for text in texts_of(outcome))
    if isinstance(reply, NoAnswer) and reply.sent is Sent.MAYBE:
        assert not isinstance(outcome, NotSent | NotProcessed)


@given(REPLIES)
@hard
def test_a_hostile_answer_to_a_poll_gives_a_storable_outcome(reply: Reply) -> None:
    outcome = poll(reply)
    assert isinstance(outcome, Observation)
    assert all(is_storable(text) for text in texts_of(outcome))
    if isinstance(outcome, StillWorking):
        assert all(n is None or 0 <= n < 2**53 for n in (outcome.ttl_ms, outcome.interval_ms))
    if isinstance(outcome, Over) and outcome.payload is not None:
        resolve(loads(outcome.payload.body), outcome.payload.pointer)


@given(REPLIES)
@hard
def test_a_hostile_answer_to_a_cancel_or_a_reply_never_ends_the_task(reply: Reply) -> None:
    outcome = cancel(reply)
    assert isinstance(outcome, ReplyOutcome)


@given(st.dictionaries(st.sampled_from(["supportedVersions", "capabilities"]), VALUES))
@hard
def test_a_hostile_discover_is_not_offered(result: Mapping[str, object]) -> None:
    hostile = cast("dict[str, Json]", result)
    refusal = answers.read_discover(hostile, "reports", "2026-07-28", "io.modelcontextprotocol/tasks")
    assert refusal is not None
    assert is_storable(refusal.why)
