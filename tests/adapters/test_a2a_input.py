"""A2A 1.0: a task that waits, and what people say to it."""

import itertools
import json

import pytest

from counterfoil.adapters.a2a import A2a10
from counterfoil.adapters.contract import Effect, InputReply, RemoteTask
from counterfoil.adapters.jsonrpc import JsonRpc
from counterfoil.adapters.outcomes import Acknowledged, NeedsInput, StillWorking
from counterfoil.workers import schemas

from .a2a_server import AT, Agent, question
from .kit_a2a import ENDPOINT, URL, play, started


@pytest.fixture
def adapter() -> A2a10:
    numbers = itertools.count(1)
    return A2a10(JsonRpc(lambda: f"r-{next(numbers)}"))


@pytest.fixture
def agent() -> Agent:
    return Agent(URL)


def waiting(adapter: A2a10, agent: Agent, state: str = "INPUT_REQUIRED") -> tuple[RemoteTask, NeedsInput]:
    task = started(adapter, agent)
    agent.set("task-1", state, question("Which paper?"))
    seen, _ = play(adapter.poll(ENDPOINT, task), agent.answer)
    assert isinstance(seen, NeedsInput)
    return task, seen


@pytest.mark.parametrize(
    ("state", "status", "method"),
    [
        ("INPUT_REQUIRED", "input_required", "a2a/input-required"),
        ("AUTH_REQUIRED", "auth_required", "a2a/auth-required"),
    ],
)
def test_a_task_that_waits_asks_with_its_status_message(
    adapter: A2a10, agent: Agent, state: str, status: str, method: str
) -> None:
    task, seen = waiting(adapter, agent, state)
    (key,) = seen.keys
    assert (seen.status, key.key, key.method) == (status, "q-1", method)
    params = json.loads(key.params)
    assert (params["message"], params["parts"]) == ("Which paper?", [{"text": "Which paper?"}])
    assert schemas.check(json.dumps(params["requestedSchema"]).encode(), {"text": "A4"}) == []
    assert adapter.read_input(ENDPOINT, task, seen.body) == seen


def test_a_reply_is_a_message_to_the_task_under_an_id_of_its_own(adapter: A2a10, agent: Agent) -> None:
    task, seen = waiting(adapter, agent)
    content = b'{"action":"accept","content":{"text":"A4"}}'
    outcome, (request,) = play(
        adapter.reply(ENDPOINT, task, InputReply("q-1", seen.keys[0].method, content)), agent.answer
    )
    assert outcome == Acknowledged("working")
    assert request.effect is Effect.ANSWER
    message = json.loads(request.body)["params"]["message"]
    assert (message["taskId"], message["parts"]) == ("task-1", [{"text": "A4"}])
    again = next(adapter.reply(ENDPOINT, task, InputReply("q-1", seen.keys[0].method, content)))
    other = next(adapter.reply(ENDPOINT, task, InputReply("q-2", seen.keys[0].method, content)))
    ids = [json.loads(one.body)["params"]["message"]["messageId"] for one in (again, other)]
    assert ids[0] == message["messageId"] != ids[1]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b'{"action":"accept","content":{"data":{"paper":"A4"}}}', [{"data": {"paper": "A4"}}]),
        (b'{"action":"accept","content":{"parts":[{"text":"A4"},{"text":"2"}]}}', [{"text": "A4"}, {"text": "2"}]),
        (b'{"action":"decline"}', [{"text": "decline"}]),
        (b'{"action":"cancel"}', [{"text": "cancel"}]),
    ],
)
def test_a_persons_word_is_said_as_parts(adapter: A2a10, content: bytes, parts: list[object]) -> None:
    request = next(adapter.reply(ENDPOINT, RemoteTask("task-1"), InputReply("q-1", "a2a/input-required", content)))
    assert json.loads(request.body)["params"]["message"]["parts"] == parts


def test_a_lost_reply_that_arrived_is_seen_in_the_history_and_not_asked_for_again(adapter: A2a10, agent: Agent) -> None:
    """The agent took the reply, its answer was lost, and its state still says that it waits."""
    task, seen = waiting(adapter, agent)
    lost = next(adapter.reply(ENDPOINT, task, InputReply("q-1", seen.keys[0].method, b'{"action":"decline"}')))
    agent.tasks["task-1"]["history"].append(json.loads(lost.body)["params"]["message"])
    outcome, sent = play(adapter.poll(ENDPOINT, task), agent.answer)
    assert outcome == StillWorking("input_required", None, None, None)
    assert [json.loads(request.body)["params"]["historyLength"] for request in sent] == [0, 10]


def test_a_question_that_is_known_costs_one_reading(adapter: A2a10, agent: Agent) -> None:
    waiting(adapter, agent)
    outcome, sent = play(adapter.poll(ENDPOINT, RemoteTask("task-1", reads_question=False)), agent.answer)
    assert isinstance(outcome, NeedsInput)
    assert len(sent) == 1


def test_a_question_without_an_id_is_known_by_what_it_says_and_when(adapter: A2a10, agent: Agent) -> None:
    task = started(adapter, agent)
    keys = []
    for asked, at in (("Which paper?", AT), ("Which paper?", AT), ("Which ink?", AT), ("Which ink?", "later")):
        agent.set("task-1", "INPUT_REQUIRED", question(asked, None))
        agent.tasks["task-1"]["status"]["timestamp"] = at
        seen, _ = play(adapter.poll(ENDPOINT, task), agent.answer)
        assert isinstance(seen, NeedsInput)
        keys.append(seen.keys[0].key)
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_a_task_that_waits_and_says_nothing_still_finds_a_person(adapter: A2a10, agent: Agent) -> None:
    task = started(adapter, agent)
    agent.set("task-1", "AUTH_REQUIRED")
    seen, _ = play(adapter.poll(ENDPOINT, task), agent.answer)
    assert isinstance(seen, NeedsInput)
    assert "does not say for what" in json.loads(seen.keys[0].params)["message"]
