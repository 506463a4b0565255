"""What became of a lost submit: asked by its key, or by the same bytes once more (SPEC sections 1 and 7)."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from counterfoil.adapters.contract import Answered, NoAnswer, Sent
from counterfoil.ledger.intents import Granted
from counterfoil.ledger.states import Lane, State
from counterfoil.workers import actions as act

from .kit_server import answered
from .kit_world import IN_SESSIONS, REPLAY, UNIQUE, World

LOST = NoAnswer(Sent.MAYBE, "the connection was lost")


def lost(world: World, *, ran: bool, **fields: Any) -> UUID:
    """A submit whose settle window is over; `ran`: the server made its task."""
    row = world.ledger.lost(world.now_s, world.policy(), sent_s=world.now_s - 20.0, **fields)
    if ran:
        world.server.by_key[str(row.submission_key)] = "task-1"
        world.server.status["task-1"] = "working"
    return row.id


def looked_up(world: World, reply: Answered | NoAnswer | None = None, **said: Any) -> str:
    """The kind of the event that comes of one lookup with this answer."""
    if reply is not None:
        world.held = {act.Send}
        world.kick(Lane.LOOKUP)
        (send,) = world.of(act.Send)
        world.held.clear()
        world.reply(send, reply)
    else:
        told = {"resultType": "complete", "content": [], "structuredContent": said}
        world.server.rules["lookup"] = lambda asked: answered(asked, result=told)
        world.kick(Lane.LOOKUP)
    world.advance(0.3)
    return world.brought()[0]


def test_a_lost_submit_is_looked_up_only_after_the_settle_window_by_the_ledgers_clock() -> None:
    """The window: `send_by_s` 10 and `settle_s` 5, from the intent on."""
    world = World(**UNIQUE)
    (id_,) = world.submits(1)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    began_s = world.now_s
    world.reply(world.effects()[0], LOST)
    assert world.state(id_) == "SUBMISSION_UNKNOWN"
    world.held.clear()
    world.advance(14.9)
    assert world.server.count("lookup") == 0
    world.advance(1.2)
    assert (world.server.count("lookup"), world.now_s - began_s > 15.0) == (1, True)


def test_a_worker_whose_clock_is_ahead_gives_the_row_back_until_the_window_is_over() -> None:
    world = World(**UNIQUE)
    id_ = world.ledger.lost(world.now_s, world.policy(), sent_s=world.now_s - 12.0).id
    world.kick(Lane.LOOKUP)
    (release,) = world.of(act.Release)
    assert [delay_s for _, delay_s in release.rows] == pytest.approx([3.0])
    assert (world.server.asked, world.state(id_)) == ([], "SUBMISSION_UNKNOWN")


def test_the_lookup_asks_for_key_tool_and_attempt_and_its_find_goes_on_as_a_resident_poll() -> None:
    world = World(**UNIQUE)
    id_ = lost(world, ran=True)
    world.kick(Lane.LOOKUP)
    world.advance(0.3)
    asked = next(body for body in world.server.bodies if body["params"].get("name") == "counterfoil_lookup")
    key = str(world.ledger.rows[id_].submission_key)
    assert asked["params"]["arguments"] == {"submission_key": key, "tool": "work", "attempt": 1}
    assert (world.state(id_), world.task(id_), world.brought()) == ("WORKING", "task-1", ["LookupFound"])
    world.forget()
    world.advance(3.0)
    assert (world.server.count("tasks/get"), [one for one in world.of(act.Claim) if one.lane is Lane.POLL]) == (3, [])


def test_absence_with_its_proof_is_sent_again_under_the_same_key_as_attempt_two() -> None:
    world = World(**UNIQUE)
    id_ = lost(world, ran=False)
    world.kick(Lane.LOOKUP)
    world.advance(0.3)
    world.advance(7.0)  # (it plans by itself when nobody kicks)
    operation = world.ledger.rows[id_].operation
    assert (operation.state, operation.attempt) == (State.WORKING, 2)
    assert world.server.keys == [str(world.ledger.rows[id_].submission_key)]


FOUND = {"found": True, "status": "working", "createdAt": "2026-11-29T10:00:00Z"}


@pytest.mark.parametrize(
    ("said", "event", "state"),
    [
        (FOUND | {"taskId": "task-9"}, "LookupFound", "WORKING"),
        (
            {"found": True, "result": {"content": [], "structuredContent": {"n": 1}}},
            "LookupOver",
            "ACCEPTED",
        ),
        ({"found": True, "running": True}, "LookupUnsure", "SUBMISSION_UNKNOWN"),
        ({"found": False, "authoritative": True}, "LookupAbsent", "NOT_FOUND_SAFE"),
        ({"found": False, "authoritative": False}, "LookupAbsent", "SUBMISSION_UNKNOWN"),
        ({"found": True, "unsure": True}, "LookupUnsure", "SUBMISSION_UNKNOWN"),
        ({"found": True, "conflict": True}, "LookupUnsure", "SUBMISSION_UNKNOWN"),
        ({"found": "yes"}, "LookupUnsure", "SUBMISSION_UNKNOWN"),
    ],
)
def test_what_the_lookup_says_becomes_its_event(said: dict[str, Any], event: str, state: str) -> None:
    world = World(**UNIQUE, lanes=[lane for lane in Lane if lane not in (Lane.SUBMIT, Lane.DOOR)])
    id_ = lost(world, ran=False)
    assert looked_up(world, **said) == event
    assert world.state(id_) == state


@pytest.mark.parametrize(
    ("reply", "event"),
    [
        (Answered(401, {}, b""), "LookupDenied"),
        (Answered(503, {"retry-after": "9"}, b""), "LookupUnsure"),
        (Answered(404, {}, b""), "LookupUnsure"),
        (LOST, "LookupUnsure"),
        (NoAnswer(Sent.NO, "connection refused"), "LookupUnsure"),
    ],
)
def test_a_lookup_that_was_not_answered_proves_nothing_and_is_asked_again(
    reply: Answered | NoAnswer, event: str
) -> None:
    world = World(**UNIQUE)
    id_ = lost(world, ran=True)
    assert looked_up(world, reply) == event
    assert (world.state(id_), world.ledger.rows[id_].operation.cases) == ("SUBMISSION_UNKNOWN", ())
    world.advance(30.0)
    assert world.state(id_) == "WORKING"


def test_a_busy_server_is_closed_for_everybody_by_its_answer_to_a_lookup_too() -> None:
    world = World(**UNIQUE)
    lost(world, ran=True)
    looked_up(world, Answered(503, {"retry-after": "9"}, b""))
    assert world.of(act.CloseTarget) == [act.CloseTarget("a", 9.0)]


def test_a_call_that_still_runs_without_a_task_is_asked_for_in_growing_pauses_not_for_ever() -> None:
    world = World(**UNIQUE)
    id_ = lost(world, ran=False)
    told = {"resultType": "complete", "content": [], "structuredContent": {"found": True, "running": True}}
    world.server.rules["lookup"] = lambda asked: answered(asked, result=told)
    world.kick(Lane.LOOKUP)
    world.advance(1000.0)
    assert 10 <= world.server.count("lookup") <= 25
    assert [case.code for case in world.ledger.rows[id_].operation.cases] == ["E_SUBMISSION_UNKNOWN"]
    world.forget()
    world.advance(100.0)
    assert world.server.asked == []  # a person has to speak now


def test_a_tool_without_a_lookup_asks_a_person_and_no_server() -> None:
    world = World()
    policy = world.policy(lookup="none", url=world.catalog.endpoint("a").url)
    id_ = world.ledger.lost(world.now_s, policy, sent_s=world.now_s - 20.0).id
    world.kick(Lane.LOOKUP)
    world.advance(5.0)
    assert [case.code for case in world.ledger.rows[id_].operation.cases] == ["E_SUBMISSION_UNKNOWN"]
    assert (world.server.asked, len(world.of(act.Apply))) == ([], 1)


# -- the scope that submitted ----------------------------------------------------------------------------------------


def test_the_lookup_goes_out_with_the_credential_that_submitted_whatever_the_file_says_now() -> None:
    """Smallest input: the target's `credentials` changed while the answer was lost. Asked with the new one the server
    knows no such key, which would have been taken for the proof that it never was."""
    world = World(**UNIQUE, credentials="env:NEW")
    row = world.ledger.rows[lost(world, ran=True)]
    pinned = row.operation.policy.model_copy(update={"credential": "env:OLD"})
    world.ledger.rows[row.id] = replace(row, operation=replace(row.operation, policy=pinned))
    world.kick(Lane.LOOKUP)
    world.advance(2.5)
    assert world.server.asked == ["lookup", "tasks/get", "tasks/get"]
    assert {send.credential for send in world.of(act.Send)} == {"env:OLD"}


def test_a_second_attempt_leaves_with_the_credential_of_the_first() -> None:
    world = World(**UNIQUE, credentials="env:NEW")
    row = world.ledger.rows[lost(world, ran=False)]
    pinned = row.operation.policy.model_copy(update={"credential": "env:OLD"})
    world.ledger.rows[row.id] = replace(row, operation=replace(row.operation, policy=pinned))
    world.kick(Lane.LOOKUP)
    world.advance(0.3)
    world.advance(7.0)
    assert [send.credential for send in world.left] == ["env:OLD"]


@pytest.mark.parametrize("entry", [UNIQUE, REPLAY], ids=["by_key", "replay"])
def test_where_the_target_has_another_url_now_a_lost_submit_is_a_persons_business(entry: dict[str, Any]) -> None:
    world = World(**entry)
    row = world.ledger.rows[lost(world, ran=False)]
    elsewhere = row.operation.policy.model_copy(update={"url": "http://127.0.0.1:9/mcp"})
    world.ledger.rows[row.id] = replace(row, operation=replace(row.operation, policy=elsewhere))
    world.kick(Lane.LOOKUP)
    world.advance(2.0)
    assert world.server.asked == []
    assert [case.code for case in world.ledger.rows[row.id].operation.cases] == ["E_SUBMISSION_UNKNOWN"]


def test_a_second_attempt_is_not_sent_to_another_url_than_the_first() -> None:
    world = World(**UNIQUE)
    policy = world.policy(url="http://127.0.0.1:9/mcp")
    row = world.ledger.add(world.now_s, policy, attempt=2, sent_attempt=1, pinned=True)
    world.kick(Lane.SUBMIT)
    world.advance(1.0)
    operation = world.ledger.rows[row.id].operation
    assert (operation.state, operation.error_code) == (State.REFUSED, "E_NOT_RESUBMITTED")
    assert world.server.asked == []


def in_session(world: World) -> UUID:
    """A lost submit in a session that the server knows; its contract is known here as well."""
    world.held = {act.Go}
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.1)
    (send,) = world.connecting.values()
    world.server.answer(send.request)
    world.held.clear()
    world.reply(send, LOST)
    assert world.state(id_) == "SUBMISSION_UNKNOWN"
    return id_


def test_the_lookup_is_asked_in_the_session_that_submitted() -> None:
    world = World(**UNIQUE, protocol=IN_SESSIONS)
    id_ = in_session(world)
    world.advance(20.0)
    assert world.state(id_) == "WORKING"
    assert [session for method, session in world.in_sessions.spoke_in if method == "lookup"] == ["session-1"]


def test_a_lookup_whose_session_is_gone_begins_a_new_one_and_asks_again_in_it() -> None:
    world = World(**UNIQUE, protocol=IN_SESSIONS)
    id_ = in_session(world)
    world.in_sessions.gone.add("session-1")
    world.advance(20.0)
    asked = [session for method, session in world.in_sessions.spoke_in if method == "lookup"]
    assert asked == ["session-1", "session-2"]
    assert "SessionRenewed" in world.brought()
    assert world.state(id_) == "WORKING"


def test_an_http_404_to_a_submit_in_a_session_lets_no_other_call_go_into_that_session() -> None:
    """Smallest input: two calls, the server forgets the session between them. For the five minutes that a contract is
    believed each further call was a lost one."""
    world = World(**UNIQUE, protocol=IN_SESSIONS)
    (first,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.5)
    world.in_sessions.gone.add("session-1")
    (second, third) = (world.submits(1)[0], world.submits(1)[0])
    world.kick(Lane.SUBMIT)
    world.advance(30.0)
    calls = [session for method, session in world.in_sessions.spoke_in if method == "tools/call"]
    assert calls == ["session-1", "session-1", "session-2", "session-2"]
    assert [world.state(id_) for id_ in (first, second, third)] == ["WORKING", "WORKING", "WORKING"]


# -- replay ----------------------------------------------------------------------------------------------------------


def test_a_replay_sends_the_same_bytes_under_the_same_key_through_connection_submits_token_and_intent() -> None:
    world = World(**REPLAY)
    world.server.unique = True
    (first,) = world.submits(1)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    (send,) = world.effects()
    world.server.answer(send.request)
    world.held.clear()
    world.reply(send, LOST)
    world.forget()
    world.held = {act.Send, act.Take, act.Intend, act.Go}
    world.advance(16.0)
    order = []
    while world.waiting:
        order += [
            f"{type(action).__name__} {action.lane}" if isinstance(action, act.Take) else type(action).__name__
            for action, _ in world.waiting
        ]
        world.release(*{type(action) for action, _ in world.waiting})
        world.held = {act.Send, act.Take, act.Intend, act.Go}
        if "Go" in order:
            break
    assert order == ["Send", "Take submit", "Intend", "Go"]
    (again,) = world.effects()
    mine, before = json.loads(again.request.body)["params"], json.loads(send.request.body)["params"]
    assert mine == before
    (intend,) = world.of(act.Intend)
    assert (intend.request.effect, intend.request.lane, intend.request.attempt) == ("replay", Lane.LOOKUP, 1)
    (keep,) = world.of(act.Keep)
    assert keep.answer.kind == "replay"
    assert (world.state(first), world.task(first), world.ledger.rows[first].operation.intents) == (
        "WORKING",
        "task-1",
        (),
    )


def test_a_replay_whose_key_ran_out_before_its_intent_asks_a_person() -> None:
    """Judged at the intent: a bucket may be closed for a minute between the claim and it."""
    world = World(lookup={"replay": True, "key_lifetime_s": 60.0})
    world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)  # negotiated
    world.forget()
    id_ = lost(world, ran=True)
    world.bucket = lambda take: act.Tokens(take, 0, 30.0)
    world.kick(Lane.LOOKUP)
    world.advance(29.0)
    world.bucket = lambda take: act.Tokens(take, take.count, 0.0)
    world.advance(10.0)
    assert ([one.request.effect for one in world.of(act.Intend)], world.of(act.Go)) == (["replay"], [])
    assert world.brought() == ["LookupUnsure"]
    (case,) = world.ledger.rows[id_].operation.cases
    assert case.code == "E_SUBMISSION_UNKNOWN"


def test_silence_after_a_replay_closes_its_intent_and_it_is_asked_once_more() -> None:
    world = World(**REPLAY)
    world.server.unique = True
    id_ = lost(world, ran=True)
    world.held = {act.Go}
    world.kick(Lane.LOOKUP)
    world.advance(0.3)
    world.held.clear()
    world.reply(world.effects()[0], LOST)
    operation = world.ledger.rows[id_].operation
    assert (world.brought(), operation.state, operation.intents) == (
        ["LookupUnsure"],
        State.SUBMISSION_UNKNOWN,
        (),
    )
    world.advance(14.0)
    assert world.left == []  # not before the settle window of the replay itself is over
    world.advance(3.0)
    assert (len(world.left), world.state(id_)) == (1, "WORKING")


def test_a_replay_that_did_not_leave_withdraws_its_own_intent_and_comes_again() -> None:
    world = World(**REPLAY)
    id_ = lost(world, ran=True)
    world.held = {act.Go}
    world.kick(Lane.LOOKUP)
    world.advance(0.3)
    assert [intent.effect for intent in world.ledger.rows[id_].operation.intents] == ["replay"]
    world.held.clear()
    world.reply(world.effects()[0], NoAnswer(Sent.NO, "connection refused"))
    world.advance(0.3)
    assert (world.brought(), world.ledger.rows[id_].operation.intents) == (["ReplayNotSent"], ())


def test_an_open_replay_of_a_dead_worker_is_waited_for_until_its_send_by_and_then_counts_as_lost() -> None:
    dead, world = World(**REPLAY), World(**REPLAY)
    world.ledger, world.server = dead.ledger, dead.server
    id_ = lost(dead, ran=True)
    dead.held = {act.Go}
    dead.kick(Lane.LOOKUP)
    dead.advance(0.2)
    assert dead.ledger.rows[id_].operation.intents != ()
    world.now_s = dead.now_s + 9.0  # its lease is over, its send_by is not
    world.kick(Lane.LOOKUP)
    world.advance(0.4)
    assert (world.of(act.Apply), world.effects()) == ([], [])
    world.advance(1.0)
    world.kick(Lane.LOOKUP)
    world.advance(0.3)
    assert world.brought() == ["LookupUnsure"]
    assert world.ledger.rows[id_].operation.intents == ()


def test_a_replay_whose_tool_is_not_offered_any_more_asks_a_person_instead_of_asking_for_ever() -> None:
    """Smallest input: the contract has run out and `server/discover` names another version. The refusal meant nothing
    to a lost submit, so its row was due again at once, as fast as the ledger writes."""
    world = World(**REPLAY)
    id_ = lost(world, ran=True)
    world.server.rules["server/discover"] = lambda asked: answered(asked, result={"supportedVersions": ["1999-01-01"]})
    world.kick(Lane.LOOKUP)
    world.advance(10.0)
    assert (len(world.of(act.Apply)), world.server.count("server/discover")) == (1, 1)
    (case,) = world.ledger.rows[id_].operation.cases
    assert case.code == "E_SUBMISSION_UNKNOWN"


def test_a_replay_that_can_not_negotiate_just_now_backs_off() -> None:
    world = World(**REPLAY)
    world.server.unique = True
    id_ = lost(world, ran=True)
    world.server.rules["server/discover"] = lambda _: Answered(502, {}, b"")
    world.kick(Lane.LOOKUP)
    world.advance(12.0)
    assert set(world.brought()) == {"ReplayNotSent"}
    assert 3 <= world.server.count("server/discover") <= 5
    del world.server.rules["server/discover"]
    world.advance(20.0)
    assert world.state(id_) == "WORKING"


def test_a_row_granted_for_replay_reads_settled_once_it_is_known() -> None:
    """A late answer of the first attempt binds the task while the replay waits for its token: no replay leaves."""
    world = World(**REPLAY)
    id_ = lost(world, ran=True)
    world.held = {act.Intend}
    world.kick(Lane.LOOKUP)
    world.advance(0.3)
    ((intend, asked_s),) = world.waiting
    assert isinstance(intend, act.Intend)
    row = world.ledger.rows[id_]
    bound = replace(row.operation, state=State.WORKING, task_id="task-1")
    world.ledger.rows[id_] = replace(row, operation=bound)
    answer = world.ledger.intend(intend.request, world.now_s)
    assert not isinstance(answer, Granted)
    world.waiting.clear()
    world.settle(act.Intended(intend.send_id, asked_s, answer))
    assert world.left == []
