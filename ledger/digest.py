"""Digests and derived identifiers: the same input gives the same bytes in every process, for ever."""

import hashlib
import uuid
from collections.abc import Mapping

import rfc8785

from .errors import InputRefused

MAX_ARGUMENTS_BYTES = 1024 * 1024
"""Arguments over this are refused at the door: every submit and its row carry them."""

MAX_NAME_CHARS = 512
"""Call nodes, namespaces, targets, tools, principals: they stand in unique indexes, whose entries must stay under
2.7 KB."""

_RECEIPTS = uuid.UUID("6f0c5b52-2f0f-5d0e-9d55-6a2d5c9a1f01")
_READY = uuid.UUID("6f0c5b52-2f0f-5d0e-9d55-6a2d5c9a1f02")


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def canonical_json(value: object) -> bytes:
    """RFC 8785 text of a JSON value.

    Raises InputRefused with E_ARGUMENTS_INVALID for what has no such text: integers above 2^53 - 1, NaN, lone
    surrogates, types that are not JSON.
    """
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]
    except rfc8785.IntegerDomainError as error:
        raise InputRefused(
            "an integer is outside -(2^53 - 1) to 2^53 - 1, so JSON can't carry it unchanged.",
            code="E_ARGUMENTS_INVALID",
            next_step="Send it as a string if the tool takes one.",
        ) from error
    except (rfc8785.CanonicalizationError, RecursionError, UnicodeEncodeError) as error:
        raise InputRefused(
            f"the value is not JSON ({type(error).__name__}).",
            code="E_ARGUMENTS_INVALID",
            next_step="Only objects, arrays, strings, finite numbers, booleans and null can be sent.",
        ) from error


def arguments_text(arguments: object) -> bytes:
    """Canonical text of a call's arguments, the bytes that are digested, stored and sent. Capped and storable."""
    if not isinstance(arguments, Mapping):
        raise InputRefused(
            f"arguments are a {type(arguments).__name__}, not an object.",
            code="E_ARGUMENTS_INVALID",
            next_step='Pass a mapping such as {"month": "2026-10"}.',
        )
    text = canonical_json(dict(arguments))
    if len(text) > MAX_ARGUMENTS_BYTES:
        raise InputRefused(
            f"arguments are {len(text)} bytes; the cap is {MAX_ARGUMENTS_BYTES}.",
            code="E_ARGUMENTS_TOO_LARGE",
            next_step="Store the data where the tool can fetch it and pass a reference.",
        )
    return text


def request_digest(target: str, tool: str, arguments: bytes, principal: str) -> bytes:
    """SHA-256 over the RFC 8785 text of `{v, target, tool, arguments, principal}` (SPEC section 1).

    `arguments` is canonical already, so it is spliced in instead of being parsed again; the keys are in canonical
    order.
    """
    return sha256(
        b'{"arguments":%s,"principal":%s,"target":%s,"tool":%s,"v":1}'
        % (arguments, canonical_json(principal), canonical_json(target), canonical_json(tool))
    )


def checked_name(kind: str, value: object) -> str:
    """A name that may stand in the ledger's indexes: 1 to 512 printable characters, storable in PostgreSQL."""
    problem = None
    if not isinstance(value, str):
        problem = "is no string"
    elif not value:
        problem = "is empty"
    elif len(value) > MAX_NAME_CHARS or len(value.encode("utf-8", "replace")) > 2 * MAX_NAME_CHARS:
        problem = f"has {len(value)} characters; the cap is {MAX_NAME_CHARS}"
    elif any(ord(c) < 0x20 or 0xD800 <= ord(c) <= 0xDFFF or ord(c) == 0x7F for c in value):
        problem = "holds a control character or a lone surrogate"
    if problem:
        raise InputRefused(
            f"the {kind} {problem}.",
            code=f"E_{kind.upper().replace(' ', '_')}_INVALID",
            next_step="Use a short printable identifier; for a call node what the runtime computes again (run + step).",
        )
    assert isinstance(value, str)
    return value


def _node_name(namespace: str, call_node_id: str) -> str:
    return f"{len(namespace)}:{namespace}/{call_node_id}"


def receipt_id(namespace: str, call_node_id: str) -> uuid.UUID:
    """Derived, so that a receipt accepted again after a lost failover bears the same id and consumers dedupe (SPEC
    section 6)."""
    return uuid.uuid5(_RECEIPTS, _node_name(namespace, call_node_id))


def ready_id(namespace: str, call_node_id: str) -> uuid.UUID:
    return uuid.uuid5(_READY, _node_name(namespace, call_node_id))


def submission_key(ledger_id: uuid.UUID, namespace: str, call_node_id: str, digest: bytes) -> uuid.UUID:
    """UUIDv8 of SHA-256 over ledger, namespace, call node and request digest (SPEC section 1).

    Derived, so that even a row lost with a failed-over database gets the same key again.
    """
    seed = sha256(ledger_id.bytes + _node_name(namespace, call_node_id).encode() + b"\0" + digest)
    raw = bytearray(seed[:16])
    raw[6] = (raw[6] & 0x0F) | 0x80
    raw[8] = (raw[8] & 0x3F) | 0x80
    return uuid.UUID(bytes=bytes(raw))
