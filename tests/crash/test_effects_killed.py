"""The same points of a cancel, of a person's answer, and of a replay. All three may be sent again, so that nobody is
asked, and each is settled, whatever its bearer died of.

A cancel is the same generation again (at most three sends), an answer closes its round once (this server ignores a
repeated key), a replay finds the first call under its key.
"""

from collections import Counter
from typing import Any

from counterfoil.ledger.events import CancelAsked, ReplyGiven
from counterfoil.ledger.states import Lane
from counterfoil.tests.crash.field import Field, judged

POINTS = (
    "claimed",
    "connected",
    "refused",
    "intent-asked",
    "intent-uncommitted",
    "intent-committed",
    "unwithdrawn",
    "first-byte",
    "ran",
    "answered",
    "kept",
    "apply-uncommitted",
    "applied",
)
REPLY = b'{"action":"accept","content":{"paper":"A4"}}'


def settled(field: Field, kind: str) -> Counter[str]:
    """Others go on; nobody is asked. Returns the outcomes."""
    field.start()
    field.until("each has a receipt", lambda: not field.unsettled())
    found = judged(field)
    assert all(kinds == {kind: (0, 0)} for kinds in found.values())
    return Counter(str(fact.outcome) for fact in field.facts())


def handed_in(field: Field, kind: str, points: tuple[str, ...], **arguments: Any) -> dict[str, list[str]]:
    ran = dict.fromkeys(("cancel", "update"), "hold")
    return {point: field.hand_in(point, (kind,), **arguments, **(ran if point == "ran" else {})) for point in points}


def worked_on(field: Field, state: str) -> None:
    """A worker brings everything to this state and is killed."""
    first = field.start(lanes=(Lane.SUBMIT, Lane.POLL))
    field.until(f"all are {state}", lambda: field.all_in(state))
    first.kill()


def kill_at(field: Field, points: dict[str, list[str]], lane: Lane, *also: Lane, **more: Any) -> None:
    applied = {"applied": points["applied"]}
    others = {point: names for point, names in points.items() if point != "applied"}
    field.kill_at(others, lane=lane, lanes=(lane, *also), **more)
    field.kill_at(applied, lane=lane, lanes=(lane, *also, Lane.POLL), **more)


def test_a_cancel_is_confirmed_whatever_point_its_bearer_is_killed_at(field: Field) -> None:
    points = handed_in(field, "nothing", POINTS, secs=3600)
    worked_on(field, "WORKING")
    field.say(field.targets, CancelAsked("stop"))
    kill_at(field, points, Lane.CANCEL, seen={"ran": "tasks/cancel"})
    assert settled(field, "nothing").keys() == {"cancelled"}
    sends = Counter(line["node"] for line in field.lines() if line["on"] == "tasks/cancel")
    assert set(sends) == {fact.node for fact in field.facts()}
    assert max(sends.values()) <= 3


def test_an_answer_arrives_whatever_point_its_bearer_is_killed_at(field: Field) -> None:
    points = handed_in(field, "nothing", POINTS, asks=True)
    worked_on(field, "INPUT_REQUIRED")
    field.say(field.targets, ReplyGiven(1, REPLY, "ann"))
    kill_at(field, points, Lane.ANSWER, seen={"ran": "tasks/update"})
    assert settled(field, "nothing").keys() == {"succeeded"}
    told = [field.client.receipt(fact.node) for fact in field.facts()]
    assert {str(one.result["told"]) for one in told if one is not None} == {
        "{'paper': {'action': 'accept', 'content': {'paper': 'A4'}}}"
    }
    assert {one.unanswered_rounds for one in told if one is not None} == {0}


def test_a_replay_finds_the_first_call_whatever_point_its_bearer_is_killed_at(field: Field) -> None:
    points = handed_in(field, "replay", tuple(one for one in POINTS if one != "ran"), answer="hold")
    everything = [name for names in points.values() for name in names]
    field.kill_at({"lost": everything}, seen={"lost": "created"}, lanes=(Lane.SUBMIT,))
    kill_at(field, points, Lane.LOOKUP, Lane.SUBMIT)
    assert settled(field, "replay").keys() == {"succeeded"}
