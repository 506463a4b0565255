"""From settings to a running loop: one for each Celery child process, or the only one of `worker --solo`."""

import logging
import os
import random  # noqa: TID251  a port: the deliverer takes its noise here
import signal
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from celery.signals import worker_process_init, worker_process_shutdown

from ..adapters.credentials import Credentials
from ..ledger.errors import CounterfoilError, StaleEpoch
from .bucket import Bucket, FallbackBucket, LocalBucket, RedisBucket, redis_client
from .drive import Drive, end_process
from .health import SERVING, STARTING, Pulse
from .jobs import Pace
from .settings import Settings
from .targets import load_targets
from .telemetry import make_tracing
from .ticks import Ticks
from .vault import load_vault

if TYPE_CHECKING:
    from .deliver import Deliverer

log = logging.getLogger(__name__)

RETRY_S = 2.0

_drive: Drive | None = None
_deliverer: "Deliverer | None" = None
_ending = threading.Event()
_ticks = Ticks()


def pulse(settings: Settings, kind: str = "worker") -> Callable[[float, str], None]:
    """How this process says that it moves (seconds on a clock that only grows, STARTING or SERVING). Raises
    HealthError."""
    return (lambda _now_s, _word: None) if settings.health_dir is None else Pulse(settings.health_dir, kind).beat


def make_drive(
    settings: Settings,
    *,
    solo: bool,
    ended: Callable[[str], None] = end_process,
    beat: Callable[[float, str], None] = lambda _now_s, _word: None,
) -> Drive:
    """A loop for this process. `solo`: the only process of the fleet, so an exact bucket of its own, no broker, its
    own ticks. `beat`: as `pulse` makes it.

    Raises TargetsError, SettingsError, LedgerUnavailable, SchemaOutdated, RecoverFirst.
    """
    targets = load_targets(settings.targets_file)
    limits = targets.limits
    bucket: Bucket
    if solo:
        bucket = LocalBucket(limits, time.monotonic)  # noqa: TID251  a port: the bucket takes its clock here
    else:
        shared = RedisBucket(redis_client(settings.require_broker_url()), limits)
        bucket = FallbackBucket(shared, limits, settings.local_share, time.monotonic)  # noqa: TID251
    pace = Pace(
        tick_s=settings.tick_s,
        self_tick_s=settings.tick_s if solo else settings.self_tick_s,
        flush_s=settings.flush_s,
        slot_s=settings.slot_s,
        poll_lease_s=settings.poll_lease_s,
        fetch_lease_s=settings.fetch_lease_s,
        in_flight=settings.in_flight,
        claim_batch=settings.claim_batch,
        claim_ahead_s=settings.claim_ahead_s,
    )
    sessions = any(targets[name].profile.sessions for name in targets.names)
    return Drive(
        settings.require_database_url(),
        targets,
        bucket,
        fleet=settings.fleet,
        pace=pace,
        lanes=settings.lanes,
        epoch=settings.epoch,
        ended=ended,
        moved=lambda now_s: beat(now_s, SERVING),
        vault=load_vault(settings.state_dir) if sessions else None,
        tracing=make_tracing(settings),
        ticks=_ticks,
    )


def make_deliverer(settings: Settings) -> "Deliverer | None":
    """What pushes events to webhooks, for this process; None where no webhooks file is set.

    Connects to nothing yet. Raises WebhooksError, SettingsError.
    """
    if settings.webhooks_file is None:
        return None
    from .deliver import Deliverer  # noqa: PLC0415  httpx and what it brings are 6 MB
    from .webhooks import load_webhooks  # noqa: PLC0415

    return Deliverer(
        settings.require_database_url(),
        load_webhooks(settings.webhooks_file),
        Credentials(time.monotonic),  # noqa: TID251
        fleet=settings.fleet,
        rng=random.random,
        tick_s=settings.tick_s,
        traced=settings.otel,
    )


def process_drive() -> Drive | None:
    """The loop of this Celery child, None where it could not be started."""
    return _drive


def _end_worker(reason: str) -> None:
    """A Celery child without a loop is of no use. Where its epoch is over the whole worker is: a child that Celery
    starts anew would only find that out again."""
    if reason == "stale":
        log.error("E_STALE_EPOCH: the epoch is over; this worker ends")
        os.kill(os.getppid(), signal.SIGTERM)
    else:
        end_process(reason)


def _serve() -> None:
    """Start the loop as soon as it can be: while the database is away a worker waits instead of dying again and
    again."""
    global _drive, _deliverer  # noqa: PLW0603  one loop a process is the design
    told = ""
    beat: Callable[[float, str], None] | None = None
    while not _ending.is_set():
        try:
            settings = Settings.load()
            beat = beat or pulse(settings)
            beat(time.monotonic(), STARTING)  # noqa: TID251  a port
            deliverer = make_deliverer(settings)
            drive = make_drive(settings, solo=False, ended=_end_worker, beat=beat)
            drive.start()
        except StaleEpoch:
            _end_worker("stale")
            return
        except CounterfoilError as error:
            if str(error) != told:
                told = str(error)
                log.error("this worker process can't serve yet: %s", told)  # noqa: TRY400  the text says all
            _ending.wait(RETRY_S)
        else:
            _drive = drive
            if deliverer is not None:
                deliverer.start()
                _deliverer = deliverer
            return


def _begin(**_: Any) -> None:
    """After the fork: connections and threads don't survive one. In a thread, since Celery waits 4 s for its
    children."""
    threading.Thread(target=_serve, name="counterfoil-start", daemon=True).start()


def _end(**_: Any) -> None:
    _ending.set()
    if _drive is not None and not _drive.stop(Settings.load().stop_grace_s):
        log.warning("stopped with requests still out; their answers are lost, their leases run out")
    if _deliverer is not None:
        _deliverer.stop()


worker_process_init.connect(_begin)
worker_process_shutdown.connect(_end)
