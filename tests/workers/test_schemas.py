"""JSON Schema checks with schemas that a hostile server may have written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.workers import schemas
from counterfoil.workers.schemas import Problem, SchemaError, check, require_schema

JSON_VALUE = {
    "$defs": {
        "value": {
            "anyOf": [
                {"type": ["string", "number", "boolean"]},
                {"type": "array", "items": {"$ref": "#/$defs/value"}},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/value"}},
            ]
        }
    },
    "$ref": "#/$defs/value",
}


def text(schema: Any) -> bytes:
    return json.dumps(schema).encode()


def doubling(steps: int, **more: Any) -> dict[str, Any]:
    """Each definition refers twice to the next: 2^steps visits for one value."""
    definitions: dict[str, Any] = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(steps)}
    return {"$defs": {**definitions, f"a{steps}": {"type": "string"}}, "$ref": "#/$defs/a0", **more}


def test_a_value_that_fits_has_no_problems() -> None:
    schema = text({"type": "object", "properties": {"month": {"type": "string"}}, "required": ["month"]})
    assert check(schema, {"month": "2026-10"}) == []
    assert check(b"true", {"anything": [1, None]}) == []


def test_each_problem_has_the_place_and_a_short_value() -> None:
    schema = text({"properties": {"a/b": {"enum": ["x", "y"]}, "n": {"maximum": 5}}, "required": ["m"]})
    assert set(check(schema, {"a/b": "z", "n": 6})) == {
        Problem("/a~1b", 'the value is not one of "x" or "y" (it is "z").'),
        Problem("/n", "the value is greater than the maximum of 5 (it is 6)."),
        Problem("", '"m" is a required property.'),
    }


def test_a_long_value_is_not_shown() -> None:
    (problem,) = check(text({"type": "integer"}), "secret " * 20)
    assert problem == Problem("", 'the value is not of type "integer".')


def test_there_are_at_most_20_problems_and_messages_are_short() -> None:
    many = check(text({"items": {"type": "string"}}), list(range(200)))
    assert len(many) == schemas.MAX_PROBLEMS
    (one,) = check(text({"const": "x" * 5000}), 1)
    assert len(one.message) < 400


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (b"", "is not JSON"),
        (b'{"a": \xff}', "is not JSON"),
        (b"[]", "not a list"),
        (b'"x"', "not a str"),
        (text({"type": 12}), "at /type"),
        (text({"pattern": "("}), "at /pattern"),
        (text({"pattern": "((a{1000}){1000}){1000}"}), "at /pattern"),
        (text({"$ref": "http://127.0.0.1:1/schema.json"}), "leaves the schema"),
        (text({"$ref": "file:///etc/passwd"}), "leaves the schema"),
        (text({"$ref": "other.json#/a"}), "leaves the schema"),
        (text({"$ref": "#name"}), "leaves the schema"),
        (text({"$ref": "#/$defs/nowhere"}), "leads nowhere"),
        (text({"$ref": 5}), "leaves the schema"),
        (text({"$schema": "http://127.0.0.1:1/meta"}), "meta-schema"),
        (text({"$schema": "http://json-schema.org/draft-04/schema#"}), "draft 4"),
        (text({"allOf": [{"$id": "http://a/", "$ref": "#/b"}]}), "$id of its own"),
        (text({"$dynamicRef": "#a"}), "are not followed"),
        (b'{"not":' * 100 + b"{}" + b"}" * 100, "deep"),
        (b'{"not":' * 20000 + b"{}" + b"}" * 20000, "not JSON|deep"),
        (text({"description": "x" * schemas.MAX_SCHEMA_BYTES}), "bytes; the cap"),
        (text({"allOf": [{"$ref": "#"}]}), "refers to itself"),
        (text({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}), "to itself"),
        (text(doubling(40)), "can cause more than"),
        (text(doubling(12, unevaluatedProperties=False)), "can cause more than"),
        (text(doubling(800)), "too long a chain"),
        (text({"allOf": [{"properties": {"a": {"$ref": "#"}}}] * 2}), "can cause more than"),
    ],
)  # fmt: skip
def test_a_schema_that_can_not_be_used_is_refused_before_it_costs_anything(schema: bytes, words: str) -> None:
    with pytest.raises(SchemaError, match=words.replace("$", r"\$")) as raised:
        require_schema(schema)
    assert raised.value.code == "E_SCHEMA_INVALID"
    with pytest.raises(SchemaError):
        check(schema, 1)


@pytest.mark.parametrize(
    "schema",
    [
        JSON_VALUE,
        {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}, "$ref": "#/definitions/a"},
        {"$id": "https://tools.example/report", "$defs": {"a b": {}}, "$ref": "#/$defs/a%20b"},
        {"anyOf": [{"properties": {f"p{n}": {"type": "string"} for n in range(30)}} for _ in range(100)]},
        doubling(8, unevaluatedProperties=False),
    ],
)  # fmt: skip
def test_schemas_as_people_write_them_are_taken(schema: dict[str, Any]) -> None:
    require_schema(text(schema))


def test_a_recursive_schema_is_checked_to_the_bottom() -> None:
    (problem,) = check(text(JSON_VALUE), {"a": [1, {"b": [None]}]})
    assert problem.path == ""
    assert check(text(JSON_VALUE), {"a": [1, {"b": ["x"]}]}) == []
    (deep,) = check(text({"type": "object", "additionalProperties": {"$ref": "#"}}), {"l": {"r": 5}})
    assert deep.path == "/l/r"


def test_a_value_nested_too_deep_is_a_problem_and_not_the_end_of_the_process() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    assert check(text({"items": {"$ref": "#"}}), value) == [Problem("", "is nested more than 64 deep.")]


@pytest.mark.parametrize("value", ["\ud800", {1: 2}, object(), {"a": {1, 2}}])
def test_what_is_not_json_is_a_problem(value: object) -> None:
    assert check(text({"type": "integer"}), value) == [Problem("", "is not a JSON value.")]


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"^(?=(a+)+$)b", r"(?:(a+)+\1)+$", r"^(?:a|a|aa)+(?<!b)$"])
def test_a_hostile_pattern_ends_at_once(pattern: str) -> None:
    assert check(text({"pattern": pattern}), "a" * 5000 + "!")


def test_a_backtracking_pattern_is_not_let_loose_on_a_large_value() -> None:
    schema = text({"items": {"pattern": r"(?:(a+)+\1)+$"}})
    with pytest.raises(SchemaError, match="steps; the cap is"):
        check(schema, ["aaaa!"] * 50_000)


def test_a_large_value_is_checked_and_its_first_problem_told() -> None:
    schema = text({"type": "array", "items": {"type": "string"}})
    assert check(schema, ["a"] * 100_000) == []
    assert check(schema, ["a"] * 100_000 + [5, 6]) == [
        Problem("/100000", 'the value is not of type "string" (it is 5).')
    ]


def test_a_large_value_against_alternatives_is_refused_without_a_list_of_reasons() -> None:
    assert check(text(JSON_VALUE), ["a"] * 30_000) == []
    assert check(text(JSON_VALUE), ["a"] * 30_000 + [None]) == [
        Problem("", "breaks the schema; it is too large for a list of reasons.")
    ]


keywords = st.sampled_from(
    ["type", "items", "properties", "allOf", "anyOf", "not", "$ref", "pattern", "required", "enum", "$defs", "$id",
     "patternProperties", "prefixItems", "dependentSchemas", "unevaluatedProperties", "if", "then", "a"]
)  # fmt: skip
leaves = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["string", "#", "#/$defs/a", "a", "(?=a)"])
documents = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keywords, inner, max_size=4),
    max_leaves=15,
)


@given(schema=documents, value=documents)
def test_any_json_is_a_schema_or_refused_as_one(schema: object, value: object) -> None:
    try:
        problems = check(text(schema), value)
    except SchemaError:
        return
    assert all(isinstance(problem, Problem) for problem in problems)
