"""A canary is raised while one call node is handed in twice: the first hand-in has been told "not selected" and is not
committed yet, the second one waits for it.

If the first commits, its answer is the recorded one, and the second hears the same although the canary is at 100 % by
now: the first caller may have acted on it. If it rolls back nothing was ever said, and the second is the first sight.
"""

import pytest

from counterfoil.ledger import rollout
from counterfoil.ledger.client import Call
from counterfoil.ledger.errors import NotSelected
from counterfoil.tests.ledger.world import World
from counterfoil.tests.races.waiting import Thread, until_blocked

CALL = Call("reports", "generate", {"month": "2026-10"}, "run/1")


@pytest.mark.parametrize("shadow", [False, True], ids=["canary", "shadow"])
@pytest.mark.parametrize("commits", [True, False], ids=["committed", "rolled back"])
def test_what_was_committed_first_holds(world: World, commits: bool, shadow: bool) -> None:
    world.store.register_targets([("reports", "mcp-2026-07-28")])

    def canary(percent: float) -> None:
        rollout.set_canary(
            world.database, "main", "reports", "generate", percent, shadow=shadow and percent < 100, reason="drill"
        )

    canary(0)
    with world.owner() as connection, connection.transaction(force_rollback=not commits):
        assert world.client.submit_in(connection, [CALL]) == [None]
        canary(100)
        second = Thread(lambda: world.client_of().submit(CALL.target, CALL.tool, CALL.arguments, call_node_id="run/1"))
        until_blocked(world, 1)
    if commits:
        with pytest.raises(NotSelected):
            second.outcome()
        mode = "shadow" if shadow else "not_selected"
    else:
        assert second.outcome().state == "SUBMITTING"
        mode = "live"
    assert world.sql("SELECT mode FROM counterfoil.call_node WHERE namespace = 'default'") == [(mode,)]
    (operations,) = world.sql("SELECT count(*) FROM counterfoil.operation")[0]
    assert operations == (0 if mode == "not_selected" else 1)
