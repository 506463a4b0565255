"""Keys in Redis or Valkey: any number of processes of any number of hosts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redis import Redis, RedisError

from .store import Entry, StoreError

PREFIX = "counterfoil:key:"

_TIMEOUT_S = 5.0
# One script a verb: compare and write in one step, and one clock, the server's, for all hosts.
_NOW = "local time = redis.call('TIME') local now_ms = time[1] * 1000 + math.floor(time[2] / 1000) "
_GET = (
    _NOW
    + """
local held = redis.call('HMGET', KEYS[1], 'value', 'version', 'written_at_ms')
if not held[1] then return false end
return {held[1], held[2], now_ms - held[3]}
"""
)
_PUT = (
    _NOW
    + """
local held = tonumber(redis.call('HGET', KEYS[1], 'version') or '0')
if held ~= ARGV[2] - 1 then return 0 end
redis.call('HSET', KEYS[1], 'value', ARGV[1], 'version', ARGV[2], 'written_at_ms', now_ms)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""
)
_RENEW = (
    _NOW
    + """
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'written_at_ms', now_ms)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""
)


class RedisStore:
    """A Redis or Valkey server, reached by a client of the `redis` package (the blocking one).

    `durable=True` is the owner's word that a write which was acknowledged is never lost: `appendfsync always`, no
    eviction, no failover to a replica that lags. Redis as it comes can lose its last second, and a lost key would run
    twice; so without that word "not found" is never said to be authoritative.
    """

    def __init__(self, client: Redis, *, durable: bool = False) -> None:
        if not isinstance(client, Redis):
            raise TypeError(f"RedisStore needs a redis.Redis client, not {type(client).__name__}")
        self._durable = durable
        self._get, self._put, self._renew = (client.register_script(text) for text in (_GET, _PUT, _RENEW))

    @classmethod
    def from_url(cls, url: str, *, durable: bool = False) -> "RedisStore":
        """Return a store on a client of its own. `url`: `redis://`, `rediss://` or `unix://`."""
        client = Redis.from_url(url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S)
        return cls(client, durable=durable)

    @property
    def durable(self) -> bool:
        """What the owner said of this server."""
        return self._durable

    def get(self, name: str) -> Entry | None:
        """Return the entry, or None; see `Store`."""
        with self._translated():
            held: Any = self._get(keys=[PREFIX + name])
        if held is None:
            return None
        value = held[0].encode() if isinstance(held[0], str) else held[0]  # a client may decode
        return Entry(value, int(held[1]), int(held[2]) / 1000)

    def put(self, name: str, value: bytes, *, version: int, lifetime_s: float) -> bool:
        """Write the version after the one that is held; see `Store`."""
        with self._translated():
            return bool(self._put(keys=[PREFIX + name], args=[value, version, round(lifetime_s * 1000)]))

    def renew(self, name: str, *, version: int, lifetime_s: float) -> bool:
        """Set the age to 0 where this version is held; see `Store`."""
        with self._translated():
            return bool(self._renew(keys=[PREFIX + name], args=[version, round(lifetime_s * 1000)]))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except RedisError as error:
            # The type only: a client's message may hold its URL, and that a password.
            raise StoreError(f"the keys in Redis can't be used: {type(error).__name__}") from error
