"""What an operator may set by environment: `COUNTERFOIL_…`, one variable a field."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ..beat_schedule import PLAN_EVERY_S
from ..ledger.errors import CounterfoilError
from ..ledger.location import DEFAULT_STATE_DIR, dev_urls
from ..ledger.states import QUEUES, Lane

_DATABASE_SCHEMES = ("postgresql", "postgresql+psycopg")
_BROKER_SCHEMES = {
    "redis": "redis",
    "rediss": "rediss",
    "redis+socket": "redis+socket",
    "valkey": "redis",
    "valkeys": "rediss",
    "valkey+unix": "redis+socket",
}
"""What people write -> what kombu understands: it knows no `valkey://`, and a socket is `redis+socket:///path`."""


class SettingsError(CounterfoilError):
    """A setting is missing or can't be used. The text names the variable, never its value: it may hold a password."""

    code = "E_SETTINGS"


class Settings(BaseModel):
    """All settings of a worker. Durations in seconds. Frozen; made by `load()`."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    state_dir: Path = DEFAULT_STATE_DIR
    """Where `counterfoil dev up` keeps its stack: the URLs come from its `dev.json` where none is set."""
    database_url: str | None = Field(None, repr=False)
    broker_url: str | None = Field(None, repr=False)
    targets_file: Path = Path("targets.yaml")
    webhooks_file: Path | None = None
    """Where events of which namespace are pushed to (docs/events.md). Workers that have it deliver."""
    fleet: str = Field("main", pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")
    """A worker serves one fleet, a namespace belongs to one: the execution epoch is the fleet's."""
    epoch: int | None = Field(None, ge=1)
    """The epoch that this worker was started in; `counterfoil worker` sets it for its children. A child that is
    started anew after a bump must not become a member of the new epoch with the old release's code."""
    generation: int | None = Field(None, ge=1)
    """The release that this worker is of, where releases name theirs: it joins no other (`counterfoil epoch adopt`)."""
    concurrency: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1, le=1024)
    """Processes of one worker: one per core, since a process is busy with its one event loop."""
    producers_file: Path | None = None
    """The keys that submit messages are signed with (docs/producers.md). None: no signed message is taken."""
    allow_unsigned: bool = False
    """Development only: an unsigned submit message is taken, as namespace and principal `default`."""
    health_dir: Path | None = None
    """Where worker and beat leave their signs of life for `counterfoil health`. None: they leave none."""
    log_format: Literal["text", "json"] = "text"
    """How long-running processes log: for people, or one JSON object a line."""
    otel: bool = False
    """Send traces by OpenTelemetry (the extra `otel`); the standard OTEL_… variables say where and how many."""
    lanes: tuple[Lane, ...] = QUEUES
    """What a worker serves, as `submit,poll`: lanes can be deployed and scaled apart from each other."""

    tick_s: float = Field(PLAN_EVERY_S, gt=0, le=60)
    """How often the loop looks for due rows. Rows due within the next tick are claimed now and sent at their moment."""
    self_tick_s: float = Field(5.0, gt=0, le=300)
    """Without a tick from beat for this long a worker plans by itself: losing beat costs latency, not liveness."""
    flush_s: float = Field(0.2, gt=0, le=1)
    """Unchanged polls are written together. 100 to 250 ms halve the statements; an accept waits no longer than this."""
    slot_s: float = Field(0.05, ge=0.005, le=0.25)
    """One bucket call per slot and lane. Tokens go stale after 250 ms, so a slot is never longer."""
    poll_lease_s: float = Field(8.0, ge=5, le=12)
    """After a kill -9 the slowest detection is one lease: 15 s gave 10.1 s, 5 s gave 3.0 s; a renewal is a write."""
    fetch_lease_s: float = Field(30.0, ge=5, le=300)
    in_flight: int = Field(2000, ge=1, le=10_000)
    """Rows that one process holds at a time, over all targets. With 400 a burst of 2,000 operations of 5 s was worked
    off at 53 a second, with the process idle for three quarters of the time; with 2,000 at 136."""
    claim_batch: int = Field(100, ge=1, le=1000)
    """Rows a claim: 100 cost 28 us of Postgres each, 1 costs 477 us, 500 make the slowest statement 83 ms."""
    claim_ahead_s: float = Field(1.0, ge=0, le=4)
    """Polls only. Without it the slowest detection was 1.1 s. It eats into the lease, so it is below the shortest."""
    stop_grace_s: float = Field(90.0, gt=0, le=86_400)
    """How long a stop waits for calls that are out: at least the longest `answer_by_s` or `sync_bound_s` of the lanes
    served, and less than the grace of whoever stops it. Past it an answer is lost."""
    local_share: float = Field(0.25, gt=0, le=1)
    """The part of a target's qps that one process may use while Redis is away: 1 / the fleet's processes, or less."""

    @classmethod
    def load(cls, **given: object) -> Self:
        """Read the environment (`given` wins over it; a variable that is empty counts as unset). Raises SettingsError
        with every variable that can't be used."""
        # Not by pydantic-settings: its readers of files, clouds and command lines are 5 MB in each process.
        found = {name: text for name in cls.model_fields if (text := os.environ.get(f"COUNTERFOIL_{name.upper()}"))}
        try:
            return cls.model_validate(found | given)
        except ValidationError as error:
            raise SettingsError(
                " ".join(_sentence(problem["loc"], problem["msg"]) for problem in error.errors(include_input=False)),
                next_step="Correct or unset it.",
            ) from None

    @model_validator(mode="before")
    @classmethod
    def _use_dev_stack(cls, data: Mapping[str, object]) -> dict[str, object]:
        settings = {name: value for name, value in data.items() if value is not None}
        missing = {"database_url", "broker_url"} - settings.keys()
        if missing:
            urls = dev_urls(Path(str(settings.get("state_dir", cls.model_fields["state_dir"].default))))
            settings |= {name: urls[name] for name in missing & urls.keys()}
        return settings

    @field_validator("lanes", mode="before")
    @classmethod
    def _split_lanes(cls, lanes: object) -> object:
        if not isinstance(lanes, str):
            return lanes
        names = [name for part in lanes.split(",") if (name := part.strip().lower())]
        for name in names:
            if name not in QUEUES:
                near = get_close_matches(name, QUEUES, n=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(QUEUES)}"
                raise ValueError(f"{name[:32]!r} is no lane; {hint}")
        return names or QUEUES

    @field_validator("database_url")
    @classmethod
    def _driver(cls, url: str | None) -> str | None:
        if url is None:
            return None
        _, rest = _split(url, "postgresql://user@host:5432/name", _DATABASE_SCHEMES)
        return f"postgresql+psycopg{rest}"

    @field_validator("broker_url")
    @classmethod
    def _transport(cls, url: str | None) -> str | None:
        if url is None:
            return None
        scheme, rest = _split(url, "redis://host:6379/0", tuple(_BROKER_SCHEMES))
        return f"{_BROKER_SCHEMES[scheme]}{rest}"

    def require_database_url(self) -> str:
        """`postgresql+psycopg://…`, as SQLAlchemy takes it. Raises SettingsError (E_NO_DATABASE) if none is known."""
        if self.database_url is None:
            raise SettingsError(
                f"no database is configured: COUNTERFOIL_DATABASE_URL is unset, {self.state_dir}/dev.json names none.",
                code="E_NO_DATABASE",
                next_step="Run `counterfoil dev up`, or set COUNTERFOIL_DATABASE_URL to postgresql://….",
            )
        return self.database_url

    def require_broker_url(self) -> str:
        """`redis://…`, `rediss://…` or `redis+socket://…`, as Celery takes it. Raises SettingsError (E_NO_BROKER)."""
        if self.broker_url is None:
            raise SettingsError(
                f"no broker is configured: COUNTERFOIL_BROKER_URL is unset, {self.state_dir}/dev.json names none.",
                code="E_NO_BROKER",
                next_step="Run `counterfoil dev up`, set COUNTERFOIL_BROKER_URL to redis://…, or run `worker --solo`.",
            )
        return self.broker_url


def _split(url: str, example: str, schemes: tuple[str, ...]) -> tuple[str, str]:
    """Scheme and the rest from `://` on. ValueError in words that hold nothing of the rest."""
    scheme, mark, _ = url.partition("://")
    if not mark or scheme.lower() not in schemes:
        raise ValueError(f"is no URL that can be used: write it like {example} ({', '.join(schemes)})")
    try:
        _ = urlsplit(url).port
    except ValueError:
        raise ValueError(f"has no valid host and port: write it like {example}, reserved characters as %XX") from None
    return scheme.lower(), url[len(scheme) :]


def _sentence(location: tuple[int | str, ...], message: str) -> str:
    name = "_".join(str(part) for part in location).upper()
    reason = message.removeprefix("Value error, ").rstrip(".")
    return f"COUNTERFOIL_{name}: {reason[:1].lower()}{reason[1:]}."
