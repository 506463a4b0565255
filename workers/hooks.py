"""Callbacks of servers: `POST /hooks/TARGET` wakes the reading of a task early, and proves nothing (SPEC section 5).

The adapter of the target's protocol reduces a body to task ids; the rest of it is thrown away. A callback that comes
before the answer to its submit, twice, or from a run that is over wakes nobody. So it is answered 204 whether or not it
named a task of ours, and nothing about a task can be found out here.

An ASGI application without a framework, for one process of its own or several: they share nothing but the ledger.
"""

import asyncio
import hmac
import logging
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import Field, ValidationError, field_validator

from ..adapters.contract import Answered
from ..adapters.credentials import CredentialError, Credentials
from ..adapters.registry import adapter
from ..ledger import events
from ..ledger.database import Database
from ..ledger.errors import CounterfoilError, InputRefused
from ..ledger.policy import Policy
from ..ledger.states import Lane
from ..ledger.store import Store
from ..ledger.transition import Transitions
from ..ledger.work import Item
from . import yaml_lines
from .bucket import Limit, LocalBucket
from .file_faults import described
from .target_entries import Strict, is_reference
from .targets import Targets
from .webhooks import BadSecretError, secret_key, signed_headers
from .yaml_lines import KeyPath

MAX_BODY_BYTES = 1024 * 1024
MAX_HINTS = 50
"""Tasks of one callback that are looked for."""

BODY_S = 5.0
"""For the whole body: a sender that drips holds its place no longer."""

AT_ONCE = 4
"""Callbacks of all targets that are with the ledger at a time."""

MAX_SECRETS = 3
"""The one in use and those that are being rotated: any of them will do."""

MAX_SIGNATURES = 8
"""In one header: a sender that rotates its secret signs with each."""

log = logging.getLogger(__name__)

Scope: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[None]]
Wake: TypeAlias = Callable[[str, Mapping[str, str | None]], object]
"""(target, task id -> the server's word): look at these now. Called in a thread; raises what the ledger raises."""


class HooksError(InputRefused):
    """The hooks file, or the address to listen on, can't be used. `problems` holds one `file:line: …` for each fault of
    the file."""

    code = "E_HOOKS"

    def __init__(self, message: str, problems: Sequence[str] = (), *, next_step: str = "") -> None:
        self.problems = tuple(problems)
        super().__init__("\n  ".join((message, *self.problems)), next_step=next_step)


# -- the file --------------------------------------------------------------------------------------------------------


class HookEntry(Strict):
    secret: str | list[str]
    qps: float = Field(20.0, gt=0, le=1000)
    burst: int = Field(20, ge=1, le=1000)

    @field_validator("secret")
    @classmethod
    def _are_references(cls, secret: str | list[str]) -> str | list[str]:
        references = [secret] if isinstance(secret, str) else secret
        if not 1 <= len(references) <= MAX_SECRETS:
            raise ValueError(f"names 1 to {MAX_SECRETS} secrets; a callback may bear any of them")
        # A pasted secret must not be repeated in the message.
        if not all(is_reference(reference) for reference in references):
            raise ValueError('name where the secret is, never the secret: env:NAME, file:PATH or exec:["program", …]')
        return secret


class HooksFile(Strict):
    hooks: dict[str, object] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Hook:
    """What one target's callbacks must bear (references of secrets), and how many of them this process takes."""

    secrets: tuple[str, ...]
    limit: Limit


def load_hooks(path: Path, targets: Targets) -> dict[str, Hook]:
    """Read the hooks file: target -> hook. Raises HooksError with every fault of it (E_HOOKS)."""
    try:
        document = yaml_lines.read(path)
    except OSError as error:
        raise HooksError(
            f"the hooks file {path} can't be read: {error.strerror}.",
            next_step="Write one (docs/adapters.md, Callbacks), or name another with --hooks-file.",
        ) from None
    problems, hooks = document.problems, dict[str, Hook]()
    try:
        written = HooksFile.model_validate(document.value or {}).hooks
    except ValidationError as error:
        written = {}
        if document.value is not None or not problems:
            problems += described(
                document, (), error, lambda _: HooksFile.model_fields, {"too_short": "names no target."}
            )
    for target, value in written.items():
        above: KeyPath = ("hooks", target)
        if target not in targets:
            near = "".join(f" Did you mean {name}?" for name in targets.near(target)[:1])
            problems.append((document.line(above), f"{target[:64]!r} is no target of the targets file.{near}"))
        try:
            entry = HookEntry.model_validate(value)
        except ValidationError as error:
            problems += described(document, above, error, lambda _: HookEntry.model_fields)
        else:
            secrets = (entry.secret,) if isinstance(entry.secret, str) else tuple(entry.secret)
            hooks[target] = Hook(secrets, Limit(entry.qps, entry.burst, {}))
    if problems:
        raise HooksError(
            "the hooks file can't be used. Correct these lines and start again:",
            [f"{path}:{line}: {message}" for line, message in sorted(set(problems))],
        )
    return hooks


# -- the ledger ------------------------------------------------------------------------------------------------------


class Waker:
    """Makes the readings of tasks due, in the ledger's current epoch. Safe to share between threads."""

    def __init__(self, database_url: str, targets: Targets, *, fleet: str = "main") -> None:
        self._database = Database(database_url, fleet=fleet, pool_size=AT_ONCE)

        def policy_of(target: str, tool: str) -> Policy:
            return targets[target].policy(tool) if target in targets else Policy(protocol="unknown")

        self._store = Store(self._database, fleet, 0, policy_of)
        self._transitions = Transitions(self._database, fleet, None, interpret=None, policy_of=policy_of, actor="hook")

    def wake(self, target: str, hints: Mapping[str, str | None]) -> int:
        """Returns how many operations of the target have these tasks. Raises LedgerUnavailable, RecoverFirst."""
        found = self._store.find_tasks(target, hints)
        self._transitions.apply(Item(id_, Lane.POLL, (events.Hinted(hints[task]),)) for id_, task in found)
        return len(found)

    def close(self) -> None:
        """Close the connections."""
        self._database.dispose()


