"""Requests with an effect: in which order they leave, and what becomes of their answers."""

from dataclasses import replace

import pytest

from counterfoil.adapters.contract import NoAnswer, Sent
from counterfoil.ledger import events
from counterfoil.ledger.intents import Denied
from counterfoil.ledger.states import Lane, State
from counterfoil.workers import actions as act
from counterfoil.workers.outcomes import RETRY_S

from .kit_server import LOOKUP_TOOL
from .kit_world import World


def test_a_submit_leaves_after_contract_connection_token_and_intent_in_this_order() -> None:
    world = World()
    (id_,) = world.submits(1)
    order = {act.KeepContract: "contract", act.Take: "token", act.Intend: "intent", act.Go: "go", act.Keep: "keep"}
    seen: list[str] = []
    world.held = {act.KeepContract, act.Send, act.Take, act.Intend, act.Go}
    world.kick(Lane.SUBMIT)
    for _ in range(12):
        waiting, world.waiting = world.waiting, []
        for action, asked_s in waiting:
            effect = isinstance(action, act.Send) and action.request.effect is not None
            if type(action) in order or effect:
                seen.append("connect" if effect else order[type(action)])
            world._do(action, asked_s)
        world.settle()
        assert len(world.left) == ("go" in seen)
    # tokens of the two readings of the negotiation (discover, list), then the submit's own
    assert seen == ["token", "token", "contract", "connect", "token", "intent", "go"]
    assert world.state(id_) == "WORKING"
    assert world.server.count("tools/call") == 1


def test_nothing_is_connected_before_the_contract_is_committed() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.KeepContract}
    world.kick(Lane.SUBMIT)
    assert world.effects() == []
    world.release(act.KeepContract)
    assert (world.state(id_), len(world.left)) == ("WORKING", 1)


def test_a_contract_that_could_not_be_committed_sends_nothing_and_the_row_backs_off() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.failing = {act.KeepContract}
    world.kick(Lane.SUBMIT)
    world.advance(0.5)
    assert world.effects() == []
    assert world.brought() == ["SubmitNotSent"]
    assert world.ledger.rows[id_].operation.tries == 1


def test_go_carries_a_send_by_that_counts_from_before_the_intent_was_asked_for() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Intend}
    world.kick(Lane.SUBMIT)
    asked_s = world.now_s
    world.now_s += 4.9  # half of send_by is 5 s
    world.release(act.Intend)
    (go,) = world.of(act.Go)
    assert go.send_by_s == asked_s + world.ledger.rows[id_].operation.policy.send_by_s


def test_an_intent_that_comes_back_after_half_of_send_by_sends_nothing_and_is_withdrawn() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Intend}
    world.kick(Lane.SUBMIT)
    world.now_s += 5.1
    world.release(act.Intend)
    world.advance(0.3)
    assert (world.of(act.Go), world.left) == ([], [])
    assert world.brought() == ["SubmitNotSent"]
    operation = world.ledger.rows[id_].operation
    assert (operation.state, operation.intents, operation.sent_attempt) == (State.SUBMITTING, (), 0)


def test_an_intent_of_unknown_outcome_sends_nothing_and_is_withdrawn_by_its_own_token() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Intend}
    world.kick(Lane.SUBMIT)
    ((intend, _),) = world.waiting
    assert isinstance(intend, act.Intend)
    world.ledger.intend(intend.request, world.now_s)  # the commit went through, its answer did not
    world.waiting.clear()
    world.settle(act.WriteFailed(intend, "OperationalError"))
    world.advance(0.3)
    assert world.left == []
    (event,) = [event for apply in world.of(act.Apply) for item in apply.items for event in item.events]
    assert isinstance(event, events.SubmitNotSent)
    assert event.send_token == intend.request.send_token
    assert world.ledger.rows[id_].operation.intents == ()


