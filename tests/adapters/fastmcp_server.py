"""A real server that is not ours: fastmcp with its tasks extension, on loopback. Run as `fastmcp_server.py PORT`."""

import asyncio
import sys

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension

server = FastMCP("peer")
server.add_extension(TasksExtension())


@server.tool(task=True)
async def wait(seconds: float = 0.0) -> dict[str, int]:
    """Works for a while."""
    await asyncio.sleep(seconds)
    return {"rows": 3}


@server.tool(task=True)
async def boom() -> str:
    """Fails as a tool fails."""
    raise RuntimeError("boom!")


@server.tool(task=True)
async def ask(context: Context) -> object:
    """Needs a person's answer."""
    if context.input_responses:
        return "answered"
    form = mcp_types.ElicitRequestFormParams(
        message="Approve?", requested_schema={"type": "object", "properties": {"ok": {"type": "boolean"}}}
    )
    return mcp_types.InputRequiredResult(input_requests={"k1": mcp_types.ElicitRequest(params=form)})


@server.tool()
def plain() -> str:
    """Answers at once."""
    return "plain"


if __name__ == "__main__":
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR")
