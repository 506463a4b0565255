"""Hostile answers of an agent give an outcome that can be stored, never an exception."""

import json

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters import a2a_answers as answers
from counterfoil.adapters import a2a_card as cards
from counterfoil.adapters.a2a import PROFILE
from counterfoil.adapters.contract import (
    Answered,
    Call,
    Endpoint,
    NoAnswer,
    RemoteTask,
    Reply,
    Sent,
)
from counterfoil.adapters.outcomes import (
    LookupOutcome,
    NeedsInput,
    Negotiated,
    NotOffered,
    NotProcessed,
    NotSent,
    Observation,
    Over,
    ReplyOutcome,
    SubmitOutcome,
)
from counterfoil.adapters.strict_json import MAX_DEPTH, BadJson, Json, is_storable, loads, resolve

from .hostile import HEADERS, VALUES, hard, texts_of

ENDPOINT = Endpoint("reports", "http://127.0.0.1:1/agent", max_response_bytes=2000)
CALL = Call("generate", b"{}", "key-1", 60.0, request_id="r-1")
TASK = RemoteTask("t-1", request_id="r-1")
STATES = st.sampled_from(
    [
        f"TASK_STATE_{word}"
        for word in (
            "WORKING",
            "COMPLETED",
            "FAILED",
            "REJECTED",
            "CANCELED",
            "INPUT_REQUIRED",
            "AUTH_REQUIRED",
            "UNSPECIFIED",
            "\ud800",
        )
    ]
)
PARTS = st.lists(st.dictionaries(st.sampled_from(["text", "data", "url"]), VALUES, max_size=2), max_size=3) | VALUES
MESSAGES = st.fixed_dictionaries({}, optional={"messageId": VALUES | st.just("m-1"), "parts": PARTS, "taskId": VALUES})
STATUSES = st.fixed_dictionaries({"state": STATES | VALUES}, optional={"message": MESSAGES, "timestamp": VALUES})
ARTIFACTS = st.lists(st.fixed_dictionaries({"parts": PARTS}), max_size=2) | VALUES
TASKS = st.fixed_dictionaries(
    {"id": st.just("t-1") | VALUES, "status": STATUSES | VALUES},
    optional={
        "contextId": st.just("key-1") | VALUES,
        "artifacts": ARTIFACTS,
        "history": st.lists(MESSAGES, max_size=2) | VALUES,
        "kind": VALUES,
    },
)
RESULTS = (
    TASKS
    | st.fixed_dictionaries({"task": TASKS | VALUES})
    | st.fixed_dictionaries({"message": MESSAGES | VALUES})
    | st.fixed_dictionaries(
        {"tasks": st.lists(TASKS | VALUES, max_size=3) | VALUES}, optional={"nextPageToken": VALUES | st.just("")}
    )
    | VALUES
)
CODES = st.integers() | st.sampled_from([-32001, -32002, -32004, -32009, -32600, -32601, -32602, -32603, -32700])


def rpc(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "r-1"} | members).encode()


BODIES = (
    RESULTS.map(lambda value: rpc(result=value))
    | CODES.map(lambda code: rpc(error={"code": code, "message": "\x00"}))
    | VALUES.map(lambda value: rpc(error=value))
    | RESULTS.map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=80)
    | st.just(rpc(result=[]).replace(b"[]", b"[" * (MAX_DEPTH + 1)))
    | st.just(rpc(result={"id": "t-1"}).replace(b'"t-1"', b'"t-1","id":"t-2"'))
    | st.just(rpc(result={"id": "t-1"}).replace(b'"t-1"', b"9" * 500))
)
REPLIES = st.one_of(
    st.builds(Answered, st.just(200), HEADERS, BODIES),
    st.builds(Answered, st.integers(100, 599), HEADERS, BODIES),
    st.builds(NoAnswer, st.sampled_from(Sent), st.just("why"), BODIES),
)


def pushed(kind: str) -> st.SearchStrategy[bytes]:
    return TASKS.map(lambda task: json.dumps({kind: task}).encode())


def storable(outcome: object) -> bool:
    return all(is_storable(text) for text in texts_of(outcome))


@given(REPLIES)
@hard
def test_a_hostile_reply_gives_a_storable_outcome_whatever_was_asked(reply: Reply) -> None:
    submitted = answers.read_submit(PROFILE, ENDPOINT, CALL, reply)
    assert isinstance(submitted, SubmitOutcome)
    if isinstance(reply, NoAnswer) and reply.sent is Sent.MAYBE:
        assert not isinstance(submitted, NotSent | NotProcessed)
    polled = answers.read_poll(ENDPOINT, TASK, reply)
    assert isinstance(polled, Observation)
    if isinstance(polled, NeedsInput):
        assert answers.read_input(TASK, polled.body) == polled
    for over in (submitted, polled):
        if isinstance(over, Over) and over.payload is not None:
            resolve(loads(over.payload.body), over.payload.pointer)
    cancelled = answers.read_cancel(PROFILE, ENDPOINT, TASK, reply)
    replied = answers.read_reply(PROFILE, ENDPOINT, TASK, reply)
    assert isinstance(cancelled, ReplyOutcome)
    assert isinstance(replied, ReplyOutcome)
    page = answers.read_page(ENDPOINT, "r-1", reply, "key-1")
    listed = answers.found([page], complete=True) if isinstance(page, answers.Page) else page
    assert isinstance(listed, LookupOutcome)
    assert all(storable(outcome) for outcome in (submitted, polled, cancelled, replied, listed))


@given(BODIES | st.sampled_from(["task", "statusUpdate"]).flatmap(pushed))
@hard
def test_hostile_bytes_as_a_push_or_as_a_kept_question_give_what_can_be_stored(body: bytes) -> None:
    assert all(storable(hint) for hint in answers.hints(Answered(200, {}, body)))
    assert storable(answers.read_input(TASK, body))


def is_finite(value: Json) -> bool:
    """Whether there is no number in it that JSON does not have, or that is out of our range."""
    try:
        loads(json.dumps(value).encode())
    except BadJson:
        return False
    return True


@given(
    st.dictionaries(
        st.sampled_from(["supportedInterfaces", "capabilities", "skills", "version", "name"]),
        VALUES
        | st.lists(
            st.dictionaries(
                st.sampled_from(["id", "protocolBinding", "protocolVersion", "tenant", "url", "uri", "required"]),
                VALUES | st.sampled_from(["JSONRPC", "1.0", "generate", "http://127.0.0.1:1/\ud800"]),
            ),
            max_size=3,
        ),
    )
)
@hard
def test_a_hostile_card_is_offered_or_refused_in_words_that_can_be_stored(said: dict[str, Json]) -> None:
    """As bytes: an infinite number, which no bytes give, is no card."""
    hostile = cards.read(Answered(200, {}, json.dumps(said).encode()))
    if hostile is None:
        assert not is_finite(said)
        return
    outcome: object = cards.objection(hostile, "reports", "http://127.0.0.1:1/agent")
    assert outcome is None or isinstance(outcome, NotOffered)
    assert storable(outcome)
    skill = cards.skill(hostile, "generate")
    outcome = (
        cards.unknown([hostile], "generate", "reports") if skill is None else cards.agreed(hostile, skill, "reports")
    )
    assert isinstance(outcome, NotOffered | Negotiated)
    assert storable(outcome)
    cards.has_more(hostile)
