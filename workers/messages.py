"""`counterfoil.submit.v1`: a call handed in by name through the broker, from any language (docs/producers.md).

A submit message is a request, not a hint: it makes a real call. So it is authenticated, and what can't become a row is
told in a dead letter. Reading one is pure: no clock, no database, no broker.
"""

import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from ..adapters import strict_json
from ..adapters.strict_json import BadJson
from ..ledger.digest import MAX_ARGUMENTS_BYTES
from ..ledger.errors import InputRefused
from .producers import Producer, Producers, sign

SUBMIT = "counterfoil.submit.v1"
"""The task's name and its queue's."""

MAX_BODY_BYTES = MAX_ARGUMENTS_BYTES + 64 * 1024
MAX_AGE = timedelta(days=7)
"""Older messages are refused. A repeat within that time finds its own operation, so it needs no list of seen ones."""

MAX_AHEAD = timedelta(minutes=5)
"""How far a producer's clock may run ahead of the ledger's."""

_SIGNATURE = re.compile(r"[0-9a-fA-F]{64}")
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_OF_THE_KEY = ("namespace", "principal", "fleet")
_FAULTS_TOLD = 5


class MessageRefused(InputRefused):
    """A message that can't be taken: E_MESSAGE_MALFORMED, _UNSIGNED, _FORGED or _STALE. Repeats nothing of its body
    but field names."""

    code = "E_MESSAGE_MALFORMED"


def _moment(value: object) -> datetime:
    if not isinstance(value, str) or not _RFC_3339.fullmatch(value):
        raise ValueError("must be an RFC 3339 moment with its offset, such as 2026-11-29T22:30:00Z")
    return datetime.fromisoformat(value)


def _one(value: object) -> object:
    # 1 == True == 1.0 in Python, and a Literal compares.
    if type(value) is not int:
        raise ValueError("must be 1")
    return value


