"""A small HTTP proxy that loses answers: for each client the first one of one tool, after the server gave it.

    python -m counterfoil.console.demo_proxy UPSTREAM_PORT TOOL

It prints its port, and says on stderr what it lost. Nothing is closed or reset: the client hears nothing, as behind a
load balancer that was restarted, until it gives up.
"""

import sys
from contextlib import suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_OF_ONE_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"})


class LossyProxy(ThreadingHTTPServer):
    """On a free loopback port. Clients are told apart by their User-Agent."""

    daemon_threads = True

    def __init__(self, upstream_port: int, tool: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream_port = upstream_port
        self._tool = tool
        self._met: set[str] = set()

    def loses(self, method: str, name: str, client: str) -> bool:
        """Whether the answer to this request is to be lost: true once a client."""
        if (method, name) != ("tools/call", self._tool) or client in self._met:
            return False
        self._met.add(client)
        return True


class _Handler(BaseHTTPRequestHandler):
    """HTTP/1.0 towards the client, so one request a connection."""

    server: LossyProxy

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        upstream = HTTPConnection("127.0.0.1", self.server.upstream_port)
        upstream.request("POST", self.path, body, dict(self.headers))
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        # MCP 2026-07-28 has both in headers of their own, for proxies.
        method, tool = self.headers.get("Mcp-Method", ""), self.headers.get("Mcp-Name", "")
        client = self.headers.get("User-Agent", "")
        with suppress(ConnectionError):  # the client had enough
            if self.server.loses(method, tool, client):
                print(f"lost: {answer.status} to {method} {tool} of {client}", file=sys.stderr, flush=True)
                self.rfile.read(1)  # returns when the client gives up
                return
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _OF_ONE_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)


def main() -> None:
    """Serve until it is ended."""
    with LossyProxy(int(sys.argv[1]), sys.argv[2]) as proxy:
        print(proxy.server_address[1], flush=True)
        proxy.serve_forever()


if __name__ == "__main__":
    main()
