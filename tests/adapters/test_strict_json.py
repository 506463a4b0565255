import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters import strict_json
from counterfoil.adapters.strict_json import BadJson

from .hostile import hard

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"a":1} x', "not JSON"),
        (b'{"a":1,"a":2}', "same key twice"),
        (b'{"x":{"a":1,"\\u0061":2}}', "same key twice"),
        (b"NaN", "NaN"),
        (b"[Infinity]", "Infinity"),
        (b"[-Infinity]", "-Infinity"),
        (b"1e999", "out of range"),
        (b"9" * 401, "more than 400 characters"),
        (b"0." + b"9" * 401, "out of range"),
        (b"[" * 65 + b"]" * 65, "deeper than 64"),
        (b"[" * 5_000_000, "values"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "deeper than 64"),
        (b"[" + b"0," * 500_000 + b"0]", "more than 500000 values"),
        (b"\xff", "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'"\n"', "not JSON"),
    ],
)
def test_what_is_not_strict_json_is_refused_by_name(data: bytes, why: str) -> None:
    with pytest.raises(BadJson, match=why):
        strict_json.loads(data)


def test_brackets_and_commas_inside_texts_do_not_count() -> None:
    value = ["[{" * 1000, '\\"[' * 1000, "," * 600_000]
    assert strict_json.loads(json.dumps(value).encode()) == value


def test_an_unterminated_text_full_of_escaped_quotes_takes_one_pass() -> None:
    started_s = time.perf_counter()
    with pytest.raises(BadJson):
        strict_json.loads(b"[" * 65 + b'"' + b'\\"' * 2_000_000)
    assert time.perf_counter() - started_s < 5, "a quadratic scan of 4 MB takes hours"


@given(JSON_VALUES)
@hard
def test_every_json_value_survives_the_round_trip(value: strict_json.Json) -> None:
    assert strict_json.loads(json.dumps(value).encode()) == value


@given(st.binary(max_size=200) | st.text(alphabet='[]{}",:\\u0aeE+-.19 ntf', max_size=60).map(str.encode))
@hard
def test_hostile_bytes_give_a_value_or_bad_json(data: bytes) -> None:
    with contextlib.suppress(BadJson):
        strict_json.loads(data)


@given(JSON_VALUES)
@hard
def test_the_error_never_repeats_the_content(value: strict_json.Json) -> None:
    secret = "s3cr3t-t0ken"
    with pytest.raises(BadJson) as caught:
        strict_json.loads(json.dumps([value, secret]).encode() + b"]")
    assert secret not in str(caught.value)


def test_texts_leave_storable_and_cut() -> None:
    assert strict_json.storable("a\x00b\ud800c", 10) == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"
    assert strict_json.storable("abcdef", 3) == "abc"
    assert strict_json.storable(7, 3) is None
    assert not strict_json.is_storable("\x00")
    assert strict_json.is_storable("\N{GRINNING FACE}")


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"a": [1, "x\x00"]}, "/a/1"),
        ({"a/b~": "\ud800"}, "/a~1b~0"),
        ({"k\x00": 1}, "/k\N{REPLACEMENT CHARACTER}"),
        ({"a": ["fine", None, 1.5, True]}, None),
    ],
)
def test_what_cannot_be_stored_is_found_with_its_pointer(value: strict_json.Json, pointer: str | None) -> None:
    assert strict_json.find_unstorable(value) == pointer


def test_pointers_resolve_as_rfc_6901_says() -> None:
    document = strict_json.loads(b'{"foo":["bar","baz"],"":0,"a/b":1,"m~n":8," ":7}')
    assert strict_json.resolve(document, "") == document
    assert strict_json.resolve(document, "/foo/1") == "baz"
    assert strict_json.resolve(document, "/") == 0
    assert strict_json.resolve(document, "/a~1b") == 1
    assert strict_json.resolve(document, "/m~0n") == 8


@pytest.mark.parametrize("pointer", ["x", "/foo/2", "/foo/01", "/foo/-", "/nope", "//x", "/foo/9999999999"])
def test_a_pointer_to_nothing_is_bad_json(pointer: str) -> None:
    with pytest.raises(BadJson):
        strict_json.resolve(strict_json.loads(b'{"foo":["bar","baz"],"":0}'), pointer)


@given(JSON_VALUES)
@hard
def test_one_value_has_one_text(value: strict_json.Json) -> None:
    if strict_json.find_unstorable(value) is None:
        assert strict_json.loads(strict_json.dumps(value)) == value
        assert strict_json.dumps(strict_json.loads(strict_json.dumps(value))) == strict_json.dumps(value)
