import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.adapters.sse import BadStream, SseParser

from .hostile import hard


def events(*chunks: bytes, max_event_bytes: int = 1000) -> list[bytes]:
    parser = SseParser(max_event_bytes)
    found: list[bytes] = []
    for chunk in chunks:
        found += parser.feed(chunk)
    return found + parser.close()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_all_three_line_ends_end_a_line(end: bytes) -> None:
    assert events(end.join([b"data: a", b"", b"data: b", b"", b""])) == [b"a", b"b"]


def test_data_lines_join_and_only_one_leading_blank_goes() -> None:
    assert events(b"data:a\ndata:  b\ndata\n\n") == [b"a\n b\n"]


def test_comments_ids_retries_and_unknown_fields_are_skipped() -> None:
    assert events(b": keep-alive\nid: 7\nretry: 10\nnope: x\ndata: a\n\n: again\n\n") == [b"a"]


def test_a_byte_order_mark_is_skipped_at_the_start_only() -> None:
    assert events(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n") == [b"a"]


def test_events_of_another_type_are_not_messages() -> None:
    assert events(b"event: ping\ndata: a\n\nevent: message\ndata: b\n\ndata: c\n\n") == [b"b", b"c"]


def test_an_event_without_its_blank_line_is_handed_out_at_the_end() -> None:
    assert events(b"data: a\n\ndata: {}") == [b"a", b"{}"]


def test_an_event_over_the_cap_ends_the_stream() -> None:
    with pytest.raises(BadStream, match="1000 bytes"):
        events(b"data: " + b"x" * 1000 + b"\n\n")
    with pytest.raises(BadStream):
        events(*[b"x" * 100] * 11)
    with pytest.raises(BadStream):
        events(*[b"data: " + b"x" * 90 + b"\n"] * 12)


@given(
    st.lists(st.sampled_from([b"data", b":", b" ", b"\r", b"\n", b"\r\n", b"event", b"x", b"\xef\xbb\xbf"])), st.data()
)
@hard
def test_where_the_chunks_are_cut_changes_nothing(pieces: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert events(*chunks) == events(stream)


@given(st.lists(st.binary(max_size=50), max_size=8))
@hard
def test_hostile_bytes_never_raise_below_the_cap(chunks: list[bytes]) -> None:
    events(*chunks)
