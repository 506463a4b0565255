"""Task notifications beside an answer wake a read, whatever the stream holds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters import registry
from counterfoil.adapters.contract import (
    Adapter,
    Answered,
    NoAnswer,
    Reply,
    Sent,
)
from counterfoil.adapters.mcp_hints import MAX_HINTS, MAX_NOTIFICATIONS
from counterfoil.adapters.outcomes import Hint
from counterfoil.adapters.strict_json import is_storable

from .hostile import REPLIES, VALUES, hard
from .kit_mcp import SSE, said

MODERN, LEGACY, SYNC = (registry.adapter(name) for name in ("mcp-2026-07-28", "mcp-2025-11-25", "mcp-sync"))
ADAPTERS = pytest.mark.parametrize("adapter", [MODERN, LEGACY], ids=lambda adapter: adapter.profile.protocol)


def note(method: str = "notifications/tasks", **params: object) -> bytes:
    return b"data: " + json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n\n"


def streamed(*events: bytes) -> Answered:
    return Answered(200, SSE, b"".join(events))


@ADAPTERS
@pytest.mark.parametrize("method", ["notifications/tasks", "notifications/tasks/status"])
def test_a_notification_of_either_version_names_task_and_status(adapter: Adapter, method: str) -> None:
    told = streamed(
        note(method, taskId="t-2", status="working"),
        b": ping\n\n",
        note(method, taskId="t-1"),
        note(method, taskId="t-2", status="completed"),
        b"data: " + said(result={"taskId": "t-3"}) + b"\n\n",
        note(method, taskId="t-1"),
    )
    assert adapter.hints(told) == (Hint("t-2", "working"), Hint("t-1"), Hint("t-2", "completed"))


@ADAPTERS
def test_a_stream_that_was_cut_has_said_what_it_said(adapter: Adapter) -> None:
    cut = note(taskId="t-1") + note(taskId="t-2")[:-9]
    assert adapter.hints(NoAnswer(Sent.MAYBE, "cut", cut)) == (Hint("t-1"),)


@ADAPTERS
@pytest.mark.parametrize(
    "reply",
    [
        Answered(200, {"content-type": "application/json"}, note(taskId="t-1")),
        Answered(200, SSE),
        NoAnswer(Sent.NO, "refused"),
        streamed(note("notifications/progress", taskId="t-1")),
        streamed(note("notifications/tasks/other", taskId="t-1")),
        streamed(note(taskId="")),
        streamed(note(taskId="t" * 513)),
        streamed(note(taskId="t\x00")),
        streamed(note(taskId="\ud800")),
        streamed(note(taskId=7)),
        streamed(note(task={"taskId": "t-1"})),
        streamed(b"data: [notifications\n\n"),
    ],
)
def test_everything_else_is_no_hint(adapter: Adapter, reply: Reply) -> None:
    assert adapter.hints(reply) == ()


def test_a_protocol_without_tasks_has_no_hints() -> None:
    assert SYNC.hints(streamed(note(taskId="t-1"))) == ()


def test_a_flood_is_looked_at_only_so_far() -> None:
    many = MODERN.hints(streamed(*(note(taskId=f"t-{n}") for n in range(MAX_HINTS + 9))))
    assert len(many) == MAX_HINTS
    flood = [note(taskId="t-1")] * MAX_NOTIFICATIONS
    assert MODERN.hints(streamed(*flood, note(taskId="t-2"))) == (Hint("t-1"),)


@given(REPLIES | st.lists(VALUES).map(lambda ids: streamed(*(note(taskId=id_, status=id_) for id_ in ids))))
@hard
def test_a_hostile_stream_gives_storable_hints(reply: Reply) -> None:
    for hint in MODERN.hints(reply):
        assert is_storable(hint.task_id)
        assert hint.status is None or is_storable(hint.status)
