"""The fleet's long-running processes, as the command line starts them: a worker, one without a broker, beat."""

import gc
import os
import signal
import warnings
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import FrameType

from celery.platforms import SecurityWarning
from celery.signals import setup_logging, worker_ready

from ..ledger.states import QUEUES, Lane
from ..workers.messages import SUBMIT
from ..workers.settings import Settings
from .exits import Exit
from .logs import log_to_stderr
from .output import say
from .preflight import Fleet, check_broker, check_worker, epoch_is_over


def run_worker(settings: Settings) -> Exit:
    """Celery's worker in this process, on the lanes' queues. Returns when it was asked to stop and has stopped.

    Raises what the checks raise, before Celery starts.
    """
    fleet = check_worker(settings)
    check_broker(settings)
    _log(settings)
    # Celery warns every root, because a message could run code; here only JSON is accepted, so none can.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    # The pool's children read their settings from the environment.
    os.environ["COUNTERFOIL_FLEET"] = settings.fleet
    os.environ["COUNTERFOIL_LANES"] = ",".join(settings.lanes)
    os.environ["COUNTERFOIL_EPOCH"] = str(fleet.epoch)
    from ..workers.app import PLAN_QUEUE, WORKER_OPTIONS, app, queue_name  # noqa: PLC0415  `app` reads the settings

    def ready(**_: object) -> None:
        say(_serving(settings, fleet))

    worker_ready.connect(ready, weak=False)
    # Submit messages are work of the submit lane, whoever else plans or reads.
    doors = (SUBMIT,) if Lane.SUBMIT in settings.lanes else ()
    queues = [PLAN_QUEUE, *doors, *(queue_name(lane) for lane in settings.lanes)]
    # Not by way of Celery's command line, which loads all its commands and a shell for them: 10 MB for life.
    celery_worker = app.Worker(**WORKER_OPTIONS, queues=queues, concurrency=settings.concurrency, quiet=True)
    # Else each child's collector would write to every object that it shares with us, and so copy it: with two of them
    # the whole worker took 227 instead of 180 MB after a burst (proportional set size).
    gc.collect()
    gc.freeze()
    celery_worker.start()
    if epoch_is_over(settings, fleet.epoch):
        say(f"E_STALE_EPOCH: epoch {fleet.epoch} is over, so this worker stopped. Start the release that is current.")
        return Exit.STALE
    return Exit.OK


def run_solo(settings: Settings) -> Exit:
    """One loop with its own ticks and an exact bucket of its own: the degraded mode that works without a broker.

    Raises what the checks raise. Returns STALE when the epoch is over.
    """
    fleet = check_worker(settings)
    settings = settings.model_copy(update={"epoch": fleet.epoch})  # a bump that comes now ends this worker as well
    _log(settings)
    from ..workers.fleet import make_deliverer, make_drive, pulse  # noqa: PLC0415

    # Not an Event: its lock could be held at the moment in which the handler runs; a SimpleQueue takes a put any time.
    endings: SimpleQueue[str] = SimpleQueue()

    def asked(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the second one doesn't wait
        endings.put("asked")

    deliverer = make_deliverer(settings)
    drive = make_drive(settings, solo=True, ended=endings.put, beat=pulse(settings))
    signal.signal(signal.SIGTERM, asked)
    signal.signal(signal.SIGINT, asked)
    drive.start()
    if deliverer is not None:
        deliverer.start()
    say(_serving(settings, fleet))
    reason = _first(endings)
    if deliverer is not None:
        deliverer.stop()
    if reason == "asked":
        say("stopping: bringing home what is out. Ctrl-C stops at once.")
        if not drive.stop(settings.stop_grace_s):
            say("stopped with requests still out; their leases run out and others go on.")
        return Exit.OK
    if reason == "stale":
        say(f"E_STALE_EPOCH: epoch {fleet.epoch} is over, so this worker stops. Start the release that is current.")
        return Exit.STALE
    say("the loop broke; the log above says where. Leases run out and others go on.")
    return Exit.INTERNAL


def _first(endings: "SimpleQueue[str]") -> str:
    """The first reason to end. Looked for twice a second: a signal that came just as a wait without a bound began was
    never noticed (2 of the first 28 workers that were signalled right after "worker ready")."""
    while True:
        with suppress(Empty):
            return endings.get(timeout=0.5)


def run_beat(settings: Settings) -> Exit:
    """Celery's beat in this process, with the app's own scheduler: no pid file, no schedule file.

    Raises SettingsError, BrokerUnavailable.
    """
    check_broker(settings)
    _log(settings)
    from ..workers.app import app  # noqa: PLC0415  `app` reads the settings
    from .calm_beat import CalmBeat  # noqa: PLC0415  no worker needs it

    say("beat ticks.")
    CalmBeat(app=app, loglevel="INFO", quiet=True).run()
    return Exit.OK


def _serving(settings: Settings, fleet: Fleet) -> str:
    lanes = "all lanes" if settings.lanes == QUEUES else f"lanes {', '.join(settings.lanes)}"
    return f"worker ready: fleet {settings.fleet}, epoch {fleet.epoch}, {lanes}, targets {', '.join(fleet.targets)}."


def _log(settings: Settings) -> None:
    """As every process of ours; Celery must not set up its own."""
    log_to_stderr(settings)
    setup_logging.connect(_nothing_more)


def _nothing_more(**_: object) -> None:
    """A receiver of this signal is what keeps Celery's hands off the loggers."""
