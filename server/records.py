"""What is remembered of a key, and what that means for the next request with it. Pure: no store, no clock."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from .calls import Call
from .errors import key_reused, key_unsure
from .store import Entry, StoreError

# A holder renews every third of this. Longer silence means that its process died or stands still.
LEASE_S = 15.0
VALUE_BYTES_MAX = 1024 * 1024
LEGS_MAX = 32


class Kind(StrEnum):
    """What a request was answered with. NOT_KEPT: too large to keep, or of a kind that can't be told again."""

    RESULT = "result"
    TASK = "task"
    QUESTION = "question"
    ERROR = "error"
    NOT_KEPT = "not_kept"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request, as it goes over the wire: a result object, or an error's code, message and data."""

    kind: Kind
    body: Mapping[str, Any]

    @classmethod
    def of_result(cls, result: Mapping[str, Any]) -> "Answer":
        """Sort a `tools/call` result by its `resultType` (absent before 2026-07-28)."""
        body = dict(result)
        match body.get("resultType", "complete"):
            case "complete":
                return cls(Kind.RESULT, body)
            case "task":
                return cls(Kind.TASK, body)
            case "input_required":
                return cls(Kind.QUESTION, body)
            case _:  # of an extension that we don't know
                return NOT_KEPT

    @classmethod
    def of_error(cls, code: int, message: str, data: Any = None) -> "Answer":
        """Keep a JSON-RPC error: the tool may have run before it was raised, so it is an outcome like any other."""
        return cls(Kind.ERROR, {"code": code, "message": message} | ({} if data is None else {"data": data}))


NOT_KEPT = Answer(Kind.NOT_KEPT, {})


@dataclass(frozen=True, slots=True)
class Record:
    """What the store holds of a key. `answer` is None while a request with it runs.

    `legs`: the legs that ran, oldest first; each runs once. `run` tells one attempt to take the key from another.
    """

    tool: str
    request: str
    legs: tuple[str, ...]
    run: str
    answer: Answer | None = None

    def answered(self, answer: Answer) -> "Record":
        """Return the record after its run, with NOT_KEPT where the answer can't be stored."""
        record = replace(self, answer=answer)
        try:
            fits = len(record.encode()) <= VALUE_BYTES_MAX
        except (TypeError, ValueError, RecursionError):
            fits = False
        return record if fits else replace(self, answer=NOT_KEPT)

    def encode(self) -> bytes:
        """Return it as JSON, in ASCII."""
        answer = None if self.answer is None else {"kind": self.answer.kind, "body": self.answer.body}
        fields = {"tool": self.tool, "request": self.request, "legs": self.legs, "run": self.run, "answer": answer}
        return json.dumps({"v": 1} | fields, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, value: bytes) -> "Record":
        """Read one back.

        Raises:
            StoreError: it isn't one of ours.
        """
        try:
            read = json.loads(value)
            answer = read["answer"]
            return cls(
                tool=read["tool"],
                request=read["request"],
                legs=tuple(read["legs"]),
                run=read["run"],
                answer=None if answer is None else Answer(Kind(answer["kind"]), answer["body"]),
            )
        except (ValueError, LookupError, TypeError) as error:
            raise StoreError("a record of a submission key can't be read") from error


@dataclass(frozen=True, slots=True)
class Take:
    """The request may run, if `record` can be written as this `version` of its key."""

    record: Record
    version: int


@dataclass(frozen=True, slots=True)
class Wait:
    """The same request runs already: look again later."""


def judge(call: Call, entry: Entry | None) -> Take | Wait | Answer:
    """Say what a request with a key has to do, by what the store holds of the key.

    A key nobody used is taken. A request that ran is answered as it was then. A question's answers are the next leg,
    which takes the key once more.

    Raises:
        MCPError: E_KEY_REUSED_DIFFERENT_REQUEST, E_KEY_UNSURE.
        StoreError: what the store holds is no record.
    """
    run = secrets.token_hex(8)
    if entry is None:
        return Take(Record(call.tool, call.request, (call.leg,), run), version=1)
    record = Record.decode(entry.value)
    if record.request != call.request:
        raise key_reused()
    if call.leg not in record.legs:
        asked = record.answer is not None and record.answer.kind is Kind.QUESTION
        if not asked or len(record.legs) >= LEGS_MAX:
            raise key_reused()
        return Take(replace(record, legs=(*record.legs, call.leg), run=run, answer=None), version=entry.version + 1)
    if record.answer is None and not is_lost(entry):
        return Wait()
    if record.answer is None or record.answer.kind is Kind.NOT_KEPT:
        raise key_unsure()
    return record.answer


def is_lost(entry: Entry) -> bool:
    """Whether nobody renews a running request any more. Not final: its holder may only have stood still."""
    return entry.age_s > LEASE_S
