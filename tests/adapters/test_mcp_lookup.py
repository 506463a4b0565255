"""What a lookup tool's answer says of a lost submit: one contract for every version, through each adapter."""

import json
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters import registry
from counterfoil.adapters.contract import (
    Adapter,
    Answered,
    NoAnswer,
    Reply,
    Search,
    Sent,
)
from counterfoil.adapters.mcp_session import Session
from counterfoil.adapters.outcomes import (
    Absent,
    Busy,
    Found,
    FoundOver,
    FoundRunning,
    LookupOutcome,
    NoAccess,
    NoSuchVerb,
    Over,
    SessionGone,
    TaskStarted,
    Terminal,
    Unclear,
)
from counterfoil.adapters.strict_json import is_storable, loads, resolve

from .hostile import REPLIES, VALUES, hard, texts_of
from .kit_mcp import ENDPOINT, Says, error, play

MODERN, LEGACY, SYNC = (registry.adapter(name) for name in ("mcp-2026-07-28", "mcp-2025-11-25", "mcp-sync"))
ADAPTERS = pytest.mark.parametrize("adapter", [MODERN, LEGACY, SYNC], ids=lambda adapter: adapter.profile.protocol)
SEARCH = Search("generate", "key-1", 2, "counterfoil_lookup", Session("2025-11-25", "s-1").pack())
TASK = {"taskId": "t-1", "status": "working", "createdAt": "at", "ttlMs": 60000, "pollIntervalMs": 500}
DONE = {"content": [{"type": "text", "text": "3"}], "structuredContent": {"rows": 3}, "isError": False}


def told(answer: object, **more: object) -> Says:
    return Says({"result": {"content": [], "structuredContent": answer} | more})


def in_text(answer: object) -> Says:
    return Says({"result": {"content": [{"type": "text", "text": json.dumps(answer)}]}})


def lookup(reply: Reply | Says | Mapping[str, object], adapter: Adapter = MODERN) -> LookupOutcome:
    outcome, _ = play(adapter.lookup(ENDPOINT, SEARCH), [reply])
    return outcome


# -- what is asked -----------------------------------------------------------------------------------------------------


@ADAPTERS
def test_a_lookup_is_one_read_that_names_key_tool_and_attempt(adapter: Adapter) -> None:
    _, [request] = play(adapter.lookup(ENDPOINT, SEARCH), [told({"found": False, "authoritative": True})])
    assert request.effect is None
    assert request.deadline_s == ENDPOINT.deadline_s
    body = json.loads(request.body)
    assert body["method"] == "tools/call"
    assert body["params"]["name"] == "counterfoil_lookup"
    assert body["params"]["arguments"] == {"submission_key": "key-1", "tool": "generate", "attempt": 2}
    assert "task" not in body["params"]
    assert (("Mcp-Session-Id", "s-1") in request.headers) == adapter.profile.sessions


def test_a_lookup_declares_neither_tasks_nor_questions_so_that_it_is_answered_at_once() -> None:
    _, [request] = play(MODERN.lookup(ENDPOINT, SEARCH), [told({"found": False, "authoritative": True})])
    assert json.loads(request.body)["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] == {}
    assert ("Mcp-Name", "counterfoil_lookup") in request.headers


# -- what is answered --------------------------------------------------------------------------------------------------


@ADAPTERS
@pytest.mark.parametrize("form", [told, in_text])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"found": False, "authoritative": True}, Absent(True)),
        ({"found": False, "authoritative": False}, Absent(False)),
        ({"found": False, "authoritative": True, "taskId": None, "running": False}, Absent(True)),
        ({"found": True, "running": True}, FoundRunning()),
        (
            {"found": True, "unsure": True},
            Unclear("E_KEY_UNSURE", "the server knows the key, but not what became of the call"),
        ),
        (
            {"found": True, "conflict": True},
            Unclear("E_KEY_REUSED_DIFFERENT_REQUEST", "the server knows the key with another request"),
        ),
    ],
)
def test_each_word_of_the_contract_is_one_outcome(
    adapter: Adapter, form: Callable[[object], Says], answer: object, expected: LookupOutcome
) -> None:
    assert lookup(form(answer), adapter) == expected


