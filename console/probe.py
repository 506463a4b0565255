"""What a server offers, found out by negotiating with it in the foreground: no database, no broker, no file.

Each protocol is negotiated once over the wire and its guard, for a tool that no server has: so the whole list of tools
is read, and no session stays open. What a protocol's adapter says of each tool is then worked out from the recorded
answers: adapters are sans-I/O, so it is their own judgement, and a server with a hundred tools is asked once.
"""

import itertools
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID, uuid4, uuid5

from ..adapters import registry, strict_json
from ..adapters.contract import (
    Answered,
    NoAnswer,
    Reply,
    Request,
    Sent,
)
from ..adapters.credentials import Credentials
from ..adapters.guard import Guard
from ..adapters.jsonrpc import NoResponse, read
from ..adapters.outcomes import NoAccess, NotOffered
from ..adapters.profile import Profile
from ..adapters.strict_json import Json
from ..adapters.wire import HttpxTransport, run
from ..workers import schemas
from ..workers.targets import Target
from .trouble import ProbeFailed, no_credential, not_mcp, nothing_in_common, nothing_to_call, redirected, unanswered

MAX_TOOLS = 200
"""Tools that are judged; more are counted. One can be named."""

_SPOKEN = "E_TOOL_UNKNOWN"
"""What an adapter answers for a tool that isn't there, once everything else was agreed."""

