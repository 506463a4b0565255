"""Header values that MCP 2026-07-28 mirrors from a request's body (streamable HTTP, "Request Metadata").

A server must refuse a request whose headers do not match its body (-32020), so a tool that asks for `Mcp-Param-…`
headers can't be called without them.
"""

import base64
import re
from collections.abc import Iterator, Mapping

from .strict_json import Json

ANNOTATION = "x-mcp-header"
_PLAIN = re.compile(r"[\x20-\x7e]*")
_SENTINEL = re.compile(r"=\?base64\?.*\?=")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PRIMITIVE = ("string", "integer", "boolean")  # not a set: a hostile `type` may be unhashable
# keywords whose values are data, not schemas: an annotation's name in there annotates nothing
_DATA = frozenset({"const", "default", "enum", "examples"})


def encode(value: str) -> str:
    """A header value that survives the trip: plain visible ASCII as it is, everything else in the base64 sentinel.

    Source: "Value Encoding". A value that looks like the sentinel itself is wrapped too, else it would be ambiguous.
    """
    if _PLAIN.fullmatch(value) and value == value.strip() and not _SENTINEL.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode('ascii')}?="


def invalid_annotation(input_schema: Json) -> str | None:
    """Why a tool must be left out (a client MUST reject a tool with an invalid annotation); None when all are valid."""
    seen: set[str] = set()
    for path, schema in _annotated(input_schema, ()):
        name = schema[ANNOTATION]
        if not path:
            return "not reachable by `properties` alone"
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            return "its value is no header name"
        if schema.get("type") not in _PRIMITIVE:
            return "on a property that is no string, integer or boolean"
        if name.lower() in seen:
            return "the same header name twice"
        seen.add(name.lower())
    return None


def annotates(input_schema: Json) -> bool:
    """Whether any parameter is to be mirrored, so that arguments need not be parsed for nothing."""
    return next(_annotated(input_schema, ()), None) is not None


def param_headers(input_schema: Json, arguments: Json) -> Iterator[tuple[str, str]]:
    """The `Mcp-Param-…` headers of one call. A parameter that is absent, null or no plain value has none."""
    for path, schema in _annotated(input_schema, ()):
        value: Json = arguments
        for key in path or ("",):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, str | int):
            yield f"Mcp-Param-{schema[ANNOTATION]}", encode(str(value))


def _annotated(
    schema: Json, path: tuple[str, ...] | None
) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Json]]]:
    """Every annotated schema with its chain of property names; (): the root, None: off that chain."""
    if isinstance(schema, list):
        for item in schema:
            yield from _annotated(item, None)
    if not isinstance(schema, dict):
        return
    if ANNOTATION in schema:
        yield path, schema
    for keyword, below in schema.items():
        if keyword == "properties" and isinstance(below, dict):
            for name, property_schema in below.items():
                yield from _annotated(property_schema, None if path is None else (*path, name))
        elif keyword not in _DATA and keyword != ANNOTATION:
            yield from _annotated(below, None)
