"""Dead letters: what could not become an operation is kept with the reason, and can't fill the disk."""

import hashlib

import psycopg
import pytest

from counterfoil.ledger import dead_letters
from counterfoil.ledger.dead_letters import MAX_BODY_BYTES, DeadLetter, list_dead_letters, write_dead_letter
from counterfoil.tests.ledger.world import World


def write(world: World, body: bytes = b"{}", fleet: str = "main", **given: str) -> bool:
    letter = {"code": "E_MESSAGE_FORGED", "why": "its signature is wrong.", "key_id": "billing-1"} | given
    with world.database.begin() as connection:
        return write_dead_letter(connection, fleet, body=body, **letter)


def letters(world: World, limit: int = 100) -> list[DeadLetter]:
    with world.database.autocommit() as connection:
        return list_dead_letters(connection, "main", limit)


def test_a_letter_says_why_with_which_key_and_what_it_was(world: World) -> None:
    body = '{"v":1,"größe":2}'.encode()
    assert write(world, body)
    (letter,) = letters(world)
    assert (letter.code, letter.why, letter.key_id) == ("E_MESSAGE_FORGED", "its signature is wrong.", "billing-1")
    assert (letter.body.encode(), letter.whole) == (body, True)
    assert letter.body_digest == hashlib.sha256(body).hexdigest()


def test_of_a_large_one_the_beginning_is_kept_and_the_digest_of_the_whole(world: World) -> None:
    body = b"x" * (MAX_BODY_BYTES + 1)
    assert write(world, body, why="w" * 9000)
    (letter,) = letters(world)
    assert (len(letter.body), letter.whole, len(letter.why)) == (MAX_BODY_BYTES, False, 2000)
    assert letter.body_digest == hashlib.sha256(body).hexdigest()


def test_bytes_that_are_no_text_can_be_shown(world: World) -> None:
    assert write(world, b"\xff\x00a")
    assert letters(world)[0].body == "\N{REPLACEMENT CHARACTER}\x00a"


def test_the_newest_come_first_and_other_fleets_are_not_ours(world: World) -> None:
    world.freeze()
    for body in (b"1", b"2", b"3"):
        write(world, body)
        world.pass_time(1)
    write(world, b"theirs", fleet="other")
    assert [letter.body for letter in letters(world)] == ["3", "2", "1"]
    assert [letter.body for letter in letters(world, limit=1)] == ["3"]


def test_a_flood_is_kept_up_to_the_cap_of_an_hour_for_each_fleet(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "MAX_LETTERS_AN_HOUR", 3)
    world.freeze()
    assert [write(world) for _ in range(5)] == [True, True, True, False, False]
    assert write(world, fleet="other")
    world.pass_time(3601)
    assert write(world)
    assert len(letters(world)) == 4


def test_bodies_have_a_budget_of_their_own_and_small_ones_still_fit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "MAX_BYTES_AN_HOUR", 10)
    assert all(write(world, body) for body in (b"123456", b"1234567", b"1234"))
    assert [letter.body for letter in letters(world)] == ["1234", "", "123456"]
    assert [letter.whole for letter in letters(world)] == [True, False, True]


@pytest.mark.parametrize("change", ["DELETE FROM", "UPDATE"])
def test_whoever_works_with_the_ledger_can_add_letters_but_not_change_or_remove_them(world: World, change: str) -> None:
    write(world)
    rest = " SET code = ''" if change == "UPDATE" else ""
    with (
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"),
        world.database.begin() as connection,
    ):
        connection.exec_driver_sql(f"{change} counterfoil.dead_letter{rest}")
