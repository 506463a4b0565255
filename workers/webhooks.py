"""Webhooks of namespaces: their file, what an event looks like, how it is signed.

CloudEvents 1.0 (structured JSON) signed as Standard Webhooks asks: `webhook-id`, `webhook-timestamp`,
`webhook-signature: v1,<base64 of HMAC-SHA256 over id.timestamp.body>`. An event refers to its receipt and names the
digest, so a forged one is powerless against a consumer that reads the receipt.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import Field, HttpUrl, ValidationError, field_validator

from ..ledger.digest import checked_name
from ..ledger.errors import CounterfoilError, InputRefused
from ..ledger.pushes import Push
from ..ledger.records import at_pointer
from . import yaml_lines
from .file_faults import described
from .target_entries import Strict, is_reference
from .yaml_lines import KeyPath

TYPE = "dev.counterfoil.operation"
SECRET_BYTES = (24, 64)
"""Standard Webhooks: a secret has between 24 and 64 random bytes."""

MAX_SECRETS = 3
"""The one in use and those that are being rotated: each signs."""

INLINE_RESULT_BYTES = 32 * 1024
"""Where `include_result` asks for it: the largest body that travels along. Receivers often cap a hook at 64 KiB."""


class WebhooksError(CounterfoilError):
    """The webhooks file can't be used. `problems` holds one `file:line: …` for each fault."""

    code = "E_WEBHOOKS"

    def __init__(self, message: str, problems: Sequence[str] = (), *, next_step: str = "") -> None:
        self.problems = tuple(problems)
        super().__init__("\n  ".join((message, *self.problems)), next_step=next_step)


class BadSecretError(ValueError):
    """The secret can't sign. The message never holds any of it."""


# -- the file --------------------------------------------------------------------------------------------------------


class WebhookEntry(Strict):
    url: HttpUrl
    secret: str | list[str]
    allow_private: bool = False
    include_result: bool = False

    @field_validator("url")
    @classmethod
    def _holds_no_secret(cls, url: HttpUrl) -> HttpUrl:
        if url.username is not None or url.password is not None:
            raise ValueError("must hold no user or password: the signature says who sends")
        if url.fragment is not None:
            raise ValueError("must hold no #fragment: it is never sent")
        return url

    @field_validator("secret")
    @classmethod
    def _are_references(cls, secret: str | list[str]) -> str | list[str]:
        references = [secret] if isinstance(secret, str) else secret
        if not 1 <= len(references) <= MAX_SECRETS:
            raise ValueError(f"names 1 to {MAX_SECRETS} secrets; with more than one, each signs")
        # A pasted secret must not be repeated in the message.
        if not all(is_reference(reference) for reference in references):
            raise ValueError('name where the secret is, never the secret: env:NAME, file:PATH or exec:["program", …]')
        return secret


class WebhooksFile(Strict):
    webhooks: dict[str, object] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where one namespace's events go. `secrets` are references, each of which signs."""

    namespace: str
    url: str
    secrets: tuple[str, ...]
    allow_private: bool
    include_result: bool


def load_webhooks(path: Path) -> dict[str, Webhook]:
    """Read the webhooks file: namespace -> webhook. Raises WebhooksError with every fault of it (E_WEBHOOKS)."""
    try:
        document = yaml_lines.read(path)
    except OSError as error:
        raise WebhooksError(
            f"the webhooks file {path} can't be read: {error.strerror}.",
            next_step="Correct or unset COUNTERFOIL_WEBHOOKS_FILE (docs/events.md).",
        ) from None
    problems, webhooks = document.problems, dict[str, Webhook]()
    try:
        written = WebhooksFile.model_validate(document.value or {}).webhooks
    except ValidationError as error:
        written = {}
        if document.value is not None or not problems:
            problems += described(
                document, (), error, lambda _: WebhooksFile.model_fields, {"too_short": "names no namespace."}
            )
    for namespace, value in written.items():
        above: KeyPath = ("webhooks", namespace)
        try:
            entry = WebhookEntry.model_validate(value)
            checked_name("namespace", namespace)
        except ValidationError as error:
            problems += described(document, above, error, lambda _: WebhookEntry.model_fields)
        except InputRefused as error:
            problems.append((document.line(above), error.message))
        else:
            secrets = (entry.secret,) if isinstance(entry.secret, str) else tuple(entry.secret)
            webhooks[namespace] = Webhook(namespace, str(entry.url), secrets, entry.allow_private, entry.include_result)
    if problems:
        raise WebhooksError(
            "the webhooks file can't be used. Correct these lines and start again:",
            [f"{path}:{line}: {message}" for line, message in sorted(set(problems))],
        )
    return webhooks


# -- an event --------------------------------------------------------------------------------------------------------


def event_body(push: Push, namespace: str) -> bytes:
    """The CloudEvent of a receipt or a notice: exact bytes, to be signed and sent as they are.

    ASCII only, so that nothing that a tool said can break a receiver's decoder.
    """
    event = {
        "specversion": "1.0",
        "id": str(push.id),
        "source": f"/counterfoil/{push.ledger_id}",
        "type": f"{TYPE}.{push.word}.v1",
        "subject": push.call_node_id,
        "time": _moment(push.created_at),
        "datacontenttype": "application/json",
        "data": _data(push, namespace),
    }
    return json.dumps(event, separators=(",", ":"), allow_nan=False).encode("ascii")


def _data(push: Push, namespace: str) -> dict[str, Any]:
    data: dict[str, Any] = {
        "namespace": namespace,
        "call_node_id": push.call_node_id,
        "operation_id": str(push.operation_id),
        "target": push.target,
        "tool": push.tool,
    }
    if push.receipt_id is None:
        return data | {"notice": push.word, "code": push.code, "why": push.why}
    data |= {
        "outcome": push.word,
        "error_code": push.code,
        "effects_possible": push.effects_possible,
        "receipt_id": str(push.receipt_id),
        "receipt_digest": _hex(push.receipt_digest),
        "result_digest": _hex(push.result_digest),
        "result_pointer": push.result_pointer,
    }
    return data | _result(push)


def _result(push: Push) -> dict[str, Any]:
    """The payload where it came along, labelled. Left out where JSON can't carry it again (1e400 is infinite once it
    was read): an event that can't be written would be due for ever."""
    if push.result_body is None or push.result_pointer is None:
        return {}
    try:
        result = at_pointer(json.loads(push.result_body), push.result_pointer)
        json.dumps(result, allow_nan=False)
    except (ValueError, RecursionError):
        return {}
    return {"result": result, "result_trust": "untrusted_tool_output"}


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


# -- a signature -----------------------------------------------------------------------------------------------------


def secret_key(text: str) -> bytes:
    """The key in a secret's text: `whsec_` and base64, or base64 alone. Raises BadSecretError."""
    low, high = SECRET_BYTES
    try:
        key = base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not low <= len(key) <= high:
        raise BadSecretError(
            f"the webhook's secret is not `whsec_` and the base64 of {low} to {high} bytes;"
            " `openssl rand -base64 32` makes one"
        )
    return key


def signed_headers(event_id: UUID | str, timestamp_s: int, body: bytes, keys: Sequence[bytes]) -> Mapping[str, str]:
    """The three headers of Standard Webhooks; one signature a key, the first key's first."""
    signed = f"{event_id}.{timestamp_s}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys)
    return {
        "webhook-id": str(event_id),
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