# -- the application -------------------------------------------------------------------------------------------------

_PATH = re.compile(r"/hooks/([A-Za-z0-9][A-Za-z0-9._-]{0,62})")
HEALTH_PATH = "/healthz"
"""Answered by the loop that takes the callbacks, for whoever restarts it. Says nothing else."""

_SECONDS = re.compile(r"[1-9][0-9]{0,11}")
_UNREAD = frozenset({400, 401, 408, 413})
_UNKNOWN = (401, [(b"www-authenticate", b"Bearer")])
"""Also for a target without a hook: who bears no secret learns nothing."""

_TOKEN_HEADER = "x-a2a-notification-token"  # noqa: S105  the header's name: agents of the reference SDK send no other


class HooksApp:
    """`clock` answers seconds that only grow. Secrets are resolved at each callback, as credentials are."""

    def __init__(
        self,
        hooks: Mapping[str, Hook],
        targets: Targets,
        wake: Wake,
        credentials: Credentials,
        clock: Callable[[], float],
    ) -> None:
        self._hooks = hooks
        self._adapters = {target: adapter(targets[target].protocol) for target in hooks}
        self._wake = wake
        self._credentials = credentials
        self._bucket = LocalBucket({target: hook.limit for target, hook in hooks.items()}, clock)
        self._places = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"callbacks come over HTTP, not over {scope['type']}")
        status, headers = await self._taken(scope, receive)
        answer = [(b"content-length", b"0"), *headers]
        if status in _UNREAD:
            answer.append((b"connection", b"close"))  # what is left of the body is nobody's to read
        await send({"type": "http.response.start", "status": status, "headers": answer})
        await send({"type": "http.response.body", "body": b""})

    async def _taken(self, scope: Scope, receive: Receive) -> tuple[int, list[tuple[bytes, bytes]]]:
        """The status of the answer, with its headers."""
        if scope["path"] == HEALTH_PATH:
            return 200, []
        named = _PATH.fullmatch(scope["path"])
        if named is None:
            return 404, []
        if scope["method"] != "POST":
            return 405, [(b"allow", b"POST")]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        target, hook = named[1], self._hooks.get(named[1])
        if hook is None:
            return _UNKNOWN
        try:
            secrets = await self._secrets(hook)
            shown = _bears(_is_shown(secret, headers) for secret in secrets)
            if not shown and "webhook-signature" not in headers:
                return _UNKNOWN
            body = await _body(headers, receive)
        except _Refused as refused:
            return refused.status, []
        except CredentialError as error:
            log.error("callbacks of %s can't be judged: %s", target, error)  # noqa: TRY400  the text says all
            return 503, []
        if not shown and not _bears(_has_signed(secret, headers, body) for secret in secrets):
            return _UNKNOWN
        grant = self._bucket.take(target, Lane.POLL, 1)
        if not grant.granted:
            return 429, [(b"retry-after", str(max(1, math.ceil(grant.wait_s))).encode())]
        return await self._hinted(target, Answered(200, headers, body)), []

    async def _secrets(self, hook: Hook) -> list[str]:
        """Raises CredentialError."""
        return [
            (await self._credentials.authorization(reference)).removeprefix("Bearer ") for reference in hook.secrets
        ]

    async def _hinted(self, target: str, callback: Answered) -> int:
        hints = {hint.task_id: hint.status for hint in self._adapters[target].hints(callback)[:MAX_HINTS]}
        if not hints:
            return 204
        try:
            async with self._places:
                await asyncio.to_thread(self._wake, target, hints)
        except CounterfoilError as error:
            log.warning("a callback of %s woke nobody: %s", target, error)
            return 503  # who delivers at least once comes again
        return 204


class _Refused(Exception):
    """The body is not taken."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


async def _body(headers: Mapping[str, str], receive: Receive) -> bytes:
    """The whole body. Raises _Refused."""
    told = headers.get("content-length", "0")
    if not told.isdigit() or int(told) > MAX_BODY_BYTES:
        raise _Refused(413)
    body = b""
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Refused(400)
                body += bytes(message.get("body", b""))
                if len(body) > MAX_BODY_BYTES:
                    raise _Refused(413)
                if not message.get("more_body", False):
                    return body
    except TimeoutError:
        raise _Refused(408) from None


def _bears(matches: Iterable[bool]) -> bool:
    """Every secret is compared, whichever fits: how long it takes tells nothing."""
    return sum(matches) > 0


def _is_shown(secret: str, headers: Mapping[str, str]) -> bool:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    shown = token.strip() if scheme.lower() == "bearer" else headers.get(_TOKEN_HEADER, "")
    return hmac.compare_digest(shown.encode(), secret.encode())


def _has_signed(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """As Standard Webhooks asks: HMAC-SHA256 over id, timestamp and body.

    How old it is doesn't matter: one that comes again wakes a reading again, and that is all.
    """
    at = headers.get("webhook-timestamp", "")
    if not _SECONDS.fullmatch(at):
        return False
    try:
        ours = signed_headers(headers.get("webhook-id", ""), int(at), body, [secret_key(secret)])["webhook-signature"]
    except BadSecretError:
        return False
    given = headers["webhook-signature"].split(" ")[:MAX_SIGNATURES]
    return _bears(hmac.compare_digest(one.encode(), ours.encode()) for one in given)
