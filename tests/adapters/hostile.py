"""Strategies for answers that a hostile or broken MCP server might give, and how hard it is tried."""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from counterfoil.adapters.contract import Answered, NoAnswer, Sent
from counterfoil.adapters.strict_json import MAX_DEPTH

from .kit_mcp import said

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "500"))


def hard(test: Callable[..., None]) -> Any:
    """A test that `make fuzz` gives 10,000 examples, and every other run 500."""
    return pytest.mark.fuzz(settings(max_examples=EXAMPLES)(test))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["task", "complete", "t-1", "working", "completed", "failed", "cancelled", "input_required", "\x00", "\ud800"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = st.sampled_from(
    [
        "resultType",
        "taskId",
        "status",
        "createdAt",
        "ttlMs",
        "pollIntervalMs",
        "statusMessage",
        "result",
        "error",
        "inputRequests",
        "requestState",
        "content",
        "structuredContent",
        "isError",
        "task",
        "ttl",
        "pollInterval",
        "_meta",
        "tools",
        "nextCursor",
        "inputSchema",
        "execution",
        "version",
    ]
)
RESULTS = st.dictionaries(MEMBERS, VALUES, max_size=8)
HEADERS = st.dictionaries(
    st.sampled_from(["content-type", "retry-after", "date", "www-authenticate", "mcp-session-id"]),
    st.sampled_from(
        ["text/event-stream", "application/json", "7", "soon", "Sun, 29 Nov 2026 10:00:00 GMT", "", "\xe9"]
    ),
)
CODES = st.integers() | st.sampled_from([-32600, -32601, -32602, -32603, -32000, -32001])
BODIES = (
    st.binary(max_size=80)
    | RESULTS.map(lambda result: said(result=result))
    | RESULTS.map(lambda result: said(result=result | {"taskId": "t-1"}))
    | RESULTS.map(lambda result: said(result={"task": result | {"taskId": "t-1"}}))
    | VALUES.map(lambda value: said(result=value))
    | VALUES.map(lambda value: said(error=value))
    | CODES.map(lambda code: said(error={"code": code, "message": "\x00"}))
    | CODES.map(lambda code: said(id=None, error={"code": code, "message": "\ud800"}))
    | RESULTS.map(lambda result: b"data: " + said(result=result | {"taskId": "t-1"}) + b"\n\n")
    | st.just(b"[" * (MAX_DEPTH + 1))
)
REPLIES = st.one_of(
    st.builds(Answered, st.integers(100, 599) | st.sampled_from([200, 400, 404]), HEADERS, BODIES),
    st.builds(Answered, st.just(200), HEADERS, BODIES),
    st.builds(NoAnswer, st.sampled_from(Sent), st.just("why"), BODIES),
)


def texts_of(outcome: object) -> list[str]:
    """Every text of an outcome, but for exact bytes."""
    found = []
    for name in getattr(outcome, "__slots__", ()):
        value = getattr(outcome, name)
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, tuple):
            found += [text for item in value for text in texts_of(item)]
    return found
