"""Fields of an answer: what a server says is made storable and cut, or it is not used."""

import pytest

from counterfoil.adapters import fields
from counterfoil.adapters.strict_json import Json, is_storable


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (0, 0),
        (1500, 1500),
        (1.9, 1),
        (1e30, fields.MAX_SAFE_INTEGER),
        (2**70, fields.MAX_SAFE_INTEGER),
        (-1, None),
        (True, None),
        ("5", None),
        (float("inf"), None),
        (float("nan"), None),
        (None, None),
    ],
)
def test_a_duration_is_a_whole_number_in_range_or_no_word_at_all(said: Json, read: int | None) -> None:
    assert fields.whole_ms(said) == read


@pytest.mark.parametrize("cut", [fields.word, fields.text])
def test_a_text_is_cut_and_storable_and_anything_else_is_none(cut: object) -> None:
    assert callable(cut)
    said = cut("a\x00\ud800" + "x" * 5000)
    assert is_storable(said)
    assert len(said) <= fields.MAX_TEXT_CHARS
    assert [cut(value) for value in (7, None, ["x"], {"x": 1})] == [None] * 4


def test_a_chain_of_members_breaks_off_without_an_error() -> None:
    value: Json = {"a": {"b": [1]}}
    assert fields.member(value, "a", "b") == [1]
    assert fields.member(value, "a", "b", "c") is None
    assert fields.member(value, "x", "b") is None
    assert fields.member("text", "a") is None


def test_a_status_that_the_version_does_not_have_is_named_without_being_trusted() -> None:
    assert fields.status_unknown("zzz").code == "E_STATUS_UNKNOWN"
    assert fields.status_unknown({"a": 1}).why == "no status"
