"""An operation's life as a story: who did what when, in which epoch and generation, what was sent and what was heard.

The journal says what was decided. Beside it stand the intents (what may have left), the evidence (what came back, exact
bytes), the questions to people, the cases with their verdicts, and the receipt. Read without a lock: a story that goes
on while it is read is told as far as it had come.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from sqlalchemy import Connection, RowMapping, Table, func, select

from .records import JournalLine, Receipt, Record, ToolOperation
from .side_tables import input_round
from .tables import evidence, intent

EXCERPT_CHARS = 200
"""Of what a server said: enough to recognize it by. All of it is in the evidence, and the result in the receipt."""

Kind: TypeAlias = Literal["decided", "sent", "heard", "asked", "case", "over"]


class StoryLine(Record):
    """One thing that happened. `who`: door, worker, server, accept_terminal, or a person by name; `epoch` and
    `generation` are None where the thing has none (a server knows neither)."""

    at: datetime
    kind: Kind
    who: str
    what: str
    epoch: int | None = None
    generation: int | None = None
    attempt: int | None = None


def tell_story(
    connection: Connection, operation: ToolOperation, journal: Iterable[JournalLine], receipt: Receipt | None
) -> list[StoryLine]:
    """Everything that the ledger holds about an operation, in the order of its clock."""
    lines = [
        *_decided(operation, journal),
        *_sent(connection, operation.id),
        *_heard(connection, operation.id),
        *_asked(connection, operation.id),
        *_cases(operation),
    ]
    if receipt is not None:
        lines.append(_over(receipt))
    # Within one transaction all bear the same moment: what was sent explains what was heard, and so on.
    ordered = sorted(lines, key=lambda line: (line.at, _ORDER[line.kind]))
    return [line.model_copy(update={"at": line.at.astimezone(UTC)}) for line in ordered]


_ORDER: dict[Kind, int] = {"sent": 0, "heard": 1, "decided": 2, "asked": 3, "case": 4, "over": 5}


# -- what was decided --------------------------------------------------------------------------------------------------


def _decided(operation: ToolOperation, journal: Iterable[JournalLine]) -> Iterator[StoryLine]:
    """The journal. Intents, cases and the acceptance have lines of their own, which say more."""
    for line in journal:
        if line.event not in ("intent", "case_opened", "accepted"):
            yield StoryLine(at=line.at, kind="decided", who=line.actor, what=_words(operation, line), epoch=line.epoch)


def _words(operation: ToolOperation, line: JournalLine) -> str:
    if line.event == "opened":
        asked = f"{operation.target}/{operation.tool} on behalf of {operation.principal}"
        return f"handed in: {asked}, submission key {operation.submission_key}"
    why = ": ".join(part for part in (line.code, line.why) if part)
    if line.event == "moved":
        by = "" if line.lane is None else f" by {line.lane}"
        return f"{line.source} -> {line.target}{by}" + (f" ({why})" if why else "")
    return f"{line.event}: {why}" if why else line.event


# -- what was sent and heard -------------------------------------------------------------------------------------------


def _rows(connection: Connection, table: Table, operation_id: UUID) -> Iterator[RowMapping]:
    query = select(table).where(table.c.operation_id == operation_id)
    yield from connection.execute(query).mappings()


def _sent(connection: Connection, operation_id: UUID) -> Iterator[StoryLine]:
    """An intent is what may have left: the bytes of its one request, until `send_by`."""
    for row in _rows(connection, intent, operation_id):
        about = {"epoch": row["epoch"], "generation": row["generation"], "attempt": row["attempt"]}
        send_s, answer_s = (round((row[end] - row["opened_at"]).total_seconds(), 1) for end in ("send_by", "answer_by"))
        what = f"{row['effect']} intended: may leave within {send_s:g} s, its answer is awaited for {answer_s:g} s"
        yield StoryLine(at=row["opened_at"], kind="sent", who="worker", what=what, **about)
        if row["closed_at"] is not None:
            what = f"{row['effect']} is over: {row['how'].replace('_', ' ')}"
            yield StoryLine(at=row["closed_at"], kind="decided", who="ledger", what=what, **about)


def _heard(connection: Connection, operation_id: UUID) -> Iterator[StoryLine]:
    """Evidence, with the beginning of its bytes."""
    table = evidence.c
    query = select(
        *(table.kind, table.attempt, table.generation, table.epoch, table.status, table.received_at, table.consumed_at),
        func.length(table.body).label("size_bytes"),
        func.encode(func.sha256(table.body), "hex").label("digest"),
        func.substring(table.body, 1, 4 * EXCERPT_CHARS).label("begins"),
    ).where(table.operation_id == operation_id)
    for row in connection.execute(query).mappings():
        said = "an answer that was cut" if row["status"] == 0 else f"HTTP {row['status']}"
        read = "" if row["consumed_at"] is not None else ", not read yet"
        size = f"{row['size_bytes']} bytes, sha256 {row['digest'][:12]}…{read}"
        yield StoryLine(
            at=row["received_at"],
            kind="heard",
            who="server",
            what=f"to {_HEARD.get(row['kind'], row['kind'])}: {said}, {size}: {_excerpt(bytes(row['begins']))}",
            generation=row["generation"],
            attempt=row["attempt"] or None,
        )


_HEARD = {"input": "a reading (a question)", "result": "a reading (a result, kept for a person)"}


def _excerpt(begins: bytes) -> str:
    """What a server said, on one line; whatever could move a terminal is left to whoever prints it."""
    text = " ".join(begins.decode("utf-8", "replace").split())
    return text if len(text) <= EXCERPT_CHARS else f"{text[:EXCERPT_CHARS]}…"


# -- what people were asked --------------------------------------------------------------------------------------------


def _asked(connection: Connection, operation_id: UUID) -> Iterator[StoryLine]:
    """Questions of the tool. What a person replied is theirs: the story says who, when and how, not what."""
    for row in _rows(connection, input_round, operation_id):
        number = row["number"]
        what = f"question {number} ({row['method']}): {_message(row['params'])}"
        yield StoryLine(at=row["opened_at"], kind="asked", who="server", what=what)
        if row["replied_at"] is not None:
            what = f"replied to question {number}: {_action(row['reply'])}"
            yield StoryLine(at=row["replied_at"], kind="asked", who=row["replied_by"], what=what)
        if row["closed_at"] is not None:
            what = f"question {number} is closed: {row['how']}"
            yield StoryLine(at=row["closed_at"], kind="asked", who="ledger", what=what)


def _message(params: bytes) -> str:
    told = _object(params).get("message")
    return _excerpt(told.encode("utf-8", "replace")) if isinstance(told, str) else "no message"


def _action(reply: bytes) -> str:
    action = _object(reply).get("action")
    return action if isinstance(action, str) else "a reply"


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _cases(operation: ToolOperation) -> Iterator[StoryLine]:
    for case in operation.cases:
        yield StoryLine(
            at=case.opened_at, kind="case", who="ledger", what=f"case {case.code} ({case.kind}): {case.why}"
        )
        if case.closed_at is not None:
            words = [f"case {case.code} is closed"]
            words += [f"verdict {case.verdict}"] if case.verdict else []
            words += [f"reason: {case.reason}"] if case.reason else []
            words += [f"second person: {case.second_actor}"] if case.second_actor else []
            yield StoryLine(at=case.closed_at, kind="case", who=case.closed_by or "evidence", what=", ".join(words))


def _over(receipt: Receipt) -> StoryLine:
    code = "" if receipt.error_code is None else f" ({receipt.error_code})"
    effects = "possible" if receipt.effects_possible else "none"
    result = "" if receipt.result_digest is None else f", result sha256 {receipt.result_digest[:12]}…"
    return StoryLine(
        at=receipt.accepted_at,
        kind="over",
        who="accept_terminal",
        what=f"receipt {receipt.id}: {receipt.outcome}{code}, effects: {effects}{result}",
        epoch=receipt.execution_epoch,
        generation=receipt.cancel_generation,
        attempt=receipt.attempt,
    )
