"""What a worker knows about targets, and how it reads kept evidence."""

import json
from dataclasses import replace
from uuid import UUID

from counterfoil.adapters.registry import adapter
from counterfoil.ledger import events
from counterfoil.ledger.digest import sha256
from counterfoil.ledger.rows import Evidence, Row
from counterfoil.workers.catalog import Catalog
from counterfoil.workers.sessions import Sessions
from counterfoil.workers.target_entries import TargetEntry
from counterfoil.workers.targets import Target, Targets

from .kit_world import PROTOCOL, NoSessions, World, targets

DESCRIPTOR = json.dumps({"name": "work", "outputSchema": {"type": "object", "required": ["n"]}}).encode()
SEND = UUID(int=77)


def row(world: World, **changes: object) -> Row:
    (id_,) = world.submits(1)
    return replace(world.ledger.rows[id_], **changes)  # type: ignore[arg-type]


def evidence(row: Row, status: int, body: bytes, *, kind: str = "submit") -> Evidence:
    headers = {"content-type": "application/json"}
    return Evidence(UUID(int=1), row.id, kind, 1, 1, SEND, 1, status, headers, body, 3)


def said(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": str(SEND)} | members).encode()


TASK = {"resultType": "task", "taskId": "t-1", "status": "working"}


def test_kept_bytes_read_the_same_in_every_worker() -> None:
    first, second = World(), World()
    kept = evidence(row(first), 200, said(result=TASK))
    expected = events.TaskBound(1, "t-1", "working")
    assert first.catalog.read_evidence(row(first), kept) == expected
    assert second.catalog.read_evidence(row(second), kept) == expected


def test_evidence_that_answers_another_send_is_unclear() -> None:
    world = World()
    other = json.dumps({"jsonrpc": "2.0", "id": "somebody else's", "result": TASK}).encode()
    event = world.catalog.read_evidence(row(world), evidence(row(world), 200, other))
    assert isinstance(event, events.SubmitUnclear)


def test_a_cut_answer_is_unclear_though_a_task_id_is_in_it() -> None:
    world = World()
    event = world.catalog.read_evidence(row(world), evidence(row(world), 0, said(result=TASK)[:-5]))
    assert isinstance(event, events.SubmitUnclear)


def test_evidence_is_read_after_the_arguments_are_gone() -> None:
    """A row whose task is known holds no arguments; a late answer of its submit must be read all the same."""
    world = World()
    event = world.catalog.read_evidence(row(world, arguments=None), evidence(row(world), 200, said(result=TASK)))
    assert isinstance(event, events.TaskBound)


def test_the_answer_to_a_cancel_is_read_as_one() -> None:
    world = World()
    (id_,) = world.polls(1)
    event = world.catalog.read_evidence(
        world.ledger.rows[id_], evidence(world.ledger.rows[id_], 200, said(result={}), kind="cancel")
    )
    assert event == events.CancelAcknowledged(1, cancelled=False)


def test_an_output_schema_is_loaded_once_by_digest_where_it_was_not_learned() -> None:
    asked: list[bytes] = []

    def load(digests: object) -> dict[bytes, bytes]:
        asked.extend(digests)  # type: ignore[arg-type]
        return {sha256(DESCRIPTOR): DESCRIPTOR}

    catalog = Catalog(targets("a"), load, Sessions(NoSessions()))
    known = replace(row(World()), descriptor_digest=sha256(DESCRIPTOR))
    for _ in range(3):
        assert json.loads(catalog.output_schema(known) or b"") == {"type": "object", "required": ["n"]}
    assert asked == [sha256(DESCRIPTOR)]


def test_the_operators_schema_goes_before_the_tools_own() -> None:
    entry = TargetEntry.model_validate(
        {
            "url": "http://127.0.0.1:1/mcp",
            "protocol": PROTOCOL,
            "tools": {"work": {"output_schema": {"type": "array"}}},
        }
    )
    known = Targets({"a": Target("a", adapter(PROTOCOL).profile, entry)})
    catalog = Catalog(known, lambda _: {}, Sessions(NoSessions()))
    catalog.learn_descriptor(sha256(DESCRIPTOR), DESCRIPTOR)
    mine = replace(row(World()), descriptor_digest=sha256(DESCRIPTOR))
    assert catalog.output_schema(mine) == b'{"type":"array"}'


def test_a_descriptor_that_can_not_be_read_has_no_schema() -> None:
    catalog = Catalog(targets("a"), lambda _: {}, Sessions(NoSessions()))
    for body in (b"", b"[]", b'{"outputSchema": 1}', b"\xff"):
        catalog.learn_descriptor(sha256(body), body)
        assert catalog.output_schema(replace(row(World()), descriptor_digest=sha256(body))) is None


def test_a_pinned_policy_is_not_touched_by_todays_targets_file() -> None:
    world = World()
    pinned = row(world, pinned=True)
    assert world.catalog.policy_for(pinned) is pinned.operation.policy
    assert world.catalog.policy_for(replace(pinned, pinned=False)).url == "http://127.0.0.1:1/mcp"


def test_an_operation_whose_target_left_the_file_has_a_policy_of_its_own() -> None:
    world = World()
    assert world.catalog.policy("gone", "work").protocol == "unknown"
    assert world.catalog.output_schema(row(world, target="gone")) is None
