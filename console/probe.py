"""What a server offers, found out by negotiating with it in the foreground: no database, no broker, no file.

Each protocol is negotiated once over the wire and its guard, for a tool that no server has: so the whole list of tools
is read, and no session stays open. What a protocol's adapter says of each tool is then worked out from the recorded
answers: adapters are sans-I/O, so it is their own judgement, and a server with a hundred tools is asked once. Nothing
here knows a protocol: an adapter of another package is asked the same.
"""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID, uuid4, uuid5

from ..adapters import registry, strict_json
from ..adapters.contract import Answered, Endpoint, NoAnswer, Reply, Request, Sent
from ..adapters.credentials import Credentials
from ..adapters.fields import member
from ..adapters.guard import Guard
from ..adapters.jsonrpc import NoResponse, read
from ..adapters.outcomes import Negotiated, Negotiation, NoAccess, NotOffered
from ..adapters.profile import Profile
from ..adapters.strict_json import Json
from ..adapters.wire import Transport, run
from ..adapters.wire_httpx import HttpxTransport
from ..workers import schemas
from ..workers.targets import Target
from .live import Heard, ask_live
from .trouble import (
    ProbeFailed,
    no_credential,
    nothing_in_common,
    nothing_to_call,
    redirected,
    unanswered,
    unrecognised,
)

MAX_TOOLS = 200
"""Tools that are judged; more are counted. One can be named."""

MAX_JUDGING_S = 10.0
"""Of one protocol: each tool is judged from the whole recorded list, and a hostile one takes seconds to read."""

ANY_TOOL = "any tool"
"""Stands for the tools of a declared API whose target names none: all have the same declaration."""

