"""Scripted servers of declared APIs, on loopback: they keep their own books, which are the oracle."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .conftest import Connection

Said = tuple[int, Mapping[str, str], object]
"""Status, headers, JSON value."""


class Dropped(Exception):
    """Processed, and the answer never leaves."""


@dataclass
class Asked:
    verb: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class Books:
    """What a server was asked, and what it did. `faults`: taken one after the other, each before an answer leaves."""

    asked: list[Asked] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    faults: list[Callable[[Said], Said]] = field(default_factory=list)

    def requests(self, verb: str, path: str) -> int:
        return sum((one.verb, one.path) == (verb, path) for one in self.asked)


def drop(_said: Said) -> Said:
    raise Dropped


def whole(said: Said) -> Said:
    return said


class Serving(ABC):
    """Speaks HTTP/1.1 for a server whose `answer` knows what to say."""

    def __init__(self) -> None:
        self.books = Books()

    @abstractmethod
    def answer(self, asked: Asked) -> Said:
        """What is done and said, before any fault."""

    async def __call__(self, connection: Connection) -> None:
        while raw := await connection.request():
            head, _, body = raw.partition(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            verb, path, _ = first.split(" ")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            asked = Asked(verb, path, headers, json.loads(body) if body else None)
            self.books.asked.append(asked)
            said = self.answer(asked)
            try:
                status, more, value = (self.books.faults.pop(0) if self.books.faults else whole)(said)
            except Dropped:
                return
            named = "".join(f"{name}: {text}\r\n" for name, text in more.items())
            await connection.answer(
                json.dumps(value).encode(), f"{status} X", f"{named}Content-Type: application/json\r\n"
            )


class JobServer(Serving):
    """`http-202`: a job is over at its third status; a known key returns the first job. `chosen`: the key is the id."""

    def __init__(self, *, chosen: bool = False) -> None:
        super().__init__()
        self._chosen = chosen
        self._jobs: dict[str, str] = {}
        self._status: dict[str, list[str]] = {}

    def answer(self, asked: Asked) -> Said:
        match asked.verb, asked.path.split("/")[1:]:
            case "POST", ["jobs"]:
                return self._submit(asked)
            case "GET", ["jobs", id_] if id_ in self._status:
                words = self._status[id_]
                return 200, {"Retry-After": "0"}, {"id": id_, "status": words.pop(0) if len(words) > 1 else words[0]}
            case "GET", ["jobs", id_, "result"] if id_ in self._status:
                return 200, {}, {"rows": 3}
            case "DELETE", ["jobs", id_] if id_ in self._status:
                self._status[id_] = ["canceling", "canceled"]
                return 202, {}, {"id": id_, "status": "canceling"}
            case _:
                return 404, {}, {"error": "not found"}

    def _submit(self, asked: Asked) -> Said:
        key = asked.headers["idempotency-key"]
        id_ = self._jobs.get(key)
        if id_ is None:
            id_ = self._jobs[key] = key if self._chosen else f"j-{len(self.books.effects) + 1}"
            self.books.effects.append(id_)
            self._status[id_] = ["queued", "running", "succeeded"]
        return 202, {"Location": f"/jobs/{id_}", "Retry-After": "2"}, {"id": id_, "status": "queued"}


class ReportServer(Serving):
    """`aip-151`: an operation is done at its second status; a request id that is known is ALREADY_EXISTS."""

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[str, str] = {}
        self._operations: dict[str, list[dict[str, Any]]] = {}

    def answer(self, asked: Asked) -> Said:
        if (asked.verb, asked.path) == ("POST", "/v1/reports:generate"):
            return self._submit(asked.body)
        name, _, verb = asked.path.removeprefix("/v1/").partition(":")
        states = self._operations.get(name)
        if states is None:
            return 404, {}, {"error": {"code": 404, "status": "NOT_FOUND"}}
        if verb == "cancel":
            states[:] = [{"done": False}, {"done": True, "error": {"code": 1, "message": "CANCELLED"}}]
            return 200, {}, {}
        state = states.pop(0) if len(states) > 1 else states[0]
        return 200, {}, {"name": name} | state

    def _submit(self, body: Mapping[str, Any]) -> Said:
        name = self._names.get(body["requestId"])
        if name is not None:
            error = {"code": 409, "status": "ALREADY_EXISTS", "details": [{"operation": name}]}
            return 409, {}, {"error": error}
        name = self._names[body["requestId"]] = f"operations/op-{len(self.books.effects) + 1}"
        self.books.effects.append(name)
        self._operations[name] = [{}, {"done": True, "response": {"@type": "x/acme.Report", "rows": 3}}]
        return 200, {}, {"name": name, "metadata": {"@type": "x/acme.Meta"}}
