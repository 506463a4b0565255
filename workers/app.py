"""The Celery app of the fleet: `celery -A counterfoil.workers.app worker|beat`.

Messages are hints. They carry no operation ids, no secrets and no authority; losing, doubling, delaying or forging one
changes latency and nothing else. Every setting below follows from that, or from a fault that was met. The one message
that is a request, `counterfoil.submit.v1`, is signed and at most once until its row exists (docs/producers.md).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, Protocol, TypeVar, cast

from celery import Celery, shared_task

from ..beat_schedule import BEAT_SCHEDULE
from ..ledger.states import QUEUES
from .messages import SUBMIT
from .settings import Settings

EXCHANGE = "counterfoil"
PLAN_QUEUE = "counterfoil.plan"

HEALTH_DIR = "counterfoil_health_dir"
"""The key in the app's configuration; None or absent: no sign of life is left."""

WORKER_OPTIONS = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True, "optimization": "fair"}
"""What Celery takes with a worker only, not as a setting. Workers that talk to each other cost up to three connections
each and have hung fleets of 500; a worker here needs to know of no other."""

_BROKER = {
    # A broker shared with other Celery apps: every key of ours starts so, kombu's binding and unacked keys too.
    "global_keyprefix": "counterfoil:",
    # Without a timeout a publish on a half-open connection waits for ever.
    "socket_timeout": 10,
    "socket_connect_timeout": 3,
    "socket_keepalive": True,
    "retry_on_timeout": True,
    # A consumer on a half-open connection is noticed after about twice this plus a second.
    "health_check_interval": 10,
}


def queue_name(lane: str) -> str:
    """The queue of a lane: one word each for verb, lane, queue and Deployment."""
    return f"counterfoil.{lane}"


def route(
    name: str, args: Sequence[object] | None, kwargs: Mapping[str, object] | None, *_: object, **__: object
) -> dict[str, str] | None:
    """`counterfoil.drive` goes to the queue of the lane that is its argument `lane`, the first one; a submit message
    to the queue of its own name."""
    if name == SUBMIT:
        return {"queue": SUBMIT}
    if name != "counterfoil.drive":
        return None
    lane = (kwargs or {}).get("lane") or next(iter(args or ()), None)
    return {"queue": queue_name(str(lane))}


def make_app(settings: Settings) -> Celery:
    """The app for these settings; nothing is connected. Raises SettingsError (E_NO_BROKER)."""
    names = (PLAN_QUEUE, SUBMIT, *(queue_name(lane) for lane in QUEUES))
    # Not the current app of this process: where a producer's own Celery app lives too, that one stays current.
    app = Celery("counterfoil", set_as_current=False)
    app.conf.update(
        include=[f"{__package__}.tasks"],
        enable_utc=True,
        timezone="UTC",
        # -- broker
        broker_url=settings.require_broker_url(),
        broker_transport_options=_BROKER,
        broker_connection_timeout=3,
        broker_connection_retry_on_startup=True,
        # None = for ever (the default gives up after 100): a broker that is away must not crash-loop the workers, which
        # go on from the ledger by their own tick meanwhile.
        broker_connection_max_retries=None,
        # -- queues
        task_queues={name: {"exchange": EXCHANGE, "exchange_type": "direct", "routing_key": name} for name in names},
        task_default_queue=PLAN_QUEUE,
        task_default_exchange=EXCHANGE,
        task_default_routing_key=PLAN_QUEUE,
        # A misspelt queue is an error at the sender instead of a queue that nobody reads.
        task_create_missing_queues=False,
        task_routes=(route,),
        # A hint is not worth waiting for: the next tick sends another.
        task_publish_retry=False,
        # -- messages: JSON alone, so a forged one can't run code, and Celery runs as root without C_FORCE_ROOT
        task_serializer="json",
        accept_content=["json"],
        # -- no results, no events, no remote control: reply keys without a TTL fill Redis, and nothing here reads them
        result_backend=None,
        result_expires=None,  # or beat would add celery.backend_cleanup
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        worker_send_task_events=False,
        task_send_sent_event=False,
        worker_enable_remote_control=False,
        # -- delivery: acknowledged when taken. With late acks a task that kills its worker is delivered for ever; what
        # a worker leaves behind is found in the ledger when its lease ends.
        task_acks_late=False,
        task_reject_on_worker_lost=False,
        worker_prefetch_multiplier=1,
        # A tripwire: nothing here has an ETA, and 10,000 of them would sit in the heap at 8.8 KB each.
        worker_eta_task_limit=100,
        worker_disable_rate_limits=True,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # -- messages that are none must not stop the worker
        worker_consumer=f"{__package__}.envelope:CheckedConsumer",
        # -- processes
        worker_pool="prefork",
        worker_concurrency=settings.concurrency,
        # KB. Checked after each task; the spike's processes stayed under 200 MB.
        worker_max_memory_per_child=400_000,
        # On SIGQUIT (or SIGTERM with REMAP_SIGTERM=SIGQUIT) what is in flight gets 25 s, inside a grace period of 45 s.
        worker_soft_shutdown_timeout=25,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        # -- beat
        beat_scheduler=f"{__package__}.beat:Ticker",
        beat_schedule=BEAT_SCHEDULE,
        **{HEALTH_DIR: settings.health_dir},
    )
    return app


P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Task(Protocol[P, R_co]):
    """What we use of a Celery task."""

    name: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> object: ...

    def apply_async(
        self, args: Sequence[object] = (), kwargs: Mapping[str, object] | None = None, **options: object
    ) -> object: ...


def task(name: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """Celery's `shared_task` with types: the function becomes a task of every app, of the name that messages carry."""

    def register(function: Callable[P, R]) -> Task[P, R]:
        return cast("Task[P, R]", shared_task(name=name)(function))

    return register


app: Celery


def __getattr__(name: str) -> Celery:
    """`app`, made when first asked for: importing this module reads no settings and needs no broker."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = make_app(Settings.load())
    globals()["app"] = made
    return made
