"""Protocol name -> adapter. The one list of what this release speaks; other packages may add to it (`plugins.py`).

An adapter is imported when a target names its protocol: a process holds no other.
"""
# ruff: noqa: PLC0415 - see above

import itertools
from collections.abc import Callable
from difflib import get_close_matches

from . import plugins
from .contract import Adapter
from .jsonrpc import JsonRpc, random_id

PROTOCOLS = ("mcp-2026-07-28", "mcp-2025-11-25", "mcp-sync", "aip-151", "http-202", "a2a-1.0")

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
    match protocol:
        case "mcp-2026-07-28":
            from .mcp_2026_07_28 import Mcp20260728

            return Mcp20260728(JsonRpc(new_id))
        case "mcp-2025-11-25":
            from .mcp_2025_11_25 import Mcp20251125

            return Mcp20251125(JsonRpc(new_id))
        case "mcp-sync":
            from .mcp_sync import McpSync

            return McpSync(JsonRpc(new_id))
        case "aip-151":
            from .aip151 import Aip151

            return Aip151()
        case "http-202":
            from .http202 import Http202

            return Http202()
        case "a2a-1.0":
            from .a2a import A2a10

            return A2a10(JsonRpc(new_id))
        case _ if protocol in others:
            return plugins.load(others[protocol], JsonRpc(new_id))
        case _:
            raise UnknownProtocol(_unknown(protocol))


def _unknown(protocol: str) -> str:
    near = get_close_matches(protocol, known(), n=1, cutoff=0.3)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"No adapter for protocol {protocol!r}.{hint} There is: {', '.join(known())}."
