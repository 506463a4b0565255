"""What `counterfoil doctor` looks at: each part that a fleet needs, with what to do where it is not well."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from redis.exceptions import RedisError
from sqlalchemy import Connection, text

from ..ledger import epochs, migrate
from ..ledger.database import Database
from ..ledger.errors import CounterfoilError
from ..ledger.orphans import find_orphans
from ..workers.bucket import redis_client
from ..workers.producers import Producers
from ..workers.settings import Settings
from ..workers.targets import Targets, load_targets
from ..workers.vault import KEYS_FILE, MAKE_ONE, Vault
from ..workers.webhooks import load_webhooks
from .config_view import unknown_variables
from .preflight import check_broker
from .targets_check import check_targets
from .words import span

SKEW_WARN_S = 5.0
"""The ledger's clock decides; ours only dates log lines, which people then compare."""

LATE_WARN_S, LATE_FAIL_S = 30.0, 900.0
"""A due row waits for the next tick, or for a dead worker's lease (30 s at most); 15 minutes are SPEC section 7's."""


class Health(StrEnum):
    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `remedy` is empty where all is well."""

    name: str
    health: Health
    found: str
    remedy: str = ""


def examine(settings: Settings) -> Iterator[Finding]:
    """Look at everything, one thing after the other. What can't be looked at without another thing is left out."""
    yield from _settings()
    yield from _ledger(settings)
    yield from _broker(settings)
    yield from _files(settings)
    yield from _servers(settings)


def _settings() -> Iterator[Finding]:
    for name, near in unknown_variables():
        hint = f"Did you mean {near}?" if near else "Unset it."
        yield Finding("settings", Health.WARN, f"{name} is no setting and does nothing.", hint)


def _failed(name: str, error: CounterfoilError) -> Finding:
    remedy = error.next_step or f"`counterfoil explain {error.code}` says what to do."
    return Finding(name, Health.FAIL, f"{error.code}: {error.message}", remedy)


# -- the ledger --------------------------------------------------------------------------------------------------------


def _ledger(settings: Settings) -> Iterator[Finding]:
    try:
        url = settings.require_database_url()
        found, wanted = migrate.current(url), migrate.head()
    except CounterfoilError as error:
        yield _failed("database", error)
        return
    yield Finding("database", Health.OK, "reachable.")
    if found != wanted:
        remedy = "Run `counterfoil db upgrade` with the release that is the newer one."
        yield Finding("schema", Health.FAIL, f"version {found or 'none'}, this release wants {wanted}.", remedy)
        return
    yield Finding("schema", Health.OK, f"version {found}.")
    database = Database(url, fleet=settings.fleet, pool_size=1)
    try:
        yield Finding("epoch", Health.OK, f"fleet {settings.fleet}, {epochs.current_epoch(database, settings.fleet)}.")
        for look in _LOOKS:
            with database.autocommit() as connection:
                yield look(connection, settings.fleet)
    except CounterfoilError as error:
        yield _failed("ledger", error)
    finally:
        database.dispose()


def _clock(connection: Connection, _fleet: str) -> Finding:
    before_s = time.time()
    ledger_s = float(connection.execute(text("SELECT extract(epoch FROM counterfoil.ledger_now())")).scalar_one())
    # The answer was made somewhere between the two looks at our clock.
    skew_s = max(before_s - ledger_s, ledger_s - time.time(), 0.0)
    if skew_s <= SKEW_WARN_S:
        return Finding("clock", Health.OK, "this machine and the ledger agree.")
    return Finding(
        "clock",
        Health.WARN,
        f"this machine is {skew_s:.0f} s away from the ledger, whose clock decides.",
        "Let both be set by NTP: times in logs and in the journal can't be compared.",
    )


def _lateness(connection: Connection, fleet: str) -> Finding:
    query = text(
        "SELECT extract(epoch FROM counterfoil.ledger_now() - min(due_at)) FROM counterfoil.wake WHERE fleet = :fleet"
    )
    late_s = float(connection.execute(query, {"fleet": fleet}).scalar_one() or 0.0)
    if late_s <= LATE_WARN_S:
        return Finding("due work", Health.OK, "nothing waits longer than it should.")
    return Finding(
        "due work",
        Health.FAIL if late_s > LATE_FAIL_S else Health.WARN,
        f"the oldest due row has waited for {span(round(late_s))}.",
        "Is a worker running, with this target in its file and this lane? `counterfoil worker` says what it serves.",
    )


