"""The set-based writes of a transition: one statement a table, by key, on rows that the transaction has locked."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from .database import execute
from .decision import Decision
from .events import VerdictGiven
from .ids import uuid7
from .notices import DRAFT_ARRAYS, drafts
from .states import Lane
from .work import Held, Item, Work
from .write_rounds import arrays, write_rounds

_COLUMNS = (
    "attempt",
    "sent_attempt",
    "task_id",
    "session_id",
    "server_status",
    "remote_created_at",
    "ttl_ms",
    "interval_ms",
    "observed_seq",
    "tries",
    "auth_tries",
    "not_found_count",
    "cancel_generation",
    "cancel_due",
    "cancel_sends",
    "cancel_acked",
    "input_round",
    "unanswered_rounds",
    "last_code",
    "error_code",
    "effects_possible",
    "terminal_status",
    "result_digest",
    "result_pointer",
    "budget_running",
    "budget_left_s",
    "input_left_s",
    "confirm_left_s",
    "leg",
    "request_state",
    "result_value_digest",
    "audit_s",
)


WakeKey = tuple[UUID, str]
"""(operation, lane)"""


def write(
    connection: Connection, works: Sequence[Work], rows: Collection[WakeKey], *, fleet: str, epoch: int, actor: str
) -> dict[UUID, tuple[Held, ...]]:
    """Write everything that was decided; returns the wake rows that each operation's bearer now holds. `rows`: the wake
    rows that there are, all of them locked.

    Lock order: operation (held), wake, round, intent, result, case, journal.
    """
    lines = {work.row.id: _journal_lines(work) for work in works}
    touched = [work for work in works if lines[work.row.id] or work.decisions or work.before.execution_epoch < epoch]
    if touched:
        execute(connection, "write_operations", _operation_arrays(touched, lines) | {"epoch": epoch})
    held = _write_wakes(connection, works, rows, fleet=fleet, epoch=epoch)
    _write_children(connection, works, fleet=fleet, epoch=epoch)
    numbered = [
        (work.row.id, work.before.journal_seq + 1 + index, *line)
        for work in touched
        for index, line in enumerate(lines[work.row.id])
    ]
    if numbered:
        names = ("ids", "seqs", "events", "sources", "targets", "lanes", "codes", "whys")
        execute(connection, "write_journal", arrays(names, numbered) | {"epoch": epoch, "actor": actor})
    return held


Line = tuple[str, str | None, str | None, str | None, str | None, str | None]
"""(event, source, target, lane, code, why)"""


def _journal_lines(work: Work) -> list[Line]:
    lines: list[Line] = []
    for decision in work.decisions:
        for index, step in enumerate(decision.steps):
            code, why = (decision.code, decision.why) if index == 0 else (None, None)
            lines.append(("moved", step.source, step.target, step.lane, code, why))
        if not decision.steps and decision.code is not None:
            lines.append(("noted", None, None, None, decision.code, decision.why))
        elif not decision.steps and decision.why is not None:
            lines.append(("asked", None, None, None, None, decision.why))
        if decision.verdict is not None:
            lines.append(("verdict", None, None, Lane.DOOR, None, _words(decision.verdict)))
        lines += [("case_opened", None, case.kind, None, case.code, case.why) for case in decision.opens]
    lines += [("refused", None, None, None, refusal.code, refusal.why) for refusal in work.refusals]
    return [(*line[:5], line[5][:500] if line[5] else None) for line in lines]


def _words(said: VerdictGiven) -> str:
    """A verdict for the journal, whose line bears the first person's name already."""
    second = "" if said.second_actor is None else f" (second: {said.second_actor})"
    return f"{said.verdict}{second}: {said.reason}"


def _operation_arrays(works: Sequence[Work], lines: dict[UUID, list[Line]]) -> dict[str, list[Any]]:
    now = [work.row.operation for work in works]
    before = [work.before.operation for work in works]
    columns: dict[str, list[Any]] = {name: [getattr(op, name) for op in now] for name in _COLUMNS}
    columns["id"] = [op.id for op in now]
    for name in ("state", "settle_as", "outcome"):
        columns[name] = [None if getattr(op, name) is None else str(getattr(op, name)) for op in now]
    columns["budget_moved"] = [
        (a.budget_left_s, a.budget_running) != (b.budget_left_s, b.budget_running)
        for a, b in zip(now, before, strict=True)
    ]
    for name in ("input", "confirm"):
        left = f"{name}_left_s"
        columns[f"{name}_moved"] = [getattr(a, left) != getattr(b, left) for a, b in zip(now, before, strict=True)]
    columns["audit_moved"] = [
        a.audit_left_s is None and b.audit_left_s is not None for a, b in zip(now, before, strict=True)
    ]
    columns["journal_seq"] = [work.before.journal_seq + len(lines[work.row.id]) for work in works]
    return columns


