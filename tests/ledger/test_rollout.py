"""Canary and shadow: what a call node is, is said once and holds; a shadow is compared and nobody's receipt."""

from typing import Any
from uuid import UUID

import pytest

from counterfoil.ledger import rollout, switches
from counterfoil.ledger.client import Call
from counterfoil.ledger.digest import canonical_json, sha256
from counterfoil.ledger.errors import CallNodeConflict, CounterfoilError, CreateStopped, NoSuchOperation, NotSelected
from counterfoil.ledger.events import Ended, Result, TaskBound
from counterfoil.tests.ledger.world import World

ROWS = {"rows": 3}


@pytest.fixture
def world(world: World) -> World:
    world.store.register_targets([("reports", "mcp-2026-07-28")])
    return world


def canary(world: World, percent: float, *, shadow: bool = False, tool: str = "generate") -> bool:
    return rollout.set_canary(world.database, "main", "reports", tool, percent, shadow=shadow, reason="drill")


def code(asked: Any) -> str:
    with pytest.raises(CounterfoilError) as refused:
        asked()
    assert refused.value.next_step
    return refused.value.code


def not_selected(world: World, node: str = "run/1") -> None:
    with pytest.raises(NotSelected, match="E_NOT_SELECTED"):
        world.opened(node)


def modes(world: World) -> dict[str, str]:
    return dict(world.sql("SELECT call_node_id, mode FROM counterfoil.call_node WHERE namespace = 'default'"))  # type: ignore[arg-type]


# -- canary ------------------------------------------------------------------------------------------------------------


def test_five_percent_of_20000_call_nodes_are_taken_on_and_stay_so_under_a_ramp_to_50(world: World) -> None:
    """Through the producers' own door: 4.7 to 5.3 %, and the ramp keeps every one of them (SPEC section 8)."""
    nodes = [f"run-{number}/step-3" for number in range(20_000)]
    canary(world, 5)
    at_5 = {node: id_ for node, id_ in zip(nodes, hand_in(world, nodes), strict=True) if id_ is not None}
    assert 4.7 <= 100 * len(at_5) / len(nodes) <= 5.3
    canary(world, 50)
    asked_again = [*at_5, *nodes[::10]]
    again = dict(zip(asked_again, hand_in(world, asked_again), strict=True))
    assert {node: id_ for node, id_ in again.items() if id_ is not None} == at_5
    fresh = hand_in(world, [f"run-{number}/step-4" for number in range(2_000)])
    assert 46 <= 100 * sum(id_ is not None for id_ in fresh) / len(fresh) <= 54


def hand_in(world: World, nodes: list[str]) -> list[UUID | None]:
    found: list[UUID | None] = []
    for start in range(0, len(nodes), 250):
        calls = [Call("reports", "generate", {}, node) for node in nodes[start : start + 250]]
        with world.database.begin() as connection:
            found += world.client.submit_in(connection, calls)
    return found


def test_a_ramp_only_adds(world: World) -> None:
    """Whoever is in at 5 % would be in at 50 % as well: asked in transactions that are rolled back, so that each is a
    first sight."""
    calls = [Call("reports", "generate", {}, f"run-{number}") for number in range(300)]
    taken = []
    for percent in (5, 50, 100):
        canary(world, percent)
        with world.owner() as producer, producer.transaction(force_rollback=True):
            ids = world.client.submit_in(producer, calls)
        taken.append({call.call_node_id for call, id_ in zip(calls, ids, strict=True) if id_ is not None})
    assert set() < taken[0] < taken[1] < taken[2]
    assert len(taken[2]) == 300


def test_a_call_node_that_is_not_selected_stays_so_whatever_the_percentage_becomes(world: World) -> None:
    canary(world, 0)
    not_selected(world)
    canary(world, 100)
    not_selected(world)
    assert modes(world) == {"run/1": "not_selected"}
    assert world.sql("SELECT count(*) FROM counterfoil.operation") == [(0,)]
    world.opened("run/2")


def test_a_call_node_that_is_in_stays_in_when_the_percentage_falls(world: World) -> None:
    operation_id = world.opened("run/1")
    canary(world, 0)
    assert world.opened("run/1") == operation_id


def test_not_selected_stands_for_one_request_as_well(world: World) -> None:
    canary(world, 0)
    not_selected(world)
    with pytest.raises(CallNodeConflict):
        world.client.submit("reports", "generate", {"month": "2026-11"}, call_node_id="run/1")


