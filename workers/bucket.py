"""The token bucket of a target: how many requests may leave now, and when to ask again (SPEC section 3).

One token is one HTTP request, taken right before it is sent: a token taken at plan time would let a queued batch bunch.
Any window of t seconds admits at most qps * t + burst. The caller may hold tokens for 250 ms at most.

Cancel, fetch and submit each have a share of the rate, polls have the rest. A share is a right, not a partition: what
nobody waits for anybody may have, but a class that was refused is served next as soon as its share is due. So a
flood of one class neither starves another nor slows down where it is alone, and no share brings the target over its
limit. (Smaller rates for the less urgent lanes were tried instead: at burst 1, asked in 50 ms slots, a flood of
polls left submits nothing, since what polls leave unused can't be saved up.)

Buckets start empty: a wiped Redis, a restarted process or a server's failover never gives an extra burst.
"""

import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

from ..ledger.states import Lane

KEY = "counterfoil:{bucket}"
"""One hash for everything, in a hash tag of its own."""

MAX_CLOSE_S = 3600.0
"""The longest that one closing lasts: a Retry-After of a year is an hour, then a probe. The ledger has its own copy."""

RETRY_S = 1.0
"""After Redis failed it is left alone this long: at 0.5 s a timeout, asking in every 50 ms slot would stop the loop."""

GRACE_S = 0.25
"""For how long after the moment that it was told a refused class keeps its place: a caller's slowest slot."""

EFFECT_LANES = frozenset({Lane.SUBMIT, Lane.ANSWER, Lane.SYNC})
"""What may start something at the server. They have one share together, and without Redis none of them is sent."""

CLASSES = (Lane.CANCEL, Lane.FETCH, Lane.SUBMIT, Lane.POLL)
"""Lanes that share a share, the most urgent first: a cancel must leave within a second (SPEC section 9)."""

DEFAULT_SHARES: Mapping[str, float] = MappingProxyType({"cancel": 0.1, "fetch": 0.1, "submit": 0.1})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Grant:
    """`granted` requests may leave now. `wait_s`: seconds until one more may be asked for; 0 when all were granted."""

    granted: int
    wait_s: float


@dataclass(frozen=True, slots=True)
class Limit:
    """What a target allows: requests per second, requests at once (at least 1), and the shares; polls have the rest."""

    qps: float
    burst: float
    shares: Mapping[str, float] = field(default_factory=lambda: DEFAULT_SHARES)

    @property
    def period_us(self) -> float:
        return 1e6 / self.qps

    @property
    def depth_us(self) -> float:
        """How far ahead of its rate the target may be: the burst, as time."""
        return self.burst * self.period_us

    def share_period_us(self, of: Lane) -> float:
        """How often one of `CLASSES` has a token by right, 0 for never."""
        share = self.shares.get(of, 0.0) if of is not Lane.POLL else 1.0 - sum(self.shares.values())
        return self.period_us / share if share > 0 else 0.0


def class_of(lane: str) -> Lane:
    """The one of `CLASSES` in which this lane's requests are counted."""
    if lane in EFFECT_LANES:
        return Lane.SUBMIT
    return Lane(lane) if lane in CLASSES else Lane.POLL


class Bucket(Protocol):
    """Both methods raise KeyError for a target without a limit. They may block for a second: call them in a thread."""

    def take(self, target: str, lane: str, n: int) -> Grant:
        """Take up to `n` (at least 1) tokens; fewer or none are granted where fewer are left."""
        ...

    def close(self, target: str, seconds: float) -> None:
        """Grant nothing for this target, to any lane, for `seconds` (at most `MAX_CLOSE_S`). Closings only extend."""
        ...


