"""The set-based writes of input rounds: one statement for what opens, one for what moves."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from .database import execute
from .work import Work

_ASKED = ("ids", "numbers", "legs", "keys", "methods", "params", "schemas", "reply_tos")
_MOVED = ("ids", "numbers", "states", "sends", "hows", "replies", "actors")


def arrays(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """Rows to one array a column, the form that `unnest` takes."""
    return {name: [row[index] for row in rows] for index, name in enumerate(names)}


def write_rounds(connection: Connection, works: Sequence[Work]) -> None:
    """Open what was asked, and bring what moved to where the decisions left it. Under the operations' locks."""
    asked = [
        (work.row.id, number, work.row.operation.leg, one.key, one.method, one.params, one.schema_digest, one.reply_to)
        for work in works
        for decision in work.decisions
        for number, one in decision.asks
    ]
    if asked:
        execute(connection, "open_rounds", arrays(_ASKED, asked))
    moved = [line for work in works for line in _moved(work)]
    if moved:
        execute(connection, "move_rounds", arrays(_MOVED, moved))


def _moved(work: Work) -> list[tuple[Any, ...]]:
    before = {one.number: one for one in work.before.operation.rounds}
    hows = {number: how for decision in work.decisions for number, how in decision.ended_rounds}
    replies = {decision.reply[0]: decision.reply[1:] for decision in work.decisions if decision.reply is not None}
    return [
        (work.row.id, one.number, one.state, one.sends, hows.get(one.number), *replies.get(one.number, (None, None)))
        for one in work.row.operation.rounds
        if one != before.get(one.number) and (one.number in before or one.state != "open")
    ]
