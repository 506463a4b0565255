"""A declared API, asked live: its server can't be asked what it offers, but it can be asked for what nobody ever made.

Reads alone, through the adapter's own verbs: the status of an id, and the lookup of a key, that are new. A server that
knows either is another one than was declared.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import uuid4

from ..adapters import registry
from ..adapters.contract import Adapter, Answered, Endpoint, NoAnswer, RemoteTask, Reply, Request, Search
from ..adapters.outcomes import Absent, Found, FoundOver, FoundRunning, LookupOutcome, Observation
from ..adapters.profile import Lookup
from ..adapters.wire import run
from ..workers.targets import Target
from .trouble import unanswered

_BY_ROUTE = (Lookup.BY_KEY, Lookup.CLIENT_CHOSEN_ID)


@dataclass(frozen=True, slots=True)
class Heard:
    """What was heard, in words. `code` is None where it is as declared."""

    said: str
    code: str | None = None


async def ask_live(target: Target, tool: str, endpoint: Endpoint, ask: Callable[[Request], Awaitable[Reply]]) -> Heard:
    """Never raises for what a server or the network did. `endpoint`: with the tool's declaration."""
    adapter, policy, api = registry.adapter(target.protocol), target.policy(tool), target.api(tool)
    new = f"counterfoil-check-{uuid4().hex}"
    replies: list[Reply] = []

    async def listen(request: Request) -> Reply:
        replies.append(await ask(request))
        return replies[-1]

    heard = []
    if api is not None and api.routes.status is not None:
        observed = await run(adapter.poll(endpoint, RemoteTask(new)), listen)
        heard.append(_of_status(observed, replies[-1], endpoint))
    # A lookup that closes its key would leave something behind.
    if policy.lookup in _BY_ROUTE and not policy.lookup_tool and policy.absence != "closes":
        found = await _look_up(adapter, endpoint, Search(tool, str(uuid4()), 1, ""), listen)
        heard.append(_of_lookup(found, replies[-1], endpoint))
    if not heard:
        return Heard("Nothing of it can be asked before the first call.")
    wrong = next((one for one in heard if one.code is not None), None)
    return wrong or Heard(" ".join(one.said for one in heard))


async def _look_up(
    adapter: Adapter, endpoint: Endpoint, search: Search, ask: Callable[[Request], Awaitable[Reply]]
) -> LookupOutcome:
    return await run(adapter.lookup(endpoint, search), ask)


def _of_status(observed: Observation, reply: Reply, endpoint: Endpoint) -> Heard:
    trouble = _trouble(reply, endpoint)
    if trouble is not None:
        return trouble
    assert isinstance(reply, Answered)  # `_trouble` took everything else
    if 400 <= reply.status < 500:
        return Heard(f"It knows no work of an id that nobody made (HTTP {reply.status}).")
    why = getattr(observed, "code", None) or getattr(observed, "status", None) or type(observed).__name__
    return Heard(
        f"HTTP {reply.status} for an id that nobody made ({why}): is `url` right, and `routes.status`?",
        "E_CAPABILITY_UNSUPPORTED",
    )


def _of_lookup(found: LookupOutcome, reply: Reply, endpoint: Endpoint) -> Heard:
    trouble = _trouble(reply, endpoint)
    if trouble is not None:
        return trouble
    if isinstance(found, Absent):
        return Heard("Its lookup finds nothing under a key that nobody sent.")
    if isinstance(found, Found | FoundOver | FoundRunning):
        told = "finds work under a key that nobody sent: a lost submit would take it for its own"
    else:
        why = getattr(found, "why", None) or getattr(found, "code", None) or type(found).__name__
        told = f"does not say that nothing is there under a key that nobody sent ({why}): a lost submit asks a person"
    return Heard(f"Its lookup {told}. Is `routes.lookup` right?", "E_CAPABILITY_UNSUPPORTED")


def _trouble(reply: Reply, endpoint: Endpoint) -> Heard | None:
    if isinstance(reply, NoAnswer):
        why = unanswered(reply, endpoint)
        return Heard(why.message, why.code)
    if reply.status in (401, 403):
        return Heard(f"It refuses the credential, or wants one (HTTP {reply.status}).", "E_AUTH")
    if reply.status >= 500 or reply.status == 429:
        return Heard(f"It answers HTTP {reply.status}.", "E_UNREACHABLE")
    return None
