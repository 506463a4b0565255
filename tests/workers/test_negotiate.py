"""Contracts: negotiated once for everybody who waits, committed before they count, believed for a while."""

import json

import pytest

from counterfoil.adapters.contract import Answered, NoAnswer, Sent
from counterfoil.adapters.registry import adapter
from counterfoil.ledger import events
from counterfoil.ledger.states import Lane
from counterfoil.workers import actions as act
from counterfoil.workers.catalog import Catalog
from counterfoil.workers.negotiate import BELIEVED_S, REFUSED_S, Contracts
from counterfoil.workers.sessions import Sessions
from counterfoil.workers.target_entries import TargetEntry
from counterfoil.workers.targets import Target, Targets

from .kit_server import TOOL, answered
from .kit_world import NoSessions, World


def negotiated(world: World) -> int:
    return world.server.count("tools/list")


def submit(world: World) -> None:
    world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)


def test_what_was_negotiated_is_committed_with_the_tools_exact_descriptor_and_the_policy_of_its_scope() -> None:
    world = World()
    submit(world)
    (keep,) = world.of(act.KeepContract)
    assert (keep.key, keep.protocol, keep.tool_version) == (("a", "work", ""), "mcp-2026-07-28", "7")
    assert json.loads(keep.descriptor) == TOOL
    assert (keep.policy.url, keep.policy.credential) == ("http://127.0.0.1:1/mcp", "")
    (intend,) = world.of(act.Intend)
    assert intend.request.policy_digest == keep.policy.digest() == intend.request.policy.digest()
    assert (intend.request.descriptor_digest, intend.request.tool_version) == (keep.descriptor_digest, "7")


def test_a_contract_is_believed_for_a_while_and_then_negotiated_again() -> None:
    world = World()
    submit(world)
    world.now_s += BELIEVED_S - 5.0
    submit(world)
    assert negotiated(world) == 1
    world.now_s += 10.0
    submit(world)
    assert negotiated(world) == 2


def test_a_refusal_is_asked_again_after_a_short_while() -> None:
    world = World()
    world.server.rules["server/discover"] = lambda asked: answered(asked, result={"supportedVersions": ["1999-01-01"]})
    (first,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    operation = world.ledger.rows[first].operation
    assert (operation.state, operation.error_code) == ("REFUSED", "E_CAPABILITY_UNSUPPORTED")
    world.server.rules.clear()
    world.advance(REFUSED_S)
    (second,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    assert world.state(second) == "WORKING"


def test_a_server_that_wants_another_credential_counts_to_three_in_the_ledger() -> None:
    world = World()
    world.server.rules["server/discover"] = lambda _: Answered(401, {}, b"")
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(20.0)
    operation = world.ledger.rows[id_].operation
    assert (operation.state, operation.error_code, operation.auth_tries) == ("REFUSED", "E_AUTH_EXPIRED", 3)
    assert world.server.count("server/discover") == 3


@pytest.mark.parametrize(
    "reply", [NoAnswer(Sent.NO, "refused"), NoAnswer(Sent.MAYBE, "lost"), Answered(502)], ids=["refused", "lost", "502"]
)
def test_trouble_during_negotiation_backs_off_and_was_never_sent(reply: Answered | NoAnswer) -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Send}
    world.kick(Lane.SUBMIT)
    (send,) = world.of(act.Send)
    world.held.clear()
    world.reply(send, reply)
    world.advance(0.3)
    assert world.brought() == ["SubmitNotSent"]
    operation = world.ledger.rows[id_].operation
    assert (operation.tries, operation.sent_attempt) == (1, 0)
    world.advance(7.0)  # nobody kicks: the loop plans by itself after 5 s
    assert world.state(id_) == "WORKING"


def test_a_word_from_a_negotiation_never_withdraws_an_intent() -> None:
    """It knows of none, so it names none, whatever the row's next holder has opened meanwhile."""
    world = World()
    world.submits(1)
    world.server.rules["server/discover"] = lambda _: Answered(502)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    (event,) = [event for apply in world.of(act.Apply) for item in apply.items for event in item.events]
    assert isinstance(event, events.SubmitNotSent)
    assert event.send_token is None


def test_an_input_schema_that_can_not_be_used_is_refused_and_its_arguments_are_not_sent() -> None:
    world = World()
    hostile = TOOL | {"inputSchema": {"type": "object", "properties": {"x": {"$ref": "http://192.0.2.1/x.json"}}}}
    world.server.rules["tools/list"] = lambda asked: answered(asked, result={"tools": [hostile]})
    (id_,) = world.submits(1)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    assert (world.state(id_), world.server.count("tools/call")) == ("REFUSED", 0)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"protocol": "mcp-sync"}, "publishes no sync bound"),
        ({"protocol": "mcp-2026-07-28", "require_lookup": True}, "offers no lookup"),
    ],
)
def test_what_the_targets_file_itself_forbids_is_refused_without_asking_the_server(
    settings: dict[str, object], why: str
) -> None:
    entry = TargetEntry.model_validate({"url": "http://127.0.0.1:1/mcp", **settings})
    targets = Targets({"a": Target("a", adapter(entry.protocol).profile, entry)})
    catalog = Catalog(targets, lambda _digests: {}, Sessions(NoSessions()))
    refusal = Contracts(catalog).ask(("a", "work", ""), 0.0)
    assert isinstance(refusal, events.RefusedBeforeSubmit)
    assert (refusal.code, why in refusal.why) == ("E_CAPABILITY_UNSUPPORTED", True)
