"""What a server posts to us wakes what it names, and proves nothing."""

import json

import pytest

from counterfoil.adapters import callbacks
from counterfoil.adapters.outcomes import Hint


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"id": "j-1", "status": "succeeded"}, (Hint("j-1", "succeeded"),)),
        ({"id": 7}, (Hint("7", None),)),
        ({"name": "operations/op-1", "done": True}, (Hint("operations/op-1", None),)),
        ({"task": {"id": "t-1", "state": "completed"}}, (Hint("t-1", "completed"),)),
        ({"statusUpdate": {"taskId": "t-1"}, "id": "e-9"}, (Hint("e-9", None), Hint("t-1", None))),
        ({"jobID": "j-1", "status": 5}, (Hint("j-1", None),)),
        ({"id": None, "status": "succeeded"}, ()),
        ({"id": ".."}, ()),
        (["j-1"], ()),
    ],
)
def test_every_id_that_is_named_is_a_hint(said: object, expected: tuple[Hint, ...]) -> None:
    assert callbacks.read(json.dumps(said).encode()) == expected


def test_a_large_callback_is_not_read_and_a_wide_one_not_to_its_end() -> None:
    assert callbacks.read(b'{"id":"j-1","x":"' + b"x" * callbacks.MAX_CALLBACK_BYTES + b'"}') == ()
    wide = {f"m{number}": {"id": f"j-{number}"} for number in range(100)}
    assert len(callbacks.read(json.dumps(wide).encode())) == callbacks.MAX_HINTS
