"""A real server that is not ours and knows no tasks: the official SDK, on loopback. Run as `sync_server.py PORT`."""

import sys
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("peer", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> dict[str, int]:
    """Adds two numbers."""
    return {"sum": a + b}


@server.tool()
def boom() -> str:
    """Fails as a tool fails."""
    raise RuntimeError("boom!")


@server.tool()
async def slow(seconds: float, context: Context) -> str:
    """Works for a while and says so on the stream."""
    await context.report_progress(0.5)
    await anyio.sleep(seconds)
    return "done"


@server.tool()
def counterfoil_lookup(submission_key: str, tool: str, attempt: int) -> dict[str, Any]:
    """The lookup contract, answered from a book of one."""
    if submission_key != "over":
        return {"found": False, "authoritative": True}
    return {"found": True, "result": {"content": [], "structuredContent": {"sum": 3}, "isError": False}}


if __name__ == "__main__":
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
