"""The servers of the comparison: one body of work behind three protocols, with faults and a log that is the count."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

from .faults import LATE_S, RETRY_AFTER_S, Act, Fault, Kind


@dataclass
class Operation:
    """One piece of work. `rows` is its result, which no other operation has."""

    id: str
    rows: int
    began_s: float
    context: str | None = None
    cancel_asked: bool = False
    ended_reads: int = 0


@dataclass(frozen=True)
class Line:
    """One request in the log, at its arrival."""

    at_s: float
    kind: Kind
    retry_after_s: int | None


@dataclass(frozen=True)
class Asked:
    """One request as a protocol reads it. `waits`: the answer is to come when the work is over."""

    kind: Kind
    key: str | None = None
    id: str | None = None
    waits: bool = False
    message: Any = None


@dataclass(frozen=True)
class Said:
    status: int
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()


class Dialect(Protocol):
    """One protocol. `shows` tells of an answer whether it hands out the result."""

    def read(self, verb: str, path: str, headers: dict[str, str], body: Any) -> Asked: ...

    def started(self, base: str, asked: Asked, operation: Operation, word: str) -> Said: ...

    def shown(self, base: str, asked: Asked, operation: Operation, word: str) -> Said: ...

    def cancelled(self, asked: Asked, operation: Operation) -> Said: ...

    def found(self, base: str, asked: Asked, operations: list[tuple[Operation, str]]) -> Said: ...

    def other(self, base: str, asked: Asked) -> Said: ...

    def unknown(self, asked: Asked) -> Said: ...

    def error_200(self, asked: Asked) -> Said: ...


@dataclass
class Run:
    """One client under one fault: the work, the log, and what becomes of the client's process."""

    name: str
    dialect: Dialect
    fault: Fault
    dedupes: bool
    operations: list[Operation] = field(default_factory=list)
    log: list[Line] = field(default_factory=list)
    met: int = 0
    kill: Callable[[], None] = lambda: None
    _keys: dict[str, Operation] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # -- what happened, for the judge ----------------------------------------------------------------------------------

    @property
    def sends(self) -> int:
        return sum(line.kind is Kind.SUBMIT for line in self.log)

    @property
    def rows(self) -> list[int]:
        return [operation.rows for operation in self.operations]

    def impatience_s(self) -> float | None:
        """The soonest that a client came back of those that were told to wait; None where nobody came too soon."""
        pairs = zip(self.log, self.log[1:], strict=False)
        gaps = [after.at_s - one.at_s for one, after in pairs if one.retry_after_s is not None]
        soon = [gap for gap in gaps if gap < RETRY_AFTER_S - 0.1]
        return min(soon, default=None)

    # -- answering -----------------------------------------------------------------------------------------------------

    def answer(self, base: str, asked: Asked) -> tuple[Said, Act | None]:
        """What is said, and what happens to it on its way."""
        with self._lock:
            act = self._act(asked)
            refused = act in (Act.REFUSED, Act.UNAVAILABLE)
            self.log.append(Line(time.monotonic(), asked.kind, RETRY_AFTER_S if refused else None))
            operation = None if act is Act.REFUSED else self._operation(asked)
        if asked.kind is Kind.SUBMIT and asked.waits and operation is not None and act is None:
            time.sleep(max(operation.began_s + self.fault.work_s - time.monotonic(), 0))  # it answers when it is over
        with self._lock:
            said = self._said(base, asked, operation, act)
            if self.fault.with_result and self._has_result(said) and self.met < self.fault.times:
                self.met += 1
                act = self.fault.act
        return said, act

    def _act(self, asked: Asked) -> Act | None:
        fault = self.fault
        if asked.kind is not fault.on or fault.with_result or self.met >= fault.times:
            return None
        self.met += 1
        return fault.act

    def _has_result(self, said: Said) -> bool:
        text = json.dumps(said.body)
        return any(f'"rows": {rows}' in text for rows in self.rows)

    def _operation(self, asked: Asked) -> Operation | None:
        if asked.kind is not Kind.SUBMIT:
            return next((one for one in self.operations if one.id == asked.id), None)
        known = self._keys.get(asked.key) if asked.key is not None and self.dedupes else None
        if known is not None:
            return known
        number = len(self.operations) + 1
        operation = Operation(asked.id or f"op-{number}", 1000 + number, time.monotonic(), asked.key)
        self.operations.append(operation)
        if asked.key is not None:
            self._keys[asked.key] = operation
        return operation

    def _said(self, base: str, asked: Asked, operation: Operation | None, act: Act | None) -> Said:
        wait = (("Retry-After", str(RETRY_AFTER_S)),)
        match act:
            case Act.REFUSED:
                return Said(429, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "too many"}}, wait)
            case Act.UNAVAILABLE:
                return Said(503, {"error": {"code": 503, "status": "UNAVAILABLE", "message": "try again"}}, wait)
            case Act.NOT_FOUND:
                return self.dialect.unknown(asked)
            case Act.ERROR_200:
                return self.dialect.error_200(asked)
        if asked.kind is Kind.LOOKUP:
            found = self._keys.get(asked.key or "")
            return self.dialect.found(base, asked, [] if found is None else [(found, self._word(found))])
        if asked.kind is Kind.OTHER:
            return self.dialect.other(base, asked)
        if operation is None:
            return self.dialect.unknown(asked)
        if asked.kind is Kind.CANCEL:
            operation.cancel_asked = True
            return self.dialect.cancelled(asked, operation)
        if asked.kind is Kind.SUBMIT:
            return self.dialect.started(base, asked, operation, self._word(operation) if asked.waits else "working")
        return self.dialect.shown(base, asked, operation, self._word(operation))

    def _word(self, operation: Operation) -> str:
        """How an operation stands: working, completed, empty, failed, unknown; "cancelled" is said of one whose cancel
        was asked for and which completes all the same, where the protocol has the word for it at once."""
        if time.monotonic() < operation.began_s + self.fault.work_s:
            return "cancelled" if operation.cancel_asked else "working"
        if self.fault.ending == "changed":
            operation.ended_reads += 1
            return "failed" if operation.ended_reads == 1 else "completed"
        return self.fault.ending


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # all clients begin at once, and a refused connection is none of the faults


