"""Hostile answers of 2025 servers give an outcome that can be stored, never an exception."""

import json

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters.contract import (
    MAX_REQUESTS_PER_EXCHANGE,
    Answered,
    Call,
    NoAnswer,
    Reply,
    Sent,
)
from counterfoil.adapters.jsonrpc import JsonRpc
from counterfoil.adapters.mcp_2025_11_25 import Mcp20251125
from counterfoil.adapters.mcp_session import Session
from counterfoil.adapters.mcp_sync import McpSync
from counterfoil.adapters.outcomes import (
    Acknowledged,
    CancelOutcome,
    Negotiation,
    NotProcessed,
    NotSent,
    Observation,
    Over,
    SubmitOutcome,
    TaskStarted,
    Terminal,
)
from counterfoil.adapters.strict_json import is_storable, loads, resolve

from .hostile import REPLIES, RESULTS, VALUES, hard, texts_of
from .kit_mcp import CALL, ENDPOINT, Says, play
from .kit_mcp_2025 import SESSION, STATELESS, cancel, fetch, poll, submit

SESSIONS = st.sampled_from([SESSION, STATELESS])
SYNC = McpSync(JsonRpc())


def check(outcome: object) -> None:
    assert all(is_storable(text) for text in texts_of(outcome))
    if isinstance(outcome, Over) and outcome.payload is not None:
        resolve(loads(outcome.payload.body), outcome.payload.pointer)


@given(REPLIES)
@hard
def test_a_hostile_answer_to_a_submit_gives_a_storable_outcome(reply: Reply) -> None:
    for outcome in (submit(reply), SYNC.read_submit(ENDPOINT, CALL, reply)):
        assert isinstance(outcome, SubmitOutcome)
        check(outcome)
        if isinstance(reply, NoAnswer) and reply.sent is Sent.MAYBE:
            assert not isinstance(outcome, NotSent | NotProcessed)
    assert not isinstance(SYNC.read_submit(ENDPOINT, CALL, reply), TaskStarted)


@given(REPLIES, SESSIONS)
@hard
def test_a_hostile_answer_to_a_poll_gives_a_storable_outcome_without_a_result(reply: Reply, session: Session) -> None:
    outcome = poll(reply, session)
    assert isinstance(outcome, Observation)
    check(outcome)
    if isinstance(outcome, Over):
        assert outcome.payload is None


@given(REPLIES, st.sampled_from([None, "completed", "failed", "cancelled", "working", "\x00"]))
@hard
def test_a_hostile_answer_to_a_fetch_never_changes_the_status_word(reply: Reply, terminal: str | None) -> None:
    outcome = fetch(reply, terminal)
    assert isinstance(outcome, Observation)
    check(outcome)
    if isinstance(outcome, Over):
        known = terminal if terminal in list(Terminal) else "completed"
        assert (outcome.terminal, outcome.status) == (known, known)


@given(REPLIES)
@hard
def test_a_hostile_answer_to_a_cancel_is_evidence_only_if_it_names_the_task(reply: Reply) -> None:
    outcome = cancel(reply)
    assert isinstance(outcome, CancelOutcome)
    check(outcome)
    if isinstance(outcome, Acknowledged):
        assert b'"t-1"' in reply.body  # type: ignore[union-attr]


@given(
    st.sampled_from([Mcp20251125, McpSync]),
    VALUES,
    st.lists(
        REPLIES
        | RESULTS.map(lambda result: Says({"result": result}))
        | RESULTS.map(lambda result: Says({"result": {"tools": [result | {"name": "generate"}]}})),
        min_size=MAX_REQUESTS_PER_EXCHANGE - 2,
    ),
)
@hard
def test_a_hostile_negotiation_comes_to_an_end(
    kind: type[Mcp20251125] | type[McpSync], capabilities: object, told: list[Reply | Says]
) -> None:
    hello = Says({"result": {"protocolVersion": "2025-11-25", "capabilities": capabilities}})
    outcome, sent = play(kind(JsonRpc()).negotiate(ENDPOINT, "generate"), [hello, Answered(202), *told])
    assert isinstance(outcome, Negotiation)
    assert len(sent) <= MAX_REQUESTS_PER_EXCHANGE
    check(outcome)


@given(st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
@hard
def test_whatever_the_session_bytes_hold_only_plain_headers_leave(packed: bytes) -> None:
    exchange = SYNC.submit(ENDPOINT, Call("generate", b"{}", "key-1", 9.0, session=packed))
    for _, value in next(exchange).headers:
        assert value.isascii()
        assert value.isprintable()