def test_a_bearer_that_lost_its_row_while_it_connected_does_not_withdraw_the_intent_of_its_successor() -> None:
    """Smallest input: W1 connects for longer than its lease, W2 opens its intent, W1's connect fails.

    W1 brought a SubmitNotSent without a name, which closed W2's intent while W2's bytes were on their way.
    """
    w1, w2 = World(), World()
    w2.ledger = w1.ledger
    (id_,) = w1.submits(1)
    w1.kick(Lane.SUBMIT)
    (id_,) = w1.submits(1)  # W1 has its contract now
    w1.held = {act.Send, act.Renew}
    w1.kick(Lane.SUBMIT)
    *_, connecting = w1.effects()
    w1.now_s += 9.0
    w2.now_s = w1.now_s
    w2.held = {act.Go}
    w2.kick(Lane.SUBMIT)
    (intended,) = w2.of(act.Intend)
    w1.held.add(act.Claim)
    w1.reply(connecting, NoAnswer(Sent.NO, "connection timed out"))
    assert "SubmitNotSent" in w1.brought()
    out = w1.ledger.rows[id_].operation.intents
    assert [intent.send_token for intent in out] == [intended.request.send_token]


@pytest.mark.parametrize("code", ["E_STATE_MOVED", "E_LEASE_LOST", "E_INTENT_OPEN", "E_GENERATION_MOVED"])
def test_a_denied_intent_sends_nothing_brings_nothing_and_gives_the_row_back(code: str) -> None:
    world = World()
    world.submits(1)
    world.held = {act.Intend}
    world.kick(Lane.SUBMIT)
    ((intend, asked_s),) = world.waiting
    assert isinstance(intend, act.Intend)
    world.waiting.clear()
    denied = Denied(intend.request.send_token, code, "another was quicker")
    world.settle(act.Intended(intend.send_id, asked_s, denied))
    (release,) = world.of(act.Release)
    assert [delay_s for _, delay_s in release.rows] == [world.pace.tick_s]
    assert (world.left, world.of(act.Apply), len(world.of(act.Finish))) == ([], [], 1)


def test_while_creation_is_switched_off_the_row_backs_off_in_the_ledger() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Intend}
    world.kick(Lane.SUBMIT)
    ((intend, asked_s),) = world.waiting
    assert isinstance(intend, act.Intend)
    world.waiting.clear()
    world.settle(act.Intended(intend.send_id, asked_s, Denied(intend.request.send_token, "E_CREATE_OFF", "off")))
    world.advance(0.3)
    assert world.brought() == ["SubmitNotSent"]
    assert (world.ledger.rows[id_].operation.tries, world.left) == (1, [])


def test_a_call_whose_protocol_takes_no_new_ones_is_refused_at_its_intent() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.ledger.shut = frozenset({"mcp-2026-07-28"})
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    operation = world.ledger.rows[id_].operation
    assert (operation.state, operation.error_code, operation.effects_possible) == (
        State.REFUSED,
        "E_ADAPTER_DRAINING",
        False,
    )
    assert (world.left, len(world.of(act.Finish))) == ([], 1)


@pytest.mark.parametrize(
    ("switched", "absence", "effects"),
    [("create", "unique", True), ("create", "closes", False), ("drain", "unique", True), ("key", "unique", True)],
)
def test_a_second_attempt_that_may_not_leave_ends_as_refused_and_says_whether_the_first_may_have_run(
    switched: str, absence: str, effects: bool
) -> None:
    lifetime_s = 25.0 if switched == "key" else 86_400.0
    world = World(lookup={"tool": LOOKUP_TOOL, "absence": absence, "key_lifetime_s": lifetime_s})
    id_ = world.ledger.lost(world.now_s, world.policy(), sent_s=world.now_s - 16.0, attempt=2).id
    row = world.ledger.rows[id_]
    world.ledger.rows[id_] = replace(row, operation=replace(row.operation, state=State.SUBMITTING))
    world.ledger.wakes[id_, Lane.SUBMIT] = world.ledger.wakes.pop((id_, Lane.LOOKUP))
    world.ledger.create_on = switched != "create"
    world.ledger.shut = frozenset({"mcp-2026-07-28"} if switched == "drain" else ())
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    operation = world.ledger.rows[id_].operation
    assert (operation.state, operation.error_code, operation.effects_possible) == (
        State.REFUSED,
        "E_NOT_RESUBMITTED",
        effects,
    )
    assert world.left == []


