"""What a submit message may hold, and what is made of everything else."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.ledger.digest import MAX_ARGUMENTS_BYTES
from counterfoil.workers.messages import MAX_BODY_BYTES, Message, MessageRefused
from counterfoil.workers.producers import Producer, Producers

from .kit_messages import KEY_ID, PRODUCERS, SECRET, body_of, message, signature_of, signed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def keys(tmp_path: Path) -> Producers:
    path = tmp_path / "producers.yaml"
    path.write_text(PRODUCERS)
    return Producers(path, {"BILLING_KEY": SECRET})


def refusal(given: Message, keys: Producers, *, allow_unsigned: bool = False) -> str:
    with pytest.raises(MessageRefused) as raised:
        given.authenticate(keys, allow_unsigned=allow_unsigned)
    return raised.value.code


def malformed(body: str) -> str:
    with pytest.raises(MessageRefused) as raised:
        message(body).request()
    assert raised.value.code == "E_MESSAGE_MALFORMED"
    return raised.value.message


def test_a_signed_message_comes_on_behalf_of_its_key(keys: Producers) -> None:
    body, key_id, signature = signed()
    expected = Producer("billing", "svc-billing", SECRET.encode())
    assert message(body, key_id, signature).authenticate(keys, allow_unsigned=False) == expected
    by_name = message(body=body, key_id=key_id, signature=signature.upper())
    assert by_name.authenticate(keys, allow_unsigned=False) == expected
    assert by_name.request().arguments == {"month": "10"}


@pytest.mark.parametrize("given", [[], [None], [KEY_ID], [None, "0" * 64], [KEY_ID, None]])
def test_half_a_signature_is_none(keys: Producers, given: list[str | None]) -> None:
    assert refusal(message(body_of(), *given), keys) == "E_MESSAGE_UNSIGNED"


def test_an_unsigned_one_is_taken_where_the_settings_allow_it_and_a_bad_signature_nowhere(keys: Producers) -> None:
    unsigned = message(body_of(), None, None)
    assert unsigned.authenticate(keys, allow_unsigned=True) == Producer("default", "default")
    assert refusal(message(body_of(), KEY_ID), keys, allow_unsigned=True) == "E_MESSAGE_UNSIGNED"
    assert refusal(message(body_of(), KEY_ID, "0" * 64), keys, allow_unsigned=True) == "E_MESSAGE_FORGED"


@pytest.mark.parametrize(
    "signature",
    ["", "0" * 64, "x" * 64, "é" * 64, f"{signature_of(body_of(tool='other'))}"],
    ids=["empty", "zeros", "not hex", "not ascii", "of another body"],
)
def test_a_signature_that_is_not_the_keys_own_over_these_bytes_is_forged(keys: Producers, signature: str) -> None:
    assert refusal(message(body_of(), KEY_ID, signature), keys) == "E_MESSAGE_FORGED"


def test_a_changed_byte_another_key_id_or_another_secret_is_forged(keys: Producers) -> None:
    body, key_id, signature = signed()
    for forged in (
        message(body.replace("run/1", "run/2"), key_id, signature),
        message(body + " ", key_id, signature),
        message(body, "billing-2", signature_of(body, "billing-2")),
        message(body, key_id, signature_of(body, secret=SECRET + "!")),
        message(body, "", signature),
        message(body, "\x00\ud800", signature),
    ):
        assert refusal(forged, keys) == "E_MESSAGE_FORGED"


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ([], {}),
        ([5], {}),
        ([{"v": 1}], {}),
        (["{}", 5, "x"], {}),
        (["{}", "k", []], {}),
        (["{}", "k", "s", "more"], {}),
        (["{}"], {"body": "{}"}),
        (["{}"], {"namespace": "admin"}),
        (["{}\x00"], {}),
        (["\ud800"], {}),
        (["x"], {"fault": "bad \x1b[31m", "more": 1}),
        (["x"], {"fault": "bad \x1b[31m\n"}),
        ([float("nan"), {"a": datetime(2026, 1, 1, tzinfo=UTC)}], {}),
    ],
)
def test_arguments_that_are_no_message_are_kept_as_what_they_were(
    keys: Producers, args: list[object], kwargs: dict[str, object]
) -> None:
    made = Message.of(args, kwargs)
    assert refusal(made, keys, allow_unsigned=True) == "E_MESSAGE_MALFORMED"
    assert made.body
    assert made.fault.isprintable()


@given(
    st.lists(JSON, max_size=5), st.dictionaries(st.sampled_from(["body", "key_id", "signature", "fault", "x"]), JSON)
)
def test_whatever_a_message_carries_is_told_in_one_way(args: list[object], kwargs: dict[str, object]) -> None:
    made = Message.of(args, kwargs)
    with pytest.raises(MessageRefused):
        made.authenticate(Producers(None), allow_unsigned=False)
    with pytest.raises(MessageRefused):
        made.request()
    assert made.shown_key is None or "\x00" not in made.shown_key


def test_a_body_over_the_cap_is_refused_before_anything_is_computed_over_it(keys: Producers) -> None:
    assert MAX_BODY_BYTES == MAX_ARGUMENTS_BYTES + 64 * 1024
    large = message("x" * (MAX_BODY_BYTES + 1), KEY_ID, "0" * 64)
    assert refusal(large, keys) == "E_MESSAGE_MALFORMED"
    assert refusal(message("x" * MAX_BODY_BYTES, KEY_ID, "0" * 64), keys) == "E_MESSAGE_FORGED"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"v": 2}, "'v' must be 1."),
        ({"v": True}, "'v' must be 1."),
        ({"v": 1.0}, "'v' must be 1."),
        ({"v": None}, "'v' is missing."),
        ({"namespace": "admin"}, "'namespace' comes from the key and can't be named by a message."),
        ({"principal": "root"}, "'principal' comes from the key and can't be named by a message."),
        ({"fleet": "other"}, "'fleet' comes from the key and can't be named by a message."),
        ({"priority": 9}, "'priority' is not a field of a message."),
        ({"\x1b[31m\n": 9}, r"'\x1b[31m\n' is not a field of a message."),
        ({"call_node_id": 5}, "'call_node_id' must be a valid string."),
        ({"arguments": []}, "'arguments' must be a valid dictionary."),
    ],
)
def test_a_field_that_is_wrong_is_named_and_no_value_is_repeated(changes: dict[str, object], what: str) -> None:
    assert malformed(body_of(**changes)) == what


@pytest.mark.parametrize(
    "body", ["", "5", "[]", "null", "{", '{"v":1,"v":1}', '{"v":NaN}', "[" * 100 + "]" * 100, "{} {}"]
)
def test_a_body_that_is_not_one_strict_json_object_is_malformed(body: str) -> None:
    assert malformed(body)


@pytest.mark.parametrize(
    "sent_at",
    [
        "",
        "now",
        "2026-11-29",
        "2026-11-29T22:30:00",
        "2026-11-29 22:30:00Z",
        "2026-13-29T22:30:00Z",
        "\N{ARABIC-INDIC DIGIT TWO}026-11-29T22:30:00Z",
        1764455400,
    ],
)
def test_a_moment_without_an_offset_is_none(sent_at: object) -> None:
    assert "sent_at" in malformed(body_of(sent_at=sent_at))


def test_moments_are_compared_whatever_their_offset() -> None:
    now = datetime(2026, 11, 29, 12, tzinfo=UTC)
    for text in ("2026-11-29T12:00:00Z", "2026-11-29T14:00:00.123456789+02:00", "2026-11-29T00:00:00-12:00"):
        message(body_of(sent_at=text)).request().check_age(now)


@pytest.mark.parametrize(
    ("ago", "taken"),
    [
        (timedelta(days=7), True),
        (timedelta(days=7, seconds=1), False),
        (timedelta(minutes=-5), True),
        (timedelta(minutes=-5, seconds=-1), False),
    ],
)
def test_a_message_is_good_for_seven_days_and_a_clock_may_run_five_minutes_ahead(ago: timedelta, taken: bool) -> None:
    now = datetime(2026, 11, 29, 12, tzinfo=UTC)
    request = message(body_of(sent_at=(now - ago).isoformat())).request()
    if taken:
        request.check_age(now)
        return
    with pytest.raises(MessageRefused) as raised:
        request.check_age(now)
    assert raised.value.code == "E_MESSAGE_STALE"
    assert "2026-11-29T12:00:00Z" in raised.value.message


def test_the_farthest_moments_can_be_compared() -> None:
    for text in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        request = message(body_of(sent_at=text)).request()
        with pytest.raises(MessageRefused, match="E_MESSAGE_STALE"):
            request.check_age(datetime(2026, 11, 29, tzinfo=UTC))


def test_a_key_id_is_shown_cut_and_storable() -> None:
    assert message("{}", "k" * 1000 + "\x00").shown_key == "k" * 64
    assert message("{}", "a\x00b").shown_key == "a\N{REPLACEMENT CHARACTER}b"
    assert json.dumps(message("{}", "\ud800").shown_key)
