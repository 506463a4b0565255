"""Protocol name -> adapter. The one list of what this release speaks."""

from collections.abc import Callable
from difflib import get_close_matches

from .contract import Adapter
from .jsonrpc import JsonRpc, random_id
from .mcp_2025_11_25 import Mcp20251125
from .mcp_2026_07_28 import Mcp20260728
from .mcp_sync import McpSync

_FACTORIES: dict[str, Callable[[JsonRpc], Adapter]] = {
    "mcp-2026-07-28": Mcp20260728,
    "mcp-2025-11-25": Mcp20251125,
    "mcp-sync": McpSync,
}

PROTOCOLS = tuple(_FACTORIES)


class UnknownProtocol(ValueError):
    """No adapter of that name. The message says which there are and which is nearest."""

    code = "E_PROTOCOL_UNKNOWN"


def adapter(protocol: str, new_id: Callable[[], str] = random_id) -> Adapter:
    """The adapter of one protocol version. `new_id` makes request ids (the simulator brings its own).

    Raises UnknownProtocol.
    """
    try:
        factory = _FACTORIES[protocol]
    except KeyError:
        near = get_close_matches(protocol, PROTOCOLS, n=1, cutoff=0.3)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UnknownProtocol(
            f"No adapter for protocol {protocol!r}.{hint} There is: {', '.join(PROTOCOLS)}."
        ) from None
    return factory(JsonRpc(new_id))