def test_a_shadow_of_a_tool_with_effects_is_refused_before_anything_is_asked() -> None:
    world = World()
    (id_,) = world.submits(1, shadow=True)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    operation = world.ledger.rows[id_].operation
    assert (operation.state, operation.error_code, world.server.asked) == (State.REFUSED, "E_SHADOW_EFFECTS", [])


def test_a_shadow_of_a_tool_without_effects_runs() -> None:
    world = World(effects=False)
    (id_,) = world.submits(1, shadow=True)
    world.kick(Lane.SUBMIT)
    world.advance(0.3)
    assert world.state(id_) == "WORKING"


def test_an_answer_is_kept_before_anything_else_and_its_transition_brings_no_interpretation() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Keep}
    world.kick(Lane.SUBMIT)
    world.advance(1.0)
    assert len(world.left) == 1
    assert (world.of(act.Finish), world.of(act.Apply)) == ([], [])  # the slot stays taken
    (keep,) = world.of(act.Keep)
    assert (keep.answer.kind, keep.answer.status, keep.answer.attempt) == ("submit", 200, 1)
    world.release(act.Keep)
    assert len(world.of(act.Finish)) == 1
    (apply,) = world.of(act.Apply)
    assert [item.events for item in apply.items] == [()]
    assert world.state(id_) == "WORKING"


def test_a_failed_keep_is_tried_for_ever() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.failing = {act.Keep}
    world.kick(Lane.SUBMIT)
    world.advance(60.0)
    tries = world.of(act.Keep)
    assert len(tries) == pytest.approx(60.0 / RETRY_S, abs=2)
    assert len(set(tries)) == 1
    assert world.of(act.Finish) == []
    world.failing.clear()
    world.advance(RETRY_S)
    assert world.state(id_) == "WORKING"


def test_a_lost_connection_before_the_first_byte_is_no_answer_and_leaves_the_call_unsent() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    (send,) = world.effects()
    world.reply(send, NoAnswer(Sent.NO, "connection refused"))
    world.advance(0.3)
    assert (world.of(act.Keep), world.brought()) == ([], ["SubmitNotSent"])
    operation = world.ledger.rows[id_].operation
    assert (operation.state, operation.sent_attempt, operation.intents) == (State.SUBMITTING, 0, ())


def test_silence_after_bytes_have_left_is_unknown_and_nothing_is_kept() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    (send,) = world.effects()
    world.reply(send, NoAnswer(Sent.MAYBE, "the connection was lost"))
    assert (world.of(act.Keep), world.brought(), world.state(id_)) == ([], ["SubmitUnclear"], "SUBMISSION_UNKNOWN")


def test_a_cut_answer_is_kept_with_status_zero_and_is_unknown() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    (send,) = world.effects()
    world.reply(send, NoAnswer(Sent.MAYBE, "cut", b'{"jsonrpc":"2.0","result":{"taskId":"t-9'))
    (keep,) = world.of(act.Keep)
    assert (keep.answer.status, keep.answer.body[-3:]) == (0, b"t-9")
    assert (world.brought(), world.state(id_)) == ([], "SUBMISSION_UNKNOWN")


