"""`python asking_servers.py fastmcp|sdk LOG`: servers of MCP 2026-07-28 whose tool `order` asks before it works.

Each prints its port and notes every request in LOG, one JSON object a line. `fastmcp` makes a task at once and asks in
it. `sdk` (the official SDK, no task machinery of its own) asks before there is a task, in answer to the call itself,
with a request state that it seals; the next leg becomes a task.
"""

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, TypeAlias

import mcp_types
import uvicorn

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Asgi: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Callable[[Message], Awaitable[None]]], Awaitable[None]]
TASKS = "io.modelcontextprotocol/tasks"
CREATED = "2026-11-29T10:00:00Z"


def question() -> mcp_types.ElicitRequest:
    schema = {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}
    return mcp_types.ElicitRequest(
        params=mcp_types.ElicitRequestFormParams(message="Which size?", requested_schema=schema)
    )


def answered(context: Any) -> str | None:
    replies = context.input_responses
    return None if not replies else str(next(iter(replies.values())).content["size"])


def noting(app: Asgi, log: Path) -> Asgi:
    """Each request is noted when its body is here, before the server looks at it."""

    async def noted(scope: MutableMapping[str, Any], receive: Receive, send: Any) -> None:
        async def hear() -> Message:
            message = await receive()
            if message["type"] == "http.request" and message.get("body"):
                said = json.loads(message["body"])
                with log.open("a") as book:
                    book.write(json.dumps({"on": said.get("method"), "params": said.get("params", {})}) + "\n")
            return message

        await app(scope, hear if scope["type"] == "http" else receive, send)

    return noted


def fastmcp() -> Asgi:
    from fastmcp import Context, FastMCP
    from fastmcp_tasks import TasksExtension

    server = FastMCP("asking")
    server.add_extension(TasksExtension())

    @server.tool(task=True)
    async def order(what: str, context: Context) -> object:
        """Order something, in a size that a person has to say."""
        size = answered(context)
        if size is None:
            return mcp_types.InputRequiredResult(input_requests={"size": question()})
        return {"ordered": f"{what}, {size}"}

    return server.http_app()


def sdk() -> Asgi:
    from mcp.server.extension import Extension, MethodBinding
    from mcp.server.mcpserver import Context, MCPServer

    class TaskParams(mcp_types.RequestParams):
        taskId: str  # noqa: N815  the protocol's word

    made: dict[str, Any] = {}

    def shown(task_id: str, status: str) -> dict[str, Any]:
        times = {"createdAt": CREATED, "lastUpdatedAt": CREATED, "ttlMs": None, "pollIntervalMs": 500}
        return {"taskId": task_id, "status": status, **times}

    async def get(_context: Any, params: TaskParams) -> dict[str, Any]:
        result = {"content": [], "structuredContent": made[params.taskId], "isError": False}
        return {"resultType": "complete", **shown(params.taskId, "completed"), "result": result}

    class Tasks(Extension):
        identifier = TASKS

        def methods(self) -> list[MethodBinding]:
            return [MethodBinding("tasks/get", TaskParams, get, protocol_versions=frozenset({"2026-07-28"}))]

        async def intercept_tool_call(self, params: Any, ctx: Any, call_next: Any) -> Any:
            result = await call_next(ctx)
            if isinstance(result, mcp_types.InputRequiredResult):
                return result
            task_id = f"task-{len(made)}"
            made[task_id] = result.structured_content
            return {"resultType": "task", **shown(task_id, "working")}

    server = MCPServer("asking", log_level="ERROR", extensions=[Tasks()])

    @server.tool()
    async def order(what: str, context: Context[Any]) -> dict[str, str] | mcp_types.InputRequiredResult:
        """Order something, in a size that a person has to say."""
        size = answered(context)
        if size is None:
            return mcp_types.InputRequiredResult(input_requests={"size": question()}, request_state=f"for {what}")
        return {"ordered": f"{what}, {size}", "state": str(context.request_state)}

    return server.streamable_http_app()


if __name__ == "__main__":
    made_by = {"fastmcp": fastmcp, "sdk": sdk}[sys.argv[1]]
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(noting(made_by(), Path(sys.argv[2])), log_level="error")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))
