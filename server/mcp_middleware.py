"""Keys on a server of the official SDK."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import BaseModel, ValidationError

from .calls import Call, principal_of
from .lookup import ANNOTATIONS, DESCRIPTION, make_lookup
from .records import Answer, Kind
from .register import Register


class Middleware:
    """The innermost middleware: what the owner put in front of the tools (limits, checks) also stands before an
    answer that is given again. Extensions that make tasks are inside of it."""

    def __init__(self, register: Register, lookup_tool: str) -> None:
        self._register = register
        self._lookup_tool = lookup_tool

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Serve one message; everything but a keyed `tools/call` passes."""
        call = self._keyed(ctx)
        if call is None:
            return await call_next(ctx)
        return await self._register.once(call, partial(call_next, ctx), _Codec())

    def _keyed(self, ctx: ServerRequestContext[Any, Any]) -> Call | None:
        if ctx.method != "tools/call" or ctx.request_id is None:
            return None
        params = ctx.params or {}
        meta, tool, arguments = params.get("_meta"), params.get("name"), params.get("arguments") or {}
        if not isinstance(meta, Mapping) or not isinstance(tool, str) or not isinstance(arguments, Mapping):
            return None  # no key, or a request that the SDK refuses before any tool
        if tool == self._lookup_tool:
            return None
        return Call.read(
            meta,
            principal=principal_of(get_access_token()),
            protocol_version=ctx.protocol_version,
            tool=tool,
            arguments=arguments,
            answers=params.get("inputResponses"),
            request_state=params.get("requestState"),
        )


class _Codec:
    """Results are wire objects here already."""

    def read(self, result: HandlerResult) -> Answer:
        if isinstance(result, BaseModel):
            result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return Answer.of_result(result or {})

    def read_error(self, error: Exception) -> Answer:
        if isinstance(error, MCPError):
            return Answer.of_error(error.code, error.message, error.data)
        if isinstance(error, ValidationError):
            return Answer.of_error(INVALID_PARAMS, "Invalid request parameters")
        return Answer.of_error(INTERNAL_ERROR, "Internal server error")

    def write(self, answer: Answer) -> HandlerResult:
        if answer.kind is Kind.ERROR:
            raise MCPError(**answer.body)
        body = dict(answer.body)
        # The first call may have come in an era without it, and this one in one that needs it; older peers ignore it.
        body.setdefault("resultType", "complete")
        return body


def attach(server: MCPServer[Any], register: Register, lookup_tool: str) -> None:
    """Put the middleware and the lookup tool on a server.

    Raises:
        ValueError: the server has keys already, or a tool of that name.
    """
    if any(isinstance(each, Middleware) for each in server.middleware):
        raise ValueError("this server has submission keys already")
    with suppress(ToolError):  # there is no such tool: as it should be
        server.remove_tool(lookup_tool)
        raise ValueError(f"this server has a tool {lookup_tool!r} of its own; pass another lookup_tool")
    lookup = make_lookup(register, lambda: principal_of(get_access_token()))
    server.add_tool(lookup, lookup_tool, description=DESCRIPTION, annotations=ANNOTATIONS, structured_output=True)
    server.middleware.append(Middleware(register, lookup_tool))
