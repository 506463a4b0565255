"""A2A 1.0: what is sent, and what an agent by the protocol's text makes of it."""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from counterfoil.adapters.a2a import PROFILE, A2a10
from counterfoil.adapters.contract import (
    MAX_REQUESTS_PER_EXCHANGE,
    Answered,
    Call,
    Effect,
    NoAnswer,
    Search,
    Sent,
)
from counterfoil.adapters.jsonrpc import JsonRpc
from counterfoil.adapters.outcomes import (
    Absent,
    Acknowledged,
    Busy,
    Found,
    Negotiated,
    NoAccess,
    NoSuchVerb,
    NotOffered,
    Over,
    Payload,
    StillWorking,
    TaskStarted,
    Terminal,
    Unclear,
)
from counterfoil.adapters.profile import Lookup, ReplyReplay
from counterfoil.adapters.strict_json import loads, resolve
from counterfoil.workers import schemas

from .a2a_server import Agent, card, error, result
from .kit_a2a import CALL, ENDPOINT, KEY, URL, play, started


@pytest.fixture
def adapter() -> A2a10:
    numbers = itertools.count(1)
    return A2a10(JsonRpc(lambda: f"r-{next(numbers)}"))


@pytest.fixture
def agent() -> Agent:
    return Agent(URL)


# -- negotiate ---------------------------------------------------------------------------------------------------------


def test_a_skill_of_the_card_is_negotiated_as_a_tool(adapter: A2a10, agent: Agent) -> None:
    outcome, sent = play(adapter.negotiate(ENDPOINT, "generate"), agent.answer)
    assert isinstance(outcome, Negotiated)
    assert (outcome.protocol, outcome.tool_version) == ("a2a-1.0", "1.2.0")
    descriptor = json.loads(outcome.descriptor)
    assert (descriptor["name"], descriptor["skill"]["id"]) == ("generate", "generate")
    assert all(request.method == "GET" and request.effect is None for request in sent)
    assert all(("A2A-Version", "1.0") in request.headers and request.deadline_s == 7.0 for request in sent)


def test_the_card_is_looked_for_beside_the_agent_and_then_at_its_origin(adapter: A2a10, agent: Agent) -> None:
    _, sent = play(adapter.negotiate(ENDPOINT, "generate"), agent.answer)
    assert [request.url for request in sent] == [
        "http://127.0.0.1:1/agent/.well-known/agent-card.json",
        "http://127.0.0.1:1/.well-known/agent-card.json",
    ]


def test_a_card_beside_the_agent_counts_and_no_other_is_asked_for(adapter: A2a10, agent: Agent) -> None:
    agent.rules["card"] = lambda _: Answered(200, {}, json.dumps(card(URL)).encode())
    outcome, sent = play(adapter.negotiate(ENDPOINT, "generate"), agent.answer)
    assert isinstance(outcome, Negotiated)
    assert len(sent) == 1


def test_a_skill_that_only_the_extended_card_has_is_found_there(adapter: A2a10, agent: Agent) -> None:
    agent.card["capabilities"]["extendedAgentCard"] = True
    shown = card(URL, skills=[{"id": "secret", "name": "s", "description": "d", "tags": []}])
    agent.rules["GetExtendedAgentCard"] = lambda asked: result(asked, shown)
    outcome, sent = play(adapter.negotiate(ENDPOINT, "secret"), agent.answer)
    assert isinstance(outcome, Negotiated)
    assert json.loads(sent[-1].body)["method"] == "GetExtendedAgentCard"


@pytest.mark.parametrize("says", [lambda asked: error(asked, -32007), lambda _: Answered(200, {}, b"<html>")])
def test_an_extended_card_that_is_not_shown_leaves_the_skill_unknown(
    adapter: A2a10, agent: Agent, says: Callable[[Any], Answered]
) -> None:
    agent.card["capabilities"]["extendedAgentCard"] = True
    agent.rules["GetExtendedAgentCard"] = says
    outcome, _ = play(adapter.negotiate(ENDPOINT, "secret"), agent.answer)
    assert isinstance(outcome, NotOffered)
    assert (outcome.code, outcome.others) == ("E_TOOL_UNKNOWN", ("generate", "publish"))


def test_an_unknown_skill_names_the_nearest(adapter: A2a10, agent: Agent) -> None:
    outcome, _ = play(adapter.negotiate(ENDPOINT, "generat"), agent.answer)
    assert outcome == NotOffered(
        "E_TOOL_UNKNOWN",
        "Not sent: the card of reports has no skill generat. Near names: generate.",
        ("generate", "publish"),
    )


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answered(503, {"retry-after": "7"}), Busy),
        (NoAnswer(Sent.NO, "refused"), Busy),
        (Answered(401), NoAccess),
        (Answered(404), NotOffered),
    ],
)
def test_a_card_that_can_not_be_had_says_why(adapter: A2a10, answer: Answered | NoAnswer, kind: type[object]) -> None:
    outcome, _ = play(adapter.negotiate(ENDPOINT, "generate"), lambda _: answer)
    assert isinstance(outcome, kind)


