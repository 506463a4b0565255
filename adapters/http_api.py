"""What an operator declares of an HTTP API, since nobody can be asked for it: routes, words, places, the key.

It is the contract that a call rests on, so it is pinned with the tool's policy (SPEC section 1). An adapter is handed
its text with each verb (`Endpoint.api`).
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from enum import StrEnum
from functools import lru_cache
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from . import http_routes, strict_json
from .contract import (
    Call,
    Effect,
    Endpoint,
    Request,
)
from .http_routes import Route
from .outcomes import Negotiated
from .profile import Lookup, Profile

_ID = ("id", "name")
_HEADER = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$"
_HEADER_VALUE = r"^[ -~]{1,500}$"
_POINTER = r"^(/[^\x00-\x1f]*)?$"
_POINTER_CHARS = 512
"""Beside the pattern, not in it: bounded repetitions make large automata (six of them were 0.6 MB of each worker)."""
_WORD_CHARS = 64
_OURS = frozenset(
    ["accept-encoding", "authorization", "connection", "content-length", "content-type", "host", "transfer-encoding"]
)
"""Headers that the wire writes, or that would carry a secret into a file."""


class Meaning(StrEnum):
    """What a status word means."""

    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class Routes(Declared):
    submit: str | None = Field(
        None,
        description="What starts the work: `POST /jobs`. The path is appended to the target's `url`; `{tool}` stands "
        "for the tool's name, `{key}` for the submission key. The arguments are the body. Without it nothing is sent.",
    )
    status: str | None = Field(
        None,
        description="What tells how it stands: `GET /jobs/{id}`; `{name}` instead of `{id}` keeps the slashes of the "
        "id. Left out: the URL that the server hands out with its answer to the submit.",
    )
    result: str | None = Field(
        None, description="What gives the result: `GET /jobs/{id}/result`. Left out: it comes with the status."
    )
    cancel: str | None = Field(
        None,
        description="What asks for a cancel: `POST /jobs/{id}/cancel`, `DELETE /jobs/{id}`. Left out: a cancel is "
        "refused at the door.",
    )
    lookup: str | None = Field(
        None,
        description="What finds a lost submit by its key, without any effect: `GET /jobs?key={key}` over a collection, "
        "or `GET /jobs/{key}` where the client chooses the id. See `lookup`.",
    )

    @field_validator("submit")
    @classmethod
    def _is_submit(cls, text: str | None) -> str | None:
        return _checked(text, ("POST", "PUT"), ("tool", "key"))

    @field_validator("status", "result")
    @classmethod
    def _is_read(cls, text: str | None) -> str | None:
        return _checked(text, ("GET",), _ID, needed=_ID)

    @field_validator("cancel")
    @classmethod
    def _is_cancel(cls, text: str | None) -> str | None:
        return _checked(text, ("POST", "DELETE", "PUT", "PATCH"), _ID, needed=_ID)

    @field_validator("lookup")
    @classmethod
    def _is_lookup(cls, text: str | None) -> str | None:
        return _checked(text, ("GET",), ("key", "tool"), needed=("key",))


def _checked(
    text: str | None, verbs: tuple[str, ...], allowed: tuple[str, ...], needed: tuple[str, ...] = ()
) -> str | None:
    if text is not None:
        http_routes.parse(text, verbs, allowed, needed)
    return text


class Statuses(Declared):
    working: list[str] = Field([], description="Words for: not over.")
    completed: list[str] = Field([], description="Words for: over, and there is a result.")
    failed: list[str] = Field([], description="Words for: over, and it failed.")
    cancelled: list[str] = Field([], description="Words for: over, because a cancel won.")

    @model_validator(mode="after")
    def _one_meaning_a_word(self) -> Self:
        words = [word.casefold() for meaning in Meaning for word in getattr(self, meaning)]
        if any(not 0 < len(word) <= _WORD_CHARS for word in words) or len(set(words)) != len(words):
            raise ValueError(f"holds an empty word, one of more than {_WORD_CHARS} characters, or one twice")
        return self

    def __bool__(self) -> bool:
        return any(getattr(self, meaning) for meaning in Meaning)

    def meaning(self, word: str | None) -> Meaning | None:
        """Of a status word, whatever its case; None for one that was not declared."""
        said = (word or "").casefold()
        found = (one for one in Meaning if any(said == known.casefold() for known in getattr(self, one)))
        return next(found, None)


class Places(Declared):
    """Where things are in an answer: RFC 6901 pointers."""

    id: str = Field(
        "/id", pattern=_POINTER, max_length=_POINTER_CHARS, description="The id of the work, a text or a whole number."
    )
    status: str = Field("/status", pattern=_POINTER, max_length=_POINTER_CHARS, description="The status word.")
    result: str | None = Field(
        None,
        pattern=_POINTER,
        max_length=_POINTER_CHARS,
        description="The result: by default the whole answer where it has a route of its own, else `/result`.",
    )
    result_url: str | None = Field(
        None,
        pattern=_POINTER,
        max_length=_POINTER_CHARS,
        description="In the last status: a URL of the same server that gives the result.",
    )
    error: str = Field("/error", pattern=_POINTER, max_length=_POINTER_CHARS, description="What is told of a failure.")
    found: str | None = Field(
        None,
        pattern=_POINTER,
        max_length=_POINTER_CHARS,
        description="What a lookup found, one thing or a list: by default the whole answer where the path names the "
        "key, else `/jobs`.",
    )


class Key(Declared):
    header: str | None = Field(
        None, pattern=_HEADER, description="The header that carries the key: `Idempotency-Key`, `Operation-Id`."
    )
    body: str | None = Field(
        None,
        min_length=1,
        max_length=64,
        description="The member of the body that carries the key, beside the arguments: `requestId`.",
    )
    quoted: bool = Field(
        default=False, description="true: the header's value stands in quotes, as structured fields have it."
    )
    first_sent: str | None = Field(
        None,
        pattern=_HEADER,
        description="A header that tells the moment of the call, the same in every repeat: `Repeatability-First-Sent`.",
    )
    reused_statuses: list[int] = Field(
        [], description="HTTP statuses that say: this key belongs to another request. Never answered with a new key."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.header is None) is (self.body is None):
            raise ValueError("names one way: `header: NAME`, or `body: MEMBER`")
        if self.body is not None and (self.quoted or self.first_sent is not None):
            raise ValueError("can say `quoted` and `first_sent` of a header only")
        if any(header is not None and header.lower() in _OURS for header in (self.header, self.first_sent)):
            raise ValueError("can't travel in a header that is the wire's own")
        return self


class HttpApi(Declared):
    """One tool's API, complete: presets, target and tool put together (`presets.py`)."""

    routes: Routes = Routes()
    statuses: Statuses = Statuses()
    fields: Places = Places()
    key: Key | None = None
    headers: dict[str, str] = {}
    respond_async: bool = False
    rejections: list[int] = [400, 404, 405, 406, 411, 413, 414, 415, 422, 431]
    cancel_is_evidence: bool = False

    @field_validator("headers")
    @classmethod
    def _are_harmless(cls, headers: dict[str, str]) -> dict[str, str]:
        return checked_headers(headers)

    @staticmethod
    @lru_cache(maxsize=1024)
    def of(text: str) -> "HttpApi":
        """The declaration that was pinned. Its text is ours: anything else is a fault of the program."""
        return HttpApi.model_validate_json(text or "{}")

    def text(self) -> str:
        """One text for one declaration."""
        return strict_json.dumps(self.model_dump(mode="json")).decode()

    def of_profile(self, base: Profile) -> Profile:
        """What the protocol promises under this declaration."""
        route = self.route("lookup")
        by_key = Lookup.CLIENT_CHOSEN_ID if route is not None and route.key_in_path else Lookup.BY_KEY
        return replace(
            base,
            lookup=Lookup.NONE if route is None else by_key,
            can_cancel=self.routes.cancel is not None,
            cancel_is_evidence=self.cancel_is_evidence,
            result_separate=self.routes.result is not None,
        )

    @property
    def carries_key(self) -> bool:
        return self.key is not None or "{key}" in (self.routes.submit or "")

    def route(self, name: str) -> Route | None:
        text: str | None = getattr(self.routes, name)
        return None if text is None else Route(*text.split(" ", 1))

    # -- negotiating ---------------------------------------------------------------------------------------------------

    def agreed(self, protocol: str, tool: str) -> Negotiated:
        """Nothing is negotiated on the wire. The descriptor is the tool as it was declared."""
        descriptor = strict_json.dumps({"name": tool} | self.model_dump(mode="json"))
        schema = None
        if self.key is not None and self.key.body is not None:
            # An argument of the key's name would make the body say two things.
            schema = strict_json.dumps({"type": "object", "not": {"required": [self.key.body]}})
        return Negotiated(protocol, descriptor, None, schema, None)

    # -- requests ------------------------------------------------------------------------------------------------------

    def submit(self, endpoint: Endpoint, call: Call) -> Request:
        """The one request that has the effect: the digested arguments byte for byte, and the key."""
        route = self.route("submit")
        assert route is not None, "negotiation refuses a tool without a submit route"
        headers = [*self._headers(), ("Content-Type", "application/json"), *self._key_headers(call)]
        if self.respond_async:
            headers.append(("Prefer", "respond-async"))
        return Request(
            method=route.verb,
            url=route.url(endpoint.url, tool=call.tool, key=call.submission_key),
            headers=tuple(headers),
            body=self._body(call),
            effect=Effect.SUBMIT,
            deadline_s=call.answer_by_s,
            max_bytes=endpoint.max_response_bytes,
        )

    def _key_headers(self, call: Call) -> list[tuple[str, str]]:
        key = self.key
        if key is None or key.header is None:
            return []
        headers = [(key.header, f'"{call.submission_key}"' if key.quoted else call.submission_key)]
        if key.first_sent is not None:
            made_at = datetime.fromtimestamp(call.made_at_s, UTC)
            headers.append((key.first_sent, format_datetime(made_at, usegmt=True)))
        return headers

    def _body(self, call: Call) -> bytes:
        if self.key is None or self.key.body is None:
            return call.arguments
        rest = call.arguments.strip()[1:]
        member = strict_json.dumps(self.key.body) + b":" + strict_json.dumps(call.submission_key)
        return b"{" + member + (b"" if rest == b"}" else b",") + rest

    def get(self, endpoint: Endpoint, url: str) -> Request:
        """A read."""
        return Request(
            "GET", url, self._headers(), deadline_s=endpoint.deadline_s, max_bytes=endpoint.max_response_bytes
        )

    def cancel(self, endpoint: Endpoint, route: Route, task_id: str, body: bytes) -> Request:
        content = (("Content-Type", "application/json"),) if body else ()
        return Request(
            method=route.verb,
            url=route.url(endpoint.url, id=task_id, name=task_id),
            headers=(*self._headers(), *content),
            body=body,
            effect=Effect.CANCEL,
            deadline_s=endpoint.deadline_s,
            max_bytes=endpoint.max_response_bytes,
        )

    def _headers(self) -> tuple[tuple[str, str], ...]:
        own = {name.lower() for name in self.headers}
        accept = () if "accept" in own else (("Accept", "application/json"),)
        return (*accept, *self.headers.items())


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Constant headers that may be sent. Raises ValueError; no message repeats a value."""
    for name, value in headers.items():
        if not re.fullmatch(_HEADER, name) or not re.fullmatch(_HEADER_VALUE, value):
            raise ValueError("holds a name or a value that is none of a header")
        if name.lower() in _OURS:
            raise ValueError(f"can't hold {name}: the wire writes it, or `credentials` does")
    return dict(headers)
