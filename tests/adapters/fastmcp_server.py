"""A real server that is not ours: fastmcp with its tasks extension, on loopback. Run as `fastmcp_server.py PORT`."""

import asyncio
import sys

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension

server = FastMCP("peer")
server.add_extension(TasksExtension())


def form(message: str) -> mcp_types.ElicitRequest:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = mcp_types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return mcp_types.ElicitRequest(params=params)


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
    return mcp_types.InputRequiredResult(input_requests={"k1": form("Approve?")})


@server.tool(task=True)
async def ask_both(context: Context) -> object:
    """Needs two answers of one person."""
    if context.input_responses:
        return {key: context.input_responses[key].model_dump(by_alias=True) for key in ("one", "two")}
    return mcp_types.InputRequiredResult(input_requests={"one": form("One?"), "two": form("Two?")})


@server.tool()
async def ask_first(context: Context) -> object:
    """Asks before it does anything, and remembers what it was called for in the state."""
    if context.input_responses:
        answer = context.input_responses["who"].model_dump(by_alias=True)
        return {"state": context.request_state, "who": answer["content"]["name"]}
    return mcp_types.InputRequiredResult(input_requests={"who": form("Who?")}, request_state="leg-1")


@server.tool(annotations={"readOnlyHint": True, "idempotentHint": True})
def counterfoil_lookup(submission_key: str, tool: str, attempt: int) -> dict[str, object]:
    """The lookup contract, answered from a book of three."""
    found = {
        "over": {"found": True, "result": {"content": [], "structuredContent": {"rows": 3}}},
        "runs": {"found": True, "running": True},
    }
    return found.get(submission_key, {"found": False, "authoritative": attempt == 1})


@server.tool()
def plain() -> str:
    """Answers at once."""
    return "plain"


if __name__ == "__main__":
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR")