def test_a_producer_that_rolls_back_was_told_nothing(world: World) -> None:
    """The answer may be acted on only after the commit: rolled back, the next hand-in decides anew."""
    canary(world, 0)
    connection = world.owner()
    connection.autocommit = False
    assert world.client.submit_in(connection, [Call("reports", "generate", {}, "run/1")]) == [None]
    connection.rollback()
    connection.close()
    canary(world, 100)
    assert world.client.submit("reports", "generate", {}, call_node_id="run/1").state == "SUBMITTING"


def test_a_percentage_is_one_tools(world: World) -> None:
    canary(world, 0, tool="another")
    world.opened()


@pytest.mark.parametrize("shadow", [False, True])
@pytest.mark.parametrize("stopped", ["create off", "drain"])
def test_a_stop_does_not_hold_up_the_old_path_of_call_nodes_that_are_not_selected(
    world: World, stopped: str, shadow: bool
) -> None:
    """A roll-back under a canary of 5 %: the other 95 % never were ours, and no operation is made of them."""
    canary(world, 0, shadow=shadow)
    if stopped == "drain":
        known = ("mcp-2026-07-28",)
        switches.set_adapter(world.database, "main", known[0], "drain", reason="drill", known=known)
    else:
        switches.rollback(world.database, "main", "drill")
    not_selected(world)
    assert modes(world) == {"run/1": "not_selected"}
    assert world.sql("SELECT count(*) FROM counterfoil.operation") == [(0,)]
    with pytest.raises(CreateStopped):
        world.client.submit("reports", "another", {}, call_node_id="run/2")


@pytest.mark.parametrize("percent", [150, -1, 100.1, float("nan"), float("inf")])
def test_what_is_no_percentage_is_refused_and_changes_nothing(world: World, percent: float) -> None:
    canary(world, 5)
    assert code(lambda: canary(world, percent)) == "E_CANARY_PERCENT"
    with world.database.begin() as connection:
        (found,) = rollout.list_canaries(connection, "main")
    assert (found.target, found.tool, found.percent, found.shadow, found.reason) == (
        *("reports", "generate", 5.0),
        *(False, "drill"),
    )


def test_a_target_that_nobody_announced_is_refused_and_a_tool_that_nobody_called_is_told(world: World) -> None:
    arguments: dict[str, Any] = {"shadow": False, "reason": ""}
    assert code(lambda: rollout.set_canary(world.database, "main", "report", "t", 5, **arguments)) == "E_TARGET_UNKNOWN"
    assert canary(world, 5) is False
    world.store.keep_descriptor(b"d", target="reports", tool="generate", protocol="p", version=None, body=b"{}")
    assert canary(world, 5) is True


# -- shadow ------------------------------------------------------------------------------------------------------------


def shadow(world: World, node: str = "run/1") -> UUID:
    """A call node that runs as a shadow; its operation."""
    canary(world, 0, shadow=True)
    not_selected(world, node)
    return world.client_of(namespace="default~shadow").get(node).id


def run(world: World, operation_id: UUID, value: object = ROWS) -> None:
    """The shadow ends with this result."""
    lease = world.claim()[operation_id]
    world.intend(lease)
    world.bring(operation_id, TaskBound(1, f"t-{operation_id}", "working"), lease=lease)
    body = b'{"result":{"structuredContent":%s}}' % canonical_json(value)
    digest = sha256(canonical_json(value))
    result = Result(sha256(body), "/result/structuredContent", body, value_digest=digest)
    world.bring(operation_id, Ended(9, "completed", "completed", result))


def tell(world: World, outcome: rollout.ToldOutcome, *result: object, node: str = "run/1") -> None:
    with world.database.begin() as connection:
        rollout.tell_shadow(connection, "default", node, outcome, *result)


def report(world: World, **more: Any) -> rollout.ShadowReport:
    with world.database.begin() as connection:
        return rollout.compare_shadows(connection, "default", **more)


def verdict(world: World) -> tuple[str, str | None]:
    (line,) = report(world).lines
    return line.verdict, line.why