# -- submit ------------------------------------------------------------------------------------------------------------


def test_a_submit_is_one_message_that_carries_the_key_and_waits_for_nothing(adapter: A2a10, agent: Agent) -> None:
    outcome, (request,) = play(adapter.submit(ENDPOINT, CALL), agent.answer)
    assert outcome == TaskStarted("task-1", "working", None, None, None)
    assert (request.method, request.url, request.effect, request.deadline_s) == ("POST", URL, Effect.SUBMIT, 60.0)
    assert ("A2A-Version", "1.0") in request.headers
    body = json.loads(request.body)
    assert (body["id"], body["method"]) == ("send-token", "SendMessage")
    assert body["params"]["configuration"] == {"returnImmediately": True, "historyLength": 0}
    message = body["params"]["message"]
    assert (message["messageId"], message["contextId"], message["role"]) == (KEY, KEY, "ROLE_USER")
    assert message["metadata"] == {"dev.counterfoil/skill": "generate", "dev.counterfoil/submission-key": KEY}


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (b'{"text":"a report, please"}', b'[{"text":"a report, please"}]'),
        (b'{"data":{"n":1e+21}}', b'[{"data":{"n":1e+21}}]'),
        (b'{"parts":[{"text":"this"},{"url":"https://x/y"}]}', b'[{"text":"this"},{"url":"https://x/y"}]'),
        (b'{"data":{"parts":[1]}}', b'[{"data":{"parts":[1]}}]'),
    ],
)
def test_the_digested_arguments_leave_byte_for_byte_as_the_parts(
    adapter: A2a10, arguments: bytes, parts: bytes
) -> None:
    (request,) = [next(adapter.submit(ENDPOINT, Call("generate", arguments, KEY, 60.0)))]
    assert b'"parts":' + parts in request.body
    json.loads(request.body)


def test_arguments_are_one_part_or_parts_and_nothing_else(adapter: A2a10, agent: Agent) -> None:
    outcome, _ = play(adapter.negotiate(ENDPOINT, "generate"), agent.answer)
    assert isinstance(outcome, Negotiated)
    assert outcome.input_schema is not None
    for fits in ({"text": "x"}, {"data": None}, {"url": "u", "mediaType": "t"}, {"parts": [{"text": "x"}]}):
        assert schemas.check(outcome.input_schema, fits) == [], fits
    for misfit in ({}, {"month": "2026-10"}, {"text": "x", "data": 1}, {"parts": []}, {"parts": [{}]}, {"text": 1}):
        assert schemas.check(outcome.input_schema, misfit), misfit
    assert schemas.check(outcome.input_schema, {"parts": [{"text": "x"}], "text": "x"})


def test_the_same_submit_twice_is_two_tasks_so_nothing_may_be_sent_again(adapter: A2a10, agent: Agent) -> None:
    started(adapter, agent)
    started(adapter, agent)
    assert agent.runs == [KEY, KEY]
    assert PROFILE.lookup is Lookup.NONE
    assert PROFILE.reply_replay is ReplyReplay.NEVER


def test_a_message_instead_of_a_task_is_the_result_at_once(adapter: A2a10, agent: Agent) -> None:
    said = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "2 + 2 is 4"}]}
    agent.rules["SendMessage"] = lambda asked: result(asked, {"message": said})
    outcome, _ = play(adapter.submit(ENDPOINT, CALL), agent.answer)
    assert isinstance(outcome, Over)
    assert isinstance(outcome.payload, Payload)
    assert resolve(loads(outcome.payload.body), outcome.payload.pointer) == [{"text": "2 + 2 is 4"}]


# -- lookup ------------------------------------------------------------------------------------------------------------

SEARCH = Search("generate", KEY, 1, "ListTasks")


def test_where_no_lookup_is_declared_the_context_is_the_agents_to_choose(adapter: A2a10, agent: Agent) -> None:
    _, (request,) = play(adapter.submit(ENDPOINT, replace(CALL, lookup_tool="")), agent.answer)
    assert "contextId" not in json.loads(request.body)["params"]["message"]


def test_a_lost_submit_is_found_by_its_context(adapter: A2a10, agent: Agent) -> None:
    started(adapter, agent)
    outcome, (request,) = play(adapter.lookup(ENDPOINT, SEARCH), agent.answer)
    assert outcome == Found(TaskStarted("task-1", "working", None, None, None))
    assert request.effect is None
    assert json.loads(request.body)["params"] == {"contextId": KEY, "historyLength": 0, "pageSize": 100}


def test_two_tasks_in_the_context_are_a_persons_business(adapter: A2a10, agent: Agent) -> None:
    started(adapter, agent)
    started(adapter, agent)
    outcome, _ = play(adapter.lookup(ENDPOINT, SEARCH), agent.answer)
    assert outcome == Unclear("E_KEY_UNSURE", "2 tasks stand under the key")


