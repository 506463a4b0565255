"""Digests and derived ids: the same input, the same bytes, for ever."""

import json
import uuid
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.ledger import digest
from counterfoil.ledger.errors import InputRefused

LEDGER = uuid.UUID("018f0000-0000-7000-8000-000000000001")

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)

ANYTHING = st.recursive(
    st.none() | st.floats() | st.integers() | st.text(st.characters()) | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=6,
)


def test_the_request_digest_is_sha256_of_the_canonical_request() -> None:
    arguments = digest.arguments_text({"month": "2026-10"})
    spelled = b'{"arguments":{"month":"2026-10"},"principal":"default","target":"reports","tool":"generate","v":1}'
    assert digest.request_digest("reports", "generate", arguments, "default") == digest.sha256(spelled)


@settings(max_examples=100)
@given(st.dictionaries(st.text(), JSON, max_size=3), st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_splicing_the_canonical_arguments_is_the_same_as_canonicalising_the_whole(
    arguments: dict[str, object], target: str, tool: str, principal: str
) -> None:
    whole = {"v": 1, "target": target, "tool": tool, "arguments": arguments, "principal": principal}
    expected = digest.sha256(digest.canonical_json(whole))
    assert digest.request_digest(target, tool, digest.arguments_text(arguments), principal) == expected


@settings(max_examples=100)
@given(JSON)
def test_canonical_text_says_what_the_value_said(value: object) -> None:
    text = digest.canonical_json(value)
    # Every JSON number is a double; one of 2^53 and more is spelled without a point, which Python would read as an
    # integer.
    assert digest.canonical_json(json.loads(text, parse_int=float)) == text


@settings(max_examples=200)
@given(ANYTHING)
def test_what_is_not_json_is_refused_and_never_raises_anything_else(value: object) -> None:
    with suppress(InputRefused):
        digest.canonical_json(value)


def test_arguments_nested_without_end_are_refused() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InputRefused, match="E_ARGUMENTS_INVALID"):
        digest.arguments_text({"a": deep})


def test_ids_are_derived_so_that_a_repeat_after_a_lost_failover_bears_the_same() -> None:
    assert digest.receipt_id("ns", "run/1") == uuid.UUID("52b985e5-a854-5173-ae4e-c5f0e92a107d")
    assert digest.ready_id("ns", "run/1") == uuid.UUID("3586046e-d47d-540a-85fe-2fb7fb90901f")
    assert digest.receipt_id("a", "b/c") != digest.receipt_id("a/b", "c")  # no slash moves from one name to the other


def test_the_submission_key_is_a_version_8_uuid_of_all_that_makes_the_request() -> None:
    key = digest.submission_key(LEDGER, "ns", "run/1", b"d" * 32)
    assert (key.version, key.variant) == (8, uuid.RFC_4122)
    others = {
        digest.submission_key(uuid.UUID(int=1), "ns", "run/1", b"d" * 32),
        digest.submission_key(LEDGER, "n", "srun/1", b"d" * 32),
        digest.submission_key(LEDGER, "ns", "run/2", b"d" * 32),
        digest.submission_key(LEDGER, "ns", "run/1", b"e" * 32),
    }
    assert len(others | {key}) == 5
    assert key == uuid.UUID("97e97f3f-1a8f-8fa5-981f-50d0b0cf7631")
