"""Two owners with the same tools, one on each SDK, and a caller that speaks the wire by hand."""

import asyncio
import json
import socket
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from fastmcp.tools.base import ToolResult
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context as McpContext
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

from counterfoil.server import keyed

KEY = "dev.counterfoil/submission-key"
TASKS = "io.modelcontextprotocol/tasks"
VERSION = "2026-07-28"
TOKENS = {"token-ann": "ann", "token-bob": "bob"}
WAIT_S = 20


@dataclass
class Tools:
    """The tools' own book: what began and what came to its end. `slow` waits at the gate."""

    begun: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    started: threading.Event = field(default_factory=threading.Event)
    gate: threading.Event = field(default_factory=threading.Event)

    def add(self, a: int) -> int:
        self.begun["add"] += 1
        return a + 1

    async def slow(self, a: int) -> int:
        self.begun["slow"] += 1
        self.started.set()
        assert await asyncio.to_thread(self.gate.wait, WAIT_S)
        self.ended["slow"] += 1
        return a + self.begun["slow"]

    def fails(self) -> int:
        self.begun["fails"] += 1
        raise ValueError("no paper")

    def refuses(self) -> int:
        self.begun["refuses"] += 1
        raise MCPError(-32050, "the printer said no", {"tray": 2})

    def large(self) -> str:
        self.begun["large"] += 1
        return "x" * 1_100_000

    def ask(self, answered: Any) -> InputRequiredResult | str:
        self.begun["asks"] += 1
        if answered:
            return f"printed {answered['paper'].content['size']}"
        question = ElicitRequestFormParams(message="Which size?", requested_schema={"type": "object", "properties": {}})
        return InputRequiredResult(input_requests={"paper": ElicitRequest(params=question)}, request_state="leg-1")


class Tokens:
    """Ann and Bob, for the official SDK."""

    async def verify_token(self, token: str) -> AccessToken | None:
        if token not in TOKENS:
            return None
        return AccessToken(token=token, client_id="desk", scopes=[], subject=TOKENS[token])


def official(tools: Tools, *, auth: bool) -> MCPServer[Any]:
    home = "http://localhost"
    settings = AuthSettings.model_validate(
        {"issuer_url": home, "resource_server_url": home, "validate_token_resource": False}
    )
    options = {"auth": settings, "token_verifier": Tokens()} if auth else {}
    server: MCPServer[Any] = MCPServer("owner", log_level="CRITICAL", **options)  # type: ignore[arg-type]
    for tool in (tools.add, tools.slow, tools.fails, tools.refuses, tools.large):
        server.add_tool(tool)

    @server.tool()
    def asks(ctx: McpContext) -> InputRequiredResult | str:
        return tools.ask(ctx.input_responses)

    return server


def fastmcp(tools: Tools, *, auth: bool) -> FastMCP[Any]:
    people = {token: {"client_id": "desk", "scopes": [], "sub": who} for token, who in TOKENS.items()}
    server: FastMCP[Any] = FastMCP("owner", auth=StaticTokenVerifier(people) if auth else None)
    for tool in (tools.add, tools.slow, tools.fails, tools.refuses, tools.large):
        server.tool(tool)

    @server.tool
    async def asks(ctx: Context) -> Any:
        return tools.ask(ctx.input_responses)

    @server.tool
    async def twice(a: int, ctx: Context) -> ToolResult:
        await ctx.fastmcp.call_tool("add", {"a": a})
        return await ctx.fastmcp.call_tool("add", {"a": a})

    return server


SDKS: dict[str, Callable[..., Any]] = {"fastmcp": fastmcp, "mcp": official}


@contextmanager
def serving(server: Any) -> Iterator[str]:
    """Serve an SDK's server on loopback, in a thread of its own; its URL."""
    app = server.streamable_http_app() if isinstance(server, MCPServer) else server.http_app()
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()  # callers needn't wait for the thread
    runner = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=5))
    thread = threading.Thread(target=lambda: asyncio.run(runner.serve(sockets=[listening])))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        runner.should_exit = True
        thread.join(WAIT_S)
        listening.close()


@dataclass(frozen=True)
class Owner:
    """A keyed server that is being served."""

    url: str
    tools: Tools

    @classmethod
    @contextmanager
    def serving(cls, sdk: str, tools: Tools, store: Any, *, auth: bool = False, **options: Any) -> "Iterator[Owner]":
        with serving(keyed(SDKS[sdk](tools, auth=auth), store=store, **options)) as url:
            yield cls(url, tools)

    def call(self, tool: str, key: str | None = None, **arguments: Any) -> dict[str, Any]:
        return call(self.url, tool, arguments, key=key)

    def lookup(self, key: str, tool: str, token: str | None = None) -> Any:
        return lookup(self.url, key, tool, token)


def new_key() -> str:
    return str(uuid.uuid4())


def body(tool: str, arguments: dict[str, Any], key: str | None, tasks: bool = False, **more: Any) -> dict[str, Any]:
    capabilities: dict[str, Any] = {"elicitation": {}} | ({"extensions": {TASKS: {}}} if tasks else {})
    prefix = "io.modelcontextprotocol"
    meta = {f"{prefix}/protocolVersion": VERSION, f"{prefix}/clientCapabilities": capabilities}
    params = {"name": tool, "arguments": arguments, "_meta": meta | ({} if key is None else {KEY: key}), **more}
    return {"jsonrpc": "2.0", "id": str(uuid.uuid4()), "method": "tools/call", "params": params}


def headers(tool: str, token: str | None = None) -> dict[str, str]:
    sent = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    sent["Accept"] = "application/json, text/event-stream"
    return sent | ({} if token is None else {"Authorization": f"Bearer {token}"})


def call(
    url: str, tool: str, arguments: dict[str, Any], *, key: str | None = None, token: str | None = None, **more: Any
) -> dict[str, Any]:
    """Call a tool on 2026-07-28; the answer's `result` or `error`, under its name."""
    reply = httpx.post(url, json=body(tool, arguments, key, **more), headers=headers(tool, token), timeout=WAIT_S)
    assert reply.headers.get("content-type", "").startswith("application/json"), reply.text
    answer = reply.json()
    return {name: answer[name] for name in ("result", "error") if name in answer}


def lookup(url: str, key: str, tool: str, token: str | None = None) -> Any:
    arguments = {"submission_key": key, "tool": tool, "attempt": 1}
    result = call(url, "counterfoil_lookup", arguments, token=token)["result"]
    assert not result["isError"], result
    # Old clients read the text: the same JSON once more.
    assert [json.loads(block["text"]) for block in result["content"]] == [result["structuredContent"]]
    return result["structuredContent"]
