"""The stores under test, with a hand on their clocks."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import redis

from counterfoil.server import RedisStore, SqliteStore, Store
from counterfoil.server.redis_store import PREFIX


@dataclass(frozen=True)
class Place:
    """Where keys are kept: what an owner passes as `store`, ways to open it again, and ways to let time pass there."""

    name: str
    where: str
    open: Callable[[], Store]
    age: Callable[[float], None]
    """Let every entry be written so many seconds earlier: a holder that hasn't been heard of for so long."""
    expire: Callable[[], None]
    """Let every entry's lifetime be over."""
    count: Callable[[], int]


def sqlite_place(path: Path) -> Place:
    def execute(statement: str, *values: float) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement, values)

    def age(by_s: float) -> None:
        execute("UPDATE submission_key SET written_at_s = written_at_s - ?", by_s)

    def expire() -> None:
        execute("UPDATE submission_key SET expires_at_s = 0")

    def count() -> int:
        with closing(sqlite3.connect(path)) as connection:
            return int(connection.execute("SELECT count(*) FROM submission_key").fetchone()[0])

    return Place("sqlite", str(path), lambda: SqliteStore(path), age, expire, count)


def valkey_place(url: str) -> Place:
    client = redis.Redis.from_url(url)

    def names() -> list[bytes]:
        found: list[bytes] = list(client.scan_iter(f"{PREFIX}*"))
        return found

    def age(by_s: float) -> None:
        for name in names():
            client.hincrby(name, "written_at_ms", -round(by_s * 1000))  # type: ignore[arg-type]

    def expire() -> None:
        for name in names():
            client.pexpire(name, 0)

    return Place("valkey", url, lambda: RedisStore.from_url(url, durable=True), age, expire, lambda: len(names()))
