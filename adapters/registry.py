"""Protocol name -> adapter. The one list of what this release speaks; other packages may add to it (`plugins.py`)."""

import itertools
from collections.abc import Callable
from difflib import get_close_matches

from . import plugins
from .a2a import A2a10
from .aip151 import Aip151
from .contract import Adapter
from .http202 import Http202
from .jsonrpc import JsonRpc, random_id
from .mcp_2025_11_25 import Mcp20251125
from .mcp_2026_07_28 import Mcp20260728
from .mcp_sync import McpSync

_FACTORIES: dict[str, Callable[[JsonRpc], Adapter]] = {
    "mcp-2026-07-28": Mcp20260728,
    "mcp-2025-11-25": Mcp20251125,
    "mcp-sync": McpSync,
    "aip-151": lambda _: Aip151(),
    "http-202": lambda _: Http202(),
    "a2a-1.0": A2a10,
}

PROTOCOLS = tuple(_FACTORIES)

MCP = tuple(name for name in PROTOCOLS if name.startswith("mcp-"))

RECOGNISED = (MCP, ("a2a-1.0",))
"""What a URL of which nothing else is known is tried with: one family after the other, until one of its protocols is
spoken. No request of a negotiation has an effect. Of the others nothing can be recognised: they are declared, or named
(an adapter of another package may take any server for its own)."""

DECLARED = tuple(name for name in PROTOCOLS if name not in itertools.chain(*RECOGNISED))
"""HTTP APIs, of which the operator says what they offer."""


class UnknownProtocol(ValueError):
    """No adapter of that name. The message says which there are and which is nearest."""

    code = "E_PROTOCOL_UNKNOWN"


def known() -> tuple[str, ...]:
    """Every protocol that a target of this process may name: ours, and those of other packages."""
    return (*PROTOCOLS, *plugins.offered(PROTOCOLS))


def adapter(protocol: str, new_id: Callable[[], str] = random_id) -> Adapter:
    """The adapter of one protocol version. `new_id` makes request ids (the simulator brings its own).

    Raises UnknownProtocol, BrokenAdapter (of another package).
    """
    others = plugins.offered(PROTOCOLS)
    if protocol in _FACTORIES:
        return _FACTORIES[protocol](JsonRpc(new_id))
    if protocol in others:
        return plugins.load(others[protocol], JsonRpc(new_id))
    near = get_close_matches(protocol, known(), n=1, cutoff=0.3)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UnknownProtocol(f"No adapter for protocol {protocol!r}.{hint} There is: {', '.join(known())}.")
