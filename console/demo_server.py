"""The server that the demo calls: fastmcp with its tasks extension, not ours, in a process of its own; submission keys
as its owner would add them.

    python -m counterfoil.console.demo_server LOG PACE_S

PACE_S is how long a quick report and each page of a slow one take, and the poll interval that it asks for. It prints
its port, and writes down in LOG, one JSON object a line, what *it* did: each tool run that it started, how the slow one
moves, each poll that it answered and from which port of the asker.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import IO, Any

import uvicorn
from fastmcp import FastMCP
from fastmcp.dependencies import Progress
from fastmcp.exceptions import ToolError
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from fastmcp_tasks.context import get_task_context

from ..server import keyed

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Log:
    """Its own book, flushed line by line: who reads it sees what has happened, not what is buffered."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, event: str, **facts: object) -> None:
        print(json.dumps({"event": event, **facts}), file=self._file, flush=True)

    def run(self, tool: str, run: str) -> str | None:
        """A tool run begins. Returns the task's id, None for a call that was no task."""
        task = get_task_context()
        task_id = None if task is None else task.task_id
        self.write("run", tool=tool, run=run, task_id=task_id)
        return task_id


def make_server(log: Log, pace_s: float) -> FastMCP:
    """Four tools. Reports run as tasks; an invoice does if the client knows tasks, so that any client can send it."""
    server: FastMCP = FastMCP("demo reports")
    server.add_extension(TasksExtension())
    task = TaskConfig(mode="required", poll_interval=timedelta(seconds=pace_s))

    @server.tool(task=task)
    async def generate_report(month: str, run: str) -> dict[str, object]:
        """A report of one month, quickly."""
        log.run("generate_report", run)
        await asyncio.sleep(pace_s)
        return {"month": month, "rows": 3}

    @server.tool(task=task)
    async def fail_report(run: str) -> dict[str, object]:
        """A report that can't be made."""
        log.run("fail_report", run)
        await asyncio.sleep(pace_s)
        raise ToolError("the ledger of that month is closed")

    @server.tool(task=task)
    async def slow_report(pages: int, run: str, progress: Progress = Progress()) -> dict[str, object]:  # noqa: B008
        """A report of many pages."""
        task_id = log.run("slow_report", run)
        for page in range(1, pages + 1):
            message = f"page {page} of {pages}"
            await progress.set_message(message)
            log.write("progress", task_id=task_id, message=message)
            await asyncio.sleep(pace_s)
        return {"pages": pages}

    @server.tool(task=TaskConfig(mode="optional", poll_interval=timedelta(seconds=pace_s)))
    async def send_invoice(month: str, run: str) -> dict[str, object]:
        """What nobody wants twice."""
        log.run("send_invoice", run)
        await asyncio.sleep(pace_s)
        return {"month": month, "sent": True}

    # In memory, as the tasks are: both end with this process.
    return keyed(server, store=":memory:")


class PollLog:
    """Writes down each `tasks/get`, by the two headers that the protocol puts method and task id in."""

    def __init__(self, inner: Callable[[Scope, Receive, Send], Awaitable[None]], log: Log) -> None:
        self._inner = inner
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            if headers.get(b"mcp-method") == b"tasks/get":
                task_id = headers.get(b"mcp-name", b"").decode("latin-1")
                self._log.write("poll", task_id=task_id, port=scope["client"][1])
        await self._inner(scope, receive, send)


class Server(uvicorn.Server):
    """Ends at once when told to: an orderly end waits for the running tools, and what they do lives in memory only."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        os._exit(0)


def main() -> None:
    """Bind first, then say the port: nobody can take it in between."""
    with Path(sys.argv[1]).open("w", encoding="utf-8") as file:
        log = Log(file)
        app = PollLog(make_server(log, float(sys.argv[2])).http_app(), log)
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
