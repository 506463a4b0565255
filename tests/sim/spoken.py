"""What requests ask and answers say, whatever their protocol."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from counterfoil.adapters.contract import Answered

from .remote import Server, Task

TOOL = "work"
KEY = "dev.counterfoil/submission-key"
OUTPUT_SCHEMA = {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]}
JSON_TYPE = {"content-type": "application/json"}


@dataclass(frozen=True)
class Asked:
    """A request. Its `method` has the name of MCP's for the same thing, whatever the protocol calls it. `arguments`,
    `leg` (what it answers, where the call was answered with a question) and `key` are those of a call."""

    method: str
    key: str | None = None
    task: str | None = None
    arguments: str = ""
    leg: str = ""
    id: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Told:
    """What an answer says of a task. `asks`: its question is in it."""

    task: str
    status: str
    asks: bool = False


@dataclass(frozen=True)
class Said:
    """An answer, and how long the server takes for it."""

    reply: Answered
    takes_s: float = 0.0
    told: Told | None = None


SILENCE = Said(Answered(200, {"content-type": "text/event-stream"}, b""), math.inf)
"""A stream on which nothing comes."""


def answer(body: object, status: int = 200, **headers: str) -> Said:
    """An answer, None for an empty one."""
    return Said(Answered(status, JSON_TYPE | headers, b"" if body is None else json.dumps(body).encode()))


def say(server: Server, now_s: float, said: Said, task: Task | None = None) -> Said:
    """An answer that the server has in its log, since a result may be in it."""
    server.said.append((now_s, task.number if task else None, said.reply.body))
    return said


def born(task: Task, shift_s: float = 0.0) -> str:
    """createdAt. Two tasks of one run never share it."""
    at_s = task.born_s + shift_s
    return (
        f"2026-12-01T{10 + int(at_s) // 3600}:{int(at_s) // 60 % 60:02}:{at_s % 60:06.3f}{task.number:03}Z{odd(task)}"
    )


HOSTILE = "\0\ud800"
"""What can't be stored as it comes: NUL, and half a surrogate pair."""


def odd(task: Task, fault: str = "") -> str:
    """What stands in some texts about a task."""
    return HOSTILE if task.course.hostile or fault == "hostile text" else ""


def status_told(task: Task, now_s: float, fault: str) -> str:
    """Its status, or that of a while ago."""
    return task.status(max(now_s - 4.0, task.born_s) if fault == "older status" else now_s)


def known(server: Server, now_s: float, task_id: str | None, fault: str) -> Task | None:
    """The task of that id. None, and noted: the server denies it."""
    task = server.find(task_id or "")
    if task is None or task.forgotten(now_s) or fault == "not found":
        server.not_found.append((now_s, task_id or ""))
        return None
    return task


def rows_of(task: Task) -> dict[str, Any] | None:
    """The result of a task, None where it has none."""
    if task.course.result == "none":
        return None
    return {"rows": "many" if task.course.result == "broken" else task.number}


def looked_up(server: Server, key: str | None) -> list[Task]:
    """What there is under a key: the truth."""
    made = server.with_key(key or "")
    server.sometimes.add(f"a lookup {'found' if made else 'missed'}")
    return made


# -- what goes wrong there -------------------------------------------------------------------------------------------


def _error_body(code: int) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": "no"}}).encode()


REFUSALS = {
    "asked to wait": Answered(429, JSON_TYPE | {"retry-after": "3"}, _error_body(-32000)),
    "unavailable": Answered(503, JSON_TYPE, _error_body(-32000)),
    "credential refused": Answered(401, {"www-authenticate": "Bearer"}, b""),
    "session gone": Answered(404, JSON_TYPE, _error_body(-32600)),
}
"""Answers of a server (or of what stands before it) that has done nothing."""

METHOD_GONE = "method gone"
"""The tool is not to be called just now: for certain nothing ran, of this call."""

BROKEN = {
    "unavailable behind": Answered(503, JSON_TYPE | {"retry-after": "2"}, _error_body(-32000)),
    "broken behind": Answered(500, {"content-type": "text/html"}, b"<html>Bad gateway</html>"),
}
"""Answers of a gateway whose server has done what it was asked."""
