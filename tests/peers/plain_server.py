"""`python plain_server.py BEGUN`: an MCP server of the official SDK, without tasks. Prints its port."""

import asyncio
import socket
import sys
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import MCPServer

begun = Path(sys.argv[1])
server = MCPServer("plain", log_level="ERROR")


def _note() -> None:
    with begun.open("a") as book:
        book.write("add\n")


@server.tool()
async def add(a: int, b: int, secs: float = 0) -> int:
    """Add two numbers, slowly."""
    await asyncio.to_thread(_note)
    await asyncio.sleep(secs)  # the slowness is what the caller is tested on
    return a + b


listening = socket.socket()
listening.bind(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
config = uvicorn.Config(server.streamable_http_app(), log_level="error")
asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))
