"""Canary and shadow: which part of a tool's call nodes is taken on, and whether the rest runs beside the old path to be
compared with it (SPEC section 8).

What a call node is (live, shadow, not selected) is decided and recorded by its first hand-in, in `open_operation`; a
percentage that is changed later moves no call node that was seen before.
"""

import math
from datetime import datetime
from difflib import get_close_matches
from typing import Literal, TypeAlias
from uuid import UUID

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects.postgresql import insert

from . import epochs, reads
from .database import Database, execute
from .digest import MAX_ARGUMENTS_BYTES, canonical_json, checked_name
from .errors import InputRefused, NoSuchOperation
from .records import Record
from .side_tables import rollout, shadow_report
from .tables import call_node, target_state, tool_descriptor

ToldOutcome: TypeAlias = Literal["succeeded", "failed", "cancelled"]
TOLD_OUTCOMES: tuple[ToldOutcome, ...] = ("succeeded", "failed", "cancelled")

NOTHING_TOLD = object()
"""No result was told: outcomes alone are compared. `None` is a result, JSON's null."""


class Canary(Record):
    """One tool's part: `percent` of its call nodes is taken on; of the others `shadow` says whether they run beside."""

    target: str
    tool: str
    percent: float
    shadow: bool
    reason: str
    changed_at: datetime


class ShadowLine(Record):
    """One call node that ran as a shadow: what the old path told, what the shadow made, and how the two compare."""

    call_node_id: str
    target: str
    tool: str
    operation_id: UUID
    verdict: Literal["same", "differs", "missing"]
    told: str | None
    made: str | None
    why: str | None


class ShadowReport(Record):
    """All shadows of a namespace in three numbers, and the lines, those that differ first."""

    same: int
    differs: int
    missing: int
    lines: tuple[ShadowLine, ...]


# -- canary ------------------------------------------------------------------------------------------------------------


def set_canary(
    database: Database, fleet: str, target: str, tool: str, percent: float, *, shadow: bool, reason: str
) -> bool:
    """Take on `percent` of a tool's call nodes that are first seen from now on, the same ones at every percentage. 100
    is what holds where nothing is set. Returns whether any call of that tool was negotiated before.

    Whether the tool may run as a shadow (`effects: false`) is the targets file's word: the caller has read it. Raises
    InputRefused (E_CANARY_PERCENT, E_TARGET_UNKNOWN, E_TOOL_INVALID, E_FLEET_UNKNOWN).
    """
    if not (math.isfinite(percent) and 0 <= percent <= 100):
        raise InputRefused(
            f"{percent:g} % is no part of all call nodes.",
            code="E_CANARY_PERCENT",
            next_step="Give a number from 0 (none) to 100 (all), such as 5%.",
        )
    tool = checked_name("tool", tool)
    with database.begin() as connection:
        epochs.plain_epoch(connection, fleet)
        _require_target(connection, fleet, target)
        values = {
            "percent": percent,
            "shadow": shadow,
            "reason": reason[: epochs.MAX_REASON_CHARS],
            "changed_at": text("counterfoil.ledger_now()"),
        }
        query = insert(rollout).values(fleet=fleet, target=target, tool=tool, **values)
        connection.execute(query.on_conflict_do_update(index_elements=["fleet", "target", "tool"], set_=values))
        seen = select(tool_descriptor.c.digest).where(
            tool_descriptor.c.target == target, tool_descriptor.c.tool == tool
        )
        return connection.execute(seen.limit(1)).first() is not None


def _require_target(connection: Connection, fleet: str, target: str) -> None:
    known = sorted(connection.execute(select(target_state.c.target).where(target_state.c.fleet == fleet)).scalars())
    if target in known:
        return
    near = get_close_matches(target, known, n=1)
    raise InputRefused(
        f"no worker has announced a target {target[:64]!r}.",
        code="E_TARGET_UNKNOWN",
        next_step=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known[:10]) or 'none'}.",
    )