def _cases(connection: Connection, fleet: str) -> Finding:
    query = text(
        "SELECT c.code, count(*) FROM counterfoil.reconciliation_case AS c JOIN counterfoil.operation AS o"
        " ON o.id = c.operation_id WHERE c.closed_at IS NULL AND o.fleet = :fleet GROUP BY c.code ORDER BY c.code"
    )
    counts = [f"{number} {code}" for code, number in connection.execute(query, {"fleet": fleet})]
    if not counts:
        return Finding("open cases", Health.OK, "none.")
    remedy = "Somebody has to speak: `counterfoil cases list`, then `counterfoil cases show` for what to search for."
    return Finding("open cases", Health.WARN, f"{', '.join(counts)}.", remedy)


def _orphans(connection: Connection, fleet: str) -> Finding:
    found = find_orphans(connection, fleet)
    if not found:
        return Finding("orphans", Health.OK, "none: every open operation is due, or asks a person.")
    oldest = found[0]
    return Finding(
        "orphans",
        Health.FAIL,
        f"{len(found)}, the oldest is call node {oldest.call_node_id} ({oldest.lane}): {oldest.why}.",
        "With a worker running this must be none: start one; if it stays, `counterfoil orphans` shows all; report it.",
    )


_LOOKS: tuple[Callable[[Connection, str], Finding], ...] = (_clock, _lateness, _cases, _orphans)


# -- the broker --------------------------------------------------------------------------------------------------------


def _broker(settings: Settings) -> Iterator[Finding]:
    if settings.broker_url is None:
        remedy = "Set COUNTERFOIL_BROKER_URL for a fleet; `counterfoil worker --solo` needs none."
        yield Finding("broker", Health.WARN, "none is configured.", remedy)
        return
    try:
        check_broker(settings)
    except CounterfoilError as error:
        yield _failed("broker", error)
        return
    yield Finding("broker", Health.OK, "reachable.")
    memory: dict[str, object] = {}
    client = redis_client(settings.broker_url)
    with suppress(RedisError):
        memory = client.info("memory")
    client.close()
    policy = memory.get("maxmemory_policy")
    if policy == "noeviction":
        yield Finding("eviction", Health.OK, "noeviction.")
    else:
        yield Finding(
            "eviction",
            Health.FAIL if memory.get("maxmemory") else Health.WARN,
            f"the broker's maxmemory-policy is {policy or 'not told'}: it may drop queues and messages.",
            "Set maxmemory-policy to noeviction: a submit message that is dropped is lost for good.",
        )


def _files(settings: Settings) -> Iterator[Finding]:
    """Files that only some fleets have."""
    if settings.producers_file is not None:
        try:
            keys = len(Producers(settings.producers_file).load())
        except CounterfoilError as error:
            yield _failed("producers", error)
        else:
            yield Finding("producers", Health.OK, f"{settings.producers_file}, {keys} keys.")
    if settings.webhooks_file is not None:
        try:
            hooks = len(load_webhooks(settings.webhooks_file))
        except CounterfoilError as error:
            yield _failed("webhooks", error)
        else:
            yield Finding("webhooks", Health.OK, f"{settings.webhooks_file}, {hooks} namespaces.")


# -- the servers -------------------------------------------------------------------------------------------------------


def _servers(settings: Settings) -> Iterator[Finding]:
    try:
        targets = load_targets(settings.targets_file)
    except CounterfoilError as error:
        yield _failed("targets file", error)
        return
    yield Finding("targets file", Health.OK, f"{settings.targets_file}, {len(targets.names)} targets.")
    yield from _keys(settings, targets)
    for found in check_targets(targets):
        name = f"target {found.name}"
        if found.problems:
            remedy = "`counterfoil check URL` says more; `counterfoil targets explain KEY` what to set."
            yield Finding(name, Health.FAIL, " ".join(found.problems), remedy)
        else:
            yield Finding(name, Health.OK, f"speaks {found.protocol}, {found.tools} tools can be called.")


def _keys(settings: Settings, targets: Targets) -> Iterator[Finding]:
    """Sessions are stored encrypted. Looked at, not made: the development stack's key is made when first needed."""
    if not any(targets[name].profile.sessions for name in targets.names):
        return
    given = [key.strip() for key in os.environ.get("COUNTERFOIL_KEYS", "").split(",") if key.strip()]
    if given:
        try:
            Vault(given)
        except CounterfoilError as error:
            yield _failed("keys", error)
        else:
            yield Finding("keys", Health.OK, f"{len(given)} in COUNTERFOIL_KEYS.")
    elif any((settings.state_dir / name).exists() for name in (KEYS_FILE, "dev.json")):
        yield Finding("keys", Health.OK, "the development stack's own.")
    else:
        yield Finding("keys", Health.FAIL, "a target keeps sessions, and there is no key to seal them with.", MAKE_ONE)
