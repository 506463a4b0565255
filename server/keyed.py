"""`keyed(server)`: the one door for tool owners."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from mcp.server.mcpserver import MCPServer

from . import mcp_middleware
from .records import LEASE_S
from .register import Register
from .sqlite_store import SqliteStore
from .store import Store

ServerT = TypeVar("ServerT")

DAY_S = 86400.0


def keyed(
    server: ServerT,
    *,
    store: Store | str | Path,
    lifetime_s: float = 7 * DAY_S,
    lookup_tool: str = "counterfoil_lookup",
) -> ServerT:
    """Let each submission key run once on this server, and add the read-only tool that says what became of a key.

    A `tools/call` with a UUID in `_meta["dev.counterfoil/submission-key"]` takes the key before its tool begins; the
    same request again gets the first one's task or result; the same key with another request is refused. Calls
    without a key pass untouched. Call it last, after extensions and middleware of your own.

    Args:
        server: a `fastmcp.FastMCP`, or the official SDK's `MCPServer` (mcp 2.3).
        store: where keys are kept: the path of an SQLite file, a `redis://` URL, ":memory:" (forgotten at a stop;
            for trying out), or a `Store`. Processes that serve the same tools share one.
        lifetime_s: how long a key is remembered after its call's end; at least the time in which callers ask again.
        lookup_tool: the name of the tool that looks keys up.

    Returns:
        the same server.

    Raises:
        TypeError: a server or a store of another kind.
        ValueError: the server has keys or a tool of that name already, or the lifetime is below a minute.
        StoreError: the SQLite file can't be opened.
        ImportError: a `redis://` URL without the `redis` package.
    """
    if not lifetime_s >= 4 * LEASE_S:
        raise ValueError(f"lifetime_s must be at least {4 * LEASE_S:.0f} seconds, not {lifetime_s}")
    attach = _attacher(server)
    attach(server, Register(_open(store), lifetime_s=lifetime_s), lookup_tool)
    return server


def _attacher(server: object) -> Callable[[Any, Register, str], None]:
    # A FastMCP object exists only where fastmcp was imported; who uses the official SDK needn't have it.
    fastmcp = sys.modules.get("fastmcp")
    if fastmcp is not None and isinstance(server, fastmcp.FastMCP):
        attach: Callable[[Any, Register, str], None] = import_module(".fastmcp_middleware", __package__).attach
        return attach
    if isinstance(server, MCPServer):
        return mcp_middleware.attach
    raise TypeError(f"keyed() knows fastmcp.FastMCP and mcp's MCPServer, not {type(server).__name__}")


def _open(store: Store | str | Path) -> Store:
    if isinstance(store, str) and store.startswith(("redis://", "rediss://", "unix://")):
        opened: Store = import_module(".redis_store", __package__).RedisStore.from_url(store)
        return opened
    if isinstance(store, str | Path):
        return SqliteStore(store)
    if not isinstance(store, Store):
        raise TypeError(f"store must be a path, a redis:// URL or a Store, not {type(store).__name__}")
    return store
