"""Moves and arrivals in words, for the story of a run."""

import random
from typing import TYPE_CHECKING

from counterfoil.adapters.contract import Answered, NoAnswer
from counterfoil.ledger.intents import Granted
from counterfoil.workers import actions as act

if TYPE_CHECKING:
    from .world import World


def _let(arrival: act.Arrival) -> bool:
    """Whether the ledger let a worker do what only the current epoch may."""
    match arrival:
        case act.AppliedBatch():
            return any(not one.failed for one in arrival.applied)
        case act.Claimed():
            return bool(arrival.rows)
        case act.RenewedBatch():
            return bool(arrival.found)
        case act.Intended():
            return isinstance(arrival.answer, Granted)
        case _:
            return False


def _kind(line: str) -> str:
    """A move without its numbers."""
    return "".join(character for character in line if not character.isdigit())


def _told(arrival: act.Arrival, world: "World") -> str:
    match arrival:
        case act.Claimed():
            return f"claims {[f'op{world.place(row.id) + 1}' for _, row in arrival.rows]} of {arrival.claim.lane}"
        case act.Intended():
            return f"the intent: {arrival.answer}"
        case act.AppliedBatch():
            told = [
                f"op{world.place(one.operation_id) + 1} is {one.row.operation.state if one.row else 'gone'}"
                f"{f' ({one.verdict})' if one.verdict else ''} after "
                f"{[type(answer).__name__ for answer in one.answers]}"
                for one in arrival.applied
            ]
            return "; ".join(told)
        case act.WriteFailed():
            return f"{type(arrival.write).__name__} failed: {arrival.why}{' (stale)' if arrival.stale else ''}"
        case act.Swept():
            return f"sweeps {[f'op{world.place(id_) + 1}' for id_ in arrival.operations]}"
        case _:
            return type(arrival).__name__


def _told_reply(reply: Answered | NoAnswer) -> str:
    if isinstance(reply, Answered):
        return f"HTTP {reply.status} {reply.body[:300].decode(errors='replace')}"
    return f"no answer ({reply.sent}): {reply.why}"


def seeded(seed: int) -> random.Random:
    return random.Random(seed)
