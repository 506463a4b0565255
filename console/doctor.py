"""What `counterfoil doctor` looks at: each part that a fleet needs, with what to do where it is not well."""

import os
from collections.abc import Iterator
from contextlib import suppress

from redis import Redis
from redis.exceptions import RedisError

from ..ledger.errors import CounterfoilError
from ..workers.bucket import closings, redis_client
from ..workers.producers import Producers
from ..workers.settings import Settings
from ..workers.targets import Targets, load_targets
from ..workers.vault import KEYS_FILE, MAKE_ONE, Vault
from ..workers.webhooks import load_webhooks
from .config_view import unknown_variables
from .doctor_ledger import look_at_ledger
from .finding import Finding, Health, failed
from .preflight import check_broker
from .targets_check import check_targets
from .words import age

FULL_WARN = 0.8
"""Of the broker's memory: full, it refuses wake-ups, tokens and submit messages alike."""


def examine(settings: Settings) -> Iterator[Finding]:
    """Look at everything, one thing after the other. What can't be looked at without another thing is left out."""
    yield from _settings()
    yield from look_at_ledger(settings)
    yield from _broker(settings)
    yield from _files(settings)
    yield from _servers(settings)


def _settings() -> Iterator[Finding]:
    for name, near in unknown_variables():
        hint = f"Did you mean {near}?" if near else "Unset it."
        yield Finding("settings", Health.WARN, f"{name} is no setting and does nothing.", hint)


# -- the broker --------------------------------------------------------------------------------------------------------


def _broker(settings: Settings) -> Iterator[Finding]:
    if settings.broker_url is None:
        remedy = "Set COUNTERFOIL_BROKER_URL for a fleet; `counterfoil worker --solo` needs none."
        yield Finding("broker", Health.WARN, "none is configured.", remedy)
        return
    try:
        check_broker(settings)
    except CounterfoilError as error:
        yield failed("broker", error)
        return
    client = redis_client(settings.broker_url)
    try:
        yield from _server(client)
        yield _bucket(client)
    except RedisError as error:
        remedy = "Let this login read INFO and the keys counterfoil:*."
        yield Finding("bucket", Health.FAIL, f"the broker refuses to tell ({type(error).__name__}).", remedy)
    finally:
        client.close()


def _server(client: Redis) -> Iterator[Finding]:
    memory: dict[str, object] = {}
    version = "of an unknown version"
    with suppress(RedisError):
        told = client.info("server")
        version = f"Valkey {told['valkey_version']}" if "valkey_version" in told else f"Redis {told['redis_version']}"
        memory = client.info("memory")
    used, limit = int(str(memory.get("used_memory", 0))), int(str(memory.get("maxmemory", 0)))
    if limit and used > FULL_WARN * limit:
        remedy = "Give it more memory, or find out whose keys they are."
        yield Finding("broker", Health.WARN, f"reachable, {version}, {100 * used // limit} % full.", remedy)
    else:
        yield Finding("broker", Health.OK, f"reachable, {version}.")
    policy = memory.get("maxmemory_policy")
    if policy == "noeviction":
        yield Finding("eviction", Health.OK, "noeviction.")
    else:
        yield Finding(
            "eviction",
            Health.FAIL if limit else Health.WARN,
            f"the broker's maxmemory-policy is {policy or 'not told'}: it may drop queues and messages.",
            "Set maxmemory-policy to noeviction: a submit message that is dropped is lost for good.",
        )


def _bucket(client: Redis) -> Finding:
    closed = closings(client)
    if closed is None:
        return Finding("bucket", Health.OK, "empty: nothing was sent since this broker started.")
    told = [f"{target} for {age(for_s)}" for target, for_s in sorted(closed.items())]
    if told:
        remedy = "Each opens by itself when the time that its server named is over."
        return Finding("bucket", Health.WARN, f"closed: {', '.join(told)}.", remedy)
    return Finding("bucket", Health.OK, "open for every target.")


def _files(settings: Settings) -> Iterator[Finding]:
    """Files that only some fleets have."""
    if settings.producers_file is not None:
        try:
            keys = len(Producers(settings.producers_file).load())
        except CounterfoilError as error:
            yield failed("producers", error)
        else:
            yield Finding("producers", Health.OK, f"{settings.producers_file}, {keys} keys.")
    if settings.webhooks_file is not None:
        try:
            hooks = len(load_webhooks(settings.webhooks_file))
        except CounterfoilError as error:
            yield failed("webhooks", error)
        else:
            yield Finding("webhooks", Health.OK, f"{settings.webhooks_file}, {hooks} namespaces.")


# -- the servers -------------------------------------------------------------------------------------------------------


def _servers(settings: Settings) -> Iterator[Finding]:
    try:
        targets = load_targets(settings.targets_file)
    except CounterfoilError as error:
        yield failed("targets file", error)
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
            yield failed("keys", error)
        else:
            yield Finding("keys", Health.OK, f"{len(given)} in COUNTERFOIL_KEYS.")
    elif any((settings.state_dir / name).exists() for name in (KEYS_FILE, "dev.json")):
        yield Finding("keys", Health.OK, "the development stack's own.")
    else:
        yield Finding("keys", Health.FAIL, "a target keeps sessions, and there is no key to seal them with.", MAKE_ONE)
