"""The Celery tasks, thin on purpose: one asks what is due, one wakes the loop of the process it lands in, one takes
calls that producers hand in by name.

The first two carry a lane and a target, nothing else; whoever forges one causes an early look into the ledger, inside
the bucket. The third is a request, so it is signed.
"""

import logging
import threading
import time
from functools import cache

from kombu.exceptions import OperationalError

from ..ledger.errors import CounterfoilError
from ..ledger.states import QUEUES, Lane
from . import fleet
from .app import app as celery_app
from .app import task
from .inbox import Inbox, NotNow, deliver
from .messages import SUBMIT, Message
from .settings import Settings

log = logging.getLogger(__name__)

WAKE_EXPIRES_S = 5.0
"""A wake-up older than this is of no use: the next tick has sent another."""

WAKES_A_PLAN = 2
"""Per lane and target: with more than a batch due two processes may share it. Who plans is one of them, without a
message: ticks go around among the processes, and so does the work."""


@task("counterfoil.plan")
def plan() -> None:
    """Ask the ledger which (lane, target) has due work and send wake-ups without operation ids."""
    loop = fleet.process_drive()
    if loop is None:
        return
    try:
        loop.ticked()
        due = loop.plan()
    except CounterfoilError as error:
        log.warning("planning failed: %s", error)
        return
    for work in due:
        if work.later_s is not None:
            loop.kick(work.lane, work.target, work.later_s)
        if not work.count:
            continue
        others = min(1 + work.count // loop.batch, WAKES_A_PLAN)
        if loop.serves(work.lane):
            loop.kick(work.lane, work.target)
            others -= 1
        for _ in range(others):
            celery_app.send_task("counterfoil.drive", (str(work.lane), work.target), expires=WAKE_EXPIRES_S)


@task("counterfoil.drive")
def drive(lane: str, target: str) -> None:
    """Wake this process's loop and return at once: a task that polled inside itself would hold its slot (p99 3.1 s
    against 47 ms)."""
    loop = fleet.process_drive()
    if loop is not None and lane in QUEUES and isinstance(target, str):
        loop.kick(Lane(lane), target)


@task(SUBMIT)
def submit(*args: object, **kwargs: object) -> None:
    """Take a call that a producer handed in: `[body, key_id, signature]`. Whatever comes ends in the ledger, as an
    operation or as a dead letter; any arguments are taken, since Celery drops what does not fit a signature."""

    def put_back() -> bool:
        try:
            celery_app.send_task(SUBMIT, args, kwargs)
        except (OperationalError, OSError):
            return False
        return True

    deliver(
        Message.of(args, kwargs),
        _take,
        put_back,
        now_s=time.monotonic,  # noqa: TID251  a port: deliver takes its clock here
        wait=threading.Event().wait,
    )


def _take(message: Message) -> str:
    if fleet.process_drive() is None:
        # The loop announces the targets when it starts: before that a new fleet's first message would name none.
        raise NotNow("this worker process can't serve yet.")
    return _inbox().take(message)


@cache
def _inbox() -> Inbox:
    return Inbox.load(Settings.load())
