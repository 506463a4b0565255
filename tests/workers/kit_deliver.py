"""A deliverer between a world's ledger and a receiver, and looks at what became of it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from counterfoil.adapters.credentials import Credentials
from counterfoil.ledger.digest import ready_id
from counterfoil.ledger.pushes import WebhookEndpoint, webhook_endpoints
from counterfoil.tests.ledger.world import World
from counterfoil.tests.workers.kit_receiver import SECRET, Receiver
from counterfoil.workers.deliver import Deliverer
from counterfoil.workers.webhooks import Webhook

TICK_S = 0.02


def hook_of(hooks: Receiver, namespace: str = "default", path: str = "/hooks", **changes: Any) -> Webhook:
    fields = {"secrets": ("env:HOOK",), "allow_private": False, "include_result": False} | changes
    return Webhook(namespace, hooks.url(path), **fields)


def made(world: World, *webhooks: Webhook, environ: dict[str, str] | None = None, traced: bool = False) -> Deliverer:
    credentials = Credentials(time.monotonic, {"HOOK": SECRET} if environ is None else environ)
    by_name = {webhook.namespace: webhook for webhook in webhooks}
    return Deliverer(world.url, by_name, credentials, rng=lambda: 0.5, tick_s=TICK_S, traced=traced)


@contextmanager
def delivering(world: World, *webhooks: Webhook, **more: Any) -> Iterator[Deliverer]:
    deliverer = made(world, *webhooks, **more)
    deliverer.start()
    try:
        yield deliverer
    finally:
        assert deliverer.stop()


def until(world: World, condition: Callable[[], bool]) -> None:
    """Until the ledger shows it: looked at again and again, since nothing tells when a commit is there."""
    end_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end_s
        threading.Event().wait(0.01)


def settled(world: World, number: int = 1, *, namespace: str = "default") -> list[str]:
    """So many receipts wait; their ready ids, oldest first."""
    world.client.namespace = namespace
    for each in range(number):
        world.ended(world.working(f"run/{each}", f"{namespace}-{each}"))
    world.client.namespace = "default"
    return [str(ready_id(namespace, f"run/{each}")) for each in range(number)]


def open_rows(world: World) -> int:
    query = (
        "SELECT (SELECT count(*) FROM counterfoil.ready_outbox WHERE acked_at IS NULL)"
        " + (SELECT count(*) FROM counterfoil.notice WHERE acked_at IS NULL)"
    )
    return int(world.sql(query)[0][0])


def endpoint(world: World) -> WebhookEndpoint | None:
    return next(iter(webhook_endpoints(world.database)), None)


def failed(world: World, failures: int = 1) -> bool:
    known = endpoint(world)
    return known is not None and known.failures >= failures


def tried(world: World, most: int) -> bool:
    """Every event is back, and the one that was tried most was tried so often."""
    query = "SELECT max(deliveries), count(*) FILTER (WHERE lease_until IS NOT NULL) FROM counterfoil.ready_outbox"
    return world.sql(query) == [(most, 0)]