_SPOKEN = "E_TOOL_UNKNOWN"
"""What an adapter answers for a tool that isn't there, once everything else was agreed."""


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
    """Tools beyond MAX_TOOLS or MAX_JUDGING_S."""
    lists: bool = True
    """Whether the server tells which tools it has; else those that were named are judged."""
    heard: Heard | None = None
    """What a declared API said to a read that it has to refuse; None for all that negotiate on the wire."""

    @property
    def profile(self) -> Profile:
        return self.target.profile

    @property
    def offered(self) -> tuple[Tool, ...]:
        return tuple(tool for tool in self.tools if tool.offered)

    @property
    def tells_none(self) -> bool:
        """It is spoken, its server lists no tools, and none was named."""
        return self.code is None and not self.lists and not self.tools


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of all attempts. `trouble`: why there is no sense in any of them (not reachable, not known, …)."""

    attempts: tuple[Attempt, ...]
    trouble: ProbeFailed | None = None

    @property
    def proposed(self) -> Attempt | None:
        """The first protocol under which a tool can be called, or else may be: its server tells none."""
        untold = (attempt for attempt in self.attempts if attempt.tells_none)
        return next((attempt for attempt in self.attempts if attempt.offered), None) or next(untold, None)

    def require(self) -> Attempt:
        """The proposed one. Raises ProbeFailed."""
        if self.proposed is None:
            raise self.trouble or nothing_to_call(
                [(tool.code or "", tool.why or "") for attempt in self.attempts for tool in attempt.tools]
            )
        return self.proposed


async def probe(families: Sequence[Sequence[Target]], tool: str | None = None, principal: str = "") -> Probe:
    """Negotiate with one server, given as one target for each protocol to try; once one of a family is spoken, the
    families after it are not tried. `tool`: judge this one alone.

    Never raises for what a server or the network did.
    """
    transport = HttpxTransport(Guard(allow_private=families[0][0].allow_private), Credentials(time.monotonic))
    attempts: list[Attempt] = []
    records: list[_Record] = []
    refused: ProbeFailed | None = None
    try:
        for target in itertools.chain(*families):
            if _is_enough(families, target, attempts):
                continue
            record = _Record(transport, target.credential_for(principal) or "")
            outcome = await _negotiate(target, f"counterfoil-check-{record.base}", record)
            trouble = record.trouble(target, outcome)
            if trouble is not None:
                attempts.append(Attempt(target, trouble.code, trouble.message))
                if trouble.code != "E_AUTH":
                    return Probe(tuple(attempts), trouble)
                refused = refused or trouble  # an agent's card may be read without a credential all the same
                continue
            attempts.append(await _attempt(target, tool, outcome, record))
            records.append(record)
    finally:
        await transport.aclose()
    if not all(attempt.code for attempt in attempts):
        return Probe(tuple(attempts))
    return Probe(tuple(attempts), refused or _nothing(attempts, records))


def _is_enough(families: Sequence[Sequence[Target]], target: Target, attempts: Sequence[Attempt]) -> bool:
    """Whether a protocol of another family is spoken already."""
    spoken = [attempt.target for attempt in attempts if attempt.code is None]
    return any(target not in family and one in family for family in families for one in spoken)


def _nothing(attempts: Sequence[Attempt], records: Sequence["_Record"]) -> ProbeFailed:
    """Why none of them is spoken."""
    whys = [f"{attempt.target.protocol}: {attempt.why or attempt.code}" for attempt in attempts]
    last = records[0].last
    if last is None or any(record.heard_json_rpc() for record in records):
        return nothing_in_common(whys)
    others = [attempt.why or "" for attempt in attempts if attempt.target.protocol not in registry.MCP]
    return unrecognised(last, others)


async def _negotiate(target: Target, tool: str, record: "_Record") -> Negotiation:
    # The same ids each time: what was answered to one negotiation fits the requests of the next.
    numbers = itertools.count()
    adapter = registry.adapter(target.protocol, lambda: str(uuid5(record.base, str(next(numbers)))))
    try:
        return await run(adapter.negotiate(_endpoint(target, tool), tool), record.ask)
    except RuntimeError as error:  # an adapter that comes to no end
        return NotOffered("E_ADAPTER_BROKEN", f"{error}.")


def _endpoint(target: Target, tool: str) -> Endpoint:
    return replace(target.endpoint(), api=target.policy(tool).api)


async def _attempt(target: Target, tool: str | None, outcome: Negotiation, record: "_Record") -> Attempt:
    code, why = _refusal(outcome)
    if code not in (_SPOKEN, None) and not target.profile.declares:
        return Attempt(target, code, why)
    others = outcome.others if isinstance(outcome, NotOffered) else None
    if tool is not None:
        names: Sequence[str] = (tool,)
    elif others is not None:
        names = others
    else:
        names = target.tools or ((ANY_TOOL,) if target.profile.declares else ())
    judged: list[Tool] = []
    until_s = time.monotonic() + MAX_JUDGING_S
    for name in names[:MAX_TOOLS]:
        if judged and time.monotonic() > until_s:
            break
        judged.append(await _judge(target, name, record))
    heard = None
    sendable = next((one.name for one in judged if one.offered), None)
    if target.profile.declares and sendable is not None:
        heard = await ask_live(target, sendable, _endpoint(target, sendable), record.ask)
    left_out = len(names) - len(judged)
    return Attempt(target, tools=tuple(judged), left_out=left_out, lists=others is not None, heard=heard)


async def _judge(target: Target, name: str, record: "_Record") -> Tool:
    """What the adapter says of a tool, and then what a worker would say of its schemas."""
    outcome = await _negotiate(target, name, record)
    if not isinstance(outcome, Negotiated):
        return Tool(name, None, *_refusal(outcome))
    descriptor = strict_json.loads(outcome.descriptor)
    support = member(descriptor, "execution", "taskSupport")
    told = support if isinstance(support, str) else None
    return Tool(name, told, *_schema_fault(target, name, descriptor))


def _refusal(outcome: Negotiation) -> tuple[str | None, str | None]:
    if isinstance(outcome, NotOffered):
        return outcome.code, outcome.why.removeprefix("Not sent: ")
    return getattr(outcome, "code", None), getattr(outcome, "why", None)  # Busy has a code, agreement none


def _schema_fault(target: Target, name: str, descriptor: Json) -> tuple[str | None, str | None]:
    """An input schema that is none refuses every call, an output schema that is none makes a case of every result."""
    for key in ("inputSchema", "outputSchema"):
        schema = member(descriptor, key)
        if schema is None or (key == "outputSchema" and target.output_schema(name) is not None):
            continue
        try:
            schemas.require_schema(strict_json.dumps(schema))
        except schemas.SchemaError as error:
            return error.code, f"its {key} can't be used: {error.message}"
    return None, None


class _Record:
    """The requests to one server under one protocol, with their answers: none is asked twice."""

    def __init__(self, transport: Transport, credential: str) -> None:
        self.base: UUID = uuid4()
        self.last: Answered | NoAnswer | None = None
        """None: nothing was asked."""
        self._transport = transport
        self._credential = credential
        self._answers: dict[tuple[str, str, bytes], Answered | NoAnswer] = {}

    async def ask(self, request: Request) -> Reply:
        """A request with an effect finds nobody: nothing is ever submitted here, whatever an adapter asks for."""
        if request.effect is not None:
            return NoAnswer(Sent.NO, "nothing is submitted here")
        known = self._answers.get((request.method, request.url, request.body))
        if known is not None:
            return known
        reply = await self._transport.send(request, credential=self._credential)
        self._answers[request.method, request.url, request.body] = reply
        if request.method != "DELETE":  # a goodbye, whatever the answer to it is
            self.last = reply
        return reply

    def heard_json_rpc(self) -> bool:
        return any(isinstance(reply, Answered) and _is_json_rpc(reply) for reply in self._answers.values())

    def trouble(self, target: Target, outcome: object) -> ProbeFailed | None:
        """What would be the same under every other protocol."""
        if self.last is None:
            return None
        if isinstance(self.last, NoAnswer):
            return unanswered(self.last, target.endpoint())
        if 300 <= self.last.status < 400:
            return redirected(self.last, target.endpoint())
        return no_credential(self.last, self._credential) if isinstance(outcome, NoAccess) else None


def _is_json_rpc(reply: Answered) -> bool:
    try:
        read(reply, "")
    except NoResponse:
        return False
    return True
