"""The protocols that simulated servers speak, by name."""

from collections.abc import Callable
from dataclasses import dataclass

from counterfoil.adapters.contract import Request

from . import dialect_a2a, dialect_http, dialect_mcp
from .remote import Heard, Server
from .spoken import BROKEN, METHOD_GONE, REFUSALS, Asked, Said

Hears = Callable[[Server, float, Asked, str], Said]


@dataclass(frozen=True)
class Dialect:
    """`hear`: what the server does about a request and what it answers; `gone`: how it says that a tool is not to be
    called."""

    read: Callable[[Request], Asked]
    hear: Hears
    gone: Callable[[str], Said]
    denies_by_status: bool = False
    """HTTP 404 means that there is no such task, whoever says it."""


DIALECTS = {
    "mcp-2026-07-28": Dialect(dialect_mcp.read, dialect_mcp.hear_2026, dialect_mcp.gone),
    "mcp-2025-11-25": Dialect(dialect_mcp.read, dialect_mcp.hear_2025, dialect_mcp.gone),
    "mcp-sync": Dialect(dialect_mcp.read, dialect_mcp.hear_sync, dialect_mcp.gone),
    "aip-151": Dialect(dialect_http.read_aip, dialect_http.hear_aip, dialect_http.gone_aip, denies_by_status=True),
    "http-202": Dialect(dialect_http.read_jobs, dialect_http.hear_jobs, dialect_http.gone_jobs, denies_by_status=True),
    "a2a-1.0": Dialect(dialect_a2a.read, dialect_a2a.hear, dialect_mcp.gone),
}


def read(protocol: str, request: Request) -> Asked:
    """What a request asks."""
    return DIALECTS[protocol].read(request)


def hear(server: Server, protocol: str, now_s: float, asked: Asked, fault: str) -> Said:
    """What the server does about a request and what it answers. `fault`: what goes wrong there, "" for nothing."""
    dialect = DIALECTS[protocol]
    processed = fault not in REFUSALS and fault != METHOD_GONE
    refused = fault == "credential refused"
    server.log.append(Heard(now_s, asked.method, asked.id, asked.key, asked.task, processed, refused))
    if fault == METHOD_GONE:
        return dialect.gone(asked.id)
    if not processed:
        if dialect.denies_by_status and REFUSALS[fault].status == 404:
            server.not_found.append((now_s, asked.task or ""))
        return Said(REFUSALS[fault])
    said = dialect.hear(server, now_s, asked, fault)
    if fault in BROKEN:
        return Said(BROKEN[fault], said.takes_s)
    return said
