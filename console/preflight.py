"""What a worker or beat checks before it starts: the cause and the next command, not a loop of errors in a log."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from redis.exceptions import RedisError

from ..ledger import epochs, generations, migrate
from ..ledger.database import Database
from ..ledger.errors import LedgerUnavailable, StaleEpoch
from ..ledger.store import Store
from ..workers.bucket import redis_client
from ..workers.settings import Settings
from ..workers.targets import load_targets
from ..workers.telemetry import check_otel
from .exits import BrokerUnavailable


@dataclass(frozen=True, slots=True)
class Fleet:
    """What was found: the epoch that this process will serve, and its targets."""

    epoch: int
    targets: tuple[str, ...]


def check_worker(settings: Settings) -> Fleet:
    """Database, schema, fleet and targets file, in this order; then the targets are announced: whoever reads "worker
    ready" may hand a call in, although the pool's children are still starting.

    Raises SettingsError, LedgerUnavailable, SchemaOutdated, ReleaseTooOld, RecoverFirst, InputRefused (no such fleet),
    StaleEpoch (also E_GENERATION), TargetsError.
    """
    check_otel(settings)
    with _checked_ledger(settings) as (database, epoch):
        if settings.epoch is not None and settings.epoch != epoch:
            raise StaleEpoch(
                f"this worker is configured for epoch {settings.epoch}, the ledger is in {epoch}.",
                next_step="Start the release that is current, or unset COUNTERFOIL_EPOCH: a worker joins by itself.",
            )
        targets = load_targets(settings.targets_file)
        store = Store(database, settings.fleet, epoch, lambda target, tool: targets[target].policy(tool))
        store.register_targets([(name, targets[name].protocol) for name in targets.names])
    return Fleet(epoch, targets.names)


def check_ledger(settings: Settings) -> None:
    """Database, schema and fleet: for what serves nobody's calls, and so announces no targets.

    Raises SettingsError, LedgerUnavailable, SchemaOutdated, RecoverFirst, InputRefused (no such fleet).
    """
    with _checked_ledger(settings):
        pass


@contextmanager
def _checked_ledger(settings: Settings) -> Iterator[tuple[Database, int]]:
    """The ledger at this release's schema, with the fleet's epoch."""
    url = settings.require_database_url()
    migrate.require(url)
    database = Database(url, fleet=settings.fleet, pool_size=1)
    try:
        yield database, generations.join(database, settings.fleet, settings.generation)
    finally:
        database.dispose()  # nothing of it may be open when Celery forks


def epoch_is_over(settings: Settings, epoch: int) -> bool:
    """Whether the ledger has moved on since `epoch`; no where it can't be asked."""
    database = Database(settings.require_database_url(), pool_size=1)
    try:
        return epochs.current_epoch(database, settings.fleet) != epoch
    except LedgerUnavailable:
        return False
    finally:
        database.dispose()


def check_broker(settings: Settings) -> None:
    """Raises SettingsError (E_NO_BROKER), BrokerUnavailable. Its text names host and port, never the password."""
    url = settings.require_broker_url()
    parts = urlsplit(url)
    where = parts.netloc.rpartition("@")[2] or parts.path
    client = redis_client(url)
    try:
        client.ping()
    except RedisError as error:
        raise BrokerUnavailable(
            f"the broker at {where} can't be used ({type(error).__name__}).",
            next_step="Start one with `counterfoil dev up`, set COUNTERFOIL_BROKER_URL, or run `worker --solo`.",
        ) from error
    finally:
        client.close()