def _write_wakes(
    connection: Connection, works: Sequence[Work], there: Collection[WakeKey], *, fleet: str, epoch: int
) -> dict[UUID, tuple[Held, ...]]:
    """Move, drop and add, as far as there is anything: the operations are locked, so nobody else adds or drops."""
    wanted = [(work, lane, delay_s, _bearer(work, lane)) for work in works for lane, delay_s in work.needed().items()]
    ids = [work.row.id for work, *_ in wanted]
    lanes = [str(lane) for _, lane, *_ in wanted]
    keys = list(zip(ids, lanes, strict=True))
    delays_s = [_stretched(lane, delay_s, item) for _, lane, delay_s, item in wanted]
    holds_s = [_hold_s(lane, delay_s, item) for (_, lane, _, item), delay_s in zip(wanted, delays_s, strict=True)]
    tokens = [None if item is None else item.token for *_, item in wanted]
    shared: dict[str, list[Any]] = {
        "ids": ids,
        "lanes": lanes,
        "delays_s": delays_s,
        "tokens": tokens,
        "leases_s": holds_s,
    }
    rows: list[Any] = []
    moved = [index for index, key in enumerate(keys) if key in there]
    if moved:
        shared["replaces"] = [lane in work.replaced for work, lane, *_ in wanted]
        shared["kicks"] = [0 if item is None or item.lane is not lane else item.kick for _, lane, _, item in wanted]
        rows += execute(connection, "move_wakes", _only(moved, shared))
    missing = [index for index, key in enumerate(keys) if key not in there]
    gone = sorted(set(there) - set(keys))
    if missing or gone:
        shared["targets"] = [work.row.target for work, *_ in wanted]
        dropped = arrays(("gone_ids", "gone_lanes"), gone)
        rows += execute(connection, "swap_wakes", _only(missing, shared) | dropped | {"fleet": fleet, "epoch": epoch})
    return _held(rows, dict(zip(keys, zip(tokens, delays_s, strict=True), strict=True)))


def _only(indices: Sequence[int], columns: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: [values[index] for index in indices] for name, values in columns.items()}


def _bearer(work: Work, lane: Lane) -> Item | None:
    """Whose lease matters for this lane's row: the one who claimed it, else one who may take it over."""
    own = next((item for item in work.items if item.token is not None and item.lane is lane), None)
    return own or next((item for item in work.items if item.token is not None and lane in item.hold_lanes), None)


def _stretched(lane: Lane, delay_s: float, item: Item | None) -> float:
    """Jitter only makes it later, and only readings have it: a herd of operations must not stay one (SPEC section
    3)."""
    return delay_s * (1.0 + item.jitter) if item is not None and lane is Lane.POLL else delay_s


def _hold_s(lane: Lane, delay_s: float, item: Item | None) -> float | None:
    """Resident only while the next due moment is within one lease."""
    if item is None or item.hold_s is None or lane not in item.hold_lanes or delay_s > item.hold_s:
        return None
    return item.hold_s


def _held(
    rows: Iterable[Any], wanted: dict[tuple[UUID, str], tuple[UUID | None, float]]
) -> dict[UUID, tuple[Held, ...]]:
    held: dict[UUID, tuple[Held, ...]] = {}
    for operation_id, lane, kick, read_seq, token in rows:
        asked, delay_s = wanted[operation_id, lane]
        if token is not None and token == asked:
            held[operation_id] = (*held.get(operation_id, ()), Held(Lane(lane), token, kick, read_seq, delay_s))
    return held


def _by(decision: Decision) -> tuple[str, str | None, str | None, str | None]:
    """Who closes cases: evidence, or a person with a verdict."""
    said = decision.verdict
    return (
        ("evidence", None, None, None) if said is None else (said.actor, said.verdict, said.reason, said.second_actor)
    )


def _keep_results(connection: Connection, decided: Sequence[tuple[UUID, Decision]], *, fleet: str, epoch: int) -> None:
    """Results that can't be accepted by themselves stay with the evidence, for the person who may accept them."""
    kept = [(uuid7(), id_, d.keeps.body, d.keeps.pointer) for id_, d in decided if d.keeps is not None]
    if kept:
        names = ("ids", "operations", "bodies", "pointers")
        execute(connection, "keep_results", arrays(names, kept) | {"fleet": fleet, "epoch": epoch})


def _write_children(connection: Connection, works: Sequence[Work], *, fleet: str, epoch: int) -> None:
    consumed = [piece for work in works for piece in work.consumed]
    if consumed:
        execute(connection, "consume_evidence", {"ids": consumed})
    decided = [(work.row.id, decision) for work in works for decision in work.decisions]
    write_rounds(connection, works)
    ended = [(id_, decision.intent.effect, decision.intent.how) for id_, decision in decided if decision.intent]
    if ended:
        execute(connection, "close_intents", arrays(("ids", "effects", "hows"), ended))
    results = [(id_, d.result.body, d.result.pointer, d.result.digest) for id_, d in decided if d.result is not None]
    if results:
        execute(connection, "store_results", arrays(("ids", "bodies", "pointers", "digests"), results))
    _keep_results(connection, decided, fleet=fleet, epoch=epoch)
    open_kinds = {work.row.id: {case.kind for case in work.before.operation.cases} for work in works}
    closed = [
        (id_, str(kind), *_by(decision))
        for id_, decision in decided
        for kind in decision.closes
        if kind in open_kinds[id_]
    ]
    if closed:
        names = ("ids", "kinds", "by", "verdicts", "reasons", "seconds")
        execute(connection, "close_cases", arrays(names, closed))
    opened = [
        (uuid7(), work.row.id, str(case.kind), case.code, case.why[:500], case.closed)
        for work in works
        for case in work.cases_to_open()
    ]
    if opened:
        names = ("ids", "operations", "kinds", "codes", "whys", "closed")
        execute(connection, "open_cases", arrays(names, opened))
    noticed = drafts(works)
    if noticed:
        execute(connection, "write_notices", arrays(DRAFT_ARRAYS, noticed))