class RedisBucket:
    """The fleet's bucket: one script call, on the clock of Redis. Raises redis.RedisError where it does not answer."""

    def __init__(self, client: Redis, limits: Mapping[str, Limit]) -> None:
        self._script = client.register_script(Path(__file__).with_name("bucket.lua").read_text())
        self._limits = limits

    def take(self, target: str, lane: str, n: int, owed: int = 0) -> Grant:
        """As `Bucket.take`. `owed` tokens, sent while Redis was away, are charged first."""
        granted, wait_us, _now_us = self._run(target, lane, n=n, owed=owed)
        return Grant(granted, wait_us / 1e6)

    def close(self, target: str, seconds: float) -> None:
        self._run(target, Lane.CANCEL, close_us=math.ceil(max(seconds, 0.0) * 1e6))

    def _run(self, target: str, lane: str, *, n: int = 0, owed: int = 0, close_us: int = 0) -> tuple[int, int, int]:
        limit = self._limits[target]
        shares = [value for each in CLASSES for value in (each.value, limit.share_period_us(each))]
        own = CLASSES.index(class_of(lane)) + 1
        caps = (MAX_CLOSE_S * 1e6, GRACE_S * 1e6)
        granted, wait_us, now_us = self._script(
            keys=[KEY], args=[target, n, owed, close_us, *caps, limit.period_us, limit.depth_us, own, *shares]
        )
        return int(granted), int(wait_us), int(now_us)


