"""Sessions of servers: kept sealed, ended only after their last operation."""

from counterfoil.ledger.sessions import Sealed, keep_session, read_sessions, take_ended_sessions
from counterfoil.tests.ledger.world import World


def ended(world: World) -> list[Sealed]:
    return take_ended_sessions(world.database, "main", idle_s=600, limit=10)


def test_a_session_is_read_back_as_it_was_sealed(world: World) -> None:
    session_id = keep_session(world.database, "main", "reports", "env:TOKEN", b"sealed")
    (kept,) = read_sessions(world.database, [session_id])
    assert kept == Sealed(session_id, "reports", "env:TOKEN", b"sealed")


def test_a_session_without_operations_is_ended_once_nobody_can_be_on_the_way_into_it(world: World) -> None:
    world.freeze()
    session_id = keep_session(world.database, "main", "reports", "", b"sealed")
    assert ended(world) == []
    world.pass_time(601)
    assert [one.id for one in ended(world)] == [session_id]
    assert ended(world) == []


def test_a_session_outlives_its_last_open_operation(world: World) -> None:
    world.freeze()
    session_id = keep_session(world.database, "main", "reports", "", b"sealed")
    operation_id = world.working()
    world.sql("UPDATE counterfoil.operation SET session_id = %(session)s", {"session": session_id})
    world.pass_time(601)
    assert ended(world) == []
    world.ended(operation_id)
    assert [one.id for one in ended(world)] == [session_id]
