"""A server in a thread that answers as a test tells it, and remembers what it was asked: what nobody ships."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""

Respond = Callable[[str, dict[str, Any]], Answer]
"""(JSON-RPC method, or the HTTP one where there is none; the message) -> what to answer."""


@dataclass
class Served:
    """The running server. `asked`: methods, in the order in which they came. `headers`: of the last request."""

    port: int
    asked: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@contextmanager
def serving(respond: Respond, tls: ssl.SSLContext | None = None) -> Iterator[Served]:
    """Serve on loopback for as long as the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            message = json.loads(body) if body else {}
            method = message.get("method", self.command)
            served.asked.append(method)
            served.headers = {name.lower(): value for name, value in self.headers.items()}
            status, headers, content = respond(method, message)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            try:
                self.wfile.write(content)
            except ConnectionError:
                self.close_connection = True  # the client had enough

        do_DELETE = do_GET = do_POST  # noqa: N815  the library's name

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  the library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Served(server.server_address[1])
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda request, address: None  # type: ignore[method-assign]  # a refused handshake
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def result(message: dict[str, Any], value: object) -> Answer:
    """A JSON-RPC result."""
    body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": value}).encode()
    return 200, {"Content-Type": "application/json"}, body


def error(message: dict[str, Any], code: int, text: str) -> Answer:
    """A JSON-RPC error."""
    body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": text}}).encode()
    return 400, {"Content-Type": "application/json"}, body


def tool(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def mcp_2025(*tools: dict[str, object], version: str = "2025-11-25", tasks: bool = False, pages: int = 1) -> Respond:
    """A server of MCP 2025 with these tools, spread over pages; it begins sessions and takes their ends."""
    capabilities: dict[str, object] = {"tools": {}}
    if tasks:
        capabilities["tasks"] = {"requests": {"tools": {"call": {}}}}
    share = -(-len(tools) // pages)

    def respond(method: str, message: dict[str, Any]) -> Answer:
        match method:
            case "initialize":
                hello = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "s"}}
                status, headers, body = result(message, hello)
                return status, headers | {"Mcp-Session-Id": "s-1"}, body
            case "notifications/initialized":
                return 202, {}, b""
            case "DELETE":
                return 200, {}, b""
            case "tools/list":
                page = int(message["params"].get("cursor", "0"))
                listed: dict[str, object] = {"tools": tools[page * share : (page + 1) * share]}
                return result(message, listed | ({"nextCursor": str(page + 1)} if page + 1 < pages else {}))
            case _:
                return error(message, -32601, "Method not found")

    return respond
