"""A keyed call: what a `tools/call` asks for, and by which name the store knows it."""

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server.auth.provider import AccessToken
from mcp_types import CLIENT_CAPABILITIES_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from .errors import TASKS_EXTENSION, key_invalid

KEY = "dev.counterfoil/submission-key"

FIRST_LEG = ""


@dataclass(frozen=True, slots=True)
class Call:
    """One `tools/call` that carries a key.

    `name`: of the key in the store. `request`: digest of tool and arguments. `leg`: digest of the answers that this
    request brings to the call's questions (2026-07-28 asks for input by ending the request; the next one carries the
    answers), `FIRST_LEG` where it brings none. `takes_tasks`: its client declares the tasks extension.
    """

    name: str
    tool: str
    request: str
    leg: str
    takes_tasks: bool

    @classmethod
    def read(
        cls,
        meta: Mapping[str, Any],
        *,
        principal: str,
        protocol_version: str,
        tool: str,
        arguments: Mapping[str, Any],
        answers: Mapping[str, Any] | None = None,
        request_state: Any = None,
    ) -> "Call | None":
        """Read one from a request; None where its `_meta` holds no key.

        Raises:
            MCPError: E_KEY_INVALID.
        """
        if KEY not in meta:
            return None
        return cls(
            name=stored_name(principal, _key(meta[KEY])),
            tool=tool,
            request=_digest([tool, dict(arguments)]),
            leg=FIRST_LEG if answers is None and request_state is None else _digest([request_state, answers]),
            takes_tasks=protocol_version in MODERN_PROTOCOL_VERSIONS and _declares_tasks(meta),
        )


def stored_name(principal: str, key: uuid.UUID) -> str:
    """Return the key's name in the store. The principal is part of it: nobody reads another one's calls."""
    return f"{_digest(principal)[:32]}:{key}"


def principal_of(token: AccessToken | None) -> str:
    """Return on whose behalf a request comes: client, issuer and subject as the server's authentication tells them,
    or "" where it asks for none. Then whoever knows a key shares it: the key itself is the secret."""
    if token is None:
        return ""
    claims = token.claims or {}
    return json.dumps([token.client_id, claims.get("iss"), token.subject or claims.get("sub")], default=str)


def _key(found: Any) -> uuid.UUID:
    try:
        key = uuid.UUID(found)
    except (AttributeError, TypeError, ValueError):
        raise key_invalid() from None
    if str(key) != found.lower():  # uuid.UUID also reads braces, URNs and bare hex
        raise key_invalid()
    return key


def _declares_tasks(meta: Mapping[str, Any]) -> bool:
    capabilities = meta.get(CLIENT_CAPABILITIES_META_KEY)
    extensions = capabilities.get("extensions") if isinstance(capabilities, Mapping) else None
    return isinstance(extensions, Mapping) and isinstance(extensions.get(TASKS_EXTENSION), Mapping)


def _digest(value: Any) -> str:
    # Only ever compared with digests made here, so no canonical form but sorted names is needed.
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