@pytest.mark.parametrize("adapter", [MODERN, LEGACY])
@pytest.mark.parametrize("form", [told, in_text])
def test_a_task_is_found_with_its_times(adapter: Adapter, form: Callable[[object], Says]) -> None:
    assert lookup(form({"found": True} | TASK), adapter) == Found(TaskStarted("t-1", "working", "at", 60000, 500))
    assert lookup(form({"found": True, "taskId": "t-1", "ttlMs": None}), adapter) == Found(
        TaskStarted("t-1", "", None, None, None)
    )
    for status in ("completed", "failed", "cancelled"):
        ended = {"found": True, "taskId": "t-1", "status": status}
        assert lookup(form(ended), adapter) == Found(TaskStarted("t-1", status, None, None, None, over=True))


def test_a_protocol_without_tasks_has_no_use_for_a_task() -> None:
    outcome = lookup(told({"found": True} | TASK), SYNC)
    assert isinstance(outcome, Unclear)
    assert outcome.code == "E_PROTOCOL_MIX"


@ADAPTERS
@pytest.mark.parametrize(
    ("result", "below", "value", "tool_error"),
    [
        (DONE, "/structuredContent", {"rows": 3}, False),
        ({"content": []}, "", {"content": []}, False),
        ({"content": [], "isError": True}, "", {"content": [], "isError": True}, True),
    ],
)
def test_a_result_is_pointed_at_in_the_exact_bytes(
    adapter: Adapter, result: object, below: str, value: object, tool_error: bool
) -> None:
    outcome = lookup(told({"found": True, "result": result}), adapter)
    assert isinstance(outcome, FoundOver)
    over = outcome.over
    assert (over.terminal, over.tool_error) == (Terminal.COMPLETED, tool_error)
    assert over.payload is not None
    assert over.payload.pointer == f"/result/structuredContent/result{below}"
    assert resolve(loads(over.payload.body), over.payload.pointer) == value


@ADAPTERS
@pytest.mark.parametrize(
    "reply",
    [
        told({"found": False}),
        told({"found": False, "authoritative": "yes"}),
        told({"found": False, "authoritative": True, "taskId": "t-1"}),
        told({"found": False, "authoritative": True, "result": DONE}),
        told({"found": False, "authoritative": True, "running": True}),
        told({"found": True}),
        told({"found": "true", "running": True}),
        told({"found": 1, "running": True}),
        told({"running": True}),
        told({"found": True, "running": "yes"}),
        told({"found": True, "conflict": 1}),
        told({"found": True, "running": True, "unsure": True}),
        told({"found": True, "taskId": "t-1", "result": DONE}),
        told({"found": True, "result": []}),
        told({"found": True, "result": {}}),
        told([]),
        told("found"),
        told(None),
        Says({"result": {"content": [{"type": "text", "text": "not found"}]}}),
        Says({"result": {"content": [{"type": "text", "text": "\ud800"}]}}),
        Says({"result": {"content": [{"type": "image", "text": '{"found": false}'}]}}),
        Says({"result": {"content": [{"type": "text", "text": "{}"}] * 2}}),
        Says({"result": {}}),
        Says({"result": "found"}),
        in_text({"found": True, "result": DONE}),
        in_text([{"found": False, "authoritative": True}]),
        told({"found": False, "authoritative": True}, resultType="task"),
        told({"found": False, "authoritative": True}, resultType="input_required"),
    ],
)
def test_what_says_less_or_two_things_at_once_says_nothing(adapter: Adapter, reply: Says) -> None:
    outcome = lookup(reply, adapter)
    assert isinstance(outcome, Unclear)
    assert outcome.code == "E_UNREADABLE_ANSWER"


@pytest.mark.parametrize("task_id", ["", "t\x00", "t" * 513, 7, ["t-1"]])
@pytest.mark.parametrize("adapter", [MODERN, LEGACY])
def test_a_task_whose_id_cannot_be_asked_for_is_not_found(adapter: Adapter, task_id: object) -> None:
    assert isinstance(lookup(told({"found": True, "taskId": task_id}), adapter), Unclear)