def list_canaries(connection: Connection, fleet: str) -> list[Canary]:
    """What is set, by target and tool. A tool that is not named is taken on whole."""
    table = rollout.c
    query = select(table.target, table.tool, table.percent, table.shadow, table.reason, table.changed_at)
    found = connection.execute(query.where(table.fleet == fleet).order_by(table.target, table.tool))
    return [Canary(**reads.plain(row)) for row in found.mappings()]


# -- shadow ------------------------------------------------------------------------------------------------------------


def tell_shadow(
    connection: Connection, namespace: str, call_node_id: str, outcome: ToldOutcome, result: object = NOTHING_TOLD
) -> None:
    """Keep what the old path made of a call node that also ran as a shadow. Once: the same again is fine.

    `result`: the JSON value that a receipt's `result` would be. Raises NoSuchOperation, InputRefused (E_NOT_A_SHADOW,
    E_SHADOW_TOLD, E_SHADOW_RESULT).
    """
    body = None if result is NOTHING_TOLD else _result_text(result)
    where = (call_node.c.namespace == namespace, call_node.c.call_node_id == call_node_id)
    mode = connection.execute(select(call_node.c.mode).where(*where)).scalar_one_or_none()
    if mode is None:
        raise NoSuchOperation(
            f"call node {call_node_id!r} was never handed in in namespace {namespace!r}.",
            next_step="Hand it in first: the answer `not selected` is what makes it a shadow.",
        )
    if mode != "shadow":
        raise InputRefused(
            f"call node {call_node_id!r} is {mode.replace('_', ' ')}, so no shadow of it runs.",
            code="E_NOT_A_SHADOW",
            next_step="Report only call nodes that ran as a shadow: `counterfoil shadow report` lists them.",
        )
    told = shadow_report.c
    query = insert(shadow_report).values(
        namespace=namespace,
        call_node_id=call_node_id,
        outcome=outcome,
        result=body,
        reported_at=text("counterfoil.ledger_now()"),
    )
    if connection.execute(query.on_conflict_do_nothing().returning(told.outcome)).first() is not None:
        return
    before = connection.execute(
        select(told.outcome, told.result).where(told.namespace == namespace, told.call_node_id == call_node_id)
    ).one()
    if (before[0], before[1]) != (outcome, body):
        raise InputRefused(
            f"something else was told of call node {call_node_id!r} before: {before[0]}.",
            code="E_SHADOW_TOLD",
            next_step="What was told first stands; one call node ends once.",
        )


def _result_text(result: object) -> bytes:
    try:
        body = canonical_json(result)
    except InputRefused as error:
        raise InputRefused(
            error.message, code="E_SHADOW_RESULT", next_step="Tell the outcome alone; then only outcomes are compared."
        ) from None
    if len(body) > MAX_ARGUMENTS_BYTES:
        raise InputRefused(
            f"the result is {len(body)} bytes; the cap is {MAX_ARGUMENTS_BYTES}.",
            code="E_SHADOW_RESULT",
            next_step="Tell the outcome alone; then only outcomes are compared.",
        )
    return body


def compare_shadows(
    connection: Connection, namespace: str, *, target: str | None = None, tool: str | None = None, limit: int = 100
) -> ShadowReport:
    """What the old path told against what the shadows made, for a namespace or one tool of it.

    Results are compared as JSON values (SHA-256 over their RFC 8785 text), and only where the old path told one.
    """
    arguments = {"namespace": namespace, "target": target, "tool": tool, "limit": limit}
    rows = execute(connection, "compare_shadows", arguments).fetchall()
    sums = {name: getattr(rows[0], f"all_{name}") if rows else 0 for name in ("same", "differs", "missing")}
    lines = [ShadowLine(**{name: getattr(row, name) for name in ShadowLine.model_fields}) for row in rows]
    return ShadowReport(**sums, lines=tuple(lines))
