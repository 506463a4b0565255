import pytest

from counterfoil.adapters.answers import MAX_RETRY_AFTER_S, retry_after_s, trouble, wants_credential
from counterfoil.adapters.contract import (
    Answered,
    NoAnswer,
    Reply,
    Sent,
)
from counterfoil.adapters.outcomes import Busy, NoAccess

DATE = "Sun, 29 Nov 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "1000000000"}, MAX_RETRY_AFTER_S),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "Sun, 29 Nov 2026 10:00:30 GMT", "date": DATE}, 30.0),
        ({"retry-after": "Sun, 29 Nov 2026 09:00:00 GMT", "date": DATE}, 0.0),
        ({"retry-after": "Sun, 29 Nov 2036 09:00:00 GMT", "date": DATE}, MAX_RETRY_AFTER_S),
        ({"retry-after": "Sun, 29 Nov 2026 10:00:30 GMT"}, None),
        ({"retry-after": "Sun, 29 Nov 2026 10:00:30 -0000", "date": DATE}, None),
        ({"retry-after": "Sun, 99 Nov 99999 10:00:30 GMT", "date": DATE}, None),
    ],
)
def test_retry_after_is_read_and_clamped(headers: dict[str, str], wait_s: float | None) -> None:
    assert retry_after_s(headers) == wait_s


def test_a_bare_403_is_no_challenge() -> None:
    assert wants_credential(Answered(401))
    assert wants_credential(Answered(403, {"www-authenticate": "Bearer"}))
    assert not wants_credential(Answered(403))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (NoAnswer(Sent.NO, "refused"), Busy("E_NO_CONNECTION")),
        (NoAnswer(Sent.MAYBE, "reset"), Busy("E_NO_ANSWER")),
        (Answered(401), NoAccess("HTTP 401: the server wants another credential")),
        (Answered(429, {"retry-after": "7"}), Busy("HTTP 429", 7.0, closes_target=True)),
        (Answered(503, {"retry-after": "7"}), Busy("HTTP 503", 7.0, closes_target=True)),
        (Answered(429), Busy("HTTP 429")),
        (Answered(500, {"retry-after": "7"}), Busy("HTTP 500", 7.0)),
        (Answered(408), Busy("HTTP 408")),
        (Answered(404), None),
        (Answered(200), None),
    ],
)
def test_trouble_of_a_read_is_told_apart(reply: Reply, expected: Busy | NoAccess | None) -> None:
    assert trouble(reply) == expected
