"""`keyed()` itself: what it takes, what it refuses, and what stands in front of it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.server.dependencies import get_http_request
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from mcp.server.context import CallNext as McpCallNext
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError

from counterfoil.server import keyed

from .kit import SDKS, Tools, call, new_key, serving


def test_the_server_comes_back(sdk: str) -> None:
    server = SDKS[sdk](Tools(), auth=False)
    assert keyed(server, store=":memory:") is server


def test_a_server_gets_its_keys_once(sdk: str) -> None:
    server = keyed(SDKS[sdk](Tools(), auth=False), store=":memory:", lookup_tool="find")
    with pytest.raises(ValueError, match="submission keys already"):
        keyed(server, store=":memory:")


def test_a_tool_of_the_owner_is_not_taken_for_the_lookup(sdk: str) -> None:
    with pytest.raises(ValueError, match="'add' of its own"):
        keyed(SDKS[sdk](Tools(), auth=False), store=":memory:", lookup_tool="add")


def test_what_is_no_server_or_no_store_is_refused() -> None:
    with pytest.raises(TypeError, match="not dict"):
        keyed({}, store=":memory:")
    with pytest.raises(TypeError, match="not int"):
        keyed(MCPServer("x"), store=7)  # type: ignore[arg-type]


@pytest.mark.parametrize("lifetime_s", [0, -1, 59, float("nan")])
def test_a_key_lives_longer_than_its_lease(lifetime_s: float) -> None:
    with pytest.raises(ValueError, match="at least 60 seconds"):
        keyed(MCPServer("x"), store=":memory:", lifetime_s=lifetime_s)


class Gate(Middleware):
    """An owner's own check."""

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        if "authorization" not in get_http_request().headers:
            raise MCPError(-32001, "who are you?")
        return await call_next(context)


async def gate(ctx: ServerRequestContext[Any, Any], call_next: McpCallNext) -> HandlerResult:
    if ctx.method == "tools/call" and "authorization" not in ctx.request.headers:
        raise MCPError(-32001, "who are you?")
    return await call_next(ctx)


def test_an_owners_checks_stand_before_an_answer_given_again(sdk: str, tools: Tools) -> None:
    """And what they refuse takes no key: let through later, it runs."""
    server = SDKS[sdk](tools, auth=False)
    if isinstance(server, FastMCP):
        server.add_middleware(Gate())
    else:
        server.middleware.append(gate)
    key = new_key()
    with serving(keyed(server, store=":memory:")) as url:
        for known in (None, "t", None, "t"):
            answer = call(url, "add", {"a": 1}, key=key, token=known)
            assert ("result" in answer) == (known is not None)
    assert tools.begun == {"add": 1}


def test_the_door_opens_with_an_owners_sdk_alone(tmp_path: Path) -> None:
    """Neither our ledger nor our fleet, nor what they need, nor the other SDK, nor redis."""
    program = """
import sys
for name in ("fastmcp", "redis", "celery", "sqlalchemy", "psycopg", "rfc8785", "httpx", "typer"):
    sys.modules[name] = None
from counterfoil.server import keyed
from mcp.server.mcpserver import MCPServer
keyed(MCPServer("owner"), store="keys")
ours = {name.split(".")[1] for name in sys.modules if name.startswith("counterfoil.")}
assert ours == {"server"}, ours
try:
    keyed(MCPServer("owner"), store="redis://127.0.0.1")
except ImportError:
    print("well")
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("well\n", "")
