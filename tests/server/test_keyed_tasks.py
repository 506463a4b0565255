"""Calls that become tasks: one task a key."""

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import httpx
import pytest
from fastmcp import FastMCP
from fastmcp_tasks import TasksExtension
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolRequestParams

from counterfoil.server import keyed

from .kit import TASKS, VERSION, WAIT_S, call, lookup, new_key, serving
from .stores import Place


class HandMadeTasks(Extension):
    """An owner's tasks on the official SDK, which ships none: every declared call becomes one."""

    identifier = TASKS

    def __init__(self) -> None:
        self._numbers = count(1)

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        if params.name != "report":
            return await call_next(ctx)
        await call_next(ctx)
        made = "2026-11-29T22:30:00Z"
        task = {"taskId": f"task-{next(self._numbers)}", "status": "working", "createdAt": made, "lastUpdatedAt": made}
        return {"resultType": "task", **task, "ttlMs": None, "pollIntervalMs": 500}


def official(begun: Counter[str]) -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("owner", log_level="CRITICAL", extensions=[HandMadeTasks()])

    @server.tool()
    async def report(month: str) -> str:
        begun[month] += 1
        return month

    return server


def fastmcp(begun: Counter[str]) -> FastMCP[Any]:
    server: FastMCP[Any] = FastMCP("owner")
    server.add_extension(TasksExtension())

    @server.tool(task=True)
    async def report(month: str) -> str:
        begun[month] += 1
        return month

    return server


@pytest.mark.parametrize("make", [fastmcp, official])
def test_repeats_get_the_first_calls_task(make: Any, place: Place) -> None:
    begun: Counter[str] = Counter()
    key, arguments = new_key(), {"month": "2026-10"}
    with serving(keyed(make(begun), store=place.where)) as url:
        with ThreadPoolExecutor(10) as pool:
            calls = [pool.submit(call, url, "report", arguments, key=key, tasks=True) for _ in range(10)]
            answers = [each.result(WAIT_S)["result"] for each in calls]
        task = answers[0]
        assert task["resultType"] == "task"
        assert {answer["taskId"] for answer in answers} == {task["taskId"]}
        told = {
            name: task[name] for name in ("taskId", "status", "createdAt", "ttlMs", "pollIntervalMs") if task.get(name)
        }
        assert lookup(url, key, "report") == {"found": True, **told}
        undeclared = call(url, "report", arguments, key=key)["error"]
        assert (undeclared["code"], undeclared["data"]) == (
            -32021,
            {"requiredCapabilities": {"extensions": {TASKS: {}}}},
        )
        if make is fastmcp:
            assert _ended(url, task["taskId"])["structuredContent"] == {"result": "2026-10"}
    assert begun == {"2026-10": 1}


def test_without_a_key_every_call_is_a_task_of_its_own(one_place: Place) -> None:
    begun: Counter[str] = Counter()
    with serving(keyed(fastmcp(begun), store=one_place.where)) as url:
        ids = {call(url, "report", {"month": "x"}, tasks=True)["result"]["taskId"] for _ in range(3)}
    assert len(ids) == 3


def _ended(url: str, task: str) -> Mapping[str, Any]:
    prefix = "io.modelcontextprotocol"
    capabilities = {"extensions": {TASKS: {}}}
    meta = {f"{prefix}/protocolVersion": VERSION, f"{prefix}/clientCapabilities": capabilities}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": task, "_meta": meta}}
    sent = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tasks/get", "Mcp-Name": task}
    sent["Accept"] = "application/json, text/event-stream"
    for _ in range(500):
        answer = httpx.post(url, json=request, headers=sent, timeout=WAIT_S).json()["result"]
        if answer["status"] != "working":
            result: Mapping[str, Any] = answer["result"]
            return result
    raise AssertionError("the task did not end")