def test_an_empty_list_is_absence_in_the_agents_own_words(adapter: A2a10, agent: Agent) -> None:
    outcome, _ = play(adapter.lookup(ENDPOINT, SEARCH), agent.answer)
    assert outcome == Absent(authoritative=True)


def test_an_agent_that_does_not_heed_the_filter_proves_no_absence(adapter: A2a10, agent: Agent) -> None:
    stranger = {"id": "t-9", "contextId": "another", "status": {"state": "TASK_STATE_WORKING"}}
    agent.rules["ListTasks"] = lambda asked: result(asked, {"tasks": [stranger], "nextPageToken": ""})
    outcome, _ = play(adapter.lookup(ENDPOINT, SEARCH), agent.answer)
    assert isinstance(outcome, Unclear)


def test_the_list_is_read_page_by_page_and_not_for_ever(adapter: A2a10, agent: Agent) -> None:
    task = {"id": "t-1", "contextId": KEY, "status": {"state": "TASK_STATE_WORKING"}}
    pages = {"": {"tasks": [], "nextPageToken": "p2"}, "p2": {"tasks": [task], "nextPageToken": ""}}
    agent.rules["ListTasks"] = lambda asked: result(asked, pages[asked["params"].get("pageToken", "")])
    outcome, sent = play(adapter.lookup(ENDPOINT, SEARCH), agent.answer)
    assert isinstance(outcome, Found)
    assert len(sent) == 2
    agent.rules["ListTasks"] = lambda asked: result(asked, {"tasks": [], "nextPageToken": "again"})
    outcome, sent = play(adapter.lookup(ENDPOINT, SEARCH), agent.answer)
    assert isinstance(outcome, Unclear)
    assert len(sent) == MAX_REQUESTS_PER_EXCHANGE


def test_an_agent_without_a_list_has_no_lookup(adapter: A2a10, agent: Agent) -> None:
    agent.rules["ListTasks"] = lambda asked: error(asked, -32601)
    outcome, _ = play(adapter.lookup(ENDPOINT, SEARCH), agent.answer)
    assert isinstance(outcome, NoSuchVerb)


def test_a_target_that_declares_another_lookup_asks_nothing(adapter: A2a10, agent: Agent) -> None:
    outcome, sent = play(adapter.lookup(ENDPOINT, Search("generate", KEY, 1, "counterfoil_lookup")), agent.answer)
    assert isinstance(outcome, NoSuchVerb)
    assert sent == []


# -- poll, fetch -------------------------------------------------------------------------------------------------------


def test_a_task_is_read_without_its_history_until_its_artifacts_are_the_result(adapter: A2a10, agent: Agent) -> None:
    task = started(adapter, agent)
    seen, (request,) = play(adapter.poll(ENDPOINT, task), agent.answer)
    assert seen == StillWorking("working", None, None, None)
    assert json.loads(request.body)["params"] == {"id": "task-1", "historyLength": 0}
    agent.complete("task-1", {"pages": 3})
    for read in (adapter.poll, adapter.fetch):
        over, _ = play(read(ENDPOINT, task), agent.answer)
        assert isinstance(over, Over)
        assert (over.terminal, over.status) == (Terminal.COMPLETED, "completed")
        assert over.payload is not None
        artifacts = resolve(loads(over.payload.body), over.payload.pointer)
        assert artifacts == [{"artifactId": "a-1", "name": "report", "parts": [{"data": {"pages": 3}}]}]


def test_another_state_after_an_end_is_read_as_what_it_is(adapter: A2a10, agent: Agent) -> None:
    """A terminal state is not trusted to absorb: the adapter hides nothing of it, and the ledger refuses it
    (E_STATUS_REGRESSED)."""
    task = started(adapter, agent)
    agent.set("task-1", "CANCELED")
    first, _ = play(adapter.poll(ENDPOINT, task), agent.answer)
    agent.set("task-1", "WORKING")
    second, _ = play(adapter.poll(ENDPOINT, task), agent.answer)
    agent.complete("task-1", {"pages": 3})
    third, _ = play(adapter.poll(ENDPOINT, task), agent.answer)
    assert [getattr(seen, "status", None) for seen in (first, second, third)] == ["canceled", "working", "completed"]


# -- cancel ------------------------------------------------------------------------------------------------------------


def test_a_cancel_is_acknowledged_with_the_state_that_it_found(adapter: A2a10, agent: Agent) -> None:
    task = started(adapter, agent)
    outcome, (request,) = play(adapter.cancel(ENDPOINT, task), agent.answer)
    assert outcome == Acknowledged("canceled")
    assert request.effect is Effect.CANCEL
    assert not PROFILE.cancel_is_evidence
    agent.complete("task-1", {"pages": 3})
    agent.rules["CancelTask"] = lambda asked: result(asked, agent.tasks["task-1"])
    assert play(adapter.cancel(ENDPOINT, task), agent.answer)[0] == Acknowledged("completed")