class SubmitRequest(BaseModel):
    """The body of a message. Namespace, principal and fleet are not in it: they come from the key."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    v: Annotated[Literal[1], BeforeValidator(_one)]
    call_node_id: str
    target: str
    tool: str
    arguments: dict[str, object]
    sent_at: Annotated[datetime, BeforeValidator(_moment)]

    def check_age(self, now: datetime) -> None:
        """`now` is the ledger's. Raises MessageRefused (E_MESSAGE_STALE)."""
        age = now - self.sent_at
        if age > MAX_AGE or -age > MAX_AHEAD:
            side = "is more than 7 days old" if age > MAX_AGE else "lies more than 5 minutes ahead"
            raise MessageRefused(
                f"`sent_at` {side} by the ledger's clock ({now:%Y-%m-%dT%H:%M:%SZ}).",
                code="E_MESSAGE_STALE",
                next_step="Send it again with the present moment and the same call node.",
            )


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it came: exact bytes of the body, key and signature unchecked."""

    body: bytes
    key_id: str | None = None
    signature: str | None = None
    fault: str = ""
    """Why it is no submit message at all; then `body` is what there was of it."""

    @classmethod
    def of(cls, args: Sequence[object], kwargs: Mapping[str, object]) -> "Message":
        """From a task's arguments `[body, key_id, signature]`, by place or by name; the last two may be null.

        `[body], {"fault": why}` is what a worker makes of a message that Celery could not have read.
        """
        match args, kwargs:
            case [str(entry)], {"fault": str(fault), **more} if not more:
                return cls(entry.encode("utf-8", "replace"), fault=f"not a task message: {_shown(fault)}")
        given = dict(zip(("body", "key_id", "signature"), args, strict=False))
        if len(args) > 3 or given.keys() & kwargs.keys() or kwargs.keys() - {"body", "key_id", "signature"}:
            return cls(_dumped(args, kwargs), fault="the arguments are not [body, key_id, signature].")
        given |= kwargs
        body, key_id, signature = (given.get(name) for name in ("body", "key_id", "signature"))
        if not isinstance(body, str):
            return cls(_dumped(args, kwargs), fault="`body` must be one JSON text, in a string.")
        if not isinstance(key_id, str | None) or not isinstance(signature, str | None):
            return cls(_dumped(args, kwargs), fault="`key_id` and `signature` must be strings, or null.")
        if not strict_json.is_storable(body):
            return cls(body.encode("utf-8", "surrogatepass"), fault="`body` holds NUL or a lone surrogate.")
        return cls(body.encode(), key_id, signature)

    @property
    def shown_key(self) -> str | None:
        """The key id for people and the database: cut, and storable whatever was sent."""
        return strict_json.storable(self.key_id, 64)

    def authenticate(self, producers: Producers, *, allow_unsigned: bool) -> Producer:
        """On whose behalf it comes. Nothing of the body is read before. Raises MessageRefused, ProducersError."""
        if self.fault:
            raise MessageRefused(self.fault, next_step="docs/producers.md shows the format.")
        if len(self.body) > MAX_BODY_BYTES:
            raise MessageRefused(
                f"`body` has {len(self.body)} bytes; the cap is {MAX_BODY_BYTES}.",
                next_step="Store the data where the tool can fetch it and pass a reference.",
            )
        if self.key_id is None and self.signature is None and allow_unsigned:
            return Producer("default", "default")
        if self.key_id is None or self.signature is None:
            raise MessageRefused(
                "it is not signed: both `key_id` and `signature` are needed.",
                code="E_MESSAGE_UNSIGNED",
                next_step="Sign it (docs/producers.md); COUNTERFOIL_ALLOW_UNSIGNED=true is for development only.",
            )
        producer = producers.find(self.key_id)
        if producer is None:
            raise MessageRefused(
                "its key id is not in the workers' producers file.",
                code="E_MESSAGE_FORGED",
                next_step="Add the key to COUNTERFOIL_PRODUCERS_FILE, if the message is one of yours.",
            )
        expected = sign(producer.secret, self.key_id, self.body)
        if not _SIGNATURE.fullmatch(self.signature) or not hmac.compare_digest(expected, self.signature.lower()):
            raise MessageRefused(
                "its signature is not that of its key over these bytes.",
                code="E_MESSAGE_FORGED",
                next_step="Sign the exact bytes that are sent; docs/producers.md has a test vector.",
            )
        return producer

    def request(self) -> SubmitRequest:
        """The body, read strictly. Only for a message that was authenticated. Raises MessageRefused."""
        try:
            value = strict_json.loads(self.body)
        except BadJson as error:
            raise MessageRefused(f"`body` can't be read: {error}.") from None
        try:
            return SubmitRequest.model_validate(value)
        except ValidationError as error:
            raise MessageRefused(" ".join(_sentences(error))) from None


def _shown(text: str) -> str:
    """A stranger's words, on one line of a log and a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:200])


def _sentences(error: ValidationError) -> list[str]:
    told = []
    for fault in error.errors(include_input=False, include_url=False)[:_FAULTS_TOLD]:
        # As a repr: the name may be the sender's invention, and it goes to a log and a terminal.
        name = repr(str(fault["loc"][0])[:64]) if fault["loc"] else "`body`"
        match fault["type"]:
            case "extra_forbidden" if fault["loc"][0] in _OF_THE_KEY:
                what = "comes from the key and can't be named by a message"
            case "extra_forbidden":
                what = "is not a field of a message"
            case "missing":
                what = "is missing"
            case "model_type":
                what = "must be a JSON object"
            case _:
                what = fault["msg"].removeprefix("Value error, ").removeprefix("Input ").replace("should", "must")
        told.append(f"{name} {what}.")
    return told


def _dumped(args: Sequence[object], kwargs: Mapping[str, object]) -> bytes:
    """What there was, for a person to look at. kombu's JSON may hold types of its own."""
    try:
        return json.dumps([list(args), dict(kwargs)], default=str).encode()
    except (RecursionError, ValueError):
        return b""