class Service:
    """All runs of a comparison on one port: a run's name is the first part of its paths."""

    def __init__(self, runs: list[Run]) -> None:
        self._runs = {run.name: run for run in runs}
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, run: Run) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/{run.name}"

    def _handler(service) -> type[BaseHTTPRequestHandler]:  # noqa: N805  `self` is the handler's, inside
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._serve()

            def do_POST(self) -> None:
                self._serve()

            def _serve(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = urlsplit(self.path)
                name, _, rest = parts.path.lstrip("/").partition("/")
                run = service._runs[name]
                headers = {key.lower(): value for key, value in self.headers.items()}
                path = f"/{rest}?{parts.query}" if parts.query else f"/{rest}"
                asked = run.dialect.read(self.command, path, headers, json.loads(raw) if raw else None)
                said, act = run.answer(service.url(run), asked)
                self._say(run, said, act)

            def _say(self, run: Run, said: Said, act: Act | None) -> None:
                if act is Act.KILLED:
                    run.kill()
                if act in (Act.KILLED, Act.LOST):
                    self.close_connection = True
                    return
                if act is Act.LATE:
                    time.sleep(LATE_S)  # the lateness is the fault
                body = b"" if said.body is None else json.dumps(said.body).encode()
                try:
                    self.send_response(said.status)
                    for key, value in said.headers:
                        self.send_header(key, value)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body[: len(body) // 2] if act is Act.CUT else body)
                except ConnectionError:
                    self.close_connection = True  # whoever asked has gone
                if act is Act.CUT:
                    self.close_connection = True

            def log_message(self, *_: object) -> None: ...

        return Handler
