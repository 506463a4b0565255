"""What every store must do, and what SQLite and Redis do besides."""

import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import redis
from redis.asyncio import Redis as AsyncRedis

from counterfoil.server import Entry, RedisStore, SqliteStore, Store, StoreError

from .stores import Place

HOUR_S = 3600.0


def held(store: Store, name: str) -> Entry:
    entry = store.get(name)
    assert entry is not None
    return entry


@pytest.fixture
def store(place: Place) -> Store:
    return place.open()


def test_what_is_put_is_there_for_everybody_with_its_age(place: Place, store: Store) -> None:
    assert store.get("a") is None
    assert store.put("a", b"one", version=1, lifetime_s=HOUR_S)
    place.age(7)
    entry = held(place.open(), "a")
    assert (entry.value, entry.version) == (b"one", 1)
    assert 7 <= entry.age_s < 7 + HOUR_S
    assert store.get("b") is None


def test_a_version_is_written_only_after_the_one_before_it(store: Store) -> None:
    assert not store.put("a", b"x", version=2, lifetime_s=HOUR_S)
    assert store.put("a", b"one", version=1, lifetime_s=HOUR_S)
    assert not store.put("a", b"x", version=1, lifetime_s=HOUR_S)
    assert not store.put("a", b"x", version=3, lifetime_s=HOUR_S)
    assert store.put("a", b"two", version=2, lifetime_s=HOUR_S)
    entry = held(store, "a")
    assert (entry.value, entry.version) == (b"two", 2)


def test_a_renewal_is_for_the_version_that_is_held_and_makes_it_young(place: Place, store: Store) -> None:
    store.put("a", b"one", version=1, lifetime_s=HOUR_S)
    place.age(100)
    assert not store.renew("a", version=2, lifetime_s=HOUR_S)
    assert not store.renew("b", version=1, lifetime_s=HOUR_S)
    assert held(store, "a").age_s >= 100
    assert store.renew("a", version=1, lifetime_s=HOUR_S)
    assert held(store, "a").age_s < 100


def test_after_its_lifetime_an_entry_is_gone_and_its_name_free(place: Place, store: Store) -> None:
    store.put("a", b"one", version=1, lifetime_s=HOUR_S)
    store.put("b", b"one", version=1, lifetime_s=HOUR_S)
    place.expire()
    assert store.get("a") is None
    assert store.put("a", b"new", version=1, lifetime_s=HOUR_S)
    assert place.count() == 1, "what is over doesn't stay"


def test_of_many_writers_of_one_version_one_wins(place: Place) -> None:
    """Each writer has a connection of its own, as another process would."""
    stores = [place.open() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for version in range(1, 11):
            won = list(pool.map(lambda s, v=version: s.put("a", b"x", version=v, lifetime_s=HOUR_S), stores))
            assert won.count(True) == 1


def test_sqlite_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        SqliteStore(tmp_path / "keys").put("a", b"x", version=1, lifetime_s=HOUR_S)
    finally:
        os.umask(mask)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert "keys" in modes
    assert set(modes.values()) == {0o600}


def test_sqlite_writes_are_synced_before_they_count(tmp_path: Path) -> None:
    """The write-ahead log's default loses its last commits with the power."""
    store = SqliteStore(tmp_path / "keys")
    with store._connected() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_full_sqlite_file_takes_no_new_key_and_keeps_the_old(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "keys", max_bytes=64 * 1024)
    store.put("a", b"one", version=1, lifetime_s=HOUR_S)
    with pytest.raises(StoreError, match="full"):
        store.put("b", b"x" * 100_000, version=1, lifetime_s=HOUR_S)
    assert held(store, "a").value == b"one"


def test_a_locked_sqlite_file_is_a_store_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterfoil.server.sqlite_store._BUSY_S", 0.0)
    store = SqliteStore(tmp_path / "keys")
    with closing(sqlite3.connect(tmp_path / "keys", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            store.put("a", b"x", version=1, lifetime_s=HOUR_S)


def test_what_is_no_database_or_can_not_be_made_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("dear diary, " * 100)
    with pytest.raises(StoreError, match="not a database"):
        SqliteStore(tmp_path / "notes.txt")
    with pytest.raises(StoreError, match="No such file"):
        SqliteStore(tmp_path / "nowhere" / "keys")


def test_memory_keeps_keys_and_does_not_claim_to(tmp_path: Path) -> None:
    store = SqliteStore(":memory:")
    assert store.put("a", b"x", version=1, lifetime_s=HOUR_S)
    assert not store.put("a", b"x", version=1, lifetime_s=HOUR_S)
    assert not store.durable
    assert SqliteStore(tmp_path / "keys").durable
    assert SqliteStore(":memory:").get("a") is None


def test_redis_claims_only_what_its_owner_says(broker: str) -> None:
    assert not RedisStore.from_url(broker).durable
    assert RedisStore.from_url(broker, durable=True).durable


def test_a_redis_client_that_decodes_will_do(broker: str) -> None:
    store = RedisStore(redis.Redis.from_url(broker, decode_responses=True))
    store.put("a", b'{"v":1}', version=1, lifetime_s=HOUR_S)
    assert held(store, "a").value == b'{"v":1}'


def test_every_redis_key_has_an_end(broker: str) -> None:
    store = RedisStore.from_url(broker)
    store.put("a", b"x", version=1, lifetime_s=HOUR_S)
    store.put("a", b"y", version=2, lifetime_s=HOUR_S)
    store.renew("a", version=2, lifetime_s=HOUR_S)
    client = redis.Redis.from_url(broker)
    assert [0 < client.ttl(name) <= HOUR_S for name in client.scan_iter()] == [True]


def test_a_redis_that_is_away_is_a_store_error_without_its_password() -> None:
    store = RedisStore(redis.Redis.from_url("redis://:hunter2@127.0.0.1:1", retry=None))
    with pytest.raises(StoreError) as caught:
        store.get("a")
    assert str(caught.value) == "the keys in Redis can't be used: ConnectionError"


def test_an_async_redis_client_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"redis\.Redis"):
        RedisStore(AsyncRedis())  # type: ignore[arg-type]
