"""Keys on a FastMCP server, with or without its tasks extension."""

from contextvars import ContextVar
from functools import partial
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import FastMCPError
from fastmcp.server.dependencies import get_access_token
from fastmcp.server.middleware import CallNext, MiddlewareContext
from fastmcp.server.middleware import Middleware as BaseMiddleware
from fastmcp.tools.base import InputRequiredToolResult, Tool, ToolResult
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, CallToolRequestParams, CallToolResult, InputRequiredResult, TextContent
from pydantic import BaseModel, ConfigDict

from .calls import Call, principal_of
from .lookup import ANNOTATIONS, DESCRIPTION, make_lookup
from .records import Answer, Kind
from .register import Register

# A tool may call tools of its server or of a mounted one: the same request, whose key is taken already.
_served: ContextVar[object] = ContextVar("counterfoil_served_request", default=None)


class Middleware(BaseMiddleware):
    """The innermost middleware: what the owner put in front of the tools (limits, checks) also stands before an
    answer that is given again. The tasks extension is inside of it."""

    def __init__(self, register: Register, lookup_tool: str) -> None:
        self._register = register
        self._lookup_tool = lookup_tool

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, Any],
    ) -> Any:
        """Serve one call; it passes where it has no key."""
        request = None if context.fastmcp_context is None else context.fastmcp_context.request_context
        if request is None or request.meta is None or request is _served.get():
            return await call_next(context)
        message = context.message
        if message.name == self._lookup_tool:
            return await call_next(context)
        call = Call.read(
            request.meta,
            principal=principal_of(get_access_token()),
            protocol_version=request.protocol_version,
            tool=message.name,
            arguments=message.arguments or {},
            answers=None if message.input_responses is None else _wire(message)["inputResponses"],
            request_state=message.request_state,
        )
        if call is None:
            return await call_next(context)
        served = _served.set(request)
        try:
            return await self._register.once(call, partial(call_next, context), _Codec(message.name))
        finally:
            _served.reset(served)


class _Extension(BaseModel):
    """A result that belongs to an extension; FastMCP hands it to the wire as it is."""

    model_config = ConfigDict(extra="allow")


class _Codec:
    """FastMCP's results and exceptions as its own handler puts them on the wire."""

    def __init__(self, tool: str) -> None:
        self._tool = tool

    def read(self, result: Any) -> Answer:
        if isinstance(result, InputRequiredToolResult):
            return Answer.of_result(_wire(result.input_required))
        if not isinstance(result, ToolResult):
            return Answer.of_result(_wire(result))
        return Answer.of_result(_wire(_call_tool_result(result)))

    def read_error(self, error: Exception) -> Answer:
        if isinstance(error, MCPError):
            return Answer.of_error(error.code, error.message, error.data)
        if isinstance(error, FastMCPError):
            return Answer.of_result(_wire(CallToolResult(content=[TextContent(text=str(error))], is_error=True)))
        return Answer.of_error(INTERNAL_ERROR, "Internal server error")

    def write(self, answer: Answer) -> Any:
        if answer.kind is Kind.ERROR:
            raise MCPError(**answer.body)
        if answer.kind is Kind.TASK:
            return _Extension.model_validate(answer.body)
        if answer.kind is Kind.QUESTION:
            return InputRequiredToolResult(InputRequiredResult.model_validate(answer.body))
        return ToolResult.from_mcp_result(CallToolResult.model_validate(answer.body))


def attach(server: FastMCP[Any], register: Register, lookup_tool: str) -> None:
    """Put the middleware and the lookup tool on a server.

    Raises:
        ValueError: the server has keys already, or a tool of that name.
    """
    if any(isinstance(each, Middleware) for each in server.middleware):
        raise ValueError("this server has submission keys already")
    try:
        server.local_provider.remove_tool(lookup_tool)
    except KeyError:  # there is no such tool: as it should be
        pass
    else:
        raise ValueError(f"this server has a tool {lookup_tool!r} of its own; pass another lookup_tool")
    lookup = make_lookup(register, lambda: principal_of(get_access_token()))
    server.add_tool(Tool.from_function(lookup, name=lookup_tool, description=DESCRIPTION, annotations=ANNOTATIONS))
    server.add_middleware(Middleware(register, lookup_tool))


def _call_tool_result(result: ToolResult) -> CallToolResult:
    wire = result.to_mcp_result()
    if isinstance(wire, CallToolResult):
        return wire
    content, structured = wire if isinstance(wire, tuple) else (wire, None)
    return CallToolResult(content=content, structured_content=structured)


def _wire(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)