Send: TypeAlias = Callable[[Request], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool under one protocol. `code` and `why` are None where it can be called."""

    name: str
    task_support: str | None
    """The tool's own word (`execution.taskSupport`), where the protocol has one."""
    code: str | None = None
    why: str | None = None

    @property
    def offered(self) -> bool:
        return self.code is None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One protocol, tried. `code` and `why` are None where the server speaks it."""

    target: Target
    code: str | None = None
    why: str | None = None
    tools: tuple[Tool, ...] = ()
    left_out: int = 0
    """Tools beyond MAX_TOOLS."""

    @property
    def profile(self) -> Profile:
        return self.target.profile

    @property
    def offered(self) -> tuple[Tool, ...]:
        return tuple(tool for tool in self.tools if tool.offered)


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of all attempts. `trouble`: why there is no sense in any of them (not reachable, not MCP, …)."""

    attempts: tuple[Attempt, ...]
    trouble: ProbeFailed | None = None

    @property
    def proposed(self) -> Attempt | None:
        """The first protocol under which a tool can be called."""
        return next((attempt for attempt in self.attempts if attempt.offered), None)

    def require(self) -> Attempt:
        """The proposed one. Raises ProbeFailed."""
        if self.proposed is None:
            raise self.trouble or nothing_to_call(
                [(tool.code or "", tool.why or "") for attempt in self.attempts for tool in attempt.tools]
            )
        return self.proposed


async def probe(targets: Sequence[Target], tool: str | None = None, principal: str = "") -> Probe:
    """Negotiate with one server, given as one target for each protocol to try. `tool`: judge this one alone.

    Never raises for what a server or the network did.
    """
    transport = HttpxTransport(Guard(allow_private=targets[0].allow_private), Credentials(time.monotonic))
    attempts: list[Attempt] = []
    records: list[_Record] = []
    try:
        for target in targets:
            record = _Record(transport, target.credential_for(principal) or "")
            outcome = await _negotiate(target, f"counterfoil-check-{record.base}", record.ask, record.base)
            trouble = record.trouble(target, outcome)
            if trouble is not None:
                return Probe((*attempts, Attempt(target, trouble.code, trouble.message)), trouble)
            attempts.append(await _attempt(target, tool, outcome, record))
            records.append(record)
    finally:
        await transport.aclose()
    if not all(attempt.code for attempt in attempts):
        return Probe(tuple(attempts))
    if any(record.heard_json_rpc() for record in records):
        return Probe(tuple(attempts), nothing_in_common([f"{a.target.protocol}: {a.why or a.code}" for a in attempts]))
    return Probe(tuple(attempts), not_mcp(records[-1].last))


async def _negotiate(target: Target, tool: str, send: Send, base: UUID) -> object:
    # The same ids each time: what was answered to one negotiation fits the requests of the next.
    numbers = itertools.count()
    adapter = registry.adapter(target.protocol, lambda: str(uuid5(base, str(next(numbers)))))
    return await run(adapter.negotiate(target.endpoint(), tool), send)


async def _attempt(target: Target, tool: str | None, outcome: object, record: "_Record") -> Attempt:
    code, why = _refusal(outcome)
    if code != _SPOKEN:
        return Attempt(target, code, why)
    listed = record.listed()
    if tool is None:
        chosen = list(listed.values())[:MAX_TOOLS]
        judged = [await _judge(target, str(item["name"]), item, record) for item in chosen]
    else:
        judged = [await _judge(target, tool, listed.get(tool), record)]
    left_out = 0 if tool is not None else len(listed) - len(judged)
    return Attempt(target, tools=tuple(judged), left_out=left_out)


async def _judge(target: Target, name: str, descriptor: dict[str, Json] | None, record: "_Record") -> Tool:
    """What the adapter says of a tool, and then what a worker would say of its schemas."""
    execution = descriptor.get("execution") if descriptor else None
    support = execution.get("taskSupport") if isinstance(execution, dict) else None
    told = support if isinstance(support, str) else None
    code, why = _refusal(await _negotiate(target, name, record.recall(descriptor), record.base))
    if code is None and descriptor is not None:
        code, why = _schema_fault(target, name, descriptor)
    return Tool(name, told, code, why)


def _refusal(outcome: object) -> tuple[str | None, str | None]:
    if isinstance(outcome, NotOffered):
        return outcome.code, outcome.why.removeprefix("Not sent: ")
    return getattr(outcome, "code", None), getattr(outcome, "why", None)  # Busy has a code, agreement none


def _schema_fault(target: Target, name: str, descriptor: dict[str, Json]) -> tuple[str | None, str | None]:
    """An input schema that is none refuses every call, an output schema that is none makes a case of every result."""
    for key in ("inputSchema", "outputSchema"):
        schema = descriptor.get(key)
        if schema is None or (key == "outputSchema" and target.output_schema(name) is not None):
            continue
        try:
            schemas.require_schema(strict_json.dumps(schema))
        except schemas.SchemaError as error:
            return error.code, f"its {key} can't be used: {error.message}"
    return None, None


class _Record:
    """The requests of one negotiation with their answers."""

    def __init__(self, transport: HttpxTransport, credential: str) -> None:
        self.base = uuid4()
        self.last: Answered | NoAnswer = NoAnswer(Sent.NO, "nothing was asked")
        self._transport = transport
        self._credential = credential
        self._answers: dict[tuple[str, bytes], Answered | NoAnswer] = {}

    async def ask(self, request: Request) -> Reply:
        reply = await self._transport.send(request, credential=self._credential)
        self._answers[request.method, request.body] = reply
        if request.method != "DELETE":  # a goodbye, whatever the answer to it is
            self.last = reply
        return reply

    def recall(self, descriptor: dict[str, Json] | None) -> Send:
        """Answers from memory. With a descriptor the list holds this tool alone: a long one is read once, not once a
        tool."""

        async def answer(request: Request) -> Reply:
            if descriptor is not None and _method(request.body) == "tools/list":
                message = {"jsonrpc": "2.0", "id": _member(request.body, "id"), "result": {"tools": [descriptor]}}
                return Answered(200, {"content-type": "application/json"}, json.dumps(message).encode())
            return self._answers.get((request.method, request.body), NoAnswer(Sent.NO, "this was not asked"))

        return answer

    def listed(self) -> dict[str, dict[str, Json]]:
        """The tools of all pages by name; of two with the same name the first counts, as for an adapter."""
        found: dict[str, dict[str, Json]] = {}
        for (_, body), reply in self._answers.items():
            if _method(body) == "tools/list" and isinstance(reply, Answered):
                for item in _tools(reply):
                    name = item.get("name")
                    if isinstance(name, str) and strict_json.is_storable(name):
                        found.setdefault(name, item)
        return found

    def heard_json_rpc(self) -> bool:
        return any(isinstance(reply, Answered) and _is_json_rpc(reply) for reply in self._answers.values())

    def trouble(self, target: Target, outcome: object) -> ProbeFailed | None:
        """What would be the same under every other protocol."""
        if isinstance(self.last, NoAnswer):
            return unanswered(self.last, target.endpoint())
        if 300 <= self.last.status < 400:
            return redirected(self.last, target.endpoint())
        return no_credential(self.last, self._credential) if isinstance(outcome, NoAccess) else None


def _method(body: bytes) -> object:
    return _member(body, "method")


def _member(body: bytes, name: str) -> object:
    """A member of a request of ours."""
    return json.loads(body).get(name) if body else None


def _is_json_rpc(reply: Answered) -> bool:
    try:
        read(reply, "")
    except NoResponse:
        return False
    return True


def _tools(reply: Answered) -> Iterator[dict[str, Json]]:
    result = read(reply, "").result
    tools = result.get("tools") if isinstance(result, dict) else None
    yield from (item for item in (tools if isinstance(tools, list) else ()) if isinstance(item, dict))