@ADAPTERS
def test_a_handle_does_not_pass_for_a_result(adapter: Adapter) -> None:
    outcome = lookup(told({"found": True, "result": {"task": TASK, "content": []}}), adapter)
    assert isinstance(outcome, Unclear)
    assert outcome.code == "E_PROTOCOL_MIX"


@ADAPTERS
@pytest.mark.parametrize(
    ("result", "why"),
    [
        ({"content": [{"type": "text", "text": "no store\x00"}], "isError": True}, "no store\N{REPLACEMENT CHARACTER}"),
        ({"content": [], "isError": True}, "the lookup tool reported an error"),
        ({"content": [{"type": "text"}], "isError": "yes"}, "the lookup tool reported an error"),
        (
            {"structuredContent": {"found": False, "authoritative": True}, "isError": True},
            "the lookup tool reported an error",
        ),
    ],
)
def test_an_error_of_the_lookup_tool_is_never_an_absence(
    adapter: Adapter, result: Mapping[str, object], why: str
) -> None:
    assert lookup(Says({"result": result}), adapter) == Unclear("E_LOOKUP_FAILED", why)


# -- no answer ---------------------------------------------------------------------------------------------------------


@ADAPTERS
@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (error(-32601), NoSuchVerb("error -32601: no")),
        (error(-32602), NoSuchVerb("error -32602: no")),
        (error(-32021), NoSuchVerb("error -32021: no")),
        (
            error(-32602, {"code": "E_KEY_REUSED_DIFFERENT_REQUEST"}),
            Unclear("E_KEY_REUSED_DIFFERENT_REQUEST", "no"),
        ),
        (error(-32603), Busy("-32603")),
        (Answered(503, {"retry-after": "7"}, b""), Busy("HTTP 503", 7.0, closes_target=True)),
        (Answered(401, {}, b""), NoAccess("HTTP 401: the server wants another credential")),
        (Answered(200, {}, b"<html>"), Busy("E_UNREADABLE_ANSWER")),
        (NoAnswer(Sent.MAYBE, "reset"), Busy("E_NO_ANSWER")),
        (NoAnswer(Sent.NO, "refused"), Busy("E_NO_CONNECTION")),
        (NoAnswer(Sent.MAYBE, "too large", b"x" * 2000), Unclear("E_RESULT_TOO_LARGE", "too large")),
    ],
)
def test_no_answer_is_a_trouble_of_a_read_or_a_tool_that_is_not_there(
    adapter: Adapter, reply: Reply | Mapping[str, object], expected: LookupOutcome
) -> None:
    assert lookup(reply, adapter) == expected


@pytest.mark.parametrize("adapter", [LEGACY, SYNC])
def test_a_session_that_is_gone_says_nothing_of_the_key(adapter: Adapter) -> None:
    assert lookup(Answered(404, {}, b""), adapter) == SessionGone("HTTP 404")
    assert isinstance(lookup(Says(error(-32000), 400), adapter), SessionGone)


FINDINGS = st.dictionaries(
    st.sampled_from(["found", "authoritative", "taskId", "running", "result", "unsure", "conflict", "ttlMs", "status"]),
    VALUES | st.just(DONE),
    max_size=5,
)


@given(
    st.sampled_from([MODERN, LEGACY, SYNC]),
    REPLIES
    | FINDINGS.map(told)
    | FINDINGS.map(lambda answer: told(answer | {"found": True}))
    | FINDINGS.map(in_text)
    | VALUES.map(lambda value: Says({"result": value})),
)
@hard
def test_a_hostile_answer_to_a_lookup_gives_a_storable_outcome(adapter: Adapter, reply: Reply | Says) -> None:
    outcome = lookup(reply, adapter)
    assert isinstance(outcome, LookupOutcome)
    found = outcome.over if isinstance(outcome, FoundOver) else outcome.task if isinstance(outcome, Found) else outcome
    assert all(is_storable(text) for text in texts_of(found))
    if isinstance(found, Over) and found.payload is not None:
        resolve(loads(found.payload.body), found.payload.pointer)
