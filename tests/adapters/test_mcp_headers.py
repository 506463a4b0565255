import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.inbound import decode_header_value, encode_header_value

from counterfoil.adapters import mcp_headers
from counterfoil.adapters.strict_json import Json


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("", ""),
    ],
)
def test_the_examples_of_the_specification_hold(value: str, header: str) -> None:
    assert mcp_headers.encode(value) == header


@given(st.text())
@settings(max_examples=200)
def test_the_official_sdk_reads_back_what_we_write(value: str) -> None:
    assert decode_header_value(mcp_headers.encode(value)) == value
    assert mcp_headers.encode(value) == encode_header_value(value)


SCHEMA: Json = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "x-mcp-header": {"type": "string", "default": {"x-mcp-header": "data, not a schema"}},
    },
}


def test_annotated_parameters_are_mirrored_where_they_have_a_value() -> None:
    assert mcp_headers.invalid_annotation(SCHEMA) is None
    arguments: Json = {"region": "é", "deep": {"n": 7}, "dry": False}
    assert list(mcp_headers.param_headers(SCHEMA, arguments)) == [
        ("Mcp-Param-Region", "=?base64?w6k=?="),
        ("Mcp-Param-N", "7"),
        ("Mcp-Param-Dry", "false"),
    ]
    assert list(mcp_headers.param_headers(SCHEMA, {"region": None, "deep": 1})) == []
    assert not mcp_headers.annotates({"properties": {"a": {"enum": ["x-mcp-header"]}}})


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"x-mcp-header": "A", "type": "object"}, "not reachable"),
        ({"items": {"x-mcp-header": "A", "type": "string"}}, "not reachable"),
        ({"anyOf": [{"properties": {"a": {"x-mcp-header": "A", "type": "string"}}}]}, "not reachable"),
        ({"properties": {"a": {"x-mcp-header": "A\r\nB", "type": "string"}}}, "no header name"),
        ({"properties": {"a": {"x-mcp-header": "", "type": "string"}}}, "no header name"),
        ({"properties": {"a": {"x-mcp-header": 5, "type": "string"}}}, "no header name"),
        ({"properties": {"a": {"x-mcp-header": "A", "type": "number"}}}, "no string, integer or boolean"),
        ({"properties": {"a": {"x-mcp-header": "A", "type": ["string"]}}}, "no string, integer or boolean"),
        (
            {"properties": {k: {"x-mcp-header": k, "type": "string"} for k in ("A", "a")}},
            "same header name twice",
        ),
    ],
)
def test_an_invalid_annotation_is_named(schema: Json, why: str) -> None:
    assert why in (mcp_headers.invalid_annotation(schema) or "")