def test_a_cancel_goes_through_connection_token_and_intent_and_its_acknowledgement_is_kept() -> None:
    world = World()
    (id_,) = world.polls(1, due_in_s=60.0)
    world.cancel(id_)
    world.kick(Lane.CANCEL)
    assert [type(action) for action in world.wire] == [act.Send, act.Go, act.Finish]
    (keep,) = world.of(act.Keep)
    assert (keep.answer.kind, keep.answer.generation, world.server.count("tasks/cancel")) == ("cancel", 1, 1)
    world.advance(1.0)
    world.kick(Lane.POLL)
    world.advance(1.0)
    assert world.state(id_) == "CANCELLED_ACCEPTED"


def test_a_cancel_whose_sender_left_no_answer_is_read_before_it_is_sent_again() -> None:
    world = World()
    (id_,) = world.polls(1, due_in_s=60.0)
    world.cancel(id_)
    world.held = {act.Go}
    world.kick(Lane.CANCEL)
    other = World()
    other.ledger = world.ledger
    other.now_s = world.now_s + 9.0  # the lease is over, send_by is not
    other.kick(Lane.CANCEL)
    assert (other.of(act.Apply), other.effects()) == ([], [])
    other.now_s += 2.0
    other.kick(Lane.CANCEL)
    assert other.effects() == []


def test_a_row_that_was_lost_during_the_negotiation_brings_nothing() -> None:
    """Smallest input: the lease ends while the contract is being committed, and the commit fails. The SubmitNotSent
    that was brought could have met the intent of the row's next holder."""
    world = World()
    world.submits(1)
    world.held = {act.KeepContract, act.Renew}
    world.kick(Lane.SUBMIT)
    ((keep, _),) = world.waiting
    assert isinstance(keep, act.KeepContract)
    world.now_s += 9.0
    world.waiting.clear()
    world.settle(act.WriteFailed(keep, "OperationalError"))
    world.advance(1.0)
    assert world.brought() == []


def test_a_row_that_turned_out_to_be_somebody_elses_during_the_negotiation_brings_nothing() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.KeepContract}
    world.kick(Lane.SUBMIT)
    wake = world.ledger.wakes[id_, Lane.SUBMIT]
    wake.token, wake.until_s = world.ledger.new_id(), world.now_s + 1e6
    world.advance(6.0)  # the renewal at half of the lease finds out
    ((keep, _),) = world.waiting
    assert isinstance(keep, act.KeepContract)
    world.waiting.clear()
    world.settle(act.WriteFailed(keep, "OperationalError"))
    world.advance(1.0)
    assert world.brought() == []


def test_a_lease_that_ended_while_the_effect_was_connected_sends_nothing() -> None:
    world = World()
    world.submits(1)
    world.kick(Lane.SUBMIT)
    world.forget()
    world.submits(1)
    world.held = {act.Send, act.Renew}
    world.kick(Lane.SUBMIT)
    world.now_s += 8.1
    world.held.add(act.Claim)
    world.release(act.Send)
    assert (len(world.of(act.Abort)), world.of(act.Intend), world.server.count("tools/call")) == (1, [], 0)


def test_a_submit_that_is_out_keeps_its_lease_until_its_answer_is_there() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    world.advance(50.0)
    wake = world.ledger.wakes[id_, Lane.SUBMIT]
    assert wake.until_s > world.now_s
    world.release(act.Go)
    assert world.left == []  # send_by is long over: the wire lets nothing go
    world.advance(0.5)
    assert world.state(id_) == "SUBMITTING"


def test_an_open_intent_of_somebody_else_is_never_sent_over() -> None:
    world = World()
    (id_,) = world.submits(1)
    world.held = {act.Go}
    world.kick(Lane.SUBMIT)
    other = World()
    other.ledger = world.ledger
    other.now_s = world.now_s + 11.0  # lease and send_by are over, nothing was heard
    other.kick(Lane.SUBMIT)
    other.advance(0.3)
    assert (other.brought(), other.state(id_)) == (["IntentOverdue"], "SUBMISSION_UNKNOWN")
    assert other.effects() == []
