"""`python keyed_server.py SDK STORE BOOK`: a keyed server that can be killed. Prints its port.

The tool `stuck` notes that it began and never ends; `add` notes and answers.
"""

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn

from counterfoil.server import keyed

sdk, store, book = sys.argv[1], sys.argv[2], Path(sys.argv[3])

server: Any
if sdk == "mcp":
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("killable", log_level="CRITICAL")
    app = server.streamable_http_app
else:
    from fastmcp import FastMCP

    server = FastMCP("killable")
    app = server.http_app


def note(word: str) -> None:
    with book.open("a") as notes:
        notes.write(f"{word}\n")


@server.tool()
async def stuck() -> str:
    note("stuck")
    await asyncio.Event().wait()
    return "never"


@server.tool()
def add(a: int) -> int:
    note("add")
    return a + 1


keyed(server, store=store)
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
print(listening.getsockname()[1], flush=True)
asyncio.run(uvicorn.Server(uvicorn.Config(app(), log_level="critical")).serve(sockets=[listening]))
