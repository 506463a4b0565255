"""What the demo compares with: a call as it is written every day, with the official MCP client. No answer, call again.

python -m counterfoil.console.demo_naive URL TOOL ARGUMENTS TIMEOUT_S
"""

import asyncio
import json
import sys
from typing import Any

from mcp import Client, MCPError
from mcp_types import REQUEST_TIMEOUT, CallToolResult

TRIES = 5


async def call(url: str, tool: str, arguments: dict[str, Any], timeout_s: float) -> CallToolResult:
    """The answer of the first try that has one. Raises MCPError when none has."""
    async with Client(url) as client:
        for _ in range(TRIES - 1):
            try:
                return await client.call_tool(tool, arguments, read_timeout_seconds=timeout_s)
            except MCPError as error:
                if error.code != REQUEST_TIMEOUT:
                    raise
                print(f"no answer in {timeout_s:g} s, calling again", flush=True)
        return await client.call_tool(tool, arguments, read_timeout_seconds=timeout_s)


if __name__ == "__main__":
    result = asyncio.run(call(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), float(sys.argv[4])))
    print("failed" if result.is_error else "succeeded")
