"""Names in traces, derived from the ledger's, so that nobody has to keep or pass on a trace: an operation's trace id is
its own id, and the span of its n-th submit follows from it. Whoever knows the operation finds its trace.

Deterministic also because a replay sends the very bytes of the submit again, and the context travels in them.
"""

import hashlib
from uuid import UUID


def submit_span(operation_id: UUID, attempt: int) -> int:
    """The span id of the attempt's submit."""
    digest = hashlib.sha256(b"counterfoil submit" + operation_id.bytes + bytes([attempt])).digest()
    return int.from_bytes(digest[:8], "big") or 1


def traceparent(operation_id: UUID, attempt: int) -> str:
    """The W3C Trace Context of the attempt's submit, as a header or in MCP's `_meta`."""
    return f"00-{operation_id.hex}-{submit_span(operation_id, attempt):016x}-01"