def test_a_shadow_lives_a_full_life_and_makes_no_ready_row(world: World) -> None:
    run(world, shadow(world))
    assert modes(world) == {"run/1": "shadow"}
    assert world.client_of(namespace="default~shadow").receipt("run/1").outcome == "succeeded"  # type: ignore[union-attr]
    assert world.client.receipt("run/1") is None
    assert world.sql("SELECT count(*) FROM counterfoil.ready_outbox") == [(0,)]
    not_selected(world)


def test_a_call_that_somebody_handed_in_in_the_shadows_namespace_keeps_no_producer_from_its_answer(
    world: World,
) -> None:
    world.client_of(namespace="default~shadow").submit("reports", "generate", {}, call_node_id="run/1")
    canary(world, 0, shadow=True)
    not_selected(world)
    assert world.sql("SELECT count(*) FROM counterfoil.operation") == [(1,)]


def test_shadow_and_old_path_that_agree_are_the_same_however_the_json_was_written(world: World) -> None:
    run(world, shadow(world), {"rows": 3, "share": 0.5})
    assert verdict(world) == ("missing", "the old path has told nothing")
    tell(world, "succeeded", {"share": 0.5, "rows": 3.0})
    assert verdict(world) == ("same", None)


@pytest.mark.parametrize(
    ("outcome", "result", "why"),
    [
        ("failed", (), "outcome"),
        ("succeeded", ({"rows": 4},), "result"),
        ("succeeded", (None,), "result"),
        ("succeeded", ({"rows": True},), "result"),
    ],
    ids=str,
)
def test_a_difference_says_where_it_is(
    world: World, outcome: rollout.ToldOutcome, result: tuple[object, ...], why: str
) -> None:
    run(world, shadow(world))
    tell(world, outcome, *result)
    assert verdict(world) == ("differs", why)


def test_without_a_result_of_the_old_path_outcomes_alone_are_compared(world: World) -> None:
    run(world, shadow(world))
    tell(world, "succeeded")
    assert verdict(world) == ("same", None)


def test_a_shadow_that_is_not_over_is_missing_however_far_it_came(world: World) -> None:
    shadow(world)
    tell(world, "succeeded")
    assert verdict(world) == ("missing", "the shadow is SUBMITTING")


def test_a_report_counts_all_and_shows_what_differs_first(world: World) -> None:
    for node in ("run/1", "run/2", "run/3", "run/4"):
        operation_id = shadow(world, node)
        if node != "run/4":
            run(world, operation_id)
    tell(world, "succeeded", ROWS, node="run/1")
    tell(world, "succeeded", ROWS, node="run/2")
    tell(world, "failed", node="run/3")
    found = report(world, limit=2)
    assert (found.same, found.differs, found.missing) == (2, 1, 1)
    assert [line.call_node_id for line in found.lines] == ["run/3", "run/4"]
    assert report(world, target="reports", tool="generate").same == 2
    assert report(world, tool="another") == rollout.ShadowReport(same=0, differs=0, missing=0, lines=())


def test_what_the_old_path_told_first_stands_and_the_same_again_is_fine(world: World) -> None:
    shadow(world)
    tell(world, "succeeded", ROWS)
    tell(world, "succeeded", {"rows": 3.0})
    assert code(lambda: tell(world, "failed")) == "E_SHADOW_TOLD"
    assert code(lambda: tell(world, "succeeded")) == "E_SHADOW_TOLD"
    assert world.sql("SELECT outcome, result FROM counterfoil.shadow_report") == [("succeeded", b'{"rows":3}')]


def test_only_shadows_are_told_of(world: World) -> None:
    world.opened("live/1")
    canary(world, 0)
    not_selected(world, "old/1")
    assert code(lambda: tell(world, "succeeded", node="live/1")) == "E_NOT_A_SHADOW"
    assert code(lambda: tell(world, "succeeded", node="old/1")) == "E_NOT_A_SHADOW"
    with pytest.raises(NoSuchOperation):
        tell(world, "succeeded", node="nobody/1")


@pytest.mark.parametrize("result", [2**53, "x" * (1024 * 1024), float("nan")], ids=["2^53", "cap", "nan"])
def test_a_result_that_cannot_be_compared_is_refused_and_nothing_is_told(world: World, result: object) -> None:
    shadow(world)
    assert code(lambda: tell(world, "succeeded", result)) == "E_SHADOW_RESULT"
    assert world.sql("SELECT count(*) FROM counterfoil.shadow_report") == [(0,)]