class LocalBucket:
    """The same arithmetic in this process: exact where it is the only one (`--solo`), a part of it while Redis is away.

    `clock` answers seconds that only grow.
    """

    def __init__(self, limits: Mapping[str, Limit], clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        since_us = self._now_us()
        self._levels = {target: _Level(limit, since_us) for target, limit in limits.items()}

    def take(self, target: str, lane: str, n: int) -> Grant:
        with self._lock:
            return self._levels[target].take(class_of(lane), n, self._now_us())

    def close(self, target: str, seconds: float) -> None:
        with self._lock:
            until_us = self._now_us() + math.ceil(min(max(seconds, 0.0), MAX_CLOSE_S) * 1e6)
            self._levels[target].close(until_us)

    def _now_us(self) -> int:
        return round(self._clock() * 1e6)


@dataclass(slots=True)
class _Share:
    """A class of one target: when it has its next token by right, and until when how many are kept for it."""

    period: float
    due: float
    wanted: int = 0
    want: int = 0

    @property
    def late(self) -> float:
        return max(len(CLASSES) * self.period, GRACE_S * 1e6)

    def rights(self, now: int) -> int:
        if not self.period or self.due > now:
            return 0
        return 1 + math.floor(min(now - self.due, self.late) / self.period)

    def kept(self, now: int) -> int:
        return min(self.want, self.rights(now)) if self.wanted > now else 0


class _Level:
    """One target of a local bucket, word for word as in bucket.lua. Instants in microseconds."""

    def __init__(self, limit: Limit, since_us: int) -> None:
        self._period = limit.period_us
        self._depth = limit.depth_us
        self._tat = since_us + limit.depth_us
        self._closed = 0
        self._shares = [_Share(limit.share_period_us(each), since_us) for each in CLASSES]

    def close(self, until: int) -> None:
        self._closed = max(self._closed, until)

    def take(self, lane: Lane, n: int, now: int) -> Grant:
        if self._closed > now:
            return Grant(0, (self._closed - now) / 1e6)
        own = CLASSES.index(lane)
        mine = self._shares[own]
        kept = [share.kept(now) for share in self._shares]
        urgent, others = sum(kept[:own]), sum(kept) - kept[own]
        tat = min(max(self._tat, now), now + self._depth)
        left = math.floor((self._depth - (tat - now)) / self._period)
        granted = max(0, min(n, left - others), min(n, mine.rights(now), left - urgent))

        tat = self._tat = math.ceil(tat + granted * self._period)
        if granted and mine.period:
            due = max(mine.due, now - mine.late) + granted * mine.period
            mine.due = math.ceil(min(due, now + mine.period))
        mine.want = n - granted
        if not mine.want:
            return Grant(granted, 0.0)
        wait = tat + (1 + (urgent if mine.rights(now) else others)) * self._period - self._depth - now
        mine.wanted = math.ceil(now + wait + GRACE_S * 1e6)
        return Grant(granted, math.ceil(wait) / 1e6)


class FallbackBucket:
    """The fleet's bucket while Redis answers; without it a fixed part of each rate, for reads and cancels only.

    Effects fail closed: nothing new is started on a guess. Everything else goes on at `local_share` of qps without a
    burst, so that the target's limit holds as long as no more than 1 / `local_share` processes do so. What was granted
    meanwhile is charged when Redis is back, which is tried every `RETRY_S`.
    """

    def __init__(
        self, shared: RedisBucket, limits: Mapping[str, Limit], local_share: float, clock: Callable[[], float]
    ) -> None:
        own = {target: replace(limit, qps=limit.qps * local_share, burst=1) for target, limit in limits.items()}
        self._shared = shared
        self._local = LocalBucket(own, clock)
        self._clock = clock
        self._lock = threading.Lock()
        self._retry_at_s: float | None = None
        self._owed: Counter[tuple[str, str]] = Counter()

    def take(self, target: str, lane: str, n: int) -> Grant:
        with self._lock:
            if self._may_try():
                try:
                    grant = self._shared.take(target, lane, n, self._owed[target, lane])
                except RedisError as error:
                    self._lost(error)
                else:
                    self._answered()
                    del self._owed[target, lane]
                    return grant
            if lane in EFFECT_LANES:
                return Grant(0, RETRY_S)
            grant = self._local.take(target, lane, n)
            self._owed[target, lane] += grant.granted
            return grant

    def close(self, target: str, seconds: float) -> None:
        with self._lock:
            self._local.close(target, seconds)
            if self._may_try():
                try:
                    self._shared.close(target, seconds)
                except RedisError as error:
                    self._lost(error)
                else:
                    self._answered()

    def _may_try(self) -> bool:
        return self._retry_at_s is None or self._clock() >= self._retry_at_s

    def _lost(self, error: RedisError) -> None:
        if self._retry_at_s is None:
            log.warning(
                "Redis gives no tokens (%s). No submit leaves until it does; polls and cancels go on at this process's "
                "share of each rate.",
                type(error).__name__,
            )
        self._retry_at_s = self._clock() + RETRY_S

    def _answered(self) -> None:
        if self._retry_at_s is not None:
            log.warning("Redis gives tokens again.")
        self._retry_at_s = None


def closings(client: Redis) -> dict[str, float] | None:
    """Target -> for how many seconds its bucket is closed, of those that are; None where there are no buckets yet. For
    people: reads and changes nothing. Raises redis.RedisError."""
    held = {str(name, "utf-8"): float(value) for name, value in client.hgetall(KEY).items()}  # type: ignore[arg-type]
    if "since" not in held:
        return None
    seconds, microseconds = client.time()
    now_us = seconds * 1_000_000 + microseconds
    closed = {name.removesuffix("/closed"): until for name, until in held.items() if name.endswith("/closed")}
    return {target: (until - now_us) / 1e6 for target, until in closed.items() if until > now_us}


def redis_client(broker_url: str) -> Redis:
    """A client for the bucket: half a second a step, one immediate second try on a connection that had died idle.

    `broker_url` as Celery takes it. A socket is `redis+socket:///path?virtual_host=0` there, `unix:///path?db=0` here.
    """
    url = urlsplit(broker_url)
    if url.scheme == "redis+socket":
        query = urlencode([("db" if name == "virtual_host" else name, value) for name, value in parse_qsl(url.query)])
        broker_url = f"unix://{url.netloc}{url.path}?{query}"
    return Redis.from_url(
        broker_url,
        socket_timeout=0.5,
        socket_connect_timeout=0.5,
        health_check_interval=10,
        retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
    )
