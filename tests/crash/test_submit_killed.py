"""A worker is killed (SIGKILL) at each point of a submit, 20 operations a point and kind of server; another goes on.

The judge is the server's own log. A person may be asked where nobody can know: the intent is committed, and whether a
byte left stands in no ledger. Where the server answers lookups and makes the key unique, nobody is asked at all.
"""

from counterfoil.ledger.states import Lane
from counterfoil.tests.crash.field import KILLS, KINDS, Field, judged

NOBODY = {"looks": 0, "nothing": 0, "unique": 0}
PEOPLE = {"looks": KILLS, "nothing": KILLS, "unique": 0}
"""Sent or not, nobody can know, and the lookup finds nothing: only a unique key makes a second send harmless."""
RAN = {"looks": 0, "nothing": KILLS, "unique": 0}
"""It ran: the lookup finds it."""

# Point -> cases by kind of server.
POINTS: dict[str, dict[str, int]] = {
    "unclaimed": NOBODY,
    "claimed": NOBODY,
    "negotiating": NOBODY,
    "connected": NOBODY,
    "refused": NOBODY,
    "intent-asked": NOBODY,
    "intent-uncommitted": NOBODY,
    "intent-committed": PEOPLE,
    "unwithdrawn": PEOPLE,
    "first-byte": PEOPLE,
    "part": PEOPLE,
    "written": PEOPLE,
    "ran": RAN,
    "cut": RAN,
    "answered": RAN,
    "kept": NOBODY,
    "apply-uncommitted": NOBODY,
    "applied": NOBODY,
    # A rejection is definite for a first attempt only, and its answer is lost.
    "rejected": {"looks": KILLS, "nothing": KILLS, "unique": KILLS},
}
ARGUMENTS: dict[str, dict[str, object]] = {
    "part": {"pad": "x" * 40_000},
    "written": {"lands": "late"},
    "ran": {"answer": "hold"},
    "cut": {"answer": "cut"},
    "rejected": {"reject": True},
}
UNKNOWABLE = ("intent-committed", "unwithdrawn", "first-byte")
"""No byte left, and the ledger can't tell: these cases are needless, and SPEC section 1 wants them."""


def test_a_worker_killed_at_any_point_of_a_submit_leaves_no_second_operation_and_asks_only_what_nobody_knows(
    field: Field,
) -> None:
    targets = {point: field.hand_in(point, KINDS, **ARGUMENTS.get(point, {})) for point in POINTS}
    applied = {"applied": targets.pop("applied")}
    rejected = {"rejected:answered": targets.pop("rejected")}
    field.kill_at(targets | rejected, seen={"written": "arrived", "ran": "created"}, lanes=(Lane.SUBMIT,))
    field.kill_at(applied, lanes=(Lane.SUBMIT, Lane.POLL))
    for _ in range(2):
        field.start()
    field.until("each has a receipt or an open case", lambda: not field.unsettled())
    found = judged(field)
    assert {point: {kind: cases for kind, (cases, _) in kinds.items()} for point, kinds in found.items()} == POINTS
    for point, kinds in found.items():
        bound = PEOPLE if point in UNKNOWABLE else NOBODY
        assert {kind: needless for kind, (_, needless) in kinds.items()} == bound, point
    assert {fact.outcome for fact in field.facts()} == {"succeeded", None}
    assert not field.looked_up("kept"), "evidence that is stored was not read first"
